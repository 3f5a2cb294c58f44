#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-convert: folders become files, with every option. A refused run leaves
# nothing. tests/convert has numbers and architectures.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
convert=$bin/gguf-convert
info=$bin/gguf-info
quantize=$bin/gguf-quantize
mkfolder=$builddir/tests/tools/mkfolder
"$mkfolder" "$tmp/hf" && "$mkfolder" "$tmp/three" bf16 files=3 wide &&
    "$mkfolder" "$tmp/extra" extra || exit 99

fails() # message
{
    test $rc -eq 1 -a ! -e "$tmp/o.gguf" && grep -q -e "$1" "$tmp/err"
}

# ------------------------------------------------------------- one output ---
run "$convert" "$tmp/hf" -o "$tmp/a.gguf"
test $rc -eq 0 && "$info" --check "$tmp/a.gguf" >"$tmp/out" 2>&1
ok 'a folder becomes a file that is sound'
run "$info" --json "$tmp/a.gguf"
for key in general.architecture general.file_type llama.rope.dimension_count \
    tokenizer.ggml.merges tokenizer.ggml.eos_token_id tokenizer.chat_template; do
    grep -q "\"$key\"" "$tmp/out"
    ok "it has $key"
done
run "$convert" "$tmp/hf" -o "$tmp/a.gguf"
test $rc -eq 1 && grep -q 'a.gguf' "$tmp/err"
ok 'an output that exists stays'
run "$convert" -q -f -t 1 "$tmp/hf" -o "$tmp/b.gguf"
test $rc -eq 0 -a ! -s "$tmp/err" && cmp "$tmp/a.gguf" "$tmp/b.gguf"
ok 'one thread gives the same bytes'

# ------------------------------------------------------ the order of keys ---
places() # option... makes: general.quantization_version before the tokenizer?
{
    run "$convert" -q -f "$tmp/hf" -o "$tmp/b.gguf${1-}"
    "$info" --metadata "$tmp/b.gguf" | awk '
        $2 ~ /quantization_version$/ { v = NR } $2 ~ /file_type$/ { f = NR }
        $2 == "tokenizer.ggml.model" { t = NR } $2 ~ /chat_template/ { c = NR }
        END { print (f < v && v < t ? "first" : c < v && v < f ? "last" : "?") }'
}
test "$(places) $(places =F32) $(places =BF16)" = 'first first first' &&
    test "$(places =Q8_0) $(places =Q4_K_M)" = 'last last'
ok 'what says the types is where converters put it, or who quantizes'

# ------------------------------------------------ two names of one thing ---
cp -R "$tmp/hf" "$tmp/twice"
sed 's/"num_attention_heads": *\([0-9]*\)/&, "n_head": \1, "n_heads": 3/' \
    "$tmp/hf/config.json" >"$tmp/twice/config.json"
run "$convert" -n "$tmp/twice"
test $rc -eq 0 -a "$(grep -c 'disagree' "$tmp/err")" -eq 1 &&
    grep -q 'num_attention_heads is [0-9]*, and n_heads 3:' "$tmp/err"
ok 'names of config.json that say different numbers are told'

# ------------------------------------------------- folders without models ---
no_model() # message
{
    run "$convert" "$tmp/no" -o "$tmp/no.gguf"
    test $rc -eq 1 -a ! -e "$tmp/no.gguf" && grep -q -e "$1" "$tmp/err"
}
cp -R "$tmp/hf" "$tmp/no"
sed 's/"num_hidden_layers": *[0-9]*/"num_hidden_layers": 9/' \
    "$tmp/hf/config.json" >"$tmp/no/config.json"
no_model 'the converted model would be invalid: [0-9]* of 9 layers have no tensors'
ok "more layers than there are: $(cat "$tmp/err")"
sed 's/"hidden_size": *[0-9]*/"hidden_size": 8/' "$tmp/hf/config.json" \
    >"$tmp/no/config.json"
no_model "invalid: tensor '[a-z0-9_.]*' has shape .*, must be .* (the first of [0-9]* faults)"
ok "another width: $(cat "$tmp/err")"
run "$convert" -q "$tmp/no" -o "$tmp/no.gguf" --ignore '^nothing'
test $rc -eq 0 -a -e "$tmp/no.gguf"
ok 'with --ignore it is written'

