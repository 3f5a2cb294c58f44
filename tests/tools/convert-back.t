#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-convert --to-safetensors: files become folders, which become the same
# files. A refused run leaves nothing. tests/convert has all architectures.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
convert=$bin/gguf-convert
mkfolder=$builddir/tests/tools/mkfolder
"$mkfolder" "$tmp/hf" && "$mkfolder" "$tmp/wide" bf16 wide || exit 99
"$convert" -q "$tmp/hf" -o "$tmp/a.gguf" &&
    "$convert" -q "$tmp/wide" -o "$tmp/w.gguf" -o "$tmp/q.gguf=Q4_K_M" ||
    exit 99
mkdir "$tmp/back"

run "$convert" "$tmp/a.gguf" --to-safetensors "$tmp/back/hf"
test $rc -eq 0 && grep -q 'wrote the folder' "$tmp/err"
ok 'a file becomes a folder'
for f in config.json model.safetensors tokenizer.json tokenizer_config.json \
    README.md; do
    test -f "$tmp/back/hf/$f"
    ok "it has $f"
done
run "$convert" -q "$tmp/back/hf" -o "$tmp/again.gguf"
test $rc -eq 0 && cmp "$tmp/a.gguf" "$tmp/again.gguf"
ok 'which becomes the same file'
run "$convert" "$tmp/a.gguf" --to-safetensors "$tmp/back/hf"
test $rc -eq 1 && grep -q 'File exists (--force' "$tmp/err"
ok 'a folder that has one stays'
run "$convert" -q -f "$tmp/a.gguf" --to-safetensors "$tmp/back/hf=BF16"
test $rc -eq 0 && grep -q '"BF16"' "$tmp/back/hf/model.safetensors" &&
    ! grep -q '"F32"' "$tmp/back/hf/model.safetensors"
ok 'or is replaced, with other types'
run "$convert" -q -f "$tmp/a.gguf" --to-safetensors "$tmp/back/hf" \
    --split-max-size 20K
test $rc -eq 1 &&
    grep -q "the folder has 'model.safetensors', a file of another model" "$tmp/err"
ok 'but not beside weights that would stay'

run "$convert" -q "$tmp/w.gguf" --to-safetensors "$tmp/back/wide" \
    --split-max-size 300K
set -- "$tmp/back/wide/model-00003-of-"*.safetensors
test $rc -eq 0 -a -f "$1" -a -f "$tmp/back/wide/model.safetensors.index.json"
ok 'several files with an index'
rm -f "$tmp/again.gguf"
run "$convert" -q "$tmp/back/wide" -o "$tmp/again.gguf"
test $rc -eq 0 && cmp "$tmp/w.gguf" "$tmp/again.gguf"
ok 'which become the same file, BF16 and F32'
run "$convert" -q "$tmp/q.gguf" --to-safetensors "$tmp/back/q"
test $rc -eq 0 && "$convert" -q "$tmp/back/q" -o "$tmp/q2.gguf" &&
    "$bin/gguf-quantize" -q --allow-requantize "$tmp/q.gguf" "$tmp/q3.gguf" \
        F16 2>"$tmp/err" && "$bin/gguf-info" --diff "$tmp/q2.gguf" \
    "$tmp/q3.gguf" >"$tmp/out"
! grep -q 'blk\|token_embd' "$tmp/out"
ok 'a quantized one becomes F16'
rm -rf "$tmp/back/nv"
"$bin/gguf-quantize" -q --outer-scales "$tmp/w.gguf" "$tmp/nv.gguf" NVFP4 &&
    "$bin/gguf-info" --tensors='*.scale' "$tmp/nv.gguf" | grep -q 'attn_q' &&
    "$bin/gguf-quantize" -q --allow-requantize "$tmp/nv.gguf" "$tmp/nv16.gguf" \
        F16 || exit 99
