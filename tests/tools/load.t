#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ppl: options for loading a model.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
t=$tmp/text
head -c 2000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"

figure() # the perplexity, with all digits
{
    run "$ppl" -q -j -m "$m" -f "$t" -c 64 --chunks 2 "$@"
    sed -n 's/.*"ppl": \([0-9.e+]*\).*/\1/p' "$tmp/out"
}

# --- positions ------------------------------------------------------------
while IFS='|' read -r options kv; do
    # shellcheck disable=SC2046,SC2086
    a=$(figure $options)
    # shellcheck disable=SC2046
    b=$(figure $(for x in $kv; do echo "--override-kv llama.rope.$x"; done))
    test -n "$a" -a "$a" = "$b" -a "$a" != "$(figure)"
    ok "$options: the digits of such keys"
done <<'END'
--rope-freq-base 500|freq_base=float:500
--rope-scale 4|scaling.factor=float:4
--rope-freq-scale 0.25|scaling.factor=float:4
--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32|scaling.type=str:yarn scaling.factor=float:4 scaling.original_context_length=int:32
--rope-scaling yarn --rope-scale 4 --yarn-ext-factor 0|scaling.type=str:yarn scaling.factor=float:4 scaling.yarn_ext_factor=float:0
--rope-scaling yarn --rope-scale 4 --yarn-attn-factor 2 --yarn-beta-fast 8 --yarn-beta-slow 2|scaling.type=str:yarn scaling.factor=float:4 scaling.yarn_attn_factor=float:2 scaling.yarn_beta_fast=float:8 scaling.yarn_beta_slow=float:2
END
run "$ppl" -m "$m" -f "$t" -c 64 --window 7
test $rc -eq 1 -a ! -s "$tmp/out" && grep -q "'llama' have no windows" "$tmp/err"
ok 'a window of a model that has none is refused'
run "$ppl" -m "$m" -f "$t" -c 64 --yarn-beta-fast 7
test $rc -eq 1 && grep -q 'yarn_beta_fast has an effect with the scaling yarn' "$tmp/err"
ok 'so are numbers of YaRN without YaRN'
run "$ppl" -m "$m" -f "$t" -c 64 --rope-scale 2 --rope-freq-scale 2
test $rc -eq 2
ok 'wrong usage: two scales'

# --- values of keys -------------------------------------------------------
plain=$(figure)
test -n "$plain"
ok "the figure of the model as it is: $plain"
changed=$(figure --override-kv llama.rope.freq_base=float:500)
test -n "$changed" -a "$changed" != "$plain"
ok "another base of positions: $changed"
"$bin/gguf-edit" -q -o "$tmp/edited.gguf" \
    --set llama.rope.freq_base=f32:500 "$m" >"$tmp/out" 2>"$tmp/err"
run "$ppl" -q -j -m "$tmp/edited.gguf" -f "$t" -c 64 --chunks 2
test "$(sed -n 's/.*"ppl": \([0-9.e+]*\).*/\1/p' "$tmp/out")" = "$changed"
ok 'the digits of a file that gguf-edit gave the same value'
"$bin/gguf-split" --split --split-max-tensors 6 "$m" "$tmp/split" \
    >"$tmp/out" 2>"$tmp/err"
run "$ppl" -q -j -m "$tmp/split" -f "$t" -c 64 --chunks 2 \
    --override-kv llama.rope.freq_base=float:500
test "$(sed -n 's/.*"ppl": \([0-9.e+]*\).*/\1/p' "$tmp/out")" = "$changed"
ok 'the same of a split model'
test "$(figure --override-kv llama.rope.freq_base=float:3 \
    --override-kv llama.rope.freq_base=float:500)" = "$changed"
ok 'of one key the last value counts'
run "$ppl" -m "$m" -f "$t" -c 64 --chunks 2 --override-kv llama.ropes=int:1
test $rc -eq 0 && grep -q "'llama.ropes' is given a value that no" "$tmp/err"
ok 'a key that nothing reads is warned of'
run "$ppl" -m "$m" -f "$t" -c 80 --override-kv llama.context_length=int:70
test $rc -eq 0 && grep -q 'but the model was trained on at most' "$tmp/err" &&
    test "$(wc -l <"$tmp/err")" -eq 1
ok 'int has the type that the file has'
bos=$("$bin/gguf-info" --key tokenizer.ggml.bos_token_id "$m")
run "$bin/gguf-tokenize" -m "$m" -f "$t"
test "$(head -n 1 "$tmp/out" | cut -f1)" = "$bos"
ok "a text begins with token $bos"
run "$bin/gguf-tokenize" -m "$m" -f "$t" \
    --override-kv tokenizer.ggml.bos_token_id=int:$((bos + 1))
