#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-info: contents and forms of its output, and its exit status.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
info=$bin/gguf-info
m=$tmp/model.gguf
"$mkmodel" "$m" || exit 99

run "$info" "$m"
test $rc -eq 0 -a "$(wc -l <"$tmp/err")" -eq 1 &&
    grep -q "'test.nested': 1 of 1 strings, first \[1\], is not UTF-8" "$tmp/err"
ok 'a model is shown, and a text in it that is not UTF-8 warned of'
LC_ALL=C grep -q "$(printf '\033')" "$tmp/out"
test $? -eq 1
ok 'no escape of the file reaches the output'
grep -q 'Test \\x1B\[31m\\\\ model\\n' "$tmp/out"
ok 'text is escaped'
grep -q '^  arr\[2\] *test.nested *\[\[-1, 7\], \["a\\xFFb\\""\]\]$' "$tmp/out"
ok 'nested arrays'
grep -q '^  u64 *test.big *18446744073709551614$' "$tmp/out"
ok 'large integers are exact'
grep -q '^  str\[8\] .*"tok5", ... 8 in all\]$' "$tmp/out"
ok 'arrays are cut, with their length'
grep -q '^  blk.0.t3  256 x 4  Q4_K  *576 B  ' "$tmp/out"
ok 'tensors are listed'
grep -q '^  quantization *Q4_K_M$' "$tmp/out" &&
    grep -q '^  parameters *8.19 K (8192)$' "$tmp/out" &&
    grep -q '^  context length *4096$' "$tmp/out"
ok 'the summary'
grep -q '^  Q8_0 *2 *2048 *2.12 KiB *13.9%  *8.500$' "$tmp/out"
ok 'totals by type'
for r in "$srcdir"/share/recipes/*.recipe; do
    number=$(sed -n 's/^ftype //p' "$r")
    test -n "$number" || continue
    "$bin/gguf-edit" -qf -o "$tmp/typed.gguf" \
        --set general.file_type=u32:$number "$m" 2>/dev/null
    "$info" -q --summary "$tmp/typed.gguf" |
        grep -q "^  quantization *$(sed -n 's/^name //p' "$r")\$" ||
        echo "$r: $number"
done >"$tmp/out"
test ! -s "$tmp/out"
ok 'the summary knows the number of every recipe'

esc=$(printf '\033')
run "$info" --color=always "$m"
LC_ALL=C grep -q "^$esc\[1mTensor types$esc\[0m\$" "$tmp/out" &&
    ! LC_ALL=C grep "$esc" "$tmp/out" | LC_ALL=C grep -qv "^$esc\[[0-9;]*m"
ok '--color=always: headings stand out, and nothing else'
run "$info" --color=often "$m"
test $rc -eq 2
ok '--color=often: a usage error'
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    for no in '' 1; do
        TERM=xterm NO_COLOR=$no script -qec "'$info' '$m'" /dev/null \
            </dev/null >"$tmp/tty$no" 2>&1
    done
    LC_ALL=C grep -q "^$esc\[1mTensor types" "$tmp/tty" &&
        ! LC_ALL=C grep -q "$esc" "$tmp/tty1"
    ok 'colours on a terminal, unless NO_COLOR'
else
    skip 'colours on a terminal' 'there is no script(1), or no terminal'
fi

# Values go from the JSON document back to the file without a loss through
# double.
big=$("$info" --json "$m" |
    sed -n '/"test.big"/,/}/s/.*"value": *\([0-9]*\).*/\1/p' | head -1)
cp "$m" "$tmp/big.gguf"
run "$bin/gguf-edit" --quiet --set "test.big=u64:$big" "$tmp/big.gguf"
test "$big" = 18446744073709551614 -a $rc -eq 0 && cmp -s "$m" "$tmp/big.gguf"
ok 'JSON: numbers above 2^53 survive a round trip'

run "$info" --metadata --arrays=all --strings=4 "$m"
grep -q '"tok7"\]$' "$tmp/out" && grep -q 'llam... (5 bytes)$' "$tmp/out" &&
    test "$(grep -c blk "$tmp/out")" -eq 0
