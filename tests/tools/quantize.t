#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-quantize: command lines, output, exit status.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
q=$bin/gguf-quantize
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
if test ! -f "$m"; then
    echo "1..0 # SKIP no model in share/"
    exit 0
fi
cp "$m" "$tmp/in.gguf"
m=$tmp/in.gguf

# one line on standard error that names the file, status 1, no output
refused() # file, text
{
    test $rc -eq 1 -a ! -e "$tmp/o.gguf" -a ! -s "$tmp/out" &&
        test "$(wc -l <"$tmp/err")" -eq 1 &&
        grep -q "^gguf-quantize: $1: .*$2" "$tmp/err" &&
        test "$(ls -A "$tmp" | grep -vc '^\(in\|bad\)\.gguf$\|^out$\|^err$')" \
            -eq 0
}

run "$q" "$m" "$tmp/o.gguf" q8_0 2
test $rc -eq 0 -a -f "$tmp/o.gguf" -a ! -s "$tmp/out" &&
    grep -q ' 8\.5[0-9] bits per weight' "$tmp/err"
ok 'IN OUT TYPE THREADS'
run "$bin/gguf-info" --check "$tmp/o.gguf"
test $rc -eq 0 && grep -q '^  0 errors, 0 warn' "$tmp/out" &&
    "$bin/gguf-info" "$tmp/o.gguf" | grep -q 'Q8_0'
ok 'the output is a model'
run "$q" "$m" "$tmp/o.gguf" q8_0
test $rc -eq 1 &&
    grep -q "o.gguf: .* exists (--force replaces it)$" "$tmp/err"
ok 'an output that exists is kept'
run "$q" -f -q "$m" "$tmp/o.gguf" 7
test $rc -eq 0 -a ! -s "$tmp/err"
ok '--force, --quiet, a number'
run "$q" -q "$m" -o "$tmp/a.gguf=Q8_0" -o "$tmp/b.gguf=F16"
test $rc -eq 0 && cmp -s "$tmp/a.gguf" "$tmp/o.gguf" && test -f "$tmp/b.gguf"
ok 'two outputs from one reading, the same as alone'
rm -f "$tmp"/[abo].gguf
run "$q" -q "$m" Q8_0
test $rc -eq 0 -a -f "$tmp/ggml-model-Q8_0.gguf"
ok 'IN TYPE'
rm -f "$tmp/ggml-model-Q8_0.gguf"

run "$q" -n "$m" "$tmp/o.gguf" Q4_K_M
test $rc -eq 0 -a ! -e "$tmp/o.gguf" -a ! -s "$tmp/out" &&
    grep -q ' bits per weight$' "$tmp/err"
ok '--dry-run writes nothing'
run "$q" "$m" -o "$tmp/a.gguf=Q8_0" -o "$tmp/a.gguf=F16"
test $rc -eq 1 -a ! -e "$tmp/a.gguf" && grep -q "a.gguf' would be output twice" "$tmp/err"
ok 'one name for two outputs is refused before the work'
run "$q" -f "$m" -o "$tmp/a.gguf=Q8_0" -o "$tmp/./a.gguf=F16"
test $rc -eq 1 -a ! -e "$tmp/a.gguf" && grep -q "a.gguf' would be output twice" "$tmp/err"
ok 'so are two ways to one place'
run "$q" -n -q --explain --tensor-type 'attn_v=q6_k' "$m" "$tmp/o.gguf" Q4_K_M
test $rc -eq 0 -a ! -s "$tmp/err" &&
    grep -q '^output.weight .* -> Q6_K .* output = Q6_K$' "$tmp/out" &&
    grep -q '^output_norm.weight .* kept: one dimension$' "$tmp/out" &&
    grep -q '^blk.0.attn_v.weight .* -> Q6_K .* attn_v$' "$tmp/out"
ok '--explain tells the rules'
run "$q" -n -q -j "$m" "$tmp/o.gguf" Q4_K_M
test $rc -eq 0 && head -1 "$tmp/out" | grep -q '^{' &&
    grep -q '"written": false' "$tmp/out" &&
    grep -q '"rule": "output = Q6_K"' "$tmp/out"
ok '--json'
if python3 -c '' 2>/dev/null; then
    python3 -m json.tool "$tmp/out" >/dev/null 2>"$tmp/err"
    ok 'it is JSON'
fi
run "$q" --list-types
test $rc -eq 0 -a "$(wc -l <"$tmp/out")" -eq 86
ok '--list-types'
run "$q" --print-recipe=q4_k
test $rc -eq 0 && cmp -s "$tmp/out" "$srcdir/share/recipes/Q4_K_M.recipe"
ok '--print-recipe prints what lies in share/recipes'
cp "$tmp/out" "$tmp/r.recipe"
run "$q" -q "$m" "$tmp/o.gguf" Q4_K_M
run "$q" -q --recipe "$tmp/r.recipe" "$m" "$tmp/p.gguf"
test $rc -eq 0 && cmp -s "$tmp/o.gguf" "$tmp/p.gguf"
ok 'a recipe from a file gives what the preset gives'
im=$tmp/imat-llama
"$builddir/tests/tools/mkimatrix" "$im.gguf" made gguf
run "$q" -q --imatrix "$im.gguf" "$m" "$tmp/i.gguf" Q4_K_M
test $rc -eq 0 && ! cmp -s "$tmp/i.gguf" "$tmp/o.gguf" &&
    "$bin/gguf-info" --metadata "$tmp/i.gguf" |
    grep -q 'quantize.imatrix.file *imat-llama.gguf$'
