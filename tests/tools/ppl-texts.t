#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ppl: several texts in one run, lines of JSON, and files that are not
# texts.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
m=$(cd "$srcdir" && pwd)/share/tiny-llama/tiny-llama-f16.gguf
schema=$srcdir/share/gguf-ppl.schema.json
whole=$srcdir/share/tiny-llama/persuasion.txt
mkdir "$tmp/in"
a=$tmp/in/a.txt b=$tmp/in/b.txt.gz c=$tmp/in/c.txt
head -c 3000 "$whole" >"$a"
tail -c +20001 "$whole" | head -c 2000 | gzip >"$b"
tail -c +40001 "$whole" | head -c 900 >"$c"

digits()
{
    grep -v -e '"seconds"' -e '"tokens_per_second"' -e '"passes"' \
        -e '"sequences"' -e '"ubatch_size"' -e '"batch_size"' \
        -e '"threads"' -e '"create"' -e '"graphs"' "$tmp/out"
}

# ---- each text has the figures of a run of its own

for how in '' '--ppl-stride 48' '--hf'; do
    for f in "$a" "$b" "$c"; do
        # shellcheck disable=SC2086
        run "$ppl" -j -m "$m" -f "$f" -c 96 $how
        sed -n 's/.*"chunk_nll": \[\(.*\)\],/\1/p' "$tmp/out" | tr ',' '\n' |
            tr -d ' '
    done >"$tmp/alone"
    # shellcheck disable=SC2086
    run "$ppl" -j -m "$m" -f "$a" -f "$b" -f - -c 96 $how <"$c"
    test $rc -eq 0 -a ! -s "$tmp/err" &&
        sed -n 's/.*"chunk_nll": \[\(.*\)\],/\1/p' "$tmp/out" | tr ',' '\n' |
        tr -d ' ' | cmp -s - "$tmp/alone"
    ok "three texts have the digits of each alone${how:+: }$how"
    cp "$tmp/out" "$tmp/doc"
    if command -v python3 >/dev/null 2>&1; then
        python3 -c 'import json, math, sys
d = json.load(open(sys.argv[1]))
nll, n = d["chunk_nll"], d["chunk_tokens"]
t = d["texts"]
assert [x["file"].split("/")[-1] for x in t] == ["a.txt", "b.txt.gz", "-"]
means = []
for x in t:
    part = slice(x["first_chunk"], x["first_chunk"] + x["chunks"])
    assert x["tokens_scored"] == sum(n[part])
    mean = math.fsum(nll[part]) / sum(n[part])
    assert abs(x["nll"] / mean - 1) < 1e-12
    assert abs(x["ppl"] / math.exp(mean) - 1) < 1e-12
    means.append(mean)
for key in "tokens_scored", "bytes_scored", "words_scored":
    assert d[key] == sum(x[key] for x in t)
mean = math.fsum(means) / 3
se = math.sqrt(sum((v - mean) ** 2 for v in means) / 3 / 2)
macro = d["macro"]
assert macro["texts"] == 3 and d["skipped"] == 0
assert abs(macro["nll"] / mean - 1) < 1e-12
assert abs(macro["nll_error"] / se - 1) < 1e-6
assert abs(macro["ppl"] / math.exp(mean) - 1) < 1e-12
assert abs(macro["ppl_error"] / (math.exp(mean) * se) - 1) < 1e-6
assert abs(d["ppl"] / math.exp(sum(nll) / sum(n)) - 1) < 1e-12' \
            "$tmp/doc" 2>"$tmp/err"
        ok 'figures of each, of all, and the mean of texts, by formulas'
        run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/doc"
        test $rc -eq 0
        ok 'which the schema has'
    else
        skip 'figures by formulas' 'no python3'
    fi
done
run "$ppl" -j -m "$m" -f "$a" -f "$b" -f "$c" -c 96 --ppl-stride 48
digits >"$tmp/one"
for args in '-t 1' '-t 3 -ub 64' '-b 96' '-ub 960 -b 960' \
    '--layer-major --max-memory 30M'; do
    # shellcheck disable=SC2086
    run "$ppl" -j -m "$m" -f "$a" -f "$b" -f "$c" -c 96 --ppl-stride 48 $args
    test $rc -eq 0 && digits | cmp -s - "$tmp/one"
    ok "the same digits: $args"
