#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ppl --plot: the drawing has the figures of JSON and --per-token.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
t=$tmp/text
q4=$tmp/q4.gguf
evil=$tmp/'q<script>"&.gguf'
head -c 8000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"
"$bin/gguf-quantize" -q "$m" "$q4" Q4_K_M &&
    "$bin/gguf-quantize" -q "$m" "$tmp/q8.gguf" Q8_0 &&
    cp "$tmp/q8.gguf" "$evil" || exit 99

run "$ppl" -q -j -m "$q4" -f "$t" -c 128 --chunks 12 --plot "$tmp/one.svg"
test $rc -eq 0 -a ! -s "$tmp/err"
ok 'a picture of one model'
cp "$tmp/out" "$tmp/one.json"
run "$ppl" -q -j -m "$q4" -m "$evil" --base "$m" -f "$t" -c 128 --chunks 12 \
    --plot "$tmp/two.svg" --per-token "$tmp/each.jsonl"
test $rc -eq 0 -a ! -s "$tmp/err"
ok 'of two and their base'
cp "$tmp/out" "$tmp/two.json"
for f in one two; do
    head -n 1 "$tmp/$f.svg" | grep -q '^<?xml ' &&
        grep -q 'prefers-color-scheme:dark' "$tmp/$f.svg" &&
        test "$(wc -c <"$tmp/$f.svg")" -lt 60000
    ok "$f.svg is for light and dark, and small"
done
if command -v python3 >/dev/null 2>&1; then
    run python3 -c 'import json, math, sys
sys.path.insert(0, sys.argv[1])
import svg
root, c = svg.charts(sys.argv[2])
d = json.load(open(sys.argv[3]))
assert list(c) == ["running"], list(c)
line = c["running"].lines["q4"]
assert len(line) == 12
s = 0
for i, (x, y) in enumerate(line):
    s += d["chunk_nll"][i]
    want = math.exp(s / (63 * (i + 1)))
    assert abs(x - (i + 1)) < 0.01, x
    assert abs(y - want) < c["running"].resolution(want), (i, y, want)
text = " ".join(root.itertext())
assert "PPL %.4f \u00b1 %.4f" % (d["ppl"], d["ppl_error"]) in text' \
        "$srcdir/tests/tools" "$tmp/one.svg" "$tmp/one.json"
    test $rc -eq 0
    ok 'the line has the perplexity after each chunk'
    "$bin/gguf-ppl" -qj -m "$q4" -f "$t" -c 128 --chunks 1 --plot "$tmp/dot.svg" \
        >"$tmp/dot.json"
    run python3 -c 'import json, sys
sys.path.insert(0, sys.argv[1])
import svg
root, c = svg.charts(sys.argv[2])
d = json.load(open(sys.argv[3]))
(x, y), = c["running"].dots.values()
assert abs(x - 1) < 0.01, x
assert abs(y - d["ppl"]) < c["running"].resolution(y), (y, d["ppl"])' \
        "$srcdir/tests/tools" "$tmp/dot.svg" "$tmp/dot.json"
    test $rc -eq 0
    ok 'one chunk is a dot'
    run python3 -c 'import json, math, re, sys
