#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ppl --json: the origin of a figure. Digests of model, base, text and
# tokenizer, and every setting that decides a number.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
schema=$srcdir/share/gguf-ppl.schema.json
t=$tmp/text
q8=$tmp/q8.gguf
head -c 4000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"
printf '\n' >>"$t" # which does not count for the tokens
"$bin/gguf-quantize" -q "$m" "$q8" Q8_0 || exit 99
if ! command -v python3 >/dev/null 2>&1; then
    echo '1..0 # SKIP no python3'
    exit 0
fi

# Value at a path such as model.digest or models.0.digest.
value() # file, path
{
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
for k in sys.argv[2].split("."):
    d = d[int(k)] if isinstance(d, list) else d[k]
print(d)' "$1" "$2"
}

hash_of() # model: as gguf-info has it
{
    "$bin/gguf-info" --hash "$1" | sed -n '$s/^xxh64  *\([0-9a-f]*\) .*/xxh64:\1/p'
}

fits() # file
{
    run python3 "$srcdir/tests/tools/schema.py" "$schema" "$1"
    test $rc -eq 0
}

run "$ppl" -q -j -m "$q8" --base "$m" -f "$t" -c 128 --chunks 2
cp "$tmp/out" "$tmp/two.json"
fits "$tmp/two.json"
ok 'the document keeps to the schema'
test "$(value "$tmp/two.json" models.0.digest)" = "$(hash_of "$q8")" &&
    test "$(value "$tmp/two.json" base.digest)" = "$(hash_of "$m")"
ok "the digests of gguf-info --hash: $(hash_of "$m")"
want=xxh64:$(python3 "$srcdir/tests/tools/xxh64.py" "$t")
test "$(value "$tmp/two.json" text.digest)" = "$want"
ok "the digest of the text, computed elsewhere: $want"
gzip -c "$t" >"$t.gz"
run "$ppl" -q -j -m "$m" -f "$t.gz" -c 128 --chunks 2
test "$(value "$tmp/out" text.digest)" = "$want"
ok 'of a compressed text: of what is in it'
run "$ppl" -q -j -m "$m" -f - -c 128 --chunks 2 <"$t"
test "$(value "$tmp/out" text.digest)" = "$want"
ok 'of standard input'

# Tokenizers.
vocab=$(value "$tmp/two.json" base.tokenizer.digest)
test "$(value "$tmp/two.json" models.0.tokenizer.digest)" = "$vocab" &&
    test "$(value "$tmp/two.json" base.tokenizer.model)" = llama &&
    test "$(value "$tmp/two.json" base.tokenizer.tokens)" = 2048
ok "one tokenizer in both files: $vocab"
"$bin/gguf-edit" -q --to-endian big -o "$tmp/big.gguf" "$m"
run "$ppl" -q -j -m "$tmp/big.gguf" -f "$t" -c 128 --chunks 2
test "$(value "$tmp/out" model.tokenizer.digest)" = "$vocab"
ok 'and in a file of the other byte order'
run python3 -c 'import struct, sys
sys.path.insert(0, sys.argv[1])
from xxh64 import xxh64
f = open(sys.argv[2], "rb").read()
def array(name):
    at = f.index(struct.pack("<Q", len(name)) + name) + 8 + len(name)
    kind, of, n = struct.unpack_from("<IIQ", f, at)
    assert kind == 9
    at += 16
    end = at
    for _ in range(n):
        end += 8 + struct.unpack_from("<Q", f, end)[0] if of == 8 else 4
    return f[at:end]
print("xxh64:%016x" % xxh64(b"".join(
    array(b"tokenizer.ggml." + k) for k in (b"tokens", b"scores", b"token_type"))))' \
    "$srcdir/tests/tools" "$m"
test "$(cat "$tmp/out")" = "$vocab"
ok 'of the arrays of the file, computed elsewhere'
run "$ppl" -q -j -m "$m" -f "$t" -c 128 --chunks 2 --pre gpt-2
test "$(value "$tmp/out" model.tokenizer.pre)" = gpt-2
ok '--pre is what it says'

# Settings.
run "$ppl" -q -j -m "$m" -f "$t" -c 128 -b 256 --chunks 2 -ctk f16 \
    --rope-freq-base 5000 --override-kv general.name=str:x
cp "$tmp/out" "$tmp/set.json"
fits "$tmp/set.json" && test "$(value "$tmp/set.json" settings.mode)" = chunks &&
    test "$(value "$tmp/set.json" settings.precision)" = exact &&
    test "$(value "$tmp/set.json" settings.batch_size)" = 256 &&
    test "$(value "$tmp/set.json" settings.cache_type_k)" = F16 &&
    test "$(value "$tmp/set.json" settings.positions.rope_freq_base)" = 5000 &&
    test "$(value "$tmp/set.json" settings.override_kv.0)" = general.name=str:x &&
    test "$(value "$tmp/set.json" model.name)" = x &&
    test "$(value "$tmp/set.json" settings.version)" = \
        "$("$ppl" --version | sed -n '1s/.* //p')"
ok 'what the command line changes is in it'

# A file of logits, tasks.
run "$ppl" -q -j -m "$m" -f "$t" -c 128 --chunks 2 --save-base "$tmp/logits"
run "$ppl" -q -j -m "$q8" --base "$tmp/logits"
cp "$tmp/out" "$tmp/logits.json"
fits "$tmp/logits.json" && test "$(value "$tmp/logits.json" base.digest)" = \
    xxh64:"$(python3 "$srcdir/tests/tools/xxh64.py" "$tmp/logits")" &&
    test "$(value "$tmp/logits.json" text.digest)" = None
ok 'a file of logits has the digest of its bytes'
printf '%s\n' '{"question": "Who was", "choices": ["Anne", "the sea"], "label": 0}' \
    '{"question": "She had", "choices": ["been", "hat of"], "label": 0}' >"$tmp/tasks"
run "$ppl" -q -j -m "$m" -f "$tmp/tasks" --multiple-choice
cp "$tmp/out" "$tmp/tasks.json"
fits "$tmp/tasks.json" && test "$(value "$tmp/tasks.json" settings.mode)" = tasks &&
    test "$(value "$tmp/tasks.json" settings.add_bos)" = True &&
    test "$(value "$tmp/tasks.json" text.digest)" = \
        xxh64:"$(python3 "$srcdir/tests/tools/xxh64.py" "$tmp/tasks")"
ok 'tasks keep to the schema, too'

# Without digests; without a document nothing is hashed.
run "$ppl" -q -j -m "$m" -f "$t" -c 128 --chunks 2 --no-digest
cp "$tmp/out" "$tmp/no.json"
fits "$tmp/no.json" && test "$(value "$tmp/no.json" model.digest)" = None &&
    test "$(value "$tmp/no.json" text.digest)" = None
ok '--no-digest leaves them out'

done_testing
