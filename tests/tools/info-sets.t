#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-info: split models, by whatever they are named.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
info=$bin/gguf-info
m=$tmp/model.gguf
m2=$tmp/other.gguf
"$mkmodel" "$m" || exit 99
cp "$m" "$m2"

mkdir "$tmp/set"
"$bin/gguf-split" -q --split-max-tensors 3 "$m" "$tmp/set/x"
for o in --table --hash=sha256 '--key general.architecture' --json; do
    "$info" -q $o "$tmp/set/x-00002-of-00003.gguf" "$m2" >"$tmp/want"
    run "$info" -q $o "$tmp/set/x-00002-of-00003.gguf" "$m2" "$tmp"/set/*
    test $rc -eq 0 -a -s "$tmp/out" && cmp -s "$tmp/out" "$tmp/want"
    ok "shards of one set that are all named are one model: $o"
done
run "$info" -q --table --alone "$tmp"/set/*
test "$(wc -l <"$tmp/out")" -eq 4
ok '--alone: each is one by itself'
done_testing
