#!/bin/sh
# SPDX-License-Identifier: MIT
# Internal names say where they live: names in a header of lib/ROOM/, tags and
# function types included, begin with gg_ROOM_ or with gg_FILE_, where only
# that room has a file FILE. So names are unique, and a reader knows where to
# look. A family of architectures has its name in several rooms:
# lib/ROOM/family/FAMILY.c.
set -u
: "${srcdir:=.}" "${builddir:=.}"
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
cd "$srcdir/lib" || exit 99
find . -name '*.[ch]' ! -path './gguf/*' ! -path '*/family/*.c' | sed 's,^\./,,' | sort >"$tmp/files"

# "ROOM WORD": the room's name, and each file name that only it has. A file
# cannot have the name of another room.
awk -F/ '{
    room = $1; word = $NF; sub(/\.[ch]$/, "", word)
    rooms[room] = 1
    if (!(word in of)) of[word] = room
    else if (of[word] != room) shared[word] = 1
}
END {
    for (r in rooms) print r, r
    for (w in of) if (!(w in shared) && !(w in rooms)) print of[w], w
}' "$tmp/files" >"$tmp/words"

# "ROOM NAME FILE" for every name in headers: tags with a body, functions (a
# prototype begins its line), function types.
names() # files
{
    xargs awk '
    FNR == 1 { comment = 0 }
    {
        line = $0
        while (1) {
            if (comment) {
                at = index(line, "*/")
                if (!at) { line = ""; break }
                line = substr(line, at + 2); comment = 0
            } else {
                at = index(line, "/*")
                if (!at) break
                rest = substr(line, at + 2); end = index(rest, "*/")
                line = substr(line, 1, at - 1)
                if (end) line = line substr(rest, end + 2)
                else { comment = 1; break }
            }
        }
        room = FILENAME; sub(/\/.*/, "", room)
        if (match(line, /(struct|enum|union) gg_[a-z0-9_]+ *\{/)) {
            name = substr(line, RSTART, RLENGTH)
            sub(/^[a-z]+ /, "", name); sub(/ *\{/, "", name)
            print room, name, FILENAME
        } else if (line ~ /^([A-Za-z]|\()/ && line !~ /^(return|else)/ &&
                   match(line, /gg_[a-z0-9_]+\(/)) {
            print room, substr(line, RSTART, RLENGTH - 1), FILENAME
        } else if (line ~ /^(extern|const|static)/ &&
                   match(line, /gg_[a-z0-9_]+(\[[^]]*\])*( =|;)/)) {
            name = substr(line, RSTART, RLENGTH); sub(/[^a-z0-9_].*/, "", name)
            print room, name, FILENAME
        }
    }'
}
grep '\.h$' "$tmp/files" | names >"$tmp/names"
verdict 'headers name at least 500 things' \
    "$(awk 'END { if (NR < 500) print NR }' "$tmp/names")"
verdict 'every internal name begins with its room or its file' "$(awk '
    NR == FNR { word[$1, $2] = 1; next }
    {
        x = substr($2, 4); good = 0
        for (i = 1; i <= length(x) + 1; i++)
            if (i > length(x) || substr(x, i, 1) == "_")
                if (($1, substr(x, 1, i - 1)) in word) good = 1
        if (!good) print $2 " in lib/" $3
    }' "$tmp/words" "$tmp/names" | sort -u)"
verdict 'no two files have one name' "$(find . -name '*.[ch]' ! -path '*/family/*.c' |
    sed 's,.*/,,' | sort | uniq -d)"
# One word is a verb without an object, or an object without a verb. Functions of
# mathematics have one, and a few helpers that many tests call.
verdict 'no static function has a name of one word' "$(
    find . ../tools ../tests -name '*.[ch]' | sort | xargs awk '
    BEGIN {
        n = split("sigmoid sinkhorn silu softplus gelu xielu leaky clamp root " \
            "logarithm mul norm avg cov quantile product slope attention " \
            "bucket angle delta gla distance ulps gauss uniform bell rnd " \
            "must slurp spill take", list, " ")
        for (i = 1; i <= n; i++) known[list[i]] = 1
    }
    /^static / && !/sizeof ?\(/ && match($0, /[ *][a-z][a-z]+\(/) {
        name = substr($0, RSTART + 1, RLENGTH - 2)
        if (!(name in known)) print FILENAME ":" FNR ": " name
    }')"
verdict 'no tag has a body in two rooms' "$(
    sed 's,^,,' "$tmp/files" | xargs grep -ohE \
        '^(struct|enum|union) gg_[a-z0-9_]+ \{' /dev/null | sort | uniq -d)"

# Symbols of any object file: macros make names of kernels, which no header
# spells out.
lib=$builddir/.libs/libgg.a
if test -f "$lib"; then
    verdict 'every internal symbol begins with a room or a file' "$(
        nm -g --defined-only "$lib" 2>/dev/null |
        awk 'NF == 3 && $3 ~ /^gg_/ { print $3 }' | sort -u | awk '
        NR == FNR { word[$2] = 1; next }
        {
            x = substr($1, 4); good = 0
            for (i = 1; i <= length(x) + 1; i++)
                if (i > length(x) || substr(x, i, 1) == "_")
                    if (substr(x, 1, i - 1) in word) good = 1
            if (!good) print $1
        }' "$tmp/words" -)"
fi
echo "1..$n"
exit $status
