#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ppl with --base: models side by side, and the divergence of one from the
# other; files of logits.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
schema=$srcdir/share/gguf-ppl.schema.json
t=$tmp/text
q4=$tmp/q4.gguf
q8=$tmp/q8.gguf
head -c 4000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"
"$bin/gguf-quantize" -q "$m" "$q4" Q4_K_M && "$bin/gguf-quantize" -q "$m" "$q8" Q8_0 || exit 99

# Leave out members that describe the text: file, size and digest differ if it
# comes from a file of logits.
no_text()
{
    awk '/^ *"text": *\{/{in_text = 1} in_text && /^ *\}/{in_text = 0}
        !(in_text && /"(file|size|tokens|digest)"/)' "$1"
}

# Members that do not depend on the time, or on how work was shared.
digits()
{
    grep -v -e '"seconds"' -e '"tokens_per_second"' -e '"sequences"' \
        -e '"batch_size"' -e '"ubatch_size"' -e '"threads"' "$tmp/out"
}

run "$ppl" -q -m "$q4" -f "$t" -c 128 --chunks 5
final=$(sed -n 's/^Final estimate: PPL = //p' "$tmp/out" | sed 's/ +.*//')
run "$ppl" -q -m "$q4" --base "$m" -f "$t" -c 128 --chunks 5
test $rc -eq 0 -a ! -s "$tmp/err" && test "$(grep -c '^base ' "$tmp/out")" -eq 1 &&
    test "$(grep -c '^ *[1-5]  *[0-9.]* .* %$' "$tmp/out")" -eq 5
ok 'a model and its base: a line for each chunk'
mean=$(sed -n 's/^Mean PPL(Q) *: *\([0-9.]*\) .*/\1/p' "$tmp/out")
test "$(LC_ALL=C awk "BEGIN { printf \"%.4f\", $mean }")" = "$final"
ok "the model's perplexity is that of a run by itself: $final"
test "$(grep -c '\( KLD\|p\): ' "$tmp/out")" -eq 29
ok 'all figures are printed'

run "$ppl" -j -m "$q4" --base "$m" -f "$t" -c 128 --chunks 5 -t 1
test $rc -eq 0
ok 'as JSON'
digits >"$tmp/one"
cp "$tmp/out" "$tmp/one.json"
for args in "-t 3" "-ub 128" "-b 1024 -ub 640" "-ub 5 -t 2"; do
    # shellcheck disable=SC2086
    run "$ppl" -j -m "$q4" --base "$m" -f "$t" -c 128 --chunks 5 $args
    digits | cmp -s - "$tmp/one"
    ok "all digits of JSON, $args"
done
run "$ppl" -j -m "$q4" -m "$q8" -m "$m" --base "$m" -f "$t" -c 128 --chunks 5
test $rc -eq 0
ok 'three models and a base'
cp "$tmp/out" "$tmp/three.json"
run "$ppl" -j -m "$q8" --base "$m" -f "$t" -c 128 --chunks 5
cp "$tmp/out" "$tmp/two.json"
if command -v python3 >/dev/null 2>&1; then
    run python3 -c 'import json, sys
three, one, two = [json.load(open(f)) for f in sys.argv[1:]]
assert three["models"][0] == one["models"][0]
assert three["models"][1] == two["models"][0]
assert three["base"] == one["base"] == two["base"]
same = three["models"][2]
assert same["kld"] == {"value": 0, "error": 0}
assert same["ratio"] == {"value": 1, "error": 0}
assert same["same_top"] == {"value": 1, "error": 0}
assert same["ppl"] == three["base"]["ppl"]
kld = [m["kld"]["value"] for m in three["models"]]
assert kld[0] > kld[1] > 0' "$tmp/three.json" "$tmp/one.json" "$tmp/two.json"
    test $rc -eq 0
    ok 'each has the figures of a run by itself, the base none'
    for f in one two three; do
        run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/$f.json"
        test $rc -eq 0
        ok "JSON keeps to the schema: $f"
    done
    run "$ppl" -j -m "$m" -f "$t" -c 128 --chunks 2
    cp "$tmp/out" "$tmp/plain.json"
    run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/plain.json"
    test $rc -eq 0
    ok 'and without a base'

    # The divergence of one chunk, from saved rows of logits.
    run "$bin/gguf-tokenize" -m "$m" -f "$t"
    cut -f1 "$tmp/out" | head -n 64 >"$tmp/ids"
    "$bin/gguf-eval" -q -m "$m" --tokens "$tmp/ids" --save-logits "$tmp/b" -c 64 \
        >"$tmp/out" 2>&1
    "$bin/gguf-eval" -q -m "$q4" --tokens "$tmp/ids" --save-logits "$tmp/q" -c 64 \
        >"$tmp/out" 2>&1
    "$ppl" -j -m "$q4" --base "$m" -f "$t" -c 64 --chunks 1 >"$tmp/json"
    run python3 -c 'import array, json, math, sys
