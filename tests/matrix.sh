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
# All of them take some two hours on two processors: gcc, clang, coverage and asan
# 11 to 18 minutes each, others 3 to 8, a good part of it to compile kernels. So a
# row builds and runs what it can change (tests/Makefile.inc): only gcc the tests
# of the tree's texts, tsan those of what starts threads, static those of
# programs, since C tests link the archive in every row, gcc-O3 and c-only those
# of what computes. Where the ways to link do not matter, only one is built. Long
# lists of files and chunks are gone through in the rows gcc and clang, and
# sampled in the others (GGUF_TEST_SAMPLE).
#
# Where ccache is, a file that one row compiled is not compiled again by another
# that says the same of it (in matrix/ccache, made and removed here). So flags
# are the same where they can be: no lines for debuggers, which tell folders
# apart, where nobody reads them, and instead of -Werror the rows of gcc and
# clang with -O2 fail after their tests if their logs have a warning. With -O3
# gcc warns of what cannot be.
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

# name | compiler | CFLAGS | configure's options | goals
rows='
gcc        | gcc   | -O2            | --enable-debug                                   | check
clang      | clang | -O2            | --enable-debug --disable-static                  | check-code
gcc-O0     | gcc   | -O0            | --enable-debug --disable-shared                  | check-cross-bytes GGUF_TEST_SAMPLE=11
coverage   | gcc   | -O1            | --enable-debug --enable-coverage --disable-shared | check-code GGUF_TEST_SAMPLE=11 GCOV_ERROR_FILE=/dev/null
gcc-O3     | gcc   | -O3 -march=native | --disable-static                              | check-numbers GGUF_TEST_SAMPLE=11
asan       | gcc   | -g -O1         | --enable-debug --enable-asan --enable-ubsan --disable-shared | check-code GGUF_TEST_SAMPLE=11
tsan       | clang | -g -O1         | --enable-tsan --disable-shared                   | check-threads GGUF_TEST_SAMPLE=11
c-only     | gcc   | -O2            | --enable-debug --disable-simd --disable-static                  | check-numbers GGUF_TEST_SAMPLE=11
static     | gcc   | -O2            | --enable-debug --disable-shared                  | check-linked
blas       | gcc   | -O2            | --enable-debug --with-blas=auto --disable-static | check-blas GGUF_TEST_SAMPLE=11
mpi        | gcc   | -O2            | --enable-debug --with-mpi=auto --disable-static  | check-mpi
32-bit     | gcc -m32 | -O2         | --enable-debug --disable-static                  | check-code GGUF_TEST_SAMPLE=11
big-endian | s390x-linux-gnu-gcc | -O2 | --host=s390x-linux-gnu --enable-debug --disable-shared CC_FOR_BUILD=cc | check-cross-bytes EMULATOR=qemu-s390x-static GGUF_TEST_SAMPLE=11
valgrind   | gcc   | -O2            | --enable-debug --disable-shared                  | check-valgrind
tidy       | clang | -O1            |                                                  | tidy
no-tools   | gcc   | -O2            | --enable-debug --disable-tools                   | all
abi        | gcc   | -g -O2         | --disable-tools --disable-static                 | all
dist       | gcc   | -O2            | --disable-static                                 | distcheck DISTCHECK_CONFIGURE_FLAGS=--disable-static GGUF_TEST_SAMPLE=11
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
# Does a log have a warning that must not be?
warned() {
    case $1 in
    gcc | clang | blas | mpi) grep -q '\[-W' "matrix/$1.log" ;;
    *) return 1 ;;
    esac
}
# Can this compiler make programs that link what ours do?
can_link() {
    echo 'int main(void) { return 0; }' >matrix/probe.c
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
    while IFS='|' read -r name cc cflags options goals; do
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
            ! warned "$name"; then
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
