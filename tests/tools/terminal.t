#!/bin/sh
# SPDX-License-Identifier: MIT
# Text from a file or an argument has no effect on a terminal, or on a reader
# of a Markdown document; lines fit the terminal.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"

m=$tmp/m.gguf
"$mkmodel" "$m" || exit 99
onpty=$builddir/tests/tools/onpty
"$onpty" 80 true
if test $? -eq 77; then pty=false; else pty=true; fi

esc=$(printf '\033')
# A sequence that colours; C1's one-byte form of it in UTF-8; a direction mark.
mark=$(printf '\342\200\256')
bad=$(printf 'x\033[31m\302\23331m\342\200\256y')

# Bytes of a file have no effect on a terminal.
harmless() # file
{
    ! LC_ALL=C grep -q -e "$esc" -e "$(printf '\302\233')" \
        -e "$mark" "$1"
}

# One line, status 2, no raw bytes.
refused() # command...
{
    run "$@"
    test $rc -eq 2 -a ! -s "$tmp/out" && test "$(wc -l <"$tmp/err")" -eq 1 &&
        harmless "$tmp/err"
}

for tool in info split edit imatrix quantize ppl; do
    refused "$bin/gguf-$tool" "--$bad"
    ok "gguf-$tool: an unknown option, with escapes"
done
for tool in info split edit imatrix quantize; do
    refused "$bin/gguf-$tool" --limit "$bad=1" "$m" "$m.out"
    ok "gguf-$tool --limit: a name with escapes"
    refused "$bin/gguf-$tool" --limit "$bad" "$m" "$m.out"
    ok "gguf-$tool --limit: an argument with escapes"
done
refused "$bin/gguf-quantize" "$m" "$tmp/o.gguf" "$bad"
ok 'gguf-quantize: a type with escapes'
printf '%s\n' "$bad" >"$tmp/types"
refused "$bin/gguf-quantize" --tensor-type-file "$tmp/types" "$m" "$m.o" Q8_0
ok 'gguf-quantize --tensor-type-file: contents with escapes'
refused "$bin/gguf-ppl" -m "$m" -f "$m" "$bad"
ok 'gguf-ppl: an operand with escapes'
refused "$bin/gguf-eval" -m "$m" "--print-graph=$bad"
ok 'gguf-eval --print-graph: a word with escapes'
refused "$bin/gguf-info" "--sort=$bad" "$m"
ok 'gguf-info --sort: a word with escapes'
refused "$bin/gguf-info" "--sort=$(printf 'a\nb')" "$m"
ok 'a line break in an argument makes no second line'
tiny=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
if test -f "$tiny"; then
    run "$bin/gguf-quantize" -n --explain --tensor-type "$mark|blk=Q8_0" \
        "$tiny" "$tmp/o.gguf" Q4_0
    test $rc -eq 0 && grep -q '202E}|blk' "$tmp/out" && harmless "$tmp/out"
    ok 'gguf-quantize --explain: a pattern with escapes'
    run "$bin/gguf-ppl" -m "$tiny" -f "$m" --backend "$bad"
    test $rc -ne 0 && harmless "$tmp/err"
    ok 'gguf-ppl --backend: a name with escapes'
fi

# A tensor and a file whose names have characters that reorder text: an Arabic
# letter mark, and one of each other kind. No text output of a tool contains
# them, in a pipe either.
marked="$tmp/m$(printf '\342\200\216\342\200\217\342\200\252\342\200\256')"
marked="$marked$(printf '\342\201\246\342\201\251')"
LC_ALL=C sed "s/t1/$(printf '\330\234')/" "$m" >"$marked.gguf"
unmarked() # files
{
    ! LC_ALL=C grep -q -e "$(printf '\330\234')" \
        -e "$(printf '\342\200')[$(printf '\216\217\252-\256')]" \
        -e "$(printf '\342\201')[$(printf '\246-\251')]" "$@"
}
! unmarked "$marked.gguf"
ok 'a file with direction marks'
bad_modes=
try() # command...
{
    run "$@"
    test -s "$tmp/out" -o -s "$tmp/err" && unmarked "$tmp/out" "$tmp/err" ||
        bad_modes="$bad_modes '$(basename "$1") ${2-}'"
}
for o in --summary --metadata --tensors --types --table --memory --check \
    --stats --hash --hash=xxh3-128 --hash=sha256 --markdown --json --color=always \
    "--tensors=x$mark" "--key=x$mark" "--values=x$mark"; do
    try "$bin/gguf-info" "$o" "$marked.gguf"
