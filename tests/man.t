#!/bin/sh
# SPDX-License-Identifier: MIT
# The manual pages of section 3 agree with the headers. Each header, and each
# exported function, is in the SYNOPSIS of one page, with a prototype that the
# compiler takes for the same. Pages name only what exists. The program of each
# page compiles, runs, and prints the page's output. All pages are formatted
# without warnings and refer to each other both ways.
set -u
. "${srcdir:-.}/tests/tap.sh"
# Gather all pages: some are made when the library is built.
mkdir "$tmp/man"
cp "$srcdir"/man/*.[1-9] "$builddir"/man/*.[1-9] "$tmp/man" 2>/dev/null

# The n-th block of code in a section of a page.
block() # page, section, n
{
    "$AWK" -v section="$2" -v want="$3" '
        /^\.SH/ { on = $0 == ".SH " section }
        on && /^\.EE/ { code = 0 }
        on && code && k == want { sub(/^\\&/, ""); print }
        on && /^\.EX/ { code = 1; k++ }' "$1" |
        sed 's/\\-/-/g; s/\\(aq/'\''/g; s/\\(ha/^/g; s/\\(ti/~/g; s/\\(ga/`/g
             s/\\e/\\/g'
}

# ---------------------------------------------------------------- SYNOPSIS ---
for page in "$tmp"/man/libgguf_*.3; do
    name=$(basename "$page" .3)
    # prototypes without fonts, one a line
    "$AWK" '/^\.SH/ { on = /SYNOPSIS/ } on && /^\\fB/' "$page" |
        sed 's/\\f.//g; s/\\-/-/g' | tr -s '\n ' ' ' | tr ';' '\n' |
        sed 's/^ //; /^$/d; s/$/;/' >"$tmp/$name.protos"
    sed -n 's/^\.B \(#include <gguf.*\)/\1/p' "$page" >"$tmp/$name.includes"
    cat "$tmp/$name.includes" "$tmp/$name.protos" >"$tmp/t.c"
    test -s "$tmp/$name.protos" && $CC_FOR_TEST -std=c11 -Wall -Wextra -Werror \
        -I"$srcdir/lib" -fsyntax-only "$tmp/t.c" >"$tmp/log" 2>&1
    verdict "$name: its prototypes are those of its headers" $? "$tmp/log"
    # A prototype of the page repeats one of its headers.
    $CC_FOR_TEST -std=c11 -I"$srcdir/lib" -E "$tmp/t.c" 2>/dev/null |
        sed '/^#/d' | tr -s '\n ' ' ' >"$tmp/all"
    sed 's/(.*//; s/.*[ *]//' "$tmp/$name.protos" >"$tmp/names"
    "$AWK" 'NR == FNR { n[$1] = 0; next }
        match($0, /[ *][A-Za-z0-9_]+ *$/) {
            f = substr($0, RSTART + 1)
            sub(/ *$/, "", f)
            if (f in n)
                n[f]++
        }
        END { for (f in n) if (n[f] < 2) print f }' "$tmp/names" \
        RS='(' "$tmp/all" >"$tmp/log"
    test ! -s "$tmp/log"
    verdict "$name: its headers declare what it lists" $? "$tmp/log"
done
sed -n 's/^[[:space:]]*\(gguf_[a-z0-9_]*\);.*/\1/p' "$srcdir/lib/libgguf.map" |
    sort >"$tmp/map"
cat "$tmp"/*.protos | sed 's/(.*//; s/.*[ *]//' | sort >"$tmp/listed"
diff "$tmp/map" "$tmp/listed" >"$tmp/log"
verdict "every exported function stands in one SYNOPSIS" $? "$tmp/log"
(cd "$srcdir/lib/gguf" && ls) | grep -vx -e compute.h -e gguf.h -e model.h | sort >"$tmp/headers"
cat "$tmp"/*.includes | sed 's/.*gguf\///; s/>//' | sort |
    diff "$tmp/headers" - >"$tmp/log"
verdict "every header stands in one SYNOPSIS" $? "$tmp/log"
sort "$tmp/headers" >"$tmp/want"
sed -n 's/^\.I \([a-z_]*\.h\).*/\1/p' "$tmp/man/libgguf.3" | sort |
    diff "$tmp/want" - >"$tmp/log"
verdict "libgguf(3) lists every header" $? "$tmp/log"

# ------------------------------------------------------------------- names ---
grep -ohE '\<(gguf_[a-z0-9_]+|GGUF_[A-Z0-9_]+)' "$srcdir"/lib/gguf/*.h |
    sort -u >"$tmp/known"
for page in "$tmp"/man/*.[357]; do
    sed 's/\\-/-/g; s/\\f[BIR]/ /g; s/libgguf_/ /g' "$page" |
        grep -oE '\<(gguf_[a-z0-9_]+|GGUF_[A-Z0-9_]+)' | sort -u |
        grep -vxE '(gguf_op|GGUF_E)_' | comm -13 "$tmp/known" - >"$tmp/log"
    test ! -s "$tmp/log"
    verdict "${page##*/}: every name is that of something" $? "$tmp/log"