ids = [int(x) for x in open(sys.argv[1]).read().split()]
def rows(path):
    a = array.array("f", open(path, "rb").read())
    if sys.byteorder == "big":
        a.byteswap()
    for i in range(len(ids)):
        row = a[i * 2048:(i + 1) * 2048]
        top = max(row)
        norm = top + math.log(math.fsum(math.exp(x - top) for x in row))
        yield [x - norm for x in row]
b, q = list(rows(sys.argv[2])), list(rows(sys.argv[3]))
kld, dp, same, x = [], [], [], []
for i in range(32, 63):
    kld.append(math.fsum(math.exp(p) * (p - r) for p, r in zip(b[i], q[i])))
    dp.append(math.exp(q[i][ids[i + 1]]) - math.exp(b[i][ids[i + 1]]))
    x.append(-q[i][ids[i + 1]])
    same.append(b[i].index(max(b[i])) == q[i].index(max(q[i])))
n = len(kld)
def mean(v):
    return math.fsum(v) / n
d = json.load(open(sys.argv[4]))
m = d["models"][0]
def near(a, want):
    assert abs(a - want) < 1e-6 * max(abs(want), 1e-3), (a, want)
assert d["tokens_scored"] == n
near(m["ppl"]["value"], math.exp(mean(x)))
near(m["kld"]["value"], mean(kld))
near(m["kld"]["error"], math.sqrt(mean([(v - mean(kld)) ** 2 for v in kld]) / (n - 1)))
near(m["kld_quantiles"][0]["value"], min(kld))
near(m["kld_quantiles"][12]["value"], max(kld))
near(m["kld_quantiles"][6]["value"], sorted(kld)[n // 2])
near(m["dp"]["value"], mean(dp))
near(m["dp_rms"]["value"], math.sqrt(mean([v * v for v in dp])))
near(m["same_top"]["value"], mean(same))' "$tmp/ids" "$tmp/b" "$tmp/q" "$tmp/json"
    test $rc -eq 0
    ok 'what rows of logits give, computed elsewhere'
else
    skip 'figures of JSON' 'no python3'
fi
run "$ppl" -q -m "$q4" -m "$q8" --base "$m" -f "$t" -c 128 --chunks 5
test $rc -eq 0 && grep -q '^q4.gguf .* ± .* ± ' "$tmp/out" &&
    grep -q '^tiny-llama-f16.gguf .* base *$' "$tmp/out" &&
    ! grep -q '^Mean' "$tmp/out"
ok 'several models: one table'

"$builddir/tests/mkfix" "$tmp" >/dev/null 2>&1
"$bin/gguf-edit" -qf --set tokenizer.ggml.add_bos_token=false -o "$tmp/bos.gguf" "$m"
run "$ppl" -j -m "$tmp/bos.gguf" --base "$m" -f "$t" -c 128
fails 'different vocabularies: one begins a text with a BOS, the other does not$'
ok 'another first token is refused'
if test -x "$builddir/tests/tools/mkfolder" &&
    "$builddir/tests/tools/mkfolder" "$tmp/hf" &&
    "$bin/gguf-convert" -q "$tmp/hf" -o "$tmp/other.gguf"
then
    run "$ppl" -q -m "$tmp/other.gguf" --base "$m" -f "$t" -c 64
    fails 'other.gguf: the models have different vocabularies: logits 2048 and 2' &&
        test ! -s "$tmp/out"
    ok 'another number of tokens is refused before anything is read'
fi
run "$ppl" -j -m "$q4" --base "$tmp/none" -f "$t"
fails 'none: '
ok 'a base that is not there'
run "$ppl" -j -m "$q4" -m "$tmp/none" --base "$m" -f "$t"
fails 'none: '
ok 'a model that is not there'
run "$ppl" -m "$q4" -m "$q8" -f "$t"
test $rc -eq 2 -a ! -s "$tmp/out" && test "$(wc -l <"$tmp/err")" -eq 1
ok 'wrong usage: two models without a base'

# Files of logits.
run "$ppl" -q -m "$m" -f "$t" -c 128 --chunks 5 --save-base "$tmp/logits"
test $rc -eq 0 && test "$(wc -c <"$tmp/logits")" -eq \
    $((20 + 4 * 5 * 128 + 5 * 63 * (2 * 2048 + 8)))
ok 'logits are saved'
cp "$tmp/out" "$tmp/saved"
run "$ppl" -q -m "$m" -f "$t" -c 128 --chunks 5
test "$(tail -n 1 "$tmp/out")" = "$(tail -n 1 "$tmp/saved")"
ok 'with the perplexity of a run that saves none'
cp "$tmp/logits" "$tmp/kept"
run "$ppl" -q -j -m "$q4" -f "$t" -c 128 --chunks 5 --save-base "$tmp/logits"
fails 'logits: ' && cmp -s "$tmp/logits" "$tmp/kept"
ok 'a file that is there stays'
run "$ppl" -q -m "$m" -f "$t" -c 128 --chunks 5 \
    --kl-divergence-base "$tmp/logits" --force -b 256 -ub 100 -t 3
test $rc -eq 0 && cmp -s "$tmp/logits" "$tmp/kept"
ok 'but with --force: the same bytes in other batches'
cp "$m" "$tmp/copy.gguf"
run "$ppl" -q -m "$tmp/copy.gguf" -f "$t" -c 128 --save-base "$tmp/copy.gguf" \
    --force
fails 'would be both --model and --save-base' && cmp -s "$m" "$tmp/copy.gguf"
ok 'not over the model'

run "$ppl" -q -j -m "$q4" --base "$tmp/logits"
test $rc -eq 0
ok 'a base of logits: no text is needed'
cp "$tmp/out" "$tmp/file.json"
digits >"$tmp/file"
for args in "--base $tmp/logits -f $t" "--base $tmp/logits -c 128 -t 1 -ub 77" \
    "--kl-divergence-base $tmp/logits --kl-divergence"; do
    # shellcheck disable=SC2086
    run "$ppl" -q -j -m "$q4" $args
    digits >"$tmp/again"
    test $rc -eq 0 && grep -q '"digest"' "$tmp/again" &&
        test "$(no_text "$tmp/again")" = "$(no_text "$tmp/file")"
    ok "the same digits: $(echo "$args" | sed "s|$tmp/||g")"
done
if command -v python3 >/dev/null 2>&1; then
    run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/file.json"
    test $rc -eq 0
    ok 'JSON of a base of logits keeps to the schema'
    run python3 -c 'import json, sys
one, file = [json.load(open(f)) for f in sys.argv[1:]]
a, b = one["models"][0], file["models"][0]
assert a["ppl"] == b["ppl"]
assert abs(a["kld"]["value"] / b["kld"]["value"] - 1) < 0.01
assert abs(a["ln_ratio"]["value"] - b["ln_ratio"]["value"]) < 2e-4' \
        "$tmp/one.json" "$tmp/file.json"
    test $rc -eq 0
    ok 'and has nearly the figures of both models side by side'
fi
run "$ppl" -q -m "$q4" -m "$q8" --base "$tmp/logits"
test $rc -eq 0 && grep -q '^q8.gguf ' "$tmp/out" && grep -q '^logits ' "$tmp/out"
ok 'several models and a base of logits'
run "$ppl" -q -m "$q4" --base "$tmp/logits" -c 64
fails 'logits: has chunks of 128 tokens, expected 64 (-c): leave out -c$'
ok 'another context'
tail -c 3500 "$t" >"$tmp/other"
run "$ppl" -q -j -m "$q4" --base "$tmp/logits" -f "$tmp/other"
fails 'another text or tokenizer: token [0-9]* of chunk 1 is [0-9]* there, [0-9]* here$'
ok 'another text'
head -c 3000 "$tmp/kept" >"$tmp/short"
run "$ppl" -q -m "$q4" --base "$tmp/short"
fails 'short: .*the file has 3000 bytes; 5 chunks of 128 tokens'
ok 'a file that was cut off'
cp "$tmp/kept" "$tmp/shuffled"
dd if="$tmp/kept" of="$tmp/shuffled" bs=4 skip=105 seek=5 count=100 \
    conv=notrunc 2>/dev/null
run "$ppl" -q -m "$q4" --base "$tmp/shuffled"
fails 'shuffled: comes from another tokenizer than that of .*q4.gguf: token 1 '
ok 'tokens that the tokenizer does not make'
run "$ppl" -q -j -m "$q4" --base "$tmp/shuffled" --force
test $rc -eq 0
ok 'but with --force'

# llama-perplexity's output for its own files: every figure of the base.
golden=$GGUF_SHARED/golden/ppl/trained
for name in llama qwen2; do
    f=$GGUF_SHARED/models/$name-f16.gguf
    if test -f "$f" -a -f "$golden/$name-f16.kld"; then
        run "$ppl" -q -m "$f" --base "$golden/$name-f16.kld"
        test $rc -eq 0 && test "$(grep '^Mean PPL(base) ' "$tmp/out")" = \
            "$(grep '^Mean PPL(base) ' "$golden/logs/$name.Q8_0.kld.txt")"
        ok "a file of llama-perplexity, $name: the digits that it printed"
    else
        skip "a file of llama-perplexity, $name" 'no such files'
    fi
done
f=$GGUF_SHARED/models/qwen2-f16.gguf
if test -f "$f" -a -f "$golden/llama-f16.kld"; then
    run "$ppl" -q -m "$f" --base "$golden/llama-f16.kld"
    fails 'comes from another tokenizer than that of .*qwen2'
    ok 'for another model with as many tokens'
else
    skip 'for another model with as many tokens' 'no such files'
fi

# A line for each token.
run "$ppl" -q -j -m "$q4" -f "$t" -c 128 --chunks 3 --per-token "$tmp/each.jsonl"
test $rc -eq 0 && test "$(wc -l <"$tmp/each.jsonl")" -eq $((3 * 63))
ok 'a line for each scored token'
cp "$tmp/out" "$tmp/each.json"
cp "$tmp/each.jsonl" "$tmp/each.kept"
run "$ppl" -q -j -m "$q4" -f "$t" -c 128 --chunks 3 -ub 50 -t 3 --force \
    --per-token "$tmp/each.jsonl"
test $rc -eq 0 && cmp -s "$tmp/each.jsonl" "$tmp/each.kept"
ok 'the same bytes in other batches'
run "$ppl" -q -j -m "$q4" -f "$t" -c 128 --chunks 3 --per-token "$tmp/each.jsonl"
fails 'each.jsonl: ' && cmp -s "$tmp/each.jsonl" "$tmp/each.kept"
ok 'over a file that is there only with --force'
run "$ppl" -q -j -m "$q4" -m "$q8" --base "$m" -f "$t" -c 128 --chunks 3 \
    --per-token "$tmp/each.csv"
test $rc -eq 0 && test "$(wc -l <"$tmp/each.csv")" -eq $((2 * 3 * 63 + 1)) &&
    test "$(head -n 1 "$tmp/each.csv")" = \
        chunk,position,id,text,model,nll,nll_base,kld,same_top
ok 'as CSV, of two models and their base'
cp "$tmp/out" "$tmp/both.json"
if command -v python3 >/dev/null 2>&1; then
    run python3 -c 'import csv, json, math, sys
lines = [json.loads(s) for s in open(sys.argv[1], encoding="utf-8")]
d = json.load(open(sys.argv[2]))
assert abs(sum(t["nll"] for t in lines) / len(lines) - d["nll"]) < 1e-12
for c in range(3):
    one = [t for t in lines if t["chunk"] == c + 1]
    assert [t["position"] for t in one] == list(range(65, 128))
    assert abs(sum(t["nll"] for t in one) - d["chunk_nll"][c]) < 1e-9
e = json.load(open(sys.argv[4]))
rows = list(csv.DictReader(open(sys.argv[3], encoding="utf-8")))
for m in e["models"]:
    mine = [r for r in rows if r["model"] == m["file"]]
    assert len(mine) == e["tokens_scored"] == len(lines)
    kld = [float(r["kld"]) for r in mine]
    assert abs(math.fsum(kld) / len(kld) - m["kld"]["value"]) < 1e-12
    assert max(kld) == m["kld_quantiles"][12]["value"]
    same = sum(int(r["same_top"]) for r in mine) / len(mine)
    assert abs(same - m["same_top"]["value"]) < 1e-12
    base = math.fsum(float(r["nll_base"]) for r in mine) / len(mine)
    assert abs(math.exp(base) / e["base"]["ppl"]["value"] - 1) < 1e-12
    assert [int(r["id"]) for r in mine] == [t["id"] for t in lines]
first = [float(r["nll"]) for r in rows if r["model"] == e["models"][0]["file"]]
assert first == [t["nll"] for t in lines]' \
        "$tmp/each.jsonl" "$tmp/each.json" "$tmp/each.csv" "$tmp/both.json"
    test $rc -eq 0
    ok 'which add up to the figures'
else
    skip 'which add up to the figures' 'no python3'
fi

# Some chunks of a text.
for part in 0..2 2..3 3.. 1..9999; do
    run "$ppl" -q -j -m "$q4" -f "$t" -c 128 --chunks $part
    test $rc -eq 0
    ok "chunks $part"
    cp "$tmp/out" "$tmp/plain.$part"
    run "$ppl" -q -j -m "$q4" --base "$m" -f "$t" -c 128 --chunks $part \
        --per-token "$tmp/tokens.$part"
    test $rc -eq 0
    ok "beside a base"
done
run "$ppl" -q -j -m "$q4" -f "$t" -c 128
cp "$tmp/out" "$tmp/plain.all"
run "$ppl" -q -j -m "$q4" --base "$m" -f "$t" -c 128 --per-token "$tmp/tokens.all"
cat "$tmp/tokens.0..2" "$tmp/tokens.2..3" "$tmp/tokens.3.." |
    cmp -s - "$tmp/tokens.all"
ok 'parts have the tokens of the whole, bit for bit'
if command -v python3 >/dev/null 2>&1; then
    run python3 -c 'import json, sys
all, *parts = [json.load(open(f)) for f in sys.argv[1:]]
assert sum([p["chunk_nll"] for p in parts[:3]], []) == all["chunk_nll"]
assert [p["first_chunk"] for p in parts] == [0, 2, 3, 1]
assert parts[3]["chunk_nll"] == all["chunk_nll"][1:]' "$tmp/plain.all" \
        "$tmp/plain.0..2" "$tmp/plain.2..3" "$tmp/plain.3.." "$tmp/plain.1..9999"
    test $rc -eq 0
    ok 'and its sums'
fi
run "$ppl" -q -j -m "$q4" -f "$t" -c 128 --chunks 900..
fails 'text: the first chunk is 900, counted from 0, but there are only [0-9]* chunks$'
ok 'chunks that there are not'
for part in 0 2..2 3..1 .. ..2 -1 1..2..3 2. x; do
    run "$ppl" -m "$q4" -f "$t" --chunks=$part
    test $rc -eq 2 && grep -q 'is not a number of chunks or a range A..B (' "$tmp/err"
    ok "no chunks: $part"
done
# A model in one precision against itself in exact: both are named, with their
# difference.
for type in Q4_K_M Q8_0; do
    f=$q4 && test $type = Q4_K_M || f=$q8
    run "$ppl" -j -q -m "$f" --base "$f" -c 256 --chunks 24 \
        -f "$srcdir/share/tiny-llama/persuasion.txt" --precision int16
    test $rc -eq 0 && grep -q '"precision": *"int16"' "$tmp/out" &&
        grep -q '"base_precision": *"exact"' "$tmp/out"
    ok "int16 of $type against exact"
    # the first member of each of these figures is its value
    awk '/"ln_ratio": /{n = 1} /"kld": /{n = 2}
        /"value": /{sub(/.*"value": */, ""); v[n] = $0 + 0; n = 0}
        END{exit !(v[1] * v[1] < 1e-10 && v[2] < 1e-6 && v[2] != 0)}' \
        "$tmp/out"
    ok "$type: perplexity within 1e-5, mean divergence below 1e-6"
    run "$ppl" -m "$f" --base "$f" -f "$t" -c 128 --chunks 5 \
        --precision int16 --base-precision int16
    grep -q '^mode *int16 ' "$tmp/out" && ! grep -q '^base *exact' "$tmp/out" &&
        grep -q '^Mean    KLD:   0.000000 ' "$tmp/out"
    ok "$type: int16 against itself"
done
# Another type, whose integers have the largest number of bits.
run "$ppl" -j -q -m "$q8" --base "$q8" -c 256 --chunks 24 \
    -f "$srcdir/share/tiny-llama/persuasion.txt" --precision int8
grep -q '"precision": *"int8"' "$tmp/out" &&
    awk '/"kld": /{n = 1}
        n && /"value": /{sub(/.*"value": */, ""); v = $0 + 0; n = 0}
        END{exit !(v > 0 && v < 2e-4)}' "$tmp/out"
ok 'int8 of Q8_0 against exact: mean divergence below 2e-4'
for threads in 1 3; do
    run "$ppl" -j -m "$q4" -f "$t" -c 128 --chunks 5 --precision int16 \
        -t $threads -ub $((threads * 60))
    grep -e '"chunk_nll"' -e '"ppl"' "$tmp/out" >"$tmp/int16-$threads"
done
test -s "$tmp/int16-1" && cmp -s "$tmp/int16-1" "$tmp/int16-3"
ok 'int16: all digits of JSON, with other threads and batches'

done_testing
