#!/bin/sh
# SPDX-License-Identifier: MIT
# Models on servers: requests, a server's wrong answers, recipients of a token.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
info=$bin/gguf-info
split=$bin/gguf-split
quantize=$bin/gguf-quantize
unset HF_ENDPOINT HF_TOKEN HUGGING_FACE_HUB_TOKEN HF_TOKEN_PATH HF_HOME
unset HF_HUB_DISABLE_IMPLICIT_TOKEN XDG_CACHE_HOME HF_HUB_DOWNLOAD_TIMEOUT
unset http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY
HOME=$tmp/home
export HOME
mkdir "$tmp/home" "$tmp/www"
www=$tmp/www
"$mkmodel" "$www/model.gguf" || exit 99

run "$info" hf://o/r/model.gguf.not
if grep -q 'this build has no libcurl' "$tmp/err"; then
    test $rc -eq 1
    ok 'without libcurl: a message that says so'
    done_testing
elif grep -q 'libcurl is not installed' "$tmp/err"; then
    test $rc -eq 1
    ok 'libcurl not found when it is wanted: a message that says so'
    done_testing
fi

serve "$www"

asked() # how many requests since the last call of it
{
    wc -l <"$tmp/log" 2>/dev/null | tr -d ' '
    : >"$tmp/log"
}
: >"$tmp/log"

# A header of some MB, by its tokens alone.
if ! command -v python3 >/dev/null 2>&1; then
    skip 'models on servers' 'there is no python3 to make one with'
    done_testing
fi
python3 - "$www/long.gguf" <<'EOF' || exit 99
import struct, sys
def s(x): return struct.pack('<Q', len(x)) + x.encode()
out = b'GGUF' + struct.pack('<IQQ', 3, 2, 2)
out += s('general.architecture') + struct.pack('<I', 8) + s('llama')
out += s('tokenizer.ggml.tokens') + struct.pack('<IIQ', 9, 8, 150000)
out += b''.join(s('token-number-%d' % i) for i in range(150000))
out += s('blk.0.ffn_up.weight') + struct.pack('<IQQIQ', 2, 1024, 1024, 0, 0)
out += s('blk.1.ffn_up.weight') + struct.pack('<IQQIQ', 2, 1024, 8192, 0, 4 << 20)
out += b'\0' * (-len(out) % 32) + b'\1\2\3\x3c' * (9 << 20)
open(sys.argv[1], 'wb').write(out)
EOF

"$info" "$www/model.gguf" >"$tmp/local" 2>/dev/null
run "$info" "$at/ok/model.gguf"
test $rc -eq 0 &&
    sed "s|$at/ok|$www|" "$tmp/out" | cmp -s - "$tmp/local"
ok 'a model on a server is shown as one on the disk'
test "$(asked)" = 1
ok 'a small one takes one request'
run "$info" --summary "$at/ok/long.gguf"
test $rc -eq 0
ok 'a header of some MB'
n=$((n + 1))
k=$(asked)
test "$k" -le 4 && echo "ok $n - takes $k requests" ||
    { echo "not ok $n - takes $k requests"; status=1; }
run "$info" --json --memory "$at/ok/model.gguf"
test $rc -le 1
ok '--json --memory'
run "$info" --key general.name "$at/ok/model.gguf"
"$info" --key general.name "$www/model.gguf" 2>/dev/null | cmp -s - "$tmp/out"
ok '--key'
run "$info" --check=header "$at/ok/model.gguf"
"$info" --check=header "$www/model.gguf" >"$tmp/local" 2>/dev/null
sed "s|$at/ok|$www|" "$tmp/out" | cmp -s - "$tmp/local"
ok '--check=header'
"$info" --hash "$www/model.gguf" >"$tmp/local" 2>/dev/null
run "$info" --hash "$at/ok/model.gguf"
sed "s|$at/ok|$www|" "$tmp/out" | cmp -s - "$tmp/local"
ok '--hash reads through it'
for what in --stats --check --values=blk.0.t1; do
    run "$info" "$what" "$at/ok/model.gguf"
    test $rc -eq 1 && grep -q 'download the file first' "$tmp/err"
    ok "$what: what it needs is said"
