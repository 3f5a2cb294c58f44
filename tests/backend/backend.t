#!/bin/sh
# SPDX-License-Identifier: MIT
# The backend of doc/backend.c compiles against the public headers alone, links
# the library alone, and together with the CPU computes the CPU's results.
# doc/backend.md shows its text.
set -u
. "${srcdir:-.}/tests/tap.sh"
cp "$srcdir/doc/backend.c" "$srcdir/tests/backend/use-backend.c" "$tmp"
if grep '#include' "$tmp/backend.c" | grep -v '<' >"$tmp/log"; then bad=1; else
    bad=0; fi
verdict "it includes public headers only" $bad "$tmp/log"
TEST_LIBS=-lm
compile use-backend
verdict "it compiles" $? "$tmp/log"
"$tmp/use-backend" >"$tmp/out" 2>&1
rc=$?
sed -n "/^not ok/p; /^Bail/p" "$tmp/out" >"$tmp/bad"
cat "$tmp/out" >>"$tmp/bad"
test $rc -eq 0 && grep -q '^1\.\.[1-9]' "$tmp/out"
verdict "it does all that it is for" $? "$tmp/bad"
"$AWK" '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' \
    "$srcdir/doc/backend.md" >"$tmp/shown"
grep -vxF -f "$srcdir/doc/backend.c" "$tmp/shown" >"$tmp/log"
test -s "$tmp/shown" && test ! -s "$tmp/log"
verdict "what the page shows is in it, line by line" $? "$tmp/log"
done_testing
