#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-eval: graphs, times of operations, and rows of logits.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
eval=$bin/gguf-eval
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
t=$tmp/text
head -c 4000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"

# Times of the parts add up to the total.
run "$eval" -m "$m" -f "$t" -c 128 --chunks 5 -t 2 --profile
test $rc -eq 0 && grep -q '^chunks *5 of 128 tokens' "$tmp/out" &&
    grep -q '^time .* tokens/s$' "$tmp/out"
ok '--profile: what is evaluated, and how fast'
sed -n 's/^profile  *\([0-9]*\) operations in \([0-9.]*\) s$/\1 \2/p' "$tmp/out" >"$tmp/all"
sed -n '/^operation /,/^$/p' "$tmp/out" | "$AWK" '
    NR == FNR { n = $1; seconds = $2; next }
    NF == 7 && $2 == "CPU" { k += $3; s += $4; p += $5; m += $1 == "matmul" && $6 > 0 && $7 > 0 }
    END { exit !(k == n && n > 100 && s > 0.98 * seconds && s < 1.02 * seconds &&
                 p > 99 && p < 101 && m == 1) }' "$tmp/all" -
ok 'counts, seconds and shares of all operations add up'
sed -n '/^ *layer /,$p' "$tmp/out" | "$AWK" '
    NR == FNR { seconds = $2; next }
    FNR > 1 { s += $2; n++; other += $1 == "other" }
    END { exit !(s > 0.98 * seconds && s < 1.02 * seconds && n > 2 && other == 1) }' \
    "$tmp/all" -
ok 'those of layers, too'
run "$eval" -m "$m" -f "$t" -c 128 --chunks 2 -t 1 --profile --json
grep -q '"profile": {' "$tmp/out" && grep -q '"operation": "matmul",' "$tmp/out" &&
    grep -q '"flops": [1-9]' "$tmp/out" && ! grep -q '^operation' "$tmp/out"
ok '--profile --json: a member of the document'
run "$eval" -m "$m" -c 128 --print-graph
test $rc -eq 0 -a "$(grep -c '^pass: [0-9]* nodes, [0-9]* leaves$' "$tmp/out")" -eq 1 &&
    grep -q '^logits: 1 node, 2 leaves$' "$tmp/out" &&
    grep -q "^leaf [0-9]*: none 'tokens' I32 \[128\] input" "$tmp/out"
ok 'what is computed, without a text: a pass, and logits'
run "$eval" -m "$m" -c 128 --print-graph=dot
test $rc -eq 0 -a "$(grep -c '^digraph gguf {$' "$tmp/out")" -eq 1 -a \
    "$(grep -c '^subgraph cluster_[a-z]* {$' "$tmp/out")" -eq 2 -a \
    "$(grep -c '^}$' "$tmp/out")" -eq 3
ok 'for Graphviz: one graph with two clusters'
if command -v dot >/dev/null 2>&1; then
    dot -Tcanon -o /dev/null "$tmp/out"
    ok 'which reads it'
else
    skip 'which reads it' 'no dot'
fi
run "$eval" -m "$m" -c 128 --print-assignments --print-plan
test $rc -eq 0 && grep -q '^split 0: CPU, ' "$tmp/out" &&
    grep -q '^buffer 0: CPU, [0-9]* bytes$' "$tmp/out" &&
    grep -q "^leaf [0-9]*: 'mask' .*: buffer 0, bytes [0-9]* to [0-9]*$" "$tmp/out"
ok 'assignments, and where tensors lie'

if "$eval" -m "$m" --print-plan --backend nothing 2>&1 | grep -q BLAS; then
    run "$eval" -m "$m" -c 128 --print-assignments --backend BLAS,CPU
    test $rc -eq 0 && grep -q '^split [0-9]*: BLAS, ' "$tmp/out"
    ok 'assignments of two backends'
else
    skip 'assignments of two backends' 'built without BLAS'
fi

# Logits of tokens, row by row.
saves() # arguments after the ids; the rows are in $tmp/rows
{
    rm -f "$tmp/rows"
    run "$eval" -m "$m" --tokens "$tmp/some" --save-logits "$tmp/rows" "$@"
}

left_alone()
{
    test "$(cat "$tmp/rows" 2>&1)" = before &&
        test "$(find "$tmp" -name '*rows*' | wc -l)" -eq 1
}

"$bin/gguf-tokenize" -m "$m" -f "$t" | cut -f1 >"$tmp/ids"
head -n 70 "$tmp/ids" | tr '\n' ' ' >"$tmp/some"
saves -c 128
test $rc -eq 0 -a ! -s "$tmp/err" &&
    grep -q '^tokens .*: 70, in a context of 128$' "$tmp/out" &&
    grep -q '^rows .*: 70 of 2048 logits, f32, little-endian$' "$tmp/out" &&
    test "$(wc -c <"$tmp/rows")" -eq $((70 * 2048 * 4))
ok 'a row of logits for each token'
cp "$tmp/rows" "$tmp/rows.64"
for args in "-b 1" "-b 7" "-ub 1" "-ub 7 -t 1" "-b 64 -t 2" "-c 70" \
    "-c 70 -b 69"; do
    # shellcheck disable=SC2086
    saves $args
    test $rc -eq 0 && cmp -s "$tmp/rows" "$tmp/rows.64"
    ok "the same bytes: $args"