done
run "$info" --diff "$at/ok/model.gguf" "$www/model.gguf"
test $rc -eq 1 && grep -q 'download the file first' "$tmp/err"
ok '--diff, too'

# ---- servers that are odd, and those that lie ----

for mode in less no-ranges flaky expires; do
    run "$info" --summary "$at/$mode/long.gguf"
    test $rc -eq 0 && grep -q 'llama' "$tmp/out"
    ok "$mode: it is read all the same"
done
: >"$www/empty.gguf"
run "$info" "$at/ok/empty.gguf"
test $rc -eq 1 && grep -q 'the file is empty' "$tmp/err"
ok 'an empty file'
while read -r mode words; do
    run "$info" --summary "$at/$mode/long.gguf"
    test $rc -eq 1 && test ! -s "$tmp/out" && grep -q "$words" "$tmp/err"
    ok "$mode: $words"
done <<'EOF'
other-range another range than requested
wide-range another range than requested
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
huge-total bytes
EOF
run "$info" "$at/ok/none.gguf"
test $rc -eq 1 && grep -q 'no such file (HTTP 404)' "$tmp/err"
ok 'a file that is not there'
HF_HUB_DOWNLOAD_TIMEOUT=1 run "$info" "$at/slow/model.gguf"
test $rc -eq 1 && grep -q 'does not answer in time' "$tmp/err"
ok 'a server that does not answer'
# ---- servers that never end ----

for mode in 'error-text|the server answers HTTP 500' \
    'headers|more headers than are accepted' 'long-line|header line of the server' \
    'bytes|responses that were shorter than requested' \
    'drip|fewer than 1000 bytes a second' \
    'error-drip|fewer than 1000 bytes a second'; do
    : >"$tmp/log"
    HF_HUB_DOWNLOAD_TIMEOUT=2 run timeout 30 "$info" \
        "$at/${mode%%|*}/model.gguf"
    test $rc -eq 1 && grep -q "${mode#*|}" "$tmp/err" && test "$(asked)" -lt 100
    ok "${mode%%|*}: ${mode#*|}"
done
run "$info" "http://127.0.0.1:1/ok/model.gguf"
test $rc -eq 1 && test "$(wc -l <"$tmp/err")" -eq 1
ok 'no server'
run "$info" "http://me:hunter2@127.0.0.1:$port/ok/model.gguf"
test $rc -eq 1 && grep -q 'has a user and password' "$tmp/err" &&
    ! grep -q 'hunter2\|me:' "$tmp/err"
ok 'no passwords in addresses, nor in messages about them'
: >"$tmp/log"
for o in --summary --json --markdown --hash; do
    run "$info" $o "$at/ok/model.gguf?token=hunter2"
    test $rc -eq 0 && grep -q 'token=hunter2 ' "$tmp/log" &&
        ! grep -q 'hunter2' "$tmp/err" "$tmp/out"
    ok "a query is sent, and not shown: $o"
done
run "$info" "$at/ok/none.gguf?token=hunter2"
test $rc -eq 1 && grep -q 'ok/none.gguf: .*HTTP 404' "$tmp/err" &&
    ! grep -q 'hunter2' "$tmp/err"
ok 'nor in messages'
run "$quantize" --json --allow-requantize "$at/ok/model.gguf?token=hunter2" \
    "$tmp/t.gguf" Q4_0
test $rc -eq 0 && ! grep -q 'hunter2' "$tmp/err" "$tmp/out" "$tmp/t.gguf"
ok 'nor in reports and files'
for tool in ppl imatrix edit; do
    set -- -f /dev/null -o "$tmp/t.gguf" -m
    test $tool = ppl && set -- -f /dev/null -m
    test $tool = edit && set -- -o "$tmp/t.gguf" --set a.b=1
    run "$bin/gguf-$tool" "$@" "https://me:hunter2@h.org/it's.gguf?t=hunter2"
    test $rc -ne 0 && ! grep -q 'hunter2' "$tmp/err" &&
        grep -qF "(curl -LO 'https://h.org/it'\\''s.gguf')" "$tmp/err"
    ok "gguf-$tool: what to do, for a shell"
