#!/bin/sh
# SPDX-License-Identifier: MIT
# Models on a real server, nginx on 127.0.0.1: http, https, through a proxy,
# and runs that are interrupted while it sends slowly.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
info=$bin/gguf-info
split=$bin/gguf-split
quantize=$bin/gguf-quantize
convert=$bin/gguf-convert
unset HF_ENDPOINT HF_TOKEN HUGGING_FACE_HUB_TOKEN HF_TOKEN_PATH HF_HOME
unset HF_HUB_DISABLE_IMPLICIT_TOKEN XDG_CACHE_HOME HF_HUB_DOWNLOAD_TIMEOUT
unset http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY
unset ALL_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE
unset REQUESTS_CA_BUNDLE
HOME=$tmp/home
export HOME
mkdir "$tmp/home" "$tmp/nginx" "$tmp/o" "$tmp/www"
www=$tmp/www
out=$tmp/o/out.gguf

run "$info" hf://o/r/model.gguf
if grep -q 'no libcurl\|libcurl is not installed' "$tmp/err"; then
    skip 'nginx' 'there is no libcurl'
    done_testing
fi
if ! command -v nginx >/dev/null 2>&1 || ! command -v python3 >/dev/null 2>&1
then
    skip 'nginx' 'it, or python3, is not installed'
    done_testing
fi
"$builddir/tests/tools/mkfolder" "$www/hf" bf16 files=3 wide || exit 99
"$convert" -q "$www/hf" -o "$www/model.gguf" &&
    "$split" -q --split-max-tensors 8 "$www/model.gguf" "$www/set" || exit 99
first=$(ls "$www" | grep '^set-' | sed -n 1p)

# Free ports for a server, its https, and a proxy.
python3 -c 'import socket
s = [socket.socket() for i in range(3)]
for x in s: x.bind(("127.0.0.1", 0))
print(*(x.getsockname()[1] for x in s))' >"$tmp/ports" || exit 99
read -r http https proxy <"$tmp/ports"
ssl=
if command -v openssl >/dev/null 2>&1 && openssl req -x509 -newkey rsa:2048 \
    -nodes -keyout "$tmp/key" -out "$tmp/cert" -days 2 -subj /CN=localhost \
    -addext subjectAltName=IP:127.0.0.1 2>/dev/null; then
    ssl="server { listen 127.0.0.1:$https ssl; root $www;
        ssl_certificate $tmp/cert; ssl_certificate_key $tmp/key; }"
fi
cat >"$tmp/nginx/conf" <<END
daemon off; master_process off; pid $tmp/nginx/pid; error_log $tmp/nginx/error;
events { }
http {
    access_log $tmp/nginx/log; client_body_temp_path $tmp/nginx/a;
    proxy_temp_path $tmp/nginx/b; fastcgi_temp_path $tmp/nginx/c;
    uwsgi_temp_path $tmp/nginx/d; scgi_temp_path $tmp/nginx/e;
    server { listen 127.0.0.1:$http; root $www; gzip on; gzip_types *;
        location /slow/ { alias $www/; limit_rate 250k; } }
    $ssl
}
END
nginx -c "$tmp/nginx/conf" -p "$tmp/nginx" >"$tmp/nginx/said" 2>&1 &
nginx=$!
proxy_pid=
trap 'kill $nginx $proxy_pid 2>/dev/null; rm -rf "$tmp"' EXIT
up() # port
{
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        python3 -c 'import socket, sys
socket.create_connection(("127.0.0.1", int(sys.argv[1]))).close()' "$1" \
            2>/dev/null && return 0
        sleep 0.5
    done
    return 1
}
if ! up "$http"; then
    skip 'nginx' 'it does not start here'
    done_testing
fi
at=http://127.0.0.1:$http

# ---- http ----

"$info" --hash "$www/model.gguf" >"$tmp/near" 2>/dev/null
run "$info" --hash "$at/model.gguf"
sed "s|$at|$www|" "$tmp/out" | cmp -s - "$tmp/near"
ok 'gguf-info --hash: every byte of a file'
run "$split" --merge "$at/$first" "$out"
test $rc -eq 0 && cmp -s "$out" "$www/model.gguf"
ok 'gguf-split --merge'
rm -f "$out"
"$quantize" -q "$www/model.gguf" "$tmp/near.gguf" Q4_K_M || exit 99
run "$quantize" "$at/$first" "$out" Q4_K_M
test $rc -eq 0 && cmp -s "$out" "$tmp/near.gguf"
ok 'gguf-quantize'
rm -f "$out"
run "$convert" "$at/hf" -o "$out"
test $rc -eq 0 && cmp -s "$out" "$www/model.gguf"
ok 'gguf-convert'
rm -f "$out"

# ---- runs that are interrupted ----