ok 'importance data are used, and recorded without a path'
run "$q" -q -f --imatrix "$im.gguf" --exclude-weights blk "$m" \
    "$tmp/p.gguf" Q4_K_M
test $rc -eq 0 && ! cmp -s "$tmp/i.gguf" "$tmp/p.gguf"
ok '--exclude-weights'
rm -f "$tmp/i.gguf"
run "$q" -q --imatrix "$im.gguf" --include-weights no "$m" "$tmp/x.gguf" Q4_0
test $rc -eq 1 -a ! -e "$tmp/x.gguf" &&
    grep -q 'include-weights: no tensor with importance data has such a name$' "$tmp/err"
ok '--include-weights that matches nothing'
run "$q" -q "$m" "$tmp/x.gguf" IQ2_XXS
test $rc -eq 1 -a ! -e "$tmp/x.gguf" && grep -q 'needs importance' "$tmp/err"
ok 'types that need importance data say so'
rm -f "$im.gguf"
echo 'base Q4_K if' >"$tmp/r.recipe"
rm -f "$tmp"/[op].gguf
run "$q" -q --recipe "$tmp/r.recipe" "$m" "$tmp/o.gguf"
test $rc -eq 1 -a ! -e "$tmp/o.gguf" && grep -q 'r.recipe: line 1' "$tmp/err"
ok 'a recipe that is wrong names its line'
rm -f "$tmp/r.recipe"
run "$q" -q --override-kv a.b=int:-7 --override-kv a.c=u64:18446744073709551615 \
    --override-kv a.d=str:x=y:z --override-kv a.e=bool:true "$m" "$tmp/o.gguf" F16
"$bin/gguf-info" --metadata "$tmp/o.gguf" >"$tmp/err"
test $rc -eq 0 && grep -q '^  i32 .* a.b .*-7$' "$tmp/err" &&
    grep -q '^  u64 .* a.c .*18446744073709551615$' "$tmp/err" &&
    grep -q '^  str .* a.d .*x=y:z$' "$tmp/err" && grep -q ' a.e .*true' "$tmp/err"
ok '--override-kv'
long=$(head -c 100000 /dev/zero | tr '\0' x)
run "$q" -q -f --compat --override-kv a.i=int:-9223372036854775808 \
    --override-kv a.j=int:-7 "$m" "$tmp/o.gguf" F16
test $rc -eq 0 -a "$("$bin/gguf-info" --key a.i "$tmp/o.gguf")" = 0 -a \
    "$("$bin/gguf-info" --key a.j "$tmp/o.gguf")" = 7
ok '--override-kv --compat'
for value in 'int: -5' 'u64: -5' 'int:' 'int:-' 'int:--5' 'u8:-1' 'i8:-129'; do
    run "$q" -q -f --override-kv "a=$value" "$m" "$tmp/x.gguf" F16
    test $rc -eq 2 -a ! -e "$tmp/x.gguf" && grep -q "' is not* " "$tmp/err"
    ok "--override-kv: '$value' is refused"
done
run "$q" -q -f --override-kv a.min=i64:-9223372036854775808 \
    --override-kv a.neg=int:-9223372036854775807 \
    --override-kv a.big=int:9223372036854775807 \
    --override-kv a.small=int:4294967295 --override-kv a.long=str:"$long" \
    "$m" "$tmp/o.gguf" F16
"$bin/gguf-info" --metadata "$tmp/o.gguf" >"$tmp/err"
test $rc -eq 0 && grep -q '^  i64 .* a.min .*-9223372036854775808$' "$tmp/err" &&
    grep -q '^  i64 .* a.neg .*-9223372036854775807$' "$tmp/err" &&
    grep -q '^  u64 .* a.big .*9223372036854775807$' "$tmp/err" &&
    grep -q '^  u32 .* a.small .*4294967295$' "$tmp/err" &&
    test "$("$bin/gguf-info" --key a.long "$tmp/o.gguf" | wc -c)" -eq 100001
ok '--override-kv: 64-bit integers, long strings'
# Changes that gguf-edit refuses are refused here, too, and done with --force.
mkdir "$tmp/fix" && "$builddir/tests/mkfix" "$tmp/fix" || exit 99
while IFS='|' read -r f kv message; do
    rm -f "$tmp/g.gguf"
    run "$q" -q --override-kv "$kv" "$tmp/fix/$f.gguf" "$tmp/g.gguf" COPY
    test $rc -eq 1 -a ! -e "$tmp/g.gguf" && grep -q "$message" "$tmp/err" &&
        grep -q -e '--force' "$tmp/err"
    ok "--override-kv $kv is refused"
    run "$q" -q -f --override-kv "$kv" "$tmp/fix/$f.gguf" "$tmp/g.gguf" COPY
    test $rc -eq 0 -a -s "$tmp/g.gguf" && grep -q 'warning: ' "$tmp/err"
    ok 'and done by force'
