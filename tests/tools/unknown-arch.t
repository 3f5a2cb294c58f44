#!/bin/sh
# SPDX-License-Identifier: MIT
# Models of an unknown architecture: what gguf-info infers, the errors of tools
# that evaluate, and --as. check-as.c and check-parts.c in tests/family try all
# architectures.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
tiny=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
t=$tmp/text new=$tmp/new.gguf
head -c 2000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"

# Rename an architecture and its keys.
set -- --set general.architecture=newarch
for k in $("$bin/gguf-info" -q --metadata "$tiny" |
    sed -n 's/^.* \(llama\.[^ ]*\).*/\1/p'); do
    set -- "$@" --rename "$k=newarch.${k#llama.}"
done
"$bin/gguf-edit" -q -f "$@" -o "$new" "$tiny" 2>"$tmp/err" || exit 99

figures() # what does not depend on the name, the machine and the time
{
    grep -v -e '^model' -e '^time' "$tmp/out"
}

# ------------------------------------------------------------ the error ---

run "$bin/gguf-ppl" -m "$new" -f "$t" -c 128
test $rc -eq 1 -a ! -s "$tmp/out" &&
    grep -q "architecture 'newarch' is not supported by gguf-ppl" "$tmp/err" &&
    grep -q "'llama' comes nearest, with the same tensors and keys: '--as llama'" \
        "$tmp/err"
ok 'the error names the nearest architecture and the option'
grep "as near are" "$tmp/err" | grep "'qwen2'" | grep -q "'internlm2'"
ok 'others that are as near are named'
"$bin/gguf-edit" -q -f --set newarch.attn_logit_softcapping=f32:30 \
    --set newarch.mystery=u32:7 -o "$tmp/keys.gguf" "$new" 2>"$tmp/err"
run "$bin/gguf-ppl" -m "$tmp/keys.gguf" -f "$t" -c 128
test $rc -eq 1 &&
    grep -q "key 'newarch.mystery' is not read by models of architecture" \
        "$tmp/err" &&
    grep -q "comes nearest, with [12] difference" "$tmp/err"
ok 'the error lists what differs'
run "$bin/gguf-quantize" --calibrate "$t" "$new" "$tmp/q.gguf" Q4_0
test $rc -eq 1 -a ! -e "$tmp/q.gguf" && grep -q "'--as llama'" "$tmp/err"
ok 'gguf-quantize --calibrate names it, too'

# ----------------------------------------------------------------- --as ---

run "$bin/gguf-ppl" -m "$tiny" -f "$t" -c 128
figures >"$tmp/want"
run "$bin/gguf-ppl" -m "$new" -f "$t" -c 128 --as llama
test $rc -eq 0 -a ! -s "$tmp/err" && figures | cmp -s - "$tmp/want" &&
    grep -q '^model .*: newarch as llama, ' "$tmp/out"
ok '--as gives the digits of the known architecture'
run "$bin/gguf-ppl" -m "$new" -f "$t" -c 128 --as llama --json
grep -q '"architecture": "newarch"' "$tmp/out" &&
    grep -q '"evaluated_as": "llama"' "$tmp/out"
ok '--json says so'
run "$bin/gguf-ppl" -m "$tmp/keys.gguf" -f "$t" -c 128 --as llama
test $rc -eq 1 -a ! -s "$tmp/out" &&
    grep -q "key 'newarch.attn_logit_softcapping' changes models of other" \
        "$tmp/err"
ok 'a key that other architectures read is refused'
"$bin/gguf-edit" -q -f --delete newarch.attn_logit_softcapping \
    "$tmp/keys.gguf" 2>"$tmp/err"
run "$bin/gguf-ppl" -m "$tmp/keys.gguf" -f "$t" -c 128 --as llama
test $rc -eq 0 && figures | cmp -s - "$tmp/want" &&
    grep -q "warning: key 'newarch.mystery' is not read" "$tmp/err"
ok 'a key that no architecture reads gives a warning'
run "$bin/gguf-ppl" -m "$new" -f "$t" -c 128 --as qwen3
test $rc -eq 1 && grep -q "tensor 'blk.0.attn_k_norm.weight' is missing\|tensor 'blk.0.attn_q_norm.weight' is missing" "$tmp/err"
ok 'a tensor that the architecture requires is missing'
run "$bin/gguf-ppl" -m "$tiny" -f "$t" -c 128 --as qwen2
fails_with 1 "architecture 'llama' is known: its models are not evaluated as those of 'qwen2'"
ok 'a model of a known architecture is refused'
run "$bin/gguf-ppl" -m "$tiny" -f "$t" -c 128 --as llama
test $rc -eq 0 && figures | cmp -s - "$tmp/want"
ok 'unless it is this one'
run "$bin/gguf-ppl" -m "$new" -f "$t" -c 128 --as lama
fails_with 1 "no architecture 'lama' can be evaluated; did you mean 'llama'?"
ok 'an unknown name'
run "$bin/gguf-ppl" -m "$new" -f "$t" -c 128 --as llama \
    --override-kv newarch.rope.freq_base=float:5000
