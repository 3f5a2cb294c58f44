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
# All of them take more than two hours on two processors, asan half an hour.
# A row builds and runs what it can change (tests/Makefile.inc). dist is what a
# user gets: all tests, of what make dist packs, with both ways to link. clang,
# coverage and asan run what another compiler changes, asan without most of what
# evaluates one text again and again; gcc-O3 and c-only run what computes, 32-bit
# what depends on sizes. Where the ways to link do not matter, only one is built:
# coverage and asan have the static library. Long lists of files and chunks are
# gone through in dist, and sampled in other rows (GGUF_TEST_SAMPLE).
#
# Where ccache is, a file that one row compiled is not compiled again by another
# that says the same of it (in matrix/ccache, made and removed here). So flags
# are the same where they can be: no lines for debuggers, which tell folders
# apart, where nobody reads them, and instead of -Werror a row fails after its
# tests if its log has a warning and its table says so: not with -O3, with which
# gcc warns of what cannot be, nor with checks.
#
# The row coverage says how many lines of each room the tests run (coverage.sh).
# Not of a build with -O0, in which evaluations take ten times as long: gcc-O0
# runs what depends on bytes. Where tests leave a program no room its counts
# have none either, and say so on standard error: to GCOV_ERROR_FILE instead.
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
clang      | clang | -O2     | yes | --enable-debug --disable-static                   | check-code GGUF_TEST_SAMPLE=11
asan       | gcc   | -g1 -O1 | no  | --enable-debug --enable-asan --enable-ubsan --disable-shared LDFLAGS=-no-pie | check-addresses GGUF_TEST_SAMPLE=11
tsan       | clang | -g1 -O1 | no  | --enable-tsan --disable-shared                    | check-threads GGUF_TEST_SAMPLE=11
coverage   | gcc   | -O1     | no  | --enable-debug --enable-coverage --disable-shared | check-code GGUF_TEST_SAMPLE=11 GCOV_ERROR_FILE=/dev/null
gcc-O0     | gcc   | -O0     | no  | --enable-debug --disable-shared                   | check-cross-bytes GGUF_TEST_SAMPLE=11
gcc-O3     | gcc   | -O3 -march=native | no | --disable-static                         | check-numbers GGUF_TEST_SAMPLE=11
c-only     | gcc   | -O2     | yes | --enable-debug --disable-simd --disable-static    | check-numbers GGUF_TEST_SAMPLE=11
others     | gcc   | -O2     | yes | --enable-debug --with-blas=auto --with-mpi=auto --disable-static | check-others GGUF_TEST_SAMPLE=11
32-bit     | gcc -m32 | -O2  | no  | --enable-debug --disable-static                   | check-sizes GGUF_TEST_SAMPLE=11
big-endian | s390x-linux-gnu-gcc | -O2 | no | --host=s390x-linux-gnu --enable-debug --disable-shared CC_FOR_BUILD=cc | check-cross-bytes EMULATOR=qemu-s390x-static GGUF_TEST_SAMPLE=11
valgrind   | gcc   | -O2     | yes | --enable-debug --disable-shared                   | check-valgrind
tidy       | clang | -O1     | no  |                                                   | tidy
no-tools   | gcc   | -O2     | yes | --enable-debug --disable-tools                    | all
abi        | gcc   | -g -O2  | yes | --disable-tools --disable-static                  | all
'
if test "${1-}" = --list; then
    echo "$rows" | sed '/^$/d'
    exit 0
fi
# Why a row cannot be run here, beside its compiler; or nothing.
why_not() {
    if test "$1" = abi; then sh "$src/tests/abi.sh" why "$src"; fi
}
# What is asked of a row that was built, beside its goals.
after() {
    case $1 in
    abi) CC=$2 sh "$src/tests/abi.sh" "$src" "$PWD" ;;
    dist) same_archives ;;
    coverage) sh "$src/tests/coverage.sh" . >coverage.txt ;;
    esac
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
# Can this compiler make programs that link what ours do, and has it the kernel's
# headers, which another package may bring?
can_link() {
    printf '#include <errno.h>\nint main(void) { return errno; }\n' >matrix/probe.c
    # shellcheck disable=SC2086 # a compiler may have options
    $1 -o matrix/probe matrix/probe.c -lxxhash -lz -lpcre2-8 -lutf8proc -ljansson \
        2>/dev/null
}
# And are they run, by an emulator if the goals name one? Not all systems for 64
# bits run those of 32.
can_run() {
    case $1 in *EMULATOR=*) return 0 ;; esac
    matrix/probe 2>/dev/null
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

# One more than processors: tests wait for servers, for disks and for time.
jobs=$(($(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) + 1))
status=0
wanted=" $* "
mkdir -p matrix
through_ccache
echo "$rows" | sed '/^$/d' | {
    while IFS='|' read -r name cc cflags strict options goals; do
        name=$(echo $name) cc=$(echo $cc)
        case $wanted in
        '  ' | *" $name "*) ;;
        *) continue ;;
        esac
        program=
        case $goals in
        *valgrind*) program=valgrind ;;
        tidy) program=clang-tidy ;;
        *EMULATOR=*) program=${goals##*EMULATOR=} program=${program%% *} ;;
        esac
        if ! can_link "$cc"; then
            echo "skip $name ($cc is not here, or not its libraries)"
            continue
        elif ! can_run "$goals"; then
            echo "skip $name (what $cc makes does not run here)"
            continue
        elif ! command -v "${program:-true}" >/dev/null; then
            echo "skip $name ($program is not here)"
            continue
        fi
        why=$(why_not "$name")
        if test -n "$why"; then
            echo "skip $name ($why)"
            continue
        fi
        rm -rf "matrix/$name"
        mkdir "matrix/$name"
        begin=$(date +%s)
        # shellcheck disable=SC2086 # options and goals are words
        if (cd "matrix/$name" &&
            "$src/configure" -q CC="$cc" CFLAGS="$(echo $cflags)" $options &&
            make -s -k -j"$jobs" $goals &&
            after "$name" "$cc") \
            >"matrix/$name.log" 2>&1 </dev/null &&
            ! { test $strict = yes && grep -q '\[-W' "matrix/$name.log"; }; then
            echo "ok   $name ($(($(date +%s) - begin)) s)"
            test ! -f "matrix/$name/coverage.txt" || cat "matrix/$name/coverage.txt"
            rm -rf "matrix/$name"
        else
            echo "FAIL $name (matrix/$name.log)"
            status=1
        fi
    done
    rm -rf matrix/probe matrix/probe.c matrix/ccache
    exit $status
}
