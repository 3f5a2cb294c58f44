#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-quants(7) describes every type of lib/dtype/list.h: its id, length and
# size of a block, bits per element, and the fields of its block in
# lib/dtype/block.h.
set -u
. "${srcdir:-.}/tests/tap.sh"
list=$srcdir/lib/dtype/list.h block=$srcdir/lib/dtype/block.h
sed 's/\\-/-/g; s/ *$//' "$srcdir/man/gguf-quants.7" >"$tmp/page"

# The headers' facts in the page's words: for types with a section, its first
# line and two lines of the diagram; for the others the row of their table.
"$AWK" '
BEGIN {
    split("uint8_t int8_t uint16_t int16_t uint32_t int32_t int64_t float " \
        "double", t)
    split("1 1 2 2 4 4 8 4 8", s)
    for (i in t)
        width[t[i]] = s[i]
}
/^struct gg_block_/ { name = $2; offs = "0"; at = 0; fields = ""; next }
name && /^ *u?int|^ *float/ {
    type = $1
    $1 = ""
    sub(/;.*/, "")
    k = split($0, f, ",")
    for (i = 1; i <= k; i++) {
        gsub(/ /, "", f[i])
        len = f[i] ~ /\[/ ? f[i] : "1"
        gsub(/.*\[|\]/, "", len)
        sub(/\[.*/, "", f[i])
        at += len * width[type]
        fields = fields "| " f[i] " "
        offs = offs " " at
    }
    next
}
/^};/ && name { size[name] = at; of[name] = fields "|\n" offs; name = ""; next }
/^    X\([0-9]+, [A-Z0-9_]+, [0-9]/ {
    sub(/^    X\(/, "")
    sub(/\)[ \\]*$/, "")
    split($0, a, ", ")
    b = a[4]
    sub(/^struct /, "", b)
    bytes = b ~ /GG_BYTES/ ? substr(b, 10) : b in size ? size[b] : width[b]
    bits = bytes * 8 / a[3]
    if (b in size)
        printf "%s\nId %d: %d elements in %d bytes, %s bits each.\n%s\n\n",
            a[2], a[1], a[3], bytes, bits, of[b]
    else if (a[4] ~ /GG_BYTES/)
        printf "%s\n%s@%d@%d@%d@%d@%s\n\n", a[2], a[2], a[1], a[3], bytes,
            a[5], bits
    else
        printf "%s\n%s@%d@%d@\n\n", a[2], a[2], a[1], bytes
    next
}
/^    X\([0-9]+, [A-Z0-9_]+\)/ {
    gsub(/^    X\(|\).*/, "")
    split($0, a, ", ")
    printf "%s\n%d@%s\n\n", a[2], a[1], a[2]
}' OFMT='%.6g' CONVFMT='%.6g' "$block" "$list" >"$tmp/want"

# These facts in the page: sections, and rows of its tables.
"$AWK" '
function finish() { if (type) print ""; type = ""; part = 0 }
/^\.S[SH] / { finish() }
/^\.SS / { type = $2; print type; next }
type && /^Id / { print; next }
type && part < 5 && /^[+|0]/ {
    # lines 2 and 5 of the diagram: names and offsets
    if (++part == 2 || part == 5) {
        gsub(/  +/, " ")
        print
    }
    next
}
/^[A-Z][A-Z0-9_]*@[0-9]+@[0-9]+@/ {
    split($0, a, "@")
    if (a[5] == "")
        sub(/@[^@]*$/, "@")
    print a[1] "\n" $0 "\n"
}
/^[0-9]+@[A-Z]/ { split($0, a, "@"); print a[2] "\n" $0 "\n" }
END { finish() }' "$tmp/page" >"$tmp/have"

# A record for each type, in the order of names, to compare.
for f in want have; do
    "$AWK" 'BEGIN { RS = ""; FS = "\n" }
        { printf "%s", $1; for (i = 2; i <= NF; i++) printf "\t%s", $i; print "" }
        ' "$tmp/$f" | sort >"$tmp/$f.sorted"
done
cut -f1 "$tmp/want.sorted" >"$tmp/names"

test "$(wc -l <"$tmp/names")" -eq "$(grep -c '^    X([0-9]' "$list")"
verdict "every row of list.h is read" $? "$tmp/names"
while read -r name; do
    grep "^$name	" "$tmp/want.sorted" >"$tmp/a"
    grep "^$name	" "$tmp/have.sorted" >"$tmp/b"
    diff "$tmp/a" "$tmp/b" >"$tmp/diff"
    verdict "$name" $? "$tmp/diff"
done <"$tmp/names"
cut -f1 "$tmp/have.sorted" | diff "$tmp/names" - >"$tmp/diff"
verdict "the page has no others" $? "$tmp/diff"
done_testing
