#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-info: split models, by any of their names.
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

# A folder without a split model: list the models in it.
mkdir "$tmp/some"
no_set() # what the message ends in
{
    run "$info" "$tmp/some"
    test $rc -eq 1 -a ! -s "$tmp/out" &&
        grep -q "/some: the folder has no split model (NAME-NNNNN-of-NNNNN.gguf)$1\$" "$tmp/err"
    ok "a folder without a split model$1"
}
no_set ''
: >"$tmp/some/config.json"
no_set ', but a config.json: gguf-convert makes GGUF files of such folders'
cp "$m" "$tmp/some/b.gguf"
no_set ": give the model in it by its name, 'b.gguf'"
cp "$m" "$tmp/some/a.gguf"
no_set ": give one of the 2 models in it by its name, such as 'a.gguf'"
done_testing
