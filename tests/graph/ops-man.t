#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ops(7) lists exactly the operations' functions that the library exports,
# in the first column of its tables.
set -u
: "${srcdir:=.}" "${AWK:=awk}"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
sed -n 's/^[[:space:]]*gguf_op_\([a-z0-9_]*\);.*/\1/p' \
    "$srcdir/lib/libgguf.map" | grep -vxE 'name|is_view' | sort >"$tmp/map"
# "exp, log(a)@..." lists exp and log.
"$AWK" -F@ '
/^\.TS/ { on = 1 }
/^\.TE/ { on = 0 }
on && NF > 1 && !/^tab/ {
    sub(/\(.*/, "", $1)
    k = split($1, name, ", *")
    for (i = 1; i <= k; i++)
        print name[i]
}' "$srcdir/man/gguf-ops.7" | sort >"$tmp/page"
if test -s "$tmp/map" && diff "$tmp/map" "$tmp/page" >"$tmp/out"; then
    echo 'ok 1 - gguf-ops(7) names what the library exports'
    status=0
else
    echo 'not ok 1 - gguf-ops(7) names what the library exports'
    sed 's/^/# /' "$tmp/out"
    status=1
fi
echo 1..1
exit $status
