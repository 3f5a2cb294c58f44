#!/bin/sh
# SPDX-License-Identifier: MIT
# matrix.sh - builds and tests the tree in every way that must work
#
#   tests/matrix.sh [ROW]...     run these rows, or all of them
#   tests/matrix.sh --list
#
# Each row is built from scratch in matrix/ROW of the current folder; its log
# is matrix/ROW.log. Rows whose compiler, libraries or programs are missing are
# skipped. `make check-long` runs this last.
#
# All rows take 75 minutes on two processors of 2.4 GHz, Zen 3. Two rows run at
# a time, since a row that configures, links or waits leaves a processor idle.
# Each row builds and runs what no other row does (tests/Makefile.inc):
#
#   dist       what a user gets: all tests of the archive of make dist, with both
#              ways to link and all kernels
#   clang      also what configure finds beside: BLAS and MPI
#   32-bit     only the C code that kernels are compared with, as an optimiser
#              changes it most; its kernels are compiled, not run
#   no-tools   code without optimisation, in valgrind
#   coverage, asan   no tests of pages and sources; asan without most tests that
#              evaluate one text again and again
#
# All rows but dist link in one way, and sample long lists of files and chunks
# (GGUF_TEST_SAMPLE). Where compiling is slow, only this processor's kernels
# are built.
#
# ccache, if it is there (in matrix/ccache, made and removed here), lets a row
# use the files of another row with the same options, and lets dist use them
# for the other way to link. A row does not use -Werror; it fails after its
# tests if its log has a warning and its table says so. Rows with -O3, with
# which gcc warns of impossible cases, and rows with sanitizers may have
# warnings.
#
# Row coverage counts the lines of each room that the tests run (coverage.sh).
# A program that a test starts without room on the disk has no room for its
# counts either, and would print that on standard error; GCOV_ERROR_FILE takes
# it.
#
# Row abi compares the shared library with the recorded interface (abi.sh).
#
# Row big-endian is a cross build whose tests run in an emulator, with the
# s390x libraries that the compiler finds. (QEMU_LD_PREFIX names them for qemu;
# default: Debian's folder.) It runs tests that depend on the byte order, and a
# sample of those that take minutes there; make check-cross runs more.
#
# Row aarch64 runs the tests of its kernels in an emulator whose processor has
# all levels. Programs are static: with shared libraries, qemu could take the
# dynamic linker of one folder and a C library of another.
#
# Rows aarch64, musl, macos and windows need libraries for another system.
# static-deps.sh compiles them for the row from their sources, in the folder that
# DEPS names. Row musl runs the tests that depend on the C library, with vector
# kernels. Row macos compiles and links for a Mac with clang, lld, and zig's
# headers or those in SDKROOT; nothing runs. Row windows makes a DLL, tools and
# tests with mingw-w64, and runs those tests in Wine that need no POSIX.
set -u
: "${QEMU_LD_PREFIX=/usr/s390x-linux-gnu}"
export QEMU_LD_PREFIX
src=$(cd "$(dirname "$0")/.." && pwd)
# Starts in a third of bash's time, and libtool starts for each file.
if test -z "${CONFIG_SHELL-}" && command -v dash >/dev/null 2>&1; then
    CONFIG_SHELL=$(command -v dash)
    export CONFIG_SHELL
fi

# Tests of an unpacked archive find the folder beside the tree, too.
: "${GGUF_SHARED=$src/../shared}"
export GGUF_SHARED

