#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-convert --mmproj: the projectors of made folders of every class are those
# that llama.cpp's converter writes, except for the departures that
# doc/projectors.md names.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
data=${GGUF_SHARED:-/nowhere}/golden/mmproj
if ! test -d "$data" || ! python3 -c '' 2>/dev/null; then
    echo '1..0 # SKIP no made folders, or no python3'
    exit 0
fi
cat >"$tmp/convert" <<EOF
#!/bin/sh
exec "$bin/gguf-convert" --mmproj -q "\$1" -o "\$2=\$3"
EOF
chmod +x "$tmp/convert"
cat >"$tmp/check.py" <<'EOF'
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
import dump_gguf, make_folder
data, tmp = sys.argv[1:3]
dump_gguf.PATHDEP += ("quantize.tool", "quantize.recipe.name",
                      "quantize.recipe.digest")
departs = sys.argv[3:]
def equal(name, kind):
    out = os.path.join(tmp, "out.gguf")
    path = make_folder.write(name, os.path.join(tmp, "hf"))
    r = subprocess.run([tmp + "/convert", path, out, kind.upper()])
    want = "%s/want/%s%s.%s.tsv" % (data, name, "%s", kind)
    fixed = want % ".fixed"
    same = r.returncode == 0 and not dump_gguf.compare(
        out, fixed if os.path.exists(fixed) else want % "", False)
    if r.returncode == 0:
        os.unlink(out)
    return same
n = 0
for name in sorted(x[:-5] for x in os.listdir(data + "/specs")):
    for kind in ("f32", "f16"):
        n += 1
        same = equal(name, kind)
        print("%sok %d - %s in %s%s" % (
            "" if same != (name in departs) else "not ", n, name, kind,
            " departs" if name in departs else ""))
print("1..%d" % n)
EOF
TMPDIR=$tmp python3 "$tmp/check.py" "$data" "$tmp" \
    kimi-k2.5 kimi-k2.5-heads4 glm5v 2>/dev/null | sed 's/^[-+]/# &/'