done <<'END'
model-spm|llama.embedding_length=int:16|refused: tensor 'token_embd.weight' has shape
model-spm|general.architecture=str:gpt2|refused: key 'general.architecture'
model-spm|llama.context_length=str:long|refused: key 'llama.context_length'
model-spm|tokenizer.ggml.bos_token_id=int:999|refused: key 'tokenizer.ggml.bos_token_id'
model-bpe|tokenizer.ggml.pre=str:lama-bpe|refused: key 'tokenizer.ggml.pre'
END
run "$q" -q -f --override-kv libgguf.padding=str:x "$tmp/fix/model-spm.gguf" \
    "$tmp/p.gguf" COPY
test $rc -eq 1 -a ! -e "$tmp/p.gguf" && grep -q 'it is padding' "$tmp/err"
ok 'not even by force: libgguf.padding'
rm -rf "$tmp/fix" "$tmp/g.gguf"
rm -f "$tmp/o.gguf"
run "$q" -q --report "$m" "$tmp/o.gguf" Q8_0
test $rc -eq 0 && grep -q '^output.weight  *Q8_0 .* [34][0-9]\.[0-9][0-9] ' "$tmp/out"
ok '--report'
run "$q" -q -f --report="$tmp/r.json" "$m" "$tmp/o.gguf" Q8_0
test $rc -eq 0 -a ! -s "$tmp/out" && grep -q '"snr_db": [34][0-9]\.' "$tmp/r.json"
ok '--report=FILE'
for args in --report=- '--report --json'; do
    run "$q" -q -f $args "$m" "$tmp/o.gguf" Q8_0
    test $rc -eq 0 -a ! -e ./- && grep -q '"snr_db": [34][0-9]\.' "$tmp/out" &&
        test "$(head -c 1 "$tmp/out")$(tail -n 1 "$tmp/out")" = '{}' &&
        ! grep -q '^output.weight' "$tmp/out"
    ok "$args: the document and nothing else on standard output"
done
rm -f "$tmp/o.gguf"
run "$q" -q --report="$tmp/r.json" "$m" "$tmp/o.gguf" Q8_0
test $rc -eq 1 -a ! -e "$tmp/o.gguf" && grep -q 'r.json: .*exists (--force' "$tmp/err"
ok '--report=FILE that exists is kept'
cp "$m" "$tmp/same.gguf"
run "$q" -q -f --report="$m" "$m" "$tmp/o.gguf" Q8_0
test $rc -eq 1 && cmp -s "$m" "$tmp/same.gguf" && grep -q 'both report and input' "$tmp/err"
ok '--report never overwrites the input'
run "$q" -q -f --report="$tmp/o.gguf" "$m" "$tmp/o.gguf" Q8_0
test $rc -eq 1 -a ! -e "$tmp/o.gguf" && grep -q 'both report and output' "$tmp/err"
ok '--report may not be an output'
"$bin/gguf-split" --quiet --split-max-tensors 20 "$m" "$tmp/s" 2>/dev/null
cp "$tmp/s-00002-of-00003.gguf" "$tmp/same.gguf"
run "$q" -q -f --report="$tmp/s-00002-of-00003.gguf" \
    "$tmp/s-00001-of-00003.gguf" "$tmp/o.gguf" Q8_0
test $rc -eq 1 && cmp -s "$tmp/s-00002-of-00003.gguf" "$tmp/same.gguf" &&
    grep -q 'both report and input' "$tmp/err"
ok '--report may not be a shard of the input'
rm -f "$tmp"/s-0*
run "$q" -q --report="$tmp/no/r.json" "$m" "$tmp/o.gguf" Q8_0
test $rc -eq 1 -a ! -e "$tmp/o.gguf" && grep -q 'No such file' "$tmp/err"
ok '--report=FILE that cannot be made ends the run before the work'
rm -f "$tmp/r.json" "$tmp/same.gguf"
run "$q" -q "$m" "$tmp/o.gguf" Q8_0
"$bin/gguf-info" --key quantize.tool "$tmp/o.gguf" >"$tmp/out"
test $rc -eq 0 && grep -q '^libgguf [0-9]' "$tmp/out"
ok 'the output tells who made it'
test "$("$bin/gguf-info" --key quantize.recipe.name "$tmp/o.gguf")" = Q8_0
ok 'and by which recipe'
"$bin/gguf-info" --key quantize.recipe.digest "$tmp/o.gguf" >"$tmp/digest"
echo '# another text' | cat "$srcdir/share/recipes/Q8_0.recipe" - >"$tmp/r.recipe"
run "$q" -q -f --recipe "$tmp/r.recipe" "$m" "$tmp/o.gguf"
"$bin/gguf-info" --key quantize.recipe.digest "$tmp/o.gguf" >"$tmp/err"
grep -q '^xxh64:[0-9a-f]\{16\}$' "$tmp/digest" &&
    grep -q '^xxh64:[0-9a-f]\{16\}$' "$tmp/err" &&
    ! cmp -s "$tmp/digest" "$tmp/err"