interrupted() # file that appears, command...: rc of the interrupted one
{
    file=$1
    shift
    "$@" >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        sleep 0.2
        test -s "$file" && break
    done
    sleep 3
    kill -TERM $pid
    wait $pid
    rc=$?
}
sum() # bytes that the server sent since the last call
{
    awk '{ n += $10 } END { print n + 0 }' "$tmp/nginx/log"
    : >"$tmp/nginx/log"
}
all=$(wc -c <"$www/model.gguf")
goes_on() # what: the same command goes on, and asks for less than all
{
    sum >"$tmp/sum"
    shift
    run "$@"
    sent=$(sum)
    echo "# $sent bytes of $all"
    test $rc -eq 0 && cmp -s "$out" "$want" &&
        test "$(ls -A "$tmp/o")" = out.gguf
}
# The shell waits at most this long for interrupted runs.
want=$www/model.gguf
for what in merge quantize convert; do
    case $what in
    merge) set -- "$split" --merge --resume "$at/slow/$first" "$out" ;;
    quantize)
        want=$tmp/near.gguf
        set -- "$quantize" --resume -t 1 "$at/slow/$first" "$out" Q4_K_M
        ;;
    convert)
        want=$www/model.gguf
        set -- "$convert" --resume -t 1 "$at/slow/hf" -o "$out"
        ;;
    esac
    interrupted "$out.resume" "$@"
    test $rc -ne 0 -a ! -e "$out"
    ok "$what that is interrupted ends without an output"
    goes_on "$what" "$@"
    ok "$what with --resume goes on to the same file"
    rm -rf "$tmp/o"
    mkdir "$tmp/o"
done

# ---- https ----

if test -n "$ssl" && up "$https"; then
    safe=https://127.0.0.1:$https
    run "$info" --summary "$safe/model.gguf"
    test $rc -eq 1 && grep -qi 'certificate' "$tmp/err"
    ok 'https: a certificate that nobody vouches for is refused'
    for name in SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE; do
        run env "$name=$tmp/cert" "$info" --hash "$safe/model.gguf"
        sed "s|$safe|$www|" "$tmp/out" | cmp -s - "$tmp/near"
        ok "https with $name: every byte of a file"
    done
    run env "CURL_CA_BUNDLE=$tmp/cert" "$convert" "$safe/hf" -o "$out"
    test $rc -eq 0 && cmp -s "$out" "$www/model.gguf"
    ok 'https: a folder'
    rm -f "$out"
else
    skip 'https' 'there is no openssl, or nginx has none'
fi

# ---- a proxy ----

cat >"$tmp/proxy.py" <<'END'
import socket, sys, threading
def pump(a, b):
    try:
        while (d := a.recv(65536)):
            b.sendall(d)
    except OSError:
        pass
    for s in (a, b):
        try: s.shutdown(socket.SHUT_RDWR)
        except OSError: pass
def serve(c):
    head = b''
    while b'\r\n\r\n' not in head:
        d = c.recv(65536)
        if not d: return
        head += d
    with open(sys.argv[2], 'ab') as log: log.write(head)
    verb, to, _ = head.split(b'\r\n')[0].split(b' ')
    if verb == b'CONNECT':
        host, port = to.decode().split(':')
    else:
        host, port = to.decode().split('/')[2].split(':')
    s = socket.create_connection((host, int(port)))
    if verb == b'CONNECT':
        c.sendall(b'HTTP/1.1 200 here you are\r\n\r\n')
    else:
        s.sendall(head)
    threading.Thread(target=pump, args=(s, c), daemon=True).start()
    pump(c, s)
l = socket.socket()
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.bind(('127.0.0.1', int(sys.argv[1])))
l.listen(32)
l.settimeout(300)
while True:
    threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
END
python3 "$tmp/proxy.py" "$proxy" "$tmp/seen" 2>/dev/null &
proxy_pid=$!
if up "$proxy"; then
    : >"$tmp/seen"
    run env "http_proxy=http://127.0.0.1:$proxy" "$info" --hash "$at/model.gguf"
    sed "s|$at|$www|" "$tmp/out" | cmp -s - "$tmp/near" &&
        grep -q "^GET $at/model.gguf" "$tmp/seen"
    ok 'http_proxy is asked'
    : >"$tmp/seen"
    run env "http_proxy=http://127.0.0.1:$proxy" no_proxy=127.0.0.1 \
        "$info" --summary "$at/model.gguf"
    test $rc -eq 0 && test ! -s "$tmp/seen"
    ok 'but not for what no_proxy has'
    run env http_proxy=http://127.0.0.1:1 "$info" "$at/model.gguf"
    test $rc -eq 1 && test "$(wc -l <"$tmp/err")" -eq 1
    ok 'a proxy that is not there is an error'
    if test -n "$ssl"; then
        : >"$tmp/seen"
        run env "https_proxy=http://127.0.0.1:$proxy" "HF_ENDPOINT=$safe" \
            HF_TOKEN=secret "CURL_CA_BUNDLE=$tmp/cert" \
            "$info" --hash "$safe/model.gguf"
        sed "s|$safe|$www|" "$tmp/out" | cmp -s - "$tmp/near" &&
            grep -q "^CONNECT 127.0.0.1:$https" "$tmp/seen" &&
            ! grep -q secret "$tmp/seen"
        ok 'https goes through a tunnel, and the token inside it'
    else
        skip 'https through a proxy' 'there is no https'
    fi
else
    skip 'a proxy' 'it does not start here'
fi
done_testing
