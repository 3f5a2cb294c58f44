#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ppl: overlapping windows, the convention of Python programs, figures per
# byte and word.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
schema=$srcdir/share/gguf-ppl.schema.json
t=$tmp/text
head -c 4000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"

# All digits that do not depend on the machine, the time and the batches.
digits()
{
    grep -v -e '"seconds"' -e '"tokens_per_second"' -e '"passes"' \
        -e '"sequences"' -e '"ubatch_size"' -e '"batch_size"' -e '"threads"' -e '"create"' \
        -e '"graphs"' "$tmp/out"
}

# ---- the sliding window

run "$ppl" -m "$m" -f "$t" -c 128 --ppl-stride 64
test $rc -eq 0 -a ! -s "$tmp/err" && grep -q \
    '^windows 18 of 128 tokens, a stride of 64, 4 together, each token scored once, BOS first$' \
    "$tmp/out"
ok 'windows, and how they are cut'
grep -q '^bytes   4000 scored: ' "$tmp/out" &&
    grep -q "^words   $(($(LC_ALL=C wc -w <"$t"))) scored: " "$tmp/out"
ok 'every byte and every word of the text is scored'
run "$ppl" -j -m "$m" -f "$t" -c 128 --ppl-stride 64 --per-token "$tmp/each"
test $rc -eq 0
ok 'as JSON'
cp "$tmp/out" "$tmp/doc"
digits >"$tmp/one"
for args in '-t 1' '-t 3 -ub 64' '-b 128' '-b 640 -ub 640' '-ub 7' \
    '--layer-major --max-memory 30M'; do
    # shellcheck disable=SC2086
    run "$ppl" -j -m "$m" -f "$t" -c 128 --ppl-stride 64 $args
    test $rc -eq 0 && digits | cmp -s - "$tmp/one"
    ok "the same digits: $args"
done
for part in 0..5 5..17 17..; do
    run "$ppl" -j -m "$m" -f "$t" -c 128 --ppl-stride 64 --chunks $part
    sed -n 's/.*"chunk_nll": \[\(.*\)\],/\1/p' "$tmp/out" | tr ',' '\n'
done | tr -d ' ' >"$tmp/parts"
sed -n 's/.*"chunk_nll": \[\(.*\)\],/\1/p' "$tmp/doc" | tr ',' '\n' |
    tr -d ' ' | cmp -s - "$tmp/parts" && test "$(wc -l <"$tmp/parts")" -eq 18
ok 'the same digits in three parts'

# Logits of each window by itself, likelihoods by Python.
if command -v python3 >/dev/null 2>&1; then
    run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/doc"
    test $rc -eq 0
    ok 'the document fits the schema'
    run "$bin/gguf-tokenize" -m "$m" -f "$t"
    cut -f1 "$tmp/out" >"$tmp/ids"
    for begin in 0 64 1088; do
        { echo 1; tail -n +$((begin + 2)) "$tmp/ids" | head -n 127; } \
            >"$tmp/window"
        run "$bin/gguf-eval" -m "$m" --tokens "$tmp/window" --save-logits \
            "$tmp/rows.$begin" -c 128
        python3 -c 'import array, json, math, sys
begin = int(sys.argv[1])
ids = [int(x) for x in open(sys.argv[2])]
rows = array.array("f", open(sys.argv[3], "rb").read())
if sys.byteorder == "big":
    rows.byteswap()
seen = 0
for line in open(sys.argv[4]):
    d = json.loads(line)
    if d["chunk"] != begin // 64 + 1:
        continue
    at = d["position"]
    assert ids[begin + at] == d["id"], (at, d)
    row = rows[(at - 1) * 2048:at * 2048]
    top = max(row)
    x = top + math.log(sum(math.exp(v - top) for v in row)) - row[d["id"]]
    assert abs(x - d["nll"]) < 2e-6, (x, d)
    seen += 1
assert seen == (127 if begin == 0 else len(ids) - 1088 - 64
                if begin == 1088 else 64), seen' \
            $begin "$tmp/ids" "$tmp/rows.$begin" "$tmp/each" 2>"$tmp/err"
        ok "likelihoods of the window from token $begin on"
    done
    python3 -c 'import json, math, sys
