#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ppl --base-form compact: a tenth of the size, divergences near those of
# two models side by side, malformed files.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
schema=$srcdir/share/gguf-ppl.schema.json
if test ! -f "$m" || ! command -v python3 >/dev/null 2>&1; then
    skip 'the compact form' 'no model in share/, or no python3'
    done_testing
    exit
fi
t=$tmp/text q4=$tmp/q4.gguf
head -c 14000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"
"$bin/gguf-quantize" -q "$m" "$q4" Q4_K_M || exit 99

run "$ppl" -q -m "$m" -f "$t" -c 256 --save-base "$tmp/plain"
run "$ppl" -q -m "$m" -f "$t" -c 256 --save-base "$tmp/small" \
    --base-form compact -t 1
test $rc -eq 0 &&
    test $((10 * $(wc -c <"$tmp/small"))) -le "$(wc -c <"$tmp/plain")"
ok "a tenth of the size: $(wc -c <"$tmp/small") of $(wc -c <"$tmp/plain") bytes"
run "$ppl" -q -m "$m" -f "$t" -c 256 --save-base "$tmp/again" \
    --base-form compact -t 3 -ub 96
cmp -s "$tmp/small" "$tmp/again"
ok 'the same bytes with other threads and batches'
run "$ppl" -q -m "$q4" --base "$tmp/small"
test $rc -eq 0 && grep -q '^base .*logits of .* chunks, compact: mean KLD of' \
    "$tmp/out"
ok 'its error is printed'
run "$ppl" -q -j -m "$q4" --base "$tmp/small"
cp "$tmp/out" "$tmp/small.json"
run "$ppl" -q -j -m "$q4" --base "$m" -f "$t" -c 256
cp "$tmp/out" "$tmp/exact.json"
run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/small.json"
test $rc -eq 0 -a ! -s "$tmp/out"
ok 'JSON keeps to the schema'
run python3 -c 'import json, sys
exact, small = [json.load(open(f)) for f in sys.argv[1:]]
value = lambda d, k: d["models"][0][k]["value"]
off = value(small, "kld") / value(exact, "kld") - 1
print(off, small["base"]["kld_error"])
assert abs(off) < 4 * small["base"]["kld_error"]
assert abs(off) < 0.002
assert 0 < small["base"]["kld_error"] < 0.003
assert value(small, "ppl") == value(exact, "ppl")
assert abs(small["base"]["ppl"]["value"] / exact["base"]["ppl"]["value"] - 1) < 1e-7
assert value(small, "same_top") == value(exact, "same_top")
assert abs(value(small, "dp_rms") / value(exact, "dp_rms") - 1) < 1e-5' \
    "$tmp/exact.json" "$tmp/small.json"
test $rc -eq 0
ok "the divergence, and its error: $(cat "$tmp/out")"
# Three candidates, few chunks, compared with two models side by side: the full
# form itself is inexact for models as near as Q8_0.
for type in Q8_0 Q2_K; do
    "$bin/gguf-quantize" -q "$m" "$tmp/$type.gguf" $type || exit 99
done
for chunks in 2 4 12; do
    few="-q -f $srcdir/share/tiny-llama/persuasion.txt -c 512 --chunks $chunks"
    many="-m $tmp/Q8_0.gguf -m $q4 -m $tmp/Q2_K.gguf"
    # shellcheck disable=SC2086
    "$ppl" $few -m "$m" --save-base "$tmp/few" --base-form compact --force \
        >"$tmp/out" 2>"$tmp/err" &&
        "$ppl" -j $many --base "$tmp/few" >"$tmp/few.json" &&
        "$ppl" -j $few $many --base "$m" >"$tmp/two.json"
    run python3 -c 'import json, sys
few, two = [json.load(open(f)) for f in sys.argv[1:3]]
chunks, size = [int(v) for v in sys.argv[3:]]
n_vocab, stated = 2048, few["base"]["kld_error"]
upstream = 20 + chunks * (4 * 512 + 255 * (8 + 2 * n_vocab))
off = [a["kld"]["value"] / b["kld"]["value"] - 1
       for a, b in zip(few["models"], two["models"])]
print(*["%+.3f%%" % (100 * v) for v in off], "stated %.3f%%" % (100 * stated))
assert len(off) == 3 and 10 * size <= upstream
assert max(map(abs, off)) < 2 * stated
assert chunks < 12 or max(map(abs, off)) < 0.001 and stated < 0.001' \
        "$tmp/few.json" "$tmp/two.json" $chunks "$(wc -c <"$tmp/few")"
    test $rc -eq 0
    ok "Q8_0, Q4_K_M, Q2_K, $chunks chunks: off by $(cat "$tmp/out")"
done

run "$ppl" -q -m "$q4" --base "$tmp/small" -f "$t" -c 255
test $rc -eq 1 && grep -q 'has chunks of 256 tokens, expected 255 (-c)' "$tmp/err"
ok 'another context'
sed 's/the/The/' "$t" >"$tmp/text2"
run "$ppl" -q -m "$q4" --base "$tmp/small" -f "$tmp/text2"
test $rc -eq 1 && grep -q 'from another text or tokenizer: token' "$tmp/err"
ok 'another text'

printf '\377' | dd of="$tmp/small" bs=1 seek=5000 conv=notrunc 2>/dev/null
run "$ppl" -q -m "$q4" --base "$tmp/small"
test $rc -eq 1 && grep -q 'the file has changed' "$tmp/err"
ok 'a byte that changed'
run "$ppl" -m "$m" -f "$t" --base-form compact
test $rc -eq 2 && grep -q "'--base-form' needs" "$tmp/err"
ok 'a form of nothing'
done_testing