done
head -n 69 "$tmp/ids" >"$tmp/some"
saves -c 128
head -c $((69 * 2048 * 4)) "$tmp/rows.64" | cmp -s - "$tmp/rows"
ok 'no row depends on later tokens'
rm "$tmp/rows.64"
# Not all logits are 0, and the most likely next token is often right.
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import array, math, sys
ids = [int(x) for x in open(sys.argv[1]).read().split()]
rows = array.array("f", open(sys.argv[2], "rb").read())
if sys.byteorder == "big":
    rows.byteswap()
def nll(i):
    row = rows[i * 2048:(i + 1) * 2048]
    top = max(row)
    return top + math.log(sum(math.exp(x - top) for x in row)) - row[ids[i + 1]]
mean = sum(nll(i) for i in range(len(ids) - 1)) / (len(ids) - 1)
assert mean < 6, mean  # of ln 2048 = 7.6 for guesses' "$tmp/some" "$tmp/rows"
    ok 'which predict the next token'
else
    skip 'which predict the next token' 'no python3'
fi
saves -c 128 --json
test $rc -eq 0 && grep -q '"of": "logits"' "$tmp/out" &&
    grep -q '"width": 2048' "$tmp/out" && grep -q '"rows": 69' "$tmp/out"
ok 'as JSON'
for how in '-c 16384=512' '-c 32768=256' '-c 32768 -ub 300=300'; do
    # shellcheck disable=SC2086
    run "$eval" -q -j -m "$m" --tokens "$tmp/some" --save-logits "$tmp/rows" \
        ${how%=*}
    test $rc -eq 0 && grep -q "\"ubatch_size\": ${how#*=}," "$tmp/out"
    ok "how many tokens at once, ${how%=*}"
done
echo before >"$tmp/rows"
run "$eval" -q -m "$m" --tokens "$tmp/some" --save-logits "$tmp/rows" -c 128
test $rc -eq 0 -a "$(wc -c <"$tmp/rows")" -eq $((69 * 2048 * 4))
ok 'rows that were there are replaced'

"$bin/gguf-edit" -qf --set tokenizer.ggml.model=no_vocab -o "$tmp/none.gguf" "$m"
cp "$tmp/rows" "$tmp/known"
run "$eval" -m "$tmp/none.gguf" --tokens "$tmp/some" --save-logits "$tmp/rows" \
    -c 128
test $rc -eq 0 && cmp -s "$tmp/rows" "$tmp/known"
ok 'a model without a vocabulary'
rm "$tmp/known"

bad_ids() # ids, arguments, message
{
    printf "$1" >"$tmp/some"
    echo before >"$tmp/rows"
    # shellcheck disable=SC2086
    run "$eval" -m "$m" --tokens "$tmp/some" --save-logits "$tmp/rows" $2
    fails_with 1 "$3" && left_alone
    ok "no rows, and the file as it was: $3"
}
bad_ids '1 2\n2048' '' 'some: byte 4: token id 2048, expected less than 2048, the size of the vocabulary (id number 3 of the file)$'
bad_ids '1 -2' '' 'some: byte 2: expected a token id, a decimal number$'
bad_ids '1 0x2' '' 'some: byte 2: expected a token id, a decimal number$'
bad_ids '1 99999999999999999999999999999999' '' \
    'byte 2: token id 9\{24\}\.\.\., expected less than 2048, the size of the vocabulary (id number 2 of the file)$'
bad_ids '' '' 'some: no token ids, expected at least one$'
bad_ids ' \n' '' 'some: no token ids, expected at least one$'
bad_ids '1 2 3 4 5' '-c 4' \
    'some: 5 token ids, expected at most 4, the context length: give a larger -c$'
echo before >"$tmp/rows"
run "$eval" -m "$m" --tokens "$tmp/rows" --save-logits "$tmp/rows"
fails_with 1 "rows' would be both --tokens and --save-logits" && left_alone
ok 'rows over the ids'
cp "$m" "$tmp/copy.gguf"
run "$eval" -m "$tmp/copy.gguf" --tokens "$tmp/some" --save-logits \
    "$tmp/copy.gguf"
fails_with 1 "copy.gguf' would be both --model and --save-logits" &&
    cmp -s "$m" "$tmp/copy.gguf"
ok 'rows over the model'
run "$eval" -m "$m" --tokens "$tmp/some" --save-logits "$tmp/nowhere/x"
fails_with 1 "nowhere/x: "
ok 'rows where there is no folder'

for args in '' "-m $m" "-f $t --profile" "-m $m --profile" "-m $m -f $t" \
    "-m $m --tokens $t" "-m $m --save-logits $tmp/x" \
    "-m $m --tokens $t --save-logits -" "-m $m --print-graph=svg" \
    "-m $m --tokens $t --save-logits $tmp/x --print-plan" \
    "-m $m --tokens $t --save-logits $tmp/x -f $t --profile" \
    "-m $m --json --print-plan" "-m $m --print-plan --chunks 2" \
    "-m $m --print-plan more"; do
    # shellcheck disable=SC2086
    wrong_usage "$eval" $args
done
done_testing
