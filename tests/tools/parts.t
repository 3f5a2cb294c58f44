#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ppl --save-part and --merge-parts: the digits do not depend on how a
# text is divided, and parts that do not belong together are refused.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
schema=$srcdir/share/gguf-ppl.schema.json
if test ! -f "$m"; then
    skip 'parts' 'no model in share/'
    done_testing
    exit
fi
t=$tmp/text q4=$tmp/q4.gguf q8=$tmp/q8.gguf
head -c 2000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"
"$bin/gguf-quantize" -q "$m" "$q4" Q4_K_M && "$bin/gguf-quantize" -q "$m" "$q8" Q8_0 || exit 99

# Members that do not depend on the time, or on how work was shared.
digits()
{
    sed '/"timings": {/,/^  }/d' "$tmp/out" | grep -v -e '"seconds"' \
        -e '"tokens_per_second"' -e '"sequences"' -e '"ubatch_size"' \
        -e '"threads"' -e '^time ' -e '^mode ' -e '^text ' -e '^chunks ' -e '^windows ' \
        -e '^model  ' -e '^base   ' -e '^parts ' -e '^texts ' -e '^tasks '
}

# Parts of the text in another order, and other batches.
save() # arguments...
{
    rm -f "$tmp"/part.*
    for c in 3..4 0..3 4..; do
        how='-t 1'
        test $c = 3..4 || how='-t 2 -ub 96'
        "$ppl" -q "$@" $how --chunks $c --save-part "$tmp/part.$c" \
            >"$tmp/out" 2>"$tmp/err" || return 1
    done
}

compared() # name, arguments...
{
    compared_name=$1
    shift
    save "$@"
    ok "$compared_name: saved"
    for form in '' --json; do
        run "$ppl" -q "$@" $form
        digits >"$tmp/one"
        run "$ppl" $form --merge-parts "$tmp/part.4.." "$tmp/part.3..4" \
            "$tmp/part.0..3"
        digits >"$tmp/merged"
        test $rc -eq 0 -a -s "$tmp/one" && cmp -s "$tmp/one" "$tmp/merged"
        ok "$compared_name: three parts give the digits of one run $form"
        run "$ppl" $form --merge-parts "$tmp/part.0..3" "$tmp/part.4.." \
            "$tmp/part.3..4"
        digits | cmp -s - "$tmp/merged"
        ok "$compared_name: in another order, too"
    done
    cp "$tmp/out" "$tmp/merged.json"
    if command -v python3 >/dev/null 2>&1; then
        run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/merged.json"
        test $rc -eq 0 -a ! -s "$tmp/out"
        ok "$compared_name: JSON keeps to the schema"
    else
        skip "$compared_name: JSON keeps to the schema" 'no python3'
    fi
}

"$ppl" -q -m "$m" -f "$t" -c 64 --save-base "$tmp/logits" >"$tmp/out" || exit 99
compared 'two models' -m "$q4" --base "$m" -f "$t" -c 64
compared 'three models' -m "$q4" -m "$q8" --base "$m" -f "$t" -c 64
compared 'saved logits' -m "$q8" --base "$tmp/logits"
compared 'windows that overlap' -m "$q4" -f "$t" -c 64 --hf --ppl-stride 24

# ---- several texts
a=$tmp/in-a.txt b=$tmp/in-b.txt
head -c 900 "$t" >"$a"
tail -c 800 "$t" >"$b"
compared 'several texts' -m "$m" -f "$tmp/in-*.txt" -f "$t" -c 64
for k in 0..3 3..4 4..; do mv "$tmp/part.$k" "$tmp/three.$k"; done
compared 'several texts, two models' -m "$q4" --base "$m" -f "$a" -f "$b" -c 64
compared 'several texts, windows' -m "$m" -f "$a" -f "$b" -c 64 --hf --ppl-stride 40
awk 'length > 20 { gsub(/["\\]/, ""); printf "{\"text\": \"%s\"}\n", $0 }' \
    "$t" >"$tmp/lines.jsonl"