# --------------------------------------- the same as in two steps, many ways ---
run "$convert" -q "$tmp/three" -o "$tmp/w.gguf" -o "$tmp/w4.gguf=Q4_K_M" \
    -o "$tmp/w8.gguf=Q8_0"
test $rc -eq 0
ok 'three outputs of one reading'
run "$quantize" -q "$tmp/w.gguf" "$tmp/two4.gguf" Q4_K_M
test $rc -eq 0 && cmp "$tmp/w4.gguf" "$tmp/two4.gguf"
ok 'Q4_K_M at once is Q4_K_M of the file, byte for byte'
run "$quantize" -q "$tmp/w.gguf" "$tmp/two8.gguf" Q8_0
cmp "$tmp/w8.gguf" "$tmp/two8.gguf"
ok 'and Q8_0 that of Q8_0'
"$builddir/tests/tools/mkimatrix" "$tmp/im.gguf" tensor blk.0.attn_q.weight 256 || exit 99
run "$convert" -q "$tmp/three" -o "$tmp/i.gguf=Q4_K_M" --imatrix "$tmp/im.gguf" \
    --include-weights attn_q --output-tensor-type Q8_0 --override-kv \
    general.name=str:X --tensor-type ffn_down=Q5_K
test $rc -eq 0 &&
    "$quantize" -q --imatrix "$tmp/im.gguf" --include-weights attn_q \
        --output-tensor-type Q8_0 --override-kv general.name=str:X \
        --tensor-type ffn_down=Q5_K "$tmp/w.gguf" "$tmp/i2.gguf" Q4_K_M \
        2>"$tmp/err" && cmp "$tmp/i.gguf" "$tmp/i2.gguf"
ok 'importance data, types by name and keys are as in gguf-quantize'
run "$convert" -q "$tmp/three" -o "$tmp/s.gguf" --split-max-size 1M
test $rc -eq 0 -a -e "$tmp/s-00001-of-00002.gguf" &&
    "$bin/gguf-split" -q --merge "$tmp/s-00001-of-00002.gguf" "$tmp/sm.gguf" &&
    "$info" --diff "$tmp/sm.gguf" "$tmp/w.gguf" >"$tmp/out"
ok 'several files of at most 1M are the same model'
run "$convert" -q "$tmp/three" -o "$tmp/t.gguf=Q8_0" --target-size 900K
test $rc -eq 0 -a "$(wc -c <"$tmp/t.gguf")" -le 921600
ok 'a size is kept to'
run "$convert" -q "$tmp/three" -o "$tmp/t8.gguf=Q8_0@900K" -o "$tmp/u.gguf=@2M"
test $rc -eq 0 && cmp -s "$tmp/t8.gguf" "$tmp/t.gguf" &&
    test "$(wc -c <"$tmp/u.gguf")" -le 2000000
ok 'so are several'
run "$convert" -q "$tmp/three" -o "$tmp/t8.gguf=Q4KM"
test $rc -eq 2 -a ! -e "$tmp/t8.gguf=Q4KM" && grep -q 'Q4_K_M' "$tmp/err"
ok 'a type that is misspelt is none of the name'
run "$convert" -q --resume "$tmp/three" -o "$tmp/r.gguf=Q4_K_M"
test $rc -eq 0 -a ! -e "$tmp/r.gguf.resume" && cmp "$tmp/r.gguf" "$tmp/w4.gguf"
ok 'with a journal it is the same, and the journal goes'

# ------------------------------------------------------------------ the plan ---
run "$convert" -q --dry-run "$tmp/hf"
test $rc -eq 0 && grep -q \
    'blk.0.attn_q.weight *F32 *model.layers.0.self_attn.q_proj.weight *rows of heads' \
    "$tmp/out"
