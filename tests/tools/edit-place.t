#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-edit in place and as a copy: edits that fit, remaining room, and kills,
# which leave the old file or the new one.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
. "${srcdir:-.}/tests/tools/edit.sh"

# In place.
fresh
run "$edit" --in-place --set 'general.name=a much longer name than before,
which is not going to fit into the padding of the header, whatever it is' "$w"
test $rc -eq 1 && cmp "$m" "$w" && grep -q 'header ends at' "$tmp/err"
ok '--in-place of what does not fit'
run "$edit" --in-place --delete test.nested --set general.name=Place "$w"
test $rc -eq 0 -a "$(key "$w" general.name)" = Place -a \
    "$(wc -c <"$w")" -eq "$(wc -c <"$m")" -a ! -e "$w.edit-journal" &&
    same_tensors "$w" && grep -q 'in place' "$tmp/err"
ok '--in-place'
test "$(key "$w" libgguf.padding)" != absent
ok 'the room that is left is kept'
run "$edit" -q --in-place --set test.one=1 "$w"
test $rc -eq 0 -a "$(key "$w" test.one)" = 1 && same_tensors "$w"
ok 'and used by the next edit'
run "$edit" -q --copy "$w"
test $rc -eq 0 -a "$(key "$w" libgguf.padding)" = absent && same_tensors "$w"
ok '--copy takes it out'
run "$edit" --recover "$w"
test $rc -eq 0 && grep -q 'no edit was interrupted' "$tmp/err"
ok '--recover with nothing to do'

# From 64 MiB on this is the default.
"$mkmodel" "$w" n=1 rows=65536
run "$edit" --delete test.nested --set general.name=Large "$w"
test $rc -eq 0 -a "$(key "$w" general.name)" = Large &&
    grep -q 'in place' "$tmp/err" && test "$(key "$w" libgguf.padding)" != absent
ok 'a large file is edited in place'
run "$edit" -q --set "general.name=$(printf '%0500d' 1)" "$w"
test $rc -eq 0 -a "$(key "$w" general.name | wc -c)" -eq 501 &&
    test "$(wc -c <"$w")" -gt 67108864
ok 'or written anew if that does not fit'

# A read-only file is not edited in place, and gets no journal, which would
# change it later. The superuser may write all files.
fresh
chmod 444 "$w"
chmod 777 "$tmp"
as=
test -w "$w" && as='setpriv --reuid=65534 --clear-groups'
if test -z "$as" || $as "$edit" --version >"$tmp/out" 2>&1; then
    run $as "$edit" --in-place --delete test.nested "$w"
    test $rc -eq 1 -a ! -e "$w.edit-journal" && cmp "$m" "$w" &&
        grep -q 'cannot be opened for writing' "$tmp/err"
    ok '--in-place of a file that is read-only'
else
    skip '--in-place of a file that is read-only' 'all files can be written'
fi
chmod 700 "$tmp"

# Kills. Each round edits in place, back and forth. The remaining file opens,
# has one of the two names, and all its tensors.
"$mkmodel" "$tmp/k.gguf" n=8 rows=256 kv=20000
tensors "$tmp/k.gguf" >"$tmp/k.tensors"
long=$(printf '%01000d' 7)
"$edit" -q --force --set "general.name=$long" "$tmp/k.gguf"
for how in --in-place --copy; do
    bad=
    for i in 004 008 012 016 020 025 030 040 050 070; do
        "$edit" -q $how --set general.name=short$i --delete test.more.7 \
            "$tmp/k.gguf" 2>/dev/null &
        pid=$!
        sleep 0.$i
        kill -s KILL $pid 2>/dev/null
        wait $pid 2>/dev/null
        name=$(key "$tmp/k.gguf" general.name)
        case $name in
        "$long" | short$i) ;;
        *) bad="$bad $i:$name" ;;
        esac
        tensors "$tmp/k.gguf" | cmp -s - "$tmp/k.tensors" ||
            bad="$bad $i:tensors"
        "$edit" -q --recover "$tmp/k.gguf" || bad="$bad $i:recover"
        test ! -e "$tmp/k.gguf.edit-journal" -a \
            "$(key "$tmp/k.gguf" general.name)" = "$name" ||
            bad="$bad $i:recovered"
        "$edit" -q --set "general.name=$long" --set test.more.7=1 \
            "$tmp/k.gguf" || bad="$bad $i:back"
    done
    echo "$bad" >"$tmp/out"
    test -z "$bad"
    ok "killed with $how: the old file or the new one"
done
# Files that an edit in place leaves behind are in no other file's way.
fresh
"$edit" -q --in-place --delete test.nested --set test.one=1 "$w"
"$edit" -q --copy -o "$tmp/plain.gguf" "$w"
run "$info" --diff "$w" "$tmp/plain.gguf"
test $rc -eq 0 -a "$(key "$w" libgguf.padding)" != absent -a \
    "$(key "$tmp/plain.gguf" libgguf.padding)" = absent
ok 'libgguf.padding does not count as different'
"$bin/gguf-split" -q --split-max-tensors 2 "$w" "$tmp/pad" &&
    "$bin/gguf-split" -q --merge "$tmp/pad-00001-of-00003.gguf" \
        "$tmp/pad.gguf" && cmp "$w" "$tmp/pad.gguf"
ok 'split and merged, it is there again'
"$bin/gguf-quantize" -q "$w" "$tmp/quant.gguf" COPY >"$tmp/out" 2>&1
test "$(key "$tmp/quant.gguf" libgguf.padding)" = absent -a \
    "$(key "$tmp/quant.gguf" test.one)" = 1
ok 'quantized, it is not'
"$edit" -q --to-endian big -o "$tmp/pad-be.gguf" "$w" &&
    "$edit" -q --to-endian little "$tmp/pad-be.gguf" &&
    cmp "$tmp/plain.gguf" "$tmp/pad-be.gguf"
ok 'in another byte order neither'
rm -f "$tmp"/pad*.gguf "$tmp/plain.gguf" "$tmp/quant.gguf"
done_testing
