#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ppl: its output, its inputs, and its failures.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
t=$tmp/text
head -c 4000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"
gzip -c "$t" >"$t.gz"

# Figures that do not depend on the machine, the time and the source of the
# text.
figures()
{
    grep -v -e '^mode' -e '^time' -e '^text' "$tmp/out"
}

run "$ppl" -m "$m" -f "$t" -c 128 --chunks 5 -t 1
test $rc -eq 0 -a ! -s "$tmp/err"
ok 'a model is evaluated'
figures >"$tmp/one"
grep -q '^mode *exact ' "$tmp/out" && grep -q ', BOS first$' "$tmp/out" &&
    grep -q '^chunks *5 of 128 tokens' "$tmp/out"
ok 'settings are printed'
grep -q '^\[1\][0-9.]*,\[2\].*\[5\][0-9.]*,$' "$tmp/out"
ok 'a running value for each chunk'
last=$(sed -n 's/.*\[5\]\([0-9.]*\),$/\1/p' "$tmp/out")
final=$(sed -n 's/^Final estimate: PPL = \([0-9.]*\) +\/- [0-9.]*$/\1/p' \
    "$tmp/out")
test -n "$final" -a "$last" = "$final"
ok "the last of them is the final estimate: $final"

for threads in 2 4; do
    run "$ppl" -m "$m" -f "$t" -c 128 --chunks 5 -t $threads
    figures | cmp -s - "$tmp/one"
    ok "the same digits with $threads threads"
done
run "$ppl" -m "$m" -f "$t" -c 128 --chunks 5 -b 640 -ub 64
figures | grep -v ^chunks >"$tmp/two"
grep -v ^chunks "$tmp/one" | cmp -s - "$tmp/two"
ok 'the same digits in other batches'
for how in --no-fuse --repack --repack=300K '--repack=1M -t 3 -ub 96'; do
    run "$ppl" -m "$m" -f "$t" -c 128 --chunks 5 $how
    figures | grep -v ^chunks >"$tmp/two"
    grep -v ^chunks "$tmp/one" | cmp -s - "$tmp/two"
    ok "the same digits with $how"
done

run "$ppl" -m "$m" -f "$t" --repack=much
test $rc -eq 2 && grep -q -e "--repack: .*'much'" "$tmp/err"
ok 'a size that is none'
for size in 100M 10M; do
    run "$ppl" -m "$m" -f "$t" -c 128 --chunks 5 --layer-major \
        --max-memory $size
    figures | cmp -s - "$tmp/one"
    ok "the same digits layer by layer, in $size"
done
run "$ppl" -m "$m" -f "$t" -c 128 --chunks 5 --layer-major --max-memory 1000
test $rc -eq 1 &&
    grep -q 'a chunk needs [0-9]* bytes .*: give a larger --max-memory$' "$tmp/err"
ok 'no room for a chunk'
for ub in 1 3 64 127; do
    run "$ppl" -j -m "$m" -f "$t" -c 128 --chunks 5 -ub $ub
    grep -e '"chunk_nll"' -e '"ppl"' "$tmp/out" >"$tmp/ub$ub"
    test $rc -eq 0 -a -s "$tmp/ub$ub" && cmp -s "$tmp/ub1" "$tmp/ub$ub"
    ok "all digits of JSON, -ub $ub"
done
mkfifo "$tmp/fifo"
"$ppl" -m "$m" -f "$tmp/fifo" >"$tmp/out" 2>"$tmp/err" &
pid=$!
sleep 1
kill -TERM $pid
wait $pid
test $? -eq 143
ok 'a signal ends it at once while it waits for the text'
run "$ppl" --model="$m" --file="$t.gz" --ctx-size=128 --chunks=5
figures | cmp -s - "$tmp/one"
ok 'text compressed by gzip, long options'
"$ppl" -m "$m" -f - -c 128 --chunks 5 <"$t.gz" >"$tmp/out" 2>"$tmp/err"
figures | cmp -s - "$tmp/one"
ok 'text from standard input'
{ cat "$t"; echo; } >"$tmp/newline"
n1=$("$ppl" -m "$m" -f "$t" -c 128 --chunks 2 | sed -n 's/.*, \([0-9]*\) tokens$/\1/p')
n2=$("$ppl" -m "$m" -f "$tmp/newline" -c 128 --chunks 2 |
    sed -n 's/.*, \([0-9]*\) tokens$/\1/p')