ok '--dry-run says what is made of what'
run "$convert" -q --dry-run --json "$tmp/hf" -o "$tmp/o.gguf=Q8_0"
test $rc -eq 0 -a ! -e "$tmp/o.gguf" &&
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert d["written"] is False and len(d["tensors"]) == 20
t = {x["name"]: x for x in d["tensors"]}
assert t["blk.1.ffn_up.weight"]["from"] == ["model.layers.1.mlp.up_proj.weight"]
assert d["outputs"][0]["type"] == "Q8_0"' "$tmp/out" 2>"$tmp/err"
ok '--dry-run --json is a document of it'

# -------------------------------------------------------- other tokenizers ---
tokens() # folder file: the ids of $tmp/text
{
    rm -rf "$tmp/tok" && cp -r "$tmp/hf" "$tmp/tok" &&
        rm "$tmp/tok/tokenizer.json" "$tmp/tok/tokenizer_config.json" &&
        cat >"$tmp/tok/$1" &&
        "$convert" -q -f "$tmp/tok" -o "$tmp/tok.gguf" 2>"$tmp/err" &&
        "$bin/gguf-tokenize" -m "$tmp/tok.gguf" -f "$tmp/text" \
            2>>"$tmp/err" | awk '{ printf "%s ", $1 }'
}
printf 'Hello, unable x' >"$tmp/text"
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' un '##able' hello , |
    tokens vocab.txt >"$tmp/out"
test "$(cat "$tmp/out")" = '2 7 8 5 6 1 3 '
ok 'gguf-tokenize cuts by a vocab.txt'
printf 'ab"\303\251a' >"$tmp/text"
printf '%s\n' "1 'a' 1" "2 'ab' 2" "3 b'\\xc3\\xa9' 2" "4 '\"' 1" |
    tokens rwkv_vocab_v20230424.txt >"$tmp/out"
test "$(cat "$tmp/out")" = '2 4 3 1 '
ok "and by RWKV's vocabulary"
# --------------------------------------------------------------- the card ---
card=$tmp/Tiny-Llama-20K-Instruct-v0.2
cp -r "$tmp/hf" "$card"
cat >"$card/README.md" <<'END'
---
license: other   # a comment
license_name: "caf\u00e9"
license_link: >-
  https://example.org/
  LICENSE
language:
- en
- no
- 'it''s'
tags: [one, "a, b",
  three]
pipeline_tag: text-generation
datasets:
  - org/Some-Data-2.5
  - https://example.org/x
  - name: deeper
    type: x
base_model: meta-llama/Llama-3.2-1B
model-index:
- name: foo
  results:
    - task: {a: b}
model_creator: Some Body
---
# Text
license: mit
END
echo '{"top_k": 20, "temperature": 0.6, "top_p": null, "do_sample": true}' \
    >"$card/generation_config.json"
keys() # file: those of general, a line each
{
    python3 -c 'import json, sys
for k, v in json.load(sys.stdin)["metadata"].items():
    if k.startswith("general."):
        print(k, json.dumps(v["value"] if isinstance(v, dict) else v))'
}
run "$convert" -n --json "$card"
grep -q 'line 14: an item that is not a text is left out' "$tmp/err"
ok 'an item of a card that is not a text is said'
"$convert" -q "$card/" -o "$tmp/card.gguf" >"$tmp/out" 2>"$tmp/err" &&
    "$info" --json "$tmp/card.gguf" 2>>"$tmp/err" | keys >"$tmp/got" 2>>"$tmp/err"
