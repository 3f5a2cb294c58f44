#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-eval --pairs: scores of a reranker, and vectors of tokens. mksentence
# computes them from the folder's weights, in double precision, for the tokens
# that tokenizer.json's post_processor puts together.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
eval=$bin/gguf-eval
convert=$bin/gguf-convert
edit=$bin/gguf-edit
ref=$builddir/tests/tools/mksentence
tab=$(printf '\t')
"$ref" reranker "$tmp/hf" || exit 99
run "$convert" -f "$tmp/hf" -o "$tmp/m.gguf"
test $rc -eq 0 && grep -q 'CrossEncoder of sentence-transformers applies Sigmoid' "$tmp/err"
ok 'the function that a CrossEncoder has by default is said to be lost'

numbers() # FILE: one a line
{
    od -An -v -tf4 -w4 "$1"
}
ids() # TEXT: its tokens, without special ones
{
    printf '%s' "$1" >"$tmp/one"
    "$bin/gguf-tokenize" -q -m "$tmp/m.gguf" --no-bos -f "$tmp/one" |
        cut -f1 | tr '\n' ' '
}
typed() # TYPE ID...
{
    type=$1
    shift
    for id; do
        printf '%s:%s ' "$id" "$type"
    done
}
# Do the rows of FILE agree with wanted numbers, to 1e-6 of their size?
agree() # FILE WANTED
{
    numbers "$tmp/$1" | paste - "$tmp/$2" | awk '
        { n++; d += ($1 - $2) ^ 2; all += $2 * $2 }
        END { exit !(n && all > 0 && d < 1e-12 * all) }'
}
score() # of the file's lines, at $tmp/row
{
    run "$eval" -m "$tmp/m.gguf" -c 64 -f "$tmp/text" --pairs \
        --save-embeddings "$tmp/row" "$@"
}
cls=2 sep=3

# ------------------------------------------------------------------ BERT ---
a=$(ids 'the cat') b=$(ids 'a dog sat')
c=$(ids 'x') d=$(ids 'y z')
test -n "$a" -a -n "$b"
ok "tokens: $a/$b"
printf 'the cat\ta dog sat\nx\ty z\r\n' >"$tmp/text"
score
# shellcheck disable=SC2046,SC2086
"$ref" score $cls:0 $(typed 0 $a) $sep:0 $(typed 1 $b) $sep:1 >"$tmp/want"
# shellcheck disable=SC2046,SC2086
"$ref" score $cls:0 $(typed 0 $c) $sep:0 $(typed 1 $d) $sep:1 >>"$tmp/want"
test $rc -eq 0 && agree row want && grep -q '^pooling rank$' "$tmp/out" &&
    grep -q '^rows .*: 2 of 1 embeddings' "$tmp/out"
ok '[CLS] query [SEP] document [SEP], the document of type 1'
# shellcheck disable=SC2046,SC2086
"$ref" score $cls:0 $(typed 0 $a) $sep:0 $(typed 0 $b) $sep:0 >"$tmp/other"
# shellcheck disable=SC2046,SC2086
"$ref" score $cls:0 $(typed 0 $c) $sep:0 $(typed 0 $d) $sep:0 >>"$tmp/other"
! agree row other
ok 'of type 0 the scores would be others'

"$edit" --set tokenizer.ggml.add_sep_token=bool:true -o "$tmp/sep.gguf" \
    "$tmp/m.gguf" 2>"$tmp/err" && mv "$tmp/m.gguf" "$tmp/plain.gguf" &&
    mv "$tmp/sep.gguf" "$tmp/m.gguf"
score
# shellcheck disable=SC2046,SC2086
"$ref" score $cls:0 $(typed 0 $a) $sep:0 $sep:0 $(typed 1 $b) $sep:1 >"$tmp/want"
# shellcheck disable=SC2046,SC2086
"$ref" score $cls:0 $(typed 0 $c) $sep:0 $sep:0 $(typed 1 $d) $sep:1 >>"$tmp/want"
test $rc -eq 0 && agree row want
ok 'with add_sep_token: two separators between the texts'
mv "$tmp/plain.gguf" "$tmp/m.gguf"