d = json.load(open(sys.argv[1]))
each = [json.loads(line) for line in open(sys.argv[2])]
ids = [int(x) for x in open(sys.argv[3])]
assert [e["id"] for e in each] == ids[1:]
assert d["tokens_scored"] == len(ids) - 1 == sum(d["chunk_tokens"])
x = [e["nll"] for e in each]
n, nll = len(x), math.fsum(x)
mean = nll / n
se = math.sqrt(sum((v - mean) ** 2 for v in x) / n / (n - 1))
def near(key, want):
    assert abs(d[key] / want - 1) < 1e-9, (key, d[key], want)
near("nll", mean)
near("ppl", math.exp(mean))
near("ppl_error", math.exp(mean) * se)
text = open(sys.argv[4], "rb").read()
b, w = len(text), len(text.split())
assert (d["bytes_scored"], d["words_scored"]) == (b, w)
near("bits_per_byte", nll / (b * math.log(2)))
near("bits_per_byte_error", se * n / (b * math.log(2)))
near("byte_ppl", math.exp(nll / b))
near("byte_ppl_error", math.exp(nll / b) * se * n / b)
near("word_ppl", math.exp(nll / w))
near("word_ppl_error", math.exp(nll / w) * se * n / w)' \
        "$tmp/doc" "$tmp/each" "$tmp/ids" "$t" 2>"$tmp/err"
    ok 'each token once, and all figures by their formulas'
else
    skip 'figures by their formulas' 'no python3'
fi
grep -q '"rows": 1185,' "$tmp/doc" && grep -q '"tokens_scored": 1185,' "$tmp/doc"
ok 'no row of logits but those that are scored'

# ---- as llama.cpp has it

run "$ppl" -m "$m" -f "$srcdir/share/tiny-llama/persuasion.txt" -c 512 \
    --ppl-stride 128 --compat --chunks 3
test $rc -eq 0 && grep -q \
    '^windows 3 of 768 tokens, a stride of 128, 1 together, the last 128 of each scored (compat)$' \
    "$tmp/out" &&
    grep '^\[1\]' "$tmp/out" | tr ',' '\n' | sed 's/.*\]//' |
    LC_ALL=C "$AWK" 'BEGIN { split("71.4576 65.1547 62.6502", want) }
        NF { n++; d = $1 / want[n] - 1; bad += d > 2e-4 || d < -2e-4 }
        END { exit bad || n != 3 }'
ok 'the figures of llama-perplexity --ppl-stride'

# ---- as Python's programs have it

run "$ppl" -j -m "$m" -f "$t" -c 128 --hf
test $rc -eq 0 && grep -q '"stride": 64,' "$tmp/out" &&
    grep -q '"hf": true' "$tmp/out" && grep -q '"add_bos": false,' "$tmp/out"
ok 'half of a window is the stride of --hf where windows are short'
cp "$tmp/out" "$tmp/hf"
run "$ppl" -m "$m" -f "$t" -c 1024 --hf
test $rc -eq 0 && grep -q '^windows 2 of 1024 tokens, a stride of 512, ' "$tmp/out"
ok 'else it is 512'
run "$ppl" -m "$m" -f "$t" -c 128 --hf --ppl-stride 128
grep -q ', each token but the first of each scored once$' "$tmp/out"
ok 'or what is asked for'
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import json, math, sys
d = json.load(open(sys.argv[1]))
ids = [int(x) for x in open(sys.argv[2])][1:]
nll, n = d["chunk_nll"], d["chunk_tokens"]
assert d["tokens_scored"] == len(ids) - 1 == sum(n)
losses = [a / b for a, b in zip(nll, n)]
# the loop of the page: labels that are not -100, less one
seq_len, previous, at, labels = len(ids), 0, 0, []
while True:
    end = min(at + 128, seq_len)
    labels.append(end - previous - 1)
    previous = end
    if end == seq_len:
        break
    at += 64