test $rc -eq 0 -a "$(head -n 1 "$tmp/out" | cut -f1)" = $((bos + 1))
ok 'with another BOS by that one'

while IFS='|' read -r kv message; do
    run "$ppl" -m "$m" -f "$t" -c 64 --chunks 2 --override-kv "$kv"
    test $rc -eq 1 -a ! -s "$tmp/out" && grep -q -e "$message" "$tmp/err" &&
        grep -q 'nothing was evaluated; --force does it anyway' "$tmp/err"
    ok "refused: $kv"
    run "$bin/gguf-tokenize" -m "$m" -f "$t" --override-kv "$kv"
    test $rc -eq 1 -a ! -s "$tmp/out" && grep -q -e "$message" "$tmp/err"
    ok "and by gguf-tokenize: $kv"
done <<'END'
llama.embedding_length=int:16|key 'llama.embedding_length'\|refused: tensor '.*' has shape
general.architecture=str:gpt2|refused: key 'general.architecture': .* would become .*gpt2
llama.context_length=str:long|key 'llama.context_length': .* would become .*long.*: str, was u32
tokenizer.ggml.bos_token_id=int:99999|'tokenizer.ggml.bos_token_id' is 99999, expected a token from 0 to
general.alignment=int:64|key 'general.alignment': 32 would become 64
END
run "$ppl" -m "$m" -f "$t" -c 64 --chunks 2 --force \
    --override-kv llama.rope.freq_base=u32:500
test $rc -eq 0 && test "$(sed -n 's/^Final .* PPL = //p' "$tmp/out")" &&
    grep -q "warning: .*freq_base.*u32, was f32" "$tmp/err"
ok 'another type that an evaluation can read, by force'
run "$ppl" -m "$m" -f "$t" -c 64 --force --override-kv general.alignment=int:64
test $rc -eq 1 && grep -q "'general.alignment' describes the layout" "$tmp/err"
ok 'not even by force: how the file is laid out'
for kv in a a=int a=int:x a=u8:256 a=bool:1 a=float:x a=what:1 a=arr:1; do
    run "$ppl" -m "$m" -f "$t" --override-kv "$kv"
    test $rc -eq 2 -a ! -s "$tmp/out" && grep -q -e "--override-kv: .*'a" "$tmp/err"
    ok "wrong usage: --override-kv $kv"
done

# --- weights in memory ----------------------------------------------------
for how in --prefetch --no-mmap --mlock '--no-mmap --mlock' \
    '--prefetch --no-check' '--no-mmap -t 3'; do
    # shellcheck disable=SC2086
    test "$(figure $how)" = "$plain" -a ! -s "$tmp/err"
    ok "the same digits: $how"
    # shellcheck disable=SC2086
    run "$ppl" -q -j -m "$tmp/split" -f "$t" -c 64 --chunks 2 $how
    test "$(sed -n 's/.*"ppl": \([0-9.e+]*\).*/\1/p' "$tmp/out")" = "$plain"
    ok "of a split model, too: $how"
done
# --- where weights lie ----------------------------------------------------
for how in '-ot ffn=host' '-ot blk\.0=CPU -ot .=host' '--override-tensor=.=HOST'; do
    # shellcheck disable=SC2086
    test "$(figure $how)" = "$plain" -a ! -s "$tmp/err"
    ok "the same digits: $how"
done
run "$ppl" -m "$m" -f "$t" -c 64 --chunks 1 -ot 'exps=CPU'
test $rc -eq 1 && grep -q "pattern 'exps' matches no weight" "$tmp/err"
ok 'a pattern that matches nothing'
run "$ppl" -m "$m" -f "$t" -c 64 --chunks 1 -ot 'ffn=CUDA0'
test $rc -eq 1 &&
    grep -q "unknown type of memory 'CUDA0', expected one of: host$" "$tmp/err"
ok 'memory that is not there: the names of what is'
run "$ppl" -m "$m" -f "$t" -c 64 --chunks 1 -ot 'ff(n=host'
test $rc -eq 1 && grep -q "pattern 'ff(n': missing" "$tmp/err"
ok 'a pattern that is none'
for how in ffn ffn= =host; do
    run "$ppl" -m "$m" -f "$t" -ot "$how"
    test $rc -eq 2 && grep -q "'$how' is not PATTERN=BUFFER" "$tmp/err"
    ok "wrong usage: -ot $how"
done
run "$ppl" -m "$m" -f "$t" --prefetch --no-mmap
test $rc -eq 2
ok 'wrong usage: --prefetch --no-mmap'
done_testing