ok 'of which text'
printf 'base Q8_0\n"no_such_tensor" = Q4_0\n' >"$tmp/r.recipe"
run "$q" -q -f --recipe "$tmp/r.recipe" "$m" "$tmp/p.gguf"
test $rc -eq 1 -a ! -e "$tmp/p.gguf" &&
    grep -q 'line 2 of the recipe.*no_such_tensor.*matches no tensor' "$tmp/err"
ok 'a pattern of a recipe that matches nothing'
printf 'base Q8_0\n"no_such_tensor" = Q4_0 if arch == gpt2\n' >"$tmp/r.recipe"
run "$q" -q -f --recipe "$tmp/r.recipe" "$m" "$tmp/p.gguf"
test $rc -eq 0
ok 'but one with a condition may'
rm -f "$tmp/p.gguf" "$tmp/r.recipe" "$tmp/digest"
for t in MXFP4 NVFP4; do
    run "$q" -q -f --json "$m" "$tmp/o.gguf" $t
    test $rc -eq 0 && "$bin/gguf-info" --tensors "$tmp/o.gguf" >"$tmp/out" &&
        grep -q "blk.0.ffn_down.weight.* $t " "$tmp/out" &&
        grep -q "blk.0.attn_q.weight.* $t " "$tmp/out" &&
        grep -q 'token_embd.weight.* Q8_0 ' "$tmp/out"
    ok "$t for all matrices"
done
run "$q" -q "$tmp/o.gguf" "$tmp/p.gguf" Q8_0
test $rc -eq 1 -a ! -e "$tmp/p.gguf" && grep -q -e '--allow-requantize' "$tmp/err"
ok 'what is quantized already: the option that allows it'
run "$q" -q -f --compat "$m" "$tmp/o.gguf" Q8_0
test $rc -eq 0 && ! grep -q 'quantize\.tool\|quantize\.recipe' "$tmp/o.gguf"
ok '--compat: and is what llama-quantize writes otherwise'
run "$q" -q -f --limit kv=5 "$m" "$tmp/p.gguf" Q8_0
test $rc -eq 1 -a ! -e "$tmp/p.gguf" && grep -q 'keys at byte 16, limit is 5 (--limit kv=[0-9]* allows it)' "$tmp/err"
ok '--limit'
rm -f "$tmp/o.gguf"
# Two weights of output.weight, which is last: F16 in rows of 512 bytes.
cp "$m" "$tmp/odd.gguf"
size=$(wc -c <"$m")
for at in $((size - 1024 + 6)) $((size - 512)); do
    printf '\0\176' |
        dd of="$tmp/odd.gguf" bs=1 seek=$at conv=notrunc 2>/dev/null
done
for word in zero keep; do
    run "$q" --on-nonfinite=$word "$tmp/odd.gguf" -o "$tmp/o.gguf=F16" \
        -o "$tmp/p.gguf=Q8_0"
    test $rc -eq 0 -a "$(grep -c "odd.gguf: warning: .* NaN or infinite" \
        "$tmp/err")" -eq 1 && grep -q \
        "'output.weight': 2 weights .* the first at row 2046, column 3$" "$tmp/err"
    ok "--on-nonfinite=$word tells tensor, row and column"
    run "$bin/gguf-info" --check "$tmp/o.gguf"
    test "$word" = keep -a $rc -ne 0 || test "$word" = zero -a $rc -eq 0
    ok "--on-nonfinite=$word: what the copy has"
    rm -f "$tmp"/[op].gguf
done
rm -f "$tmp/odd.gguf"
run "$q" -q --prune-layers 1,2 --split-max-size 3M "$m" "$tmp/o.gguf" F16
test $rc -eq 0 && "$bin/gguf-info" "$tmp/o-00001-of-00003.gguf" |
    grep -q 'llama.block_count  *4$'
ok '--prune-layers, --split-max-size'
rm -f "$tmp"/o-*

# Scales of NVFP4: equal when split and merged, or resumed; left out with the
# options of llama-quantize.
run "$q" -q --outer-scales --tensor-type 'blk=NVFP4' "$m" "$tmp/a.gguf" Q8_0
test $rc -eq 0 && "$bin/gguf-info" --tensors "$tmp/a.gguf" |
    grep -q '^  blk.0.ffn_up.scale  *1  *F32 ' &&
    "$bin/gguf-info" --check "$tmp/a.gguf" | grep -q '^  0 errors, 0 warn'
ok '--outer-scales'
run "$q" -q --outer-scales --resume --split-max-size 1M --tensor-type \
    'blk=NVFP4' "$m" "$tmp/o.gguf" Q8_0
"$bin/gguf-split" --quiet --merge "$tmp"/o-00001-of-*.gguf "$tmp/b.gguf"
cmp -s "$tmp/a.gguf" "$tmp/b.gguf"
ok '--outer-scales with --resume and --split-max-size'
run "$q" -q -f --outer-scales --compat --tensor-type 'blk=NVFP4' "$m" \
    "$tmp/a.gguf" Q8_0
test $rc -eq 0 && ! "$bin/gguf-info" --tensors "$tmp/a.gguf" |
    grep -q 'ffn_up.scale'
ok '--outer-scales --compat'
run "$q" -q -f --outer-scales --tensor-type 'blk=NVFP4' "$m" "$tmp/a.gguf" Q8_0
run "$q" -n --allow-requantize "$tmp/a.gguf" -o "$tmp/x.gguf=COPY" \
    -o "$tmp/y.gguf=Q4_0"
