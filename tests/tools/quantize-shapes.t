#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-quantize: tensors with more dimensions than usual, and tables whose rows
# are only looked up.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
q=$bin/gguf-quantize

# Tensors of five dimensions, if --limit admits them, have the bytes of the
# same rows in two dimensions.
"$mkmodel" "$tmp/in5.gguf" five=1 weights=1 rows=12 n=2
"$mkmodel" "$tmp/in2.gguf" weights=1 rows=12 n=2
run "$q" -q "$tmp/in5.gguf" "$tmp/p.gguf" Q4_0
test $rc -eq 1 -a ! -e "$tmp/p.gguf" && grep -q 'dimensions.*--limit' "$tmp/err"
ok 'five dimensions are refused'
run "$q" -q -f "$tmp/in2.gguf" "$tmp/o.gguf" Q4_0
run "$q" -q --limit dims=5 --report "$tmp/in5.gguf" "$tmp/p.gguf" Q4_0
digests() # option..., file
{
    "$bin/gguf-info" --hash "$@" 2>/dev/null | sed 's/  [^ ]*gguf/ /'
}
test $rc -eq 0 && grep -q '^blk.0.t1.weight *Q4_0 ' "$tmp/out" &&
    "$bin/gguf-info" --limit dims=5 --tensors "$tmp/p.gguf" 2>/dev/null |
    grep -q 't0.weight *256 x 2 x 1 x 2 x 3 *Q4_0 ' &&
    test "$(digests --limit dims=5 "$tmp/p.gguf")" = \
        "$(digests "$tmp/o.gguf")"
ok '--limit dims=5: quantized'
run "$q" -q -f --limit dims=5 --resume --outer-scales --split-max-size 3k \
    "$tmp/in5.gguf" "$tmp/p.gguf" NVFP4
test $rc -eq 0 && "$bin/gguf-info" --limit dims=5 --tensors \
    "$tmp/p-00002-of-00002.gguf" 2>/dev/null | grep -q 't1.scale *6 *F32 '
ok '--limit dims=5: a scale for each matrix, shards, a journal'
run "$q" -q -n -j --limit dims=5 --target-bpw 5 "$tmp/in5.gguf"
test $rc -eq 0 && grep -q '"to": "[^F]' "$tmp/out"
ok '--limit dims=5: types for a size'

types() # option...: the plan in $tmp/out
{
    run "$q" -n -q --explain "$@"
    test $rc -eq 0 -a ! -s "$tmp/err"
}

# Tables whose rows are only looked up.
"$mkmodel" "$tmp/in.ple.gguf" gathered=1 weights=1 rows=64 n=2
types "$tmp/in.ple.gguf" Q4_K_M &&
    grep -q '^per_layer_token_embd.weight .* -> Q8_0 .* only looked up: Q8_0 or better$' "$tmp/out" &&
    grep -q '^blk.0.t1.weight .* -> Q4_K ' "$tmp/out"
ok 'tables that are only looked up stay at Q8_0'
types --compat "$tmp/in.ple.gguf" Q4_K_M &&
    grep -q '^per_layer_token_embd.weight .* -> Q6_K ' "$tmp/out"
ok '--compat: as llama-quantize'
types --token-embedding-type Q4_K "$tmp/in.ple.gguf" Q4_K_M &&
    grep -q '^per_layer_token_embd.weight .* -> Q4_K ' "$tmp/out" &&
    types --tensor-type per_layer=Q5_K "$tmp/in.ple.gguf" Q4_K_M &&
    grep -q '^per_layer_token_embd.weight .* -> Q5_K ' "$tmp/out"
ok 'less where it is asked for'
run "$q" -q -n --explain --target-bpw 4 "$tmp/in.ple.gguf" Q4_K_M
test $rc -eq 0 && grep -q '^per_layer_token_embd.weight .* target: ' "$tmp/out"
ok 'for a size they are as free as others'
# F64 needs --force: llama.cpp aborts.
"$mkmodel" "$tmp/f.gguf" weights=1 rows=2 n=2
for way in F64 '--tensor-type t1=F64 F16'; do
    # shellcheck disable=SC2086 # words
    set -- $way
    type=$1
    test $# -eq 1 || type=$3
    test $# -eq 1 && shift || set -- "$1" "$2"
    run "$q" -q "$@" "$tmp/f.gguf" "$tmp/new.gguf" "$type"
    test $rc -eq 1 -a ! -e "$tmp/new.gguf" &&
        grep -q "t[01].weight' would become F64: llama.cpp aborts on this type; --force" \
            "$tmp/err"
    ok "$way is refused"
    run "$q" -q -f "$@" "$tmp/f.gguf" "$tmp/new.gguf" "$type"
    test $rc -eq 0 -a -s "$tmp/new.gguf" && grep -q 'becomes F64' "$tmp/err"
    ok "$way is made by force, with a warning"
    test "$type" = F16 || cp "$tmp/new.gguf" "$tmp/f64.gguf"
    rm -f "$tmp/new.gguf"
done
run "$q" -q "$tmp/f64.gguf" "$tmp/new.gguf" COPY
test $rc -eq 0 -a ! -s "$tmp/err"
ok 'what is F64 already is copied'
done_testing