compared 'lines of JSON' -m "$m" -f "$tmp/lines.jsonl" --field text -c 8 --skip-short
refused() # name, what is said, parts...
{
    refused_name=$1 refused_said=$2
    shift 2
    run "$ppl" --merge-parts "$@"
    fails "is a part of another run: $refused_said"
    ok "$refused_name"
}
"$ppl" -q -m "$m" -f "$a" -f "$b" -f "$t" -c 64 --chunks 3..4 \
    --save-part "$tmp/order.2" >"$tmp/o" 2>&1
run "$ppl" --merge-parts "$tmp/three.0..3" "$tmp/order.2" --chunks 0..4
test $rc -eq 0
ok 'texts by names and by a pattern are the same'
"$ppl" -q -m "$m" -f "$b" -f "$a" -f "$t" -c 64 --chunks 3..4 \
    --save-part "$tmp/order" >"$tmp/o" 2>&1
refused 'texts in another order' "'texts' is '3: .*', not '3: " \
    "$tmp/three.0..3" "$tmp/order"
"$ppl" -q -m "$m" -f "$a" -f "$b" -c 64 --chunks 3..4 \
    --save-part "$tmp/fewer" >"$tmp/o" 2>&1
refused 'a text fewer' "'texts' is '2: .*', not '3: " \
    "$tmp/three.0..3" "$tmp/fewer"

# ---- tasks
awk -F '[.,;]' 'length > 30 { gsub(/["\\]/, ""); n++
    printf "{\"ctx\": \"%s\", \"endings\": [\"a table\", \"was\", \"%s of\", \"no\"], \"label\": %d}\n", \
        substr($0, 1, 25), substr($0, 26, 12), n % 4 }' "$t" >"$tmp/hella"
sed 's/"ctx"/"question"/; s/"endings"/"choices"/' "$tmp/hella" >"$tmp/choice"
awk 'BEGIN { for (i = 0; i < 9; i++)
    printf "%d,Anne heard Mary%d for _ was loud %d times.,she,the man,%d\n", i, i, i * i, i % 2 + 1 }' >"$tmp/wino"
compared 'HellaSwag' -m "$m" -f "$tmp/hella" --hellaswag
compared 'some of them' -m "$m" -f "$tmp/hella" --hellaswag --tasks 5
for k in 0..3 3..4 4..; do mv "$tmp/part.$k" "$tmp/five.$k"; done
compared 'WinoGrande' -m "$m" -f "$tmp/wino" --winogrande
compared 'WinoGrande, compat' -m "$m" -f "$tmp/wino" --winogrande --compat
for k in 0..3 3..4; do mv "$tmp/part.$k" "$tmp/compat.$k"; done
compared 'multiple choice' -m "$m" -f "$tmp/choice" --multiple-choice
run "$ppl" -m "$m" -f "$tmp/hella" --hellaswag --chunks 2..5
grep -q 'of these 3 from 2 on' "$tmp/out" && grep -q ' of 3), 95%' "$tmp/out"
ok 'a range of tasks'
run "$ppl" -m "$m" -f "$tmp/hella" --hellaswag --chunks 900..
fails 'hella: the first task is 900, counted from 0, but there are only [0-9]* tasks'
ok 'none of them'
run "$ppl" --merge-parts "$tmp/compat.0..3"
fails 'tasks 3\.\.9 of 9 are in no part: add'
ok 'tasks that are missing'
refused 'tasks of another kind' "'measure' is 'hellaswag', not 'winogrande'" \
    "$tmp/compat.0..3" "$tmp/five.3..4"
refused 'tasks and a text' "'measure' is 'perplexity', not 'winogrande'" \
    "$tmp/compat.0..3" "$tmp/fewer"
"$ppl" -q -m "$m" -f "$tmp/wino" --winogrande --chunks 3..4 \
    --save-part "$tmp/plain" >"$tmp/o" 2>&1
refused 'tasks scored in another way' "'compat' is '0', not '1'" \
    "$tmp/compat.0..3" "$tmp/plain"
"$ppl" -q -m "$m" -f "$tmp/hella" --hellaswag --chunks 3..4 \
    --save-part "$tmp/all" >"$tmp/o" 2>&1
refused 'a choice of tasks' "'tasks' is '[0-9]* of .*', not '5 of" \
    "$tmp/five.0..3" "$tmp/all"