done
try "$bin/gguf-info" --diff "$marked.gguf" "$m"
try "$bin/gguf-info" --diff --markdown "$m" "$marked.gguf"
try "$bin/gguf-split" --split-max-tensors 2 --dry-run "$marked.gguf" "$marked"
try "$bin/gguf-split" --split-max-tensors 2 "$marked.gguf" "$marked"
try "$bin/gguf-split" --merge "$marked-00001-of-00004.gguf" "$marked.gguf"
try "$bin/gguf-edit" --set "x$mark=u32:1" --dry-run "$marked.gguf"
try "$bin/gguf-edit" --set "x=u32:1" --output "$marked-2.gguf" "$marked.gguf"
for o in --dry-run --explain --verbose --report; do
    try "$bin/gguf-quantize" $o --force "$marked.gguf" "$marked-3.gguf" F16
done
try "$bin/gguf-imatrix" "$marked.gguf"
try "$bin/gguf-convert" "$marked.gguf"
try "$bin/gguf-ppl" -m "$marked.gguf" -f "$marked.gguf"
echo "$bad_modes" >"$tmp/out"
test -z "$bad_modes"
ok 'no tool prints them'

# Escaped names of a manifest are found again.
for a in xxh64 xxh3-128 sha256; do
    "$bin/gguf-info" --hash=$a "$marked.gguf" >"$tmp/manifest"
    run "$bin/gguf-info" --manifest "$tmp/manifest" "$marked.gguf"
    test $rc -eq 0 && grep -q 'checksums\{0,1\} [a-z]* right' "$tmp/err" &&
        grep -q '202E}' "$tmp/manifest"
    ok "gguf-info --manifest: $a of names with marks"
done

# The progress bar of a job that takes some time.
if $pty && test -f "$tiny"; then
    head -c 16000 "$srcdir/share/tiny-llama/persuasion.txt" >"$tmp/text"
    for columns in 40 20; do
        "$onpty" $columns "$bin/gguf-ppl" -t 1 -j -m "$tiny" -f "$tmp/text" |
            tr '\r' '\n' | sed "s/$esc\\[K//g" | grep '^perpl' >"$tmp/out"
        test -s "$tmp/out" &&
            "$AWK" -v n=$columns 'length >= n { exit 1 }' "$tmp/out"
        ok "the bar fits $columns columns"
    done
    bar() # gguf-ppl's arguments...: its bar, a line for each time it is drawn
    {
        "$onpty" 100 "$bin/gguf-ppl" -t 1 -j -c 64 "$@" | tr '\r' '\n' |
            sed "s/$esc\\[K//g" | grep '% .* left$' >"$tmp/out"
    }
    bar -m "$tiny" -f "$tmp/text"
    grep -q '^perplexity [0-9.]* +/- [0-9.]* \[#.*\] .* tokens/s .* left$' \
        "$tmp/out"
    ok 'the bar has a running estimate, rate and time left'
    bar -m "$tiny" --base "$tiny" -f "$tmp/text"
    grep -q '^divergence 0 +/- 0 \[#' "$tmp/out"
    ok 'so it has with a base'
    bar -m "$tiny" -m "$tiny" --base "$tiny" -f "$tmp/text"
    grep -q '^divergence 0 to 0 \[#' "$tmp/out"
    ok 'and with several models'
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do
        echo '{"question": "Who was", "choices": ["Anne", "the sea"], "label": 0}'
    done >"$tmp/tasks"
    cat "$tmp/tasks" "$tmp/tasks" "$tmp/tasks" "$tmp/tasks" >"$tmp/many"
    bar -m "$tiny" -f "$tmp/many" --multiple-choice
    grep -q '^multiple-choice [0-9.]*% \[#' "$tmp/out"
    ok 'and with tasks'
