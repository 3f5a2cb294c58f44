#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-edit: every operation, and refused ones. Tensor data stay, and no file
# is overwritten.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
. "${srcdir:-.}/tests/tools/edit.sh"
test -s "$tmp/tensors"
ok 'the model has tensors'


kind() # file, key: type of its value
{
    "$info" --json --metadata "$1" |
        awk -v k="\"$2\"" 'index($0, k) { on = 1 }
            on && /"type"/ { gsub(/.*"type": *"|".*/, ""); print; exit }'
}

# Operations.
fresh
run "$edit" --set general.name=New --set 'test.s=str:u32:7' \
    --rename test.float=test.half --delete test.nan "$w"
test $rc -eq 0 -a ! -s "$tmp/out" -a "$(key "$w" general.name)" = New -a \
    "$(key "$w" test.s)" = u32:7 -a "$(key "$w" test.nan)" = absent -a \
    "$(key "$w" test.float)" = absent -a "$(key "$w" test.half)" = 0.1 &&
    same_tensors "$w"
ok 'several operations in one call; tensors stay'
grep -q "f.gguf: set 'general.name' to str New (was str Test " "$tmp/err" &&
    grep -q "added 'test.s' as str u32:7" "$tmp/err" &&
    grep -q "renamed 'test.float' to 'test.half'" "$tmp/err" &&
    grep -q "deleted 'test.nan' (was f64 " "$tmp/err"
ok 'it says what it did'
LC_ALL=C tr -d '\n\040-\176' <"$tmp/err" >"$tmp/odd"
test ! -s "$tmp/odd"
ok 'text from the file is escaped'
run "$edit" -q --set general.name=A --rename general.name=x.y \
    --set x.y=B --rename x.y=general.name "$w"
test $rc -eq 0 -a ! -s "$tmp/err" -a "$(key "$w" general.name)" = B
ok 'operations are done in order; --quiet is quiet'
run "$edit" --set general.name=B "$w"
test $rc -eq 0 && grep -q 'nothing was written' "$tmp/err"
ok 'a value that is there already'

# Types: option; type and value of the result.
while IFS='|' read -r arg type value; do
    fresh
    run "$edit" -q --set "k.k=$arg" "$w"
    test $rc -eq 0 && test "$(kind "$w" k.k)" = "$type" -a \
        "$(key "$w" k.k | tr '\n' ' ')" = "$value "
    ok "k.k=$arg is $type"
done <<'END'
u8:255|u8|255
i8:-128|i8|-128
u16:0xffff|u16|65535
i16:-32768|i16|-32768
u32:4294967295|u32|4294967295
i32:-2147483648|i32|-2147483648
u64:18446744073709551615|u64|18446744073709551615
i64:-9223372036854775808|i64|-9223372036854775808
f32:-2.5e-3|f32|-0.0025
f64:0.1|f64|0.1
bool:1|bool|true
str:|str|
7|u32|7
4294967296|u64|4294967296
-7|i32|-7
-2147483649|i64|-2147483649
1.5|f32|1.5
true|bool|true
nan|str|nan
word|str|word
other:word|str|other:word
a=b|str|a=b
END
for arg in u8:256 i8:-129 i8:128 u8:-1 u32:4294967296 u64:18446744073709551616 \
    i64:9223372036854775808 u8: u8:x u8:1x f32:1e39 f64:1e999 f32:1.5x bool:2 \
    u32:1.5 'u8: 1' 'arr[u8]:1,256' 'arr[u8]:1,,2' 'arr[u8]:1,' 'arr[u8]:[1' \
    'arr[u8]:[1]2' 'arr[u8]:[1,]' 'arr[str]:[a]' 'arr[str]:["a]' \
    'arr[str]:["\x"]' 'arr[str]:["\ud800"]' 'arr[str]:["a" "b"]' \
    'arr[u8]:[,1]'; do
    fresh
    run "$edit" --set "k.k=$arg" "$w"
    test $rc -eq 1 && cmp "$m" "$w" && test "$(wc -l <"$tmp/err")" -eq 1 &&
        grep -q -e '--set k.k: ' "$tmp/err"
    ok "k.k=$arg is refused in one line"