sed 's/no"/of"/' "$tmp/hella" >"$tmp/hella2"
"$ppl" -q -m "$m" -f "$tmp/hella2" --hellaswag --tasks 5 --chunks 3..4 \
    --save-part "$tmp/other-tasks" >"$tmp/o" 2>&1
refused 'other tasks' "'text' is 'xxh64:.*', not 'xxh64:" \
    "$tmp/five.0..3" "$tmp/other-tasks"
run "$ppl" --merge-parts "$tmp"/five.* --plot "$tmp/tasks.svg"
fails 'tasks.svg: parts of tasks have no picture' && test ! -e "$tmp/tasks.svg"
ok 'tasks have no picture'

# ---- parts of strangers: each note and number has a kind and a range
"$ppl" -q -m "$m" -f "$t" -c 64 --save-part "$tmp/good" --force >"$tmp/o" 2>&1
"$ppl" -q -m "$q8" --base "$m" -f "$t" -c 64 --save-part "$tmp/good2" --force \
    >"$tmp/o" 2>&1
"$ppl" -q -m "$m" -f "$tmp/hella" --hellaswag --save-part "$tmp/good3" --force \
    >"$tmp/o" 2>&1
mkpart=$builddir/tests/tools/mkpart
refuses() # part, message, change...
{
    refuses_part=$1 refuses_words=$2
    shift 2
    "$mkpart" "$tmp/$refuses_part" "$tmp/bad" "$@" || exit 99
    set -- "$*"
    for how in --html --json; do
        test $how = --json || how="--force --html $tmp/x.html"
        test $refuses_part = good3 && how=--json # no page
        # shellcheck disable=SC2086
        run "$ppl" $how --merge-parts "$tmp/bad"
        fails "$refuses_words"
        ok "$refuses_part, $1: $refuses_words (${how%% *})"
    done
}
for v in 999 16777216 99999999999999999999 -1 q8_0 ' 1'; do
    refuses good "note 'cache_k' is .* expected the number of a tensor type" note cache_k "$v"
done
for key in scored tasks skipped text.size model.0.size model.0.params; do
    for v in -1 99999999999999999999 1e3 x; do
        refuses good "note '$key' is .* expected a number in its range" note $key $v
    done
done
refuses good2 "note 'base.size'" note base.size x
refuses good2 "note 'model.0.json' is .* JSON" note model.0.json '"a":1},{"b":2'
refuses good "setting 'ctx_size'" set ctx_size 4294967297
refuses good "setting 'hf'" set hf 2
refuses good "note 'seconds'" note seconds nan
refuses good "note 'text.digest'" note text.digest 'xxh64:+f-f'
refuses good "note 'text.json' is .* JSON" note text.json "\"a\": \"$(printf '\033')[31m\""
refuses good "note 'settings.json' is .* JSON" note settings.json '"a": 1} "b"'
refuses good "note 'settings.json' is .* levels" note settings.json \
    "\"a\":$(printf '[%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18)$(
        printf ']%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18)"
refuses good 'notes of texts do not add up to' note texts '18446744073709551615 1 1 1 - x'
refuses good 'notes of texts do not add up to' note files '99999999999999999999 x'
for x in -1 0.5 1e300; do
    for i in 0 1 2 3; do
        refuses good 'chunk 0 has a number that is out of range for perplexity' number $i $x
    done
done
refuses good 'chunk 0 has a number that is out of range' number 4 1e300
refuses good2 'chunk 0 has a number that is out of range for divergence' number 7 0.5
refuses good3 'chunk 0 has a number that is out of range for hellaswag' number 0 -1
refuses good3 'chunk 0 has a number that is out of range for hellaswag' number 2 0
refuses good3 'chunk 0 has a number that is out of range for hellaswag' number 3 2
# Allowed differences are written in the form of this document.
"$mkpart" "$tmp/good" "$tmp/odd" note settings.json \
    '"a":"\u001b[31m\u202e","b":[1,[],{"c":-0.5}],"d":[],"e":null' || exit 99
run "$ppl" --json --merge-parts "$tmp/odd"
test $rc -eq 0 && ! LC_ALL=C grep -q "$(printf '\033')" "$tmp/out" &&
    grep -qF '"a": "\u001b[31m\u202e",' "$tmp/out" &&
    grep -qF '"c": -0.5' "$tmp/out" && grep -qF '"d": [],' "$tmp/out"
