#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-quantize --repack-to: rows move into groups of ik_llama.cpp's interleaved
# types and out of them, bit for bit.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
q=$bin/gguf-quantize
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
if test ! -f "$m"; then
    echo "1..0 # SKIP no model in share/"
    exit 0
fi

types() # file
{
    "$bin/gguf-info" "$1" | "$AWK" '/^ *type .*bits/ { on = 1; next }
        on && NF { printf "%s%s", sep, $1; sep = " " }'
}

# COPY gives the metadata the order that it then keeps
"$q" -q "$m" "$tmp/first.gguf" Q4_K_M
"$q" -q "$tmp/first.gguf" "$tmp/plain.gguf" COPY
run "$q" -q --repack-to=interleaved "$tmp/plain.gguf" "$tmp/rows.gguf"
test $rc -eq 0 -a ! -s "$tmp/err" &&
    types "$tmp/rows.gguf" >"$tmp/types" && grep -q Q4_K_R4 "$tmp/types" &&
    grep -q Q6_K_R4 "$tmp/types"
ok 'all types with groups become interleaved'
"$bin/gguf-info" --tensors=token_embd.weight "$tmp/rows.gguf" >"$tmp/out"
grep -q 'token_embd.weight.* Q4_K ' "$tmp/out"
ok 'token embeddings stay plain'
"$bin/gguf-info" --metadata "$tmp/rows.gguf" | grep 'file_type' >"$tmp/out"
grep -q 215 "$tmp/out"
ok 'general.file_type is the number of the interleaved type'

run "$q" -q --repack-to plain "$tmp/rows.gguf" "$tmp/back.gguf"
test $rc -eq 0 -a ! -s "$tmp/err" && cmp "$tmp/plain.gguf" "$tmp/back.gguf"
ok 'and back: the same file'
run "$q" -q -t 1 --max-memory=8M --repack-to plain "$tmp/rows.gguf" \
    "$tmp/one.gguf"
test $rc -eq 0 && cmp "$tmp/plain.gguf" "$tmp/one.gguf"
ok 'with one thread and little memory, too'

run "$q" -q -f --repack-to q6_k_r4 "$tmp/plain.gguf" "$tmp/rows6.gguf" COPY
test $rc -eq 0 && types "$tmp/rows6.gguf" >"$tmp/types" &&
    grep -q Q6_K_R4 "$tmp/types" && ! grep -q Q4_K_R4 "$tmp/types"
ok 'a type with groups: only tensors of its plain type'
run "$q" -q -f --repack-to Q6_K "$tmp/rows6.gguf" "$tmp/back.gguf"
test $rc -eq 0 && cmp "$tmp/plain.gguf" "$tmp/back.gguf"
ok 'a plain type: only its groups'

"$bin/gguf-info" --diff "$tmp/plain.gguf" "$tmp/rows.gguf" >"$tmp/diff"
test $? -le 1 && ! grep -qi 'cannot be decoded' "$tmp/diff"
ok '--diff decodes groups of rows'
for f in plain rows; do
    "$bin/gguf-info" --stats=blk.1.ffn_up.weight "$tmp/$f.gguf" |
        grep 'ffn_up' | sed 's/_R4/   /; s/  */ /g' >"$tmp/$f.stats"
done
test -s "$tmp/plain.stats" && cmp "$tmp/plain.stats" "$tmp/rows.stats"
ok '--stats of rows and of their groups are the same'
run "$q" -q --allow-requantize "$tmp/plain.gguf" "$tmp/a.gguf" Q8_0
run "$q" -q --allow-requantize "$tmp/rows.gguf" "$tmp/b.gguf" Q8_0
test $rc -eq 0 && "$bin/gguf-info" --hash "$tmp/a.gguf" | sed 's/  [^ ]*$//' \
    >"$tmp/a" && "$bin/gguf-info" --hash "$tmp/b.gguf" | sed 's/  [^ ]*$//' |
    cmp - "$tmp/a"
