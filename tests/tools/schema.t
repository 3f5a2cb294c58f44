#!/bin/sh
# SPDX-License-Identifier: MIT
# JSON of the tools agrees with share/TOOL.schema.json: documents of every
# kind. A schema refuses members that it does not know.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
if ! python3 -c '' 2>/dev/null || test ! -f "$m"; then
    skip 'schemas of --json' 'no Python, or no model in share/'
    done_testing
    exit
fi
cp "$m" "$tmp/m.gguf" && m=$tmp/m.gguf
head -c 1500 "$srcdir/share/tiny-llama/persuasion.txt" >"$tmp/t"
echo 1 2 3 >"$tmp/ids"

fits() # schema's tool; the document is $tmp/doc
{
    python3 "$srcdir/tests/tools/schema.py" \
        "$srcdir/share/$1.schema.json" "$tmp/doc" >"$tmp/out" 2>"$tmp/err"
}
keeps() # tool, arguments...
{
    keeps_tool=$1
    shift
    "$bin/$keeps_tool" "$@" >"$tmp/doc" 2>"$tmp/err" && fits "$keeps_tool"
    ok "$keeps_tool $(echo "$*" | sed "s|$tmp/||g")"
}

# ---- each tool that has the option has a schema, which is installed
for tool in gguf-compare gguf-convert gguf-edit gguf-eval gguf-imatrix \
    gguf-info gguf-ppl gguf-quantize gguf-split gguf-tokenize; do
    "$bin/$tool" --help >"$tmp/help" 2>"$tmp/err" || continue
    if grep -q '^ *\(-j, \)*--json' "$tmp/help"; then
        grep -q "share/$tool\.schema\.json" "$srcdir/tools/Makefile.inc" &&
            test -f "$srcdir/share/$tool.schema.json"
        ok "$tool: --json has a schema"
    else
        test ! -e "$srcdir/share/$tool.schema.json"
        ok "$tool: no --json, no schema"
    fi
done

# ---- each figure has a formula in a page, and no other has
figures() # tool, page
{
    python3 -c 'import json, re, sys
schema = json.load(open(sys.argv[1]))
page = open(sys.argv[2]).read().split(".SS Figures\n")[1].split(".EE\n")[0]
said = re.findall(r"^([a-z][a-z0-9_]*)  +\S", page.split(".EX\n")[1], re.M)
no_figures = {"settings", "loras", "stage", "timings", "figure", "quantiles",
              "bisect_kld"}
others = {"seconds", "tokens_per_second", "tolerance"}
def is_figure(s):
    return (s.get("type") == "number" or s.get("$ref", "").split("/")[-1] in
            ("number", "figure", "quantiles", "bisect_kld") or
            s.get("type") == "array" and is_figure(s["items"]))
def figures(s):
    for name, of in s.get("properties", {}).items():
        if is_figure(of) and name not in others:
            yield name
        yield from figures(of)
    if "items" in s:
        yield from figures(s["items"])
    for name, of in s.get("$defs", {}).items():
        if name not in no_figures:
            yield from figures(of)
assert len(said) == len(set(said)) > 5, said
want = set(figures(schema))
assert want == set(said), (want - set(said), set(said) - want)' \
        "$srcdir/share/$1.schema.json" "$2" 2>"$tmp/err"
}
figures gguf-ppl "$srcdir/man/gguf-statistics.7"
ok 'each figure of gguf-ppl has a formula in gguf-statistics(7)'
figures gguf-compare "$srcdir/man/gguf-compare.1"
ok 'each figure of gguf-compare has a formula in its page'
sed '/^worst  /d' "$srcdir/man/gguf-compare.1" >"$tmp/less"
! figures gguf-compare "$tmp/less" && grep -q "{'worst'}" "$tmp/err"
ok 'one that is missing there is noticed'

