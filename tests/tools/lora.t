#!/bin/sh
# SPDX-License-Identifier: MIT
# LoRA adapters: gguf-ppl evaluates with them, gguf-quantize merges them.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
mklora=$builddir/tests/tools/mklora
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
t=$tmp/text
head -c 2000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"
"$mklora" "$tmp/a.gguf" "$m" 4 8 && "$mklora" "$tmp/b.gguf" "$m" 2 0 attn &&
    "$mklora" "$tmp/c=1.gguf" "$m" 3 3 ffn_up || exit 99

nll() # of a run with these options
{
    run "$ppl" -j -m "$m" -f "$t" -c 128 --chunks 2 -t 1 "$@"
    test $rc -eq 0 && grep '"chunk_nll"' "$tmp/out"
}

plain=$(nll)
a=$(nll --lora "$tmp/a.gguf")
test -n "$a" -a "$a" != "$plain"
ok 'an adapter counts'
test "$plain" = "$(nll --lora "$tmp/a.gguf=0")"
ok 'times 0 it does not: the same digits'
test "$a" = "$(nll --lora "$tmp/a.gguf=1")" &&
    test "$a" = "$(nll --lora-scaled "$tmp/a.gguf:1")"
ok 'a scale, and as llama.cpp has it'
half=$(nll --lora "$tmp/a.gguf=0.5")
test -n "$half" -a "$half" != "$a" -a "$half" != "$plain"
ok 'half of it'
both=$(nll --lora "$tmp/a.gguf=0.5" --lora "$tmp/b.gguf=-1")
test -n "$both" -a "$both" != "$half"
ok 'two of them'
grep -A 9 '"lora"' "$tmp/out" | tr -d ' \n' |
    grep -q '{"file":"[^"]*/a.gguf","scale":0.5},{"file":"[^"]*/b.gguf","scale":-1}\]'
ok 'JSON says which, and how much'
test -n "$(nll --lora "$tmp/c=1.gguf")"
ok 'a name with = in it'
run "$ppl" -m "$m" -f "$t" -c 128 --chunks 1 -t 2 --lora "$tmp/a.gguf=2"
test $rc -eq 0 &&
    grep -q '^lora    .*/a.gguf: 44 weights, rank 4, scale 2$' "$tmp/out"
ok 'and so do the settings'
run "$ppl" -m "$m" -f "$t" --lora "$tmp/none.gguf"
fails_with 1 'none.gguf: '
ok 'one that is not there'
run "$ppl" -m "$m" -f "$t" --lora "$m"
fails_with 1 "not a LoRA adapter: general.type is 'model'"
ok 'a model is none'
cp "$tmp/a.gguf" "$tmp/copy.gguf"
echo 1 2 3 >"$tmp/ids"
run "$bin/gguf-eval" -m "$m" --tokens "$tmp/ids" --save-logits "$tmp/copy.gguf" \
    --lora "$tmp/copy.gguf"
fails_with 1 "copy.gguf' would be both --lora and --save-logits" &&
    cmp -s "$tmp/a.gguf" "$tmp/copy.gguf"
ok 'rows over an adapter'

"$mklora" "$tmp/n.gguf" "$m" 2 0 attn blk.0.attn_norm.weight || exit 99
b=$(nll --lora "$tmp/b.gguf")
test -n "$b" -a "$b" = "$(nll --lora "$tmp/n.gguf")" &&
    grep -q 'n.gguf: warning: 1 norm .* has no effect, as in llama.cpp' \
        "$tmp/err"
ok 'a norm beside pairs has no effect, and that is said'
run "$bin/gguf-quantize" --lora "$tmp/b.gguf" "$m" "$tmp/qb.gguf" Q8_0
run "$bin/gguf-quantize" --lora "$tmp/n.gguf" "$m" "$tmp/qn.gguf" Q8_0
test $rc -eq 0 && grep -q 'warning: 1 norm of adapters not merged' "$tmp/err" &&
    run "$bin/gguf-info" --diff "$tmp/qb.gguf" "$tmp/qn.gguf" &&
    grep -c '^[-+]' "$tmp/out" >"$tmp/n" && test "$(cat "$tmp/n")" -le 2
ok 'nor is it merged, which is said, too'

# control vectors
"$mklora" "$tmp/v.gguf" "$m" control 5 && "$mklora" "$tmp/v9.gguf" "$m" control 9 ||
    exit 99
v=$(nll --control-vector "$tmp/v.gguf")
test -n "$v" -a "$v" != "$plain" &&
    test "$v" = "$(nll --control-vector-scaled "$tmp/v.gguf:1")" &&
    test "$v" = "$(nll --control-vector "$tmp/v.gguf" \
        --control-vector-layer-range 1,99)"
ok 'a control vector counts'
few=$(nll --control-vector "$tmp/v.gguf=2" --control-vector-layer-range 2,3)
test -n "$few" -a "$few" != "$plain" -a "$few" != "$v"
ok 'after some layers, twice'
test "$plain" = "$(nll --control-vector "$tmp/v.gguf=0")"
ok 'times 0: the same digits'
run "$ppl" -m "$m" -f "$t" -c 128 --chunks 1 --lora "$tmp/a.gguf" \
    --control-vector "$tmp/v.gguf=0.5" --control-vector-layer-range 2,9
test $rc -eq 0 && grep -q '^lora    .*/a.gguf: 44 weights' "$tmp/out" &&
    grep -q '^control .*/v.gguf: 4 layers, scale 0.5$' "$tmp/out"
ok 'beside an adapter; the settings say so'
run "$ppl" -m "$m" -f "$t" --control-vector "$tmp/v9.gguf"
fails_with 1 "'direction.6' belongs to a layer that the model lacks"
ok 'too many layers'
run "$ppl" -m "$m" -f "$t" --lora "$tmp/v.gguf"
fails_with 1 'v.gguf: is a control vector, expected a LoRA adapter: use --control-vector'
ok 'one for the other'