ok 'groups are quantized again as their rows are'

echo 5 7 9 11 >"$tmp/tokens"
for f in plain rows; do
    run "$bin/gguf-eval" -q -m "$tmp/$f.gguf" --tokens "$tmp/tokens" \
        --save-logits "$tmp/$f.logits"
done
test $rc -eq 0 &&
    test -s "$tmp/plain.logits" && cmp "$tmp/plain.logits" "$tmp/rows.logits"
ok 'and have the same logits'

run "$q" -q "$m" "$tmp/made.gguf" Q4_K_R4
"$q" -q --pure "$m" "$tmp/p.gguf" Q4_K_S
"$q" -q --pure "$m" "$tmp/r.gguf" Q4_K_R4
run "$q" -q -f --repack-to plain "$tmp/r.gguf" "$tmp/back.gguf"
test $rc -eq 0 && "$bin/gguf-info" --hash "$tmp/p.gguf" |
    sed -n 's/  .*:/ /p' >"$tmp/p" && test -s "$tmp/p" &&
    "$bin/gguf-info" --hash "$tmp/back.gguf" | sed -n 's/  .*:/ /p' |
    cmp - "$tmp/p"
ok 'quantized to groups and apart again: the bytes of the plain type'
"$bin/gguf-info" --metadata "$tmp/made.gguf" | grep 'file_type' >"$tmp/out"
grep -q 214 "$tmp/out" && types "$tmp/made.gguf" >"$tmp/types" &&
    grep -q Q4_K_R4 "$tmp/types" && grep -q Q6_K "$tmp/types"
ok 'a recipe of interleaved types'
"$bin/gguf-info" --tensors=token_embd.weight "$tmp/r.gguf" >"$tmp/out"
grep -q 'token_embd.weight.* Q4_K ' "$tmp/out"
ok 'token embeddings are quantized to the plain type'
run "$q" -q -f -t 1 --max-memory=8M --pure "$m" "$tmp/one.gguf" Q4_K_R4
test $rc -eq 0 && cmp "$tmp/r.gguf" "$tmp/one.gguf"
ok 'the same file with one thread and little memory'
run "$q" -q --tensor-type=attn_q=IQ1_M_R4 "$m" "$tmp/no.gguf" Q4_K_R4
test $rc -eq 1 -a ! -e "$tmp/no.gguf" &&
    grep -q 'IQ1_M_R4.*imp\|IQ1_M_R4 is not supported' "$tmp/err"
ok 'a type without encoder is refused'

# the mix of the manual page
sed -n '/^name  smol/,/^\.EE/ { /^\./d; s/\\//g; p; }' \
    "$srcdir/man/gguf-quantize.1" >"$tmp/smol.recipe"
run "$q" -q --recipe "$tmp/smol.recipe" "$m" "$tmp/smol.gguf"
types "$tmp/smol.gguf" >"$tmp/types"
test $rc -eq 0 && grep -q IQ3_KS "$tmp/types" && grep -q IQ6_K "$tmp/types" &&
    "$bin/gguf-info" --tensors=token_embd.weight "$tmp/smol.gguf" |
    grep -q 'token_embd.weight.* IQ4_K '
ok 'the mix of IQ3_KS in the manual page'

run "$q" --repack-to F32 "$tmp/plain.gguf" "$tmp/no.gguf"
test $rc -ne 0 -a ! -e "$tmp/no.gguf"
ok 'a type without groups is refused'
run "$q" --repack-to Q4_1 "$tmp/plain.gguf" "$tmp/no.gguf"
test $rc -eq 1 -a ! -e "$tmp/no.gguf" && grep -q 'interleaved' "$tmp/err"
ok 'so is a block type without groups'
run "$q" --repack-to plain "$tmp/plain.gguf" "$tmp/no.gguf" Q8_0
test $rc -eq 1 -a ! -e "$tmp/no.gguf" && grep -q 'COPY' "$tmp/err"
ok 'only COPY can be combined with it'
done_testing