done
run "$ppl" -m "$m" -f "$a" -f "$b" -f "$c" -c 96 --ppl-stride 48
grep -q '^texts   3: 5900 bytes, ' "$tmp/out" &&
    grep -q 'c\.txt  *[0-9]* .*\.[0-9]*$' "$tmp/out" &&
    grep -q '^macro   PPL = .*, of the mean of 3 texts$' "$tmp/out" &&
    grep -q '^Final estimate: PPL = ' "$tmp/out"
ok 'a table, and both figures'
grep '^macro\|^Final' "$tmp/out" >"$tmp/all"
run "$ppl" -m "$m" -f "$tmp/in/*.txt*" -c 96 --ppl-stride 48
grep '^macro\|^Final' "$tmp/out" | cmp -s - "$tmp/all"
ok 'a pattern that the shell did not look up'
cp "$c" "$tmp/in/[c].txt"
run "$ppl" -m "$m" -f "$tmp/in/[c].txt" -c 96 --ppl-stride 48
test $rc -eq 0 && grep -q '^text  .*\[c\]\.txt: 900 bytes' "$tmp/out"
ok 'a file that is there is no pattern'
run "$ppl" -m "$m" -f "$tmp/in/*.none"
fails_with 1 'no such file, and no file matches it as a pattern$'
ok 'a pattern without a file'
run "$ppl" -m "$m" -f "$a" -f "$tmp/in"
fails_with 1 'is a directory$'
ok 'a directory'
run "$ppl" -m "$m" -f - -f - </dev/null
fails_with 2 'standard input (-) is given more than once'
ok 'standard input twice'

# ---- too short

run "$ppl" -m "$m" -f "$a" -f "$c" -c 512
fails_with 1 'c\.txt: 270 tokens, expected at least 512 with -c 512; --skip-short skips short texts$'
ok 'a text that is too short, before the work'
run "$ppl" -m "$m" -f "$c" -f "$a" -f "$c" -c 512 --skip-short
test $rc -eq 0 -a "$(wc -l <"$tmp/err")" -eq 2 &&
    grep -q 'c\.txt: warning: is skipped: 270 tokens are too few$' "$tmp/err" &&
    grep -q '^texts   1: 3000 bytes, .*, 2 left out$' "$tmp/out"
ok 'is left out if that is asked for'
grep '^Final' "$tmp/out" >"$tmp/left"
head -c 6000 "$whole" >"$tmp/long"
run "$ppl" -m "$m" -f "$a" -f "$tmp/long" -c 512 --chunks 1
grep '^Final' "$tmp/out" | cmp -s - "$tmp/left"
ok 'and what is left has its digits'
run "$ppl" -m "$m" -f "$c" -f "$c" -c 512 --skip-short
fails_with 1 '; 2 of 2 texts are too short'
ok 'unless nothing would be left'

# ---- lines of JSON

{
    printf '%s\n' '{"id": 12345678901234567890123, "text": "It is a truth universally acknowledged"}'
    echo
    printf '%s\n' '{"text": "that a \"single\" man\u002c in possession", "more": {"text": [1, null]}}'
    printf ' \t\n'
    printf '%s\n' '{"text": "of a good fortune,\nmust be in want \u00e9"}'
} >"$tmp/r.jsonl"
gzip -k "$tmp/r.jsonl"
printf 'It is a truth universally acknowledged' >"$tmp/1"
printf 'that a "single" man, in possession' >"$tmp/2"
printf 'of a good fortune,\nmust be in want \303\251' >"$tmp/3"
run "$ppl" -j -m "$m" -f "$tmp/1" -f "$tmp/2" -f "$tmp/3" --ppl-stride 64
grep -e '"ppl"' -e '"chunk_nll"' -e '"digest"' "$tmp/out" >"$tmp/want"
for f in "$tmp/r.jsonl" "$tmp/r.jsonl.gz"; do
    run "$ppl" -j -m "$m" -f "$f" --field text --ppl-stride 64
    test $rc -eq 0 && grep -e '"ppl"' -e '"chunk_nll"' -e '"digest"' \
        "$tmp/out" | cmp -s - "$tmp/want" && grep -q 'jsonl.*:5",' "$tmp/out"
    ok "each line is a text: ${f##*/}"
