#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-imatrix -f: data of a text, parts, and resuming a killed run.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
im=$bin/gguf-imatrix
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
if test ! -f "$m"; then
    skip 'collecting' 'no model in share/'
    done_testing
    exit
fi
t=$tmp/text
head -c 4000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"

run "$im" -m "$m" -f "$t" -c 32 -o "$tmp/all.gguf"
test $rc -eq 0 && grep -q 'all.gguf: gguf, .* tensors, .* chunks$' "$tmp/err"
ok 'data of a model and a text'
run "$im" -j "$tmp/all.gguf"
nc=$(sed -n 's/.*"n_chunks": \([0-9]*\),.*/\1/p' "$tmp/out")
test "$nc" -gt 8 && grep -q '"chunk_size": 32' "$tmp/out" &&
    grep -q '^ *"text"$' "$tmp/out" &&
    test "$(grep -c "\"min_count\": $((nc * 32))," "$tmp/out")" -eq \
        "$(grep -c '"name": "blk' "$tmp/out")"
ok 'of all tokens of all chunks, and the name of the text without its folder'
run "$im" -m "$m" "$tmp/all.gguf"
test $rc -eq 0 && ! grep -q '^no data: blk' "$tmp/out" &&
    ! grep -q 'values, expected' "$tmp/out"
ok 'every matrix of the layers has data of its shape'
run "$im" -q -m "$m" -f "$t" -c 32 -o "$tmp/all.gguf"
test $rc -eq 1 && grep -q 'all.gguf: exists (--force' "$tmp/err"
ok 'an output that exists is known before'
{ printf '\377\376'; tr -d '\n' <"$t" | LC_ALL=C sed 's/./&\x00/g'; } >"$tmp/wide"
run "$im" -q -m "$m" -f "$tmp/wide" -c 32 -o "$tmp/none.gguf"
test $rc -eq 1 -a ! -e "$tmp/none.gguf" &&
    grep -q 'wide: is UTF-16, not UTF-8; --force' "$tmp/err"
ok 'a text in UTF-16'
for how in '-t 1' '-t 3 -ub 9' '-b 5' --no-fuse --repack '--repack=90K -t 2'; do
    run "$im" -q -m "$m" -f "$t" -c 32 $how -o "$tmp/how.gguf" --force
    test $rc -eq 0 && cmp -s "$tmp/all.gguf" "$tmp/how.gguf"
    ok "$how: the same bytes"
done
for how in '' '--max-memory 2M -t 1' '--max-memory 1500K -ub 9'; do
    run "$im" -q -m "$m" -f "$t" -c 32 --layer-major $how \
        -o "$tmp/how.gguf" --force
    test $rc -eq 0 && cmp -s "$tmp/all.gguf" "$tmp/how.gguf"
    ok "--layer-major $how: the same bytes"
done
run "$im" -m "$m" -f "$t" -c 32 --layer-major --max-memory 1000 \
    -o "$tmp/none.gguf"
test $rc -eq 1 -a ! -e "$tmp/none.gguf" &&
    grep -q -e 'a chunk needs [0-9]* bytes .*: give a larger --max-memory' \
        "$tmp/err"
ok 'layer by layer in no memory'
run "$im" -m "$m" -f "$t" -c 32 --max-memory 1M -o "$tmp/none.gguf"
test $rc -eq 2 && grep -q -e '--max-memory' "$tmp/err"
ok '--max-memory without --layer-major'
run "$im" -q -m "$m" -f "$t" -c 32 --layer-major --save-every 3 --chunks 0..4 \
    --save-part "$tmp/lay.part" &&
    run "$im" -q -m "$m" -f "$t" -c 32 --resume --save-part "$tmp/lay.part" \
        -o "$tmp/how.gguf" --force
test $rc -eq 0 && cmp -s "$tmp/all.gguf" "$tmp/how.gguf"
ok 'begun layer by layer, ended chunk by chunk'
run "$im" -q -m "$m" -f "$t" -c 32 --process-output --include put \
    --chunks 2 -j
test $rc -eq 0 && grep -q '"name": "output.weight"\|"token_embd' "$tmp/out" &&
    grep -q '"name": "blk.0.attn_output' "$tmp/out" &&
    ! grep -q 'ffn' "$tmp/out" && grep -q '"n_chunks": 2' "$tmp/out"
ok '--process-output, --include, --chunks'
gzip -c "$t" >"$tmp/text.gz" 2>/dev/null &&
    run "$im" -q -m "$m" -f - -c 32 -o "$tmp/gz.gguf" <"$tmp/text.gz" &&
    run "$im" -j "$tmp/gz.gguf" && cp "$tmp/out" "$tmp/gz" &&
    run "$im" -j "$tmp/all.gguf" && sed 's/"text"/"-"/' "$tmp/out" |
    cmp -s - "$tmp/gz"
