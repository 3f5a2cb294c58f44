#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-eval --save-embeddings of sentence-transformers folders: pooling,
# prompts, lengths and normalisation as the folder says. Expected vectors are
# computed by awk in double precision from the states of tokens.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
eval=$bin/gguf-eval
convert=$bin/gguf-convert
mkfolder=$builddir/tests/tools/mkfolder
n_embd=32
"$mkfolder" "$tmp/hf" bert && mkdir "$tmp/hf/1_Pooling" || exit 99

steps() # pooling [Normalize]: modules.json and config.json of the pooling
{
    more=
    test $# -lt 2 || more=',{"path":"2_Normalize","type":"s.Normalize"}'
    echo '[{"path":"","type":"s.Transformer"},' \
        "{\"path\":\"1_Pooling\",\"type\":\"s.Pooling\"}$more]" \
        >"$tmp/hf/modules.json"
    echo "{\"pooling_mode\":\"$1\"}" >"$tmp/hf/1_Pooling/config.json"
}
make() # the file of the folder
{
    run "$convert" -q -f "$tmp/hf" -o "$tmp/m.gguf"
}
embed() # OUT OPTION...: rows of the lines
{
    out=$tmp/$1
    shift
    run "$eval" -m "$tmp/m.gguf" -c 64 -f "$tmp/text" \
        --save-embeddings "$out" "$@"
}
numbers() # FILE: one a line
{
    od -An -v -tf4 -w4 "$1"
}
# The vector of one line: states of its tokens, pooled and normalised.
define() # OUT POOLING NORMALIZE
{
    numbers "$tmp/states" | awk -v e=$n_embd -v pool="$2" -v unit="$3" '
        { x[NR - 1] = $1 }
        END {
            n = NR / e
            for (i = 0; i < e; i++) {
                for (t = 0; t < n; t++)
                    if (pool ~ /^mean/)
                        v[i] += x[t * e + i] / (pool ~ /sqrt/ ? sqrt(n) : n)
                if (pool == "cls") v[i] = x[i]
                if (pool == "lasttoken") v[i] = x[(n - 1) * e + i]
                all += v[i] * v[i]
            }
            for (i = 0; i < e; i++)
                printf "%.17g\n", unit ? v[i] / sqrt(all) : v[i]
        }' >"$tmp/$1"
}
agree() # ROWS WANTED: root of the relative squared error below 1e-6?
{
    numbers "$tmp/$1" | paste - "$tmp/$2" | awk '
        { n++; d += ($1 - $2) ^ 2; all += $2 * $2 }
        END { exit !(n == '$n_embd' && all > 0 && d < 1e-12 * all) }'
}

# ------------------------------------------------- pooling and lengths ---
for pool in mean cls lasttoken mean_sqrt_len_tokens; do
    for unit in '' Normalize; do
        # this factor, sqrt(n), is said to be lost
        test "$pool$unit" = mean_sqrt_len_tokens && continue
        # shellcheck disable=SC2086
        steps $pool $unit && make
        echo 'the cat sat' >"$tmp/text"
        embed states --pooling none
        embed row
        define want $pool "${unit:+1}"
        test $rc -eq 0 && agree row want &&
            grep -q "^pooling [a-z]*${unit:+, normalised}\$" "$tmp/out"
        ok "$pool${unit:+, normalised}: as the folder defines it"
    done
done
steps mean Normalize && make
embed plain --normalize=no
define want mean ''
test $rc -eq 0 && agree plain want && grep -q '^pooling mean$' "$tmp/out"
ok '--normalize=no: not normalised, whatever the file says'
steps mean && make
embed unit --normalize
define want mean 1
test $rc -eq 0 && agree unit want
ok '--normalize: normalised, whatever the file says'

# -------------------------------------------------------------- prompts ---
steps mean Normalize
cat >"$tmp/hf/config_sentence_transformers.json" <<'!'
{"prompts": {"query": "find: ", "document": ""}, "default_prompt_name": "query"}
!
make
echo 'find: the cat sat' >"$tmp/text"
embed states --pooling none --prompt-name document && define want mean 1
echo 'the cat sat' >"$tmp/text"
embed row -j
test $rc -eq 0 && agree row want && grep -q '"prompt": "find: "' "$tmp/out" &&
    grep -q '"normalized": true' "$tmp/out"
ok 'the default prompt stands in front of the line'
embed same --prompt-name query
test $rc -eq 0 && cmp -s "$tmp/row" "$tmp/same" &&
    grep -q "^prompt  'find: '\$" "$tmp/out"
ok 'the prompt of that name'
embed document --prompt-name document && embed none --prompt-name ''
test $rc -eq 0 && cmp -s "$tmp/document" "$tmp/none" &&
    ! cmp -s "$tmp/document" "$tmp/row" && ! grep -q '^prompt' "$tmp/out"
ok 'an empty prompt, and none'
rm "$tmp/row"
embed row --prompt-name passage
fails "has no prompt 'passage'" && test ! -e "$tmp/row"
ok 'a prompt that the file lacks'
run "$bin/gguf-info" "$tmp/m.gguf"
grep -q '^ *vectors  *pooling mean, normalised$' "$tmp/out" &&
    grep -q "^ *prompts  *query 'find: ' (default), document ''\$" "$tmp/out"
ok 'gguf-info shows both'

# -------------------------------------------------------- long lines ---
rm "$tmp/hf/config_sentence_transformers.json"
echo '{"max_seq_length": 6}' >"$tmp/hf/sentence_bert_config.json"
make
echo 'a b c d' >"$tmp/text"
embed short
test $rc -eq 0 && ! grep -q '^cut' "$tmp/out"
ok 'a line as long as the limit, with its special tokens'
echo 'a b c d e f g' >"$tmp/text"
embed long
test $rc -eq 0 && cmp -s "$tmp/short" "$tmp/long" &&
    grep -q '^cut  *1 of 1 lines, to 6 tokens$' "$tmp/out"
ok 'a longer one is cut, and keeps the special token at its end'
run "$eval" -m "$tmp/m.gguf" -f "$tmp/text" --prompt-name x --print-plan
test $rc -eq 2
ok 'wrong usage: a prompt without embeddings'
done_testing
