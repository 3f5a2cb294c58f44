#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-compare --bisect: the weights of a quantized file that cost most. The
# gain of a weight is compared with a file that has the base's weight.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
compare=$bin/gguf-compare
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
schema=$srcdir/share/gguf-compare.schema.json
if test ! -f "$m"; then
    skip 'bisect' 'no model in share/'
    done_testing
    exit
fi
t=$tmp/text q=$tmp/q.gguf
head -c 1500 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"
"$bin/gguf-quantize" -q --pure "$m" "$q" Q3_K_M || exit 99
how="-q -c 32 --chunks 2"

bisect() # arguments...
{
    # shellcheck disable=SC2086
    run "$compare" $how -m "$q" --base "$m" -f "$t" --bisect "$@"
}
groups() # HOW arguments...
{
    by=$1
    shift
    # shellcheck disable=SC2086
    run "$compare" $how -m "$q" --base "$m" -f "$t" --bisect="$by" "$@"
}
# Field $2 of weight $1.
of()
{
    awk -v name="$1" -v k="$2" '$1 == name { print $k }' "$tmp/out.text"
}

bisect -t 1
cp "$tmp/out" "$tmp/out.text"
test $rc -eq 0 -a ! -s "$tmp/err" && grep -q '^KLD     0\.[0-9]' "$tmp/out" &&
    grep -q '^weight  *type  *bytes more  *KLD then  *gain' "$tmp/out" &&
    grep -q '^measured \([0-9]*\) of \1 weights that differ$' "$tmp/out"
ok 'all weights that differ are measured'

# ---- its suggested command works
sed -n 's/^for gguf-quantize --tensor-type-file.*/&/p;/^\^.*\$=/p' "$tmp/out" |
    grep '^\^' >"$tmp/lines"
test "$(wc -l <"$tmp/lines")" -eq 10
ok 'ten lines for gguf-quantize'
grep -q '^In a mixture such as .* types of other$' "$tmp/out" &&
    grep -q '^weights: gguf-info --diff' "$tmp/out"
ok 'and what else they may do'
head -1 "$tmp/lines" >"$tmp/line"
name=$(sed 's/^^\(.*\)\$=.*/\1/;s/\\//g' "$tmp/line")
run "$bin/gguf-quantize" -q --pure --tensor-type-file "$tmp/line" "$m" \
    "$tmp/better.gguf" Q3_K_M
more=$(($(wc -c <"$tmp/better.gguf") - $(wc -c <"$q")))
test $rc -eq 0 -a "$(of "$name" 5)" = "$more"
ok "$name: its bytes ($more) are those of a file with it"
# shellcheck disable=SC2086
run "$bin/gguf-ppl" $how -j -t 1 -m "$tmp/better.gguf" --base "$m" -f "$t"
kld=$(awk '/"kld": \{/ { on = 1 } on && /"value"/ { gsub(/[^0-9.e-]/, "", $2)
    printf "%.7f\n", $2; exit }' "$tmp/out")
test "$(of "$name" 6)" = "$kld"
ok "and its divergence ($kld) that of this file"

# ---- the order, and numbers
test "$(awk '$3 == "->" && $8 != "-" { print $8 }' "$tmp/out.text")" = \
    "$(awk '$3 == "->" && $8 != "-" { print $8 }' "$tmp/out.text" |
        sort -g -r)"
ok 'by gain for each byte'
whole=$(sed -n 's/^KLD  *\([0-9.]*\),.*/\1/p' "$tmp/out.text")
awk -v whole="$whole" '$3 == "->" { n++; d = whole - $6 - $7
    most = 2e-7 + ($7 < 0 ? -$7 : $7) / 1000
    if (d > most || d < -most) bad++ } END { exit !(n > 10 && !bad) }' \
    "$tmp/out.text"
ok 'a gain is the divergence without the exchange less that with it'