fi

# Texts of --help, without the names of an option.
if $pty; then
    for columns in 40 60 200; do
        for tool in info split edit imatrix quantize ppl compare eval \
            tokenize; do
            "$onpty" $columns "$bin/gguf-$tool" --help
            "$onpty" $columns "$bin/gguf-$tool" --help=all
        done | grep -v -e '^ *-' -e '^Usage' -e '^  *gguf-' >"$tmp/out"
        "$AWK" -v n=$columns 'length >= n || length >= 80 { exit 1 }' "$tmp/out" &&
            test "$(wc -l <"$tmp/out")" -gt 100
        ok "--help fits $columns columns"
    done
fi

# Values of metadata end where the terminal does, unless a length is given.
if $pty; then
    short=$tmp/short.gguf # the path is never cut
    cp "$tiny" "$short"
    "$bin/gguf-info" --metadata "$short" >"$tmp/wide"
    test "$("$AWK" 'length > 150' "$tmp/wide" | wc -l)" -gt 0
    ok 'gguf-info in a pipe: lines are as long as they are'
    for columns in 72 80 120; do
        "$onpty" $columns "$bin/gguf-info" --color=never --metadata "$short" |
            tr -d '\r' >"$tmp/out"
        "$AWK" -v n=$columns 'length > n { exit 1 }' "$tmp/out" &&
            test "$(wc -l <"$tmp/out")" -eq "$(wc -l <"$tmp/wide")" &&
            grep -q '^  str  *general.description  *Small .*\.\.\.$' "$tmp/out" &&
            test "$(grep -c '\.\.\.$' "$tmp/out")" -lt 8
        ok "gguf-info fits $columns columns"
    done
    "$onpty" 80 "$bin/gguf-info" --color=never --metadata --strings=all "$short" |
        tr -d '\r' >"$tmp/out"
    "$AWK" 'length > 150 { long = 1 } END { exit !long }' "$tmp/out"
    ok '--strings=all: the whole text, however long'
fi

pm=$(printf '\302\261')
delta=$(printf '\316\224')

# Tables: from the line that begins with a word on, or all.
table() # columns, word, command...
{
    columns=$1
    word=$2
    shift 2
    "$onpty" "$columns" "$@" 2>/dev/null | tr -d '\r' | sed "s/.*$esc\[K//" |
        LC_ALL=C sed "s/$pm/+/g; s/$delta/D/g" |
        "$AWK" -v w="^ *$word( |\$)" '$0 ~ w { on = 1 } $0 == "" { on = 0 } on' \
            >"$tmp/out"
    test "$(wc -l <"$tmp/out")" -gt 2
}
table_fits()
{
    table "$@" && "$AWK" -v n="$columns" 'length > n { exit 1 }' "$tmp/out"
}
if $pty && test -f "$tiny"; then
    q4=$tmp/q4.gguf
    "$bin/gguf-quantize" -q "$tiny" "$q4" Q4_0 || exit 99
    head -c 3000 "$tmp/text" >"$tmp/short"
    tail -c 3000 "$tmp/text" >"$tmp/other"
    ppl="$bin/gguf-ppl -q -c 128 -f $tmp/short"
    # In a build with checks a second is too short for a table.
    seconds=1
    compare="$bin/gguf-compare -q -c 128 -f $tmp/short --chunks 1"
    bisect="$compare -m $q4 --base $tiny --bisect --time-budget"
    # shellcheck disable=SC2086 # words
    until table 40 weight $bisect $seconds || test $seconds -gt 99; do
        seconds=$((3 * seconds))
    done
    echo "name|$bin/gguf-info --color=never --tensors $tiny