done
run "$ppl" -j -m "$m" -f - --field text --ppl-stride 64 <"$tmp/r.jsonl"
test $rc -eq 0 && grep -q '"file": "-:3",' "$tmp/out"
ok 'from standard input'
run "$ppl" -m "$m" -f "$tmp/r.jsonl" --field more --ppl-stride 64
fails_with 1 "r\.jsonl: line 1 has no text 'more'; it has 'id' (no text), 'text'$"
ok 'a member that is not there'
printf '{"text": "one two three four five"}\n{"text": "one", }\n' >"$tmp/bad"
run "$ppl" -m "$m" -f "$tmp/bad" --field text --ppl-stride 64
fails_with 1 'bad: line 2 is not a JSON object: '
ok 'a line that is no JSON'
printf '["one two three four five"]\n' >"$tmp/bad"
run "$ppl" -m "$m" -f "$tmp/bad" --field text --ppl-stride 64
fails_with 1 'bad: line 1 is not a JSON object$'
ok 'a line that is no object'
printf '\n \n' >"$tmp/bad"
run "$ppl" -m "$m" -f "$tmp/bad" --field text --ppl-stride 64
fails_with 1 'bad: is empty, expected a JSON object on each line$'
ok 'a file without a record'
printf '{"text": "one two three four five"}\n{"text": ""}\n' >"$tmp/bad"
run "$ppl" -m "$m" -f "$tmp/bad" --field text --ppl-stride 64
fails_with 1 'bad:2: 1 token, expected at least 4 with .*; --skip-short'
ok 'a record that is too short'
run "$ppl" -m "$m" -f "$tmp/bad" --field text --ppl-stride 64 --skip-short
test $rc -eq 0 && grep -q '^texts   1: 23 bytes, ' "$tmp/out"
ok 'which may be left out'

# ---- beside a base

run "$bin/gguf-quantize" -q "$m" "$tmp/q.gguf" Q4_0
run "$ppl" -j -m "$tmp/q.gguf" --base "$m" -f "$a" -f "$c" -c 96 \
    --ppl-stride 48 --per-token "$tmp/each"
cp "$tmp/out" "$tmp/doc"
test $rc -eq 0
ok 'texts of two models side by side'
for f in "$a" "$c"; do
    run "$ppl" -j -m "$tmp/q.gguf" --base "$m" -f "$f" -c 96 --ppl-stride 48
    cp "$tmp/out" "$tmp/alone.${f##*/}"
done
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
each = [json.loads(line) for line in open(sys.argv[2])]
assert d["tokens_scored"] == len(each)
for i, path in enumerate(sys.argv[3:]):
    alone, x = json.load(open(path)), d["texts"][i]
    assert x["tokens_scored"] == alone["tokens_scored"]
    assert x["tokens_scored"] == sum(e["source"] == i + 1 for e in each)
    assert x["bytes_scored"] == alone["bytes_scored"]
    for key in "ppl", "kld", "ln_ratio", "same_top":
        for part in "value", "error":
            got = x["models"][0][key][part]
            want = alone["models"][0][key][part]
            assert abs(got / want - 1) < 1e-9, (key, got, want)' \
        "$tmp/doc" "$tmp/each" "$tmp/alone.a.txt" "$tmp/alone.c.txt" \
        2>"$tmp/err"
    ok 'have the figures of each alone'
    run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/doc"
    test $rc -eq 0
    ok 'which the schema has'
else
    skip 'have the figures of each alone' 'no python3'