assert len(labels) == len(n)
page = math.exp(sum(l * w for l, w in zip(losses, labels)) / sum(labels))
assert abs(d["page_ppl"] / page - 1) < 1e-12
windows = math.exp(sum(losses) / len(losses))
assert abs(d["page_ppl_windows"] / windows - 1) < 1e-12
assert abs(d["ppl"] / math.exp(sum(nll) / sum(n)) - 1) < 1e-12' \
        "$tmp/hf" "$tmp/ids" 2>"$tmp/err"
    ok "the page's figures"
    run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/hf"
    test $rc -eq 0
    ok 'which the schema has'
else
    skip "the page's figures" 'no python3'
fi
{ cat "$t"; echo; } >"$tmp/newline"
run "$ppl" -j -m "$m" -f "$tmp/newline" -c 128 --hf
grep -q '"size": 4001,' "$tmp/out"
ok 'a newline at the end counts for --hf'
printf 'It is' >"$tmp/brief"
run "$ppl" -m "$m" -f "$tmp/brief" --ppl-stride 64
fails_with 1 ' tokens, expected at least 4 with -c 512$'
ok 'a text that is too short'
printf 'It is a truth universally acknowledged' >"$tmp/brief"
run "$ppl" -m "$m" -f "$tmp/brief" --ppl-stride 64
test $rc -eq 0 && grep -q '^windows 1 of 512 ' "$tmp/out" &&
    grep -q '^words   6 scored' "$tmp/out"
ok 'one window may be a whole text'

# ---- beside a base

run "$bin/gguf-quantize" -q "$m" "$tmp/q.gguf" Q4_0
run "$ppl" -j -m "$tmp/q.gguf" -f "$t" -c 128 --ppl-stride 64
q=$(sed -n 's/^  "ppl": \([0-9.]*\),/\1/p' "$tmp/out")
bits=$(sed -n 's/^  "bits_per_byte": \([0-9.]*\),/\1/p' "$tmp/out")
run "$ppl" -j -m "$tmp/q.gguf" --base "$m" -f "$t" -c 128 --ppl-stride 64 \
    --per-token "$tmp/both"
cp "$tmp/out" "$tmp/doc"
test $rc -eq 0 && grep -q '"tokens_scored": 1185,' "$tmp/doc" &&
    test "$(wc -l <"$tmp/both")" -eq 1185 &&
    grep -q '"bytes_scored": 4000,' "$tmp/doc"
ok 'windows of two models side by side'
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
m = d["models"][0]
assert abs(m["ppl"]["value"] / float(sys.argv[2]) - 1) < 1e-12
assert abs(m["bits_per_byte"]["value"] / float(sys.argv[3]) - 1) < 1e-12
each = [json.loads(line) for line in open(sys.argv[4])]
kld = sum(e["kld"] for e in each) / len(each)
assert abs(m["kld"]["value"] / kld - 1) < 1e-9' \
        "$tmp/doc" "$q" "$bits" "$tmp/both" 2>"$tmp/err"
    ok 'have the perplexity of each alone, and the mean divergence'
    run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/doc"
    test $rc -eq 0
    ok 'and the schema has it'
else
    skip 'have the perplexity of each alone' 'no python3'
fi
run "$ppl" -m "$m" -f "$t" -c 128 --chunks 2 --save-base "$tmp/logits"
run "$ppl" -m "$m" --base "$tmp/logits" --ppl-stride 64
fails_with 2 'ppl-stride: a file of logits has chunks that do not overlap'
ok 'a file of logits is of chunks'
run "$ppl" -m "$m" -f "$t" --kl-divergence-base "$tmp/logits2" --hf
fails_with 2 'hf: a file of logits has chunks that do not overlap'
ok 'and by another name'

run "$ppl" -m "$m" -f "$t" -c 128 --ppl-stride 129
fails_with 2 'ppl-stride 129 is longer than the windows of 128 tokens: give'
ok 'a stride that is too long'
run "$ppl" -m "$m" -f "$t" -c 128 --ppl-stride 0 --chunks 2
test $rc -eq 0 && grep -q '^chunks  2 of 128 tokens' "$tmp/out"
ok 'a stride of 0 is none'
for args in "--ppl-stride 4 --save-base $tmp/x" '--hf --compat' '--compat' \
    '--ppl-stride 4 --hellaswag' '--hf --hellaswag'; do
    # shellcheck disable=SC2086
    wrong_usage "$ppl" -m "$m" -f "$t" $args
done
done_testing
