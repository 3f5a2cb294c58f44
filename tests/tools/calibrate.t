#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-quantize --calibrate: refusals, texts and tokens, output.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
q=$bin/gguf-quantize
tiny=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
schema=$srcdir/share/gguf-quantize.schema.json
if test ! -f "$tiny"; then
    skip 'calibrating' 'no model in share/'
    done_testing
    exit
fi
# One layer is enough to compute.
m=$tmp/m.gguf
"$q" -q --prune-layers 1,2,3,4,5 "$tiny" "$m" COPY || exit 99
text=$tmp/text
head -c 24000 "$srcdir/share/tiny-llama/persuasion.txt" >"$text"
out=$tmp/out.gguf

# ------------------------------------------------------------- refusals ---

refused() # message, arguments...
{
    message=$1
    shift
    run "$q" "$@" "$m" "$out" Q4_0
    test $rc -eq 2 -a ! -e "$out" && one_error "$message"
}
for with in --compat '--lora a.gguf' '--lora-scaled a:1' '--prune-layers 0'; do
    refused "'--calibrate' and '${with%% *}' exclude each other" \
        --calibrate "$text" $with
    ok "not with ${with%% *}"
done
for alone in '--calib-tokens 4k' '--effort 0' '--tune 2' --mpi; do
    refused "'${alone% *}' needs --calibrate" $alone
    ok "${alone% *} without --calibrate"
done
for tokens in 511 4g 4kk k 4294967296 4096M -1; do
    refused "--calib-tokens: '$tokens' is not a whole number between 512 and" \
        --calibrate "$text" --calib-tokens "$tokens"
    ok "--calib-tokens $tokens"
done
refused "--effort: '3' is not a whole number between 0 and 2" \
    --calibrate "$text" --effort 3
ok 'an effort that does not exist'
for steps in 0 -1 1k 100001 x; do
    refused "--tune: '$steps' is not a whole number between 1 and 100000" \
        --calibrate "$text" --tune "$steps"
    ok "--tune $steps"
done

run "$q" --mpi --calibrate - "$m" "$out" Q4_0
test $rc -ne 0 -a ! -e "$out" && grep -q -e '--mpi: ' "$tmp/err"
ok '--mpi with standard input, or in a build without it'

failed() # message, arguments...
{
    message=$1
    shift
    run "$q" -q "$@" "$m" "$out" Q4_0
    test ! -e "$out" && fails "$message"
}
failed 'nowhere: cannot open: No such file' --calibrate "$tmp/nowhere"
ok 'a text that does not exist'
failed 'is a directory' --calibrate "$tmp"
ok 'a folder'
: >"$tmp/empty"
failed 'empty: the text is empty' --calibrate "$tmp/empty"
ok 'an empty text'
failed 'empty: the text is empty' --calibrate "$text" --calibrate "$tmp/empty"
ok 'an empty text after another'
failed 'is a GGUF file, not a text' --calibrate "$m"
ok 'a model in place of a text'
printf 'a\0b' >"$tmp/nul"
failed 'nul: ' --calibrate "$tmp/nul"
ok 'a text with NUL'
failed '512 tokens are 1 chunk of 512, expected at least one for each of 2' \
    --calibrate "$text" --calibrate "$text" --calib-tokens 512
ok 'fewer chunks than texts'
run "$q" -q -f --calibrate "$text" "$m" "$text" Q4_0
fails 'would be both --calibrate and output' && test -s "$text"
ok 'a text that would be replaced'
"$mkmodel" "$tmp/other.gguf" n=8 rows=4 weights=1 || exit 99
run "$q" -q --calibrate "$text" "$tmp/other.gguf" "$out" Q4_0
test $rc -eq 1 -a ! -e "$out" && test "$(wc -l <"$tmp/err")" -eq 1
ok 'a model that cannot be evaluated'

# ----------------------------------------------------- importance data ---

run "$q" -q --calibrate "$text" --calib-tokens 1k "$m" "$tmp/iq.gguf" IQ2_XXS
test $rc -eq 0 && test -s "$tmp/iq.gguf"
ok 'a type that requires importance data has those of the texts'
run "$q" -q -n --calibrate "$text" "$m" "$out" IQ2_XXS
test $rc -eq 0 -a ! -e "$out"
ok 'no output with --dry-run'