done

# Arrays: option; value in JSON on one line.
while IFS='|' read -r arg json; do
    fresh
    run "$edit" -q -f --set "k.k=$arg" "$w"
    test $rc -eq 0 && "$info" --json --metadata --arrays=all "$w" |
        tr -d '\n ' >"$tmp/out"
    grep -qF "\"value\":$json" "$tmp/out"
    ok "an array: $(printf '%s' "$arg" | tr -d '\\')"
done <<'END'
arr[u32]:1,2,3|[1,2,3]
arr[i8]:[-1, 2]|[-1,2]
arr[bool]:true,0|[true,false]
arr[f32]:[ 0.5 , 1e3 ]|[0.5,1000]
arr[u8]:|[]
arr[u8]:[]|[]
arr[str]:a,b|["a","b"]
arr[str]:a,|["a",""]
arr[str]:["a,b", "\"c\u00e9\ud83d\ude00\n]"]|["a,b","\"cé😀\n]"]
arr[arr[i16]]:[[1, -2],[] , [3]]|[[1,-2],[],[3]]
arr[arr[str]]:[["[a]", ","], [""]]|[["[a]",","],[""]]
arr[arr[u8]]:[]|[]
arr[arr[arr[f64]]]:[[[0.5], []], [], [[1]]]|[[[0.5],[]],[],[[1]]]
arr[arr[arr[arr[arr[arr[arr[arr[u8]]]]]]]]:[[[[[[[[9]]]]]]]]|[[[[[[[[9]]]]]]]]
END
fresh
run "$edit" -q --set 'k.k=arr[arr[i8]]:[[1]]' "$w"
test $rc -eq 1 && cmp "$m" "$w" &&
    grep -q "refused: key 'k.k' would be an array of arrays" "$tmp/err"
ok 'arrays of arrays are refused without --force'
run "$edit" -q -f --set 'k.k=arr[arr[i8]]:[[],[1]]' --set 'k.k=[[2],[-3,4]]' "$w"
"$info" --json --metadata "$w" | tr -d '\n ' >"$tmp/out"
test $rc -eq 0 && grep -qF '"value":[[2],[-3,4]]' "$tmp/out"
ok 'arrays of arrays: without TYPE, that of those that are there'
run "$edit" -q --set k.j=1 "$w"
test $rc -eq 0 -a ! -s "$tmp/err"
ok 'those that are there stay'
run "$edit" --set 'k.e=arr[arr[i8]]:[]' --set 'k.e=[[1]]' "$w"
test $rc -eq 1 && grep -q 'empty arrays only: give the type' "$tmp/err"
ok 'unless there are none'
fresh
run "$edit" -q --set 'general.tags=["x","y"]' --set general.version=1.0 \
    --set tokenizer.ggml.tokens=a,b,c,d,e,f,g,h --set test.float=3 "$w"
test $rc -eq 0 -a "$(kind "$w" general.version)" = str -a \
    "$(kind "$w" test.float)" = f32 -a "$(kind "$w" general.tags)" = arr -a \
    "$(kind "$w" tokenizer.ggml.tokens)" = arr
ok 'without TYPE: the type that is there, or that of a known key'
run "$edit" --set 'test.nested=[[1]]' "$w"
test $rc -eq 1 && grep -q 'arrays of more than one type' "$tmp/err"
ok 'a value of several types is not guessed at'
for arg in 'arr[arr[u8]]:1' 'arr[arr[u8]]:[1]' 'arr[arr[u8]]:[[1],2]' \
    'arr[arr[u8]]:[[1]' 'arr[arr[u8]]:[[1]]]' 'arr[arr[u8]]:[[1][2]]' \
    'arr[arr[u8]]:[[256]]' 'arr[arr[u8]]:[[1],]' 'arr[str]:["a",]' 'arr[arr[u8]]:[[[1]]]' \
    'arr[arr[str]]:[["a]]' 'arr[u8]:[[1]]' \
    'arr[arr[arr[arr[arr[arr[arr[arr[arr[u8]]]]]]]]]:[[[[[[[[[1]]]]]]]]]'; do
    fresh
    run "$edit" --set "k.k=$arg" "$w"
    test $rc -eq 1 && cmp "$m" "$w" && test "$(wc -l <"$tmp/err")" -eq 1
    ok "k.k=$arg is refused"
