#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-compare --compare-backends: a model on two backends, node by node; and
# command lines that gguf-compare refuses.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
compare=$bin/gguf-compare
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
t=$tmp/text
head -c 4000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"

run "$compare" -q -m "$m" -f "$t" -c 128 --chunks 2 --compare-backends CPU,CPU
test $rc -eq 0 && grep -q '^first *none$' "$tmp/out" &&
    grep -q '^largest *none$' "$tmp/out" &&
    test "$(sed -n 's/^nodes *\([0-9]*\) computed by both.*/\1/p' "$tmp/out")" = \
        "$(sed -n 's/^equal *\([0-9]*\) of them.*/\1/p' "$tmp/out")"
ok 'the CPU compared with itself: every node is equal'
run "$compare" -q -j -m "$m" -f "$t" -c 128 --compare-backends CPU,CPU
test $rc -eq 0 && grep -q '"graphs": 2,' "$tmp/out" &&
    grep -q '"first": {}' "$tmp/out"
ok 'and as JSON'
if "$compare" -m "$m" -f "$t" --compare-backends CPU,nothing 2>&1 |
    grep -q BLAS; then
    run "$compare" -q -m "$m" -f "$t" -c 128 --compare-backends CPU,BLAS
    test $rc -eq 0 && grep -q '^first *none$' "$tmp/out" &&
        grep -q '^largest graph [12], node [0-9]*: matmul .[a-z0-9._]*. F32 \[[0-9, ]*\] of ' "$tmp/out"
    ok 'CPU and BLAS differ by rounding alone'
    run "$compare" -q -m "$m" -f "$t" -c 128 --compare-backends CPU,BLAS \
        --tolerance 0
    test $rc -eq 1 &&
        grep -q "^first *graph 1, node [0-9]*: matmul .* of 'blk" "$tmp/out"
    ok 'and the first node that does is named'
else
    skip 'CPU and BLAS' 'built without BLAS'
fi

for args in '' "-f $t --base $m" "-m $m --base $m" "-m $m -f $t" \
    "-m $m -f $t --compare-backends CPU" \
    "-m $m -f $t --compare-backends CPU,CPU,CPU" \
    "-m $m -f $t --compare-backends CPU,CPU --backend CPU" \
    "-m $m -f $t --compare-backends CPU,CPU --base $m" \
    "-m $m -f $t --compare-backends CPU,CPU --layers" \
    "-m $m -f $t --compare-backends CPU,CPU --tolerance -1" \
    "-m $m -f $t --base $m --tolerance 1" \
    "-m $m -f $t --base $m --time-budget 1" \
    "-m $m -f $t --base $m --layers --bisect" \
    "-m $m -f $t --base-backend CPU --bisect" \
    "-m $m -m $m -f $t --base $m"; do
    # shellcheck disable=SC2086
    wrong_usage "$compare" $args
done
done_testing
