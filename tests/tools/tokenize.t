#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-tokenize: the tokens of a text, and the text of tokens.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
tokenize=$bin/gguf-tokenize
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
t=$tmp/text
head -c 4000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"

head -c 300 "$t" >"$tmp/exact"
printf '\n </s> x\n\377' >>"$tmp/exact"
run "$tokenize" -m "$m" -f "$tmp/exact"
test $rc -eq 0 -a ! -s "$tmp/err" &&
    head -n 1 "$tmp/out" | grep -q '^1	<s>$' &&
    ! grep -q '</s>' "$tmp/out" && grep -q '^[0-9]*	\\xFF$' "$tmp/out" &&
    test "$(grep -c '^[0-9]*	..*$' "$tmp/out")" -eq "$(wc -l <"$tmp/out")"
ok 'the tokens of a text, a line each'
cut -f1 "$tmp/out" >"$tmp/ids"
count=$(wc -l <"$tmp/ids")
run "$tokenize" -m "$m" -f "$tmp/ids" --detokenize
test $rc -eq 0 -a ! -s "$tmp/err" && cmp -s "$tmp/out" "$tmp/exact"
ok 'give the text back, to the last byte'
run "$tokenize" -j -m "$m" -f "$tmp/exact"
test $rc -eq 0 && grep -q "\"n_tokens\": $count," "$tmp/out" &&
    test "$(grep -c '"id": ' "$tmp/out")" -eq "$count" &&
    grep -q '"hex": "ff"' "$tmp/out" && grep -q '"size": 310,' "$tmp/out"
ok 'as JSON, with the bytes that are no UTF-8'
run "$tokenize" -m "$m" -f "$tmp/exact" --parse-special --no-bos
test $rc -eq 0 && grep -q '^2	</s>$' "$tmp/out" &&
    ! grep -q '<s>' "$tmp/out"
ok 'with texts of control tokens read, and nothing round the text'
for ids in '1 x' '1 -2' '1,2' '1 99999999999999999999' '3 2048'; do
    echo "$ids" >"$tmp/bad"
    run "$tokenize" -m "$m" -f "$tmp/bad" --detokenize
    fails_with 1 ': byte [012]: expected \|: byte [0-9]: token id [0-9]*, expected less than 2048, the size of the vocabulary (id number 2 of the file)$'
    ok "no ids: $ids"
done

mkdir "$tmp/fix" && "$builddir/tests/mkfix" "$tmp/fix" || exit 99
printf 'zzxy' >"$tmp/word"
b=$tmp/fix/model-pre-unknown.gguf
run "$tokenize" -m "$b" -f "$tmp/word"
fails_with 1 "tokenizer.ggml.pre '.*' is not a way to cut texts.*; like it are '.*' and '"
ok 'an unknown name of a way to cut words: names like it'
run "$tokenize" -m "$b" -f "$tmp/word" --no-bos --pre qwen2
test $rc -eq 0 && printf '261\tzzxy\n' | cmp -s - "$tmp/out"
ok 'another name given in its place'
run "$tokenize" -m "$m" -f "$tmp/word" --pre qwen2
test $rc -eq 0 && grep -q "'qwen2' is not used" "$tmp/err"
ok 'which is no use where words are not cut by names'

run "$tokenize" -m "$m" -f "$tmp/word" --tokenize
test $rc -eq 0 && test "$(head -n 1 "$tmp/out")" = "1	<s>"
ok '--tokenize, which is so anyway, is accepted'
for args in '' "-m $m" "-f $t" "-m $m -f $t --no-bos --detokenize" \
    "-m $m -f $t --detokenize --parse-special" "-m $m -f $t more" \
    "-m $m -f $t -c 64"; do
    # shellcheck disable=SC2086
    wrong_usage "$tokenize" $args
done
run "$tokenize" -m "$m" -f "$tmp/te[x]t"
cp "$tmp/out" "$tmp/by-pattern"
run "$tokenize" -m "$m" -f "$t"
cmp -s "$tmp/out" "$tmp/by-pattern" && test -s "$tmp/out"
ok 'a pattern names the text'
wrong_usage "$tokenize" -m "$m" -f "$t" -f "$tmp/exact"
done_testing