done
run "$bin/gguf-edit" -o "$tmp/t.gguf" --set a.b=1 'hf://a/b/c.gguf?t=hunter2'
test $rc -ne 0 && ! grep -q 'hunter2' "$tmp/err" &&
    grep -q '/a/b/resolve/main/c.gguf' "$tmp/err"
ok 'nor a query of hf://'
run "$info" "--limit=header=100000" "$at/ok/long.gguf"
test $rc -eq 1 && grep -q 'limit is 100000' "$tmp/err"
ok 'a header that is longer than --limit allows'

# ---- the Hub, and its token ----

HF_ENDPOINT=$at/
export HF_ENDPOINT
: >"$tmp/log"
run "$info" --summary hf://owner/repo/model.gguf
test $rc -eq 0 && grep -q '^1 /owner/repo/resolve/main/model.gguf 0-131071 $' "$tmp/log"
ok 'hf://OWNER/REPO/FILE is an address of the Hub'
: >"$tmp/log"
run "$info" --summary hf://owner/repo/ok/model.gguf@a/b
grep -q '^1 /owner/repo/resolve/a%2Fb/ok/model.gguf ' "$tmp/log" && test $rc -eq 0
ok 'with @REVISION'
: >"$tmp/log"
run "$info" --summary "$at/owner/repo/blob/ok/model.gguf?download=true"
grep -q '^1 /owner/repo/resolve/ok/model.gguf ' "$tmp/log" && test $rc -eq 0
ok 'the address of a page of the Hub'
run "$info" hf://owner
test $rc -eq 1 && grep -q 'is not hf://OWNER/REPO/FILE' "$tmp/err"
ok 'hf:// without its parts'

run env HF_TOKEN=' secret
' "$info" --summary hf://owner/repo/model.gguf@auth
test $rc -eq 0
ok 'HF_TOKEN is sent'
mkdir -p "$tmp/home/.cache/huggingface"
echo secret >"$tmp/home/.cache/huggingface/token"
run "$info" --summary hf://owner/repo/model.gguf@auth
test $rc -eq 0
ok 'and what a login left in ~/.cache/huggingface/token'
run env HF_TOKEN=wrong "$info" --summary hf://owner/repo/model.gguf@auth
test $rc -eq 1 && grep -q 'the token that was sent' "$tmp/err" &&
    ! grep -q 'wrong\|secret' "$tmp/err" "$tmp/out"
ok 'a wrong one is refused, and not shown'
run env HF_HUB_DISABLE_IMPLICIT_TOKEN=1 "$info" hf://owner/repo/model.gguf@auth
test $rc -eq 1 && grep -q 'set HF_TOKEN' "$tmp/err"
ok 'HF_HUB_DISABLE_IMPLICIT_TOKEN'
long=$(awk 'BEGIN { while (i++ < 4097) printf "a" }')
run env HF_TOKEN="$long" "$info" hf://owner/repo/model.gguf@ok
test $rc -eq 1 && grep -q 'in HF_TOKEN is longer than 4096 bytes' "$tmp/err" &&
    ! grep -q aaaa "$tmp/err"
ok 'one of 4097 bytes is refused, not cut'
echo "$long$long" >"$tmp/long-token"
run env HF_TOKEN_PATH="$tmp/long-token" "$info" hf://owner/repo/model.gguf@ok
test $rc -eq 1 && grep -q 'is longer than 4096 bytes' "$tmp/err"
ok 'one of a file, too'
run env HF_TOKEN='a
Host: evil' "$info" hf://owner/repo/model.gguf@ok
test $rc -eq 1 && grep -q 'characters that no token can have' "$tmp/err" &&
    ! grep -q evil "$tmp/err"