ok '--metadata, --arrays=all, --strings'
run "$info" '--tensors=*.t[37]' --sort=name "$m"
test "$(grep -c ' 256 x 4 ' "$tmp/out")" -eq 2
ok '--tensors=GLOB'
run "$info" --tensors='none*' "$m"
test $rc -eq 1 && grep -q "no tensor's name matches 'none\*'" "$tmp/err"
ok '--tensors=GLOB that matches nothing is an error'
run "$info" --tensors --sort=size "$m"
test "$(awk '/256 x 4/ { print $1; exit }' "$tmp/out")" = blk.0.t0 &&
    test "$(awk '/256 x 4/ { print $1 }' "$tmp/out" | tail -1)" = blk.1.t7
ok '--sort=size'

run "$info" --memory "$m"
test $rc -eq 0 && grep -q '^  cache for 4096 tokens  *unknown' "$tmp/out"
ok '--memory of a model that lacks the keys'
tiny=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
if test -f "$tiny"; then
    # 6 layers, 4 heads, 32 + 32 numbers, 2 bytes: 3072 for each token.
    run "$info" --memory --ctx-size 100 "$tiny"
    test $rc -eq 0 && grep -q '^  cache for 100 tokens .*(307200 bytes' "$tmp/out"
    ok '--memory -c'
    grep -q '^  total .*bytes)$' "$tmp/out"
    ok '--memory: a total'
    run "$info" --memory -c 1k --cache-type q8_0 "$tiny"
    # 34 bytes for 32 of the 6 * 4 * 64 numbers of each of 1024 tokens
    test $rc -eq 0 &&
        grep -q '^  cache for 1024 tokens .*(1671168 bytes, Q8_0)' "$tmp/out"
    ok '--cache-type, -c 1k'
    run "$info" --memory --ctx-size 100 "$tiny"
    grep -Eq '^  buffers for 512 tokens  [0-9.]+ [KM]iB \([0-9]+ bytes\)' \
        "$tmp/out"
    ok '--memory plans the computation'
    set -- $("$info" --json --memory -c 100 "$tiny" |
        sed -n 's/.*"\(cache\|compute\|session\)": \([0-9]*\).*/\2/p')
    grep -Eq "^  session .*\($3 bytes, on one thread\)" "$tmp/out" &&
        test "$3" -gt $(($1 + $2))
    ok '--memory says what a session takes in all'
    "$info" --json --memory "$tiny" | sed -n '/"memory"/,$p' >"$tmp/whole"
    "$bin/gguf-split" -q --split-max-tensors 19 "$tiny" "$tmp/tiny"
    "$info" --json --memory "$tmp/tiny" | sed -n '/"memory"/,$p' |
        cmp -s - "$tmp/whole" && grep -q '"compute": [1-9]' "$tmp/whole"
    ok '--memory of a split model, as of the whole'
    # Programs with sanitizers need more to start, and an emulator needs more
    # for itself.
    if test -z "${EMULATOR-}" &&
        (ulimit -v 200000 && exec "$info" --version) >"$tmp/out" 2>&1; then
        (ulimit -v 200000 && exec "$info" --memory -c 8000000 "$tiny") \
            >"$tmp/out" 2>"$tmp/err" &&
            grep -q '^  cache for 8000000 tokens  22.9 GiB' "$tmp/out"
        ok '--memory plans, and allocates nothing'
    else
        skip '--memory plans, and allocates nothing' 'no limit on memory'
    fi
fi

run "$info" --key=llama.context_length "$m"
test $rc -eq 0 -a "$(cat "$tmp/out")" = 4096
ok '--key of a number'
run "$info" --key general.name "$m"
printf 'Test \033[31m\\ model\n\n' | cmp -s - "$tmp/out"
ok '--key of a string gives its bytes'
run "$info" --key tokenizer.ggml.tokens "$m"
test "$(wc -l <"$tmp/out")" -eq 8 -a "$(tail -1 "$tmp/out")" = tok7
ok '--key of an array gives a line each'
run "$info" --raw --key general.name "$m"
test $rc -eq 0 && printf 'Test \033[31m\\ model\n' | cmp - "$tmp/out"
ok '--raw: the bytes and nothing else'
run "$info" --raw --key llama.context_length "$m"
test $rc -eq 1 -a ! -s "$tmp/out" && grep -q 'llama.context_length' "$tmp/err"
ok '--raw of a number'
run "$info" --key nothing "$m"
test $rc -eq 1 -a ! -s "$tmp/out" && test "$(wc -l <"$tmp/err")" -eq 1
ok '--key that is not there'

