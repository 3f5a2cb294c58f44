#!/bin/sh
# tidy.sh - clang-tidy over lib and tools, as .clang-tidy says; `make tidy`
# runs it in a configured tree, with TIDY_CPPFLAGS from there. Files that the
# configuration does not build (BLAS) are left out. FILES: only these.
set -u
: "${srcdir:=.}" "${TIDY_CPPFLAGS:=}"
tidy=${CLANG_TIDY-clang-tidy}
here=$(pwd)
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
cd "$srcdir" || exit 99
one='f=$1
set --
case $f in
*avx2*) set -- -mavx2 -mfma -mf16c ;;
*avx512*) set -- -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c ;;
esac
out=$('"$tidy"' --quiet "$f" -- -std=c11 -DHAVE_CONFIG_H -D_GNU_SOURCE \
    -I'"$here"' -Ilib -Itools -I. '"$TIDY_CPPFLAGS"' "$@" 2>/dev/null) || {
    echo "$f"; printf "%s\n" "$out"; exit 1; }'
if test "${FILES-}"; then printf '%s\n' $FILES; else
    find lib tools -name '*.c' ! -path 'lib/blas/*' | sort
fi | xargs -P "$jobs" -n 1 sh -c "$one" tidy