cat >"$tmp/want" <<'END'
general.architecture "llama"
general.type "model"
general.sampling.top_k 20
general.sampling.temp 0.6
general.name "Tiny Llama 20K Instruct v0.2"
general.author "Some Body"
general.version "v0.2"
general.finetune "Instruct"
general.basename "Tiny-Llama"
general.size_label "20K"
general.license "other"
general.license.name "caf\u00e9"
general.license.link "https://example.org/ LICENSE"
general.base_model.count 1
general.base_model.0.name "Llama 3.2 1B"
general.base_model.0.organization "Meta Llama"
general.base_model.0.repo_url "https://huggingface.co/meta-llama/Llama-3.2-1B"
general.dataset.count 2
general.dataset.0.name "Some Data 2.5"
general.dataset.0.version "2.5"
general.dataset.0.organization "Org"
general.dataset.0.repo_url "https://huggingface.co/org/Some-Data-2.5"
general.dataset.1.repo_url "https://example.org/x"
general.tags ["one", "a, b", "three", "text-generation"]
general.languages ["en", "no", "it's"]
general.file_type 0
general.quantization_version 2
END
diff "$tmp/want" "$tmp/got" >"$tmp/out"
ok 'keys of the card, of generation_config.json and of the name'
rm "$card/README.md"
python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
d["_name_or_path"] = "some-org/Other-1_1b-chat"
json.dump(d, open(sys.argv[1], "w"))' "$card/config.json"
"$convert" -q "$card" -o "$tmp/path.gguf" 2>"$tmp/err"
"$info" --json "$tmp/path.gguf" | keys | grep -e name -e organ -e fine -e size \
    -e 'l.version' >"$tmp/got"
cat >"$tmp/want" <<'END'
general.name "Other 1_1b Chat"
general.version "v0.2"
general.organization "Some Org"
general.finetune "1.1b-chat"
general.basename "Other"
general.size_label "20K"
END
diff "$tmp/want" "$tmp/got" >"$tmp/out"
ok 'a name in config.json comes before that of the folder'
printf -- '---\nlicense: mit\n  odd\n- x\n---\n' >"$card/README.md"
run "$convert" "$card" -o "$tmp/bad.gguf"
test $rc -eq 0 && cmp "$tmp/bad.gguf" "$tmp/path.gguf" && grep -q \
    "README.md is not used: line 4, '- x': unexpected indentation" "$tmp/err"
ok 'a card that cannot be read is said, and left alone'

# ----------------------------------------------------------------- memory ---
# For a model of 700 MB, at most 64 MB are allocated beyond mapped memory.
# Programs with sanitizers do not start with that.
hold() # command...
{
    (ulimit -d 65536 && exec "$@")
}
if test -z "${EMULATOR-}" && hold "$convert" --version >"$tmp/out" 2>&1 &&
    "$mkfolder" "$tmp/large" bf16 files=2 large=1; then
    run hold "$convert" -q -t 2 "$tmp/large" -o "$tmp/large.gguf=Q4_K_M"
    test $rc -eq 0 -a "$(wc -c <"$tmp/large.gguf")" -gt 200000000
    ok 'a large model takes as little memory as a small one'
    rm -rf "$tmp/large" "$tmp/large.gguf"
else
    skip 'a large model takes as little memory as a small one' \
        'no limit on memory'
fi

# ------------------------------------------------------------ refused folders ---
run "$convert" "$tmp/extra" -o "$tmp/o.gguf"
fails "2 tensors of the folder have no place in a model of architecture llama: 'model.layers.0.odd.weight', 'model.layers.1.odd.weight'"
ok 'a tensor without a place is listed'
run "$convert" -q "$tmp/extra" --ignore 'odd' -o "$tmp/ig.gguf"
test $rc -eq 0 && "$info" --diff "$tmp/ig.gguf" "$tmp/a.gguf" | grep -vq blk
ok 'and left out where that is asked for'
! grep -q 'no tensor' "$tmp/err"
ok 'without a word about the pattern'
run "$convert" "$tmp/extra" --ignore 'odd' --ignore 'ood' -n -o "$tmp/o.gguf"
test $rc -eq 0 &&
    test "$(grep -c "ignored: no tensor's name matches 'ood'" \
        "$tmp/err")" -eq 1