done

# --set-file
printf '{%% for m in messages %%}\n\303\251=:\n' >"$tmp/template"
fresh
run "$edit" -q --set-file "tokenizer.chat_template=$tmp/template" "$w"
key "$w" tokenizer.chat_template >"$tmp/out"
test $rc -eq 0 && head -c "$(wc -c <"$tmp/template")" "$tmp/out" |
    cmp - "$tmp/template"
ok '--set-file'
fresh
"$edit" -q --set-file x.y=- "$w" <"$tmp/template" 2>"$tmp/err" &&
    key "$w" x.y | head -c "$(wc -c <"$tmp/template")" |
    cmp - "$tmp/template"
ok '--set-file from standard input'
# Removing pairs and setting them again gives the same file, however often.
fresh
for text in '' 'x' 'x\n' 'x\n\n' '\n' 'a\r\nb' '\303\251 \033[1m\t'; do
    printf "$text" >"$tmp/first"
    cp "$tmp/first" "$tmp/next"
    for i in 1 2 3; do
        "$edit" -q --set-file "tokenizer.chat_template=$tmp/next" "$w" &&
            "$info" --raw --key tokenizer.chat_template "$w" >"$tmp/next"
    done
    cmp "$tmp/first" "$tmp/next"
    ok "three times there and back: '$text'"
done
fresh
run "$edit" --set-file "x.y=$tmp/none" "$w"
test $rc -eq 1 && cmp "$m" "$w" && grep -q 'none: ' "$tmp/err"
ok '--set-file of nothing'
printf 'a\377' >"$tmp/bytes"
run "$edit" --set-file "x.y=$tmp/bytes" "$w"
test $rc -eq 1 && cmp "$m" "$w" && grep -q "'x.y'.*not UTF-8" "$tmp/err"
ok 'a string that is not UTF-8'
run "$edit" -q --force --set-file "x.y=$tmp/bytes" "$w"
test $rc -eq 0 && "$info" --key x.y "$w" | head -c 2 | cmp - "$tmp/bytes"
ok 'but with --force'

# Files as other programs write them.
fresh
run "$edit" "$w" general.name 'a = b'
test $rc -eq 0 && test "$("$info" --key general.name "$w")" = 'a = b'
ok 'FILE KEY VALUE'
run "$edit" --chat-template '{% u32:1 %}' -o "$tmp/t.gguf" "$w"
test $rc -eq 0 &&
    test "$("$info" --key tokenizer.chat_template "$tmp/t.gguf")" = '{% u32:1 %}'
ok '--chat-template'
run "$edit" --set 'tokenizer.ggml.tokens=arr[str]:["<s>", "=x", "</s>"]' \
    --special-token eos='</s>' --special-token 'unk==x' \
    --remove-metadata general.name --force -f -o "$tmp/t.gguf" "$w"
test $rc -eq 0 &&
    test "$("$info" --key tokenizer.ggml.eos_token_id "$tmp/t.gguf")" = 2 &&
    test "$("$info" --key tokenizer.ggml.unknown_token_id "$tmp/t.gguf")" = 1 &&
    ! "$info" --key general.name "$tmp/t.gguf" 2>"$tmp/err"
ok '--special-token, --remove-metadata'
run "$edit" --special-token bos '</s>' -q "$tmp/t.gguf" --special-token pad=\<s\> \
    --special-token eos '<s>'
