#!/bin/sh
# SPDX-License-Identifier: MIT
# The programs in doc/examples are short, compile without warnings against the
# built library, behave like the tools, and report a bad file on one line.
set -u
. "${srcdir:-.}/tests/tap.sh"
examples=$srcdir/doc/examples
model=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
text=$srcdir/share/tiny-llama/persuasion.txt
printf 'GGUF' >"$tmp/bad.gguf"

for name in list edit quantize perplexity logits; do
    cp "$examples/$name.c" "$tmp/$name.c"
    test "$(wc -l <"$tmp/$name.c")" -lt 40
    verdict "$name.c has less than 40 lines" $? "$tmp/log"
    compile $name
    verdict "$name.c compiles" $? "$tmp/log"
    case $name in
    edit) set -- general.name x ;;
    quantize) set -- "$tmp/none.gguf" Q8_0 ;;
    logits) set -- hello ;;
    *) set -- ;;
    esac
    "$tmp/$name" "$tmp/bad.gguf" "$@" >"$tmp/out" 2>"$tmp/err" <"$text"
    test $? = 1 && test "$(grep -c . "$tmp/err")" = 1 && test ! -s "$tmp/out"
    verdict "$name: a truncated file is an error of one line" $? "$tmp/err"
    "$tmp/$name" >"$tmp/out" 2>"$tmp/err" </dev/null
    grep -q '^usage: ' "$tmp/err"
    verdict "$name: without arguments it says how to call it" $? "$tmp/err"
done
test "$(cd "$examples" && ls | tr '\n' ' ')" = \
    "edit.c list.c logits.c perplexity.c quantize.c "
verdict "no other program is there" $? "$tmp/log"

"$tmp/list" "$model" >"$tmp/out" 2>&1
"$builddir/gguf-info" --json --tensors "$model" |
    sed -n 's/^ *"name": "\([a-z0-9_.]*\)",$/\1/p' >"$tmp/want"
cut -d ' ' -f 1 "$tmp/out" >"$tmp/have"
test -s "$tmp/want" && cmp "$tmp/want" "$tmp/have" >"$tmp/log" 2>&1 &&
    grep -q '^token_embd.weight F16 \[256 x2048 \] 1048576 bytes$' "$tmp/out"
verdict "list prints the tensors that gguf-info prints" $? "$tmp/out"

cp "$model" "$tmp/edited.gguf"
"$tmp/edit" "$tmp/edited.gguf" general.name "Another name" >"$tmp/log" 2>&1 &&
    "$builddir/gguf-info" "$tmp/edited.gguf" >"$tmp/out" 2>&1 &&
    grep -q '^ *name  *Another name$' "$tmp/out"
verdict "edit changes the key" $? "$tmp/out"
"$builddir/gguf-info" --diff "$model" "$tmp/edited.gguf" >"$tmp/out" 2>&1
test "$(grep -c '^[-+]' "$tmp/out")" = 2
verdict "and nothing else" $? "$tmp/out"

"$tmp/quantize" "$model" "$tmp/q.gguf" Q4_K_M >"$tmp/out" 2>&1 &&
    "$builddir/gguf-quantize" -q "$model" "$tmp/want.gguf" Q4_K_M >"$tmp/log" 2>&1 &&
    cmp "$tmp/q.gguf" "$tmp/want.gguf" >>"$tmp/log" 2>&1
verdict "quantize writes the bytes of gguf-quantize" $? "$tmp/log"
tr '\r' '\n' <"$tmp/out" | grep -q '100%$'
verdict "and shows its progress" $? "$tmp/log"

head -c 20000 "$text" >"$tmp/text"
"$tmp/perplexity" "$model" <"$tmp/text" >"$tmp/out" 2>&1
"$builddir/gguf-ppl" -q -m "$model" -f "$tmp/text" 2>&1 |
    sed -n 's/.*PPL = \([0-9.]*\) .*/\1/p' >"$tmp/want"
test -s "$tmp/want" && grep -q "^$(cat "$tmp/want") +/- " "$tmp/out"
verdict "perplexity prints the digits of gguf-ppl" $? "$tmp/out"

# The most probable token by the last row of gguf-eval's logits.
printf 'Once upon a' >"$tmp/prompt"
"$builddir/gguf-tokenize" -q -m "$model" -f "$tmp/prompt" | cut -f 1 >"$tmp/ids"
"$builddir/gguf-eval" -q -m "$model" --tokens "$tmp/ids" \
    --save-logits "$tmp/rows" >"$tmp/log" 2>&1
vocab=$(($(wc -c <"$tmp/rows") / $(wc -l <"$tmp/ids")))
tail -c "$vocab" "$tmp/rows" | od -An -v -t f4 -w4 |
    awk 'NR == 1 || $1 > best { best = $1; id = NR - 1 }
         END { printf "token %d: %.4f\n", id, best }' >"$tmp/want"
"$tmp/logits" "$model" 'Once upon a' >"$tmp/out" 2>&1
grep -q '^token [1-9]' "$tmp/want" && cmp "$tmp/want" "$tmp/out" >"$tmp/log" 2>&1
verdict "logits prints the token that gguf-eval finds, and its logit" $? "$tmp/log"
done_testing
