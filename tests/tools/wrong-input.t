#!/bin/sh
# SPDX-License-Identifier: MIT
# Inputs of a wrong kind: messages name the kind, and the option or step
# that helps. Also names that folders give to models.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
convert=$bin/gguf-convert
info=$bin/gguf-info
quantize=$bin/gguf-quantize
ppl=$bin/gguf-ppl
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
t=$srcdir/share/tiny-llama/persuasion.txt
"$builddir/tests/tools/mkfolder" "$tmp/hf" &&
    "$builddir/tests/tools/mklora" "$tmp/lora.gguf" "$m" 4 8 &&
    "$builddir/tests/tools/mkimatrix" "$tmp/im.gguf" tensor \
        blk.0.attn_q.weight 256 &&
    "$bin/gguf-imatrix" "$tmp/im.gguf" -o "$tmp/data.gguf" 2>/dev/null ||
    exit 99

says() # message of a run that failed
{
    test $rc -eq 1 -a ! -e "$tmp/o.gguf" &&
        grep -q -e "$1" "$tmp/err"
}
# A folder like hf with these additional tensors of 4 x 4 zeros.
more() # folder name...
{
    rm -rf "$tmp/$1" && cp -r "$tmp/hf" "$tmp/$1" || exit 99
    python3 -c 'import json, struct, sys
path, names = sys.argv[1], sys.argv[2:]
b = open(path, "rb").read()
n = struct.unpack("<Q", b[:8])[0]
h = json.loads(b[8:8 + n])
at = len(b) - 8 - n
for name in names:
    h[name] = { "dtype": "F32", "shape": [4, 4], "data_offsets": [at, at + 64] }
    at += 64
j = json.dumps(h).encode()
j += b" " * (-len(j) % 8)
open(path, "wb").write(struct.pack("<Q", len(j)) + j + b[8 + n:] + bytes(64 * len(names)))
' "$tmp/$1/model.safetensors" $(shift && echo "$@") || exit 99
}
# A folder of an adapter: config, then names of tensors.
adapter() # folder config name...
{
    mkdir -p "$tmp/$1" && printf '%s' "$2" >"$tmp/$1/adapter_config.json"
    python3 -c 'import json, struct, sys
at, h = 0, {}
for name in sys.argv[2:]:
    h[name] = { "dtype": "F32", "shape": [32, 4] if "_B" in name else [4, 32],
                "data_offsets": [at, at + 512] }
    at += 512
j = json.dumps(h).encode()
j += b" " * (-len(j) % 8)
open(sys.argv[1], "wb").write(struct.pack("<Q", len(j)) + j + bytes(at))
' "$tmp/$1/adapter_model.safetensors" $(shift 2 && echo "$@") || exit 99
}
lora='{"peft_type": "LORA", "r": 4, "lora_alpha": 8}'
q=base_model.model.model.layers.0.self_attn.q_proj
adapter pair "$lora" $q.lora_A.weight $q.lora_B.weight

# ------------------------------------------------------------ an adapter ---
cp -r "$tmp/pair" "$tmp/half" && rm "$tmp/half/adapter_config.json"
run "$convert" "$tmp/half" -o "$tmp/o.gguf"
says "'adapter_model.safetensors' is an adapter, whose adapter_config.json is missing"
ok 'the weights of an adapter alone'
cp "$tmp/hf/model.safetensors" "$tmp/half/" &&
    cp "$tmp/pair/adapter_config.json" "$tmp/half/" &&
    rm "$tmp/half/adapter_model.safetensors"
run "$convert" "$tmp/half" --base "$tmp/hf" -o "$tmp/o.gguf"
says "'model.safetensors' is a model, not an adapter"
ok 'the weights of a model beside the configuration of an adapter'
run "$convert" "$tmp/pair" -o "$tmp/o.gguf"
says 'an adapter: --base says .*(adapter_config.json names none)'
ok 'an adapter that names no model'
run "$ppl" -m "$tmp/lora.gguf" -f "$t"
says "is an adapter (LoRA), not a model: '-m MODEL --lora .*lora.gguf'"
ok 'gguf-ppl -m with an adapter'
run "$bin/gguf-tokenize" -m "$tmp/lora.gguf" -f "$t"
says "is an adapter (LoRA), not a model: '-m MODEL --lora .*lora.gguf'"
ok 'gguf-tokenize with an adapter'
run "$quantize" "$tmp/lora.gguf" "$tmp/q.gguf" F16
test $rc -eq 0 && grep -q \
    "warning: is a LoRA adapter, not a model; '--lora .* MODEL' merges it" \
    "$tmp/err"
