#!/bin/sh
# SPDX-License-Identifier: MIT
# --help and the manual page of every tool list the same options, the examples
# of the pages run, and the pages have all required sections.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"

# Names of options in --help: of each line that begins with one, the words
# before the text.
help_options() # tool
{
    "$1" --help=all | sed -n 's/^  *\(-[^ ].*\)/\1/p' | sed 's/   .*//' |
        tr ' ,=[' '\n\n\n\n' | grep '^-' | sort -u
}

# Names of options in a page: the line after each .TP in OPTIONS.
man_options() # page
{
    awk '/^\.SH/ { on = /^\.SH OPTIONS/ } on' "$1" |
        awk 'tag { print; tag = 0 } /^\.T[PQ]/ { tag = 1 }' |
        sed 's/\\-/-/g; s/\\f.//g; s/^\.[A-Z]* *//' |
        tr ' ,="[' '\n\n\n\n\n' | grep '^-' | sort -u
}

# Options that tools share are in one page.
man_options "$srcdir/man/gguf-evaluation.7" >"$tmp/shared"
for page in "$srcdir"/man/*.1; do
    tool=$(basename "$page" .1)
    test -x "$bin/$tool"
    ok "$tool is built and has a page" || continue
    help_options "$bin/$tool" >"$tmp/help"
    man_options "$page" >"$tmp/man"
    if grep -q '^\.BR gguf\\-evaluation (7)' "$page"; then
        sort -u "$tmp/man" "$tmp/shared" | comm -23 "$tmp/help" - >"$tmp/out"
        comm -13 "$tmp/help" "$tmp/man" >>"$tmp/out"
    else
        diff "$tmp/help" "$tmp/man" >"$tmp/out"
    fi
    cat "$tmp/help" >>"$tmp/helps"
    test ! -s "$tmp/out" -a -s "$tmp/help"
    ok "$tool: page and --help have the same options"
    for s in NAME SYNOPSIS DESCRIPTION OPTIONS OUTPUT 'EXIT STATUS' EXAMPLES \
        'SEE ALSO'; do
        grep -qx "\\.SH $s" "$page" || echo "$s"
    done >"$tmp/out"
    test ! -s "$tmp/out"
    ok "$tool: the page has every section"
    if test "$(wc -L <"$tmp/help" 2>/dev/null || echo 0)" -gt 0; then
        test "$("$bin/$tool" --help=all | awk 'length > 80' | wc -l)" -eq 0
        ok "$tool: --help fits in 80 columns"
    fi
    run "$bin/$tool" --version
    test $rc -eq 0 && grep -q "^$tool " "$tmp/out"
    ok "$tool: --version says its name"
    run "$bin/$tool" --no-such-option
    test $rc -eq 2 -a ! -s "$tmp/out" && test "$(wc -l <"$tmp/err")" -eq 1 &&
        grep -q -e --help "$tmp/err"
    ok "$tool: a wrong option is one line with a hint, status 2"
    run sh -c '"$1" --help >/dev/full' sh "$bin/$tool"
    test $rc -eq 1 -o ! -c /dev/full
    ok "$tool: a full disk under --help is noticed"
done

sort -u "$tmp/helps" | comm -13 - "$tmp/shared" >"$tmp/out"
test ! -s "$tmp/out" -a -s "$tmp/shared"
ok 'gguf-evaluation(7): each option is one of a tool'

# Run every command of the pages' examples, on a model that goes with it.
"$mkmodel" "$tmp/small.gguf" || exit 99
share=$(cd "$srcdir/share/tiny-llama" && pwd)
commands() # page: one a line
{
    "$AWK" '
        /^\.SH/ { on = /EXAMPLES/ }
        /^\.EE/ { code = 0; if (s) print s; s = "" }
        on && code { if (s && sub(/^\$ /, "")) { print s; s = $0 }
                     else { sub(/^\$ /, ""); sub(/^ +/, " "); s = s $0 } }
        /^\.EX/ { code = 1 }' "$1" |
        sed "s/\\\\-/-/g; s/\\\\(aq/'/g; s/\\\\e/\\\\/g"
}
for tool in gguf-info gguf-split gguf-edit gguf-imatrix gguf-quantize gguf-ppl \
    gguf-compare gguf-eval gguf-tokenize gguf-convert; do
    rm -rf "$tmp/run" && mkdir "$tmp/run" || exit 99
    case $tool in
    gguf-ppl | gguf-compare | gguf-eval | gguf-tokenize | gguf-imatrix)
        ln -s "$share/tiny-llama-f16.gguf" "$tmp/run/model.gguf"
        head -c 4000 "$share/persuasion.txt" >"$tmp/run/test.txt"
        head -n 3 "$tmp/run/test.txt" >"$tmp/run/lines.txt"
        gzip -k "$tmp/run/test.txt"
        "$builddir/tests/tools/mkimatrix" "$tmp/run/a.dat"
        cp "$tmp/run/a.dat" "$tmp/run/b.dat"
        ;;
    gguf-convert)
        "$builddir/tests/tools/mkfolder" "$tmp/run/hf" wide
        head -c 4000 "$share/persuasion.txt" >"$tmp/run/test.txt"
        ;;
    *)
        cp "$tmp/small.gguf" "$tmp/run/model.gguf"
        cp "$tmp/small.gguf" "$tmp/run/model-f16.gguf"
        "$builddir/tests/tools/mkimatrix" "$tmp/run/im.gguf" tensor blk.0.t0 256
        ;;
    esac
    commands "$srcdir/man/$tool.1" >"$tmp/examples"
    test -s "$tmp/examples"
    ok "$tool: the page has examples"
    while IFS= read -r line; do
        case $line in
        *jq*) jq --version >/dev/null 2>&1 || { skip "$line" 'no jq'; continue; } ;;
        esac
        run sh -c "cd '$tmp/run' && PATH='$bin':\$PATH && export PATH && $line" \
            </dev/null
        test $rc -eq 0
        ok "$tool: $line"
    done <"$tmp/examples"
done

# Every program has a page.
for tool in "$builddir"/gguf-*; do
    case $tool in *.*) continue ;; esac
    test -f "$tool" -a -x "$tool" || continue
    test -f "$srcdir/man/$(basename "$tool").1"
    ok "$(basename "$tool") has a page"
done

done_testing