# --------------------------------------------------------- long pairs ---
"$edit" --set sentence_transformers.max_seq_length=u32:8 -o "$tmp/short.gguf" \
    "$tmp/m.gguf" 2>"$tmp/err"
e=$(ids 'a b') f=$(ids 'c d e f g h')
printf 'a b\tc d e f g h\n' >"$tmp/text"
run "$eval" -m "$tmp/short.gguf" -c 64 -f "$tmp/text" --pairs \
    --save-embeddings "$tmp/row" -j
# shellcheck disable=SC2046,SC2086
"$ref" score $cls:0 $(typed 0 $e) $sep:0 \
    $(typed 1 $(echo $f | cut -d' ' -f1-3)) $sep:1 >"$tmp/want"
test $rc -eq 0 && agree row want && grep -q '"cut": 1' "$tmp/out"
ok 'the longer text of a pair is cut at max_seq_length'

# ----------------------------------------------------------- a template ---
"$edit" --set 'tokenizer.chat_template.rerank=str:[CLS]{document} {query}[SEP]' \
    -o "$tmp/t.gguf" "$tmp/m.gguf" 2>"$tmp/err"
printf 'the cat\ta dog sat\n' >"$tmp/text"
run "$eval" -m "$tmp/t.gguf" -c 64 -f "$tmp/text" --pairs \
    --save-embeddings "$tmp/row"
# shellcheck disable=SC2046,SC2086
"$ref" score $cls:0 $(typed 0 $b $a) $sep:0 >"$tmp/want"
test $rc -eq 0 && agree row want
ok 'a chat template named rerank puts the texts together'

# --------------------------------------------------------- refused lines ---
printf 'the cat\ta dog sat\nno tab here\n' >"$tmp/text"
rm -f "$tmp/row"
score
fails 'line 2 has no tab' && test ! -e "$tmp/row"
ok 'a line without a tab'
run "$eval" -m "$srcdir/share/tiny-llama/tiny-llama-f16.gguf" -f "$tmp/text" \
    --pairs --save-embeddings "$tmp/row"
fails 'it is not a reranker' && test ! -e "$tmp/row"
ok 'a model without a classifier'
for options in --pairs "--save-embeddings $tmp/x --pairs --pooling mean" \
    "--save-embeddings $tmp/x --pairs --normalize"; do
    # shellcheck disable=SC2086
    run "$eval" -m "$tmp/m.gguf" -f "$tmp/text" $options
    test $rc -eq 2 -a ! -e "$tmp/x"
    ok "wrong usage: $options"
done

# ---------------------------------------- states by the folder's weights ---
sed 's/BertForSequenceClassification/BertModel/' "$tmp/hf/config.json" \
    >"$tmp/config" && mv "$tmp/config" "$tmp/hf/config.json"
mkdir "$tmp/hf/1_Pooling" || exit 99
steps() # POOLING
{
    echo '[{"path":"","type":"s.Transformer"},' \
        '{"path":"1_Pooling","type":"s.Pooling"},' \
        '{"path":"2_Normalize","type":"s.Normalize"}]' >"$tmp/hf/modules.json"
    echo "{\"pooling_mode\":\"$1\"}" >"$tmp/hf/1_Pooling/config.json"
    run "$convert" -q -f "$tmp/hf" -o "$tmp/m.gguf"
}
# The vector of states, pooled and normalised; dims: numbers that are kept.
define() # POOLING [DIMS]
{
    awk -v e=32 -v pool="$1" -v kept="${2:-32}" '
        { x[NR - 1] = $1 }
        END {
            n = NR / e
            for (i = 0; i < e; i++) {
                for (t = 0; t < n; t++)
                    if (pool == "mean") v[i] += x[t * e + i] / n
                if (pool == "cls") v[i] = x[i]
                if (pool == "lasttoken") v[i] = x[(n - 1) * e + i]
                all += v[i] * v[i]
            }
            for (i = 0; i < kept; i++) printf "%.17g\n", v[i] / sqrt(all)
        }' "$tmp/states" >"$tmp/want"
}
embed()
{
    run "$eval" -m "$tmp/m.gguf" -c 64 -f "$tmp/text" \
        --save-embeddings "$tmp/row" "$@"
}
echo 'a dog sat' >"$tmp/text"
# shellcheck disable=SC2046,SC2086
"$ref" states $cls:0 $(typed 0 $b) $sep:0 >"$tmp/states"
for pool in mean cls lasttoken; do
    steps $pool
    test -e "$tmp/m.gguf" && embed && define $pool
    test $rc -eq 0 && agree row want
    ok "$pool: the vector by the folder's weights"