run "$info" --summary "$m"
test $rc -eq 0 &&
    grep -Eq '^  tensor types  *F32 8.00 KiB, F16 [0-9.]+ KiB, Q8_0 [0-9.]+ KiB, Q4_K ' \
        "$tmp/out"
ok 'the summary has sizes by tensor type'
for o in --stats --memory --types; do
    run "$info" --markdown $o "$m"
    grep -q '^|:---|' "$tmp/out" && ! grep -q '^  ' "$tmp/out"
    ok "--markdown $o is a table"
done
run "$info" --markdown --check "$m"
grep -q '^- [a-z]*: ' "$tmp/out" && ! grep -q '^  ' "$tmp/out"
ok '--markdown --check is a list'
run "$info" --markdown --check --color=always "$m"
! LC_ALL=C grep -q "$esc" "$tmp/out"
ok '--markdown has no colours'
run "$info" --markdown "$m"
grep -q '^## Tensors: 8$' "$tmp/out" && grep -q '^|:---|:---|:---|---:|' "$tmp/out"
ok '--markdown'

# The JSON is read by other programs.
run "$info" --json "$m"
cp "$tmp/out" "$tmp/json"
if python3 -c '' 2>/dev/null; then
    python3 - "$tmp/json" <<'EOF' 2>"$tmp/err"
import json, sys
d = json.load(open(sys.argv[1]))
m = d["metadata"]
assert m["test.big"] == {"type": "u64", "value": 2**64 - 2}
assert m["test.float"]["value"] == 0.1
assert m["test.nan"]["value"] is None
assert m["test.nested"]["value"] == [[-1, 7], ["a\ufffdb\""]]
assert m["general.name"]["value"] == "Test \x1b[31m\\ model\n"
assert m["tokenizer.ggml.tokens"]["length"] == 8
assert len(m["tokenizer.ggml.tokens"]["value"]) == 8
assert d["summary"]["quantization"] == "Q4_K_M"
assert d["summary"]["parameters"] == sum(t["elements"] for t in d["tensors"])
assert [t["name"] for t in d["tensors"]][-1] == "blk.1.t7"
t = d["tensors"][3]
assert (t["shape"], t["type"], t["size"]) == ([256, 4], "Q4_K", 576)
assert d["size"] == d["files"][0]["size"]
assert d["files"][0]["alignment"] == 32
EOF
    ok '--json says the same as the file'
    run "$info" --json "$m" "$m"
    python3 -c 'import json, sys; assert len(json.load(sys.stdin)) == 2' \
        <"$tmp/out"
    ok '--json of two files is one document'
    run "$info" --json --key=test.nested "$m"
    python3 -c 'import json, sys; assert json.load(sys.stdin)[0] == [-1, 7]' \
        <"$tmp/out"
    ok '--json --key'
    run "$info" --json --arrays=1 "$m"
    python3 -c 'import json, sys