ok 'one with the end of a line in it is none'
: >"$tmp/log"
run "$info" --summary hf://owner/repo/long.gguf@other-host
test $rc -eq 0 && grep -q '^1 .* Bearer secret$' "$tmp/log" &&
    grep -q '^2 /ok/long.gguf .* $' "$tmp/log" &&
    ! grep -q '^2 .*secret' "$tmp/log" &&
    test "$(grep -c '^1 ' "$tmp/log")" -eq 1
ok 'after a redirect to another port it is not sent, and one redirect is enough'
: >"$tmp/log"
run "$info" --summary "http://127.0.0.1:$other/ok/model.gguf"
test $rc -eq 0 && ! grep -q secret "$tmp/log"
ok 'nor to servers that are not the Hub'

# ---- sets ----

"$split" -q --split-max-tensors 2 "$www/model.gguf" "$www/set" || exit 99
shards=$(ls "$www" | grep -c '^set-')
second=$(ls "$www" | grep '^set-' | sed -n 2p)
: >"$tmp/log"
run "$info" --summary "hf://owner/repo/$second@ok"
test $rc -eq 0 && test "$(wc -l <"$tmp/log")" -eq "$shards"
ok 'a set is opened from any of its shards, a request each'
run "$split" --merge "hf://owner/repo/$second@ok" "$tmp/merged.gguf"
test $rc -eq 0 && cmp -s "$tmp/merged.gguf" "$www/model.gguf"
ok 'gguf-split --merge from a server'
run "$split" --split-max-tensors 2 "$at/ok/model.gguf" "$tmp/set"
test $rc -eq 0 && cmp -s "$tmp/$second" "$www/$second"
ok 'gguf-split from a server'
run "$split" -n --split-max-tensors 2 "$at/ok/model.gguf" "$tmp/set"
test $rc -eq 0
ok 'gguf-split --dry-run'
rm "$www/$second"
run "$info" --summary "$at/ok/$(ls "$www" | sed -n '/^set-/{p;q;}')"
grep -q "$second" "$tmp/err"
ok 'a shard that is missing'

# ---- gguf-quantize ----

set -- "$tmp/q.gguf" Q4_0 --allow-requantize
"$quantize" --dry-run "$www/model.gguf" "$@" >"$tmp/local" 2>&1
run "$quantize" --dry-run "$at/ok/model.gguf" "$@"
cat "$tmp/out" "$tmp/err" | sed "s|$at/ok|$www|" | sort >"$tmp/far"
sort "$tmp/local" | cmp -s - "$tmp/far"
ok 'gguf-quantize --dry-run plans from a server'
"$quantize" -q "$www/model.gguf" "$@" || exit 99
mv "$tmp/q.gguf" "$tmp/q.local"
run "$quantize" "$at/ok/model.gguf" "$@"
test $rc -eq 0 && cmp -s "$tmp/q.gguf" "$tmp/q.local"
ok 'gguf-quantize makes the same file from a server'
for type in Q4_0 Q8_0 NVFP4; do
    "$quantize" -qf --outer-scales "$www/long.gguf" "$tmp/q.local" "$type" \
        >"$tmp/out" 2>&1
    : >"$tmp/log"
    for threads in 1 4; do
        run "$quantize" -f --outer-scales --threads "$threads" \
            "$at/ok/long.gguf" "$tmp/q.gguf" "$type"
        test $rc -eq 0 && cmp -s "$tmp/q.gguf" "$tmp/q.local"
        ok "$type of several chunks, $threads threads"
    done