ok 'one that matches nothing is said'
run "$convert" -n "$tmp/extra" --ignore '(' -o "$tmp/o.gguf"
test $rc -eq 1
ok 'a pattern that is none is refused'
run "$convert" "$tmp" -o "$tmp/o.gguf"
fails 'no config.json'
ok 'a folder without config.json'
run "$convert" "$tmp/none" -o "$tmp/o.gguf"
fails 'none: no such folder'
ok 'no folder'
run "$convert" "$tmp/hf/config.json" -o "$tmp/o.gguf"
fails "config.json: is a file: a folder is wanted, as '$tmp/hf'"
ok 'a file'
run "$convert" "$tmp/hf"
test $rc -eq 2 && grep -q 'output is missing' "$tmp/err"
ok 'no output'
run "$convert" --pre qwen-2 "$tmp/hf" -o "$tmp/o.gguf"
fails "unknown pre-tokenizer 'qwen-2'; similar names are .*'qwen2'"
ok 'a name of no pre-tokenizer'
run "$convert" --ignore '*q_proj*' "$tmp/hf" -o "$tmp/o.gguf"
fails "pattern '\*q_proj\*': .* at its byte 0; in a regular expression '.\*'"
ok 'a pattern of the shell'
run "$convert" "$tmp/hf" --base "$tmp/hf" -o "$tmp/o.gguf"
fails 'hf: has no adapter (adapter_config.json): --base is for the folder of one'
ok 'a base of a folder that is no adapter'
mkdir "$tmp/pair" && echo '{"peft_type": "LORA", "r": 4, "lora_alpha": 8,
    "base_model_name_or_path": "some/model"}' >"$tmp/pair/adapter_config.json"
run "$convert" "$tmp/pair" -o "$tmp/o.gguf"
fails "an adapter: --base says which model it is for (adapter_config.json names 'some/model')"
ok 'an adapter without its base'
run "$convert" "$tmp/pair" --base "$tmp/no.thing" -o "$tmp/o.gguf"
fails 'pair: .*no.thing: there is no such file'
ok 'and of a base that is not there'
mkdir "$tmp/none" && cp "$tmp/hf/config.json" "$tmp"/hf/tok* "$tmp/none" &&
    echo '{"weight_map": {}}' >"$tmp/none/model.safetensors.index.json"
run "$convert" "$tmp/none" -o "$tmp/o.gguf"
fails 'the folder lacks all of its tensors'
ok 'an index of nothing'
sed "s/(?i:'s|'t|'re|'ve|'m|'ll|'d)/'(?i:[sdmt]|ll|re|ve)/" \
    "$tmp/hf/tokenizer.json" >"$tmp/reworded.json"
cp -r "$tmp/hf" "$tmp/reworded" && cp "$tmp/reworded.json" "$tmp/reworded/tokenizer.json"
run "$convert" "$tmp/reworded" -o "$tmp/rw.gguf"
test $rc -eq 0 && grep -q "the pre-tokenizer is taken for 'qwen2'" "$tmp/err" &&
    "$info" --json "$tmp/rw.gguf" | grep -q '"qwen2"'
ok 'one in other words is recognised by what it does, and that is said'
run "$convert" -q --pre llama-bpe "$tmp/hf" -o "$tmp/p.gguf"
test $rc -eq 0 && "$info" --json "$tmp/p.gguf" | grep -q llama-bpe
ok 'one that is'
cp -r "$tmp/hf" "$tmp/odd"
sed 's/p{L}+|/p{L}*|/' "$tmp/hf/tokenizer.json" >"$tmp/odd/tokenizer.json"
run "$convert" "$tmp/odd" -o "$tmp/o.gguf"
fails 'tokenizer.json: the pre-tokenizer is not recognised: Split((?i:'
ok 'an expression that is not known is shown'
cp "$tmp/hf/tokenizer.json" "$tmp/odd/tokenizer.json"
sed 's/Llama/Llamma/' "$tmp/hf/config.json" >"$tmp/odd/config.json"
run "$convert" "$tmp/odd" -o "$tmp/o.gguf"
fails "config.json: class 'LlammaForCausalLM' is not supported"
ok 'a class that is not known'
sed 's/LlamaForCausalLM/LlamaForCausalLMEagle3/' "$tmp/hf/config.json" \
    >"$tmp/odd/config.json"
run "$convert" "$tmp/odd" -o "$tmp/o.gguf"
fails "class 'LlamaForCausalLMEagle3' is a draft model for another model's states"
ok 'a class of draft models'
# Sizes that would take hours or gigabytes are refused first.
sed 's/"LlamaForCausalLM"/"Lfm2ForCausalLM"/
    s/"num_hidden_layers":[0-9]*/"num_hidden_layers":1000000,"full_attn_idxs":[0]/' \
    "$tmp/hf/config.json" >"$tmp/odd/config.json"