# name | compiler | CFLAGS | warnings fail | configure's options | goals
rows='
dist       | gcc   | -O2     | yes | --enable-debug                                    | distcheck DISTCHECK_CONFIGURE_FLAGS=CFLAGS=-O2
asan       | gcc   | -g1 -O1 -no-pie | no | --enable-debug --enable-asan --enable-ubsan --enable-simd=native --disable-shared | check-addresses GGUF_TEST_SAMPLE=11
coverage   | gcc   | -O1     | no  | --enable-debug --enable-coverage --enable-simd=native --disable-shared | check-lines GGUF_TEST_SAMPLE=11 GCOV_ERROR_FILE=/dev/null
tsan       | clang | -g1 -O1 | no  | --enable-tsan --enable-simd=native --disable-shared | check-threads GGUF_TEST_SAMPLE=11
clang      | clang | -O2     | yes | --enable-debug --with-blas=auto --with-mpi=auto --disable-static | check-choices GGUF_TEST_SAMPLE=11
big-endian | s390x-linux-gnu-gcc | -O2 | no | --host=s390x-linux-gnu --enable-debug --disable-shared CC_FOR_BUILD=cc | check-cross-bytes EMULATOR=qemu-s390x-static GGUF_TEST_SAMPLE=11
aarch64    | aarch64-linux-gnu-gcc | -O2 | yes | --host=aarch64-linux-gnu --enable-debug --disable-shared --with-curl=no CC_FOR_BUILD=cc PKG_CONFIG_LIBDIR=deps/lib/pkgconfig | check-cross-kernels LDFLAGS=-all-static EMULATOR=qemu-aarch64-static GGUF_TEST_SAMPLE=11
tidy       | clang | -O1     | no  |                                                   | tidy
32-bit     | gcc -m32 | -O3 -march=native | no | --enable-debug --disable-simd --disable-static | check-32-bit GGUF_TEST_SAMPLE=11
no-tools   | gcc   | -O0     | yes | --enable-debug --enable-simd=native --disable-tools --disable-shared | check-valgrind
musl       | musl-gcc | -O2  | yes | --enable-debug --enable-simd=native --disable-shared --with-curl=no PKG_CONFIG_LIBDIR=deps/lib/pkgconfig AR=llvm-ar | check-libc GGUF_TEST_SAMPLE=11
macos      | clang --target=arm64-apple-macos11 -fuse-ld=lld -Wno-unused-command-line-argument | -O1 -g0 | yes | --host=aarch64-apple-darwin --enable-debug --disable-static --with-curl=no CC_FOR_BUILD=cc PKG_CONFIG_LIBDIR=deps/lib/pkgconfig AR=llvm-ar RANLIB=llvm-ranlib lt_cv_prog_gnu_ld=no | all
windows    | x86_64-w64-mingw32-gcc | -O1 | yes | --host=x86_64-w64-mingw32 --enable-debug --disable-static --with-curl=no CC_FOR_BUILD=cc PKG_CONFIG_LIBDIR=deps/lib/pkgconfig | check-windows EMULATOR=wine GGUF_TEST_SAMPLE=11
abi        | gcc   | -g -O2  | yes | --disable-tools --disable-static                  | all
'
if test "${1-}" = --list; then
    echo "$rows" | sed '/^$/d'
    exit 0
fi
# Checks of a row after its goals.
after() {
    case $1 in
    abi) sh "$src/tests/abi.sh" check "$src" "$PWD" ;;
    dist) same_archives ;;
    coverage) sh "$src/tests/coverage.sh" . >coverage.txt ;;
    32-bit) kernels_of "$2" ;;
    macos) linked_for_a_mac ;;
    aarch64) has_levels neon dotprod i8mm bf16 ;;
    esac
}
# Did the emulated processor have these levels?
has_levels() {
    for level; do
        grep -q "$level: products" tests/kern/check-int-products.log || return 1
    done
}
# Compile the library with its kernels of every level, by this COMPILER.
kernels_of() {
    mkdir kernels && cd kernels &&
        "$src/configure" -q CC="$1" CFLAGS=-O0 --disable-tools --disable-static &&
        make -s -j"$jobs" libgguf.la
}
# Compile the libraries of another system into deps, for a row whose OPTIONS
# name that folder, by its COMPILER.
make_libraries() {
    case $1 in *deps/*) ;; *) return 0 ;; esac
    CC=$2 AR=llvm-ar sh "$src/packaging/static-deps.sh" "$DEPS" deps
}
# The library exports the listed functions only, and it and the tools need no
# other library that a Mac lacks.
linked_for_a_mac() {
    llvm-nm -gU .libs/libgguf.0.dylib | sed 's/.* _//' | sort >exported
    sort lib/libgguf.sym | diff - exported || return 1
    llvm-objdump --macho --dylibs-used .libs/libgguf.0.dylib .libs/gguf-* >needed &&
        ! sed '/:$/d; s|^[[:space:]]*\(.*\) (comp.*|\1|' needed | sort -u |
            grep -vx '/usr/lib/libSystem.B.dylib\|/usr/local/lib/libgguf.0.dylib'
}
# Archives made at two times must be equal.
same_archives() {
    rm -rf twice && mkdir twice || return 1
    for k in 1 2; do
        SOURCE_DATE_EPOCH=1 make -s dist && mv -- *.tar.xz "twice/$k" || return 1
        sleep 1
    done
    cmp twice/1 twice/2
}
# Can this compiler make programs (such as FILE) with our libraries (or with
# others), and does it have the kernel's headers, which another package may
# bring?
can_link() {
    printf '#include <errno.h>\nint main(void) { return errno; }\n' >"$2.c"
    # shellcheck disable=SC2086 # a compiler may have options, libraries are words
    $1 -o "$2" "$2.c" ${3--lxxhash -lz -lpcre2-8 -ljansson} 2>/dev/null
}
# Can these programs run, by an emulator if the goals name one, or need they not?
# Some 64-bit systems do not run 32-bit programs.
can_run() {
    case $1 in *EMULATOR=* | all) return 0 ;; esac
    "$2" 2>/dev/null
}
# A linker that takes less than half of the usual one's time, for hundreds of
# tests, if this COMPILER finds one. dist is linked as users do it.
linker() {
    for flag in -fuse-ld=gold -fuse-ld=lld; do
        if test "$1" != dist && can_link "$2 $flag" "matrix/probe-$1"; then
            echo $flag
            break
        fi
    done
    rm -f "matrix/probe-$1" "matrix/probe-$1.c"
}
# Print why this ROW COMPILER GOALS PROGRAM OPTIONS cannot run here, if so.
why_not() {
    case $5 in
    *deps/*) libraries=-lm ;;
    *) libraries='-lxxhash -lz -lpcre2-8 -ljansson' ;;
    esac
    if ! can_link "$2" "matrix/probe-$1" "$libraries"; then
        echo "$2 is not here, or not its libraries"
    elif test "$libraries" = -lm && test -z "${DEPS-}"; then
        echo "DEPS names no sources of libraries"
    elif ! can_run "$3" "matrix/probe-$1"; then
        echo "what $2 makes does not run here"
    elif ! command -v "$4" >/dev/null; then
        echo "$4 is not here"
    elif test "$1" = abi; then
        sh "$src/tests/abi.sh" why "$src"
    fi
    rm -f "matrix/probe-$1" "matrix/probe-$1.c"
}

# Programs named like compilers that call ccache, found first in PATH.
through_ccache() {
    command -v ccache >/dev/null 2>&1 || return 0
    rm -rf matrix/ccache
    mkdir -p matrix/ccache/bin
    for c in cc $(echo "$rows" | cut -s -d'|' -f2); do
        case $c in -*) ;; *) ln -sf "$(command -v ccache)" "matrix/ccache/bin/$c" ;; esac
    done
    CCACHE_DIR=$PWD/matrix/ccache
    PATH=$CCACHE_DIR/bin:$PATH
    export CCACHE_DIR PATH
}

# Headers and functions of macOS, which zig has, in the folder where clang
# expects them.
mac_headers() {
    test -z "${SDKROOT-}" && command -v zig >/dev/null 2>&1 || return 0
    zig=$(zig env | sed -n 's/.*lib_dir"* *[:=] *"\(.*\)".*/\1/p')/libc
    SDKROOT=$PWD/matrix/sdk
    export SDKROOT
    rm -rf "$SDKROOT"
    mkdir -p "$SDKROOT/usr/lib"
    ln -s "$zig/include/any-macos-any" "$SDKROOT/usr/include"
    for library in System m; do
        ln -s "$zig/darwin/libSystem.tbd" "$SDKROOT/usr/lib/lib$library.tbd"
    done
}