# ---- JSON, and no digit that depends on how it was computed
digits()
{
    grep -v -e '"seconds"' -e '"sequences"' -e '"ubatch_size"' -e '"threads"' \
        "$tmp/out"
}
bisect -j -t 1
cp "$tmp/out" "$tmp/one.json"
digits >"$tmp/one"
test $rc -eq 0 -a -s "$tmp/one"
ok 'as JSON'
bisect -j -t 2 -ub 13
digits | cmp -s - "$tmp/one"
ok 'the same digits with other threads and batches'
if command -v python3 >/dev/null 2>&1; then
    run python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
w = d["weights"]
assert d["measured"] == len(w) and d["left_out"] == 0 and d["chunks"] == 2
per = [x["gain"] / (x["base_size"] - x["size"]) for x in w]
assert per == sorted(per, reverse=True)
assert all(abs(d["kld"]["value"] - x["kld"]["value"] - x["gain"]) < 1e-15
           for x in w)
assert all(x["measured"] and x["base_type"] == "F16" for x in w)' \
        "$tmp/one.json"
    test $rc -eq 0 && run python3 "$srcdir/tests/tools/schema.py" "$schema" \
        "$tmp/one.json" && test $rc -eq 0 -a ! -s "$tmp/out"
    ok 'which agrees with itself and keeps to the schema'
else
    skip 'JSON' 'no python3'
fi

# ---- groups
groups kind -t 1
test $rc -eq 0 && grep -q '^weights  *n  *type  *bytes more  *KLD then  *gain' "$tmp/out" &&
    grep -q '^measured \([0-9]*\) of \1 groups of 44 weights that differ$' "$tmp/out" &&
    test "$(grep -c '^blk\.\*\..* 6  *Q3_K -> F16 ' "$tmp/out")" -eq 7
ok 'weights of the same name together'
cp "$tmp/out" "$tmp/out.text"
# shellcheck disable=SC2016
grep '^^blk.*attn_v.*=F16$' "$tmp/out" >"$tmp/line"
test "$(cat "$tmp/line")" = '^blk\.[0-9]+\.attn_v\.weight$=F16'
ok 'one line for gguf-quantize of them'
run "$bin/gguf-quantize" -q --pure --tensor-type-file "$tmp/line" "$m" \
    "$tmp/kind.gguf" Q3_K_M
more=$(($(wc -c <"$tmp/kind.gguf") - $(wc -c <"$q")))
# shellcheck disable=SC2086
run "$bin/gguf-ppl" $how -j -t 1 -m "$tmp/kind.gguf" --base "$m" -f "$t"
kld=$(awk '/"kld": \{/ { on = 1 } on && /"value"/ { gsub(/[^0-9.e-]/, "", $2)
    printf "%.7f\n", $2; exit }' "$tmp/out")
test "$(of 'blk.*.attn_v.weight' 6) $(of 'blk.*.attn_v.weight' 7)" = "$more $kld"
ok "its bytes ($more) and divergence ($kld) are those of a file with it"
groups layer -t 1
test $rc -eq 0 && grep -q '^measured 8 of 8 groups of 44 weights' "$tmp/out" &&
    test "$(grep -c '^blk\.[0-5]\.\*  *7  *Q3_K -> F16 ' "$tmp/out")" -eq 6 &&
    grep -q '^^blk\\\.0\\\.ffn_down\\\.weight\$=F16$' "$tmp/out"
ok 'those of a layer together'
groups halves -j -t 1
cp "$tmp/out" "$tmp/one.json"
digits >"$tmp/one"
groups halves -j -t 2 -ub 13
test $rc -eq 0 && digits | cmp -s - "$tmp/one"
ok 'halves: the same digits with other threads and batches'
groups halves -t 1
test $rc -eq 0 && grep -q '^measured [0-9]* parts of 44 weights that differ' "$tmp/out" &&
    awk '/->/ { for (i = 2; i <= NF; i++) if ($i ~ /^[0-9]+$/) { n += $i; break } }
        END { exit n != 44 }' "$tmp/out" &&
    grep -q '^blk.*weight, \.\.\.  *[0-9]' "$tmp/out"
ok 'and each weight in one line'
if command -v python3 >/dev/null 2>&1; then
    run python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