test -n "$n1" -a "$n1" = "$n2"
ok 'one newline at the end does not count'
run "$ppl" -m "$m" -f "$t" -c 128 --chunks 5 -ctk f16
test $rc -eq 0 && ! figures | cmp -s - "$tmp/one"
ok 'keys in f16 change the last digits'
grep -q '^cache *keys in F16, values in F32$' "$tmp/out"
ok 'and the heading says so'

run "$ppl" -m "$m" -f "$t" -c 128 --chunks 5 --json
test $rc -eq 0 && grep -q '"precision": "exact"' "$tmp/out" &&
    grep -q '"tokens_scored": 315' "$tmp/out" &&
    test "$(sed -n 's/.*"ppl": \([0-9.]*\).*/\1/p' "$tmp/out" |
        LC_ALL=C awk '{ printf "%.4f", $1 }')" = "$final"
ok 'JSON has the same figure'
tr -d '\n ' <"$tmp/out" | grep -q '"prompt":{"tokens":640,"passes":2,"sec' &&
    tr -d '\n ' <"$tmp/out" | grep -q '"logits":{"rows":315,"passes":'
ok 'JSON has what each stage took'
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert len(d["chunk_nll"]) == 5
assert abs(sum(d["chunk_nll"]) / d["tokens_scored"] - d["nll"]) < 1e-9' \
        "$tmp/out" 2>"$tmp/err"
    ok 'JSON can be read, and adds up'
else
    skip 'JSON can be read, and adds up' 'no python3'
fi

run "$ppl" -q -m "$m" -f "$t" -c 4096
fails_with 1 'tokens, expected at least 8192 with .*; use -c [0-9]* or less$'
ok 'a text that is too short'
run "$ppl" -q -m "$m" -f "$t" -c "$(sed 's/.*; use -c \([0-9]*\) or less.*/\1/' "$tmp/err")"
test $rc -eq 0
ok 'the context that the message names is short enough'
: >"$tmp/empty"
run "$ppl" -q -m "$m" -f "$tmp/empty"
fails_with 1 'the text is empty'
ok 'a text that is empty'
run "$ppl" -m "$m" -f "$tmp/none"
fails_with 1 'cannot open'
ok 'a text that is not there'
run "$ppl" -m "$m" -f "$tmp"
fails_with 1 'is a directory'
ok 'a directory as text'
run "$ppl" -m "$m" -f "$m"
fails_with 1 'is a GGUF file, not a text'
ok 'a model as text'
# Texts without an end, or longer than their size says.
head -c 3000000 /dev/zero | tr '\0' 'a' | gzip -c >"$tmp/bomb.gz"
run "$ppl" -m "$m" -f "$tmp/bomb.gz" --max-text 2M
test $rc -eq 1 -a "$(wc -l <"$tmp/err")" -eq 1 &&
    grep -q 'more than 2000000 bytes when unpacked; --max-text' "$tmp/err"
ok 'a text that unpacks to more than the limit'
run "$ppl" -m "$m" -f "$t" --max-text 1000
test $rc -eq 1 && grep -q 'more than 1000 bytes; --max-text allows' "$tmp/err"
ok 'a plain one of more'
yes | (run timeout 60 "$ppl" -m "$m" -f - --max-text 5Mi; echo $rc >"$tmp/rc")
test "$(cat "$tmp/rc")" -eq 1 && grep -q 'more than 5242880 bytes' "$tmp/err"
ok 'standard input without an end'
size=$(wc -c <"$t")
run "$ppl" -m "$m" -f "$t.gz" -c 128 --chunks 1 --max-text "$size"
test $rc -eq 0
ok 'a text of just the limit is read'
run "$ppl" -m "$m" -f "$t.gz" -c 128 --chunks 1 --max-text "$((size - 1))"
test $rc -eq 1
ok 'one of a byte more is not'

head -c 1000 "$t.gz" >"$tmp/cut.gz"
run "$ppl" -m "$m" -f "$tmp/cut.gz"
fails_with 1 'compressed data is cut off'
ok 'a compressed text that is cut off'
run "$ppl" -m "$t" -f "$t"
fails_with 1 'GGUF'
ok 'a text as model'
head -c 100000 "$m" >"$tmp/cut.gguf"
run "$ppl" -m "$tmp/cut.gguf" -f "$t"
test $rc -eq 1 -a ! -s "$tmp/out"
ok 'a model that is cut off'

