# SPDX-License-Identifier: MIT
# lib.sh - for shell tests of the tools. Sourced.
. "${srcdir:-.}/tests/tap.sh"
: "${GGUF_SHARED=$srcdir/../shared}"
# A cross build's programs run in an emulator: make scripts that start it.
if test -n "${EMULATOR-}"; then
    mkdir -p "$tmp/cross/tests/hostile" "$tmp/cross/tests/tools"
    for p in gguf-compare gguf-edit gguf-eval gguf-imatrix gguf-info \
        gguf-ppl gguf-quantize gguf-split gguf-tokenize tests/hostile/mkhostile tests/mkfix tests/tools/mkimatrix \
        tests/tools/mkmodel; do
        printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$EMULATOR" "$builddir/$p" \
            >"$tmp/cross/$p"
        chmod +x "$tmp/cross/$p"
    done
    builddir=$tmp/cross
fi
mkmodel=$builddir/tests/tools/mkmodel
mkhostile=$builddir/tests/hostile/mkhostile
# Programs in the build folder are scripts that set the library's path and
# start the real ones; hundreds of calls are faster without them.
bin=$(cd "$builddir" && pwd)
if test -x "$bin/.libs/gguf-info" &&
    LD_LIBRARY_PATH=$bin/.libs "$bin/.libs/gguf-info" --version >/dev/null 2>&1
then
    LD_LIBRARY_PATH=$bin/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    bin=$bin/.libs
fi

ok() # description; the verdict is the status of the command before
{
    ok_status=$?
    n=$((n + 1))
    if test $ok_status -eq 0; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        status=1
        for f in "$tmp/out" "$tmp/err"; do
            test -s "$f" && head -5 "$f" | cut -c1-200 | LC_ALL=C tr -d '\033' |
                sed "s/^/# ${f##*/}: /"
        done
    fi
}

run() # command...: $tmp/out, $tmp/err, $rc
{
    "$@" >"$tmp/out" 2>"$tmp/err"
    rc=$?
}

one_error() # message: one line of error that has it
{
    test "$(wc -l <"$tmp/err")" -eq 1 && grep -q -e "$1" "$tmp/err"
}

fails() # message
{
    test $rc -eq 1 && one_error "$1"
}

fails_with() # status, message; nothing is printed but that
{
    test $rc -eq "$1" -a ! -s "$tmp/out" && one_error "$2"
}

wrong_usage() # command...
{
    run "$@"
    fails_with 2 .
    ok "wrong usage: $(echo "${1##*/} $(shift && echo "$*")" |
        sed "s|$srcdir/||g; s|$tmp/||g")"
}

serve() # folder: by a server at $at, which is stopped at the end
{
    "$builddir/tests/tools/httpd" "$1" "$tmp/ports" "$tmp/log" &
    server=$!
    trap 'kill $server 2>/dev/null; rm -rf "$tmp"' EXIT
    for i in 1 2 3 4 5 6 7 8 9 10; do
        test -f "$tmp/ports" && break
        sleep 0.2
    done
    read -r port other <"$tmp/ports" || exit 99
    at=http://127.0.0.1:$port
}