# Run row NAME of the table.
row() {
    echo "$rows" | grep "^$1 *|" | {
        if ! IFS='|' read -r name cc cflags strict options goals; then
            echo "FAIL $1 (no row of that name; --list prints them)"
            exit 1
        fi
        # shellcheck disable=SC2086,SC2116 # without blanks around it
        name=$1 cc=$(echo $cc) goals=$(echo $goals)
        program=
        case $options in *deps/*) program=llvm-ar ;; esac
        case $goals in
        *valgrind*) program=valgrind ;;
        tidy) program=clang-tidy ;;
        *EMULATOR=*) program=${goals##*EMULATOR=} program=${program%% *} ;;
        esac
        why=$(why_not "$name" "$cc" "$goals" "${program:-true}" "$options")
        if test -n "$why"; then
            echo "skip $name ($why)"
            exit 0
        fi
        linker=$(linker "$name" "$cc")
        rm -rf "matrix/$name"
        mkdir "matrix/$name"
        begin=$(date +%s)
        # shellcheck disable=SC2086,SC2116 # options and goals are words
        if (cd "matrix/$name" && make_libraries "$options" "$cc" &&
            "$src/configure" -q CC="$cc" CFLAGS="$(echo $cflags)" \
                LDFLAGS="$linker" $options &&
            make -s -k -j"$jobs" $goals &&
            after "$name" "$cc") \
            >"matrix/$name.log" 2>&1 </dev/null &&
            ! { test $strict = yes && grep -q '\[-W' "matrix/$name.log"; }; then
            echo "ok   $name ($(($(date +%s) - begin)) s)"
            test ! -f "matrix/$name/coverage.txt" || cat "matrix/$name/coverage.txt"
            rm -rf "matrix/$name"
        else
            echo "FAIL $name (matrix/$name.log)"
            exit 1
        fi
    }
}

# Each of the two rows has half of the processors, and one more.
jobs=$(($(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) / 2 + 1))
if test "${1-}" = --row; then
    row "$2"
    exit
fi
mkdir -p matrix
through_ccache
mac_headers
# shellcheck disable=SC2046 # names are words
test $# -gt 0 || set -- $(echo "$rows" | cut -s -d'|' -f1)
begin=$(date +%s)
printf '%s\n' "$@" | xargs -n 1 -P 2 "${CONFIG_SHELL-sh}" "$src/tests/matrix.sh" --row
status=$?
echo "in all $(($(date +%s) - begin)) s"
rm -rf matrix/ccache matrix/sdk
test $status -eq 0