LC_ALL=C sed 's/llama/lamma/' "$m" >"$tmp/arch.gguf"
run "$ppl" -m "$tmp/arch.gguf" -f "$t"
test $rc -eq 1 -a ! -s "$tmp/out" && head -1 "$tmp/err" | grep -q \
    "architecture 'lamma' is not supported by gguf-ppl yet; gguf-info, gguf-split and gguf-quantize work on it$"
ok 'an architecture that is not supported says what still works'
for arch in eagle3 dflash gemma4-assistant; do
    run "$bin/gguf-edit" -qf --set "general.architecture=$arch" \
        -o "$tmp/arch.gguf" "$m"
    run "$ppl" -m "$tmp/arch.gguf" -f "$t"
    fails_with 1 "architecture '$arch' is a draft model"
    ok "$arch: a draft model is refused as such"
    run "$bin/gguf-info" --check "$tmp/arch.gguf"
    test $rc -eq 0 && grep -q "architecture '$arch' is a draft model" "$tmp/out"
    ok "$arch: so does gguf-info"
done

# A split model is evaluated directly.
digits()
{
    figures | grep -v '^model'
}
grep -v '^model' "$tmp/one" >"$tmp/digits"
mkdir "$tmp/set"
run "$bin/gguf-split" --split-max-tensors 19 "$m" "$tmp/set/x"
for set in "$tmp/set/x-00002-of-00003.gguf" "$tmp/set" "$tmp/set/x"; do
    run "$ppl" -m "$set" -f "$t" -c 128 --chunks 5 -t 2
    test $rc -eq 0 -a ! -s "$tmp/err" && digits | cmp -s - "$tmp/digits"
    ok "the same digits from three shards: ${set#"$tmp/"}"
done
size=$(wc -c <"$tmp/set/x-00003-of-00003.gguf")
printf '\377\377' | dd of="$tmp/set/x-00003-of-00003.gguf" bs=1 \
    seek=$((size - 2)) conv=notrunc 2>/dev/null
run "$ppl" -m "$tmp/set" -f "$t" -c 128
fails_with 1 ": shard 'x-00003-of-00003.gguf': tensor '.*': element [0-9]* is not a number"
ok 'a weight that is not a number, and its shard'
rm "$tmp/set/x-00002-of-00003.gguf"
for set in "$tmp/set/x-00001-of-00003.gguf" "$tmp/set" "$tmp/set/x"; do
    run "$ppl" -m "$set" -f "$t" -c 128
    fails_with 1 ": 1 of 3 shards of 'x' is missing: 2"
    ok "a shard that is not there: ${set#"$tmp/"}"
done
run "$bin/gguf-quantize" -q --outer-scales --tensor-type ffn_up=nvfp4 "$m" \
    "$tmp/scaled.gguf" F16
run "$bin/gguf-split" -q --split-max-tensors 1 "$tmp/scaled.gguf" "$tmp/scaled"
run "$ppl" -m "$tmp/scaled.gguf" -f "$t" -c 128 --chunks 2
figures >"$tmp/whole"
test $rc -eq 0 -a ! -s "$tmp/err"
ok 'scales beside matrices of NVFP4'
run "$ppl" -m "$tmp/scaled" -f "$t" -c 128 --chunks 2
figures | cmp -s - "$tmp/whole"
ok 'the same digits with scales in other shards than their matrices'
run "$ppl" -m "$tmp/set/y" -f "$t" -c 128
fails_with 1 ": there is no such file, nor a split model 'y-NNNNN-of-NNNNN.gguf'"
ok 'a model that is not there'

# The byte order of a file, and of a machine, changes no digit.
run "$bin/gguf-quantize" -q --tensor-type attn_q=q5_0 --tensor-type ffn=iq4_xs \
    "$m" "$tmp/q.gguf" Q8_0
run "$ppl" -m "$tmp/q.gguf" -f "$t" -c 128 --chunks 2
digits >"$tmp/little"
run "$bin/gguf-edit" -q --to-endian big -o "$tmp/big.gguf" "$tmp/q.gguf"
run "$ppl" -m "$tmp/big.gguf" -f "$t" -c 128 --chunks 2
test $rc -eq 0 -a -s "$tmp/little" && digits | cmp -s - "$tmp/little"
ok 'the same digits from a big-endian file'