ok 'a compressed text from standard input'
run "$im" -q -m "$m" -f "$t" -c 32 -o "$tmp/all.dat"
head -c 4 "$tmp/all.dat" | grep -q GGUF
test $? -ne 0 -a $rc -eq 0 && run "$im" -q -o "$tmp/conv.dat" "$tmp/all.gguf" &&
    cmp -s "$tmp/all.dat" "$tmp/conv.dat"
ok 'the older form is that of the newer'

# ---- parts
run "$im" -q -m "$m" -f "$t" -c 32 --chunks 5.. --save-part "$tmp/p2"
run "$im" -q -m "$m" -f "$t" -c 32 --from-chunk 2 --chunks 3 -t 1 \
    --save-part "$tmp/p1"
run "$im" -m "$m" -f "$t" -c 32 --chunks 0..2 --save-part "$tmp/p0"
test $rc -eq 0 && grep -q "p0: part, 2 of $nc chunks, precision exact" "$tmp/err"
ok '--save-part'
run "$im" -q --merge-parts -o "$tmp/merged.gguf" "$tmp/p1" "$tmp/p2" "$tmp/p0"
test $rc -eq 0 && cmp -s "$tmp/all.gguf" "$tmp/merged.gguf"
ok 'three parts merged are the bytes of one run'
run "$im" --merge-parts -o "$tmp/m.gguf" "$tmp/p1" "$tmp/p2"
test $rc -eq 0 && grep -q "the parts have $((nc - 2)) of the text's $nc" \
    "$tmp/err"
ok 'what is missing is said'
run "$im" --merge-parts -o "$tmp/m2.gguf" "$tmp/p1" "$tmp/p1"
test $rc -eq 1 -a ! -e "$tmp/m2.gguf" && grep -q 'chunk 2 is in both' "$tmp/err"
ok 'a chunk that two parts have is refused'
run "$im" -q -m "$m" -f "$t" -c 33 --chunks 0..2 --save-part "$tmp/p33"
run "$im" --merge-parts -j "$tmp/p1" "$tmp/p33"
test $rc -eq 1 && grep -q 'p33: .*another setting: chunks of 33 tokens' \
    "$tmp/err"
ok 'a part of another setting is refused'
run "$im" -m "$m" -f "$t" -c 32 --chunks 0..2 --precision int16 \
    --save-part "$tmp/p16"
test $rc -eq 0 && grep -q "p16: part, 2 of $nc chunks, precision int16\$" \
    "$tmp/err"
ok 'a part of another precision'
run "$im" --merge-parts -j "$tmp/p1" "$tmp/p16"
test $rc -eq 1 && grep -q \
    'p16: .*another setting: precision int16, not exact$' "$tmp/err"
ok 'is not added to others'
run "$im" -q -m "$m" -f "$t" -c 32 --chunks 4 --save-part "$tmp/p16" --resume
test $rc -eq 1 && grep -q \
    'p16: .*another setting: precision int16, not exact$' "$tmp/err"
ok 'nor resumed in exact'
run "$im" -q -m "$m" -f "$t" -c 32 --chunks 4 --save-part "$tmp/p16" --resume \
    --precision int16
test $rc -eq 0 && run "$im" -q --merge-parts -j "$tmp/p16" &&
    grep -q '"precision": "int16"' "$tmp/out"
ok 'but in its own, which JSON names'
run "$im" -q -m "$m" -f "$t" -c 32 --chunks 1 --show
test $rc -eq 0 && grep -q '^mode *exact (' "$tmp/out"
ok 'data that are shown say their precision'
says() # FILE... as JSON: the precision, or none
{
    run "$im" -q -j "$@"
    test $rc -eq 0 && sed -n 's/.*"precision": "\(.*\)".*/\1/p' "$tmp/out"
}
for p in exact int16; do
    "$im" -q -m "$m" -f "$t" -c 32 --chunks 1 --precision $p -o "$tmp/$p.gguf" ||
        exit 99
done
"$im" -q -o "$tmp/exact.dat" "$tmp/exact.gguf"
"$im" -q -o "$tmp/mixed.gguf" "$tmp/exact.gguf" "$tmp/int16.gguf"
test "$(says "$tmp/exact.gguf")" = exact -a "$(says "$tmp/int16.gguf")" = int16
ok 'so do files'
test "$(says "$tmp/int16.gguf" "$tmp/int16.gguf")" = int16 -a \
    "$(says "$tmp/mixed.gguf")" = mixed -a \
    "$(says "$tmp/mixed.gguf" "$tmp/exact.gguf")" = mixed
ok 'of two precisions: mixed'
test -z "$(says "$tmp/exact.dat")" -a -z "$(says "$tmp/exact.gguf" \
    "$tmp/exact.dat")" -a -z "$(says "$tmp/exact.dat" "$tmp/exact.gguf")"
ok 'the older form does not say it'
run "$bin/gguf-quantize" -q --imatrix "$tmp/int16.gguf" "$m" "$tmp/q4" Q4_K_M
test $rc -eq 0
ok 'data with a precision are used'
rm -f "$tmp/q4"
head -c 3000 "$t" >"$tmp/short"
run "$im" -q -m "$m" -f "$tmp/short" -c 32 --chunks 0..2 \
    --save-part "$tmp/pshort"