# --------------------------------------------------------------- tokens ---

# The tokens of each text and those used of them, and the sum.
plan() # arguments...
{
    run "$q" -q -n -j "$@" "$m" "$out" Q4_0
    test $rc -eq 0 -a ! -e "$out" || return
    sed -n '/"calibration"/,/"effort"/s/.*"n_[^c]*": \([0-9]*\),*/\1/p' \
        "$tmp/out" | tr '\n' ' '
}
all=$(plan --calibrate "$text" | cut -d' ' -f1)
test "$all" -gt 6000
ok "a text of $all tokens"
test "$(plan --calibrate "$text")" = \
    "$all $((all / 512 * 512)) $((all / 512 * 512)) "
ok 'all whole chunks of it'
test "$(plan --calibrate "$text" --calib-tokens 4k)" = "$all 4096 4096 "
ok 'at most 4k tokens'
test "$(plan --calibrate "$text" --calib-tokens 1M)" = "$(plan --calibrate "$text")"
ok '1M'
test "$(plan --calibrate "$text" --calib-tokens 1023)" = "$all 512 512 "
ok 'only whole chunks'
head -c 5000 "$text" >"$tmp/short"
short=$(plan --calibrate "$tmp/short" | cut -d' ' -f1)
test "$(plan --calibrate "$text" --calibrate "$tmp/short" --calib-tokens 4k)" = \
    "$all $((4096 - short / 512 * 512)) $short $((short / 512 * 512)) 4096 "
ok 'two texts give the same number of chunks as far as they have them'
echo word >"$tmp/word"
plan --calibrate "$tmp/word" --calibrate "$text" >"$tmp/plan"
grep -q "^[1-9] 0 $all $((all / 512 * 512)) " "$tmp/plan"
ok 'a text of one word beside another is not used'
run "$q" -n --calibrate "$tmp/word" --calibrate "$text" "$m" "$out" Q4_0
test $rc -eq 0 && grep -q 'word: warning: .* fewer than a chunk of 512' "$tmp/err" &&
    grep -q "calibration on [0-9]* tokens of 1 text, chunks of 512, effort 0" \
        "$tmp/err"
ok 'and the plan says so'
plan --calibrate "$tmp/word" >"$tmp/plan"
grep -q '^\([1-9]\) \1 \1 $' "$tmp/plan"
ok 'alone it is used'
if python3 -c '' 2>/dev/null; then
    cp "$tmp/out" "$tmp/plan"
    run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/plan"
    test $rc -eq 0
    ok 'the plan in JSON keeps to the schema'
fi
gzip -c "$text" >"$tmp/text.gz"
test "$(plan --calibrate "$tmp/text.gz")" = "$(plan --calibrate "$text")"
ok 'a compressed text'
cat "$text" | "$q" -q -n -j --calibrate - "$m" "$out" Q4_0 >"$tmp/out" &&
    grep -q "\"n_tokens\": $all," "$tmp/out"
ok 'a pipe'
# ----------------------------------------------------------- the output ---

# 8 chunks of 512 tokens
few='--calib-tokens 4k'
"$q" -q "$m" "$tmp/plain.gguf" Q4_K_M || exit 99
# Keys say that importance data were used: some bytes more.
same_size() # file, plain file
{
    more=$(($(wc -c <"$1") - $(wc -c <"$2")))
    test $more -ge 0 -a $more -le 256
}
run "$q" -v --calibrate "$text" $few "$m" "$out" Q4_K_M
test $rc -eq 0 && ! cmp -s "$out" "$tmp/plain.gguf" &&
    same_size "$out" "$tmp/plain.gguf" &&
    grep -q 'out.gguf: new bytes in [1-9][0-9]* of [0-9]* tensors, from 4096 tokens; divergence on [1-9][0-9]* held out: [0-9.e-]* -> [0-9.e-]* nats, ' \
        "$tmp/err"
