#!/bin/sh
# SPDX-License-Identifier: MIT
# Folders on servers become files, and merging works: requests, a server's
# wrong answers, and the recipients of a token.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
convert=$bin/gguf-convert
split=$bin/gguf-split
mkfolder=$builddir/tests/tools/mkfolder
unset HF_ENDPOINT HF_TOKEN HUGGING_FACE_HUB_TOKEN HF_TOKEN_PATH HF_HOME
unset HF_HUB_DISABLE_IMPLICIT_TOKEN XDG_CACHE_HOME HF_HUB_DOWNLOAD_TIMEOUT
unset http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY
HOME=$tmp/home
export HOME
mkdir "$tmp/home" "$tmp/local" "$tmp/o"
www=$tmp/www
out=$tmp/o/out.gguf
"$mkfolder" "$www" bf16 files=3 wide && cp -r "$www" "$tmp/local/ok" &&
    cp -r "$www" "$tmp/local/repo" || exit 99

run "$convert" hf://o/r -o "$out"
if grep -q 'no libcurl\|libcurl is not installed' "$tmp/err"; then
    test $rc -eq 1
    ok 'without libcurl: a message that says so'
    done_testing
fi

serve "$www"
: >"$tmp/log"
fresh() # cutN of the server counts from here on
{
    "$bin/gguf-info" "$at/reset/x" >/dev/null 2>&1
    : >"$tmp/log"
}
served() # how many requests of the log were answered with bytes
{
    while read -r no path rest; do
        test -e "$www/${path##*/}" && echo "$no"
    done <"$tmp/log" | grep -c .
}
nothing_left() # in the folder of outputs
{
    test -z "$(ls -A "$tmp/o")"
}

# ---- the same as of a folder here ----

"$convert" -q "$tmp/local/ok" -o "$tmp/near.gguf" -o "$tmp/near4.gguf=Q4_K_M" &&
    "$convert" -q "$tmp/local/repo" -o "$tmp/repo.gguf" || exit 99
run "$convert" "$at/ok" -o "$out" -o "$tmp/o/4.gguf=Q4_K_M"
test $rc -eq 0 && cmp -s "$out" "$tmp/near.gguf" &&
    cmp -s "$tmp/o/4.gguf" "$tmp/near4.gguf"
ok 'a folder on a server becomes the same files as one on the disk'
k=$(grep -c . "$tmp/log")
test "$k" -le 30 || echo "# $k requests"
test "$k" -le 30
ok 'in a few requests'
rm "$out" "$tmp/o/4.gguf"
for threads in 1 4; do
    run "$convert" -t $threads "$at/ok/" -o "$out=Q4_K_M"
    test $rc -eq 0 && cmp -s "$out" "$tmp/near4.gguf"
    ok "$threads threads, and a slash after the folder"
    rm -f "$out"
done
"$convert" --dry-run "$tmp/local/ok" >"$tmp/plan" 2>/dev/null
: >"$tmp/log"
run "$convert" --dry-run "$at/ok"
test $rc -eq 0 && cmp -s "$tmp/out" "$tmp/plan"
ok '--dry-run shows the same plan'
"$convert" -q --target-size 700K "$tmp/local/ok" -o "$tmp/sized.gguf" || exit 99
run "$convert" --target-size 700K "$at/ok" -o "$out"
test $rc -eq 0 && cmp -s "$out" "$tmp/sized.gguf"
ok '--target-size: the same types, and the same file'
rm -f "$out"

# ---- and back ----

"$split" -q --split-max-tensors 8 "$tmp/near.gguf" "$www/set" &&
    cp "$tmp/near.gguf" "$www/near.gguf" &&
    "$bin/gguf-quantize" -q "$www/near.gguf" "$www/q4.gguf" Q4_K_M &&
    "$bin/gguf-quantize" -q --outer-scales "$www/near.gguf" "$www/nv.gguf" \
        NVFP4 || exit 99
