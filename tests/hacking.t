#!/bin/sh
# SPDX-License-Identifier: MIT
# Files, folders, targets of make, options of configure and rows of the matrix
# that HACKING and doc/architecture.md name exist. Files have the layout of
# .editorconfig.
set -u
. "${srcdir:-.}/tests/tap.sh"

# Print the paths that do not exist. Words in capitals, F (a family) and words
# in <> stand for anything; a test program stands for its source. Paths in
# doc/architecture.md begin at lib/, or in a room that its table has named.
absent()
{
    sed -E 's/NAME|AREA|<[a-z]*>/*/g; s,/F([/.]),/*\1,g' | sort -u |
        while read -r path; do
            found=
            for p in "$srcdir"/$path "$srcdir"/$path.c "$srcdir"/lib/$path \
                "$srcdir"/lib/*/$path "$srcdir"/lib/*/*/$path \
                "$srcdir"/tests/*/$path; do
                test -e "$p" && found=yes && break
            done
            test "$found" || echo "$path"
        done
}

# Every word with a slash, except <gguf/...> and addresses.
tr -s ' ,;()"`=' '\n' <"$srcdir/HACKING" | grep -av -e '\.\.\.' -e // |
    sed 's/^\(\.\.*\/\)*//; s/[.:]*$//' |
    grep -E '^[A-Za-z][A-Za-z0-9_.*-]*(/[A-Za-z0-9_.*-]+)+/?$' >"$tmp/paths"
test "$(wc -l <"$tmp/paths")" -gt 120 && absent <"$tmp/paths" >"$tmp/log" &&
    test ! -s "$tmp/log"
verdict "HACKING names files that are there" $? "$tmp/log"

# Words between backquotes with a slash, or names of files.
grep -o '`[^` ]*`' "$srcdir/doc/architecture.md" | tr -d '`' |
    grep -v '\.\.\.' | grep -E '/|\.([chtm]|md|sh|map|awk)$' >"$tmp/paths"
test "$(wc -l <"$tmp/paths")" -gt 60 && absent <"$tmp/paths" >"$tmp/log" &&
    test ! -s "$tmp/log"
verdict "doc/architecture.md names files that are there" $? "$tmp/log"

: >"$tmp/none"
echo lib/nothing/here.c | absent | grep -q here
verdict "a path that is not there is found" $? "$tmp/none"

grep -q 'HACKING' "$srcdir/doc/architecture.md" &&
    grep -q 'doc/architecture.md' "$srcdir/HACKING"
verdict "each refers to the other" $? "$tmp/none"

# Code of the walk through an architecture: the indented lines after a line that
# ends in "FILE:" stand in FILE, one after another.
awk '/^An architecture from its description/ { on = 1 } /^To add a weight/ { on = 0 }
    !on { next }
    /^[^ ]/ { file = "" }
    /(^| )(lib|tests)\/[^ ]*:$/ { file = $NF; sub(/:$/, "", file); n++ }
    file && (/^    / || /^$/) { sub(/^    /, ""); print > (dir "/" n ".part")
        print file > (dir "/" n ".file") }' dir="$tmp" "$srcdir/HACKING"
differing() # parts whose lines are not in their file
{
    for part in "$tmp"/*.part; do
        file=$(head -1 "${part%part}file")
        awk 'NR == FNR { want = want $0 "\n"; next } { all = all $0 "\n" }
            END { gsub(/^\n+|\n+$/, "", want); exit !(want != "" &&
                index("\n" all, "\n" want "\n")) }' \
            "$part" "$srcdir/$file" || echo "$file: $(sed -n 2p "$part")"
    done
}
differing >"$tmp/log"
test "$(ls "$tmp"/*.part | wc -l)" -eq 7 -a ! -s "$tmp/log"
verdict "the walk has the code of its example" $? "$tmp/log"
sed 's/= 7/= 8/' "$tmp/2.part" >"$tmp/changed" && mv "$tmp/changed" "$tmp/2.part"
differing | grep -q '^lib/model/family/expert.c: '
verdict "another number there is found" $? "$tmp/log"

# ----------------------------------------------------------------- commands ---
grep -oE -- '--(enable|disable|with)-[a-z]+' "$srcdir/HACKING" | sort -u |
    while read -r option; do
        name=${option#--*-}
        test "$name" = shared ||
            grep -qE "[[( ]$name[]) ,]" "$srcdir/configure.ac" \
                "$srcdir"/m4/gguf-*.m4 || echo "$option"
    done >"$tmp/log"
test ! -s "$tmp/log"
verdict "options of configure are there" $? "$tmp/log"

grep -oE 'make (check|bench)[a-z-]*' "$srcdir/HACKING" | sort -u |
    while read -r make target; do
        test "$target" = check ||
            grep -q "^$target:" "$srcdir"/tests/Makefile.inc \
                "$srcdir"/tests/*/Makefile.inc || echo "$make $target"
    done >"$tmp/log"
test ! -s "$tmp/log"
verdict "targets of make are there" $? "$tmp/log"

sed -n 's/.*tests\/matrix\.sh \([a-z0-9 -]*[a-z0-9]\)  .*/\1/p' \
    "$srcdir/HACKING" | tr ' ' '\n' >"$tmp/rows"
while read -r row; do
    sh "$srcdir/tests/matrix.sh" --list | grep -q "^$row " || echo "$row"
done <"$tmp/rows" >"$tmp/log"
test -s "$tmp/rows" && test ! -s "$tmp/log"
verdict "rows of the matrix are there" $? "$tmp/log"

# ---------------------------------------------------------------- layout ---
# Only texts that people write: no models, no files of a build.
if test "$(cd "$srcdir" && pwd)" = "$(cd "$builddir" && pwd)"; then
    skip "files are laid out as .editorconfig says" "built among the sources"
    done_testing
fi
cd "$srcdir" || exit 99
find HACKING README ChangeLog bootstrap .editorconfig .clang-format \
    Makefile.am configure.ac doc lib tools man share tests m4/gguf-*.m4 \
    -type f ! -name '*.gguf' ! -name '*~' | sort >"$tmp/files"
test "$(wc -l <"$tmp/files")" -gt 500 || exit 99
grep -vE '\.(tsv|txt|hex)$' "$tmp/files" | tr '\n' '\0' |
    xargs -0 grep -nE '[[:blank:]]$|'"$(printf '\r')" >"$tmp/log"
test ! -s "$tmp/log"
verdict "no line ends with blanks, but in data" $? "$tmp/log"
# Look at each file only if there are fewer line ends than files.
: >"$tmp/log"
ends=$(tr '\n' '\0' <"$tmp/files" | xargs -0 tail -qc 1 | tr -dc '\n' | wc -c)
test "$ends" -eq "$(wc -l <"$tmp/files")" || while read -r f; do
    test -s "$f" && test -z "$(tail -c 1 "$f")" || echo "$f"
done <"$tmp/files" >"$tmp/log"
test ! -s "$tmp/log"
verdict "every file ends with a line end" $? "$tmp/log"
tr '\n' '\0' <"$tmp/files" | xargs -0 grep -naxv '.*' >"$tmp/log"
test ! -s "$tmp/log"
verdict "every file is UTF-8" $? "$tmp/log"
tab=$(printf '\t')
grep -E '\.([ch]|awk|py|ac|m4|md|json)$' "$tmp/files" | tr '\n' '\0' |
    xargs -0 grep -n "^ *$tab" >"$tmp/log"
test ! -s "$tmp/log"
verdict "code is indented with blanks" $? "$tmp/log"
grep -E 'Makefile|\.(am|inc)$' "$tmp/files" | tr '\n' '\0' |
    xargs -0 grep -nE '^ +[^ #]' >"$tmp/log"
test ! -s "$tmp/log"
verdict "Makefiles are indented with tabs" $? "$tmp/log"
done_testing
