#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-compare --layers: a model and its base, activation by activation.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
compare=$bin/gguf-compare
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
schema=$srcdir/share/gguf-compare.schema.json
t=$tmp/text
q4=$tmp/q4.gguf
head -c 2000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"
"$bin/gguf-quantize" -q "$m" "$q4" Q4_K_M || exit 99

digits()
{
    grep -v -e '"seconds"' -e '"sequences"' -e '"ubatch_size"' -e '"threads"' \
        "$tmp/out"
}

run "$compare" -q -m "$q4" --base "$m" -f "$t" -c 64 --chunks 3 --layers
test $rc -eq 0 -a ! -s "$tmp/err" && grep -q '^layer .* attn_q ' "$tmp/out" &&
    grep -q '^ *0 .*e-0' "$tmp/out" && grep -q '^logits ' "$tmp/out"
ok 'a table for people'
cols=$(grep '^layer ' "$tmp/out" | wc -w)
test "$(grep -c '^ *[0-9][0-9]*  *[0-9.]*e' "$tmp/out")" -gt 1 &&
    test "$(grep -o '[0-9]\*' "$tmp/out" | wc -l)" -eq \
        $((cols - $(grep -c '^layer ' "$tmp/out")))
ok 'the largest of each column is marked'
run "$compare" -j --no-digest -m "$q4" --base "$m" -f "$t" -c 64 --chunks 3 --layers -t 1
test $rc -eq 0
ok 'as JSON'
digits >"$tmp/one"
cp "$tmp/out" "$tmp/one.json"
for args in "-t 3" "-ub 7 -t 2" "-ub 64"; do
    # shellcheck disable=SC2086
    run "$compare" -j --no-digest -m "$q4" --base "$m" -f "$t" -c 64 --chunks 3 --layers $args
    digits | cmp -s - "$tmp/one"
    ok "all digits, $args"
done
run "$compare" -j --no-digest -m "$m" -f "$t" -c 64 --chunks 2 --layers --base-backend CPU
cp "$tmp/out" "$tmp/self.json"
test $rc -eq 0
ok 'a model and itself on another backend of the same kind'
if command -v python3 >/dev/null 2>&1; then
    run python3 -c 'import json, sys
one, self = [json.load(open(f)) for f in sys.argv[1:]]
names = [a["name"] for a in one["activations"]]
for n in "token_embd", "blk.0.attn_q", "blk.0.output", "output_norm", "logits":
    assert n in names, n
assert all(0 < a["error"] < 1 and 0.5 < a["cosine"] < 1 and a["tokens"] == 192
           for a in one["activations"])
assert all(a["worst"] >= a["error"] * 0.5 and a["worst_chunk"] < 3 and
           a["worst_position"] < 64 for a in one["activations"])
assert all(a["error"] == 0 and a["worst"] == 0 for a in self["activations"])
assert len(self["activations"]) == len(names)' "$tmp/one.json" "$tmp/self.json"
    test $rc -eq 0
    ok 'errors, cosines and tokens are what they can be'
    for f in one self; do
        run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/$f.json"
        test $rc -eq 0
        ok "JSON keeps to the schema: $f"
    done
else
    for i in 1 2 3; do
        n=$((n + 1))
        echo "ok $n # SKIP there is no python3"
    done
fi

# Two backends differ by rounding alone, so both computed.
if "$compare" -m "$m" -f "$t" -c 64 --backend nothing 2>&1 | grep -q BLAS; then
    for b in CPU:BLAS BLAS,CPU:CPU; do
        run "$compare" -j --no-digest -m "$m" -f "$t" -c 64 --chunks 2 --layers \
            --backend "${b%:*}" --base-backend "${b#*:}"
        test $rc -eq 0 -a ! -s "$tmp/err" &&
            sed -n 's/.*"error": \([0-9.e-]*\),*$/\1/p' "$tmp/out" |
            awk '{ n++; large += $1 > 1e-5; some += $1 > 0 }
                END { exit !(n > 10 && !large && some) }'
        ok "a model on two backends, $b"
    done
    run "$compare" -q -m "$q4" --base "$m" -f "$t" -c 64 --layers --backend BLAS
    test $rc -eq 0 && grep -q '^logits ' "$tmp/out"
    ok 'two models on BLAS'
    cp "$m" "$tmp/bad.gguf" && chmod u+w "$tmp/bad.gguf"
    printf '\377\377' | dd of="$tmp/bad.gguf" bs=1 conv=notrunc \
        seek=$(($(wc -c <"$m") - 2)) 2>/dev/null
    run "$compare" -q -m "$tmp/bad.gguf" -f "$t" -c 64 --layers --no-check \
        --backend BLAS --base-backend CPU
    fails "the model: 'logits' is not finite in chunk 1, position 0; "
    ok 'what is not finite ends that run'
else
    skip 'two backends' 'built without BLAS'
fi

# The last weight, of the output matrix, becomes NaN.
cp "$m" "$tmp/nan.gguf" && chmod u+w "$tmp/nan.gguf"
size=$(wc -c <"$m")
printf '\377\377' | dd of="$tmp/nan.gguf" bs=1 seek=$((size - 2)) \
    conv=notrunc 2>/dev/null
run "$compare" -q -m "$tmp/nan.gguf" --base "$m" -f "$t" -c 64 --layers --no-check
fails "the model: 'logits' is not finite in chunk 1, position 0; chunk 1, position 0 (token 0 of the text): matmul"
ok 'what is not finite ends the run: the model'
run "$compare" -q -m "$m" --base "$tmp/nan.gguf" -f "$t" -c 64 --layers --no-check
fails "the base: 'logits' is not finite"
ok 'the base'

run "$compare" -m "$m" -f "$t" --layers
test $rc -eq 2
ok 'a base is missing'
run "$compare" -m "$m" -m "$q4" --base "$m" -f "$t" --layers
test $rc -eq 2
ok 'two models'

# Twice the text gives twice the sums, if each is cut by itself.
run "$compare" -q -m "$q4" --base "$m" -f "$t" -c 64
grep -E '^ *[0-9]+ .*e-|^logits' "$tmp/out" >"$tmp/once"
run "$compare" -q -m "$q4" --base "$m" -f "$t" -f "$tmp/te[x]t" -c 64
grep -E '^ *[0-9]+ .*e-|^logits' "$tmp/out" >"$tmp/twice"
test $rc -eq 0 -a -s "$tmp/once" && cmp -s "$tmp/once" "$tmp/twice"
ok 'texts are cut each by itself; a pattern names them'
done_testing