done
echo '{"similarity_fn_name": "dot", "truncate_dim": 10}' \
    >"$tmp/hf/config_sentence_transformers.json"
steps mean
embed -j
define mean 10
test $rc -eq 0 && agree row want && grep -q '"truncate_dim": 10' "$tmp/out" &&
    grep -q '"width": 10' "$tmp/out"
ok 'truncate_dim: the first numbers of the normalised vector'
embed --normalize
numbers "$tmp/row" | awk '{ s += $1 * $1 } END { exit !((s - 1) ^ 2 < 1e-12) }'
ok '--normalize: what is left has the length 1'
run "$bin/gguf-info" "$tmp/m.gguf"
grep -q 'vectors .*pooling mean, normalised, the first 10 numbers, compared by dot' "$tmp/out"
ok 'gguf-info shows both'

# ------------------------------------------------------ vectors of tokens ---
rm "$tmp/hf/config_sentence_transformers.json" "$tmp/hf/modules.json"
colbert() # a folder of LFM2 as PyLate writes it, and its file
{
    rm -rf "$tmp/lfm"
    "$ref" folder Lfm2BidirectionalModel "$tmp/lfm" &&
        mkdir "$tmp/lfm/1_Dense" && "$ref" dense "$tmp/lfm/1_Dense" 24 32 ||
        exit 99
    cat >"$tmp/lfm/1_Dense/config.json" <<'!'
{"in_features": 32, "out_features": 24, "bias": false,
"activation_function": "torch.nn.modules.linear.Identity"}
!
    cat >"$tmp/lfm/config_sentence_transformers.json" <<'!'
{"model_type": "ColBERT", "similarity_fn_name": "MaxSim", "prompts": {},
"query_prefix": "ab", "document_prefix": "cd", "query_length": 32,
"do_query_expansion": true, "skiplist_words": ["!", "?"]}
!
    echo '[{"path":"","type":"sentence_transformers.models.Transformer"},' \
        '{"path":"1_Dense","type":"pylate.models.Dense.Dense"}]' \
        >"$tmp/lfm/modules.json"
    run "$convert" -f "$tmp/lfm" -o "$tmp/m.gguf"
}
colbert
grep -q 'do not fill queries with masks (query_length 32)' "$tmp/err" &&
    grep -q 'to the 2 tokens of skiplist_words' "$tmp/err"
