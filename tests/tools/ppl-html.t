#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ppl --html: a page that needs no other file, with the figures of the
# JSON.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
t=$tmp/text
q4=$tmp/q4.gguf
evil=$tmp/'q8<script>alert(1)</script>.gguf'
mark=$(printf '\342\200\256')
head -c 8000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"
mkdir "$tmp/q8<script>alert(1)<" || exit 99 # the file's name has a slash
"$bin/gguf-quantize" -q "$m" "$q4" Q4_K_M &&
    "$bin/gguf-quantize" -q "$m" "$tmp/q3.gguf" Q3_K_S &&
    "$bin/gguf-quantize" -q "$m" "$tmp/q8.gguf" Q8_0 &&
    "$bin/gguf-edit" -q --set "general.name=str:<script>x</script>&\"'$mark]]>-->" \
        -o "$evil" "$tmp/q8.gguf" || exit 99

run "$ppl" -q -j -m "$evil" -m "$tmp/q3.gguf" -m "$q4" --base "$m" -f "$t" \
    -c 128 --chunks 12 --html "$tmp/page.html"
test $rc -eq 0 -a ! -s "$tmp/err"
ok 'a page of three models and their base'
cp "$tmp/out" "$tmp/page.json"
run "$ppl" -q -j -m "$q4" -f "$t" -c 128 --chunks 12 --html "$tmp/one.html" \
    --plot "$tmp/one.svg"
test $rc -eq 0 -a ! -s "$tmp/err" -a -s "$tmp/one.svg"
ok 'of one model alone, and a picture'
cp "$tmp/out" "$tmp/one.json"
"$ppl" -q -m "$m" -f "$t" -c 128 --chunks 12 --save-base "$tmp/logits" >"$tmp/out"
run "$ppl" -q -j -m "$q4" -m "$evil" --base "$tmp/logits" --html "$tmp/saved.html"
test $rc -eq 0 -a ! -s "$tmp/err"
ok 'of models and a file of logits'
cp "$tmp/out" "$tmp/saved.json"
for f in page one saved; do
    ! grep -q -i -e '<script' -e "$mark" -e 'http-equiv' -e '@import' \
        "$tmp/$f.html" && test "$(wc -c <"$tmp/$f.html")" -lt 150000 &&
        test "$(grep -o 'http[^"]*' "$tmp/$f.html" | grep -v 'www.w3.org' |
            wc -l)" -eq 0
    ok "$f.html: no script, nothing from elsewhere, small"
    grep -q 'name="viewport"' "$tmp/$f.html" &&
        grep -q 'td::before{content:attr(data-label)' "$tmp/$f.html" &&
        grep -q 'prefers-color-scheme:dark' "$tmp/$f.html" &&
        grep -q '<html .*lang="en"' "$tmp/$f.html"
    ok "$f.html: for narrow screens, light and dark"
done
grep -q '<small>&lt;script&gt;x&lt;/script&gt;&amp;&quot;&#39;\\u{202E}' \
    "$tmp/page.html"
ok 'names are text'
if command -v python3 >/dev/null 2>&1; then
    run python3 -c 'import json, math, re, sys
import xml.etree.ElementTree as ET
sys.path.insert(0, sys.argv[1])
import svg
H = "{http://www.w3.org/1999/xhtml}"
def cells(row):
    out = {}
    for td in row.iter(H + "td"):
        out.setdefault(td.get("data-name"), []).append(
            [float(d.get("value")) for d in td.iter(H + "data")])
    return out
