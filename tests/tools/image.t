#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-convert: image and video models in one .safetensors file. Made models
# become the files that the converter of ComfyUI-GGUF writes, except for the
# departures that are listed below. Some are also divided into shards, as a
# pipeline of diffusers.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
data=${GGUF_SHARED:-/nowhere}/golden/image
if ! test -d "$data" || ! python3 -c '' 2>/dev/null; then
    skip 'made image and video models' 'no models, or no python3'
    done_testing
fi
cat >"$tmp/check.py" <<'EOF'
import json, os, shutil, struct, subprocess, sys
data, tmp, convert = sys.argv[1:4]

# Tensors that differ, by model. "-NAME": a tensor that is left out here.
DEPARTS = {
    # a prefix inside of a name does not count
    "aura_vae": ["-first_stage_decoder.conv_in.weight", "positional_encoding",
                 "-text_encoders.pile_t5xl.transformer.norm.weight"],
    "flux_prefix_inside": ["-model_ema.img_in.weight"],
    "model_only_prefix": ["-aux_lin.weight", "aux_model.lin.weight"],
    # parameters of no layer are read in F32 or F16 only
    "sd3_bf16": ["pos_embed"],
    "sdxl_bf16": ["border.last256", "border.last512", "border.n1280",
                  "border.odd1152", "border.three"],
    "wan_flf2v": ["img_emb.emb_pos"],
}
MADE = ["cosmos_mixed", "ernie_image", "five_d_flux", "krea2", "ltx23"]
REFUSED = ["aura_diffusers", "flux_diffusers", "sd3_diffusers", "unknown",
           "name_128", "edge"]
# Scales are applied and left out. Whole numbers keep their types.
OTHER = ["flux_fp8_scaled", "dtypes"]

def load(lines):
    t, kv = {}, {}
    for f in (l.rstrip("\n").split("\t") for l in lines):
        if f[0] == "tensor":
            t[f[1]] = f[2:]
        elif f[0] == "kv":
            kv[f[1]] = f[2:]
    return t, kv

def fold(t, kv):
    """Tensors of five dimensions as four, with a key."""
    for name, v in t.items():
        ne = v[1].split(",")
        if len(ne) == 5:
            kv["comfy.gguf.orig_shape." + name] = [
                "arr:i32", "[" + ",".join(reversed(ne)) + "]"]
            v[1] = ",".join(ne[:3] + [str(int(ne[3]) * int(ne[4]))])

def compare(name, out):
    for kind in (".fixed", ".auto.fixed", ".auto", ""):
        path = "%s/want/%s%s.tsv" % (data, name, kind)
        if os.path.exists(path):
            break
    want, want_kv = load(open(path))
    fold(want, want_kv)
    got, got_kv = load(subprocess.run(
        [sys.executable, data + "/dump_gguf.py", out], text=True,
        stdout=subprocess.PIPE).stdout.splitlines())
    bad = {k for k in set(got) | set(want) if got.get(k) != want.get(k)}
    bad -= {k.lstrip("-") for k in DEPARTS.get(name, [])}
    bad |= {k for k in set(got_kv) | set(want_kv)
            if got_kv.get(k) != want_kv.get(k)}
    bad |= {k for k in DEPARTS.get(name, [])
            if k[0] == "-" and k[1:] in got}
    return sorted(bad)

def scales(out):
    """Numbers of 8-bit floats with scales."""
    got, _ = load(subprocess.run(
        [sys.executable, data + "/dump_gguf.py", out], text=True,
        stdout=subprocess.PIPE).stdout.splitlines())
    bad = []
    for l in open(data + "/want/flux_fp8_scaled.right.tsv"):
        f = l.rstrip("\n").split("\t")
        if f[0] == "drop" and f[1] in got:
            bad.append(f[1])
        if f[0] == "tensor" and got[f[1]][3] != f[
                {"F32": 4, "F16": 5, "BF16": 6}[got[f[1]][0]]]:
            bad.append(f[1])
    return bad