ok 'a note of JSON is written anew'
"$mkpart" "$tmp/good2" "$tmp/odd" number 4 -1e38 number 5 -1e38 || exit 99
run "$ppl" --json --merge-parts "$tmp/odd" --html "$tmp/x.html" --force
test $rc -le 1
ok 'scores below 0 do no harm'

# ---- pictures and pages of parts: those of one run
page() # file: without what depends on time and threads
{
    sed -e '/timings/,/^  }/d' "$1" | grep -v -e 'seconds' -e 'tokens_per_second' \
        -e 'sequences' -e 'ubatch_size' -e 'threads'
}
# Without the section of errors layer by layer, which needs models.
without_layers()
{
    awk '/^<section>/ { head = $0; next }
         head != "" { left_out = /<h2>Layer by layer/
                      if (!left_out) print head
                      head = "" }
         !left_out
         /^<\/section>/ { left_out = 0 }'
}
drawn() # name, arguments...
{
    drawn_name=$1
    shift
    save "$@"
    ok "$drawn_name: saved"
    "$ppl" -q -t 1 "$@" --plot "$tmp/one.svg" --html "$tmp/one.html" --force \
        >"$tmp/o" 2>&1 || bad=1
    run "$ppl" -q --merge-parts "$tmp/part.4.." "$tmp/part.3..4" \
        "$tmp/part.0..3" --plot "$tmp/all.svg" --html "$tmp/all.html" --force
    test $rc -eq 0 && cmp -s "$tmp/one.svg" "$tmp/all.svg"
    ok "$drawn_name: the picture of one run"
    page "$tmp/one.html" | without_layers >"$tmp/1"
    page "$tmp/all.html" >"$tmp/2"
    test $rc -eq 0 && test "$(grep -c . "$tmp/1")" -gt 50 &&
        cmp -s "$tmp/1" "$tmp/2"
    ok "$drawn_name: the page"
}
drawn 'perplexity' -m "$m" -f "$t" -c 64
drawn 'several texts' -m "$m" -f "$a" -f "$b" -c 64
drawn 'windows' -m "$m" -f "$t" -c 64 --ppl-stride 24
drawn 'two models' -m "$q4" -m "$q8" --base "$m" -f "$t" -c 64
drawn 'saved logits' -m "$q8" --base "$tmp/logits"
run "$ppl" --merge-parts "$tmp/part.0..3" --plot "$tmp/part.0..3.svg" --chunks 3
cp "$tmp/part.0..3" "$tmp/p.svg"
run "$ppl" --merge-parts "$tmp/p.svg" --plot "$tmp/p.svg" --chunks 3 --force
fails 'would be both part and --plot' && cmp -s "$tmp/part.0..3" "$tmp/p.svg"
ok 'no part is overwritten'
run "$ppl" --merge-parts "$tmp/part.0..3" --per-token "$tmp/x.csv"
test $rc -eq 2 && grep -q -e '--per-token' "$tmp/err"
ok 'lines of tokens are refused'

compared 'perplexity' -m "$m" -f "$t" -c 64

# ---- what belongs together
run "$ppl" --merge-parts "$tmp/part.0..3" "$tmp/part.4.."
fails 'chunks 3\.\.4 of [0-9]* are in no part'
ok 'a chunk that is missing'
run "$ppl" --merge-parts "$tmp/part.0..3" "$tmp/part.3..4"
fails 'chunks 4\.\.[0-9]* of [0-9]* are in no part: add'
ok 'chunks at the end that are missing'
run "$ppl" -q -m "$m" -f "$t" -c 64 --chunks 1..4 -j
digits >"$tmp/one"
run "$ppl" -j --merge-parts "$tmp/part.0..3" "$tmp/part.3..4" --chunks 1..4
digits | cmp -s - "$tmp/one" && test $rc -eq 0
ok 'unless these are not wanted: the digits of that run'
run "$ppl" --merge-parts "$tmp/part.0..3" --chunks 900..
fails 'the first is 900, counted from 0, but the text has only [0-9]* chunks'
ok 'none of them'
run "$ppl" --merge-parts "$tmp/part.0..3" "$tmp/part.0..3"
fails 'part.0..3: chunk 0 is in both parts'
ok 'a part twice'
other() # name, what is said, arguments...
{
    other_name=$1 other_said=$2
    shift 2
    run "$ppl" -q "$@" --chunks 3..4 --save-part "$tmp/other" --force
    run "$ppl" --merge-parts "$tmp/part.0..3" "$tmp/other"
    fails "other: is a part of another run: $other_said"
    ok "$other_name"
}
other 'another model' "'model.0' is '[0-9a-f]*', not '[0-9a-f]*'" \
    -m "$q4" -f "$t" -c 64
