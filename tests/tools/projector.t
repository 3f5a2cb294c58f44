#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-convert --mmproj and --mmproj-output. The projectors of made folders of
# every class are those that llama.cpp's converter writes, except for the
# departures that doc/projectors.md names.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
convert=$bin/gguf-convert
info=$bin/gguf-info
quantize=$bin/gguf-quantize
"$builddir/tests/tools/mkfolder" "$tmp/see" vision wide || exit 99

run "$convert" "$tmp/see" -o "$tmp/a.gguf"
test $rc -eq 0 && grep -q '12 tensors that see or hear.*--mmproj' "$tmp/err"
ok 'a conversion without the projector says how to get it'
# leaves WHAT N ARG... - N tensors of the towers of a folder (mkfolder ARG...)
# are left out of its language model
leaves() {
    what=$1
    n_left=$2
    shift 2
    rm -rf "$tmp/other"
    "$builddir/tests/tools/mkfolder" "$tmp/other" "$@" || exit 99
    run "$convert" "$tmp/other" -o "$tmp/other.gguf"
    test $rc -eq 0 && rm "$tmp/other.gguf" &&
        grep -q "$n_left tensors that see or hear.*--mmproj" "$tmp/err"
    ok "$what"
}
leaves "Qwen2-VL's tower is left out" 3 class=Qwen2VLForConditionalGeneration \
    members=',"model_type":"qwen2_vl",
        "rope_scaling":{"type":"mrope","mrope_section":[2,1,1]},
        "vision_config":{"hidden_size":32,"depth":1}' \
    'tensor=visual.patch_embed.proj.weight 16 3 2 4 4' \
    'tensor=visual.blocks.0.norm1.weight 16' \
    'tensor=visual.merger.mlp.0.weight 64 64'
leaves "LLaVA 1.6's tower and the vector between its lines are left out" 3 \
    class=LlavaNextForConditionalGeneration \
    members=',"text_config":{"hidden_size":32,"intermediate_size":32,
        "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
        "vocab_size":260,"max_position_embeddings":64},
        "vision_config":{"model_type":"clip_vision_model"}' \
    'tensor=image_newline 32' \
    'tensor=vision_tower.vision_model.embeddings.class_embedding 16' \
    'tensor=vision_tower.vision_model.post_layernorm.weight 16' \
    'tensor=multi_modal_projector.linear_1.weight 32 16'
leaves "Voxtral's encoder is left out" 2 \
    class=VoxtralForConditionalGeneration members=',"audio_config":{}' \
    'tensor=audio_tower.layers.0.fc1.weight 32 16' \
    'tensor=multi_modal_projector.linear_1.weight 32 64'
run "$convert" --json -q "$tmp/see" --mmproj -o "$tmp/p.gguf"
test $rc -eq 0 && grep -q '"kind": *"projector"' "$tmp/out"
ok 'the projector is converted alone'
run "$convert" "$tmp/see" -o "$tmp/b.gguf" --mmproj-output "$tmp/q.gguf=F16"
test $rc -eq 0 && cmp "$tmp/a.gguf" "$tmp/b.gguf" &&
    ! grep -q 'see or hear' "$tmp/err" &&
    "$info" --tensors "$tmp/q.gguf" | grep -q 'v.patch_embd.weight.*F16'
ok 'both files in one run, each in its type'
rm -f "$tmp/b.gguf"
echo '{' >"$tmp/see/preprocessor_config.json"
run "$convert" "$tmp/see" -o "$tmp/b.gguf" --mmproj-output "$tmp/r.gguf"
test $rc -eq 1 -a ! -e "$tmp/b.gguf" -a ! -e "$tmp/r.gguf" &&
    grep -q 'preprocessor_config.json' "$tmp/err"
ok 'a projector that is refused leaves no model either'
# refuses RC TEXT WHAT ARG... - is a projector of it refused with the text?
refuses() {
    want=$1
    text=$2
    what=$3
    shift 3
    run "$convert" "$@" --mmproj -o "$tmp/r.gguf"
    test $rc -eq "$want" -a ! -e "$tmp/r.gguf" && grep -q "$text" "$tmp/err"
    ok "no projector of $what"
}
refuses 1 'is a file: .*folder of a model that sees' 'one file of weights' \
    "$tmp/see/model.safetensors"
refuses 2 "sees, hears or speaks, found the GGUF file '" 'a GGUF file' \
    "$tmp/p.gguf"
"$builddir/tests/tools/mkfolder" "$tmp/reads" || exit 99
refuses 1 'LlamaForCausalLM.*models that only read have none' 'a model that reads' \
    "$tmp/reads"