done
"$quantize" -qf "$www/long.gguf" "$tmp/q.local" Q8_0
# The last request is for the second tensor.
: >"$tmp/log"
"$quantize" -qf --resume --threads 1 "$at/ok/long.gguf" "$tmp/q.gguf" Q8_0
k=$(asked)
rm -f "$tmp/q.gguf"
run "$quantize" --resume --threads 1 "$at/cut$k/long.gguf" "$tmp/q.gguf" Q8_0
test $rc -eq 1 && test ! -e "$tmp/q.gguf"
ok 'a line that breaks'
run "$quantize" --resume "$at/ok/long.gguf" "$tmp/q.gguf" Q8_0
test $rc -eq 0 && grep -q '^gguf-quantize: .*: kept 1 tensor' "$tmp/err" && cmp -s "$tmp/q.gguf" "$tmp/q.local"
ok '--resume after it'
run "$quantize" "$at/no-ranges/long.gguf" "$tmp/q.gguf" Q8_0 --force
test $rc -eq 0 && cmp -s "$tmp/q.gguf" "$tmp/q.local"
ok 'from a server that knows no ranges'
"$quantize" -qf --target-size 12M "$www/long.gguf" "$tmp/q.local" || exit 99
: >"$tmp/log"
run "$quantize" -f --target-size 12M "$at/ok/long.gguf" "$tmp/q.gguf"
test $rc -eq 0 && cmp -s "$tmp/q.gguf" "$tmp/q.local"
ok '--target-size: the same types, and the same file'
# Matrices of 2048 rows: 64 rows are read, 8 together.
python3 -c 'import random, struct, sys
def text(s):
    return struct.pack("<Q", len(s)) + s
n, cols = 6, 2048
head = b"GGUF" + struct.pack("<IQQ", 3, n, 1)
head += text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama")
for i in range(n):
    head += text(b"blk.%d.ffn_up.weight" % i)
    head += struct.pack("<IQQIQ", 2, cols, cols, 1, i * 2 * cols * cols)
random.seed(1)
row = struct.pack("<%de" % cols, *(random.gauss(0, 1) for _ in range(cols)))
with open(sys.argv[1], "wb") as f:
    f.write(head + bytes(-len(head) % 32))
    for i in range(n * cols):
        f.write(row[2 * i % 512:] + row[:2 * i % 512])' "$www/wide.gguf" || exit 99
size=$(wc -c <"$www/wide.gguf")
run "$quantize" -n -v --target-size 12M "$www/wide.gguf" "$tmp/q.gguf"
cp "$tmp/out" "$tmp/here"
: >"$tmp/log"
run "$quantize" -n -v --target-size 12M "$at/ok/wide.gguf" "$tmp/q.gguf"
test $rc -eq 0 && cmp -s "$tmp/out" "$tmp/here" &&
    "$AWK" -v size="$size" '{ split($3, a, "-"); sum += a[2] - a[1] + 1 }
        END { exit !(sum < size / 8 && NR < 60) }' "$tmp/log"
ok '--target-size: of what is looked at little more is asked for'
run "$quantize" --dry-run --target-size 12M "$at/flaky/long.gguf" "$tmp/q.gguf"
test $rc -eq 0 && ! grep -q 'reader' "$tmp/err"
ok 'a server that breaks off while it is measured'

# ---- another server ----

if command -v nginx >/dev/null 2>&1; then
    mkdir "$tmp/nginx"
    cat >"$tmp/nginx/conf" <<EOF
daemon off; master_process off; pid $tmp/nginx/pid; error_log $tmp/nginx/error;
events { }
http {
    access_log $tmp/nginx/log; client_body_temp_path $tmp/nginx/a;
    proxy_temp_path $tmp/nginx/b; fastcgi_temp_path $tmp/nginx/c;
    uwsgi_temp_path $tmp/nginx/d; scgi_temp_path $tmp/nginx/e;
    server { listen unix:$tmp/nginx/s; root $www; }
    server { listen 127.0.0.1:$((other + 1)); root $www; gzip on; gzip_types *; }
}
EOF
    nginx -c "$tmp/nginx/conf" -p "$tmp/nginx" 2>/dev/null &
    nginx=$!
    trap 'kill $server $nginx 2>/dev/null; rm -rf "$tmp"' EXIT
    sleep 1
    if kill -0 $nginx 2>/dev/null; then
        "$info" --hash "$www/long.gguf" >"$tmp/local" 2>/dev/null
        run "$info" --hash "http://127.0.0.1:$((other + 1))/long.gguf"
        sed "s|http://127.0.0.1:$((other + 1))|$www|" "$tmp/out" |
            cmp -s - "$tmp/local"
        ok 'nginx: every byte of a file'
    else
        skip 'nginx' 'it does not start here'
    fi
else
    skip 'nginx' 'it is not installed'
fi
done_testing
