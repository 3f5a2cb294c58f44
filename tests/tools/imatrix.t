#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-imatrix: shows data, adds data up, converts without loss.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
im=$bin/gguf-imatrix
mk=$builddir/tests/tools/mkimatrix
"$mk" "$tmp/a.dat" && "$mk" "$tmp/b.dat" 3 || exit 99

run "$im" "$tmp/a.dat"
test $rc -eq 0 -a ! -s "$tmp/err" -a "$(wc -l <"$tmp/out")" -eq 4 &&
    grep -q '^blk.0.attn_q.weight  *64  *1  *0  *4  *126  *0  *4 ' "$tmp/out" &&
    grep -q '^blk.1.attn_q.weight .* 1.0000$' "$tmp/out"
ok 'statistics: mean squares are sums by counts'
run "$im" -j "$tmp/a.dat"
test $rc -eq 0 && grep -q '"mean": 1.96875' "$tmp/out" &&
    grep -q '"n_chunks": 4' "$tmp/out" && grep -q '"cosine": null' "$tmp/out" &&
    grep -q '"wiki.raw"' "$tmp/out" && ! grep -q somebody "$tmp/out"
ok '--json'
if python3 -c '' 2>/dev/null; then
    python3 -m json.tool "$tmp/out" >/dev/null 2>"$tmp/err"
    ok 'it is JSON'
fi
run "$im" -o "$tmp/a.gguf" "$tmp/a.dat"
test $rc -eq 0 && grep -q 'gguf, 3 tensors, 4 chunks$' "$tmp/err" &&
    head -c 4 "$tmp/a.gguf" | grep -q GGUF && ! grep -q somebody "$tmp/a.gguf"
ok 'to GGUF, without the path'
run "$im" -q -o "$tmp/back.dat" --keep-paths "$tmp/a.dat"
test $rc -eq 0 && cmp -s "$tmp/back.dat" "$tmp/a.dat"
ok '--keep-paths: the older form comes back as it was'
run "$im" -q -o "$tmp/c.dat" "$tmp/a.gguf"
run "$im" -j "$tmp/c.dat"
cp "$tmp/out" "$tmp/c.json"
run "$im" -j "$tmp/a.dat"
test $rc -eq 0 && cmp -s "$tmp/out" "$tmp/c.json"
ok 'there and back the figures are the same'

# 4 calls of k and 4 calls of 3k: 8 calls of 2k
run "$im" -o "$tmp/all.gguf" "$tmp/a.dat" "$tmp/b.dat"
test $rc -eq 0 && grep -q ' 8 chunks$' "$tmp/err"
ok 'two files become one'
run "$im" -j "$tmp/all.gguf"
test $rc -eq 0 && grep -q '"mean": 3.9375' "$tmp/out" &&
    grep -q '"max_count": 8' "$tmp/out"
ok 'sums and counts are added'
run "$im" -q -o "$tmp/all.gguf" "$tmp/a.dat"
test $rc -eq 1 && grep -q 'all.gguf: .*exists (--force' "$tmp/err"
ok 'an output that exists is kept'
run "$im" -q --force -o "$tmp/all.gguf" --include attn --output-format dat \
    "$tmp/a.dat"
test $rc -eq 0 && ! grep -q GGUF "$tmp/all.gguf" &&
    "$im" "$tmp/all.gguf" | grep -vq ffn_down
ok '--force, --include, --output-format'
run "$im" -j --exclude attn "$tmp/a.dat"
test $rc -eq 0 && grep -q ffn_down "$tmp/out" && ! grep -q attn "$tmp/out"
ok '--exclude'

# Failed downloads in place of a file.
like() # what got looks like
{
    run "$im" "$tmp/got"
    test $rc -eq 1 &&
        grep -q "got: neither GGUF nor .*; it looks like $1" "$tmp/err"
    imatrix=$?
    run "$bin/gguf-info" "$tmp/got"
    test $rc -eq 1 && grep -q "got: not a GGUF .*; it looks like $1" "$tmp/err" &&
        test $imatrix -eq 0
    ok "$1"
}
echo '<!doctype html><html>' >"$tmp/got"
like 'a web page'
echo 'version https://git-lfs.github.com/spec/v1' >"$tmp/got"
like 'a Git LFS pointer'
echo '{"error":"Sorry"}' >"$tmp/got"
like "a server's error"
printf 'Entry not found' >"$tmp/got"
like 'the answer of a server without this file'
echo 'Invalid username or password.' >"$tmp/got"
like 'the answer of a server that wants a token'
printf '\010\0\0\0\0\0\0\0{"a":{}}' >"$tmp/got"
like 'a safetensors file'

# Data of a big-endian machine, and a limit.
"$mk" "$tmp/big.dat" 1 64 big
run "$im" -q --keep-paths -o "$tmp/little.dat" "$tmp/big.dat"
test $rc -eq 0 && cmp -s "$tmp/little.dat" "$tmp/a.dat" &&
    ! cmp -s "$tmp/big.dat" "$tmp/a.dat"
ok 'the older form in big-endian order'
"$bin/gguf-edit" -q --to-endian big -o "$tmp/big.gguf" "$tmp/a.gguf"
run "$im" -q -o "$tmp/little.gguf" "$tmp/big.gguf"
test $rc -eq 0 && cmp -s "$tmp/little.gguf" "$tmp/a.gguf"
ok 'a big-endian GGUF file'
run "$im" --limit tensors=5 "$tmp/big.gguf"
test $rc -eq 1 && grep -q 'big.gguf: 6 tensors at byte 8, limit is 5 (--limit tensors=6 allows it)$' "$tmp/err"
ok '--limit'