run "$quantize" "$tmp/p.gguf" "$tmp/s.gguf" Q8_0
test $rc -eq 0 && "$info" --tensors "$tmp/s.gguf" >"$tmp/out" 2>&1 &&
    grep -q 'v.patch_embd.weight.*F32' "$tmp/out" &&
    grep -q 'v.blk.0.ln1.weight.*F32' "$tmp/out" &&
    grep -q 'mm.0.weight.*F16' "$tmp/out" &&
    grep -q 'v.blk.0.attn_q.weight.*F16' "$tmp/out"
ok 'gguf-quantize keeps filters; rows that blocks do not fit become F16'
run "$info" --summary "$tmp/p.gguf"
test $rc -eq 0 &&
    grep -q 'sees  *janus_pro: images of 8 px, patches of 4 px' "$tmp/out" &&
    grep -q 'for models of' "$tmp/out"
ok 'gguf-info says what a projector sees'
run "$info" --summary --json "$tmp/p.gguf"
cp "$tmp/out" "$tmp/json"
test $rc -eq 0 && grep -q '"type": *"janus_pro"' "$tmp/json"
ok 'in JSON, too'
if python3 -c '' 2>/dev/null; then
    run python3 "$srcdir/tests/tools/schema.py" \
        "$srcdir/share/gguf-info.schema.json" "$tmp/json"
    test $rc -eq 0
    ok 'which keeps to the schema'
else
    skip 'which keeps to the schema' 'no python3'
fi
run "$info" --check "$tmp/p.gguf"
test $rc -eq 0 && grep -q '0 errors, 0 warnings' "$tmp/out"
ok 'gguf-info --check finds nothing wrong'
# edit WHAT OPTION... - change a copy of the projector, and check it
edit() {
    what=$1
    shift
    "$bin/gguf-edit" -q "$@" -f -o "$tmp/bad.gguf" "$tmp/p.gguf" || exit 99
    run "$info" --check "$tmp/bad.gguf"
    test $rc -eq 1 && grep -q -e "$what" "$tmp/out"
    ok "gguf-info --check: $what"
}
edit missing-key --delete=clip.vision.image_size
edit missing-key --delete=clip.projector_type
edit missing-key --delete=clip.has_vision_encoder
edit key-type --set=clip.vision.patch_size=str:x
edit key-type --set=clip.vision.image_mean=f32:1
edit key-value --set=clip.vision.embedding_length=u32:0
edit key-value --set=clip.vision.patch_size=u32:7
edit key-value --set=clip.vision.embedding_length=u32:7
edit missing-block --set=clip.vision.block_count=u32:2
edit missing-block --set=clip.vision.block_count=u32:2000000000
edit missing-tensor --set=clip.projector_type=str:phi4
edit missing-tensor --set=clip.has_audio_encoder=bool:true \
    --set=clip.audio.block_count=u32:1

# Old files of LLaVA have CLIP's own projection_dim.
"$bin/gguf-edit" -q -f --set=clip.projector_type=str:mlp \
    --set=clip.vision.projection_dim=u32:768 -o "$tmp/mlp.gguf" "$tmp/p.gguf" ||
    exit 99
run "$info" --summary "$tmp/mlp.gguf"
grep -q 'embedding length 256$' "$tmp/out"
ok 'the width for which a perceptron is made is that of its last matrix'
data=${GGUF_SHARED:-/nowhere}/golden/mmproj
if ! test -d "$data" || ! python3 -c '' 2>/dev/null; then
    skip 'made folders of every class' 'no folders, or no python3'
    done_testing
fi
cat >"$tmp/convert" <<EOF
#!/bin/sh
exec "$bin/gguf-convert" --mmproj -q "\$1" -o "\$2=\$3"
EOF
chmod +x "$tmp/convert"
cat >"$tmp/check.py" <<'EOF'
import filecmp, json, os, struct, subprocess, sys
sys.path.insert(0, sys.argv[1])
import dump_gguf, make_folder
data, tmp = sys.argv[1:3]
dump_gguf.PATHDEP += ("quantize.tool", "quantize.recipe.name",
                      "quantize.recipe.digest")
n = int(sys.argv[3])
departs = sys.argv[4:]
def equal(name, kind):
    out = os.path.join(tmp, "out.gguf")
    if os.path.exists(out):
        os.unlink(out)
    path = make_folder.write(name, os.path.join(tmp, "hf"))
    r = subprocess.run([tmp + "/convert", path, out, kind.upper()])
    want = "%s/want/%s%s.%s.tsv" % (data, name, "%s", kind)
    fixed = want % ".fixed"
    same = r.returncode == 0 and not dump_gguf.compare(
        out, fixed if os.path.exists(fixed) else want % "", False)
    return same