test $rc -eq 0 &&
    test "$("$info" --key tokenizer.ggml.bos_token_id "$tmp/t.gguf")" = 2 &&
    test "$("$info" --key tokenizer.ggml.padding_token_id "$tmp/t.gguf")" = 0 &&
    test "$("$info" --key tokenizer.ggml.eos_token_id "$tmp/t.gguf")" = 0
ok '--special-token NAME TEXT, in two words'
run "$edit" --special-token eso '<s>' "$tmp/t.gguf"
test $rc -eq 2 && grep -q "'eso' is not the name of a special token; did you mean 'eos'" \
    "$tmp/err"
ok 'also of a name that is not one'
run "$info" --key tokenizer.ggml.oes_token_id "$tmp/t.gguf"
test $rc -eq 1 && grep -q "did you mean 'tokenizer.ggml.eos_token_id'" "$tmp/err"
ok 'a key that is not there: one that is like it'
run "$edit" --delete tokenizer.ggml.oes_token_id "$tmp/t.gguf"
test $rc -eq 1 && grep -q "did you mean 'tokenizer.ggml.eos_token_id'" "$tmp/err"
ok 'also one to delete'
# Several files: each by itself; a failure does not stop the others.
cp "$m" "$tmp/s1.gguf" && cp "$m" "$tmp/s2.gguf"
run "$edit" --set test.many=7 "$tmp/s1.gguf" "$tmp/s0.gguf" "$tmp/s2.gguf"
test $rc -eq 1 && grep -q 's0.gguf: ' "$tmp/err" &&
    test "$("$info" --key test.many "$tmp/s1.gguf")" = 7 &&
    test "$("$info" --key test.many "$tmp/s2.gguf")" = 7
ok 'several files'
rm -f "$tmp"/s[12].gguf
run "$edit" --special-token eos=nothing -o "$tmp/t2.gguf" "$w"
test $rc -eq 1 && grep -q "tokenizer.ggml.tokens has no token 'nothing'" \
    "$tmp/err"
ok '--special-token that is not there'
rm -f "$tmp/t.gguf"

# Keys that others depend on: refused with the key's name, done with --force.
"$mkmodel" "$tmp/base.gguf" n=2
"$edit" -q --set tokenizer.ggml.eos_token_id=7 \
    --set tokenizer.ggml.model=llama --set llama.embedding_length=256 \
    --set 'tokenizer.ggml.scores=arr[f32]:0,0,0,0,0,0,0,0' "$tmp/base.gguf" ||
    exit 99
while IFS='|' read -r key args; do
    rm -f "$w" && cp "$tmp/base.gguf" "$w"
    run "$edit" $args "$w"
    test $rc -eq 1 && cmp "$tmp/base.gguf" "$w" &&
        grep -q "refused: key '$key'" "$tmp/err" &&
        grep -q -e '--force does it anyway' "$tmp/err"
    ok "refused: $args"
    run "$edit" -q --force $args "$w"
    test $rc -eq 0 && ! cmp -s "$tmp/base.gguf" "$w" &&
        grep -q "warning: key '$key'" "$tmp/err"
    ok 'and done by force'
