#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-edit: split models, several files, and patterns of files and of keys.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
. "${srcdir:-.}/tests/tools/edit.sh"
split=$bin/gguf-split
one=$tmp/s-00001-of-00002.gguf
two=$tmp/s-00002-of-00002.gguf

sums() # file: checksums of its tensors and of the model
{
    "$info" --hash "$1" 2>/dev/null | awk '{ print $2 }'
}
sums "$m" >"$tmp/sums"

same_sums() # file
{
    sums "$1" | cmp - "$tmp/sums"
}

cut() # a fresh set of two shards
{
    rm -f "$tmp"/s-*.gguf
    "$split" -q --split-max-tensors 3 "$m" "$tmp/s" &&
        cp "$one" "$tmp/one" && cp "$two" "$tmp/two"
}

# Keys are those of the first shard, whichever is named.
while read -r what file; do
    cut
    run "$edit" --set a.b=7 "$tmp/$file"
    test $rc -eq 0 && cmp -s "$two" "$tmp/two" &&
        test "$(key "$one" a.b)" = 7 && same_sums "$tmp/s"
    ok "a key of a set, by $what"
done <<'END'
shard s-00001-of-00002.gguf
another s-00002-of-00002.gguf
prefix s
pattern s-*.gguf
END
cut
run "$edit" --set a.b=7 "$two"
grep -q "s-00002.*: the metadata of the model is in '.*s-00001" "$tmp/err"
ok 'it says where the key is'
run "$edit" --rename a.b=a.c "$one" "$two"
test $rc -eq 0 && test "$(key "$one" a.c)" = 7
ok 'a set of which all shards are given is edited once'
mkdir "$tmp/folder" && cp "$one" "$two" "$tmp/folder"
run "$edit" --delete a.c "$tmp/folder"
test $rc -eq 0 &&
    test "$(key "$tmp/folder/s-00001-of-00002.gguf" a.c)" = absent
ok 'by its folder'
rm "$tmp/folder/s-00001-of-00002.gguf"
run "$edit" --set a.b=1 "$tmp/folder/s-00002-of-00002.gguf"
test $rc -eq 0 && grep -q 'not the first shard' "$tmp/err" &&
    test "$(key "$tmp/folder/s-00002-of-00002.gguf" a.b)" = 1
ok 'a shard that is alone is edited as a file'

# The byte order of all shards changes.
cut
run "$edit" --to-endian big "$two"
test $rc -eq 0 && ! cmp -s "$one" "$tmp/one" && ! cmp -s "$two" "$tmp/two" &&
    "$split" -q --merge "$one" "$tmp/whole.gguf" &&
    "$edit" -q --to-endian little "$tmp/whole.gguf" &&
    cmp "$m" "$tmp/whole.gguf"
ok '--to-endian turns all shards'
cp "$tmp/one" "$one"
run "$info" --hash "$tmp/s"
test $rc -ne 0 || grep -q warning "$tmp/err"
ok 'a set that is turned in part is no set'
run "$edit" --to-endian little "$one"
test $rc -eq 0 && cmp "$one" "$tmp/one" && cmp "$two" "$tmp/two"
ok 'the same command goes on where it was interrupted'

# To another name.
run "$edit" --set a.b=5 -o "$tmp/n-00001-of-00002.gguf" "$two"
test $rc -eq 0 && cmp "$one" "$tmp/one" && cmp "$two" "$tmp/two" &&
    test "$(key "$tmp/n" a.b)" = 5 && same_sums "$tmp/n"
ok 'a new set'
run "$edit" -q -f --set a.b=6 -o "$tmp/n-00001-of-00002.gguf" "$one" "$two"
test $rc -eq 0 -a "$(key "$tmp/n" a.b)" = 6
ok 'of all shards that are given'
rm "$tmp/n-00001-of-00002.gguf"
run "$edit" -q --set a.b=6 -o "$tmp/n-00001-of-00002.gguf" "$tmp/s"
test $rc -eq 1 -a ! -e "$tmp/n-00001-of-00002.gguf" && grep -q exists "$tmp/err"
ok 'the first shard is not written where another could not be'
run "$edit" -q --to-endian big -o "$tmp/x.gguf" "$two"
test $rc -eq 0 && cmp "$two" "$tmp/two" &&
    "$edit" -q --to-endian little "$tmp/x.gguf" && cmp "$two" "$tmp/x.gguf"
ok 'one shard to a name of another kind'
for args in "-o $tmp/y.gguf $tmp/s" "-o $tmp/y-00001-of-00003.gguf $tmp/s" \
    "-o $tmp/y-00001-of-00002.gguf $tmp/s $m"; do
    run "$edit" --set a.b=1 $args
    test $rc -eq 2 && ! ls "$tmp"/y* >/dev/null 2>&1
    ok "wrong usage: $(echo "$args" | sed "s#$tmp/##g")"
done

# Several files, and patterns.
cp "$m" "$tmp/p1.gguf" && cp "$m" "$tmp/p2.gguf"
run "$edit" -q --set a.b=2 --set a.c=3 "$tmp/p?.gguf"
test $rc -eq 0 -a "$(key "$tmp/p1.gguf" a.b)$(key "$tmp/p2.gguf" a.c)" = 23
ok 'a pattern of files'
run "$edit" -q --set a.b=2 "$tmp/nothing*.gguf"
test $rc -eq 1 && grep -q 'no file matches this pattern' "$tmp/err"
ok 'one that nothing is like'
cp "$tmp/p1.gguf" "$tmp/p3.gguf"
run "$edit" --set a.b=4 "$tmp/p3.gguf" "$tmp/new.gguf"
test $rc -eq 1 -a ! -e "$tmp/new.gguf" && cmp "$tmp/p1.gguf" "$tmp/p3.gguf" &&
    grep -q 'new.gguf: there is no such file' "$tmp/err" &&
    grep -q 'nothing was changed: the second file may be meant as the output' "$tmp/err"
ok 'two names, the second of no file: no output is meant, nothing changes'
run "$edit" -n --delete 'a.*' "$tmp/p1.gguf"
test $rc -eq 0 && grep -c deleted "$tmp/out" | grep -qx 2 &&
    sed -n 1p "$tmp/out" | grep -q "'a.b' (was u32 2)"
ok 'a pattern of keys: what it deletes is said'
run "$edit" -q --delete 'a.[bc]' "$tmp/p1.gguf" "$tmp/p2.gguf"
test $rc -eq 0 && cmp "$m" "$tmp/p1.gguf" && cmp "$m" "$tmp/p2.gguf"
ok 'and gone'
run "$edit" -q --delete 'a.[bc]' "$tmp/p1.gguf"
test $rc -eq 1 && grep -q "no key matches 'a.\[bc\]'" "$tmp/err"
ok 'a pattern that no key is like'
run "$edit" -q --delete '*' "$tmp/p1.gguf"
test $rc -eq 1 && grep -q "refused: key 'general.architecture'" "$tmp/err" &&
    cmp "$m" "$tmp/p1.gguf"
ok 'what may not go does not go by a pattern'
done_testing