run "$convert" "$tmp/odd" -o "$tmp/o.gguf"
fails 'config.json: 1000000 layers, limit is 4096'
ok 'a million layers'
sed 's/"vocab_size":[0-9]*/"vocab_size":16000000/' "$tmp/hf/config.json" \
    >"$tmp/odd/config.json"
run "$convert" "$tmp/odd" -o "$tmp/o.gguf"
fails '16000000 tokens, of [0-9]* rows of the embedding'
ok 'a vocab_size of 16 million'
cp "$tmp/hf/config.json" "$tmp/odd/config.json"
sed 's/"vocab": *{/"vocab":{"far":16000000,/' "$tmp/hf/tokenizer.json" \
    >"$tmp/odd/tokenizer.json"
run "$convert" "$tmp/odd" -o "$tmp/o.gguf"
fails '16000001 tokens, of [0-9]* rows of the embedding'
ok 'an id of 16 million'
cp "$tmp/hf/tokenizer.json" "$tmp/odd/tokenizer.json"
for f in README.md chat_template.jinja vocab.txt tokenizer.model config.json; do
    mkdir "$tmp/long"
    ln -s "$tmp/hf"/* "$tmp/long" && rm -f "$tmp/long/$f"
    test "$f" = vocab.txt && rm "$tmp/long/tokenizer.json"
    truncate -s 16G "$tmp/long/$f" || exit 99
    run "$convert" "$tmp/long" -o "$tmp/o.gguf"
    fails "$f: 17179869184 bytes, limit is 268435456"
    ok "$f of 16 GB"
    rm -r "$tmp/long"
done
echo '{"a":1,"a":2}' >"$tmp/odd/config.json"
run "$convert" "$tmp/odd" -o "$tmp/o.gguf"
fails 'config.json: JSON, line 1, .*duplicate'
ok 'JSON that is none'
cp "$tmp/hf/config.json" "$tmp/odd/config.json"
head -c 1000 "$tmp/hf/model.safetensors" >"$tmp/odd/model.safetensors"
run "$convert" "$tmp/odd" -o "$tmp/o.gguf"
fails 'model.safetensors: a header of'
ok 'weights that are cut off'
rm "$tmp/odd/model.safetensors"
run "$convert" "$tmp/odd" -o "$tmp/o.gguf"
fails 'there is neither model.safetensors nor'
ok 'no weights'
for f in model.safetensors model.safetensors.index.json tokenizer_config.json; do
    cp -r "$tmp/hf" "$tmp/loop"
    ln -sf "$f" "$tmp/loop/$f"
    run "$convert" "$tmp/loop" -o "$tmp/o.gguf"
    fails "$f: cannot be opened: "
    ok "$f is there and cannot be opened"
    rm -r "$tmp/loop"
done
cp -r "$tmp/hf" "$tmp/over"
run "$convert" -f "$tmp/over" -o "$tmp/over/model.safetensors"
test $rc -eq 1 && cmp "$tmp/over/model.safetensors" "$tmp/hf/model.safetensors"
ok 'nothing is written over an input'

# ------------------------------------------------- models beside the tree ---
if test -n "${GGUF_SHARED-}" && test -d "$GGUF_SHARED/models/hf-llama"; then
    models=$GGUF_SHARED/models
    for m in llama qwen2; do
        run "$convert" -q "$models/hf-$m" -o "$tmp/$m.gguf=F16"
        test $rc -eq 0 && "$info" --diff "$tmp/$m.gguf" "$models/$m-f16.gguf" \
            >"$tmp/out"
        ! grep -v '^[-+] [a-z0-9]* *\(general\|quantize\|qwen2.vocab_size\|qwen2.rope.dim\|tokenizer.ggml.add_bos\)' \
            "$tmp/out" >"$tmp/err"
        ok "hf-$m is $m-f16.gguf: all numbers, tokens, scores, merges, keys"
    done
else
    skip 'folders of trained models' 'they are not here'
fi

done_testing
