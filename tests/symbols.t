#!/bin/sh
# SPDX-License-Identifier: MIT
# Symbols that the library exports and its objects define: every public symbol
# is in the map, begins with gguf_ and is not one of ggml's or gguf-tools';
# internal ones begin with gg_, kernels carry their level's suffix, and no code
# prints, aborts or exits.
set -u
: "${srcdir:=.}" "${builddir:=.}"
map=$srcdir/lib/libgguf.map
so=$builddir/.libs/libgguf.so
n=0
status=0
verdict() # name, offenders
{
    n=$((n + 1))
    if test -z "$2"; then echo "ok $n - $1"
    else echo "not ok $n - $1"; echo "$2" | sed 's/^/# /'; status=1; fi
}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
sed -n 's/^[[:space:]]*\(gguf_[a-z0-9_]*\);.*/\1/p' "$map" | sort >"$tmp/map"
verdict 'the map lists each symbol once' "$(uniq -d "$tmp/map")"

# Names that begin with a verb belong to ggml's gguf.h and gguf-tools'
# gguflib.h.
verdict 'no name that ggml or gguf-tools could export' \
    "$(grep -E '^gguf_(get|set|init|add|append|find|remove|write|print|skip|do)_' "$tmp/map"
       grep -xE 'gguf_(free|open|close|create|init|rewind|remap|type_name|tensor_to_(bf16|f16|float))' "$tmp/map")"
verdict 'no enumerator that ggml defines' \
    "$(grep -n 'GGUF_TYPE_' "$srcdir"/lib/gguf/*.h)"
if test -f "$so"; then
    nm -D --defined-only "$so" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' |
        sort >"$tmp/so"
    verdict 'the shared library exports the map, no more and no less' \
        "$(comm -3 "$tmp/map" "$tmp/so")"
fi
lib=$builddir/.libs/libgg.a
if test -f "$lib"; then
    nm -g "$lib" >"$tmp/nm" 2>/dev/null
    verdict 'internal symbols begin with gg_' \
        "$(awk 'NF == 3 && $2 ~ /[TDRBV]/ {print $3}' "$tmp/nm" |
           grep -vE '^(gg_|gguf_|__|_?DW\.ref|asan|\.)' | sort -u)"
    verdict 'the library does not print, abort or exit' \
        "$(awk '$1 == "U" {print $2}' "$tmp/nm" | sort -u |
           grep -xE '(abort|exit|_exit|printf|puts|perror|fprintf|stderr|stdout|__printf_chk|__fprintf_chk)')"
fi
for a in "$builddir"/.libs/libkern-*.a; do
    test -f "$a" || continue
    level=$(basename "$a" .a); level=${level#libkern-}
    verdict "kernels of $level carry its name" \
        "$(nm -g --defined-only "$a" 2>/dev/null | awk 'NF == 3 {print $3}' |
           grep -v "_$level\$" | grep -vE '^(__|\.)')"
done
echo "1..$n"
exit $status