run "$im" --merge-parts -j "$tmp/p1" "$tmp/pshort"
test $rc -eq 1 && grep -q 'pshort: .*another text: ' "$tmp/err"
ok 'a part of another text is refused'
run "$im" --merge-parts -j "$tmp/all.gguf"
test $rc -eq 1 && grep -q "general.type is not 'imatrix-part'" "$tmp/err"
ok 'a file that is not a part is refused'
head -c 2000 "$tmp/p0" >"$tmp/cut"
run "$im" --merge-parts -j "$tmp/cut"
test $rc -eq 1 -a ! -s "$tmp/out"
ok 'so is a part that was cut off'
run "$im" "$tmp/p0"
test $rc -eq 1 && grep -q "general.type is 'imatrix-part', must be 'imatrix'" "$tmp/err"
ok 'and a part is not taken for data'

# ---- what cannot work
run "$im" -m "$m" -f "$t" -o "$tmp/none/x.gguf"
test $rc -eq 1 && grep -q 'its folder cannot be written to' "$tmp/err"
ok 'a folder that is not there is known before'
printf 'few words' >"$tmp/few"
run "$im" -m "$m" -f "$tmp/few" -o "$tmp/x.gguf"
test $rc -eq 1 -a ! -e "$tmp/x.gguf" && grep -q 'tokens, expected at least' "$tmp/err"
ok 'a text that is too short'
grep -q 'few: [0-9]* tokens, expected at least a chunk of 512: give' "$tmp/err"
ok 'the message says how many a chunk has, and what helps'
: >"$tmp/empty"
run "$im" -m "$m" -f "$tmp/empty" -o "$tmp/x.gguf"
test $rc -eq 1 -a ! -e "$tmp/x.gguf" && grep -q 'the text is empty' "$tmp/err"
ok 'an empty text'
run "$im" -m "$m" -f "$t" -c 64 --from-chunk 100000 -o "$tmp/x.gguf"
test $rc -eq 1 && grep -q 'chunks with -c [0-9]*, and the first 100000 are skipped (' "$tmp/err"
ok 'chunks of which none is left'
run "$im" -m "$m" -f "$m" -o "$tmp/x.gguf"
test $rc -eq 1 && grep -q 'is a GGUF file, not a text' "$tmp/err"
ok 'a model for a text'
run "$im" -m "$m" -f "$t" -o "$t" --force
test $rc -ne 0 && test "$(wc -c <"$t")" -eq 4000
ok 'the text is not overwritten'

# ---- kill -9, a hundred times: at any time there is nothing or a whole part
test -z "${EMULATOR-}" || { done_testing; exit; }
c="-q -m $m -f $t -c 8 --save-every 1 --resume"
run "$im" -q -m "$m" -f "$t" -c 8 -o "$tmp/whole.gguf"
bad=0 parts=0 k=0
while test $k -lt 100; do
    k=$((k + 1))
    "$im" $c -t 1 -o "$tmp/killed.gguf" >"$tmp/o" 2>&1 &
    pid=$! i=0
    case $k in # the first one, too, is killed when there is a checkpoint
    *[13579])
        until test -e "$tmp/killed.gguf.part" -o -e "$tmp/killed.gguf" -o \
            $i -ge 6000; do
            i=$((i + 1))
            sleep 0.01
        done
        ;;
    esac
    sleep "0.0$((k % 7))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    if test -f "$tmp/killed.gguf.part"; then
        parts=$((parts + 1))
        "$im" -q --merge-parts -j "$tmp/killed.gguf.part" >"$tmp/o" 2>&1 ||
            bad=$((bad + 1))
    fi
    test ! -e "$tmp/killed.gguf" || { rm "$tmp/killed.gguf"; }
done
test $bad -eq 0 -a $parts -gt 0
ok 'killed 100 times: a checkpoint is always whole'
run "$im" $c -o "$tmp/killed.gguf"
test $rc -eq 0 -a ! -e "$tmp/killed.gguf.part" &&
    cmp -s "$tmp/whole.gguf" "$tmp/killed.gguf"
ok 'then the run goes on to the same bytes, and the checkpoint is gone'
run "$im" -q -m "$m" -f "$t" -c 8 --chunks 2 --save-part "$tmp/again"
run "$im" -q -m "$m" -f "$t" -c 8 --chunks 4 --save-part "$tmp/again"
test $rc -eq 1 && grep -q 'again: exists (--resume' "$tmp/err"
ok 'a part that exists is kept'
run "$im" -m "$m" -f "$t" -c 8 --chunks 4 --save-part "$tmp/again" --resume
test $rc -eq 0 && grep -q 'again: part, 4 of' "$tmp/err"
ok '--resume adds to it'
run "$im" -q -m "$m" -f "$t" -c 9 --save-part "$tmp/again" --resume
test $rc -eq 1 && grep -q 'again: .*another setting' "$tmp/err"
ok 'a part of another setting is not resumed'
done_testing
