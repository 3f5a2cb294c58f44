#!/bin/sh
# SPDX-License-Identifier: MIT
# Outputs that cannot be written: full disks, read-only folders, pipes. The
# tools say so in one line, leave nothing behind, and keep existing files. On
# file systems that share blocks between files, editing a large file takes no
# room.
set -u
if test -z "${GGUF_TEST_MOUNT-}"; then
    # In a namespace of its own: its mounts disappear with it.
    for how in '-m' '-rm'; do
        if unshare $how sh -c 'mount -t tmpfs none /tmp' 2>/dev/null; then
            GGUF_TEST_MOUNT=$how
            export GGUF_TEST_MOUNT
            exec unshare $how sh "$0"
        fi
    done
    echo '1..0 # SKIP nothing can be mounted here'
    exit 0
fi
. "${srcdir:-.}/tests/tools/lib.sh"
edit=$bin/gguf-edit split=$bin/gguf-split quantize=$bin/gguf-quantize
info=$bin/gguf-info convert=$bin/gguf-convert
"$builddir/tests/tools/mkfolder" "$tmp/hf" wide &&
    "$convert" -q "$tmp/hf" -o "$tmp/hf.gguf" || exit 99
m=$tmp/model.gguf
"$mkmodel" "$m" n=8 rows=2048 || exit 99
size=$(wc -c <"$m")
"$split" -q --split-max-tensors 3 "$m" "$tmp/set" || exit 99
mkdir "$tmp/full" "$tmp/ro" || exit 99
mount -t tmpfs -o size=1m none "$tmp/full" || exit 99
full=$tmp/full

empty() # folder
{
    test -z "$(ls -A "$1")"
}

# name|command, with OUT for the folder of the output
jobs='a copy|"$edit" --set a.b=1 -o OUT/x.gguf "$m"
another byte order|"$edit" --to-endian big -o OUT/x.gguf "$m"
another alignment|"$edit" --force --set general.alignment=64 -o OUT/x.gguf "$m"
a split|"$split" --split-max-tensors 3 "$m" OUT/x
a merge|"$split" --merge "$tmp/set" OUT/x.gguf
a quantization|"$quantize" "$m" OUT/x.gguf F32
a quantization in shards|"$quantize" --keep-split "$tmp/set-00001-of-00003.gguf" OUT/x.gguf F32
a conversion|"$convert" -q "$tmp/hf" -o OUT/x.gguf
a conversion back|"$convert" -q "$tmp/hf.gguf" --to-safetensors OUT/hf'

# Run each job with OUT=$1: it must fail in one line that has the text $2, and
# leave nothing.
all_fail() # folder, text, why
{
    echo "$jobs" >"$tmp/jobs"
    while IFS='|' read -r name command; do
        eval "run $(echo "$command" | sed "s#OUT#$1#")"
        grep -v -e 'gguf-quantize: \[' "$tmp/err" |
            grep -c -e "$2" >"$tmp/n"
        test $rc -eq 1 -a "$(cat "$tmp/n")" = 1 && empty "$1"
        ok "$name: $3"
    done <"$tmp/jobs"
}
all_fail "$full" 'the file system has [0-9]* free' 'a full disk'

# The size of a file of logits is known before any is computed.
tiny=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
if test -f "$tiny"; then
    head -c 4000 "$srcdir/share/tiny-llama/persuasion.txt" >"$tmp/text"
    run "$bin/gguf-ppl" -q -m "$tiny" -f "$tmp/text" -c 64 --save-base "$full/x"
    test $rc -eq 1 && grep -q 'full/x: needs [0-9]* bytes, the file system has [0-9]* free' \
        "$tmp/err" && ! grep -q '^\[' "$tmp/out" && empty "$full"
    ok 'logits: a full disk, known before'
else
    skip 'logits: a full disk, known before' 'no model in share/'
fi

