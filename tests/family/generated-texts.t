#!/bin/sh
# SPDX-License-Identifier: MIT
# Texts generated from ../shared name the versions of their sources.
set -u
. "${srcdir:-.}/tests/tap.sh"

check() # folder that it is in, script and folder of the texts
{
    if test -d "${GGUF_SHARED:-/nowhere}/$1" && python3 -c '' 2>/dev/null; then
        python3 "$srcdir/$2/generate.py" --check "$GGUF_SHARED/$1" \
            "$srcdir/$2" >"$tmp/log" 2>&1
        verdict "$2 says what it was made of: $1" $? "$tmp/log"
    else
        skip "$2 says what it was made of: $1" "that is not here"
    fi
}
for folder in public autumn; do
    check "archs/$folder" tests/family
done
check archs/autumn/tiefree tests/family
check golden/tokenizer tests/vocab
done_testing
