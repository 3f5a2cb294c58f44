#!/bin/sh
# SPDX-License-Identifier: MIT
# matrix.sh - build and test the tree in every way that must work
#
#   tests/matrix.sh [ROW]...     run these rows, or all of them
#   tests/matrix.sh --list
#
# Each row is built from scratch in matrix/ROW of the current folder; its log
# is matrix/ROW.log. Rows whose compiler, libraries or program are absent are
# skipped. This is what `make check-long` runs last.
#
# All of them take 75 minutes on two processors of 2.4 GHz, Zen 3.
# Two rows are built and tested at a time: one that configures or links, or waits,
# leaves a processor idle. A row builds and runs what no other does
# (tests/Makefile.inc). dist is what a user gets: all tests, of what make dist
# packs, with both ways to link and all kernels. clang has what configure can find
# beside, BLAS and MPI. 32-bit has the C alone that kernels are compared with, as
# an optimiser changes it most; its kernels are compiled. no-tools is what no
# optimiser changed, in valgrind. coverage and asan run what is no page or source,
# asan without most of what evaluates one text again and again. In all rows but
# dist there is one way to link, and long lists of files and chunks are sampled
# (GGUF_TEST_SAMPLE); where it takes long to compile there are those kernels alone
# that this processor runs.
#
# Where ccache is (in matrix/ccache, made and removed here), a file that one row
# compiled is not compiled again by another that says the same of it, nor by dist
# for the other way to link. Instead of -Werror a row fails after its tests if its
# log has a warning and its table says so: not with -O3, with which gcc warns of
# what cannot be, nor with checks.
#
# The row coverage says how many lines of each room the tests run (coverage.sh).
# Where tests leave a program no room its counts have none either, and say so on
# standard error: to GCOV_ERROR_FILE instead.
#
# The row abi compares the shared library with that of the last tag (abi.sh).
#
# The big-endian row is a cross build whose tests run in an emulator, against
# the s390x libraries that the compiler finds (QEMU_LD_PREFIX, where Debian has
# them if it is not set, tells qemu). It runs what depends on the order of
# bytes, and of what takes minutes there a sample; make check-cross runs more.
set -u
: "${QEMU_LD_PREFIX=/usr/s390x-linux-gnu}"
export QEMU_LD_PREFIX
src=$(cd "$(dirname "$0")/.." && pwd)
# It starts in a third of bash's time, and libtool starts for each file.
if test -z "${CONFIG_SHELL-}" && command -v dash >/dev/null 2>&1; then
    CONFIG_SHELL=$(command -v dash)
    export CONFIG_SHELL
fi

# Tests of an archive that was unpacked find the folder beside the tree, too.
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
tidy       | clang | -O1     | no  |                                                   | tidy
32-bit     | gcc -m32 | -O3 -march=native | no | --enable-debug --disable-simd --disable-static | check-32-bit GGUF_TEST_SAMPLE=11
no-tools   | gcc   | -O0     | yes | --enable-debug --enable-simd=native --disable-tools --disable-shared | check-valgrind
abi        | gcc   | -g -O2  | yes | --disable-tools --disable-static                  | all
'
if test "${1-}" = --list; then
    echo "$rows" | sed '/^$/d'
    exit 0
fi
# What is asked of a row that was built, beside its goals.
after() {
    case $1 in
    abi) CC=$2 sh "$src/tests/abi.sh" "$src" "$PWD" ;;
    dist) same_archives ;;
    coverage) sh "$src/tests/coverage.sh" . >coverage.txt ;;
    32-bit) kernels_of "$2" ;;
    esac
}
# The library with its kernels of every level, compiled by this COMPILER.
kernels_of() {
    mkdir kernels && cd kernels &&
        "$src/configure" -q CC="$1" CFLAGS=-O0 --disable-tools --disable-static &&
        make -s -j"$jobs" libgguf.la
}
# Archives that were made at two times are the same bytes.
same_archives() {
    rm -rf twice && mkdir twice || return 1
    for k in 1 2; do
        SOURCE_DATE_EPOCH=1 make -s dist && mv -- *.tar.xz "twice/$k" || return 1
        sleep 1
    done
    cmp twice/1 twice/2
}
# Can this compiler make programs (such as FILE) that link what ours do, and has it
# the kernel's headers, which another package may bring?
can_link() {
    printf '#include <errno.h>\nint main(void) { return errno; }\n' >"$2.c"
    # shellcheck disable=SC2086 # a compiler may have options
    $1 -o "$2" "$2.c" -lxxhash -lz -lpcre2-8 -ljansson 2>/dev/null
}
# And are they run, by an emulator if the goals name one? Not all systems for 64
# bits run those of 32.
can_run() {
    case $1 in *EMULATOR=*) return 0 ;; esac
    "$2" 2>/dev/null
}
# A linker that takes less than half of the time of the usual one, for hundreds of
# tests, if this COMPILER finds one. dist is linked as users do.
linker() {
    for flag in -fuse-ld=gold -fuse-ld=lld; do
        if test "$1" != dist && can_link "$2 $flag" "matrix/probe-$1"; then
            echo $flag
            break
        fi
    done
    rm -f "matrix/probe-$1" "matrix/probe-$1.c"
}
# Why this ROW COMPILER GOALS PROGRAM cannot be run here; or nothing.
why_not() {
    if ! can_link "$2" "matrix/probe-$1"; then
        echo "$2 is not here, or not its libraries"
    elif ! can_run "$3" "matrix/probe-$1"; then
        echo "what $2 makes does not run here"
    elif ! command -v "$4" >/dev/null; then
        echo "$4 is not here"
    elif test "$1" = abi; then
        sh "$src/tests/abi.sh" why "$src"
    fi
    rm -f "matrix/probe-$1" "matrix/probe-$1.c"
}

# Compilers found first that ask ccache, for programs of the same name after them.
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

# One row, NAME of the table.
row() {
    echo "$rows" | grep "^$1 *|" | {
        if ! IFS='|' read -r name cc cflags strict options goals; then
            echo "FAIL $1 (no row of that name; --list prints them)"
            exit 1
        fi
        # shellcheck disable=SC2086,SC2116 # without blanks around it
        name=$1 cc=$(echo $cc)
        program=
        case $goals in
        *valgrind*) program=valgrind ;;
        tidy) program=clang-tidy ;;
        *EMULATOR=*) program=${goals##*EMULATOR=} program=${program%% *} ;;
        esac
        why=$(why_not "$name" "$cc" "$goals" "${program:-true}")
        if test -n "$why"; then
            echo "skip $name ($why)"
            exit 0
        fi
        linker=$(linker "$name" "$cc")
        rm -rf "matrix/$name"
        mkdir "matrix/$name"
        begin=$(date +%s)
        # shellcheck disable=SC2086,SC2116 # options and goals are words
        if (cd "matrix/$name" &&
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

# Each of the two has half of the processors, and one more.
jobs=$(($(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) / 2 + 1))
if test "${1-}" = --row; then
    row "$2"
    exit
fi
mkdir -p matrix
through_ccache
# shellcheck disable=SC2046 # names are words
test $# -gt 0 || set -- $(echo "$rows" | cut -s -d'|' -f1)
begin=$(date +%s)
printf '%s\n' "$@" | xargs -n 1 -P 2 "${CONFIG_SHELL-sh}" "$src/tests/matrix.sh" --row
status=$?
echo "in all $(($(date +%s) - begin)) s"
rm -rf matrix/ccache
test $status -eq 0