m = json.load(sys.stdin)["metadata"]["tokenizer.ggml.tokens"]
assert m["length"] == 8 and m["value"] == ["tok0"]' <"$tmp/out"
    ok '--json --arrays=1'
    schema=$srcdir/share/gguf-info.schema.json
    for o in --json '--json --summary' '--json --types --tensors=blk*'; do
        "$info" $o "$m" >"$tmp/doc"
        run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/doc"
        test $rc -eq 0
        ok "$o keeps to the schema"
    done
    "$info" --json "$m" "$m" >"$tmp/doc"
    run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/doc"
    test $rc -eq 0
    ok 'two files keep to the schema'
    head -c $(($(wc -c <"$m") - 100)) "$m" >"$tmp/short.gguf"
    run "$info" "$tmp/short.gguf"
    test $rc -eq 1 &&
        grep -q "the file has $(wc -c <"$tmp/short.gguf") bytes and should have $(wc -c <"$m")\$" \
            "$tmp/err"
    ok 'a file that is cut off: how long it is, and how long it should be'
    for o in '' "$m"; do
        "$info" --check --json "$tmp/short.gguf" $o >"$tmp/doc" 2>"$tmp/err"
        run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/doc"
        test $rc -eq 0 && grep -q '"code": "truncated"' "$tmp/doc" &&
            grep -q '"offset": [0-9]' "$tmp/doc"
        ok "--check of a file that does not open${o:+, and another}"
    done
    mkdir "$tmp/gap"
    "$bin/gguf-split" -q --split-max-tensors 3 "$m" "$tmp/gap/x"
    rm "$tmp/gap/x-00002-of-00003.gguf"
    for o in "$tmp/gap" "$tmp/gap/x" "$tmp/gap $m"; do
        run "$info" --check --json $o
        cp "$tmp/out" "$tmp/doc"
        good=$rc
        run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/doc"
        test $rc -eq 0 -a "$good" -eq 1 &&
            grep -q '"code": "broken-set"' "$tmp/doc" &&
            grep -q '"message": "1 of 3 shards of .x. is missing: 2"' \
                "$tmp/doc"
        ok "--check of a set without its second shard: ${o#"$tmp/"}"
    done
    run "$info" --check --json "$tmp/no.such.file"
    test $rc -eq 1 -a ! -s "$tmp/out"
    ok '--check of a file that is not there'
    echo '[{"path": "x", "size": 1}]' >"$tmp/no"
    run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/no"
    test $rc -eq 1
    ok 'what lacks files does not'
else
    skip '--json is read by another program' 'no python3'
fi

# A figure that does not fit 64 bits is left out.
"$bin/gguf-edit" -q -f --set general.architecture=gargantua \
    --set gargantua.context_length=u32:4294967295 \
    --set gargantua.block_count=u32:65535 \
    --set gargantua.attention.head_count_kv=u32:65535 \
    --set gargantua.attention.key_length=u32:65535 \
    --set gargantua.attention.value_length=u32:65535 -o "$tmp/huge.gguf" "$m"
run "$info" -q --memory "$tmp/huge.gguf"
test $rc -eq 0 && grep -q '^  cache for 4294967295 tokens  *unknown' "$tmp/out"
ok '--memory of numbers that are too large'

# A file that is truncated while it is read: the pipe is full, so that the
# program waits in the middle of it.
"$mkmodel" "$tmp/cut.gguf" n=1 rows=16384
if mkfifo "$tmp/fifo"; then
    { "$info" -q --values=blk.0.t0 "$tmp/cut.gguf" >"$tmp/fifo" 2>"$tmp/err"
      echo $? >"$tmp/rc"; } &
    exec 3<"$tmp/fifo"
    dd bs=1 count=1 <&3 >"$tmp/out" 2>/dev/null
    dd if=/dev/null of="$tmp/cut.gguf" bs=1 seek=4096 2>/dev/null
    cat <&3 >/dev/null
    exec 3<&-
    wait
    test "$(cat "$tmp/rc")" -eq 1 && test "$(wc -l <"$tmp/err")" -eq 1 &&
        grep -q '^gguf-info: a file became shorter' "$tmp/err"
    ok 'a file that is cut off while it is read'
    "$mkmodel" "$tmp/cut.gguf" n=1 rows=16384
    { "$info" -q --values=blk.0.t0 "$tmp/cut.gguf" >"$tmp/fifo" 2>"$tmp/err" &
      echo $! >"$tmp/pid"
      wait $!
      echo $? >"$tmp/rc"; } &
    exec 3<"$tmp/fifo"
    dd bs=1 count=1 <&3 >"$tmp/out" 2>/dev/null
    until test -s "$tmp/pid"; do sleep 1; done
    kill -TERM "$(cat "$tmp/pid")"
    size=$(cat <&3 | wc -c)
    exec 3<&-
    wait
    test "$(cat "$tmp/rc")" -gt 128 -a "$size" -lt 1000000
    ok '--values is stopped by one signal'
else
    skip 'a file that is cut off while it is read' 'no mkfifo'
fi
rm -f "$tmp/cut.gguf"