ok 'gguf-quantize of an adapter'
run "$quantize" "$m" "$tmp/o.gguf" Q8_0 --lora "$tmp/pair"
says 'pair: the folder has no split model (.*), but an adapter_config.json: gguf-convert --base MODEL makes'
ok 'gguf-quantize --lora with the folder of one'
run "$ppl" -m "$tmp/pair" -f "$t"
says 'but an adapter_config.json: gguf-convert --base MODEL makes'
ok 'gguf-ppl -m with the folder of one'
run "$ppl" -m "$tmp/data.gguf" -f "$t"
says "the file is not a model but importance data (general.type is 'imatrix')"
ok 'gguf-ppl -m with importance data'
run "$quantize" "$m" "$tmp/o.gguf" Q8_0 --imatrix "$tmp/lora.gguf"
says "has no importance data: general.type is 'adapter', must be 'imatrix'; gguf-imatrix makes"
ok '--imatrix with an adapter'
run "$convert" "$tmp/hf" -o "$tmp/o.gguf" --base "$m"
says 'has no adapter (adapter_config.json): --base is for the folder of one'
ok '--base with the folder of a model'
adapter mlx '{"fine_tune_type": "lora", "lora_parameters": {"rank": 4}}'
run "$convert" "$tmp/mlx" -o "$tmp/o.gguf" --base "$tmp/hf"
says 'adapters of MLX (fine_tune_type) .*: merge it with mlx_lm.fuse'
ok 'an adapter of MLX'
adapter whole "$lora" $q.lora_A.weight $q.lora_B.weight \
    base_model.model.model.layers.0.input_layernorm.weight
run "$convert" "$tmp/whole" -o "$tmp/o.gguf" --base "$tmp/hf"
says "layernorm.weight' (an adapter's file has low-rank pairs only: merge"
ok 'an adapter with more than pairs'
adapter dora '{"peft_type": "LORA", "use_dora": true, "lora_alpha": 8}'
run "$convert" "$tmp/dora" -o "$tmp/o.gguf" --base "$tmp/hf"
says 'use_dora: .*(DoRA); merge the adapter into its model (PEFT'
ok 'an adapter with magnitudes'
v=base_model.model.model.vision_tower.encoder.layers.0.q_proj
adapter seen "$lora" $q.lora_A.weight $q.lora_B.weight $v.lora_A.weight \
    $v.lora_B.weight
run "$convert" "$tmp/seen" -o "$tmp/seen.gguf" --base "$tmp/hf"
test $rc -eq 0 && grep -q \
    "warning: 2 tensors of the adapter are left out, .* vision or audio parts: '$v.lora_A" \
    "$tmp/err"
ok 'pairs of a vision tower are left out, and that is said'
adapter unseen "$lora" $v.lora_A.weight $v.lora_B.weight
run "$convert" "$tmp/unseen" -o "$tmp/o.gguf" --base "$tmp/hf"
says 'the adapter changes nothing in the language model: all of its 2 tensors'
ok 'an adapter of nothing else is refused'

run "$convert" "$tmp/pair" -o "$tmp/o.gguf" --base "$tmp/pair"
says 'pair: the folder is an adapter, too, expected its base model'
ok '--base with the folder of an adapter'
run "$convert" "$tmp/pair" -o "$tmp/o.gguf" --base "$tmp/lora.gguf"
says 'lora.gguf: the file is not a model but an adapter (LoRA)'
ok 'and with its file'
run "$convert" "$tmp/pair" -o "$tmp/o.gguf" --base "$tmp/hf/config.json"
says "config.json' is neither a folder nor a GGUF file; the folder that it is in"
ok '--base with a file of the folder'
run "$convert" "$tmp/lora.gguf" --to-safetensors "$tmp/o"
says 'the file is not a model but an adapter (LoRA)'
ok '--to-safetensors of an adapter'