g = d["groups"]
assert d["by"] == "halves" and d["measured"] == len(g) < 44
left = [n for x in g if not x["halved"] for n in x["weights"]]
assert len(left) == len(set(left)) == 44
halved = [x for x in g if x["halved"]]
sets = [set(x["weights"]) for x in g]
assert halved and all(x["gain"] > d["kld"]["value"] / 20 for x in halved)
for x in halved: # its halves are there
    assert any(a | b == set(x["weights"]) and not a & b
               for a in sets for b in sets)
assert all(len(x["weights"]) == 1 for x in g
           if x["gain"] > d["kld"]["value"] / 20 and not x["halved"])
assert all(abs(d["kld"]["value"] - x["kld"]["value"] - x["gain"]) < 1e-15
           for x in g)' "$tmp/one.json"
    test $rc -eq 0 && run python3 "$srcdir/tests/tools/schema.py" "$schema" \
        "$tmp/one.json" && test $rc -eq 0 -a ! -s "$tmp/out"
    ok 'JSON of them agrees with itself and keeps to the schema'
else
    skip 'JSON of groups' 'no python3'
fi
groups half
test $rc -eq 2 && grep -q 'half' "$tmp/err"
ok 'another word is refused'

# ---- a time budget
bisect -j -t 1 --time-budget 0.001
test $rc -eq 1 && grep -q 'q.gguf: --time-budget ended before the model was' \
    "$tmp/err"
ok 'no time: nothing was measured, and that is said'
# a text long enough that all weights take longer than half of the time
head -c 8000 "$srcdir/share/tiny-llama/persuasion.txt" >"$tmp/long"
begin=$(date +%s)
run "$compare" -q -t 1 -c 128 -m "$q" --base "$m" -f "$tmp/long" --bisect \
    --time-budget 6
spent=$(($(date +%s) - begin))
cp "$tmp/out" "$tmp/out.text"
# shellcheck disable=SC2046
set -- $(sed -n 's/^measured \([0-9]*\) of \([0-9]*\) weights.*/\1 \2/p' "$tmp/out")
if test $rc -eq 1 && grep -q 'time-budget ended' "$tmp/err"; then
    skip 'a time that is enough for some' 'a slow machine'
else
    test $rc -eq 0 -a $# -eq 2 -a $spent -le 12 && test "$1" -lt "$2"
    ok "a time that is enough for some (${1-}/${2-}, $spent s)"
fi
# the remaining weights are in the order of suspicion
left=$(awk '$3 == "->" && $6 == "-" { print $9 }' "$tmp/out.text")
test "$left" = "$(echo "$left" | sort -g -r)"
ok 'the others by suspicion'
# and the measured ones are more suspicious
awk '$3 == "->" && $6 == "-" && (!most || $9 > most) { most = $9 }
    $3 == "->" && $6 != "-" && (!least || $9 < least) { least = $9 }
    END { exit !(most == "" || least == "" || least + 0 >= most + 0) }' "$tmp/out.text"
ok 'which were less suspicious'

# ---- refused command lines
run "$compare" -q -m "$m" --base "$m" -f "$t" -c 32 --chunks 1 --bisect
test $rc -eq 0 && grep -q '^measured 0 of 0 weights that differ' "$tmp/out" &&
    ! grep -q 'tensor-type-file' "$tmp/out"
ok 'a model and itself: nothing differs'
"$bin/gguf-ppl" -q -m "$m" -f "$t" -c 32 --save-base "$tmp/logits" >"$tmp/out" || exit 99
run "$compare" -m "$q" --base "$tmp/logits" -f "$t" --bisect
test $rc -eq 2 && grep -q "logits' is a file of logits, expected a model" "$tmp/err"
ok 'logits have no weights'
run "$compare" -m "$q" -m "$m" --base "$m" -f "$t" --bisect
test $rc -eq 2 && grep -q "'-m' is given twice" "$tmp/err"
ok 'one model at a time'
bisect -t 1 >/dev/null
run "$compare" -q -c 32 --chunks 1 -m "$q" --base "$m" -f "$tmp/none" --bisect
test $rc -eq 1 && grep -q 'none: ' "$tmp/err"
ok 'no text'
done_testing