test $rc -eq 0 && grep -q 'x.gguf: COPY, 99 tensors' "$tmp/err" &&
    grep -q 'y.gguf: Q4_0, 57 tensors' "$tmp/err"
ok 'plans of outputs that have not the same tensors'
rm -f "$tmp"/[ab].gguf "$tmp"/o-*

# Types: --explain names the option that chose each.
types() # option...: the plan in $tmp/out
{
    run "$q" -n -q --explain "$@"
    test $rc -eq 0 -a ! -s "$tmp/err"
}
types --output-tensor-type Q5_K --token-embedding-type Q3_K "$m" Q4_K_M &&
    grep -q '^output.weight .* -> Q5_K .* output tensor type$' "$tmp/out" &&
    grep -q '^token_embd.weight .* -> Q3_K .* token embedding type$' "$tmp/out"
ok '--output-tensor-type, --token-embedding-type'
types --leave-output-tensor --pure "$m" Q4_K_M &&
    grep -q '^output.weight .* F16 .* left: output$' "$tmp/out" &&
    grep -q '^blk.0.attn_v.weight .* -> Q4_K .* pure$' "$tmp/out" &&
    ! grep -q Q6_K "$tmp/out"
ok '--leave-output-tensor, --pure'
printf 'attn_v=Q5_0  attn_k=Q5_1\nblk\\.[0-1]\\.ffn_up=Q8_0\n' >"$tmp/types"
types --tensor-type-file "$tmp/types" --tensor-type 'attn_v=F16' "$m" Q4_K_M &&
    grep -q '^blk.3.attn_v.weight .* -> Q5_0 .* attn_v$' "$tmp/out" &&
    grep -q '^blk.3.attn_k.weight .* -> Q5_1 ' "$tmp/out" &&
    grep -q '^blk.1.ffn_up.weight .* -> Q8_0 ' "$tmp/out" &&
    grep -q '^blk.2.ffn_up.weight .* -> Q4_K ' "$tmp/out"
ok '--tensor-type-file: the first pattern that matches counts'
rm -f "$tmp/types"
awk 'BEGIN { for (i = 0; i < 900; i++) printf "attn_v=Q5_0 " }' >"$tmp/types"
types --tensor-type-file "$tmp/types" "$m" Q4_K_M &&
    grep -q '^blk.3.attn_v.weight .* -> Q5_0 ' "$tmp/out"
ok '--tensor-type-file: a line of any length'
run "$q" --tensor-type-file "$tmp/none" "$m" "$tmp/o.gguf" Q4_0
test $rc -eq 1 && grep -q 'none: cannot be opened: No such file' "$tmp/err"
ok '--tensor-type-file that is not there'
rm -f "$tmp/types"
"$bin/gguf-split" --quiet --split-max-tensors 20 "$m" "$tmp/s" 2>/dev/null
run "$q" -q --keep-split "$tmp/s-00002-of-00003.gguf" "$tmp/k.gguf" Q8_0
test $rc -eq 0 -a "$(ls "$tmp"/k-0000?-of-00003.gguf | wc -l)" -eq 3
ok '--keep-split'
rm -f "$tmp"/[ks]-0*
"$builddir/tests/tools/mkimatrix" "$tmp/im.dat" 1 256
run "$q" -q --imatrix "$tmp/im.dat" "$m" "$tmp/o.gguf" Q4_0
test $rc -eq 0 && ! grep -q somebody "$tmp/o.gguf" &&
    "$bin/gguf-info" --metadata "$tmp/o.gguf" |
    grep -q 'quantize.imatrix.dataset *wiki.raw$'
ok 'no path of the machine gets into the output'
rm -f "$tmp/o.gguf"
# The data have blk.0.attn_q, blk.1.attn_q and blk.0.ffn_down. Matrices with
# the same input, attn_k and attn_v, use them, too.
run "$q" --imatrix "$tmp/im.dat" "$m" -o "$tmp/o.gguf=Q4_0" -o "$tmp/a.gguf=Q8_0"
test $rc -eq 0 -a "$(grep -c warning "$tmp/err")" -eq 1 &&
    grep -q "^gguf-quantize: .*o.gguf: warning: 35 of 42 tensors whose type uses importance data have none: 'blk.0.attn_output.weight', 'blk.0.ffn_gate.weight', 'blk.0.ffn_up.weight' \.\.\.$" "$tmp/err"
ok 'importance data for a part of the model are reported'
# Data of a fused matrix count for its parts, and the reverse.
"$builddir/tests/tools/mkimatrix" "$tmp/half.dat" tensor blk.2.attn_qkv.weight 256
run "$q" -n --imatrix "$tmp/im.dat" --imatrix "$tmp/half.dat" "$m" "$tmp/n.gguf" Q4_0
test $rc -eq 0 &&
    grep -q "32 of 42 tensors whose type uses importance data have none: 'blk.0.attn_output.weight'" "$tmp/err" &&
    ! grep -q 'has no tensor for' "$tmp/err"