run "$convert" -q "$tmp/nv.gguf" --to-safetensors "$tmp/back/nv"
test $rc -eq 0 && "$convert" -q "$tmp/back/nv" -o "$tmp/nv-again.gguf" &&
    "$bin/gguf-info" --diff --tensors='blk*' "$tmp/nv16.gguf" \
        "$tmp/nv-again.gguf" >"$tmp/out" && test ! -s "$tmp/out"
ok 'scales of NVFP4 are in its numbers'

for pre in falcon bloom deepseek-v3; do
    rm -rf "$tmp/again.gguf" "$tmp/back/pre" && mkdir "$tmp/back/pre"
    "$convert" -q -f --pre $pre "$tmp/hf" -o "$tmp/pre.gguf" || exit 99
    run "$convert" -q "$tmp/pre.gguf" --to-safetensors "$tmp/back/pre/hf"
    test $rc -eq 0 && "$convert" -q "$tmp/back/pre/hf" -o "$tmp/again.gguf" &&
        cmp "$tmp/pre.gguf" "$tmp/again.gguf"
    ok "words cut as by $pre are described so"
done

# --------------------------------------------------------------- the card ---
card=$tmp/Tiny-Llama-20K-Instruct-v0.2
cp -r "$tmp/hf" "$card"
cat >"$card/README.md" <<'END'
---
license: [mit, apache-2.0]
license_name: "caf\u00e9 \"x\" \\"
license_link: LICENSE
language: [en, 'no', "1.0"]
tags: ["one", "a, b", "- c: d", "", "\U0001F600 \u2028\ttab"]
pipeline_tag: text-generation
datasets: []
base_model:
- meta-llama/Llama-3.2-1B
- Plain-Name-v2
- https://huggingface.co/foo/bar-7B
- https://example.org/x
- a b/c d
model_creator: Some Body
description: "two\nlines"
---
END
echo '{"top_k": 20, "temperature": 0.6, "top_p": 0.95, "sequence": "k;p"}' \
    >"$card/generation_config.json"
"$convert" -q "$card" -o "$tmp/card.gguf" || exit 99
run "$convert" "$tmp/card.gguf" --to-safetensors "$tmp/back/Other-3B-v7"
test $rc -eq 0 && ! grep -q 'has no place for' "$tmp/err"
ok 'a card and how tokens are chosen are written'
sed '/^---$/d; s/: .*/:/' "$tmp/back/Other-3B-v7/README.md" | grep '^[a-z]' |
    tr -d '\n' >"$tmp/out"
test "$(cat "$tmp/out")" = "name:author:version:finetune:basename:\
description:size_label:license:license_name:license_link:language:tags:\
datasets:base_model:"
ok 'under the names that cards have'
sed -n '/^base_model/,/^---/p' "$tmp/back/Other-3B-v7/README.md" >"$tmp/out"
diff - "$tmp/out" >"$tmp/err" <<'END'
base_model:
- meta-llama/Llama-3.2-1B
- Plain-Name-v2
- foo/bar-7B
- "https://example.org/x"
- "A B/C D"
---
END
ok 'what it is made of as a list of repositories'
rm -f "$tmp/again.gguf"
run "$convert" -q "$tmp/back/Other-3B-v7" -o "$tmp/again.gguf"
test $rc -eq 0 && cmp "$tmp/card.gguf" "$tmp/again.gguf"
ok 'and the same file comes of a folder of another name'
if python3 -c 'import yaml' 2>/dev/null; then
    python3 -c 'import sys, yaml
t = open(sys.argv[1], encoding="utf-8").read().split("---\n")[1]
d = yaml.safe_load(t)
assert d["language"] == ["en", "no", "1.0"], d
assert d["license_name"] == "caf\u00e9 \"x\" \\", d
assert d["tags"][:4] == ["one", "a, b", "- c: d", ""], d
assert d["tags"][4] == "\U0001F600 \u2028\ttab" and d["datasets"] == []
assert d["description"] == "two\nlines" and len(d["base_model"]) == 5' \
        "$tmp/back/Other-3B-v7/README.md" 2>"$tmp/err"
    ok 'as others read YAML, too'