ok 'ColBERT: what readers do not do to tokens is said'
printf 'abab\na\n' >"$tmp/text"
embed -j
rows=$(sed -n 's/.*"rows_of_lines": *\[\([0-9]*\), *\([0-9]*\)\].*/\1 \2/p' "$tmp/out")
first=${rows% *} second=${rows#* }
test $rc -eq 0 && test -n "$rows" && grep -q '"pooling": "none"' "$tmp/out" &&
    grep -q '"width": 24' "$tmp/out" && grep -q '"normalized": true' "$tmp/out" &&
    test "$(wc -c <"$tmp/row" | tr -d ' ')" -eq \
        $((4 * 24 * (first + second)))
ok "a matrix for each line: $rows rows of 24 numbers"
cp "$tmp/row" "$tmp/vectors"
# states: those of a file of the same folder without the matrix
echo '[{"path":"","type":"s.Transformer"}]' >"$tmp/lfm/modules.json"
run "$convert" -q -f "$tmp/lfm" -o "$tmp/m.gguf"
run "$eval" -m "$tmp/m.gguf" -c 64 -f "$tmp/text" --pooling none --normalize=no \
    --save-embeddings "$tmp/row"
"$ref" values linear.weight $((24 * 32)) >"$tmp/matrix"
numbers "$tmp/row" | awk -v m="$tmp/matrix" '
    BEGIN { while ((getline line < m) > 0) w[k++] = line }
    { s[NR - 1] = $1 }
    END {
        for (t = 0; t < NR / 32; t++) {
            all = 0
            for (r = 0; r < 24; r++) {
                y[r] = 0
                for (c = 0; c < 32; c++) y[r] += w[r * 32 + c] * s[t * 32 + c]
                all += y[r] * y[r]
            }
            for (r = 0; r < 24; r++) printf "%.17g\n", y[r] / sqrt(all)
        }
    }' >"$tmp/want"
test $rc -eq 0 && agree vectors want
ok 'each vector is the state times the matrix of 1_Dense, of length 1'
colbert
embed --prompt-name query && cp "$tmp/row" "$tmp/query"
printf 'ababab\naba\n' >"$tmp/text"
embed && cmp -s "$tmp/row" "$tmp/query"
ok 'query_prefix is the prompt named query'
run "$bin/gguf-info" "$tmp/m.gguf"
grep -q 'vectors .*a vector for each token, dense_2.weight .*normalised, compared by MaxSim' "$tmp/out"
ok 'gguf-info shows that there is a vector for each token'

# ------------------------------------------------ matrices after pooling ---
"$ref" folder Gemma3TextModel "$tmp/gemma" && mkdir "$tmp/gemma/1_Pooling" \
    "$tmp/gemma/2_Dense" "$tmp/gemma/3_Dense" &&
    "$ref" dense "$tmp/gemma/2_Dense" 48 32 &&
    "$ref" dense "$tmp/gemma/3_Dense" 32 48 || exit 99
echo '{"pooling_mode": "mean"}' >"$tmp/gemma/1_Pooling/config.json"
for i in '2 32 48' '3 48 32'; do
    # shellcheck disable=SC2086
    set -- $i
    echo "{\"in_features\": $2, \"out_features\": $3, \"bias\": false," \
        '"activation_function": "torch.nn.modules.linear.Identity"}' \
        >"$tmp/gemma/$1_Dense/config.json"
done
echo '[{"path":"","type":"s.Transformer"},{"path":"1_Pooling","type":"s.Pooling"},' \
    '{"path":"2_Dense","type":"s.Dense"},{"path":"3_Dense","type":"s.Dense"},' \
    '{"path":"4_Normalize","type":"s.Normalize"}]' >"$tmp/gemma/modules.json"
run "$convert" -q -f --sentence-transformers-dense-modules "$tmp/gemma" \
    -o "$tmp/dense.gguf"
run "$convert" -q -f "$tmp/gemma" -o "$tmp/m.gguf"
echo 'abab' >"$tmp/text"
embed --pooling none --normalize=no && mv "$tmp/row" "$tmp/states.f32"
run "$eval" -m "$tmp/dense.gguf" -c 64 -f "$tmp/text" \
    --save-embeddings "$tmp/row"
"$ref" values linear.weight $((48 * 32)) >"$tmp/matrix"
numbers "$tmp/states.f32" | awk -v m="$tmp/matrix" '
    BEGIN { while ((getline line < m) > 0) w[k++] = line }
    { x[(NR - 1) % 32] += $1 }
    END {
        for (r = 0; r < 48; r++)
            for (c = 0; c < 32; c++) y[r] += w[r * 32 + c] * x[c] / (NR / 32)
        for (r = 0; r < 32; r++) {
            for (c = 0; c < 48; c++) z[r] += w[r * 48 + c] * y[c]
            all += z[r] * z[r]
        }
        for (r = 0; r < 32; r++) printf "%.17g\n", z[r] / sqrt(all)
    }' >"$tmp/want"
test $rc -eq 0 && agree row want
ok '2_Dense and 3_Dense: their matrices, one after the other'
done_testing