ok 'a calibrated file has other bytes and the same size'
grep -q '^tensor  *type  *bytes  *strength  *before  *after  *new' "$tmp/out" &&
    grep -q '^blk.0.ffn_down.weight  *Q[456]_K  *feedback  *[0-9.]*  *[0-9.e-]*  *[0-9.e-]*  *1/1' \
        "$tmp/out"
ok '--verbose lists the choice for each tensor'
cp "$out" "$tmp/want.gguf"
# The summary's figures, on held-out tokens, and those of another text.
sed -n 's/.*held out: \([^ ]*\) -> \([^ ]*\) nats.*/\1 \2/p' "$tmp/err" >"$tmp/two"
read -r before after <"$tmp/two"
awk "BEGIN { exit !($after < $before) }"
ok "less divergence on held-out tokens: $before -> $after"
tail -c 9000 "$srcdir/share/tiny-llama/persuasion.txt" >"$tmp/unseen"
divergence() # file
{
    "$bin/gguf-ppl" -q -j --base "$m" -m "$1" -f "$tmp/unseen" -c 128 |
        sed -n '/"kld": {/,/}/s/.*"value": *\([0-9.e-]*\),*/\1/p'
}
was=$(divergence "$tmp/plain.gguf") is=$(divergence "$out")
awk "BEGIN { exit !($is < .8 * $was) }"
ok "and at least a fifth less on another text: $was -> $is"
run "$bin/gguf-info" --check "$out"
test $rc -eq 0
ok 'the file is sound'
for how in '-t 1' '-t 3' '--max-memory 8M -t 2' --resume '-f --report'; do
    rm -f "$out"
    run "$q" -q --calibrate "$text" $few $how "$m" "$out" Q4_K_M
    test $rc -eq 0 && cmp -s "$out" "$tmp/want.gguf"
    ok "$how: the same bytes"
done

# Tuned: the summary's three figures, and another text.
rm -f "$out"
run "$q" -t 1 --calibrate "$text" $few --tune 8 "$m" "$out" Q4_K_M
sed -n 's/.*held out: [^ ]* -> \([^ ]*\) nats, tuned \([^ ]*\), .*/\1 \2/p' \
    "$tmp/err" >"$tmp/two"
read -r after tuned <"$tmp/two"
test $rc -eq 0 && awk "BEGIN { exit !($tuned < $after) }" &&
    same_size "$out" "$tmp/plain.gguf"
ok "--tune: less divergence on held-out tokens: $after -> $tuned"
was=$is is=$(divergence "$out")
awk "BEGIN { exit !($is < $was) }"
ok "and on another text: $was -> $is"
cp "$out" "$tmp/tuned.gguf"
run "$q" -j -t 2 -f --calibrate "$text" $few --tune 8 "$m" "$out" Q4_K_M
cp "$tmp/out" "$tmp/plan"
test $rc -eq 0 && cmp -s "$out" "$tmp/tuned.gguf" &&
    grep -q '"n_tuned": [1-9]' "$tmp/plan" && grep -q '"tune": 8' "$tmp/plan"
ok 'the same bytes with two threads'
if python3 -c '' 2>/dev/null; then
    run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/plan"
    test $rc -eq 0
    ok 'its result in JSON keeps to the schema'
fi

# Killed between two tensors, and continued.
rm -f "$out"
"$q" -q --resume --calibrate "$text" $few "$m" "$out" Q4_K_M &
pid=$!
i=0
while kill -0 $pid 2>/dev/null && test $i -lt 500 &&
    ! test "$(cat "$out.resume" 2>/dev/null | wc -c)" -ge 2400
do
    i=$((i + 1))
    sleep 0.02
done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
run "$q" --resume --calibrate "$text" $few "$m" "$out" Q4_K_M
test $rc -eq 0 && cmp -s "$out" "$tmp/want.gguf" && test ! -e "$out.resume"
ok 'killed and continued: the same bytes'
rm -f "$out"

run "$q" -q --calibrate "$text" $few "$m" -o "$tmp/a.gguf=Q4_K_M" \
    -o "$tmp/b.gguf=Q4_0"
test $rc -eq 0 && cmp -s "$tmp/a.gguf" "$tmp/want.gguf" &&
    run "$q" -q --calibrate "$text" $few "$m" "$tmp/c.gguf" Q4_0 &&
    cmp -s "$tmp/b.gguf" "$tmp/c.gguf"
