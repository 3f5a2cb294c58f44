#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-convert --verify: a file that is not a language model is removed.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
convert=$bin/gguf-convert
ppl=$bin/gguf-ppl
tiny=$srcdir/share/tiny-llama
text=$tiny/persuasion.txt
"$convert" -q "$tiny/tiny-llama-f16.gguf" --to-safetensors "$tmp/hf" ||
    exit 99
mkdir "$tmp/out.d" || exit 99
o=$tmp/out.d

refused() # message
{
    test $rc -eq 1 -a -z "$(ls -A "$o")" && grep -q -e "$1" "$tmp/err"
}

# Two folders that only look like the model: the rows of the embedding, or the
# weights of one layer, are in another order.
spoil() # folder, tensor, how
{
    cp -r "$tmp/hf" "$1" && python3 -c 'import json, struct, sys
path, name, how = sys.argv[1:]
b = bytearray(open(path, "rb").read())
n = struct.unpack("<Q", b[:8])[0]
t = json.loads(b[8:8 + n])[name]
at, end = (8 + n + x for x in t["data_offsets"])
if how == "nan":
    b[at + 10:at + 12] = struct.pack("<H", 0x7e00)
else:
    row = t["shape"][1] * 2
    rows = [bytes(b[i:i + row]) for i in range(at, end, row)]
    b[at:end] = b"".join(reversed(rows))
open(path, "wb").write(b)' "$1/model.safetensors" "$2" "$3"
}
spoil "$tmp/odd" model.embed_tokens.weight rows || exit 99
spoil "$tmp/nan" model.layers.1.mlp.up_proj.weight nan || exit 99

# ------------------------------------------------------------------- figures ---
run "$convert" --json "$tmp/hf" -o "$tmp/a.gguf" -o "$tmp/b.gguf=Q4_0" \
    --verify "$text" --verify-ctx 128 --verify-chunks 3
cp "$tmp/err" "$tmp/said"
test $rc -eq 0 && python3 -c 'import json, re, subprocess, sys
out, ppl, text = sys.argv[1:4]
for o in json.load(open(out))["outputs"]:
    v = o["verify"]
    p = subprocess.run([ppl, "-m", o["path"], "-f", text, "-c", "128",
                        "--chunks", "3", "--json"], capture_output=True)
    want = json.loads(p.stdout)
    assert v["n_ctx"] == 128 and v["n_chunks"] == 3 and v["text"] == text
    assert v["n_tokens"] == want["tokens_scored"], (v, want)
    assert v["perplexity"] == want["ppl"], (v, want)
    assert v["perplexity"] < v["limit"] == 2048' "$tmp/out" "$ppl" "$text" \
    2>"$tmp/err"
ok 'the figures are those of gguf-ppl, to the last digit'
grep -q 'a.gguf: perplexity [0-9.]* +/- [0-9.]* on 3 chunks of 128 tokens' \
    "$tmp/said" && grep -q 'b.gguf: perplexity' "$tmp/said"
ok 'and they are said'
run "$convert" -q "$tmp/hf" -o "$tmp/c.gguf"
cmp "$tmp/a.gguf" "$tmp/c.gguf"
ok 'the file is the same as without'
run "$convert" -q "$tmp/hf" -o "$tmp/s.gguf" --split-max-size 4M \
    --verify "$text" --verify-chunks 1
test $rc -eq 0 -a ! -s "$tmp/err" -a -e "$tmp/s-00001-of-00003.gguf"
ok 'a set of files is evaluated as one model'
gzip -c "$text" >"$tmp/text.gz"
run "$convert" --json "$tmp/hf" -o "$tmp/z.gguf" --verify - <"$tmp/text.gz"
test $rc -eq 0 && grep -q '"n_chunks": 4' "$tmp/out"
ok 'a text may be compressed, and come from standard input'