# --------------------------------------- the head of a tied model ---
cp -r "$tmp/hf" "$tmp/tied"
sed 's/"vocab_size"/"tie_word_embeddings": true, &/' "$tmp/hf/config.json" \
    >"$tmp/tied/config.json"
adapter head "$lora" base_model.model.lm_head.lora_A.weight
python3 -c 'import json, struct, sys
n = 260
h = { "base_model.model.lm_head.lora_A.weight": { "dtype": "F32", "shape": [4, 32], "data_offsets": [0, 512] },
      "base_model.model.lm_head.lora_B.weight": { "dtype": "F32", "shape": [n, 4], "data_offsets": [512, 512 + 16 * n] } }
j = json.dumps(h).encode()
j += b" " * (-len(j) % 8)
open(sys.argv[1], "wb").write(struct.pack("<Q", len(j)) + j +
    b"".join(struct.pack("<f", i % 7 / 8) for i in range(128 + 4 * n)))' "$tmp/head/adapter_model.safetensors"
"$convert" -q "$tmp/tied" -o "$tmp/tied.gguf" 2>"$tmp/err"
run "$convert" "$tmp/head" -o "$tmp/head.gguf" --base "$tmp/tied"
test $rc -eq 0 && grep -q 'a pair for lm_head, but the output of the model is its embedding' \
    "$tmp/err"
ok 'a pair of the head of a tied model is converted, and that is said'
mkdir "$tmp/implied" && printf '{"architectures": ["Gemma2ForCausalLM"],
    "vocab_size": 260, "hidden_size": 32, "intermediate_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 16,
    "num_key_value_heads": 1, "sliding_window": 64, "rms_norm_eps": 1e-6,
    "query_pre_attn_scalar": 16, "max_position_embeddings": 64}' \
    >"$tmp/implied/config.json"
run "$convert" "$tmp/head" -o "$tmp/implied.gguf" --base "$tmp/implied"
test $rc -eq 0 && grep -q 'a pair for lm_head, but the output of the model is its embedding' \
    "$tmp/err"
ok 'so is one of a model whose class ties without a word of config.json'
printf 'abc abc abc, abc abcab.%.0s' 1 2 3 4 5 6 7 8 >"$tmp/text"
run "$ppl" -m "$tmp/tied.gguf" -f "$tmp/text" -c 16 --chunks 1
grep Final "$tmp/out" >"$tmp/without"
run "$ppl" -m "$tmp/tied.gguf" -f "$tmp/text" -c 16 --chunks 1 --lora "$tmp/head.gguf"
test $rc -eq 0 && grep Final "$tmp/out" >"$tmp/with" &&
    ! cmp -s "$tmp/with" "$tmp/without"
ok 'gguf-ppl computes with it'
run "$quantize" "$tmp/tied.gguf" "$tmp/o.gguf" COPY --lora "$tmp/head.gguf"
says "the output of the model is its embedding, .*, so that it cannot be merged; gguf-ppl --lora evaluates it"
ok 'gguf-quantize does not merge it'

# -------------------------------------------------------- folders and files ---
run "$convert" "$tmp/hf/model.safetensors" -o "$tmp/o.gguf"
says "of no known image or video model; a language model is converted as its folder, '$tmp/hf'"
ok 'a file of a language model where its folder is wanted'
(cd "$tmp/hf" && "$convert" config.json -o ../o.gguf 2>&1) |
    grep -q "config.json: is a file: a folder is wanted, as '.'"