# A limited file size, which the free room does not show.
mkdir "$tmp/limit"
echo "$jobs" >"$tmp/jobs"
while IFS='|' read -r name command; do
    eval "run sh -c 'ulimit -f 500; exec \"\$@\"' sh $(
        echo "$command" | sed "s#OUT#$tmp/limit#")"
    test $rc -eq 1 && grep -q 'File too large' "$tmp/err" && empty "$tmp/limit"
    ok "$name: a limit on files"
done <"$tmp/jobs"

# There is room for an edit in place, but not for its journal: nothing changes.
"$mkmodel" "$full/x.gguf" n=3 rows=16 || exit 99
cp "$full/x.gguf" "$tmp/x.gguf"
cat /dev/zero >"$full/zeros" 2>/dev/null
run "$edit" --in-place --delete test.nested "$full/x.gguf"
test $rc -eq 1 -a ! -e "$full/x.gguf.edit-journal" &&
    cmp "$full/x.gguf" "$tmp/x.gguf" && grep -q 'No space left' "$tmp/err"
ok 'in place: a full disk'
run "$edit" --set general.name=x "$full/x.gguf"
test $rc -eq 1 && cmp "$full/x.gguf" "$tmp/x.gguf" &&
    test "$(ls -A "$full" | wc -l)" -eq 2
ok 'a small file that is written anew: a full disk'
umount "$full"

# Read-only folders.
mount -t tmpfs none "$tmp/ro" && cp "$tmp/x.gguf" "$tmp/ro/m.gguf" &&
    mount -o remount,ro "$tmp/ro" || exit 99
for args in '' --in-place --copy '--to-endian big'; do
    case $args in --to*) set=;; *) set='--delete test.nested';; esac
    run "$edit" $args $set "$tmp/ro/m.gguf"
    test $rc -eq 1 && cmp "$tmp/x.gguf" "$tmp/ro/m.gguf" &&
        test "$(wc -l <"$tmp/err")" -eq 1 && grep -q 'Read-only' "$tmp/err"
    ok "gguf-edit $args in a folder that is read-only"
done
run "$edit" --recover "$tmp/ro/m.gguf"
test $rc -eq 0
ok 'and nothing is there to recover'
run "$edit" -q --set a.b=1 -o "$tmp/y.gguf" "$tmp/ro/m.gguf"
test $rc -eq 0 -a "$("$info" --key a.b "$tmp/y.gguf")" = 1
ok 'what is in it can be edited into another folder'
umount "$tmp/ro"
mount -t tmpfs none "$tmp/ro" && mount -o remount,ro "$tmp/ro" || exit 99
all_fail "$tmp/ro" 'Read-only' 'a folder that is read-only'
umount "$tmp/ro"

# Pipes.
mkfifo "$tmp/fifo"
for command in '"$edit" --set a.b=1 "$tmp/fifo"' \
    '"$edit" --force --set a.b=1 -o "$tmp/fifo" "$m"' \
    '"$split" --split-max-tensors 3 "$tmp/fifo" "$tmp/p"' \
    '"$split" --force --merge "$tmp/set" "$tmp/fifo"' \
    '"$quantize" "$tmp/fifo" "$tmp/p.gguf" F16' \
    '"$info" "$tmp/fifo"'; do
    eval "run timeout 20 $command"
    test $rc -eq 1 -a -p "$tmp/fifo" && test -z "$(ls "$tmp"/p* 2>/dev/null)" &&
        grep -q 'not a regular file' "$tmp/err"
    ok "a pipe: $(echo "$command" | tr -d '"$')"
done
(run "$edit" -n --set a.b=1 "$m"; echo $rc >"$tmp/rc") | :
"$edit" -n --set a.b=1 "$m" | : && "$info" --metadata "$m" | :
ok 'a reader that goes away'