# adapters of several shards
split=$bin/gguf-split quantize=$bin/gguf-quantize
"$split" -q --split-max-tensors 30 "$tmp/a.gguf" "$tmp/as" &&
    "$split" -q --split-max-tensors 2 "$tmp/v.gguf" "$tmp/vs" || exit 99
test "$a" = "$(nll --lora "$tmp/as")" &&
    test "$a" = "$(nll --lora "$tmp/as-00002-of-00003.gguf")" &&
    test "$v" = "$(nll --control-vector "$tmp/vs")"
ok 'any shard of an adapter stands for the whole'
"$quantize" -q --lora "$tmp/a.gguf" "$m" "$tmp/q1.gguf" Q8_0 &&
    "$quantize" -q --lora "$tmp/as-00001-of-00003.gguf" "$m" "$tmp/q2.gguf" Q8_0 &&
    "$bin/gguf-info" --diff --tensors "$tmp/q1.gguf" "$tmp/q2.gguf"
ok 'and is merged whole'
cp "$tmp/as-00002-of-00003.gguf" "$tmp/shard.gguf"
run "$quantize" -q -f --lora "$tmp/as" "$m" "$tmp/as-00002-of-00003.gguf" Q8_0
fails_with 1 'would be both' && cmp -s "$tmp/as-00002-of-00003.gguf" "$tmp/shard.gguf"
ok 'no output replaces a shard of it'
rm "$tmp/as-00002-of-00003.gguf"
run "$ppl" -m "$m" -f "$t" --lora "$tmp/as-00001-of-00003.gguf"
fails_with 1 "1 of 3 shards of 'as' is missing: 2" &&
    run "$quantize" --lora "$tmp/as" "$m" "$tmp/q3.gguf" Q8_0 &&
    fails_with 1 "1 of 3 shards of 'as' is missing: 2"
ok 'one that lacks a shard is refused'

ppl_of() # of a model with these options
{
    run "$ppl" -f "$t" -c 128 --chunks 4 -t 1 "$@"
    test $rc -eq 0 && sed -n 's/^Final estimate: PPL = \([0-9.]*\) .*/\1/p' "$tmp/out"
}
run "$quantize" -q --lora "$tmp/a.gguf=0.5" --lora-scaled "$tmp/b.gguf:-1" \
    "$m" "$tmp/merged.gguf" F32 2
test $rc -eq 0 -a ! -s "$tmp/out" -a ! -s "$tmp/err"
ok 'two adapters are merged'
with=$(ppl_of -m "$m" --lora "$tmp/a.gguf=0.5" --lora "$tmp/b.gguf=-1")
merged=$(ppl_of -m "$tmp/merged.gguf")
plain=$(ppl_of -m "$m")
test -n "$with" -a "$with" != "$plain" &&
    awk -v a="$with" -v b="$merged" 'BEGIN { exit !((a - b) ^ 2 <= 4e-8) }'
ok "which gives the same perplexity: $with, $merged (without: $plain)"
"$bin/gguf-info" "$tmp/merged.gguf" >"$tmp/out"
grep -q 'quantize.lora.files  *\["a.gguf", "b.gguf"\]' "$tmp/out" &&
    grep -q 'quantize.lora.scales  *\[0.5, -1\]' "$tmp/out"
ok 'metadata say what was merged'
run "$quantize" -q -n --explain --lora "$tmp/c=1.gguf" "$m" "$tmp/x.gguf" COPY
test $rc -eq 0 -a "$(grep -c 'adapters merged' "$tmp/out")" -eq 6 &&
    grep -q 'blk.0.ffn_up.weight .* F16 *-> F16 .*; adapters merged' "$tmp/out" &&
    test ! -e "$tmp/x.gguf"
ok 'the plan says which tensors are encoded again'
run "$quantize" -q -n --json --lora "$tmp/c=1.gguf" "$m" "$tmp/x.gguf" Q8_0
test $rc -eq 0 -a "$(grep -c '"merged": true' "$tmp/out")" -eq 6
ok 'and so does JSON'
run "$quantize" -q --lora "$m" "$m" "$tmp/x.gguf" Q8_0
fails_with 1 'not a LoRA adapter' && test ! -e "$tmp/x.gguf"
ok 'a model is no adapter'
run "$quantize" -q --lora "$tmp/none.gguf" "$m" "$tmp/x.gguf" Q8_0
fails_with 1 'none.gguf: '
ok 'one that is not there'
run "$quantize" -q -f --lora "$tmp/copy.gguf" "$m" "$tmp/copy.gguf" Q8_0
test $rc -eq 1 && cmp -s "$tmp/a.gguf" "$tmp/copy.gguf"
ok 'the output over an adapter'
# a part of another run is not resumed
"$quantize" -q --resume --lora "$tmp/a.gguf" "$m" "$tmp/r.gguf" Q4_K_M 1 &
pid=$!
while test ! -e "$tmp/r.gguf.resume" && kill -0 $pid 2>/dev/null; do :; done
kill -KILL $pid 2>/dev/null
wait $pid 2>/dev/null
if test -e "$tmp/r.gguf.resume" && test ! -e "$tmp/r.gguf"; then
    run "$quantize" -q --resume --lora "$tmp/a.gguf=2" "$m" "$tmp/r.gguf" \
        Q4_K_M
    test $rc -eq 1 && grep -q 'r.gguf' "$tmp/err" && test ! -e "$tmp/r.gguf"
    ok 'another scale is another plan'
else
    skip "another scale is another plan" "the run was over before it was killed"
fi
done_testing
