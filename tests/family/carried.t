#!/bin/sh
# SPDX-License-Identifier: MIT
# The texts of tests/family say what they were made of, where that is.
set -u
. "${srcdir:-.}/tests/tap.sh"

from=${GGUF_SHARED:-/nowhere}/archs/public
if test -d "$from/skeletons" && python3 -c 'import gzip' 2>/dev/null; then
    python3 "$srcdir/tests/family/carry.py" --check "$from" \
        "$srcdir/tests/family" >"$tmp/log" 2>&1
    verdict "texts say what they were made of" $? "$tmp/log"
else
    skip "texts say what they were made of" "that is not here"
fi
done_testing