: >"$tmp/log"
shard=$(basename "$(echo "$www"/set-00002-of-*.gguf)" .gguf)
for name in near "$shard" q4 nv; do
    rm -rf "$tmp/here" "$tmp/there"
    "$convert" -q "$www/$name.gguf" --to-safetensors "$tmp/here" \
        2>/dev/null || exit 99
    : >"$tmp/log"
    run "$convert" -q "$at/ok/$name.gguf" --to-safetensors "$tmp/there"
    test $rc -eq 0 && diff -r "$tmp/here" "$tmp/there" >"$tmp/out"
    ok "$name.gguf on a server becomes the same folder as one on the disk"
done
# bytes of the requested ranges, from the last request
"$AWK" '{ split($3, r, "-"); n += r[2] - r[1] + 1 } END { print n }' \
    "$tmp/log" >"$tmp/n"
n_bytes=$(wc -c <"$www/nv.gguf")
test "$(cat "$tmp/n")" -le $((n_bytes + n_bytes / 4)) ||
    echo "# $(cat "$tmp/n") bytes of $n_bytes, $(wc -l <"$tmp/log") requests"
test "$(cat "$tmp/n")" -le $((n_bytes + n_bytes / 4))
ok 'hardly a byte is asked for twice'
k=$(grep -c . "$tmp/log")
rm -rf "$tmp/there"
run "$convert" -q "$at/cut$k/nv.gguf" --to-safetensors "$tmp/there"
test $rc -eq 1 -a ! -e "$tmp/there"
ok 'a line that breaks leaves no folder'
rm -f "$www/near.gguf" "$www/q4.gguf" "$www/nv.gguf" "$www"/set-*
: >"$tmp/log"

# ---- the Hub ----

HF_ENDPOINT=$at
export HF_ENDPOINT
for path in hf://owner/repo hf://owner/repo@main/ "$at/owner/repo" \
    "$at/owner/repo/tree/main" "$at/owner/repo/resolve/main"; do
    : >"$tmp/log"
    run "$convert" "$path" -o "$out"
    test $rc -eq 0 && cmp -s "$out" "$tmp/repo.gguf" &&
        grep -q '^1 /owner/repo/resolve/main/config.json ' "$tmp/log"
    ok "$path"
    rm -f "$out"
done
: >"$tmp/log"
run "$convert" -q hf://owner/repo@v1/part -o "$out"
test $rc -eq 0 &&
    grep -q '^1 /owner/repo/resolve/v1/part/config.json ' "$tmp/log"
ok 'after the repository comes a folder of it'
rm -f "$out"
run env HF_TOKEN=secret "$convert" -v hf://owner/repo@auth -o "$out"
test $rc -eq 0 && cmp -s "$out" "$tmp/repo.gguf" &&
    ! grep -q secret "$tmp/err" "$tmp/out"
ok 'a token is sent, and not shown'
rm -f "$out"
run env HF_TOKEN=wrong "$convert" -v hf://owner/repo@auth -o "$out"
test $rc -eq 1 && grep -q 'the token that was sent' "$tmp/err" &&
    ! grep -q wrong "$tmp/err" "$tmp/out" && nothing_left
ok 'a wrong one is refused, and not shown'
: >"$tmp/log"
run env HF_TOKEN=secret "$convert" hf://owner/repo@other-host -o "$out"
test $rc -eq 0 && cmp -s "$out" "$tmp/repo.gguf" &&
    grep -q '^1 .*Bearer secret$' "$tmp/log" && grep -q '^2 ' "$tmp/log" &&
    ! grep -q '^2 .*secret' "$tmp/log"
ok 'after a redirect to another port it is not sent'
rm -f "$out"
unset HF_ENDPOINT

# ---- servers that are odd, and those that lie ----

for mode in less no-ranges flaky expires; do
    rm -rf "$tmp/local/$mode"
    cp -r "$tmp/local/ok" "$tmp/local/$mode"
    "$convert" -qf "$tmp/local/$mode" -o "$tmp/near.gguf"
    run "$convert" "$at/$mode" -o "$out"
    test $rc -eq 0 && cmp -s "$out" "$tmp/near.gguf"
    ok "$mode: it is converted all the same"
    rm -f "$out"
done
while read -r mode words; do
    run "$convert" "$at/$mode" -o "$out"
    test $rc -eq 1 && grep -q "$words" "$tmp/err" && nothing_left &&
        test "$(grep -vc 'with --resume\|: warning: ' "$tmp/err")" -eq 1
    ok "$mode: $words"