# Options that read tensor data. m2 differs from m in one byte of the last
# tensor.
m2=$tmp/other.gguf
size=$(wc -c <"$m")
cp "$m" "$m2"
printf '\001' | dd of="$m2" bs=1 seek=$((size - 100)) conv=notrunc 2>/dev/null
run "$info" --stats "$m"
test $rc -eq 0 && test "$(grep -c ']$' "$tmp/out")" -eq 8 &&
    grep -q '^  blk.0.t2 *Q8_0 ' "$tmp/out"
ok '--stats'
run "$info" -t 3 '--stats=*.t5' "$m"
test $rc -eq 0 && test "$(grep -c ']$' "$tmp/out")" -eq 1
ok '--stats=GLOB'
run "$info" --values=blk.0.t2 "$m"
test $rc -eq 0 -a "$(wc -l <"$tmp/out")" -eq 4 -a \
    "$(head -1 "$tmp/out" | wc -w)" -eq 256
ok '--values: a line for each row'
# One I64 of 2^63 - 1 and one of -2^53 - 1, one F64 of 1e300 and one of 0.1.
u='\0\0\0\0\0\0\0'
{
    printf "GGUF\3\0\0\0\2$u\0$u"
    printf "\1${u}a\1\0\0\0\2$u\033\0\0\0\0$u"
    printf "\1${u}b\1\0\0\0\2$u\034\0\0\0\040$u\0\0\0\0\0\0"
    printf '\377\377\377\377\377\377\377\177\377\377\377\377\377\377\337\377'
    printf "\0$u\0$u"
    printf '\234\165\000\210\074\344\067\176\232\231\231\231\231\231\271\077'
} >"$tmp/wide.gguf"
"$info" -q --values=a "$tmp/wide.gguf" >"$tmp/out" 2>"$tmp/err" &&
    "$info" -q --values=b "$tmp/wide.gguf" >>"$tmp/out" 2>"$tmp/err"
printf '9223372036854775807 -9007199254740993\n1e+300 0.1\n' | cmp - "$tmp/out"
ok '--values of what no float holds'
"$bin/gguf-edit" -q --to-endian big -o "$tmp/wide-be.gguf" "$tmp/wide.gguf" &&
    "$info" -q --values=a "$tmp/wide-be.gguf" >"$tmp/be" &&
    "$info" -q --values=b "$tmp/wide-be.gguf" >>"$tmp/be" &&
    cmp "$tmp/out" "$tmp/be"
ok '--values of them in a big-endian file'
"$bin/gguf-edit" -q --to-endian big -o "$tmp/be.gguf" "$m"
run "$info" --diff "$m" "$tmp/be.gguf"
test $rc -eq 0 -a ! -s "$tmp/out"
ok '--diff: another byte order does not count as different'
for o in '--json --values x' '--json --manifest x' '--markdown --key x' \
    '--markdown --values x' '--markdown --manifest x' '--raw' \
    '--raw --json --key x'; do
    run "$info" $o "$m"
    test $rc -eq 2 -a ! -s "$tmp/out"
    ok "$o is wrong usage"
done
"$bin/gguf-split" -q --split-max-tensors 3 "$m" "$tmp/set" || exit 99
run "$info" --memory "$tmp/set"
test $rc -eq 0 && grep -q ' unknown for this kind of model$' "$tmp/out"
ok '--memory of a split model that cannot be evaluated'
run "$info" --values=nothing "$m"
test $rc -eq 1 -a ! -s "$tmp/out"
ok '--values of a tensor that is not there'
run "$info" --check "$m"
test $rc -eq 0 && grep -q '^  0 errors, ' "$tmp/out"
ok '--check of a sound file'
head -c 64 /dev/zero >"$tmp/zeros"
run "$info" --check "$tmp/zeros"
test $rc -eq 1 && grep -q '^  1 error, 0 warnings, 0 notes' "$tmp/out"
ok 'one error is no errors'
cp "$m" "$tmp/nan.gguf"
off=$("$info" --tensors=blk.0.t0 "$m" | awk '/F32/ { print $NF }')
printf '\000\000\300\177' |
    dd of="$tmp/nan.gguf" bs=1 seek="$off" conv=notrunc 2>/dev/null