# Blocks that are shared.
shared() # mkfs, type
{
    if ! command -v "$1" >/dev/null 2>&1; then
        skip "shared blocks, $2" "no $1"
        return
    fi
    mkdir "$tmp/$2"
    truncate -s 400M "$tmp/$2.img" && "$1" -q "$tmp/$2.img" >"$tmp/out" 2>&1 &&
        mount -o loop "$tmp/$2.img" "$tmp/$2" 2>"$tmp/err" || {
        skip "shared blocks, $2" 'it cannot be mounted'
        return
    }
    x=$tmp/$2/f.gguf
    "$mkmodel" "$x" n=2 rows=45000 && sync || exit 99
    tensors=$("$info" --hash "$x" | awk '{ print $1, $2 }')
    # Copy until a second copy has no room.
    i=0
    while test "$(free "$tmp/$2")" -gt 45000; do
        i=$((i + 1))
        head -c 20000000 /dev/zero >"$tmp/$2/zeros$i" || break
        sync
    done
    test "$(free "$tmp/$2")" -lt 60000 -a "$(wc -c <"$x")" -gt 67108864
    ok "$2: no room for a copy"
    before=$(free "$tmp/$2")
    node=$(ls -i "$x" | awk '{ print $1 }')
    run "$edit" --in-place --delete test.nested --set general.name=Place "$x"
    sync
    test $rc -eq 0 -a ! -e "$x.edit-journal" -a \
        "$(ls -i "$x" | awk '{ print $1 }')" != "$node" -a \
        $((before - $(free "$tmp/$2"))) -lt 4000 &&
        test "$("$info" --hash "$x" | awk '{ print $1, $2 }')" = "$tensors"
    ok "$2: an edit in place is a clone"
    run "$edit" --set "general.name=$(printf '%020000d' 1)" -o "$x.new" "$x"
    sync
    test $rc -eq 0 -a $((before - $(free "$tmp/$2"))) -lt 4000 &&
        test "$("$info" --hash "$x.new" | awk '{ print $1, $2 }')" = \
            "$(echo "$tensors" | sed 's#f.gguf#&.new#')"
    ok "$2: a copy with a longer header shares the data"
    # Offsets within a page that stay the same share blocks, and others.
    mkdir "$tmp/$2/s"
    mount -t tmpfs -o size=1m none "$full" || exit 99
    for command in '"$split" --split-max-tensors 1 "$x" "$tmp/$2/s/x"' \
        '"$split" --split-max-tensors 1 "$x" "$full/x"' \
        '"$edit" --set a.b=1 -o "$full/x.gguf" "$x"'; do
        eval "run $command"
        test $rc -eq 1 && grep -q 'the file system has [0-9]* free' "$tmp/err" &&
            empty "$tmp/$2/s" && empty "$full"
        ok "$2: no room, and it is said first: $(echo "$command" | tr -d '"$')"
    done
    umount "$full"
    run "$edit" --to-endian big -o "$x.big" "$x"
    test $rc -eq 1 -a ! -e "$x.big" && grep -q 'free$' "$tmp/err"
    ok "$2: another byte order cannot, and says so first"
    # Pages as alignment give the same result.
    "$edit" -q --force --set general.alignment=4096 -o "$tmp/paged.gguf" "$x" 2>"$tmp/err" &&
        rm -f "$tmp/$2"/zeros* "$x.new" &&
        cp "$tmp/paged.gguf" "$tmp/$2/p.gguf" && sync || exit 99
    before=$(free "$tmp/$2")
    run "$split" -q --split-max-tensors 1 "$tmp/$2/p.gguf" "$tmp/$2/s/p"
    sync
    test $rc -eq 0 -a $((before - $(free "$tmp/$2"))) -lt 4000
    ok "$2: a split shares the data where it can"
    run "$split" -q --merge "$tmp/$2/s" "$tmp/$2/m.gguf"
    sync
    test $rc -eq 0 -a $((before - $(free "$tmp/$2"))) -lt 4000 &&
        cmp "$tmp/$2/p.gguf" "$tmp/$2/m.gguf"
    ok "$2: so does a merge"
    umount "$tmp/$2"
    rm -f "$tmp/$2.img"
}

free() # folder: KiB
{
    df -kP "$1" | awk 'NR == 2 { print $4 }'
}
shared mkfs.btrfs btrfs
shared mkfs.xfs xfs
done_testing