fi
run "$ppl" -m "$tmp/q.gguf" --base "$m" -f "$a" -f "$c" -c 96 --ppl-stride 48
grep -q '/c\.txt  *.*q\.gguf  *[0-9]' "$tmp/out"
ok 'and a table'
run "$ppl" -m "$m" -f "$a" -f "$c" -c 96 --per-token "$tmp/each.csv"
test $rc -eq 0 &&
    test "$(head -n 1 "$tmp/each.csv")" = 'source,chunk,position,id,text,nll' &&
    tail -n 1 "$tmp/each.csv" | grep -q '^2,'
ok 'a line for each token says of which text'

# ---- files that are not texts, before the weights are looked at

cp "$m" "$tmp/nan.gguf" && chmod u+w "$tmp/nan.gguf"
size=$(wc -c <"$m")
printf '\377\377' | dd of="$tmp/nan.gguf" bs=1 seek=$((size - 2)) \
    conv=notrunc 2>/dev/null
no_text() # bytes, message, what
{
    { head -c 1000 "$a"; printf "$1"; head -c 500 "$a"; } >"$tmp/no"
    run "$ppl" -m "$tmp/nan.gguf" -f "$tmp/no" -c 64
    fails_with 1 "$2; --force takes it as it is$"
    ok "$3"
    run "$ppl" -m "$m" -f "$tmp/no" -c 64 --chunks 1 --force
    test $rc -eq 0
    ok 'unless it is forced'
}
no_text '\000' 'no: is binary, not text: byte 1000 is 0' 'a binary file'
no_text '\351t\351' 'no: is not UTF-8: byte 1000 is 0xe9' 'Latin-1'
no_text '\355\240\200' 'no: is not UTF-8: byte 1000 is 0xed' 'half of a pair'
{ printf '\377\376'; sed 's/./&\x00/g' "$a"; } >"$tmp/no"
run "$ppl" -m "$m" -f "$tmp/no" -c 64
fails_with 1 'no: is UTF-16, not UTF-8; --force'
ok 'UTF-16'
tr -d '\n' <"$a" | LC_ALL=C sed 's/./&\x00/g' >"$tmp/no"
run "$ppl" -m "$m" -f "$tmp/no" -c 64
fails_with 1 'no: is UTF-16, not UTF-8; --force'
ok 'UTF-16 without a mark'
{ printf '\377\376\000\000'; cat "$tmp/no"; } >"$tmp/no32"
run "$ppl" -m "$m" -f "$tmp/no32" -c 64
fails_with 1 'no32: is UTF-32, not UTF-8; --force'
ok 'UTF-32'
while read -r what magic; do
    { printf "$magic"; cat "$a"; } >"$tmp/no"
    run "$ppl" -m "$m" -f "$tmp/no" -c 64
    fails_with 1 "no: is a.* $what.*, not a text"
    ok "not a text: $what"