ok 'in the folder itself'
run "$convert" Owner/Model-7B -o "$tmp/o.gguf"
says 'no such folder; the repository on Hugging Face is hf://Owner/Model-7B'
ok 'a repository that is not here'
run "$convert" "$tmp/none" -o "$tmp/o.gguf"
says 'no such folder$'
ok 'a path is none'
cp -r "$tmp/hf" "$tmp/both" && cp "$tmp/pair"/* "$tmp/both"
run "$convert" "$tmp/both" -o "$tmp/both.gguf"
test $rc -eq 0 && grep -q 'the folder has a model and an adapter .*--base MODEL converts the adapter' "$tmp/err" &&
    "$convert" -q "$tmp/hf" -o "$tmp/hf.gguf" &&
    ! "$info" --diff "$tmp/hf.gguf" "$tmp/both.gguf" | grep -q blk
ok 'of a model and an adapter the model is converted'
run "$convert" "$tmp/both" -o "$tmp/pair.gguf" --base "$tmp/hf"
test $rc -eq 0 && "$info" --metadata "$tmp/pair.gguf" | grep -q adapter.lora
ok 'with --base the adapter'

# --------------------------------------------------- what training leaves ---
more unmerged model.layers.0.self_attn.q_proj.lora_A.default.weight
run "$convert" "$tmp/unmerged" -o "$tmp/o.gguf"
says 'an adapter that is not merged in: save the model after .*merge_and_unload(); --ignore lora_'
ok 'an adapter that is not merged in'
run "$convert" "$tmp/unmerged" -o "$tmp/u.gguf" --ignore lora_
test $rc -eq 0 && ! "$info" --diff "$tmp/hf.gguf" "$tmp/u.gguf" | grep -q blk
ok 'the model without it'
more head2 v_head.summary.weight
run "$convert" "$tmp/head2" -o "$tmp/o.gguf"
says 'the value head of reinforcement learning (TRL), .*: --ignore v_head leaves it out'
ok 'a value head'
q=model.layers.0.self_attn.q_proj
while read -r name words; do
    more rest "$name"
    run "$convert" "$tmp/rest" -o "$tmp/o.gguf"
    says "no place .*'$name' ($words)\$"
    ok "$words"
done <<END
value_head.weight the value head of reinforcement learning, .*: --ignore value_head leaves it out
score.weight the head of a classifier, .*: --ignore score leaves it out
$q.weight.quant_state.bitsandbytes__nf4 weights that bitsandbytes has quantized: config.json has to say how .*
$q.qweight weights that GPTQ or AWQ has quantized: config.json has to say how .*
$q.weight_scale_inv scales of quantized weights: config.json has to say how .*
END
cp -r "$tmp/hf" "$tmp/mlx4"
sed 's/"vocab_size"/"quantization": {"group_size": 64, "bits": 4}, &/' \
    "$tmp/hf/config.json" >"$tmp/mlx4/config.json"
run "$convert" "$tmp/mlx4" -o "$tmp/o.gguf"
says 'weights quantized by MLX .*convert the original model'
ok 'weights of MLX'

cp -r "$tmp/hf" "$tmp/marked"
{ printf '\357\273\277' && cat "$tmp/hf/config.json"; } >"$tmp/marked/config.json"
run "$convert" "$tmp/marked" -o "$tmp/o.gguf"
says 'config.json: .*begins with a byte-order mark; save it as UTF-8 without one'
ok 'a byte-order mark'

# ---------------------------------------------------------- tokenizers ---
cp -r "$tmp/hf" "$tmp/pre"
sed 's/p{L}+|/p{L}*|/' "$tmp/hf/tokenizer.json" >"$tmp/pre/tokenizer.json"
run "$convert" "$tmp/pre" -o "$tmp/o.gguf"
says 'the pre-tokenizer is not recognised: .*; --pre NAME names one that cuts alike'
ok 'a way to cut words that is not known'

# --------------------------------------------------------- importance data ---
run "$quantize" -q "$m" "$tmp/two.gguf" Q8_0 --imatrix "$tmp/im.gguf" \
    --imatrix "$tmp/im.gguf"
"$info" --metadata "$tmp/two.gguf" | grep -q 'quantize.imatrix.file *im.gguf, im.gguf$'
ok 'two files of importance data are both named'

# -------------------------------------------------------------- vocabularies ---
python3 -c 'import json, sys
d = json.load(open(sys.argv[1] + "/tokenizer.json"))
d["added_tokens"] += [{ "id": 260 + i, "content": "[PAD%d]" % i, "special": True } for i in range(4)]
json.dump(d, open(sys.argv[2] + "/tokenizer.json", "w"))
c = json.load(open(sys.argv[1] + "/config.json"))
c["vocab_size"] += 4
json.dump(c, open(sys.argv[2] + "/config.json", "w"))' "$tmp/hf" "$(cp -r "$tmp/hf" "$tmp/padded" && echo "$tmp/padded")"
python3 -c 'import json, struct, sys
path = sys.argv[1]
b = open(path, "rb").read()
n = struct.unpack("<Q", b[:8])[0]
h = json.loads(b[8:8 + n])
data = b[8 + n:]
out, at, g = b"", 0, {}
for k, v in h.items():
    if k == "__metadata__": continue
    x = data[v["data_offsets"][0]:v["data_offsets"][1]]
    if k == "model.embed_tokens.weight":
        v["shape"][0] += 4
        x += bytes(4 * 4 * v["shape"][1])
    g[k] = { "dtype": v["dtype"], "shape": v["shape"], "data_offsets": [at, at + len(x)] }
    at += len(x)
    out += x
j = json.dumps(g).encode()
j += b" " * (-len(j) % 8)
open(path, "wb").write(struct.pack("<Q", len(j)) + j + out)' "$tmp/padded/model.safetensors"
"$convert" -q "$tmp/padded" -o "$tmp/padded.gguf" 2>"$tmp/err"
run "$ppl" --base "$tmp/hf.gguf" -m "$tmp/padded.gguf" -f "$tmp/text" -c 16 \
    --chunks 1
says 'different vocabularies: 260 tokens and 264, the same up to .*: one of them is padded'
ok 'a padded vocabulary'
run "$ppl" -m "$tmp/hf.gguf" -f "$tmp/text" -c 16 --chunks 1 \
    --save-base "$tmp/l.bin"
run "$ppl" -m "$tmp/padded.gguf" --kl-divergence-base "$tmp/l.bin" \
    --kl-divergence
grep -q 'a vocabulary of 260 there, 264 here; if one is padded' "$tmp/err"
ok 'of saved logits'

# ---------------------------------------------------------------- names ---
name() # folder: general.name, and whose it is
{
    "$convert" -q -f "$1" -o "$tmp/name.gguf" 2>"$tmp/err"
    "$info" --metadata "$tmp/name.gguf" | awk '
        $2 == "general.name" || $2 == "general.organization" {
            $1 = $2 = ""; printf "%s;", substr($0, 3) }'
}
s=$tmp/hub/models--Some-Org--Tiny-7B-Instruct/snapshots
hash=c540970f9e29518b1d8f06ab8b24cba66ad77b6d
mkdir -p "$s" && cp -r "$tmp/hf" "$s/$hash"
test "$(name "$s/$hash")" = 'Tiny 7B Instruct;Some Org;'
ok "a snapshot in a cache has the repository's name"
test "$(name "$s/$hash/")" = 'Tiny 7B Instruct;Some Org;' &&
    test "$(cd "$s/$hash" && name .)" = 'Tiny 7B Instruct;Some Org;' &&
    test "$(cd "$s" && name $hash)" = 'Tiny 7B Instruct;Some Org;'
ok 'from wherever it is named'
cp -r "$tmp/hf" "$s/main"
test "$(name "$s/main")" = 'Tiny 7B Instruct;Some Org;' &&
    test "$(cd "$s" && name main)" = 'Tiny 7B Instruct;Some Org;'
ok 'whatever the snapshot is called'
mkdir -p "$tmp/hub/models--gpt2/snapshots" "$tmp/My-Run"
cp -r "$tmp/hf" "$tmp/hub/models--gpt2/snapshots/$hash"
test "$(name "$tmp/hub/models--gpt2/snapshots/$hash")" = 'Gpt2;'
ok 'one without an owner'
ln -s "$s/$hash" "$tmp/My-Link"
test "$(name "$tmp/My-Link")" = 'My Link;'
ok 'a link has a name of its own'
cp -r "$tmp/hf" "$tmp/My-Run/checkpoint-500"
test "$(name "$tmp/My-Run/checkpoint-500")" = 'My Run;' &&
    test "$(cd "$tmp/My-Run" && name checkpoint-500)" = 'My Run;' &&
    test "$(cd "$tmp/My-Run/checkpoint-500" && name .)" = 'My Run;'
ok "a checkpoint has its run's name"
printf '\357\273\277---\nlicense: mit\n---\n' >"$tmp/hf/README.md"
"$convert" -q -f "$tmp/hf" -o "$tmp/name.gguf" 2>"$tmp/err"
"$info" --metadata "$tmp/name.gguf" | grep -q 'general.license *mit'
ok 'a card may begin with a byte-order mark'

done_testing