done

# -------------------------------------------------------------- cross links ---
# "page(section) other(section)" for each of our pages in SEE ALSO.
for page in "$tmp"/man/*.[1-9]; do
    sed 's/\\-/-/g' "$page" | "$AWK" -v me="$(basename "$page")" '
        BEGIN { sub(/\.[1-9]$/, "(&)", me); sub(/\(\./, "(", me) }
        /^\.SH/ { on = /SEE ALSO/ }
        on && /^\.BR (lib)?gguf/ { sub(/,$/, ""); print me, $2 $3 }'
done | sort >"$tmp/links"
"$AWK" '{ print $2, $1 }' "$tmp/links" | sort | comm -3 "$tmp/links" - >"$tmp/log"
test -s "$tmp/links" && test ! -s "$tmp/log"
verdict "SEE ALSO goes both ways" $? "$tmp/log"
for page in "$tmp"/man/*.[1-9]; do
    sed 's/\\-/-/g' "$page" | "$AWK" '/^\.SH/ { on = /SEE ALSO/ }
        on && /^\.BR/ { sub(/,$/, ""); print $3, $2 }' >"$tmp/a"
    test -s "$tmp/a" && sort -u "$tmp/a" | diff "$tmp/a" - >"$tmp/log"
    verdict "${page##*/}: SEE ALSO is in order" $? "$tmp/log"
    sed 's/\\-/-/g; s/\\f[BIR]//g; s/^\.[BI][BIR]* //; s/ (/(/' "$page" |
        grep -oE '\<(libgguf(_[a-z]+)?|gguf(-[a-z]+)?)\([1-9]\)' | sort -u |
        sed 's/(\(.\))/.\1/' | while read -r p; do
            test -f "$tmp/man/$p" || echo "$p"
        done >"$tmp/log"
    test ! -s "$tmp/log"
    verdict "${page##*/}: pages that it names are there" $? "$tmp/log"
done

# ---------------------------------------------------------------- programs ---
share=$(cd "$srcdir/share/tiny-llama" && pwd)
for page in "$tmp"/man/libgguf_*.3; do
    name=$(basename "$page" .3)
    block "$page" EXAMPLES 1 >"$tmp/$name.c"
    block "$page" EXAMPLES 2 >"$tmp/want"
    compile "$name"
    verdict "$name: its program compiles" $? "$tmp/log"
    sed -n '1s/^\$ //p' "$tmp/want" | sed "s|\./a\.out|'$tmp/$name'|g" \
        >"$tmp/command"
    mkdir "$tmp/run"
    ln -s "$share/tiny-llama-f16.gguf" "$share/persuasion.txt" "$tmp/run"
    (cd "$tmp/run" && sh "$tmp/command") >"$tmp/out" 2>&1 </dev/null
    rc=$?
    rm -rf "$tmp/run"
    sed 1d "$tmp/want" | diff - "$tmp/out" >"$tmp/log" && test $rc -eq 0 &&
        test -s "$tmp/out"
    verdict "$name: it prints what the page says" $? "$tmp/log"
done

# ------------------------------------------------------------------- format ---
if groff --version >/dev/null 2>&1; then
    for page in "$tmp"/man/*.[1-9]; do
        groff -man -Tutf8 -t -ww -z "$page" >"$tmp/log" 2>&1 &&
            test ! -s "$tmp/log"
        verdict "${page##*/} is formatted without a warning" $? \
            "$tmp/log"
    done
else
    skip "pages are formatted without a warning" "no groff"
fi
if man --version >/dev/null 2>&1; then
    for page in "$tmp"/man/libgguf*.3; do
        MANWIDTH=80 man -E ascii -l "$page" 2>"$tmp/log" | col -bx >"$tmp/seen"
        test "$(wc -l <"$tmp/seen")" -gt 20 &&
            "$AWK" 'length > 80' "$tmp/seen" >"$tmp/log" && test ! -s "$tmp/log"
        verdict "${page##*/} fits in 80 columns" $? "$tmp/log"
    done
else
    skip "pages fit in 80 columns" "no man"
fi
done_testing