done <<'END'
general.architecture|--delete general.architecture
general.architecture|--set general.architecture=gpt2
general.architecture|--rename general.architecture=a.b
general.alignment|--set general.alignment=64
split.no|--set split.no=u16:0
split.count|--set split.count=u16:2
split.tensors.count|--set split.tensors.count=i32:2
llama.block_count|--delete llama.block_count
llama.context_length|--rename llama.context_length=llama.x
llama.context_length|--set llama.context_length=str:long
llama.embedding_length|--delete llama.embedding_length
tokenizer.ggml.model|--delete tokenizer.ggml.model
tokenizer.ggml.tokens|--delete tokenizer.ggml.tokens
tokenizer.ggml.tokens|--set tokenizer.ggml.tokens=arr[u8]:1,2,3,4,5,6,7,8
tokenizer.ggml.eos_token_id|--set tokenizer.ggml.eos_token_id=8
tokenizer.ggml.bos_token_id|--set tokenizer.ggml.bos_token_id=-1
tokenizer.ggml.bos_token_id|--set tokenizer.ggml.bos_token_id=str:a
tokenizer.ggml.eos_token_id|--set tokenizer.ggml.tokens=a,b,c
tokenizer.ggml.scores|--set tokenizer.ggml.tokens=a,b,c
tokenizer.ggml.scores|--set tokenizer.ggml.scores=1,2
tokenizer.ggml.token_type|--set tokenizer.ggml.token_type=arr[i32]:1
END
# Numbers that contradict the tensors, in a sound model.
mkdir "$tmp/fix" && "$builddir/tests/mkfix" "$tmp/fix" || exit 99
good=$tmp/fix/model-spm.gguf
while IFS='|' read -r arg message; do
    rm -f "$w" && cp "$good" "$w"
    run "$edit" --set "$arg" "$w"
    test $rc -eq 1 && cmp "$good" "$w" && test "$(wc -l <"$tmp/err")" -le 9 &&
        grep -q "refused: $message" "$tmp/err"
    ok "refused: $arg"
    run "$edit" -q --force --set "$arg" "$w"
    test $rc -eq 0 && grep -q "warning: $message" "$tmp/err" &&
        ! "$info" --check "$w" >"$tmp/out" 2>&1
    ok 'and done by force'
    run "$edit" -q --set general.name=x "$w"
    test $rc -eq 0 -a ! -s "$tmp/err"
    ok 'after which it is nothing new'
done <<'END'
llama.embedding_length=16|tensor 'token_embd.weight' has shape \[8, 262\]
llama.feed_forward_length=17|tensor 'blk.0.ffn_gate.weight' has shape
llama.attention.head_count=3|llama.attention.head_count is 3, must divide
llama.block_count=3|1 of 3 layers has no tensors
END
# Names of layers that no model has: other programs do not read such a file.
rm -f "$w" && cp "$good" "$w"
run "$edit" -q --set llama.block_count=1 "$w"
test $rc -eq 1 && cmp "$good" "$w" &&
    grep -q "refused: tensor 'blk.1.[a-z_.]*' is of layer 1, there are 1" \
        "$tmp/err"
ok 'refused: fewer layers than there are'
# Unknown names.
for name in bpe:tokenizer.ggml.pre=lama-bpe spm:tokenizer.ggml.model=lama; do
    rm -f "$w" && cp "$tmp/fix/model-${name%%:*}.gguf" "$w"
    run "$edit" --set "${name#*:}" "$w"
    test $rc -eq 1 && cmp "$tmp/fix/model-${name%%:*}.gguf" "$w" &&
        grep -q "refused: key 'tokenizer.ggml.[a-z]*' is 'lama" "$tmp/err"
    ok "refused: ${name#*:}"
    run "$edit" -q --force --set "${name#*:}" "$w"
    test $rc -eq 0 && grep -q 'warning: ' "$tmp/err"
    ok 'and done by force'
done
rm -f "$w" && cp "$tmp/fix/model-bpe.gguf" "$w"
run "$edit" --set tokenizer.ggml.pre=tekken "$w"
test $rc -eq 0
ok 'a name that others know'
# Again, if only one more file can be opened: standard streams, the model,
# and one descriptor to look for its journal.
rm -f "$w" && cp "$good" "$w"
few='refused without a temporary file, too'
if test -n "${EMULATOR-}"; then
    skip "$few" 'an emulator has files of its own'
else
    run sh -c 'ulimit -n 5; exec "$@"' sh "$edit" \
        --set llama.embedding_length=16 "$w"
    test $rc -eq 1 && cmp "$good" "$w" &&
        grep -q "refused: tensor 'token_embd.weight'" "$tmp/err"
    ok "$few"
fi
# An error in each of 40,000 layers is found in time (an emulator and
# sanitizers have ten times the limit).
"$mkmodel" "$tmp/deep.gguf" deep=40000 || exit 99
seconds=5
test -z "${EMULATOR-}${TEST_CFLAGS-}" || seconds=50
run sh -c 'ulimit -t "$1"; shift; exec "$@"' sh $seconds "$edit" -q \
    --set general.name=deep "$tmp/deep.gguf"