sys.path.insert(0, sys.argv[1])
import svg
root, c = svg.charts(sys.argv[2])
d = json.load(open(sys.argv[3]))
each = [json.loads(s) for s in open(sys.argv[4], encoding="utf-8")]
assert sorted(c) == ["change", "position", "running"]
text = " ".join(root.itertext())
evil = "q<script>\"&"
names = ["q4", evil]
assert sorted(c["running"].lines) == sorted(names + ["tiny-llama-f16"])
for m, name in zip(d["models"], names):
    mine = [t for t in each if t["model"] == m["file"]]
    n = len(mine)
    at = text.find("PPL %.4f \u00b1 %.4f" % (m["ppl"]["value"],
                                            m["ppl"]["error"]))
    assert at >= 0
    kld, error = re.search("KLD ([0-9.]+) \u00b1 ([0-9.]+)", text[at:]).groups()
    assert abs(float(kld) / m["kld"]["value"] - 1) < 1e-3, kld
    assert abs(float(error) / m["kld"]["error"] - 1) < 0.1, error
    y = c["running"].lines[name][-1][1]
    assert abs(y - m["ppl"]["value"]) < c["running"].resolution(y)
    bins = [[] for _ in range(64)]
    for t in mine: # row 0 predicts position 65 of the chunk
        bins[(t["position"] - 65) * 64 // 63].append(t["kld"])
    want = [math.fsum(b) / len(b) for b in bins if b]
    got = c["position"].lines[name]
    assert len(got) == len(want) == 63
    for (x, y), w in zip(got, want):
        assert abs(y - w) < c["position"].resolution(w), (y, w)
    # each flat part of the steps, of one or several bins of one height
    dp = [math.exp(-t["nll"]) - math.exp(-t["nll_base"]) for t in mine]
    narrow = [math.floor((v + 1) / 2 * 20000) - 10000 for v in dp]
    p = c["change"].lines[name]
    flat = [(x0, x1, y) for (x0, y), (x1, _) in zip(p, p[1:]) if x1 - x0 > 1e-6]
    width = min(x1 - x0 for x0, x1, _ in flat)
    seen = 0
    for x0, x1, y in flat:
        i, j = round(x0 * 100), round(x1 * 100)
        count = len([v for v in narrow if i <= v < j])
        seen += count
        if y < c["change"].y[2] * 1.001: # on the axis
            assert count == 0
        else:
            assert abs(y * n / width * (x1 - x0) / 100 - count) < 0.01 * count, (x0, count)
    assert seen == n
base = c["running"].lines["tiny-llama-f16"][-1][1]
assert abs(base - d["base"]["ppl"]["value"]) < c["running"].resolution(base)
assert "PPL %.4f" % d["base"]["ppl"]["value"] in text' \
        "$srcdir/tests/tools" "$tmp/two.svg" "$tmp/two.json" "$tmp/each.jsonl"
    test $rc -eq 0
    ok 'lines, bins and the key have the figures of JSON and --per-token'
else
    skip 'what is drawn' 'no python3'
fi
grep -q 'q&lt;script&gt;' "$tmp/two.svg" && ! grep -q '<script' "$tmp/two.svg"
ok 'names are text'

cp "$tmp/two.svg" "$tmp/kept"
run "$ppl" -q -j -m "$q4" -m "$evil" --base "$m" -f "$t" -c 128 --chunks 12 \
    --plot "$tmp/two.svg"
fails 'two.svg: ' && cmp -s "$tmp/two.svg" "$tmp/kept"
ok 'a picture that is there stays'
run "$ppl" -q -j -m "$q4" -m "$evil" --base "$m" -f "$t" -c 128 --chunks 12 \
    --plot "$tmp/two.svg" --force -t 3 -ub 70
test $rc -eq 0 && cmp -s "$tmp/two.svg" "$tmp/kept"
ok 'but with --force: the same bytes by other threads and batches'
run "$ppl" -q -m "$q4" -f "$t" --plot "$tmp/x.png"
test $rc -eq 2 && grep -q 'does not end in .svg' "$tmp/err"
ok 'another ending is refused'
cp "$m" "$tmp/m.svg"
run "$ppl" -q -m "$q4" -m "$tmp/m.svg" --base "$m" -f "$t" --plot "$tmp/m.svg" --force
fails 'would be both --model and --plot' && cmp -s "$m" "$tmp/m.svg"
ok 'not over the second model'
run "$ppl" -q -m "$q4" --base "$tmp/m.svg" -f "$t" --plot "$tmp/m.svg" --force
fails 'would be both --base and --plot' && cmp -s "$m" "$tmp/m.svg"
ok 'nor over the base'
if (ulimit -f 4) 2>/dev/null; then
    (
        ulimit -f 4
        run "$ppl" -q -m "$q4" -m "$evil" --base "$m" -f "$t" -c 128 \
            --plot "$tmp/full.svg"
        echo $rc >"$tmp/rc"
    )
    rc=$(cat "$tmp/rc")
    fails 'full.svg: ' && test ! -e "$tmp/full.svg"
    ok 'no room: a message, and no file'
else
    skip 'no room' 'no limits'
fi
run "$ppl" -q -m "$q4" --base "$m" -f "$t" -c 128 --plot "$tmp/none/x.svg"
fails 'none/x.svg: ' && test ! -s "$tmp/out"
ok 'no folder: known before the work'

done_testing