ok 'importance data of tensors that were fused'
run "$q" -n --compat --imatrix "$tmp/im.dat" --imatrix "$tmp/half.dat" "$m" "$tmp/n.gguf" Q4_0
test $rc -eq 0 && grep -q '39 of 42 tensors' "$tmp/err"
ok 'but not with --compat'
rm -f "$tmp/half.dat"
run "$q" -f --imatrix "$tmp/im.dat" --include-weights attn_q "$m" "$tmp/o.gguf" Q4_0
test $rc -eq 0 && ! grep -q warning "$tmp/err"
ok 'but not where a part was asked for'
sed 's/blk\.1/bli.1/' "$tmp/im.dat" >"$tmp/half.dat"
run "$q" -f --imatrix "$tmp/half.dat" "$m" "$tmp/o.gguf" Q8_0
test $rc -eq 0 -a "$(grep -c warning "$tmp/err")" -eq 1 &&
    grep -q "in.gguf: warning: has no tensor for 1 of the importance data" \
        "$tmp/err"
ok 'so are importance data of no tensor'
rm -f "$tmp"/[ao].gguf
sed 's/blk/bli/g' "$tmp/im.dat" >"$tmp/half.dat"
run "$q" --imatrix "$tmp/half.dat" "$m" "$tmp/o.gguf" Q4_0
test $rc -eq 1 -a ! -e "$tmp/o.gguf" -a "$(wc -l <"$tmp/err")" -eq 1 &&
    grep -q "belong to another model: it lacks all of their 3 tensors, such as 'bli.0.attn_q.weight'; one of its own is 'blk\." "$tmp/err"
ok 'importance data of another model are refused: names'
run "$q" -n --compat --imatrix "$tmp/half.dat" "$m" "$tmp/o.gguf" Q4_0
test $rc -eq 0 && grep -q "has no tensor for 3 of the imp" "$tmp/err"
ok 'but with --compat'
"$builddir/tests/tools/mkimatrix" "$tmp/half.dat" 1 128
run "$q" --imatrix "$tmp/half.dat" "$m" "$tmp/o.gguf" Q4_0
test $rc -eq 1 -a ! -e "$tmp/o.gguf" &&
    grep -q "'blk.0.attn_q.weight' has 256 columns, its importance data 128 values: 3 of 3 tensors" "$tmp/err"
ok 'and widths'
rm -f "$tmp/half.dat"
"$builddir/tests/tools/mkimatrix" "$tmp/im.dat" nan 256
run "$q" --imatrix "$tmp/im.dat" "$m" -o "$tmp/a.gguf=Q4_0" -o "$tmp/o.gguf=Q5_0"
test $rc -eq 0 -a "$(grep -c "blk.0.attn_q.*importance of 128 columns" "$tmp/err")" -eq 1 &&
    test "$(grep -c "the importance of" "$tmp/err")" -eq 7
ok 'importances that are not numbers end no run: one line for a tensor'
rm -f "$tmp"/[ao].gguf "$tmp/im.dat"

# A size that was asked for.
run "$q" --target-size 3M --explain "$m" "$tmp/o.gguf"
test $rc -eq 0 -a "$(wc -c <"$tmp/o.gguf")" -le 3000000 \
    -a "$(wc -c <"$tmp/o.gguf")" -gt 2950000 &&
    grep -q ' bytes, limit 3000000; noise of [0-9]* tensors [0-9.]*, the least' \
        "$tmp/err" &&
    grep -q '^blk.3.ffn_up.weight .* target: noise 0\.[0-9]*; .* bytes more$' \
        "$tmp/out"
ok '--target-size'
run "$q" -q -n -j -t 1 --target-size 3M "$m"
test $rc -eq 0 && grep -q '"limit": 3000000' "$tmp/out" &&
    grep -q "\"file_size\": $(wc -c <"$tmp/o.gguf")" "$tmp/out"
ok 'a dry run with one thread says the same'
rm -f "$tmp/o.gguf"
run "$q" -q --target-bpw 5 --target-types Q4_K,Q6_K --tensor-type attn_v=Q8_0 \
    -o "$tmp/a.gguf=Q8_0" "$m" "$tmp/o.gguf" Q4_K_M
test $rc -eq 0 && "$bin/gguf-info" --tensors "$tmp/o.gguf" >"$tmp/out" &&
    grep -q 'attn_v.* Q8_0' "$tmp/out" && ! grep -q 'Q5_K\|Q3_K' "$tmp/out" &&
    "$bin/gguf-info" --tensors "$tmp/a.gguf" | grep -q 'ffn_up.* Q8_0'
ok '--target-bpw, with types, constraints and another output'
rm -f "$tmp"/[ao].gguf
# Several sizes of one reading: each file is that of a separate run.
run "$q" "$m" -o "$tmp/a.gguf=@3M" -o "$tmp/b.gguf=Q4_K_M@4.5bpw" \
    -o "$tmp/c.gguf=Q8_0"
test $rc -eq 0 && grep -q 'a.gguf: .* bytes, limit 3000000; noise' "$tmp/err" &&
    test "$(grep -c '; noise of' "$tmp/err")" -eq 2
