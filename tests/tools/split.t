#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-split: merging gives the split file byte for byte, broken sets are not
# merged, no file is overwritten. D1 to D8 are defects of another splitter;
# each has a test here that this one does not have it.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
split=$bin/gguf-split
info=$bin/gguf-info
m=$tmp/model.gguf
"$mkmodel" "$m" n=10 rows=8 || exit 99

# Split $m with the given options, merge from the given input, compare.
round_trip() # description, input of the merge (from $tmp), options...
{
    what=$1 from=$2
    shift 2
    rm -rf "$tmp/rt"
    mkdir "$tmp/rt"
    run "$split" -q "$@" "$model" "$tmp/rt/s" &&
        test $rc -eq 0 -a ! -s "$tmp/err" -a ! -s "$tmp/out" &&
        run "$split" -q --merge "$tmp/$from" "$tmp/merged.gguf" &&
        test $rc -eq 0 && cmp "$model" "$tmp/merged.gguf" >>"$tmp/err"
    ok "$what: split, then merged, is the same file"
    rm -f "$tmp/merged.gguf"
}

model=$m
round_trip 'by tensors' rt/s-00001-of-00004.gguf --split-max-tensors 3
test "$(ls "$tmp/rt" | wc -l)" -eq 4
ok 'ten tensors in threes are four files'
round_trip 'one tensor each, from a later shard' rt/s-00007-of-00010.gguf \
    --split-max-tensors=1
round_trip 'by size, from the folder' rt --split --split-max-size 12K
round_trip 'by both, from the prefix' rt/s --split-max-size 12K \
    --split-max-tensors 2
round_trip 'metadata first' rt/s-00001-of-00002.gguf --no-tensor-first-split
test "$("$info" --json --alone "$tmp/rt/s-00001-of-00002.gguf" |
    grep -c '"shape"')" -eq 0
ok 'the first shard has no tensor'
round_trip 'no limit' rt
for a in 8 64 4096; do
    model=$tmp/a$a.gguf
    "$mkmodel" "$model" n=7 rows=3 align=$a
    # D2: shards of a file with another alignment could not be opened. D7: the
    # merged file kept the split keys.
    round_trip "D2, D7: alignment $a" rt --split-max-tensors 2
    for f in "$tmp"/rt/*; do
        "$info" --summary --alone "$f" >"$tmp/out" 2>"$tmp/err" &&
            grep -q "alignment $a\$" "$tmp/out" || break
    done
    ok "D1, D2: every shard says alignment $a and is laid out so"
done
model=$tmp/big.gguf
"$mkmodel" "$model" big=1
round_trip 'a big-endian file' rt --split-max-tensors 3
model=$tmp/empty.gguf
"$mkmodel" "$model" n=0
round_trip 'no tensors' rt --split-max-tensors 3
"$split" -q --split-max-tensors 3 "$m" "$tmp/a" &&
    "$split" -q --split-max-tensors 4 "$tmp/a-00002-of-00004.gguf" "$tmp/b" &&
    "$split" -q --merge "$tmp/b" "$tmp/merged.gguf" &&
    cmp "$m" "$tmp/merged.gguf"
ok 'shards are split anew'
rm -f "$tmp/merged.gguf" "$tmp"/b-*

# Layers: $m has four tensors in blk.0, four in blk.1, two in blk.2.
model=$m
round_trip 'by layer' rt --split-by-layer
for f in "$tmp"/rt/*; do
    "$info" --alone --tensors "$f" | sed -n 's/^  \(blk\.[0-9]*\)\..*/\1/p' |
        uniq | tr '\n' ' '