def dump(out):
    return sorted(subprocess.run(
        [sys.executable, data + "/dump_gguf.py", out], text=True,
        stdout=subprocess.PIPE).stdout.splitlines())

def divide(made, folder, part):
    """Write the tensors of a file as three shards of a pipeline's part."""
    os.makedirs(folder + "/" + part)
    whole = open(made, "rb").read()
    n = struct.unpack("<Q", whole[:8])[0]
    head = json.loads(whole[8:8 + n])
    head.pop("__metadata__", None)
    where = {}
    for i in range(3):
        name = "diffusion_pytorch_model-%05d-of-00003.safetensors" % (i + 1)
        own, at, body = {}, 0, b""
        for key in list(head)[i::3]:
            begin, end = head[key]["data_offsets"]
            own[key] = dict(head[key],
                            data_offsets=[len(body), len(body) + end - begin])
            body += whole[8 + n + begin:8 + n + end]
            where[key] = name
        text = json.dumps(own).encode()
        with open("%s/%s/%s" % (folder, part, name), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + body)
    with open("%s/%s/diffusion_pytorch_model.safetensors.index.json" %
              (folder, part), "w") as f:
        json.dump({"weight_map": where}, f)
    with open(folder + "/model_index.json", "w") as f:
        json.dump({"transformer": [None, None],
                   part: ["diffusers", "Model"]}, f)

def is_same_folder(made, out, part):
    folder, other = tmp + "/pipe", tmp + "/folder.gguf"
    shutil.rmtree(folder, ignore_errors=True)
    divide(made, folder, part)
    r = subprocess.run([convert, "-qf", folder, "-o", other])
    return r.returncode == 0 and dump(out) == dump(other)

def works(out):
    """Tools take such files without options."""
    other = tmp + "/other.gguf"
    tools = os.path.dirname(convert)
    for c in (["gguf-info", "--check", out], ["gguf-info", "--stats", out],
              ["gguf-quantize", "-qf", out, other, "Q4_K_M"],
              ["gguf-info", "--check", other],
              ["gguf-info", "--diff", out, out],
              ["gguf-split", "--split-max-tensors", "20", "-f", out,
               tmp + "/shard"]):
        if subprocess.run([tools + "/" + c[0]] + c[1:],
                          stdout=subprocess.DEVNULL).returncode:
            return c[0]
    return None

n = 0
for name in sorted(x[:-5] for x in os.listdir(data + "/specs")):
    n += 1
    made, out = tmp + "/m.safetensors", tmp + "/m.gguf"
    for path in (made, out):
        if os.path.exists(path):
            os.unlink(path)
    subprocess.run([sys.executable, data + "/make_model.py",
                    "%s/specs/%s.json" % (data, name), made],
                   stdout=subprocess.DEVNULL)
    r = subprocess.run([convert, "-q", made, "-o", out],
                       stderr=subprocess.DEVNULL)
    bad = []
    if name in REFUSED:
        good = r.returncode == 1 and not os.path.exists(out)
    elif r.returncode or name in MADE:
        good = r.returncode == 0
    else:
        bad = (scales(out) if name == "flux_fp8_scaled" else
               [] if name in OTHER else compare(name, out))
        good = not bad
    print("%sok %d - %s%s" % ("" if good else "not ", n, name,
                              ": " + " ".join(bad[:5]) if bad else ""))
    part = {"hidream": "transformer", "wan_vace": "transformer",
            "order_sdxl_sd1": "unet"}.get(name)
    if part:
        n += 1
        print("%sok %d - %s as a pipeline" % (
            "" if is_same_folder(made, out, part) else "not ", n, name))
    if name in ("dtypes", "name_127", "wan_vace"):
        n += 1
        bad = works(out)
        print("%sok %d - tools take %s%s" % (
            "not " if bad else "", n, name, ": " + bad if bad else ""))
print("1..%d" % n)
EOF
python3 "$tmp/check.py" "$data" "$tmp" "$bin/gguf-convert"
exit $status