done <<'END'
other-range another range than requested
wide-range length that the server announces is not that of its range
bad-range another range than requested
over-total another range than requested
other-total another size on the server
changes has changed on the server
other-length length that the server announces is not that of its range
more sends more than its range
packed sends the file compressed
no-length does not send the size
cut bytes remaining
status-500 HTTP 500
auth set HF_TOKEN
loop redirects too often
to-file not https or http
nowhere not https or http
huge-total limit is 268435456
END
HF_HUB_DOWNLOAD_TIMEOUT=1 run "$convert" "$at/slow" -o "$out"
test $rc -eq 1 && grep -q 'does not answer in time' "$tmp/err" && nothing_left
ok 'a server that does not answer'
run "$convert" "http://me:hunter2@127.0.0.1:$port/ok" -o "$out"
test $rc -eq 1 && grep -q 'has a user and password' "$tmp/err" &&
    ! grep -q hunter2 "$tmp/err"
ok 'no passwords in addresses'
run "$convert" "$at/ok?token=hunter2" -o "$tmp/query.gguf"
test $rc -eq 0 && ! grep -aq hunter2 "$tmp/err" "$tmp/out" "$tmp/query.gguf" &&
    grep -q 'config.json?token=hunter2 ' "$tmp/log"
ok 'a query goes with each file, and into none'
mv "$www/config.json" "$tmp/config.json"
run "$convert" "$at/ok" -o "$out"
test $rc -eq 1 && grep -q 'no config.json' "$tmp/err" && nothing_left
ok 'no folder of a model'
mv "$tmp/config.json" "$www"
second=$(ls "$www" | grep '^model-.*safetensors$' | sed -n 2p)
mv "$www/$second" "$tmp"
run "$convert" "$at/ok" -o "$out"
test $rc -eq 1 && grep -q "$second" "$tmp/err" && nothing_left
ok 'a shard that is missing is named'
head -c 1000 "$tmp/$second" >"$www/$second"
run "$convert" "$at/ok" -o "$out"
test $rc -eq 1 && grep -q "$second" "$tmp/err" && nothing_left
ok 'and one that is cut'
mv "$tmp/$second" "$www"

# ---- interrupted runs are resumed ----

fresh
run "$convert" -t 1 --resume "$at/ok" -o "$out"
k=$(served)
rm -f "$out"
fresh
run "$convert" -t 1 "$at/cut$k" -o "$out"
test $rc -eq 1 && grep -q 'out.gguf: nothing is kept; with --resume' "$tmp/err" &&
    nothing_left
ok 'a line that breaks leaves nothing, and says which option would'
fresh
run "$convert" -t 1 --resume "$at/cut$k" -o "$out" --override-kv \
    general.name=str:Ok
test $rc -eq 1 -a ! -e "$out" -a -e "$out.resume" &&
    grep -q 'the same command continues from there$' "$tmp/err"
ok 'a line that breaks leaves a journal, and a word about it'
run "$convert" -t 1 --resume "$at/ok" -o "$out" --override-kv \
    general.name=str:Ok
test $rc -eq 0 && grep -q 'of an earlier run' "$tmp/err" &&
    test "$(ls -A "$tmp/o")" = out.gguf
ok '--resume after it'
"$convert" -qf "$tmp/local/ok" -o "$tmp/near.gguf" --override-kv \
    general.name=str:Ok
cmp -s "$out" "$tmp/near.gguf"
ok 'gives the same file'
rm -f "$out"

python3 - "$www/long.gguf" <<'END' || done_testing
import struct, sys
def s(x): return struct.pack('<Q', len(x)) + x.encode()
n = 40
out = b'GGUF' + struct.pack('<IQQ', 3, n, 1)
out += s('general.architecture') + struct.pack('<I', 8) + s('llama')
for i in range(n):
    out += s('blk.%d.w' % i) + struct.pack('<IQQIQ', 2, 1024, 200, 0, i * 819200)