run "$info" --check "$tmp/nan.gguf"
test $rc -eq 1 && grep -q "^  error: .*blk.0.t0" "$tmp/out"
ok '--check finds a NaN'
run "$info" --check=header "$tmp/nan.gguf"
test $rc -eq 0
ok '--check=header does not look'
run "$info" --stats=blk.0.t0 "$tmp/nan.gguf"
test $rc -eq 0 && awk '/blk.0.t0/ { exit $9 != 1 }' "$tmp/out"
ok '--stats counts it'
run "$info" --table "$m" "$m2" "$tmp/none.gguf"
test $rc -eq 1 -a "$(wc -l <"$tmp/out")" -eq 3 &&
    grep -q '^file  *architecture  *weights ' "$tmp/out" &&
    grep -q "^$m  *llama " "$tmp/out" && grep -q "^$m2  *llama " "$tmp/out" &&
    grep -q 'none.gguf' "$tmp/err"
ok '--table: a line for each file, and what does not open'
run "$info" --table --markdown "$m" "$m2"
test $rc -eq 0 -a "$(grep -c '^|.*|$' "$tmp/out")" -eq 4
ok '--table --markdown'
"$bin/gguf-edit" -q --set llama.rope.scaling.type=yarn \
    --set llama.rope.scaling.factor=f32:4 --chat-template '{{ x }}' \
    --set llama.rope.scaling.original_context_length=32768 \
    -f -o "$tmp/rope.gguf" "$m"
run "$info" --summary "$tmp/rope.gguf"
test $rc -eq 0 && grep -q 'rope scaling *yarn, 4 times 32768 tokens$' "$tmp/out" &&
    grep -q 'chat template *7 bytes$' "$tmp/out"
ok 'rope scaling and the chat template are in the summary'
for a in xxh64 xxh3-128; do
    "$info" --hash=$a "$m" >"$tmp/manifest"
    test "$(wc -l <"$tmp/manifest")" -eq 9
    ok "--hash=$a: a line for each tensor and one for the model"
    run "$info" --manifest "$tmp/manifest" "$m"
    test $rc -eq 0 && grep -q '9 of 9 checksums are right' "$tmp/err"
    ok "--manifest: they are right"
    run "$info" --manifest - "$m" <"$tmp/manifest"
    test $rc -eq 0 && grep -q '9 of 9' "$tmp/err"
    ok "--manifest: from standard input"
    run "$info" --manifest "$tmp/manifest" "$m2"
    test $rc -eq 1 && grep -q "tensor 'blk.1.t7': the data differs" "$tmp/err" &&
        test "$(wc -l <"$tmp/err")" -eq 3
    ok "--manifest: the tensor and the model that are not"
done
"$info" --hash=sha256 "$m" >"$tmp/whole"
sha256sum "$m" | cmp -s - "$tmp/whole"
ok '--hash=sha256: what sha256sum prints'
run "$info" --manifest "$tmp/whole" "$m"
test $rc -eq 0 && grep -q '1 of 1 checksums' "$tmp/err"
ok '--manifest: of a whole file'
cp "$m" "$tmp/edited.gguf"
"$bin/gguf-edit" -q --set general.name=other "$tmp/edited.gguf"
"$info" --hash "$m" >"$tmp/manifest2"
run "$info" --manifest "$tmp/manifest2" "$tmp/edited.gguf"
test $rc -eq 0
ok '--manifest: digests of tensors do not cover metadata'
run "$info" --manifest "$tmp/whole" "$tmp/edited.gguf"
test $rc -eq 1 && grep -q 'the file differs from the manifest' "$tmp/err"
ok '--manifest: those of whole files do'
{ echo 'SHA256 sums'; cat "$tmp/whole"; } >"$tmp/manifest2"
echo "$(printf '%064d' 0) *elsewhere/edited.gguf" >>"$tmp/whole"
run "$info" --manifest "$tmp/whole" "$m"
test $rc -eq 0
ok '--manifest: the line of the file, of several'
run "$info" --manifest "$tmp/whole" "$tmp/nan.gguf"
test $rc -eq 1 && grep -q 'nan.gguf: is not in the manifest' "$tmp/err"
ok '--manifest: a file that it does not name'
sha256sum "$m" "$m2" >"$tmp/whole"
"$info" -q --hash=sha256 "$m" "$m2" | cmp -s - "$tmp/whole"
ok '--hash=sha256: of several files, without lines between'
"$info" --hash=sha256 --json "$m" >"$tmp/out" &&
    grep -q "$(sha256sum <"$m" | cut -c1-64)" "$tmp/out"