done <<'END'
zip PK\003\004
bzip2 BZh91AY&SY
7-Zip 7z\274\257\047\034
lz4 \004\042\115\030
PDF %%PDF-1.7
Parquet PAR1
GGUF GGUF
END
# Failed downloads in place of a text. A pointer is short: a long text about
# pointers is a text, and a page may be meant.
lfs='version https://git-lfs.github.com/spec/v1'
printf '%s\noid sha256:%064d\nsize 1290590\n' "$lfs" 7 >"$tmp/lfs"
for how in "ppl -f $tmp/lfs" "ppl -f $tmp/lfs --force" \
    "ppl -f $tmp/lfs --hellaswag" \
    "eval --tokens $tmp/lfs --save-logits $tmp/lfs.out"; do
    # shellcheck disable=SC2086
    run "$bin/gguf-${how%% *}" -m "$m" ${how#* }
    fails_with 1 'lfs: is a Git LFS pointer, not a text: .*(git lfs pull)'
    ok "a pointer: ${how%% *} ${how##* }"
done
run "$bin/gguf-imatrix" -m "$m" -f "$tmp/lfs" -o "$tmp/lfs.out"
fails_with 1 'lfs: is a Git LFS pointer, not a text'
ok 'a pointer: importance data'
{ echo "$lfs"; cat "$a"; } >"$tmp/about"
run "$ppl" -m "$m" -f "$tmp/about" -c 64 --chunks 1
test $rc -eq 0 -a ! -s "$tmp/err"
ok 'a text that begins like a pointer'
{ printf '\n<!DOCTYPE HTML>\n'; cat "$a"; } >"$tmp/page"
run "$ppl" -m "$m" -f "$tmp/page" -c 64 --chunks 1
test $rc -eq 0 && grep -q 'page: warning: is a web page: its markup is taken as text' "$tmp/err"
ok 'a web page is warned of'
run "$ppl" -q -m "$m" -f "$tmp/page" -c 64 --chunks 1
test $rc -eq 0 -a ! -s "$tmp/err"
ok 'and not with --quiet'
# Compressed texts: read if the library is there, else refused with its name.
ppls() { grep PPL "$tmp/out" >"$tmp/$1"; } # file
run "$ppl" -m "$m" -f "$a" -c 64 --chunks 2 -q
ppls want
test $rc -eq 0 -a -s "$tmp/want"
ok 'a text as it is'
for pack in xz zstd; do
    if ! $pack --version >/dev/null 2>&1; then
        echo "ok $((n += 1)) # SKIP no $pack"
        continue
    fi
    $pack -c <"$a" >"$tmp/packed"
    run "$ppl" -m "$m" -f "$tmp/packed" -c 64 --chunks 2 -q
    if grep -q "is an* $pack file, which programs built with lib" "$tmp/err"; then
        test $rc -eq 1
        ok "$pack: refused, there is no library for it"
        continue
    fi
    test $rc -eq 0 && ppls got && cmp "$tmp/got" "$tmp/want"
    ok "$pack: what is in it"
    { head -c 700 "$a" | $pack -c; tail -c +701 "$a" | $pack -c; } >"$tmp/two"
    run "$ppl" -m "$m" -f "$tmp/two" -c 64 --chunks 2 -q
    test $rc -eq 0 && ppls got && cmp "$tmp/got" "$tmp/want"
    ok "$pack: one after another"
    head -c "$(($(wc -c <"$tmp/packed") - 9))" "$tmp/packed" >"$tmp/cut"
    run "$ppl" -m "$m" -f "$tmp/cut" -c 64 -q
    fails_with 1 "cut: cannot be unpacked: the $pack data is cut off"
    ok "$pack: cut off"
    run "$ppl" -m "$m" -f "$tmp/packed" -c 64 -q --max-text 500
    fails_with 1 "packed: has more than 500 bytes"
    ok "$pack: --max-text"
done
for end in '\303' '\342' '\342\202' '\360\237' '\360\237\230'; do
    { head -c 1000 "$a"; printf "$end"; } >"$tmp/no"
    run "$ppl" -m "$m" -f "$tmp/no" -c 64 --chunks 1
    test $rc -eq 0
    ok "a text that is cut off within a character: $end"
done
for end in '\200' '\377' '\342\050'; do
    { head -c 1000 "$a"; printf "$end"; } >"$tmp/no"
    run "$ppl" -m "$m" -f "$tmp/no" -c 64 --chunks 1
    fails_with 1 'no: is not UTF-8: byte 1000 is 0x'
    ok "but not: $end"
done
run "$ppl" -m "$tmp/nan.gguf" -f "$c" -c 512
fails_with 1 'tokens, expected at least'
ok 'a text that is too short, before the weights are looked at'

for args in '--hellaswag' "--save-base $tmp/x"; do
    # shellcheck disable=SC2086
    run "$ppl" -m "$m" -f "$a" -f "$c" $args
    fails_with 2 '2 texts, expected 1 with tasks'
    ok "one text alone: $args"
done
for args in '--field text --hellaswag' \
    "--skip-short --save-base $tmp/x"; do
    # shellcheck disable=SC2086
    run "$ppl" -m "$m" -f "$a" $args
    fails_with 2 'exclude each other'
    ok "wrong usage: $args"
done
run "$ppl" -m "$m" -f "$tmp/out" -f "$tmp/known" --per-token "$tmp/known" -c 64
test $rc -ne 0
ok 'an output that is a text'
done_testing