ok '--output OUT=@SIZE and OUT=TYPE@Xbpw'
"$q" -qf --target-size 3M "$m" "$tmp/o.gguf" &&
    cmp -s "$tmp/a.gguf" "$tmp/o.gguf" &&
    "$q" -qf --target-bpw 4.5 "$m" "$tmp/o.gguf" Q4_K_M &&
    cmp -s "$tmp/b.gguf" "$tmp/o.gguf"
ok 'are the files of two runs'
rm -f "$tmp"/[abco].gguf
run "$q" --target-types Q4_K,Q8_0 "$m" -o "$tmp/a.gguf=@4M"
test $rc -eq 0 && "$bin/gguf-info" --tensors "$tmp/a.gguf" >"$tmp/out" &&
    grep -q 'Q4_K' "$tmp/out" && ! grep -q 'Q[2356]_K' "$tmp/out" &&
    rm "$tmp/a.gguf"
ok '--target-types with such an output'
run "$q" -q --target-size 1M "$m" "$tmp/o.gguf"
refused "$m" 'the smallest choice of types has [0-9]* bytes, limit is [0-9]*'
ok 'a size that cannot be had'
run "$q" -q -o "$tmp/a.gguf=Q4_0" --recipe "$srcdir/share/recipes/F16.recipe" \
    "$m" "$tmp/o.gguf"
test $rc -eq 0 && "$bin/gguf-info" --tensors "$tmp/o.gguf" |
    grep -q 'ffn_up.* F16' &&
    "$bin/gguf-info" --tensors "$tmp/a.gguf" | grep -q 'ffn_up.* Q4_0'
ok '--recipe and --output together'
rm -f "$tmp"/[ao].gguf

for args in '' 'x' '--target-size=1G x -o y=F16' '--target-types=Q9 x y F16' \
    '--target-size=1G --target-bpw=4 x y' \
    '--keep-split --split-max-size=1M x y F16' '--override-kv=a=float:1e39 x y F16' '--prune-layers=1,x x y F16' '--override-kv=a x y F16' \
    '--override-kv=a=i8:128 x y F16' 'x y' 'x y Q9_9' '--threads=0 x y Q8_0' \
    '--tensor-type=attn_v x y Q8_0' '--tensor-type=attn_v=I32 x y Q8_0' \
    '--output=y=@ x' '--output=y=@fast x' '--output=y=@0 x' '--output=y=@99bpw x' \
    '--output=y=Q4@1G x' '--target-types=Q4_K --output=y=Q8_0 x' \
    '--on-nonfinite=maybe x y Q8_0' 'x y Q8_0 2 3' '--output=x y Q8_0' \
    'x - Q8_0' 'x --output=-=Q8_0'; do
    run "$q" $args
    test $rc -eq 2 -a ! -s "$tmp/out" -a "$(wc -l <"$tmp/err")" -eq 1
    ok "wrong usage: $args"
done

run "$q" -q --tensor-type 'attn_x=Q6_K' "$m" "$tmp/o.gguf" Q8_0
refused "$m" "pattern 'attn_x' matches no tensor"
ok 'a pattern that matches nothing'
run "$q" -q "$m" "$m" Q8_0 && refused "$m" 'input'
test $rc -eq 1 && cmp -s "$m" "$m"
ok 'the input is not the output'
run "$q" -q "$tmp/none.gguf" "$tmp/o.gguf" Q8_0
refused "$tmp/none.gguf" 'no such file'
ok 'no input'
run "$q" -q "$m" "$tmp/no/o.gguf" Q8_0
refused "$tmp/no/o.gguf" 'No such file'
ok 'no folder'
head -c 5000000 "$m" >"$tmp/bad.gguf"
run "$q" -q "$tmp/bad.gguf" "$tmp/o.gguf" Q8_0
refused "$tmp/bad.gguf" 'byte [0-9]'
ok 'a truncated input names the byte'
{ printf 'GGML'; tail -c +5 "$m"; } >"$tmp/bad.gguf"
run "$q" -q "$tmp/bad.gguf" "$tmp/o.gguf" Q8_0
refused "$tmp/bad.gguf" 'not a GGUF file'
ok 'a wrong magic'
rm -f "$tmp/bad.gguf"
mkdir "$tmp/small"
if mount -t tmpfs -o size=1m none "$tmp/small" 2>/dev/null; then
    run "$q" -q "$m" "$tmp/small/o.gguf" Q8_0
    test $rc -eq 1 -a -z "$(ls -A "$tmp/small")" &&
        test "$(wc -l <"$tmp/err")" -eq 1 && grep -q 'bytes' "$tmp/err"
    ok 'a full disk is told before the work, and nothing is left'
    mount -o remount,size=4k "$tmp/small"
    run "$q" -q --report="$tmp/small/r.json" "$m" "$tmp/o.gguf" Q8_0
    test $rc -eq 1 -a -z "$(ls -A "$tmp/small")" &&
        grep -q 'r.json: .*No space left' "$tmp/err"
    ok 'a report that there is no room for is not left'
    echo full >"$tmp/small/x"
    run "$q" -q -f --resume "$m" "$tmp/small/o.gguf" Q8_0
    test $rc -eq 1 -a "$(ls -A "$tmp/small")" = x &&
        grep -q 'o.gguf.resume.*No space left' "$tmp/err"
    ok 'a journal that there is no room for is not left'
    rm -f "$tmp/o.gguf"
    umount "$tmp/small"