out += b'\0' * (-len(out) % 32)
out += b''.join(struct.pack('<I', i * 7) * (819200 // 4) for i in range(n))
open(sys.argv[1], 'wb').write(out)
END
"$split" -q --split-max-tensors 15 "$www/long.gguf" "$www/set" || exit 99
first=$(ls "$www" | grep '^set-' | sed -n 1p)
fresh
run "$split" --merge --resume "$at/ok/$first" "$out"
all=$(served)
test $rc -eq 0 && cmp -s "$out" "$www/long.gguf" &&
    test "$(ls -A "$tmp/o")" = out.gguf
ok 'gguf-split --merge --resume'
run "$split" --merge --resume "$at/ok/$first" "$out"
test $rc -eq 1 && grep -q 'exists already' "$tmp/err" &&
    test "$(ls -A "$tmp/o")" = out.gguf
ok 'an output that exists stays, and nothing beside it'
rm -f "$out"
fresh
run "$split" --merge --resume "$at/cut$((all - 1))/$first" "$out"
test $rc -eq 1 -a ! -e "$out" -a -s "$out.resume" -a -s "$out.resume-data" &&
    grep -q 'the same command continues from there$' "$tmp/err"
ok 'a line that breaks leaves what is complete'
cp "$out.resume" "$tmp/journal"
cp -p "$out.resume-data" "$tmp/data"
: >"$tmp/log"
run "$split" --merge --resume "$at/ok/$first" "$out"
k=$(grep -c . "$tmp/log")
echo "# $all requests, $k to go on"
test $rc -eq 0 && cmp -s "$out" "$www/long.gguf" && test "$k" -lt "$all" &&
    test "$(ls -A "$tmp/o")" = out.gguf
ok 'the next run asks for the rest only'
rm -f "$out"
fresh
run "$split" --merge --resume "$at/cut2/$first" "$out"
test $rc -eq 1 && nothing_left
ok 'nothing complete, nothing left'
cp "$tmp/data" "$out.resume-data"
run "$split" --merge --resume "$at/ok/$first" "$out"
test $rc -eq 1 && grep -q 'left unchanged' "$tmp/err" &&
    cmp -s "$out.resume-data" "$tmp/data" && test ! -e "$out.resume"
ok 'data that no run made stay as they are'
cp "$tmp/journal" "$out.resume"
run "$split" --merge --resume "$at/ok/$first" "$out"
test $rc -eq 1 && cmp -s "$out.resume-data" "$tmp/data" &&
    cmp -s "$out.resume" "$tmp/journal"
ok 'nor are those taken that a journal knows by another inode'
rm -f "$out.resume" "$out.resume-data"
fresh
run "$split" --merge --resume "$at/cut$((all - 1))/$first" "$out"
printf x | dd of="$out.resume-data" bs=1 seek=900000 conv=notrunc 2>/dev/null
run "$split" --merge --resume "$at/ok/$first" "$out"
test $rc -eq 0 && cmp -s "$out" "$www/long.gguf"
ok 'data that changed meanwhile are made again'
rm -f "$out"
fresh
run "$split" --merge --resume "$at/cut$((all - 1))/$first" "$out"
"$split" -q --split-max-tensors 16 "$www/long.gguf" "$www/set" -f || exit 99
first=$(ls -t "$www" | grep '^set-' | sed -n 1p)
run "$split" --merge --resume "$at/ok/$first" "$out"
test $rc -eq 1 && grep -q 'merge of another input' "$tmp/err" &&
    test -s "$out.resume-data"
ok 'a journal of another input is refused'
rm -f "$out.resume" "$out.resume-data"
echo 'something else' >"$out.resume"
run "$split" --merge --resume "$at/ok/$first" "$out"
test $rc -eq 1 && grep -q 'no journal of a merge' "$tmp/err" &&
    grep -q 'something else' "$out.resume"
ok 'and what is no journal'
rm -f "$out.resume"
run "$split" --merge --resume "$www/$first" "$out"
test $rc -eq 0 && cmp -s "$out" "$www/long.gguf" &&
    test "$(ls -A "$tmp/o")" = out.gguf
ok 'of files of this machine, too'
run "$split" --resume "$www/long.gguf" "$tmp/o/x"
test $rc -eq 2 && grep -q "'--resume' needs --merge" "$tmp/err"
ok '--resume is for merging'
done_testing