done >"$tmp/out"
test "$(cat "$tmp/out")" = 'blk.0 blk.1 blk.2 '
ok 'each layer is a shard'
rm -rf "$tmp/rt"/*
"$split" -q --split-by-layer --split-max-tensors 7 "$m" "$tmp/rt/s"
test "$(ls "$tmp/rt")" = 's-00001-of-00002.gguf
s-00002-of-00002.gguf' &&
    test "$("$info" --alone --tensors "$tmp/rt/s-00001-of-00002.gguf" |
        grep -c ' 256 x ')" -eq 4
ok 'a limit does not divide a layer'
run "$split" --split-by-layer --split-max-tensors 3 "$m" "$tmp/no"
test $rc -eq 1 && grep -q "layer of tensor 'blk.0" "$tmp/err"
ok 'a layer that does not fit'

# Verified, and then deleted.
cp "$m" "$tmp/d.gguf"
run "$split" -q --verify --split-max-tensors 3 "$tmp/d.gguf" "$tmp/d"
test $rc -eq 0 -a -e "$tmp/d.gguf"
ok '--verify'
run "$split" -q --delete-inputs --merge "$tmp/d-00001-of-00004.gguf" \
    "$tmp/dd.gguf"
test $rc -eq 0 -a "$(ls "$tmp"/d-* 2>/dev/null | wc -l)" -eq 0 && cmp "$m" "$tmp/dd.gguf"
ok '--delete-inputs deletes what was merged'
run "$split" -q --delete-inputs --merge "$tmp/d.gguf" "$tmp/e.gguf"
test $rc -eq 1 -a -e "$tmp/d.gguf"
ok 'a failure deletes nothing'
rm -f "$tmp"/d*.gguf

# D6: sizes with fractions and units; the whole file counts.
for s in 11500 11.5k 0.0115M 11.3KiB 0.012mb; do
    rm -f "$tmp"/z-*
    run "$split" -q --split-max-size "$s" "$m" "$tmp/z"
    over=$(find "$tmp" -name 'z-*' -size +12000c | wc -l)
    test $rc -eq 0 -a "$over" -eq 0 && test "$(ls "$tmp"/z-* | wc -l)" -gt 2
    ok "D6: --split-max-size $s"
done
for s in 1.5X G -1 '' 1.2.3 1Gib2 0; do
    run "$split" --split-max-size "$s" "$m" "$tmp/no"
    test $rc -eq 2 && test "$(wc -l <"$tmp/err")" -eq 1
    ok "a wrong size: '$s'"
done
run "$split" --split-max-size 3K "$m" "$tmp/no"
test $rc -eq 1 && grep -q "tensor 'blk.0.t0' alone" "$tmp/err" &&
    test -z "$(ls "$tmp"/no* 2>/dev/null)"
ok 'a tensor that does not fit'
run "$split" --split-max-size 100 "$m" "$tmp/no"
test $rc -eq 1 && grep -q 'metadata alone' "$tmp/err"
ok 'metadata that does not fit'
# D5: a division by zero.
run "$split" --split-max-tensors 0 "$m" "$tmp/no"
test $rc -eq 2
ok 'D5: --split-max-tensors 0 is a usage error'

# D3, D4: a truncated file is refused, and nothing is written.
cp "$tmp"/a-* "$tmp/rt" && rm -f "$tmp"/rt/s-*
size=$(wc -c <"$tmp/rt/a-00004-of-00004.gguf")
for cut in 1 40 $((size / 2)) $((size - 8)); do
    head -c $((size - cut)) "$tmp/a-00004-of-00004.gguf" \
        >"$tmp/rt/a-00004-of-00004.gguf"
    run "$split" --merge "$tmp/rt" "$tmp/merged.gguf"
    # The last tensor's padding may be missing: if there is any, a file without
    # its last byte is still whole.
    if test $rc -eq 0; then
        test $cut -eq 1 && cmp "$m" "$tmp/merged.gguf"
    else
        test $rc -eq 1 -a ! -e "$tmp/merged.gguf" &&
            grep -q 'a-00004-of-00004.gguf' "$tmp/err"
    fi
    ok "D3: the last shard lacks $cut bytes"
    rm -f "$tmp/merged.gguf"
done
size=$(wc -c <"$m")
head -c $((size - 700)) "$m" >"$tmp/cut.gguf"
run "$split" --split-max-tensors 3 "$tmp/cut.gguf" "$tmp/no"
test $rc -eq 1 -a -z "$(ls "$tmp"/no* 2>/dev/null)" && grep -q 'byte' "$tmp/err"
ok 'D4: a truncated file is not split'

# D8: existing files stay.
echo old >"$tmp/n-00002-of-00004.gguf"
run "$split" --split-max-tensors 3 "$m" "$tmp/n"
test $rc -eq 1 -a "$(cat "$tmp/n-00002-of-00004.gguf")" = old &&
    test ! -e "$tmp/n-00001-of-00004.gguf" &&
    grep -q ' (--force replaces it)$' "$tmp/err"
ok 'D8: an existing shard is not overwritten, and none is written'
run "$split" -q --force --split-max-tensors 3 "$m" "$tmp/n"
test $rc -eq 0 && "$split" -q --merge "$tmp/n" "$tmp/merged.gguf" &&
    cmp "$m" "$tmp/merged.gguf"
ok '--force replaces it'
run "$split" --merge "$tmp/n" "$tmp/merged.gguf"
test $rc -eq 1 && grep -q 'exists (--force replaces it)$' "$tmp/err"
ok 'merging does not overwrite'
run "$split" --force --merge "$tmp/n" "$tmp/n-00003-of-00004.gguf"
test $rc -eq 1 && cmp "$tmp/n-00003-of-00004.gguf" "$tmp/a-00003-of-00004.gguf"
ok 'an input is not overwritten, forced or not'
ln "$tmp/a-00001-of-00004.gguf" "$tmp/link.gguf"
run "$split" --force --merge "$tmp/a" "$tmp/link.gguf"
test $rc -eq 1 && cmp "$tmp/a-00001-of-00004.gguf" "$tmp/n-00001-of-00004.gguf"
ok 'nor under another name'
run "$split" --force --split-max-tensors 3 "$tmp/a" "$tmp/a"
test $rc -eq 1 && grep -q 'both input and output' "$tmp/err" &&
    cmp "$tmp/a-00001-of-00004.gguf" "$tmp/n-00001-of-00004.gguf"
ok 'shards are not split onto themselves'
rm -f "$tmp"/n-* "$tmp/link.gguf" "$tmp/merged.gguf"

# --dry-run lists the files.
run "$split" --dry-run --split-max-tensors 3 "$m" "$tmp/a"
cp "$tmp/out" "$tmp/list"
awk 'NR > 1 { print $3, $1 }' "$tmp/list" >"$tmp/want"
(cd "$tmp" && wc -c a-*) | awk -v d="$tmp/" '/a-/ { print $1, d $2 }' \
    >"$tmp/out"
cmp "$tmp/want" "$tmp/out"
ok '--dry-run lists the files that splitting writes'
run "$split" --dry-run --split-max-tensors 3 "$m" "$tmp/dry"
test $rc -eq 0 -a -z "$(ls "$tmp"/dry* 2>/dev/null)"
ok 'and writes nothing'
run "$split" --dry-run --merge "$tmp/a" "$tmp/dry"
test $rc -eq 0 -a ! -e "$tmp/dry"
ok '--dry-run --merge writes nothing'
if test -c /dev/full; then
    run sh -c '"$1" -n --split-max-tensors 3 "$2" "$3" >/dev/full' sh \
        "$split" "$m" "$tmp/dry"
    test $rc -eq 1 && grep -q 'standard output' "$tmp/err"
    ok 'a full disk under --dry-run is noticed'
else
    skip 'a full disk under --dry-run' 'no /dev/full'
fi
run "$split" --limit kv=3 -n "$m" "$tmp/dry"
test $rc -eq 1 && grep -q limit "$tmp/err" &&
    run "$split" --limit kv=900 -n "$m" "$tmp/dry" && test $rc -eq 0
ok '--limit'

# gguf-info takes a set for one model.
"$info" --json --tensors --types "$m" | sed '/"path"\|"offset"\|"file"/d' |
    sed '1,/"tensors": \[/d' >"$tmp/want"
for from in a a-00003-of-00004.gguf; do
    "$info" --json --tensors --types "$tmp/$from" |
        sed '/"path"\|"offset"\|"file"/d' | sed '1,/"tensors": \[/d' >"$tmp/out"
    cmp "$tmp/want" "$tmp/out" && test -s "$tmp/out"
    ok "gguf-info shows the whole model, given $from"
done
rm "$tmp/a-00002-of-00004.gguf" "$tmp/a-00003-of-00004.gguf"
run "$split" --merge "$tmp/a" "$tmp/merged.gguf"
test $rc -eq 1 -a ! -e "$tmp/merged.gguf" &&
    grep -q "2 of 4 shards of 'a' are missing: 2-3" "$tmp/err"
ok 'missing shards are named'
run "$info" "$tmp/a-00004-of-00004.gguf"
test $rc -eq 0 && grep -q 'warning: .*missing' "$tmp/err" &&
    grep -q blk.2.t9 "$tmp/out"
ok 'gguf-info shows what is left'

# Malformed command lines.
for args in '' "$m" '--merge' '--split --merge a b' '--merge -n a' \
    "--merge --split-max-tensors 3 $m x" 'a b c' "--merge $m -" \
    "$m $tmp/"; do
    run "$split" $args
    test $rc -eq 2 -a ! -s "$tmp/out" && test "$(wc -l <"$tmp/err")" -eq 1
    ok "wrong usage: '$(echo "$args" | sed "s#$tmp/##")'"
done
run "$split" "$tmp/nothing" "$tmp/x"
test $rc -eq 1 && grep -q 'no such file' "$tmp/err"
ok 'an input that is not there'
run "$split" --merge "$m" "$tmp/x"
test $rc -eq 1 -a ! -e "$tmp/x" && grep -q 'nothing to merge' "$tmp/err"
ok 'an ordinary file has nothing to merge'
run "$split" --split-max-tensors 3 "$m" "$tmp/no/such/folder"
test $rc -eq 1 && grep -q "no/such/folder: " "$tmp/err"
ok 'a folder that is not there'

# Kills: files with their names are complete, and inputs are unchanged.
"$mkmodel" "$tmp/large.gguf" n=16 rows=2048
sum=$(cksum <"$tmp/large.gguf")
for signal in KILL TERM; do
    bad=0
    for i in 05 1 15 2 25 3; do
        rm -f "$tmp"/k-*
        "$split" -q --split-max-tensors 4 "$tmp/large.gguf" "$tmp/k" \
            2>/dev/null &
        pid=$!
        sleep 0.0$i
        kill -s $signal $pid 2>/dev/null
        wait $pid 2>/dev/null
        for f in "$tmp"/k-*; do
            test -e "$f" || continue
            "$info" -q --summary --alone "$f" >/dev/null 2>&1 || bad=1
        done
    done
    test $bad -eq 0 -a "$(cksum <"$tmp/large.gguf")" = "$sum"
    ok "killed by SIG$signal: shards are complete or not there"
done
rm -f "$tmp"/k-*

# Sets whose keys are wrong.
h=$tmp/hostile
mkdir "$h" && "$mkhostile" "$h"
ok 'hostile sets are made'
awk -F'\t' '$9 ~ /merge:/ { sub(/.*merge:/, "", $9); print $1, $9 }' \
    "$h/expect.tsv" >"$tmp/list"
while read -r f expect; do
    run "$split" -q --merge "$h/$f" "$tmp/x"
    # A set may be opened from any of its shards here.
    case $expect,$f in
    accept,* | *,split-start-second/*)
        test $rc -eq 0 -a -s "$tmp/x" ;;
    *)
        test $rc -eq 1 -a ! -e "$tmp/x" &&
            test "$(wc -l <"$tmp/err")" -eq 1 ;;
    esac
    ok "merging $f: $expect"
    rm -f "$tmp/x"
done <"$tmp/list"
done_testing