test $rc -eq 0 -a "$(key "$tmp/deep.gguf" general.name)" = deep
ok 'what is wrong in 40,000 layers before and after'
rm -f "$tmp/deep.gguf"
rm -f "$w" && cp "$good" "$w"
run "$edit" --set llama.context_length=64 --set llama.rope.freq_base=1e6 "$w"
test $rc -eq 0 && "$info" --check "$w" >"$tmp/out"
ok 'what is right may change'

run "$edit" --set tokenizer.ggml.eos_token_id=9 "$tmp/base.gguf"
grep -q "eos_token_id' is 9, expected a token from 0 to 7" "$tmp/err"
ok 'with the value, and what it may be'
for args in '--set llama.context_length=8192' '--delete general.file_type' \
    '--set tokenizer.ggml.bos_token_id=0' '--set general.alignment=32' \
    '--set tokenizer.ggml.scores=1,2,3,4,5,6,7,8'; do
    rm -f "$w" && cp "$tmp/base.gguf" "$w"
    run "$edit" -q $args "$w"
    test $rc -eq 0 -a ! -s "$tmp/err" && ! cmp -s "$tmp/base.gguf" "$w"
    ok "not refused: $args"
done
rm -f "$w" && cp "$tmp/base.gguf" "$w"
"$edit" -q --force --set tokenizer.ggml.eos_token_id=99 "$w" 2>"$tmp/err"
run "$edit" -q --set general.name=x "$w"
test $rc -eq 0 -a ! -s "$tmp/err"
ok 'what was wrong before is not complained about'
fresh
run "$edit" -q --force --set general.alignment=4096 "$w"
test $rc -eq 0 && "$info" --summary "$w" | grep -q 'alignment 4096$' &&
    same_tensors "$w"
ok 'another alignment: tensors stay the same'
for a in 0 33 4 str:x; do
    fresh
    run "$edit" --force --set general.alignment=$a "$w"
    test $rc -eq 1 && cmp "$m" "$w"
    ok "no alignment by force: $a"
done
for args in '--delete no.such' '--rename no.such=x' '--delete libgguf.padding' \
    '--rename general.name=test.big' '--set libgguf.padding=1' \
    '--set general.name=x --delete no.such'; do
    fresh
    run "$edit" --force $args "$w"
    test $rc -eq 1 && cmp "$m" "$w" && test "$(wc -l <"$tmp/err")" -eq 1
    ok "not even by force: $args"
done
esc=$(printf '\033[31m')
fresh
run "$edit" --delete "no$esc" "$w"
test $rc -eq 1 && grep -qF 'no\x1B[31m' "$tmp/err"
ok 'a key that is not there is escaped'
run "$edit" --set "no$esc=1" "$w"
test $rc -eq 1 && cmp "$m" "$w" &&
    ! LC_ALL=C grep -q "$(printf '\033')" "$tmp/err"
ok 'no key with control characters'

# Other outputs.
fresh
run "$edit" -q --set general.name=Out -o "$tmp/o.gguf" "$w"
test $rc -eq 0 -a "$(key "$tmp/o.gguf" general.name)" = Out && cmp "$m" "$w" &&
    same_tensors "$tmp/o.gguf"
ok '--output; the input stays'
run "$edit" --set general.name=Out2 -o "$tmp/o.gguf" "$w"
test $rc -eq 1 -a "$(key "$tmp/o.gguf" general.name)" = Out &&
    grep -q 'exists (--force replaces it)$' "$tmp/err"