# ---- gguf-quantize
q4=$tmp/q4.gguf
keeps gguf-quantize --json --dry-run "$m" "$q4" Q4_K_M
python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
d["outputs"][0]["tensors"][0]["colour"] = 1
json.dump(d, open(sys.argv[1], "w"))' "$tmp/doc"
! fits gguf-quantize && grep -q 'unexpected colour' "$tmp/err"
ok 'a member that the schema does not know is refused'
keeps gguf-quantize --json "$m" "$q4" Q4_K_M
keeps gguf-quantize --json -n --target-bpw=5 "$m" "$tmp/no.gguf"
keeps gguf-quantize --json --report "$m" -o "$tmp/a.gguf=Q8_0" \
    -o "$tmp/b.gguf=IQ4_XS"
"$bin/gguf-quantize" -q -f --report="$tmp/doc" --json "$m" "$tmp/c.gguf" \
    Q8_0 >"$tmp/out" 2>"$tmp/err" && fits gguf-quantize
ok 'gguf-quantize --report=FILE'

# ---- gguf-convert
"$builddir/tests/tools/mkfolder" "$tmp/hf" || exit 99
"$bin/gguf-convert" --json -n "$tmp/hf" >"$tmp/doc" 2>"$tmp/err" &&
    fits gguf-convert
ok 'gguf-convert --dry-run'
keeps gguf-convert --json --ignore=no-such-name "$tmp/hf" -o "$tmp/h.gguf" \
    -o "$tmp/h8.gguf=Q8_0"
keeps gguf-convert --json -f "$tmp/hf" -o "$tmp/h.gguf" --verify "$tmp/t" \
    --verify-ctx 32
python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
del d["outputs"][0]["verify"]["limit"]
json.dump(d, open(sys.argv[1], "w"))' "$tmp/doc"
! fits gguf-convert && grep -q 'verify: limit is missing' "$tmp/err"
ok 'a member that lacks is missed, in the part of another schema'

# ---- gguf-imatrix
"$builddir/tests/tools/mkimatrix" "$tmp/a.dat" || exit 99
keeps gguf-imatrix -q --json "$tmp/a.dat"
keeps gguf-imatrix -q --json -m "$m" "$tmp/a.dat"
"$bin/gguf-imatrix" -q -m "$m" -f "$tmp/t" -c 64 -o "$tmp/im.gguf" 2>"$tmp/err"
keeps gguf-imatrix -q --json -m "$m" "$tmp/im.gguf"

# ---- gguf-info: more in info.t
for key in general.name llama.rope.freq_base tokenizer.ggml.tokens; do
    keeps gguf-info --json --key=$key "$m"
done
keeps gguf-info --json --memory --stats --hash --check "$m"
"$bin/gguf-info" --json --diff "$m" "$q4" >"$tmp/doc" 2>"$tmp/err"
test $? -eq 1 && fits gguf-info
ok 'gguf-info --diff of two that differ'

# ---- evaluations: more in compare-*.t, ppl-*.t and tasks.t
keeps gguf-ppl -q --json -m "$m" -f "$tmp/t" -c 64
keeps gguf-tokenize --json -m "$m" -f "$tmp/t"
keeps gguf-tokenize --json -m "$m" -f "$tmp/ids" --detokenize
keeps gguf-eval -q --json -m "$m" --tokens "$tmp/ids" --save-logits "$tmp/l"
keeps gguf-eval -q --json -m "$m" -f "$tmp/t" -c 64 --profile
keeps gguf-eval -q --json -m "$m" -f "$tmp/t" --save-embeddings "$tmp/e" \
    --pooling mean
keeps gguf-compare -q --json -m "$m" -f "$tmp/t" -c 32 --compare-backends CPU,CPU
cat >"$tmp/six" <<'END'
She had been long persuaded
1
by a table and a spoon
to think of the connexion
of seven hundred hills
under no water
END
keeps gguf-ppl -q --json -m "$m" -f "$tmp/six" --hellaswag
done_testing
