#!/bin/sh
# LoRA adapters: gguf-ppl evaluates with them.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$builddir/gguf-ppl
mklora=$builddir/tests/tools/mklora
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
t=$tmp/text
head -c 2000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"
"$mklora" "$tmp/a.gguf" "$m" 4 8 && "$mklora" "$tmp/b.gguf" "$m" 2 0 attn &&
    "$mklora" "$tmp/c=1.gguf" "$m" 3 3 ffn_up || exit 99

fails() # what is expected in the one line of the message
{
    test $rc -eq 1 -a ! -s "$tmp/out" &&
        test "$(wc -l <"$tmp/err")" -eq 1 && grep -q -e "$1" "$tmp/err"
}
nll() # of a run with these options
{
    run "$ppl" -j -m "$m" -f "$t" -c 128 --chunks 2 -t 1 "$@"
    test $rc -eq 0 && grep '"chunk_nll"' "$tmp/out"
}

plain=$(nll)
a=$(nll --lora "$tmp/a.gguf")
test -n "$a" -a "$a" != "$plain"
ok 'an adapter counts'
test "$plain" = "$(nll --lora "$tmp/a.gguf=0")"
ok 'times 0 it does not: the same digits'
test "$a" = "$(nll --lora "$tmp/a.gguf=1")" &&
    test "$a" = "$(nll --lora-scaled "$tmp/a.gguf:1")"
ok 'a scale, and as llama.cpp has it'
half=$(nll --lora "$tmp/a.gguf=0.5")
test -n "$half" -a "$half" != "$a" -a "$half" != "$plain"
ok 'half of it'
both=$(nll --lora "$tmp/a.gguf=0.5" --lora "$tmp/b.gguf=-1")
test -n "$both" -a "$both" != "$half"
ok 'two of them'
grep -A 9 '"lora"' "$tmp/out" | tr -d ' \n' |
    grep -q '{"file":"[^"]*/a.gguf","scale":0.5},{"file":"[^"]*/b.gguf","scale":-1}\]'
ok 'JSON says which, and how much'
test -n "$(nll --lora "$tmp/c=1.gguf")"
ok 'a name with = in it'
run "$ppl" -m "$m" -f "$t" -c 128 --chunks 1 -t 2 --lora "$tmp/a.gguf=2"
test $rc -eq 0 &&
    grep -q '^lora    .*/a.gguf: 44 weights, rank 4, scale 2$' "$tmp/out"
ok 'and so do the settings'
run "$ppl" -m "$m" -f "$t" --lora "$tmp/none.gguf"
fails 'none.gguf: '
ok 'one that is not there'
run "$ppl" -m "$m" -f "$t" --lora "$m"
fails "no LoRA adapter: general.type is 'model'"
ok 'a model is none'
cp "$tmp/a.gguf" "$tmp/copy.gguf"
echo 1 2 3 >"$tmp/ids"
run "$ppl" -m "$m" --tokens "$tmp/ids" --save-logits "$tmp/copy.gguf" \
    --lora "$tmp/copy.gguf"
fails "copy.gguf' would be both --lora and --save-logits" &&
    cmp -s "$tmp/a.gguf" "$tmp/copy.gguf"
ok 'rows over an adapter'
done_testing