else
    skip 'a full disk' 'no tmpfs can be mounted'
fi
rmdir "$tmp/small"

# D1: llama-quantize keeps general.alignment but lays tensors out on 32 bytes;
# then its own loader refuses the file.
"$mkmodel" "$tmp/a64.gguf" align=64 n=7 rows=3
for type in COPY Q8_0; do
    run "$q" -q -f "$tmp/a64.gguf" "$tmp/o.gguf" $type
    "$bin/gguf-info" --check "$tmp/o.gguf" >"$tmp/out"
    test $rc -eq 0 -a $? -eq 0 && grep -q '^  0 errors,' "$tmp/out" &&
        test "$("$bin/gguf-info" --key general.alignment \
            "$tmp/o.gguf")" = 64 &&
        test "$("$bin/gguf-info" --tensors "$tmp/o.gguf" |
            awk '/ x / && $NF % 64 == 0' | wc -l)" -eq 7
    ok "D1: quantize $type of a file with alignment 64 is laid out on 64"
done
"$bin/gguf-info" --hash "$tmp/a64.gguf" >"$tmp/manifest"
run "$q" -q -f "$tmp/a64.gguf" "$tmp/o.gguf" COPY
run "$bin/gguf-info" --manifest "$tmp/manifest" "$tmp/o.gguf"
test $rc -eq 0
ok 'D1: the copy has the same data'
# Interrupted while a run is under way: the status is above 128, and the
# output, which may be complete when the signal comes, does not remain. Without
# --foreground timeout would kill itself, too, before a run with a journal
# ends.
hit() # signal, option...
{
    signal=$1
    shift
    for pause in 0.3 0.5 0.8 0.2 0.1; do
        rm -f "$tmp"/o.gguf*
        timeout --foreground --preserve-status -s "$signal" $pause \
            "$bin/gguf-quantize" -q -t 1 "$@" "$m" "$tmp/o.gguf" IQ3_S 2>/dev/null
        rc=$?
        test $rc -gt 128 -a ! -e "$tmp/o.gguf" && return 0
    done 2>/dev/null
    return 1
}
run "$q" -q "$m" "$tmp/want.gguf" IQ3_S
for signal in INT KILL; do
    if hit $signal; then
        test -z "$(ls -A "$tmp" | grep '^o.gguf')"
        ok "SIG$signal leaves nothing"
        mkfifo "$tmp/fifo" # open as long as a process has it
        timeout 60 cat "$tmp/fifo" >/dev/null &
        hit $signal 3>"$tmp/fifo"
        wait $!
        ok "SIG$signal leaves nobody"
        rm -f "$tmp/fifo"
    else
        skip "SIG$signal leaves nothing" 'no run could be hit'
    fi
    if hit $signal --resume; then
        test ! -e "$tmp/o.gguf" &&
            test "$(ls -A "$tmp" | grep -c '^o.gguf.resume')" -ne 1
        ok "SIG$signal with --resume leaves the journal and the temporary"
        if test -e "$tmp/o.gguf.resume"; then
            run "$q" -f "$m" "$tmp/o.gguf" IQ3_S
            test $rc -eq 0 &&
                grep -q 'removed 2 files of an earlier run with --resume' "$tmp/err" &&
                test "$(ls -A "$tmp" | grep -c '^o.gguf')" -eq 1
            ok "which a run without it says and removes"
            rm -f "$tmp/o.gguf"
            hit $signal --resume || :
        fi
    else
        skip "SIG$signal with --resume" 'no run could be hit'
    fi
    run "$q" -f --resume "$m" "$tmp/o.gguf" IQ3_S
    test $rc -eq 0 && cmp -s "$tmp/o.gguf" "$tmp/want.gguf" &&
        test "$(ls -A "$tmp" | grep -c '^o.gguf')" -eq 1
    ok "the next run gives the same file"
    rm -f "$tmp/o.gguf"
done
# The disk is full when the journal needs its second block.
mkdir "$tmp/small"
pages=$(($(wc -c <"$tmp/want.gguf") / 4096 + 2))
if mount -t tmpfs -o size=$((4 * pages))k none "$tmp/small" 2>/dev/null; then
    run "$q" -q --resume "$m" "$tmp/small/o.gguf" IQ3_S
    test $rc -eq 1 && grep -q 'No space left' "$tmp/err" &&
        test "$(ls -A "$tmp/small" | tr '\n' ' ')" = \
            'o.gguf.resume o.gguf.resume-data '
    ok 'a disk that fills up: journal and temporary stay'
    mount -o remount,size=$((4 * pages + 16))k "$tmp/small"
    run "$q" --resume "$m" "$tmp/small/o.gguf" IQ3_S
    test $rc -eq 0 && cmp -s "$tmp/small/o.gguf" "$tmp/want.gguf" &&
        grep -q ' 2[0-9] tensors of an earlier run' "$tmp/err"
    ok 'with more room the run goes on'
    umount "$tmp/small"
else
    skip 'a disk that fills up' 'no tmpfs can be mounted'
fi
rm -rf "$tmp/small" "$tmp/want.gguf"
done_testing