# ------------------------------------------------------------- refused models ---
run "$convert" "$tmp/odd" -o "$o/x.gguf" --verify "$text"
refused 'x.gguf: perplexity [0-9.]* +/- [0-9.]* on 4 chunks of 512 tokens, expected at most 2048, that of random guessing: not kept'
ok 'worse than a guess'
run "$convert" "$tmp/odd" -o "$o/x.gguf" --resume --verify "$text"
refused 'not kept'
ok 'nor is anything left to go on with'
run "$convert" "$tmp/odd" -o "$o/x.gguf" --split-max-size 4M --verify "$text"
refused 'not kept'
ok 'nor shards'
run "$convert" "$tmp/hf" -o "$o/x.gguf" --verify "$text" --verify-max 12.5
refused 'tokens, expected at most 12.5, the limit of --verify-max: not kept'
ok 'above a limit that was given'
run "$convert" "$tmp/odd" -q -o "$tmp/x.gguf" --verify "$text" \
    --verify-max 1e9
test $rc -eq 0 -a -e "$tmp/x.gguf"
ok 'and below one'
run "$convert" "$tmp/hf" -o "$o/x.gguf" -o "$o/y.gguf=Q2_K" \
    --verify "$text" --verify-factor 1.001
refused "y.gguf: perplexity .*, expected at most 1.001 times [0-9.]* of the first output: not kept"
ok 'much worse than the first output, which is not kept either'
run "$convert" "$tmp/nan" -o "$o/x.gguf" --verify "$text" --on-nonfinite keep
refused "x.gguf: .*blk.1.ffn_up.weight"
ok 'a weight that is not a number, by its name'
echo old >"$o/x.gguf"
run "$convert" -f "$tmp/odd" -o "$o/x.gguf" --verify "$text"
test $rc -eq 1 -a "$(cat "$o/x.gguf")" = old
ok 'a file that is replaced stays where the new one is refused'
rm "$o/x.gguf"

# ---------------------------------------------------------- before the work ---
head -c 2000 "$text" >"$tmp/short"
run "$convert" "$tmp/hf" -o "$o/x.gguf" --verify "$tmp/short"
refused 'short: [0-9]* tokens are too few: with chunks of 512 at least 1024 are needed (--verify-ctx)'
ok 'a text that is too short'
run "$convert" --dry-run "$tmp/hf" --verify "$tmp/short"
refused 'tokens are too few'
ok 'a dry run says so too'
"$builddir/tests/tools/mkskeleton" "$tmp/bert.gguf" bert &&
    "$convert" -q "$tmp/bert.gguf" --to-safetensors "$tmp/bert" &&
    printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' a b '##c' \
        >"$tmp/bert/vocab.txt" || exit 99
run "$convert" "$tmp/bert" -o "$o/x.gguf" --verify "$text"
refused "bert: --verify: architecture 'bert' is an encoder: it gives a text no perplexity"
ok 'an encoder'
"$builddir/tests/tools/mkskeleton" "$tmp/t5.gguf" t5 &&
    "$convert" -q "$tmp/t5.gguf" --to-safetensors "$tmp/t5" &&
    printf '%s' '{"model": {"type": "Unigram", "unk_id": 2, "vocab": [
        ["<pad>", 0], ["</s>", 0], ["<unk>", 0], ["a", -1], ["b", -2]]}}' \
        >"$tmp/t5/tokenizer.json" || exit 99
run "$convert" "$tmp/t5" -o "$o/x.gguf" --verify "$text"
refused "t5: --verify: architecture 't5' is an encoder-decoder: it gives a text no perplexity"
ok 'an encoder and a decoder'
for arch in bert t5; do
    run "$convert" -q "$tmp/$arch" -o "$tmp/$arch-2.gguf"
    run "$ppl" -m "$tmp/$arch-2.gguf" -f "$text" -c 16 --chunks 2
    test $rc -eq 1 && grep -q "architecture '$arch' .*: .*" "$tmp/err"
    ok "gguf-ppl says the same of $arch: $(cat "$tmp/err")"
done
run "$convert" -q "$tmp/bert" -o "$tmp/bert2.gguf"
test $rc -eq 0 -a -e "$tmp/bert2.gguf"
ok 'which is written without being verified'
run "$convert" "$tmp/hf" -o "$o/x.gguf" --verify "$tmp/none"
refused 'none: cannot open'
ok 'no text'
run "$convert" "$tmp/hf" -o "$o/x.gguf" --verify "$text" --max-text 1k
refused 'has more than 1000 bytes; --max-text allows more'
ok 'a text that is too large'
cp "$text" "$o/text"
run "$convert" -f "$tmp/hf" -o "$o/text" --verify "$o/text"
test $rc -eq 1 && cmp "$o/text" "$text"
ok 'the text is never the output'

done_testing