for page in sys.argv[2:]:
    root = ET.parse(page + ".html").getroot()
    svg.check(root)
    charts = svg.charts_of(root)
    d = json.load(open(page + ".json"))
    pre = json.loads("".join(root.find(".//" + H + "pre").itertext()))
    assert pre == d
    tables = {t.get("id"): t for t in root.iter(H + "table")}
    for x in root.iter("{http://www.w3.org/2000/svg}text"):
        assert not re.match("[0-9]+e-[0-4]", x.text or ""), x.text
    for x in root.iter(H + "data"): # no exponents, and no zero below zero
        shown = "".join(x.itertext())
        assert re.fullmatch("[-+]?[0-9]+([.][0-9]+)?( [KMG]iB|%)?", shown) \
            and not re.fullmatch("-[0.]+%?", shown), shown
    rows = list(tables["models"].find(H + "tbody"))
    heads = [" ".join("".join(th.itertext()).split())
             for th in tables["models"].find(H + "thead").iter(H + "th")]
    for row in rows: # which are lists where there is no room for columns
        labels = [td.get("data-label") for td in row.iter(H + "td")
                  if len(td)]
        assert labels and set(labels) <= set(heads[1:]), (labels, heads)
        assert len(set(labels)) == len(labels)
    if "model" in d:
        assert len(rows) == 1 and list(charts) == ["running"]
        c = cells(rows[0])
        assert c["ppl"] == [[d["ppl"], d["ppl_error"]]]
        assert c["size"] == [[d["model"]["size"]]]
        continue
    heat = [k for k in charts if k.startswith("heat")]
    assert len(heat) == (len(d["models"]) if page.endswith("page") else 0)
    for k in heat:
        charts.pop(k)
    assert sorted(charts) == ["change", "dpboxes", "kldboxes", "kldsize",
                              "position", "pplsize", "running"]
    models = sorted(d["models"], key=lambda m: -m["size"])
    assert cells(rows[0])["ppl"] == [list(d["base"]["ppl"].values())]
    for m, row, kq, dq in zip(models, rows[1:],
                              tables["kldq"].find(H + "tbody"),
                              tables["dpq"].find(H + "tbody")):
        c = cells(row)
        assert c["size"] == [[m["size"]]]
        for name in ("ppl", "kld", "dp_rms", "same_top"):
            assert c[name] == [list(m[name].values())], name
        assert c["kld99"] == [[m["kld_quantiles"][10]["value"]]]
        assert c["change"] == [[m["ratio"]["value"] - 1, m["ratio"]["error"]]]
        for q, want in (kq, m["kld_quantiles"]), (dq, m["dp_quantiles"]):
            got = cells(q)["q"]
            assert [v[0] for v in got] == [w["value"] for w in want]
        label = "".join(row.find(H + "th").itertext())
        x, y = next(v for k, v in charts["kldsize"].dots.items()
                    if label.startswith(k))
        assert abs(x * 1048576 / m["size"] - 1) < 1e-3, (x, m["size"])
        k = m["kld"]["value"]
        assert abs(y - k) < charts["kldsize"].resolution(k), (y, k)
        x, y = next(v for k, v in charts["pplsize"].dots.items()
                    if label.startswith(k))
        p = m["ppl"]["value"]
        assert abs(y - p) < charts["pplsize"].resolution(p), (y, p)
    assert len(rows) == len(models) + 1' "$srcdir/tests/tools" "$tmp/page" \
        "$tmp/one" "$tmp/saved"
    test $rc -eq 0
    ok 'tables, charts and the document in it have the figures of JSON'
else
    skip 'figures' 'no python3'
fi

run "$bin/gguf-compare" -q -j -m "$q4" --base "$m" -f "$t" -c 128 --chunks 2
cp "$tmp/out" "$tmp/layers.json"
run "$ppl" -q -m "$q4" --base "$m" -f "$t" -c 128 --html "$tmp/heat.html"
if command -v python3 >/dev/null 2>&1; then
    run python3 -c 'import json, sys
import xml.etree.ElementTree as ET
got = {e.get("data-name"): float(e.get("data-value"))
       for e in ET.parse(sys.argv[1]).getroot().iter() if e.get("data-value")}
want = {}
def walk(v):
    if isinstance(v, dict):
        if "error" in v and v.get("layer", -1) is not None and "name" in v:
            want[v["name"]] = v
        for x in v.values():
            walk(x)
    elif isinstance(v, list):
        for x in v:
            walk(x)
walk(json.load(open(sys.argv[2])))
assert len(got) > 30, len(got)
for name, error in got.items():
    assert want[name]["error"] == error, name' "$tmp/heat.html" "$tmp/layers.json"
    test $rc -eq 0
    ok 'squares have the errors of gguf-compare'
fi

cp "$tmp/one.html" "$tmp/kept"
run "$ppl" -q -m "$q4" -f "$t" -c 128 --chunks 12 --html "$tmp/one.html"
fails 'one.html: ' && cmp -s "$tmp/one.html" "$tmp/kept"
ok 'a page that is there stays without --force'
run "$ppl" -q -m "$q4" -f "$t" --html "$tmp/x.htmlx"
test $rc -eq 2 && grep -q 'does not end in .html' "$tmp/err"
ok 'another ending is refused'
run "$ppl" -q -m "$q4" -f "$t" -c 128 --html "$tmp/none/x.html"
fails 'none/x.html: ' && ! grep -q '^Final' "$tmp/out"
ok 'no folder: known before the work'
if (ulimit -f 64) 2>/dev/null; then
    (
        ulimit -f 16 # of 512 or 1024 bytes, as the shell has it
        run "$ppl" -q -m "$q4" -m "$evil" --base "$m" -f "$t" -c 128 \
            --html "$tmp/full.html"
        echo $rc >"$tmp/rc"
    )
    rc=$(cat "$tmp/rc")
    fails 'full.html: ' && test ! -e "$tmp/full.html"
    ok 'no room: a message, and no page'
else
    skip 'no room' 'no limits'
fi

done_testing