ok 'nothing is overwritten'
run "$edit" -q --force --set general.name=Out2 -o "$tmp/o.gguf" "$w"
test $rc -eq 0 -a "$(key "$tmp/o.gguf" general.name)" = Out2
ok 'but with --force'
ln "$w" "$tmp/hard.gguf"
run "$edit" --force --set general.name=x -o "$tmp/hard.gguf" "$w"
test $rc -eq 1 && cmp "$m" "$w" && grep -q 'both input and output' "$tmp/err"
ok 'never the input under another name'
rm -f "$tmp/hard.gguf" "$tmp/o.gguf"
run "$edit" --set general.name=x -o "$tmp/no/such" "$w"
test $rc -eq 1 && grep -q 'no/such: ' "$tmp/err"
ok 'a folder that is not there'
ln -s f.gguf "$tmp/link.gguf"
run "$edit" -q --set general.name=Link "$tmp/link.gguf"
test $rc -eq 0 -a -h "$tmp/link.gguf" -a "$(key "$w" general.name)" = Link
ok 'a symbolic link stays one'
rm -f "$tmp/link.gguf"

run "$edit" --dry-run --set general.name=x --delete test.nan "$m"
cp "$m" "$w"
test $rc -eq 0 -a ! -s "$tmp/err" -a "$(wc -l <"$tmp/out")" -eq 2 &&
    grep -q "^set 'general.name' to str x (was" "$tmp/out" &&
    "$mkmodel" "$tmp/again.gguf" n=6 && cmp "$m" "$tmp/again.gguf"
ok '--dry-run lists the changes and writes nothing'
if test -c /dev/full; then
    run sh -c '"$1" -n --set general.name=x "$2" >/dev/full' sh "$edit" "$m"
    test $rc -eq 1 && grep -q 'standard output' "$tmp/err"
    ok 'a full disk under --dry-run is noticed'
    run "$edit" --force --set general.name=x -o /dev/full "$m"
    test $rc -eq 1 -a -c /dev/full
    ok '/dev/full cannot be an output'
else
    skip 'a full disk' 'no /dev/full'
fi

# Byte order stays.
"$mkmodel" "$tmp/big.gguf" big=1
"$edit" -q --set test.more=arr[u16]:258 --set general.name=Big "$tmp/big.gguf"
test "$("$info" --summary "$tmp/big.gguf" | grep -c -i 'big')" -ge 1 -a \
    "$(key "$tmp/big.gguf" test.more)" = 258 -a \
    "$(key "$tmp/big.gguf" test.big)" = 18446744073709551614
ok 'a big-endian file stays one'
run "$edit" -n --to-endian big "$m"
test $rc -eq 0 && grep -q '^little-endian becomes big-endian$' "$tmp/out" &&
    "$info" --summary "$m" | grep -q 'little-endian'
ok '--to-endian under --dry-run'
run "$edit" --to-endian big --set general.name=Turned -o "$tmp/be.gguf" "$m"
test $rc -eq 0 -a "$(key "$tmp/be.gguf" general.name)" = Turned -a \
    "$(key "$tmp/be.gguf" test.big)" = "$(key "$m" test.big)" &&
    "$info" --summary "$tmp/be.gguf" | grep -q ' big-endian' &&
    grep -q 'little-endian becomes big-endian' "$tmp/err"
ok '--to-endian big'
run "$info" --diff "$m" "$tmp/be.gguf"
test $rc -eq 1 -a "$(grep -c '^[-+] ' "$tmp/out")" -eq 2 &&
    grep -q '^+ str  general.name = Turned' "$tmp/out"
ok 'its values are the same, too'
"$info" --stats "$m" | sed 1d >"$tmp/le.stats"
"$info" --stats "$tmp/be.gguf" | sed 1d | cmp - "$tmp/le.stats" &&
    test "$(wc -l <"$tmp/le.stats")" -gt 6
ok 'its numbers are the same'
for t in blk.0.t0 blk.0.t1 blk.0.t2 blk.0.t3; do
    "$info" --values "$t" "$m" >"$tmp/le.values"
    "$info" --values "$t" "$tmp/be.gguf" | cmp - "$tmp/le.values" || break
