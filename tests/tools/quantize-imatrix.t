#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-quantize: the importance data that count for a matrix.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
q=$bin/gguf-quantize
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
if test ! -f "$m"; then
    echo "1..0 # SKIP no model in share/"
    exit 0
fi

# One of two matrices with the same input has data. The other one's bytes are
# those that data of its own would give.
for pair in 'ffn_gate ffn_up' 'ffn_up ffn_gate' 'attn_q attn_k' \
    'attn_k attn_v' 'attn_v attn_q'; do
    one=${pair% *} other=${pair#* }
    for name in $one $other; do
        "$builddir/tests/tools/mkimatrix" "$tmp/half.dat" tensor \
            "blk.0.$name.weight" 256
        run "$q" -q -f --imatrix "$tmp/half.dat" \
            --tensor-type "blk\\.0\\.$other=IQ2_XXS" "$m" "$tmp/$name.gguf" Q8_0
        test $rc -eq 0 && "$bin/gguf-info" --hash "$tmp/$name.gguf" |
            grep "blk.0.$other.weight" | awk '{ print $2 }' >"$tmp/$name.sum"
    done
    test -s "$tmp/$one.sum" && cmp "$tmp/$one.sum" "$tmp/$other.sum"
    ok "data of $one hold for $other"
    rm -f "$tmp/$one".* "$tmp/$other".*
done
"$builddir/tests/tools/mkimatrix" "$tmp/half.dat" tensor \
    blk.0.ffn_gate.weight 256
run "$q" -q --imatrix "$tmp/half.dat" \
    --tensor-type 'blk\.1\.ffn_up=IQ2_XXS' "$m" "$tmp/n.gguf" Q8_0
test $rc -eq 1 && grep -q "'blk.1.ffn_up.weight': IQ2_XXS needs \
importance data; those given have no entry for it$" \
    "$tmp/err"
ok 'data that have none for a tensor are not called missing'
run "$q" -q \
    --tensor-type 'blk\.1\.ffn_up=IQ2_XXS' "$m" "$tmp/n.gguf" Q8_0
test $rc -eq 1 && grep -q "'blk.1.ffn_up.weight': IQ2_XXS needs \
importance data (--imatrix)$" "$tmp/err"
ok 'where there are none at all they are'

# data of several shards
im=$bin/gguf-imatrix
head -c 3000 "$srcdir/share/tiny-llama/persuasion.txt" >"$tmp/text"
"$im" -q -m "$m" -f "$tmp/text" -c 64 --chunks 2 -o "$tmp/i.gguf" &&
    "$bin/gguf-split" -q --split-max-tensors 40 "$tmp/i.gguf" "$tmp/is" &&
    "$q" -q --imatrix "$tmp/i.gguf" "$m" "$tmp/whole.gguf" Q2_K || exit 99
count=$(ls "$tmp"/is-*.gguf | wc -l)
for f in is "is-00002-of-0000$count.gguf"; do
    run "$q" -q -f --imatrix "$tmp/$f" "$m" "$tmp/parts.gguf" Q2_K
    test $rc -eq 0 && test "$count" -gt 1 &&
        "$bin/gguf-info" --diff --tensors "$tmp/whole.gguf" "$tmp/parts.gguf"
    ok "data of all shards of $f count"
done
cp "$tmp/is-00001-of-0000$count.gguf" "$tmp/copy.gguf"
run "$q" -q -f --imatrix "$tmp/is" "$m" "$tmp/is-00001-of-0000$count.gguf" Q2_K
test $rc -eq 1 && grep -q 'would be both' "$tmp/err" &&
    cmp -s "$tmp/is-00001-of-0000$count.gguf" "$tmp/copy.gguf"
ok 'no output replaces a shard of them'
rm "$tmp/is-00002-of-0000$count.gguf"
run "$q" -q --imatrix "$tmp/is-00001-of-0000$count.gguf" "$m" "$tmp/o.gguf" Q2_K
test $rc -eq 1 && grep -q "1 of $count shards of 'is' is missing: 2" "$tmp/err"
ok 'data that lack a shard are refused'
done_testing