else
    skip 'as others read YAML, too' 'no yaml for python3'
fi
"$bin/gguf-edit" -q -f "$tmp/card.gguf" -o "$tmp/odd.gguf" \
    --set general.base_model.0.author=str:x \
    --set general.base_model.0.my_name=str:x \
    --set general.base_model.00.name=str:x --set general.base_model.7.name=str:x \
    --set general.base_model.x.name=str:x --set general.base_model.1=str:x \
    --set general.base_model.1.version=str:v9 \
    --set general.tags=i32:5 --set general.license=str: \
    --set general.dataset.count=str:y \
    --set general.sampling.top_k=f32:nan || exit 99
run "$convert" "$tmp/odd.gguf" --to-safetensors "$tmp/back/odd"
sed -n 's/.*has no place for //p' "$tmp/err" | sort | tr '\n' ' ' >"$tmp/out"
test $rc -eq 0 -a "$(cat "$tmp/out")" = "general.base_model.0.author \
general.base_model.0.my_name general.base_model.00.name general.base_model.1 \
general.base_model.1.version general.base_model.7.name \
general.base_model.x.name general.dataset.count general.license \
general.sampling.top_k general.tags "
ok 'what a card has no place for is said'
rm -rf "$tmp/back/odd" && mkdir "$tmp/back/odd" && echo x >"$tmp/back/odd/README.md"
run "$convert" "$tmp/card.gguf" --to-safetensors "$tmp/back/odd"
test $rc -eq 1 && grep -q 'File exists' "$tmp/err" &&
    test "$(ls "$tmp/back/odd")" = README.md
ok 'a card that is there stays'

for what in "$tmp/none/x" "$tmp/a.gguf"; do
    run "$convert" "$tmp/a.gguf" --to-safetensors "$what"
    test $rc -eq 1 -a ! -e "$tmp/none"
    ok "no folder: $(cat "$tmp/err")"
done
run "$convert" "$tmp/none.gguf" --to-safetensors "$tmp/back/x"
test $rc -eq 1 -a ! -e "$tmp/back/x"
ok 'no file'
run "$convert" "$tmp/a.gguf" --to-safetensors "$tmp/back/x" -o "$tmp/y.gguf"
test $rc -eq 2 && grep -q exclude "$tmp/err"
ok 'not both ways at once'
"$convert" -q -f "$tmp/hf" -o "$tmp/o.gguf" \
    --override-kv general.architecture=str:odd || exit 99
run "$convert" "$tmp/o.gguf" --to-safetensors "$tmp/back/x"
test $rc -eq 1 -a ! -e "$tmp/back/x"
ok "another architecture: $(cat "$tmp/err")"
"$convert" -q -f "$tmp/hf" -o "$tmp/o.gguf" \
    --override-kv tokenizer.ggml.model=str:whitespace || exit 99
run "$convert" "$tmp/o.gguf" --to-safetensors "$tmp/back/x"
test $rc -eq 1 -a ! -e "$tmp/back/x" && grep -q "kind 'whitespace'" "$tmp/err"
ok 'a vocabulary that is not written'
"$convert" -q -f "$tmp/hf" -o "$tmp/o.gguf" \
    --override-kv tokenizer.ggml.model=str:rwkv || exit 99
run "$convert" "$tmp/o.gguf" --to-safetensors "$tmp/back/x"
test $rc -eq 1 -a ! -e "$tmp/back/x" &&
    grep -q 'a token has no text' "$tmp/err"
ok 'one that is not of its kind'