done && test -s "$tmp/le.values"
ok 'one by one, too'
run "$edit" -q --to-endian little --set "general.name=$(key "$m" general.name |
    printf '%b' "$(cat)")" "$tmp/be.gguf"
test $rc -eq 0 && "$info" --summary "$tmp/be.gguf" | grep -q 'little-endian' &&
    same_tensors "$tmp/be.gguf"
ok '--to-endian little'
fresh
"$edit" -q --to-endian big "$w" && ! cmp -s "$m" "$w" &&
    "$edit" -q --to-endian little "$w" && cmp "$m" "$w"
ok 'there and back: the same file'
run "$edit" --to-endian little "$w"
test $rc -eq 0 && grep -q 'nothing was written' "$tmp/err"
ok 'a file that has that order'
run "$edit" --in-place --to-endian big "$w"
test $rc -eq 2 && cmp "$m" "$w"
ok 'not in place'
run "$edit" --to-endian middle "$w"
test $rc -eq 2 && cmp "$m" "$w" && grep -q "'middle'" "$tmp/err"
ok 'no other order'
# A legitimate file that exceeds a limit.
while read -r name limit; do
    f=$tmp/fix/$name.gguf
    run "$edit" --set a.b=1 -o "$tmp/limit.gguf" "$f"
    test $rc -eq 1 -a ! -e "$tmp/limit.gguf" && grep -q limit "$tmp/err" &&
        run "$edit" -q --limit "$limit" --set a.b=1 -o "$tmp/limit.gguf" "$f" &&
        test "$rc$("$info" --limit "$limit" --key a.b "$tmp/limit.gguf")" = 01
    ok "$name, with --limit $limit"
    rm -f "$tmp/limit.gguf"
done <<'END'
bad-name-65 name-size=65
bad-dims-5 dims=5
bad-depth-9 depth=9
END
run "$edit" --limit kv=x --set a.b=1 "$m"
test $rc -eq 2 && run "$edit" --limit nothing=1 --set a.b=1 "$m" &&
    test $rc -eq 2
ok 'no such limit'

# Malformed command lines.
for args in '' "$m" "--set general.name=x" "--set general.name $m" \
    "--set =x $m" "--rename a $m" "--rename =a $m" "--set-file a $m" \
    "--recover --set a=1 $m" '--recover' "--in-place --copy --set a=1 $m" \
    "--in-place --set a=1 -o $tmp/x $m" "--set a=1 -o $tmp/x $m $m" "$m $m" \
    "--set a=1 -o - $m"; do
    run "$edit" $args
    test $rc -eq 2 -a ! -s "$tmp/out" && test "$(wc -l <"$tmp/err")" -eq 1
    ok "wrong usage: '$(echo "$args" | sed "s#$tmp/##g")'"
done
run "$edit" --set a.b=1 "$tmp/nothing"
test $rc -eq 1 && grep -q 'nothing: ' "$tmp/err"
ok 'a file that is not there'
head -c 100 "$m" >"$tmp/cut.gguf"
run "$edit" --set a.b=1 "$tmp/cut.gguf"
test $rc -eq 1 && test "$(wc -c <"$tmp/cut.gguf")" -eq 100
ok 'a file that is truncated'

# Files made to break readers: an edit fails in one line, or its output is as
# sound as its input.
h=$tmp/hostile
mkdir "$h" && "$mkhostile" "$h"
ok 'hostile files are made'
bad=
for g in "$h"/*.gguf; do
    rm -f "$tmp/x.gguf"
    run "$edit" --set test.edit=1 -o "$tmp/x.gguf" "$g"
    if test $rc -eq 0; then
        test "$(key "$tmp/x.gguf" test.edit)" = 1 || bad="$bad ${g##*/}"
    else
        test $rc -eq 1 -a ! -e "$tmp/x.gguf" || bad="$bad ${g##*/}"
    fi
    LC_ALL=C grep -q "$(printf '\033')" "$tmp/err" && bad="$bad ${g##*/}!"
done
echo "$bad" >"$tmp/out"
test -z "$bad"
ok 'hostile files'
done_testing