ok '--hash=sha256 --json'
sed 's/t3$/t33/' "$tmp/manifest" >"$tmp/manifest2"
run "$info" --manifest "$tmp/manifest2" "$m"
test $rc -eq 1 && grep -q '1 tensor of the manifest is missing' "$tmp/err"
ok '--manifest: a tensor that is not there'
odd="$tmp/odd
name.gguf"
cp "$m" "$odd"
"$info" --hash "$odd" >"$tmp/manifest2"
run "$info" --manifest "$tmp/manifest2" "$odd"
test $rc -eq 0 && test "$(wc -l <"$tmp/manifest2")" -eq 9
ok '--hash: a line for each, also if the name of the file has a line break'
echo 'not a manifest' >"$tmp/manifest2"
run "$info" --manifest "$tmp/manifest2" "$m"
test $rc -eq 1
ok '--manifest of another format'
run "$info" --hash=md5 "$m"
test $rc -eq 2
ok 'an unknown algorithm: a usage error'
run "$info" --diff "$m" "$m"
test $rc -eq 0 -a ! -s "$tmp/out" -a ! -s "$tmp/err"
ok '--diff of a model and itself'
run "$info" --diff --tensors='*.t7' "$m" "$m2"
test $rc -eq 1 && grep -q '^blk.1.t7 ' "$tmp/out"
ok '--diff --tensors=GLOB: the tensor that differs'
run "$info" --diff --tensors='*.t3' "$m" "$m2"
test $rc -eq 0 -a ! -s "$tmp/out"
ok 'and others, which do not'
run "$info" --diff --metadata "$m" "$m2"
test $rc -eq 0 -a ! -s "$tmp/out"
ok '--diff --metadata: no tensor is compared'
run "$info" --diff --tensors='nothing*' "$m" "$m2"
test $rc -eq 1 && grep -q "no tensor's name matches 'nothing" "$tmp/err"
ok '--diff with a pattern that matches nothing'
"$bin/gguf-split" -q --split-max-tensors 3 "$m" "$tmp/sp"
run "$info" --diff "$m" "$tmp/sp"
test $rc -eq 0 -a ! -s "$tmp/out"
ok '--diff: what splitting changes is no difference'
rm -f "$tmp"/sp-0*
run "$info" --diff "$m" "$m2"
test $rc -eq 1 -a "$(wc -l <"$tmp/out")" -eq 2 && grep -q '^blk.1.t7 ' "$tmp/out"
ok '--diff finds the tensor'
"$mkmodel" "$tmp/more.gguf" n=9 rows=5 kv=2
run "$info" --diff "$m" "$tmp/more.gguf"
test $rc -eq 1 && grep -q '^+ u32  test.more.1 = 1$' "$tmp/out" &&
    grep -q '^- blk.0.t0 F32 256 x 4$' "$tmp/out" &&
    grep -q '^+ blk.0.t0 F32 256 x 5$' "$tmp/out" &&
    grep -q '^+ blk.2.t8 F32 256 x 5$' "$tmp/out"
ok '--diff shows keys, shapes, and what is in one only'
run "$info" --diff "$m"
test $rc -eq 2
ok '--diff of one file: a usage error'
if python3 -c '' 2>/dev/null; then
    for o in --memory --stats --check --hash "--diff $m2" "--diff $tmp/more.gguf"; do
        "$info" --json $o "$m" >"$tmp/doc"
        run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/doc"
        test $rc -eq 0
        ok "${o%% *} --json keeps to the schema"
    done
fi

"$mkmodel" "$tmp/big.gguf" b=1 a=64
run "$info" "$tmp/big.gguf"
test $rc -eq 0 && grep -q 'v3, big-endian, alignment 64' "$tmp/out" &&
    grep -q '^  u64 *test.big *18446744073709551614$' "$tmp/out"
ok 'a big-endian file'

