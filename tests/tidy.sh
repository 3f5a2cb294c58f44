#!/bin/sh
# SPDX-License-Identifier: MIT
# tidy.sh - runs clang-tidy over lib and tools, as .clang-tidy says. `make
# tidy` calls it in a configured tree, with TIDY_CPPFLAGS from there. Files
# that the configuration does not build (BLAS, MPI, AArch64) are left out. FILES:
# only these.
set -u
: "${srcdir:=.}" "${TIDY_CPPFLAGS:=}"
tidy=${CLANG_TIDY-clang-tidy}
here=$(pwd)
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
cd "$srcdir" || exit 99
one='f=$1
set --
avx2="-mavx2 -mfma -mf16c"
avx512="$avx2 -mavx512f -mavx512bw -mavx512dq -mavx512vl"
case $f in
*_256.c) set -- $avx2 ;;
*_avxvnni.c) set -- $avx2 -mavxvnni ;;
*_avx512.c | *_amx.c) set -- $avx512 ;;
*_vnni512.c) set -- $avx512 -mavx512vnni ;;
*bf16*.c) set -- $avx512 -mavx512vnni -mavx512bf16 ;;
esac
out=$('"$tidy"' --quiet "$f" -- -std=c11 -DHAVE_CONFIG_H -D_GNU_SOURCE \
    -I'"$here"' -Ilib -Itools -I. '"$TIDY_CPPFLAGS"' "$@" 2>/dev/null) || {
    echo "$f"; printf "%s\n" "$out"; exit 1; }'
if test "${FILES-}"; then printf '%s\n' $FILES; else
    find lib tools -name '*.c' ! -path 'lib/blas/*' ! -path 'lib/kern/arm/*' \
        ! -name 'ranks_mpi.c' | sort
fi | xargs -P "$jobs" -n 1 sh -c "$one" tidy