other 'another context' "'ctx_size' is '63', not '64'" -m "$m" -f "$t" -c 63
other 'another cache' "'cache.0' is 'F16 F16', not 'F32 F32'" -m "$m" -f "$t" \
    -c 64 -ctk f16 -ctv f16
other 'positions' "'model.0' is '\|'positions' is '" -m "$m" -f "$t" -c 64 \
    --rope-freq-base 20000
other 'a key' "'override_kv' is 'general.name=str:x', not ''" -m "$m" \
    -f "$t" -c 64 --override-kv general.name=str:x
sed 's/the/The/' "$t" >"$tmp/text2"
other 'another text' "'text' is '\|'tokens' is '" -m "$m" -f "$tmp/text2" -c 64
other 'a comparison' "'measure' is 'divergence', not 'perplexity'" -m "$q4" --base "$m" \
    -f "$t" -c 64

# ---- files
run "$ppl" -q -m "$m" -f "$t" -c 64 --chunks 1 --save-part "$tmp/part.0..3"
test -z "$(grep 'Final' "$tmp/out")" &&
    fails 'part.0..3: exists (--force replaces it)'
ok 'a part that exists is kept, and that is known before'
run "$ppl" -m "$m" -f "$t" -c 64 --chunks 1 --save-part "$tmp/part.0..3" --force
test $rc -eq 0 && grep -q 'part.0..3: part, 1 of [0-9]* chunks' "$tmp/err"
ok 'or replaced with --force'
run "$ppl" -q -m "$m" -f "$t" -c 64 --save-part "$tmp/none/part"
test $rc -eq 1 -a -z "$(grep '^\[' "$tmp/out")" &&
    grep -q 'none/part: ' "$tmp/err"
ok 'a folder that is not there is known before'
cp "$m" "$tmp/copy.gguf"
run "$ppl" -q -m "$tmp/copy.gguf" -f "$t" --save-part "$tmp/copy.gguf" --force
fails 'would be both --model and --save-part' && cmp -s "$m" "$tmp/copy.gguf"
ok 'no input is overwritten'
head -c 1000 "$tmp/part.4.." >"$tmp/cut"
run "$ppl" --merge-parts "$tmp/cut"
fails 'cut: '
ok 'a part that was cut off'
run "$ppl" --merge-parts "$m"
fails "general.type is not 'score-part'"
ok 'a model is no part'
run "$bin/gguf-imatrix" -q -m "$m" -f "$t" -c 64 --chunks 1 \
    --save-part "$tmp/imatrix"
run "$ppl" --merge-parts "$tmp/imatrix"
fails "general.type is not 'score-part'"
ok 'nor are importance data'

# ---- kill -9: there is nothing or a whole part
test -z "${EMULATOR-}" || { done_testing; exit; }
bad=0 parts=0 k=0
while test $k -lt 12; do
    k=$((k + 1))
    "$ppl" -q -m "$m" -f "$t" -c 64 --chunks 1 -t 1 --no-check \
        --save-part "$tmp/killed" --force >"$tmp/o" 2>&1 &
    pid=$!
    sleep "0.0$((k % 8 + 2))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    if test -f "$tmp/killed"; then
        parts=$((parts + 1))
        "$ppl" --merge-parts "$tmp/killed" --chunks 1 >"$tmp/o" 2>&1 ||
            bad=$((bad + 1))
        rm "$tmp/killed"
    fi
done
test $bad -eq 0 -a -z "$(find "$tmp" -name '.killed*')"
ok "killed 12 times: nothing, or a whole part ($parts)"
done_testing