# Failures.
head -c 400 "$m" >"$tmp/cut.gguf"
run "$info" "$tmp/cut.gguf"
test $rc -eq 1 -a ! -s "$tmp/out" && test "$(wc -l <"$tmp/err")" -eq 1 &&
    grep -q '^gguf-info: .*cut.gguf: .*byte [0-9]' "$tmp/err"
ok 'a truncated file: one line with the byte, status 1'
run "$info" "$tmp/cut.gguf" "$m"
test $rc -eq 1 && grep -q blk.1.t7 "$tmp/out"
ok 'the other files are shown all the same'
run "$info" "$tmp/none.gguf"
test $rc -eq 1 && grep -q 'none' "$tmp/err"
ok 'a file that is not there'
run "$info"
test $rc -eq 2 -a ! -s "$tmp/out" && test "$(wc -l <"$tmp/err")" -eq 1
ok 'no file: a usage error'
run "$info" --sort=colour "$m"
test $rc -eq 2
ok 'a wrong word: a usage error'
run "$info" --limit kv=5 "$m"
test $rc -eq 1 && grep -q 'limit' "$tmp/err"
ok '--limit'
if test -c /dev/full; then
    "$info" "$m" >/dev/full 2>"$tmp/err"
    test $? -eq 1 && grep -q 'standard output' "$tmp/err"
    ok 'a full disk is noticed'
fi
cat "$m" "$m" >"$tmp/long.gguf"
run "$info" "$tmp/long.gguf"
test $rc -eq 0 && grep -q 'warning: .* bytes after' "$tmp/err"
ok 'bytes after the data: a warning'
run "$info" -q "$tmp/long.gguf"
test ! -s "$tmp/err"
ok '--quiet: no warning'

# Findings about each fixture, which do not depend on the byte order.
findings() # file: codes and names
{
    "$info" --check=header "$1" | sed -n 's/^  \([a-z]*: [a-z0-9-]*\):.*/\1/p' |
        grep -v -e 'note: big-endian'
}
mkdir "$tmp/fix"
"$builddir/tests/mkfix" "$tmp/fix" || exit 99
for f in "$tmp"/fix/model-*.gguf; do
    "$bin/gguf-edit" -q --to-endian big -o "$tmp/fix/be" "$f" 2>"$tmp/err" ||
        continue
    findings "$f" >"$tmp/le"
    findings "$tmp/fix/be" >"$tmp/be"
    cmp -s "$tmp/le" "$tmp/be" && echo "${f##*/}"
    rm -f "$tmp/fix/be"
done >"$tmp/out"
test "$(wc -l <"$tmp/out")" -eq "$(ls "$tmp"/fix/model-*.gguf | wc -l)"
ok "$(wc -l <"$tmp/out") models have the same findings in the other byte order"
run "$info" --check=header "$tmp/fix/model-merge-unknown.gguf"
test $rc -eq 0 &&
    grep -q "^  warning: unknown-merge: .* 'z x' (byte [0-9]*)$" "$tmp/out"
ok '--check: severity, code, message, byte'
run "$info" --check=header "$tmp/fix/model-norm-short.gguf"
test $rc -eq 1 && grep -q \
    "^  error: tensor-shape: tensor 'blk.1.ffn_norm.weight' .*(byte" "$tmp/out"
ok '--check: an error is a failure'
run "$info" --summary "$tmp/fix/model-norm-short.gguf"
test $rc -eq 0 && grep -q "warning: tensor 'blk.1.ffn_norm.weight' has shape" \
    "$tmp/err"
ok 'without it, a warning'

# Files that break readers (tests/tools/check-answers runs every tool on each).
h=$tmp/hostile
mkdir "$h" && "$mkhostile" "$h"
ok 'hostile files are made'
if python3 -c '' 2>/dev/null; then
    (cd "$h" && awk -F'\t' '$2 == "accept" { print $1 }' expect.tsv |
        xargs "$bin/gguf-info" -q --json) >"$tmp/all.json" 2>/dev/null
    run python3 "$srcdir/tests/tools/schema.py" \
        "$srcdir/share/gguf-info.schema.json" "$tmp/all.json"
    test $rc -eq 0
    ok 'JSON of odd files keeps to the schema'
else
    skip 'JSON of odd files' 'no Python'
fi
done_testing
