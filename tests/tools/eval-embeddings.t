#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-eval --save-embeddings: a vector for each line.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
eval=$bin/gguf-eval
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
n_embd=$("$bin/gguf-info" --key llama.embedding_length "$m")
printf 'She had been forced into prudence\nin her youth\r\n\nshe learned romance' \
    >"$tmp/text"

embed() # OUT OPTION...: rows of the text
{
    out=$tmp/$1
    shift
    run "$eval" -m "$m" -f "$tmp/text" --save-embeddings "$out" "$@"
}
size() # of a file
{
    wc -c <"$1" | tr -d ' '
}
row() # FILE I: the floats of a row, a line each
{
    od -An -v -tf4 -w4 -j $((4 * n_embd * $2)) -N $((4 * n_embd)) "$1"
}

for kind in mean cls last rank; do
    embed $kind --pooling $kind
    test $rc -eq 0 -a "$(size "$tmp/$kind")" -eq $((4 * 4 * n_embd)) &&
        grep -q "^pooling $kind\$" "$tmp/out" &&
        grep -q "^rows .*: 4 of $n_embd embeddings, f32, little-endian\$" \
            "$tmp/out"
    ok "$kind: a row for each line, of $n_embd numbers"
done
cmp -s "$tmp/cls" "$tmp/rank" && ! cmp -s "$tmp/mean" "$tmp/last"
ok 'a model without a classifier ranks by the first token'
embed threads --pooling mean -t 3 -ub 4 && cmp -s "$tmp/mean" "$tmp/threads"
ok 'no digit depends on threads and micro-batches'

embed none --pooling none
test $rc -eq 0 && grep -q '^pooling none$' "$tmp/out" &&
    n_tok=$(sed -n "s/^rows .*: \([0-9]*\) of $n_embd embeddings, .*/\1/p" \
        "$tmp/out") && test "$n_tok" -gt 8 -a \
    "$(size "$tmp/none")" -eq $((4 * n_tok * n_embd))
ok 'none: a row for each token'
row "$tmp/none" $((n_tok - 1)) >"$tmp/a"
row "$tmp/last" 3 >"$tmp/b"
cmp -s "$tmp/a" "$tmp/b" && row "$tmp/none" 0 >"$tmp/a" &&
    row "$tmp/cls" 0 >"$tmp/b" && cmp -s "$tmp/a" "$tmp/b"
ok 'of which the first is what cls gives, and the last what last gives'
embed each --pooling none -t 3 -ub 4 && cmp -s "$tmp/none" "$tmp/each"
ok 'with the same digits in pieces'

printf 'in her youth' >"$tmp/text"
embed one --pooling mean
row "$tmp/mean" 1 >"$tmp/a"
row "$tmp/one" 0 >"$tmp/b"
test $rc -eq 0 && cmp -s "$tmp/a" "$tmp/b"
ok 'a line has its vector whatever else is in the text, and \r is no part of it'
embed unit --pooling mean --normalize -j
test $rc -eq 0 && grep -q '"of": "embeddings"' "$tmp/out" &&
    grep -q '"pooling": "mean"' "$tmp/out" &&
    row "$tmp/unit" 0 | paste - "$tmp/b" | awk '
        { unit += $1 * $1; both += $1 * $2; all += $2 * $2 }
        END { d = both / sqrt(all) - 1; l = unit - 1
              exit !(d * d < 1e-9 && l * l < 1e-9) }'
ok 'normalised: the same direction, of length 1'

# --- refused lines --------------------------------------------------------
echo kept >"$tmp/kept"
embed kept
test $rc -eq 1 && grep -q 'has no pooling_type: give --pooling' "$tmp/err" &&
    test "$(cat "$tmp/kept")" = kept
ok 'a model that says nothing of pooling'
run "$eval" -m "$m" -f "$tmp/text" --save-embeddings "$tmp/said" \
    --override-kv llama.pooling_type=int:1 --force
test $rc -eq 0 && cmp -s "$tmp/said" "$tmp/one"
ok 'one that says it'
head -c 600 "$srcdir/share/tiny-llama/persuasion.txt" | tr '\n' ' ' >"$tmp/text"
embed kept --pooling mean -c 16
test $rc -eq 1 && grep -q 'line 1 is longer than the context' "$tmp/err" &&
    test "$(cat "$tmp/kept")" = kept
ok 'a line that is too long'
: >"$tmp/text"
embed kept --pooling mean
test $rc -eq 1 && grep -q 'is missing' "$tmp/err"
ok 'a text without lines'
run "$eval" -m "$m" -f "$tmp/text" --save-embeddings "$tmp/text" --pooling mean
test $rc -eq 1 && grep -q 'would be both --file and --save-embeddings' "$tmp/err"
ok 'an output that is the input'
for options in '--pooling mean' --normalize \
    "--save-embeddings $tmp/x --print-plan" \
    "--save-embeddings $tmp/x --chunks 2" \
    "--save-embeddings $tmp/x --pooling max"; do
    # shellcheck disable=SC2086
    run "$eval" -m "$m" -f "$tmp/text" $options
    test $rc -eq 2 -a ! -e "$tmp/x"
    ok "wrong usage: $options"
done
done_testing
