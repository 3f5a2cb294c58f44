#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-imatrix --sensitivity: one number for each weight tensor, kept in the
# importance file. gguf-quantize predicts divergences and chooses types by it,
# gguf-ppl shows the prediction.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
im=$bin/gguf-imatrix
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
if test ! -f "$m"; then
    skip 'sensitivities' 'no model in share/'
    done_testing
    exit
fi
t=$tmp/text
head -c 3000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"

run "$im" -q -m "$m" -f "$t" -c 32 -o "$tmp/plain.gguf"
run "$im" -q -m "$m" -f "$t" -c 32 -o "$tmp/s.gguf" --sensitivity \
    --sensitivity-tokens 64 -t 1
test $rc -eq 0 -a ! -s "$tmp/err"
ok 'data and sensitivities in one run'
run "$im" "$tmp/s.gguf"
rows=$(grep -c '^blk.*weight' "$tmp/out")
grep -q '^tensor  *sensitivity  *input  *tokens$' "$tmp/out" &&
    test "$rows" -gt 10 &&
    test "$(grep -c '^blk[^ ]*weight  *[0-9.e-]*  *[0-9.e+-]*  *64$' "$tmp/out")" \
        -eq $((rows / 2)) &&
    grep -q '^token_embd.weight  *[0-9.e-]*  *table  *64$' "$tmp/out" &&
    grep -q '^output.weight  *[0-9.e-]*  *[0-9.e-]*  *64$' "$tmp/out"
ok 'a table: every matrix, the token embedding, and the output'
run "$im" -j "$tmp/s.gguf"
grep -q '"sensitivities"' "$tmp/out" && grep -q '"n_tokens": 64' "$tmp/out"
ok '--json has them'
run "$im" -j "$tmp/plain.gguf"
test $rc -eq 0 && ! grep -q sensitivit "$tmp/out"
ok 'data without them are shown as before'

run "$im" -q -m "$m" -f "$t" -c 32 -o "$tmp/s2.gguf" --sensitivity \
    --sensitivity-tokens 64 -t 3 -ub 8
test $rc -eq 0 && cmp -s "$tmp/s.gguf" "$tmp/s2.gguf"
ok 'the same bytes with other threads and batches'
run "$im" -q -m "$m" -f "$t" -c 32 -o "$tmp/s3.gguf" --sensitivity \
    --sensitivity-tokens 64 "$tmp/plain.gguf"
test $rc -eq 0 && cmp -s "$tmp/s.gguf" "$tmp/s3.gguf"
ok 'added to existing data: the same bytes'
run "$im" -q -o "$tmp/sum.gguf" "$tmp/s.gguf" "$tmp/s2.gguf"
"$im" "$tmp/sum.gguf" >"$tmp/out"
test $rc -eq 0 && grep -q '^token_embd.weight .* table  *128$' "$tmp/out" &&
    test "$("$im" "$tmp/s.gguf" | sed -n 's/^output.weight *\([^ ]*\).*/\1/p')" = \
        "$(sed -n 's/^output.weight *\([^ ]*\).*/\1/p' "$tmp/out")"
ok 'files are merged: the mean over tokens'
run "$im" -q --include attn_q -o "$tmp/q.gguf" "$tmp/s.gguf"
"$im" "$tmp/q.gguf" | grep '^[a-z]*\.[0-9a-z_.]*weight' >"$tmp/out"
test $rc -eq 0 && test -s "$tmp/out" && ! grep -v attn_q "$tmp/out"
ok '--include keeps those of its tensors'
run "$im" -q -o "$tmp/s.dat" "$tmp/s.gguf"
test $rc -eq 0 && ! "$im" "$tmp/s.dat" | grep -q sensitivity
ok 'the older form has none'

run "$im" --sensitivity "$tmp/s.gguf"
test $rc -eq 2 && grep -q -e '--sensitivity' "$tmp/err"
ok 'a usage error without a text'
run "$im" -m "$m" -f "$t" -c 32 -o "$tmp/n.gguf" "$tmp/s.gguf"
test $rc -eq 2 && test ! -e "$tmp/n.gguf"
ok 'a usage error: data to read and a text, without --sensitivity'

# ---- predictions
qz=$bin/gguf-quantize
kld() # file: prints the measured divergence
{
    "$bin/gguf-ppl" -q -j -m "$1" --base "$m" -f "$t" -c 64 >"$tmp/$2.json" &&
        sed -n '/"kld": {/,/}/s/.*"value": \([^,]*\).*/\1/p' "$tmp/$2.json"
}
run "$im" -q --force -m "$m" -f "$srcdir/share/tiny-llama/persuasion.txt" -c 64 \
    -o "$tmp/s.gguf" --sensitivity --chunks 40 --sensitivity-tokens 512
run "$qz" --imatrix "$tmp/s.gguf" "$m" "$tmp/qk.gguf" Q4_K_M
test $rc -eq 0 &&
    grep -q 'qk.gguf: predicted divergence [0-9.e-]* nats$' "$tmp/err"
ok 'gguf-quantize predicts the divergence'
"$bin/gguf-info" --keys "$tmp/qk.gguf" >"$tmp/out" 2>&1 ||
    "$bin/gguf-info" "$tmp/qk.gguf" >"$tmp/out"
grep -q 'quantize.predicted_kld' "$tmp/out"
ok 'and records it'
a=$(kld "$tmp/qk.gguf" q)
p=$(sed -n 's/.*"predicted_kld": \([^,]*\).*/\1/p' "$tmp/q.json")
awk -v a="$a" -v p="$p" 'BEGIN { exit !(p > a * 0.6 && p < a * 1.6) }'
ok "predicted $p, measured $a"
size=$(wc -c <"$tmp/qk.gguf")
run "$qz" --imatrix "$tmp/s.gguf" --target-size "$size" "$m" "$tmp/t.gguf"
test $rc -eq 0 && grep -q 'divergence of [0-9]* tensors' "$tmp/err" &&
    test "$(wc -c <"$tmp/t.gguf")" -le "$size"
ok '--target-size chooses by divergence'
b=$(kld "$tmp/t.gguf" t)
awk -v a="$a" -v b="$b" 'BEGIN { exit !(b > 0 && b < a * 0.8) }'
ok "at the size of Q4_K_M: $b, less than $a"
run "$bin/gguf-ppl" -q -m "$tmp/t.gguf" --base "$m" -f "$t" -c 64 \
    --html "$tmp/page.html"
test $rc -eq 0 &&
    grep -q '^Predicted KLD: .*, measured [0-9.]* times that: t.gguf$' \
        "$tmp/out" &&
    grep -q '<small>predicted <data value="[0-9.e-]*">[0-9.]*</data></small>' \
        "$tmp/page.html"
ok 'gguf-ppl: text and page have the prediction'
run "$qz" -q --imatrix "$tmp/plain.gguf" "$m" "$tmp/r.gguf" Q4_K_M
test $rc -eq 0 && ! grep -q predicted_kld "$tmp/r.gguf" &&
    ! "$bin/gguf-ppl" -q -m "$tmp/r.gguf" --base "$m" -f "$t" -c 64 |
        grep -q redicted
ok 'without sensitivities nothing is predicted'
done_testing