ok 'two outputs: each is that of a run of its own'
rm -f "$tmp/a.gguf" "$tmp/b.gguf" "$tmp/c.gguf"
run "$q" -q --split-max-size 500K --calibrate "$text" $few "$m" "$tmp/s.gguf" \
    Q4_K_M
test $rc -eq 0 &&
    run "$bin/gguf-split" -q --merge "$tmp/s" "$tmp/s.gguf" &&
    "$bin/gguf-info" --hash "$tmp/s.gguf" | sed 's/ .*//' >"$tmp/one" &&
    "$bin/gguf-info" --hash "$tmp/want.gguf" | sed 's/ .*//' >"$tmp/two" &&
    cmp -s "$tmp/one" "$tmp/two"
ok 'an output in shards has the same tensors'
rm -f "$tmp"/s*.gguf

"$bin/gguf-imatrix" -q -m "$m" -f "$text" --chunks 4 -o "$tmp/im.gguf" || exit 99
run "$q" --calibrate "$text" --calib-tokens 512 --effort 1 "$m" "$out" Q4_0
test $rc -eq 0 &&
    grep -q 'calibrated without gradients: the text has one chunk' "$tmp/err"
ok 'a text that is too short for gradients'
rm -f "$out"
run "$q" --calibrate "$text" --calib-tokens 2k --effort 1 "$m" "$out" Q4_0
test $rc -eq 0 && ! grep -q 'without gradients' "$tmp/err"
ok 'gradients'
rm -f "$out"

run "$q" -q -j --imatrix "$tmp/im.gguf" --target-size 1M --effort 2 \
    --tensor-type attn_v=Q8_0 --calibrate "$text" $few "$m" "$out"
cp "$tmp/out" "$tmp/plan"
test $rc -eq 0 && test "$(wc -c <"$out")" -le 1048576 &&
    grep -q '"effort": 2' "$tmp/plan" && grep -q '"n_new": [1-9]' "$tmp/plan"
ok 'importance data, a target size, types by name, more effort'
if python3 -c '' 2>/dev/null; then
    run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/plan"
    test $rc -eq 0
    ok 'the result in JSON keeps to the schema'
fi
rm -f "$out"

# ---------------------------------------------------- little to calibrate ---

run "$q" --calibrate "$tmp/word" "$m" "$out" Q4_K_M
test $rc -eq 0 && cmp -s "$out" "$tmp/plain.gguf" &&
    grep -q 'word: warning: [1-9] tokens*, expected at least 16: nothing is calibrated' \
        "$tmp/err"
ok 'a text of one word: a warning and the plain bytes'
rm -f "$out"
head -c 300 "$text" >"$tmp/lines"
run "$q" -q --calibrate "$tmp/lines" "$m" "$out" Q4_K_M
test $rc -eq 0 && test "$(wc -c <"$out")" -eq "$(wc -c <"$tmp/plain.gguf")"
ok 'a text of a few lines'
rm -f "$out"
yes word | head -3000 >"$tmp/words"
run "$q" --calibrate "$tmp/words" $few "$m" "$out" Q4_K_M
test $rc -eq 0 && cmp -s "$out" "$tmp/plain.gguf" &&
    grep -q 'words: warning: [1-9] different tokens, expected at least 32' \
        "$tmp/err"
ok 'a text of one word a thousand times'
rm -f "$out"

# NaN in a weight: all activations after it are NaN.
size=$(wc -c <"$m")
{
    head -c $((size - 1000)) "$m"
    printf '\000\176'
    tail -c 998 "$m"
} >"$tmp/nan.gguf"
run "$q" --on-nonfinite keep --calibrate "$text" $few "$tmp/nan.gguf" "$out" Q4_K_M
test $rc -eq 0 -a -s "$out" &&
    grep -q 'NaN or infinite, .*; later tensors keep the plain bytes' "$tmp/err" &&
    grep -q 'new bytes in [0-9]* of [0-9]* tensors, ' "$tmp/err"
ok 'a weight that is NaN: a warning, and an output'
rm -f "$out"

done_testing