def run(tool, *args):
    r = subprocess.run([os.environ["BIN"] + "/gguf-" + tool] + list(args),
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return r.returncode, r.stdout.decode("utf-8", "replace")
def is_sound(path):
    rc, text = run("info", "--check", path)
    return rc == 0 and " 0 errors, 0 warnings" in text
# A converted file, and what gguf-quantize makes of it, have no findings, and
# keep all but matrices: --diff says so of the names and shapes.
def works(recipe):
    out, to = os.path.join(tmp, "out.gguf"), os.path.join(tmp, "to.gguf")
    return (is_sound(out) and run("quantize", "-qf", out, to, recipe)[0] == 0
            and is_sound(to) and run("info", "--diff", out, to)[0] == 1)
def tensors(folder):
    found = {}
    for at, _, files in os.walk(folder):
        for file in files:
            if not file.endswith(".safetensors"):
                continue
            with open(os.path.join(at, file), "rb") as f:
                n = struct.unpack("<Q", f.read(8))[0]
                head = json.loads(f.read(n))
                for name, v in head.items():
                    if name == "__metadata__":
                        continue
                    begin, end = v["data_offsets"]
                    f.seek(8 + n + begin)
                    found[name] = v["dtype"], v["shape"], f.read(end - begin)
    return found
def numbers(dtype, data):
    if dtype == "BF16":
        data = b"".join(b"\0\0" + data[i:i + 2]
                        for i in range(0, len(data), 2))
    kind = "e" if dtype == "F16" else "f"
    return struct.unpack("<%d%s" % (len(data) / (2 if kind == "e" else 4),
                                    kind), data)
# Are the numbers of a folder that was made those of the original? Files have
# some tensors in F16, and softplus is undone within rounding.
def same_numbers(name, a, b):
    if a[1] != b[1]:
        return False
    x, y = numbers(a[0], a[2]), numbers(b[0], b[2])
    if "per_dim" in name:
        return all(abs(p - q) <= 1e-6 for p, q in zip(x, y))
    if b[0] == "F16":
        x = struct.unpack("<%de" % len(x), struct.pack("<%de" % len(x), *x))
    return x == y
# The folder of the file has the tensors of the first folder, and becomes the
# file again. None: the class has no way back, and the message says so.
def comes_back(name, path):
    out, again = os.path.join(tmp, "out.gguf"), os.path.join(tmp, "again.gguf")
    back = os.path.join(tmp, "back", name)
    rc, text = run("convert", out, "--to-safetensors", back)
    if rc:
        return None if "has no way back: " in text else text
    if "no place" in text:
        return text
    here, there = tensors(path), tensors(back)
    renamed = name in ("glm5v", "interns1") # names of another class's folder
    for k, v in there.items():
        if not renamed and (k not in here or
                            not same_numbers(k, here[k], v)):
            return "tensor " + k
    rc, text = run("convert", "--mmproj", "-qf", back, "-o", again + "=F32")
    same = rc == 0 and filecmp.cmp(out, again, False)
    return "" if same else text or "another file"
os.makedirs(os.path.join(tmp, "back"))
without = ("granite-speech granite-speech-plus granite4-vision hunyuan-vl "
           "lfm2-audio mimo-v2 mistral3 nemotron-v2-vl phi4-vision pixtral "
           "pixtral-mistral qwen3-tts pixtral-b pixtral-mistral-b").split()
for name in sorted(x[:-5] for x in os.listdir(data + "/specs")):
    for kind in ("f32", "f16"):
        n += 1
        same = equal(name, kind)
        print("%sok %d - %s in %s%s" % (
            "" if same != (name in departs) else "not ", n, name, kind,
            " departs" if name in departs else ""))
        if kind == "f32":
            n += 1
            what = comes_back(name, os.path.join(tmp, "hf", name))
            print("%sok %d - the way back of %s%s" % (
                "" if (what is None if name in without else what == "")
                else "not ", n, name, " " + what if what else ""))
        if kind == "f16":
            for recipe in ("Q8_0", "Q4_K_M"):
                n += 1
                print("%sok %d - %s in %s has no findings" % (
                    "" if works(recipe) else "not ", n, name, recipe))
print("1..%d" % n)
EOF
BIN=$bin TMPDIR=$tmp python3 "$tmp/check.py" "$data" "$tmp" "$n" \
    kimi-k2.5 kimi-k2.5-heads4 glm5v granite-speech granite-speech-plus \
    gemma3n \
    2>/dev/null | sed 's/^[-+]/# &/'
exit $status