# The vocabulary is the model's. A bad model is
# refused before standard input is read.
run "$bin/gguf-edit" -qf --set tokenizer.ggml.model=none -o "$tmp/none.gguf" "$m"
run "$ppl" -m "$tmp/none.gguf" -f "$tmp/absent"
fails_with 1 "none.gguf: the file has no vocabulary"
ok 'a model without a vocabulary, before the text is looked at'

# The last weight becomes NaN.
cp "$m" "$tmp/nan.gguf" && chmod u+w "$tmp/nan.gguf"
size=$(wc -c <"$m")
printf '\377\377' | dd of="$tmp/nan.gguf" bs=1 seek=$((size - 2)) \
    conv=notrunc 2>/dev/null
run "$ppl" -m "$tmp/nan.gguf" -f "$t" -c 128
fails_with 1 "tensor '.*': element [0-9]* is not a number (byte $((size - 2)))"
ok 'a weight that is not a number: the byte is its own'
run "$ppl" -m "$tmp/nan.gguf" -f "$t" -c 128 --no-check
test $rc -eq 1 && grep -q 'probability of token [0-9]* is not a number: tensor' \
    "$tmp/err"
ok 'and where it is noticed without the check'
grep -q '(token 64 of the text): matmul' "$tmp/err"
ok 'and where that comes from'
run "$ppl" -m "$tmp/nan.gguf" -f "$t" -c 128 --no-check --check-activations
test $rc -eq 1 && grep -q "chunk 1, position 64 (token 64 of the text): matmul" \
    "$tmp/err"
ok 'the first activation that is not finite'
run "$ppl" -q -m "$m" -f "$t" -c 128 --chunks 2 -t 3
figures >"$tmp/plain"
run "$ppl" -q -m "$m" -f "$t" -c 128 --chunks 2 -t 3 --check-activations
test $rc -eq 0 && test -s "$tmp/plain" && figures | cmp -s - "$tmp/plain"
ok 'looking at activations changes no digit'

run "$ppl" -m "$m" -f "$t" -c 128 --chunks 5 --backend cpu
figures | cmp -s - "$tmp/one"
ok 'the CPU by name'
run "$ppl" -m "$m" -f "$t" -c 128 --chunks 5 --numa
figures | cmp -s - "$tmp/one"
ok 'spread over memory nodes'
cpu=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status 2>/dev/null)
if test -n "$cpu"; then
    run "$ppl" -m "$m" -f "$t" -c 128 --chunks 5 --cpus "$cpu,$cpu-$cpu" -t 2
    figures | cmp -s - "$tmp/one"
    ok 'bound to one processor'
else
    skip 'bound to one processor' 'no /proc'
fi
for list in x 1- 3-1 ,1 1,, 1024; do
    run "$ppl" -m "$m" -f "$t" --cpus "$list"
    test $rc -eq 2 -a ! -s "$tmp/out" &&
        grep -q 'is not a list such as 0-3,8' "$tmp/err"
    ok "a wrong list of processors: $list"
done
run "$ppl" -m "$m" -f "$t" --backend nothing
fails_with 1 "unknown backend 'nothing', expected one of: CPU"
ok 'a backend that is not there'
for list in '' CPU, ,CPU; do
    run "$ppl" -m "$m" -f "$t" --backend "$list"
    fails_with 1 "unknown backend ''"
    ok "a name that is missing: '$list'"
done
if "$ppl" -m "$m" -f "$t" --backend nothing 2>&1 | grep -q BLAS; then
    run "$ppl" -m "$m" -f "$t" -c 128 --chunks 5 --backend BLAS
    test $rc -eq 0 && grep -q '^backend BLAS (.*), then CPU (.*)$' "$tmp/out" &&
        test "$(sed -n 's/^Final estimate: PPL = \([0-9.]*\).$/\1/p' "$tmp/one")" = \
            "$(sed -n 's/^Final estimate: PPL = \([0-9.]*\).$/\1/p' "$tmp/out")"
    ok 'BLAS: the same figure'
else
    skip 'BLAS' 'built without it'
fi
for args in '' "-m $m" "-f $t" "-m $m -f $t -c 3" "-m $m -f $t -t 0" \
    "-m $m -f $t --chunks 0" "-m $m -f $t -ctk q4_k" "-m $m -f $t more" \
    "-m $m -f $t --cpus 0 --numa"; do
    # shellcheck disable=SC2086
    wrong_usage "$ppl" $args
done
done_testing