name|$bin/gguf-info --color=never --stats=blk.0* $tiny
type|$bin/gguf-info --color=never --types $tiny
weights|$bin/gguf-info --color=never --memory $tiny
tensor|$bin/gguf-info --diff --tensors=blk* $tiny $q4
file|$bin/gguf-split -q -n --split-max-size 4M $tiny $tmp/some-long-name-of-a-model
output.weight|$bin/gguf-quantize -q -n --explain $tiny $tmp/o.gguf Q4_K_M
output.weight|$bin/gguf-quantize -q -n -v $tiny $tmp/o.gguf Q4_K_M
tensor|$bin/gguf-quantize -q -f --report $tiny $tmp/report.gguf Q4_0
tensor|$bin/gguf-imatrix -q -m $tiny -f $tmp/short -c 128 --chunks 1 -s
text|$ppl -f $tmp/other -m $tiny
text|$ppl -f $tmp/other -m $q4 --base $tiny
chunk|$ppl --chunks 2 -m $q4 --base $tiny
model.*KLD|$ppl --chunks 1 -m $q4 -m $tiny --base $tiny
layer|$compare -m $q4 --base $tiny --layers
activation|$compare -m $q4 --base $tiny --layers
weights|$compare -m $q4 --base $tiny --bisect=layer
weight|$bisect $seconds" \
        >"$tmp/tables"
    while IFS='|' read -r word command; do
        # shellcheck disable=SC2086 # words
        table_fits 40 "$word" $command && table_fits 80 "$word" $command
        ok "$(echo "$command" | sed 's/[^ ]*\///g; s/ -q//'): fits 40 columns and 80"
    done <"$tmp/tables"
    "$onpty" 40 "$bin/gguf-info" --color=never --tensors "$tiny" |
        grep -q '^  blk\.0\.[a-z]*\.\.[a-z_]*\.weight '
    ok 'a name that is cut has its beginning and its end'
fi

# Lines outside of tables have the same words, whole, on lines that fit.
if $pty && test -f "$tiny"; then
    cp "$tiny" "$tmp/t.gguf"
    mv "$tmp/q4.gguf" "$tmp/q.gguf"
    cd "$tmp" || exit 99
    for base in '' '--base t.gguf'; do
        ppl="$bin/gguf-ppl -q -c 128 --chunks 7 -t 1 -f text -m q.gguf $base"
        # shellcheck disable=SC2086 # words
        $ppl >"$tmp/piped" 2>/dev/null
        for columns in 40 80; do
            "$onpty" $columns $ppl 2>/dev/null | tr -d '\r' |
                LC_ALL=C sed "s/.*$esc\[K//; s/$pm/+/g; s/$delta/D/g" \
                    >"$tmp/out"
            "$AWK" -v n=$columns 'length > n { exit 1 }' "$tmp/out" &&
                ! grep -q '+$' "$tmp/out"
            ok "gguf-ppl $base: all lines fit $columns columns"
            for f in piped out; do
                LC_ALL=C sed "s/$pm/+/g; s/$delta/D/g" "$tmp/$f" |
                    sed '/^chunk *[PK]/,/^$/d; /^time /d; s/,\[/,\n[/g' |
                    tr -s ' ' '\n' | sed '/^$/d' >"$tmp/$f.words"
            done
            cmp "$tmp/piped.words" "$tmp/out.words"
            ok "gguf-ppl $base: $columns columns have the words of a pipe"
        done
    done
    grep -q '^model   q.gguf: llama, 5.77 M parameters' "$tmp/piped" &&
        "$onpty" 40 $ppl 2>/dev/null | tr -d '\r' |
        grep -q '^        parameters, 3'
    ok 'what follows stands below what follows the label'
    long=$(printf '%050d' 7).gguf
    mv q.gguf "$long"
    "$onpty" 40 "$bin/gguf-ppl" -q -c 128 --chunks 1 -f text -m "$long" \
        2>/dev/null | tr -d '\r' | sed "s/.*$esc\[K//" >"$tmp/out"
    test "$("$AWK" 'length > 40' "$tmp/out")" = "model   $long:" &&
        grep -q '^        llama, 5.77 M parameters, 3' "$tmp/out"
    ok 'a word longer than a line has one of its own'