# norms of queries that no number of config.json gives
"$builddir/tests/tools/mkskeleton" "$tmp/muse.gguf" muse-glimmer || exit 99
run "$convert" "$tmp/muse.gguf" --to-safetensors "$tmp/back/x"
test $rc -eq 1 -a ! -e "$tmp/back/x" && grep -q 'qk_scale_factor' "$tmp/err"
ok "tensors that config.json does not determine: $(cat "$tmp/err")"

# A killed run leaves no folder, or all of it. If files cannot be created
# without a name, the folder comes first, and may stay empty.
rm -rf "$tmp/killed" && mkdir "$tmp/killed" || exit 99
bad=0 whole=0
for k in 0 1 2 3 4 5 6 7 8 9; do
    "$convert" -q "$tmp/a.gguf" --to-safetensors "$tmp/killed/$k" &
    pid=$!
    i=0
    while test $i -lt $((k * k * 300)); do i=$((i + 1)); done
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    test -e "$tmp/killed/$k" || continue
    if test -s "$tmp/killed/$k/model.safetensors"; then whole=$((whole + 1))
    else bad=$((bad + 1)); fi
done
if "$builddir/tests/base/check-outfile" | grep -q 'SKIP a file before'; then
    skip 'killed runs leave no folder' 'files need names here'
else
    test $bad -eq 0
    ok "10 killed runs leave no empty folder ($whole folders)"
fi

# Chat templates that a JSON list cannot store are named.
printf '{{ x }}\377' >"$tmp/bytes"
"$bin/gguf-edit" -q -f "$tmp/a.gguf" -o "$tmp/templates.gguf" \
    --set tokenizer.chat_template=str:x \
    --set tokenizer.chat_template.default=str:y \
    --set tokenizer.chat_template.n=i32:5 --set tokenizer.chat_template.t=str:z \
    --set-file tokenizer.chat_template.bytes="$tmp/bytes" 2>"$tmp/out" || exit 99
run "$convert" "$tmp/templates.gguf" --to-safetensors "$tmp/back/templates"
sed -n 's/.*has no place for //p' "$tmp/err" | sort | tr '\n' ' ' >"$tmp/out"
test $rc -eq 0 -a "$(cat "$tmp/out")" = "tokenizer.chat_template.bytes \
tokenizer.chat_template.default tokenizer.chat_template.n " &&
    tr -d ' \n' <"$tmp/back/templates/tokenizer_config.json" |
    grep -q '"name":"default","template":"x"},{"name":"t","template":"z"}'
ok 'chat templates that a folder cannot have are named, others written'

# The largest float is too large for BF16 and F16.
cp -r "$tmp/hf" "$tmp/large" || exit 99
size=$(wc -c <"$tmp/large/model.safetensors")
printf '\377\377\177\177' | dd of="$tmp/large/model.safetensors" bs=1 \
    seek=$((size - 4)) conv=notrunc 2>"$tmp/out"
"$convert" -q "$tmp/large" -o "$tmp/large.gguf" || exit 99
for type in BF16 F16; do
    run "$convert" "$tmp/large.gguf" --to-safetensors "$tmp/back/large=$type"
    test $rc -eq 1 -a ! -e "$tmp/back/large" &&
        grep -q "value 3.40282e+38, out of range of $type" "$tmp/err"
    ok "a number that $type does not hold is refused"
done

# Pages that were read are released: the file has 85 MB.
case ${TEST_CFLAGS-} in
*sanitize=*)
    skip 'memory of a run' 'sanitizers need more'
    ;;
*)
    "$builddir/tests/bench/mksynth" words Q8_0 "$tmp/words.gguf" || exit 99
    run "$builddir/tests/bench/timed" "$tmp/times" "$convert" -q \
        "$tmp/words.gguf" --to-safetensors "$tmp/back/words"
    kib=$(cut -d ' ' -f 3 "$tmp/times")
    test $rc -eq 0 -a "$kib" -gt 1024 -a "$kib" -lt 49152
    ok "memory does not grow with the file: $kib KiB"
    ;;
esac
done_testing