test $rc -eq 0 && ! figures | cmp -s - "$tmp/want"
ok '--override-kv sets keys of the unknown architecture'
run "$bin/gguf-ppl" -m "$new" -f "$t" -c 128 --as llama --window 16
fails_with 1 "models of architecture 'llama' have no windows"
ok 'options have the limits of the known architecture'

echo 1 15 300 7 >"$tmp/ids"
run "$bin/gguf-eval" -m "$new" --as llama --tokens "$tmp/ids" \
    --save-logits "$tmp/a"
a=$rc
run "$bin/gguf-eval" -m "$tiny" --tokens "$tmp/ids" --save-logits "$tmp/b"
test $a -eq 0 -a $rc -eq 0 && cmp -s "$tmp/a" "$tmp/b"
ok 'gguf-eval --as: the same logits'
run "$bin/gguf-imatrix" -q -m "$new" --as llama -f "$t" -c 128 -o "$tmp/a.im.gguf"
a=$rc
run "$bin/gguf-imatrix" -q -m "$tiny" -f "$t" -c 128 -o "$tmp/b.im.gguf"
test $a -eq 0 -a $rc -eq 0 && cmp -s "$tmp/a.im.gguf" "$tmp/b.im.gguf"
ok 'gguf-imatrix --as: the same data'
run "$bin/gguf-imatrix" --as llama "$tmp/a.im.gguf"
test $rc -eq 2
ok 'without a model it is wrong usage'
"$bin/gguf-quantize" -q "$new" "$tmp/q8.gguf" Q8_0 2>"$tmp/err" || exit 99
run "$bin/gguf-compare" --layers --base "$new" -m "$tmp/q8.gguf" --as llama \
    -f "$t" -c 64
test $rc -eq 0 && grep -q 'newarch as llama' "$tmp/out"
ok 'gguf-compare --as: both models'
cat "$t" "$t" "$t" "$t" >"$tmp/long"
run "$bin/gguf-quantize" -q --calibrate "$tmp/long" --calib-tokens 1k --as llama \
    "$new" "$tmp/q.gguf" Q4_0
test $rc -eq 0 -a -s "$tmp/q.gguf"
ok 'gguf-quantize --calibrate --as'
run "$bin/gguf-quantize" -q --as llama "$new" "$tmp/x.gguf" Q4_0
test $rc -eq 2 -a ! -e "$tmp/x.gguf"
ok 'without --calibrate it is wrong usage'

# ------------------------------------------------------------ gguf-info ---

run "$bin/gguf-info" --summary "$new"
test $rc -eq 0 && grep -q '^Unknown architecture: inferred from the tensors' \
    "$tmp/out" && grep -q '^  attention heads  *8  *blk.0.attn_q.weight$' \
    "$tmp/out" && grep -q '^  nearest architectures *llama, qwen2, ' "$tmp/out"
ok 'gguf-info marks what it infers'
"$bin/gguf-edit" -q -f --set newarch.block_count=u32:9 \
    --delete newarch.embedding_length -o "$tmp/odd.gguf" "$new" 2>"$tmp/err"
run "$bin/gguf-info" --summary "$tmp/odd.gguf"
grep -q '^  layers  *6, but the key says 9  *blk.5\.' "$tmp/out" &&
    grep -q '^  embedding width  *256  *token_embd.weight$' "$tmp/out" &&
    grep -q '^  nearest architecture.*([1-9][0-9]* tensors* and [0-9]* keys* differ)$' \
        "$tmp/out"
ok 'a key that says something else is shown'
run "$bin/gguf-info" --json --summary "$new"
grep -A3 '"head_count": {' "$tmp/out" | grep -q '"from": "blk.0.attn_q.weight"' &&
    grep -q '"differences": \[\]' "$tmp/out"
ok 'gguf-info --json has members inferred and nearest'
for f in "$tiny" "$tmp/a.im.gguf"; do
    run "$bin/gguf-info" -q --summary "$f"
    test $rc -eq 0 && ! grep -q -e inferred -e nearest "$tmp/out"
    ok "nothing is inferred about ${f##*/}"
done
run "$bin/gguf-info" --markdown --summary "$new"
grep -q '^| nearest architectures *|' "$tmp/out"
ok 'as Markdown'
done_testing