fi

# A line for each file: columns are left out, names lose their start.
if $pty; then
    mkdir "$tmp/a-folder-with-a-long-name"
    long=$tmp/a-folder-with-a-long-name/another-\303\251-model.gguf
    long=$(printf "$long")
    cp "$m" "$long"
    "$bin/gguf-info" --table "$m" "$long" >"$tmp/wide"
    test "$("$AWK" 'length > 100' "$tmp/wide" | wc -l)" -gt 0 &&
        grep -q '^file .* tensors  files$' "$tmp/wide" && grep -q "^$m " "$tmp/wide"
    ok 'gguf-info --table in a pipe: all columns, whole names'
    for row in '40 weights' '80 size' '300 files'; do
        "$onpty" "${row% *}" "$bin/gguf-info" --color=never --table "$m" \
            "$long" | tr -d '\r' >"$tmp/out"
        LC_ALL=C sed "s/$(printf '\303\251')/e/" "$tmp/out" |
            "$AWK" -v n="${row% *}" 'length > n { exit 1 }' &&
            test "$(wc -l <"$tmp/out")" -eq 3 &&
            grep -q "^file .* ${row#* }\$" "$tmp/out" &&
            grep -q 'model.gguf  ' "$tmp/out"
        ok "--table fits ${row% *} columns"
    done
    cmp "$tmp/wide" "$tmp/out"
    ok 'and on a wide terminal is what goes into a pipe'
fi

# Checksums: names have no effect.
cp "$m" "$tmp/$bad.gguf"
cp "$m" "$tmp/$mark.gguf"
"$bin/gguf-info" --hash "$tmp/$mark.gguf" >"$tmp/out"
harmless "$tmp/out" && grep -q '/\\u{202E}\.gguf:blk' "$tmp/out"
ok '--hash in a pipe: the name is escaped'
if $pty; then
    run "$onpty" 80 "$bin/gguf-info" --hash "$tmp/$bad.gguf"
    test $rc -eq 0 && test "$(grep -c '^xxh64 ' "$tmp/out")" -eq 9 &&
        harmless "$tmp/out"
    ok '--hash on a terminal: the name is escaped'
    "$bin/gguf-info" --hash "$m" | sed "s/blk.0/$bad/" >"$tmp/manifest"
    run "$onpty" 80 "$bin/gguf-info" --manifest "$tmp/manifest" "$m"
    test $rc -eq 1 && harmless "$tmp/out"
    ok '--manifest on a terminal: names are escaped'
else
    skip '--hash on a terminal' 'no terminal'
fi

# Markdown: no links, no mentions, no HTML.
"$bin/gguf-edit" -q -o "$tmp/links.gguf" \
    --set 'general.name=str:see https://evil.example now' \
    --set 'general.author=str:thanks to @somebody' \
    --set 'general.url=str:www.evil.example' \
    --set 'general.description=str:fixes #12 and a|b `c`' \
    --set 'general.licence=str:<img src=x> [a](b) *c* d|e' "$m"
run "$bin/gguf-info" --markdown --metadata "$tmp/links.gguf"
test $rc -eq 0 && grep -qF '| `see https://evil.example now` |' "$tmp/out" &&
    grep -qF '| `thanks to @somebody` |' "$tmp/out" &&
    grep -qF '| `www.evil.example` |' "$tmp/out" &&
    grep -qF '| `` fixes #12 and a\|b `c` `` |' "$tmp/out" &&
    grep -qF '| \<img src=x\> \[a\](b) \*c\* d\|e |' "$tmp/out"
ok '--markdown: addresses and names become code, the rest is escaped'

done_testing