"$mk" "$tmp/nan.dat" nan && "$mk" "$tmp/zero.dat" 0
run "$im" "$tmp/nan.dat"
test $rc -eq 0 && test "$(grep -c 'are negative or not numbers' "$tmp/err")" -eq 3 &&
    test "$(wc -l <"$tmp/err")" -eq 3
ok 'what is not a number is reported, once for a tensor'
esc=$(printf '\033')
sed "s/0.attn_q/0.${esc}[07mx/" "$tmp/nan.dat" >"$tmp/esc.dat"
run "$im" "$tmp/esc.dat"
test $rc -eq 0 && ! grep -q "$esc" "$tmp/err" && grep -q 'x1B\[07m' "$tmp/err"
ok 'names are escaped in warnings'
run "$im" "$tmp/zero.dat"
test $rc -eq 0 && test "$(grep -c 'all values are 0' "$tmp/err")" -eq 3
ok 'so is what is zero throughout'
"$mk" "$tmp/none.dat" uncounted
run "$im" "$tmp/none.dat"
test $rc -eq 1 -a ! -s "$tmp/out" &&
    grep -q "'blk.0.attn_q.weight' has 0 calls: nothing was counted (byte 4)$" "$tmp/err"
ok 'what was never counted is refused'
"$mk" "$tmp/many.dat" layers 40000
seconds=10
test -z "${EMULATOR-}" || seconds=100
run sh -c 'ulimit -t "$1"; shift; exec "$@"' sh $seconds "$im" -q \
    -j "$tmp/many.dat"
test $rc -eq 0 && test "$(grep -c '"cosine": 0$' "$tmp/out")" -eq 39999
ok '40000 layers are each compared with the one before, in seconds'
run "$im" -o "$tmp/x.gguf" --include nothing "$tmp/a.dat"
test $rc -eq 1 -a ! -e "$tmp/x.gguf" &&
    grep -q '^gguf-imatrix: --include leaves no tensor$' "$tmp/err"
ok 'what no reader takes is not written'
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
if test -f "$m"; then
    if python3 -c '' 2>/dev/null; then
        "$im" -q --json --model "$m" "$tmp/a.dat" 2>"$tmp/err" |
            python3 -m json.tool >"$tmp/out" 2>&1
        test ! -s "$tmp/err" && grep -q '"n_matrices": 44' "$tmp/out" &&
            grep -q '"missing": \[' "$tmp/out"
        ok '--model --json is one document'
    fi
    run "$im" --model "$m" "$tmp/a.dat"
    test $rc -eq 0 && grep -q '^no data: blk.0.attn_k.weight$' "$tmp/out" &&
        grep -q '^64 values, expected .*: blk.0.attn_q.weight$' "$tmp/out"
    ok '--model tells what is missing'
else
    skip '--model' 'no model in share/'
fi
"$mk" "$tmp/imat-made.gguf" made gguf
for v in "$tmp/imat-made" "$GGUF_SHARED"/golden/files/imatrix/imat-llama \
    "$GGUF_SHARED"/golden/files/imatrix/imat-syn-moe8; do
    test -f "$v.gguf" || continue
    f=${v##*/}
    run "$im" -j "$v.gguf"
    test $rc -eq 0 && grep -q '"n_mats": ' "$tmp/out"
    ok "$f.gguf is read"
    run "$im" -q --force -o "$tmp/v.gguf" "$v.gguf"
    run "$im" -j "$tmp/v.gguf"
    cp "$tmp/out" "$tmp/v.json"
    run "$im" -j "$v.gguf"
    test $rc -eq 0 && cmp -s "$tmp/out" "$tmp/v.json"
    ok "$f.gguf: written and read it is the same"
    run "$im" -q --force -o "$tmp/v.gguf" "$v.gguf" "$v.gguf"
    run "$im" -j "$tmp/v.gguf"
    grep -v 'count\|n_chunks' "$tmp/out" >"$tmp/twice"
    grep -v 'count\|n_chunks' "$tmp/v.json" | cmp -s - "$tmp/twice" &&
        ! cmp -s "$tmp/out" "$tmp/v.json"
    ok "$f.gguf twice: other counts of each expert, the same mean squares"
done

head -c 40 "$tmp/a.dat" >"$tmp/bad.dat"
run "$im" "$tmp/bad.dat"
test $rc -eq 1 -a ! -s "$tmp/out" -a "$(wc -l <"$tmp/err")" -eq 1 &&
    grep -q '^gguf-imatrix: .*bad.dat: .*byte' "$tmp/err"
ok 'a truncated file names the byte'
run "$im" "$tmp/none"
test $rc -eq 1 && grep -qi 'none: .*no such file' "$tmp/err"
ok 'no such file'
run "$im" -o "$tmp/x.gguf" "$tmp/a.dat" "$tmp/none"
test $rc -eq 1 -a ! -e "$tmp/x.gguf"
ok 'nothing is written then'
for args in '' '--output-format=gguf a' '--output-format=x -o y a' \
    '--include=a --exclude=b a' '-o - a'; do
    run "$im" $args
    test $rc -eq 2 -a ! -s "$tmp/out" -a "$(wc -l <"$tmp/err")" -eq 1
    ok "wrong usage: $args"
done
done_testing
