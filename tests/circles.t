#!/bin/sh
# SPDX-License-Identifier: MIT
# Calls between the files of a room go one way. A file and its parts may call
# each other: one of them is the parent, and without it no circle is left. The
# calls are read from the object files.
set -u
: "${srcdir:=.}" "${builddir:=.}"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
find "$builddir/lib" -name '*.o' -path '*/.libs/*' >"$tmp/objects"
test -s "$tmp/objects" || find "$builddir/lib" -name '*.o' >"$tmp/objects"
if ! command -v nm >/dev/null || ! test -s "$tmp/objects"; then
    echo "1..0 # SKIP no nm, or no object files"
    exit 0
fi
# An older build leaves objects of deleted files.
while read -r o; do
    c=${o#"$builddir/"}
    c=$srcdir/$(echo "${c%.o}.c" | sed 's,\.libs/,,')
    test ! -f "$c" || echo "$o"
done <"$tmp/objects" >"$tmp/present"
nm -A $(cat "$tmp/present") 2>/dev/null | sed "s,^$builddir/lib/,,; s,\.libs/,," >"$tmp/names"

circles() # of lines "ROOM/FILE.o: ADDRESS KIND SYMBOL"
{
    awk '
    function trim(   again, f, g, in_, out) { # until each has both ways to go
        do {
            again = 0
            for (f in left) {
                in_ = out = 0
                for (g in left) {
                    if ((f, g) in edge) out = 1
                    if ((g, f) in edge) in_ = 1
                }
                if (!in_ || !out) { delete left[f]; again = 1 }
            }
        } while (again)
    }
    function empty(   f) { for (f in left) return 0; return 1 }
    function judge(room,   f, g, h, reach, ring, n, good, p, text) {
        delete left
        for (f in room_of) if (room_of[f] == room) left[f] = 1
        trim()
        for (f in left) for (g in left) if ((f, g) in edge) reach[f, g] = 1
        for (h in left) for (f in left) if ((f, h) in reach)
            for (g in left) if ((h, g) in reach) reach[f, g] = 1
        delete core
        for (f in left) core[f] = 1
        for (f in core) {
            if (f in done || !((f, f) in reach)) continue
            delete ring
            text = ""
            for (g in core)
                if ((f, g) in reach && (g, f) in reach) {
                    ring[g] = done[g] = 1
                    text = text " " g
                }
            good = 0
            for (p in ring) {
                delete left
                for (g in ring) if (g != p) left[g] = 1
                trim()
                if (empty()) good = 1
            }
            if (!good) print text
        }
    }
    {
        file = $1; sub(/\.o:.*/, "", file)
        room = file; sub(/\/.*/, "", room)
        room_of[file] = room; rooms[room] = 1
        if ($(NF - 1) == "U") { n++; user[n] = file; used[n] = $NF }
        else if ($(NF - 1) ~ /^[TDRBWVC]$/) home[$NF] = file
    }
    END {
        for (i = 1; i <= n; i++)
            if (used[i] in home && home[used[i]] != user[i] &&
                room_of[home[used[i]]] == room_of[user[i]])
                edge[user[i], home[used[i]]] = 1
        for (room in rooms) judge(room)
    }'
}

bad=$(circles <"$tmp/names")
if test -z "$bad"; then echo "ok 1 - no circle of calls in a room"
else echo "not ok 1 - no circle of calls in a room"; echo "$bad" | sed 's/^/#/'; fi

# a calls b and c, b calls a: a is the parent. d, e and f call each other.
bad=$(circles <<'EOF'
r/a.o: 0 T a
r/a.o: U b
r/a.o: U c
r/b.o: 0 T b
r/b.o: U a
r/c.o: 0 T c
EOF
)
if test -z "$bad"; then echo "ok 2 - a parent and its part are none"
else echo "not ok 2 - a parent and its part are none"; echo "#$bad"; fi
bad=$(circles <<'EOF'
r/d.o: 0 T d
r/d.o: U e
r/d.o: U f
r/e.o: 0 T e
r/e.o: U d
r/e.o: U f
r/f.o: 0 T f
r/f.o: U d
r/f.o: U e
EOF
)
if test -n "$bad"; then echo "ok 3 - three that call each other are one"
else echo "not ok 3 - three that call each other are one"; fi
echo "1..3"
