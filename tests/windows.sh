#!/bin/sh
# SPDX-License-Identifier: MIT
# windows.sh - do the tools for Windows do what those of this system do?
#
#   tests/windows.sh NATIVE WINDOWS
#
# NATIVE and WINDOWS are the folders of two builds. Each command runs in both,
# that of WINDOWS by $WINE (default: wine), with the same files. Output files
# and texts must have the same bytes, except times.
# Paths as Windows has them come after that: backslashes, drives, names outside
# ASCII, more than 260 characters. Prints TAP.
set -u
src=$(cd "$(dirname "$0")/.." && pwd)
native=$(cd "$1" && pwd) windows=$(cd "$2" && pwd)
srcdir=$src
. "$src/tests/tap.sh"
: "${WINE=wine}" "${WINEDEBUG=-all}"
export WINEDEBUG
test ! -d "$native/.libs" || {
    LD_LIBRARY_PATH=$native/.libs
    export LD_LIBRARY_PATH
    test ! -x "$native/.libs/gguf-info" || native=$native/.libs
}
test ! -f "$windows/.libs/gguf-info.exe" || windows=$windows/.libs
models=$src/share/tiny-llama
mkdir "$tmp/native" "$tmp/windows" "$tmp/log"

# Run a tool of a build in its folder: sets $rc; output is in $tmp/log.
in_native() # tool, argument...
{
    tool=$1
    shift
    (cd "$tmp/native" && exec "$native/$tool" "$@") \
        >"$tmp/log/out.n" 2>"$tmp/log/err.n"
    rc_native=$?
}

in_windows() # tool, argument...
{
    tool=$1
    shift
    (cd "$tmp/windows" && exec $WINE "$windows/$tool.exe" "$@") \
        >"$tmp/log/out.w" 2>"$tmp/log/err.w"
    rc_windows=$?
}

# Compare the bytes of both texts, except times and rates.
same_text()
{
    for f in out err; do
        for k in n w; do
            LC_ALL=C sed '/^time /d; s/[0-9.]* s$/TIME/; s/[0-9.]* s,/TIME,/
                s/"[a-z_]*seconds[a-z_]*": *[0-9.e+-]*/"seconds": TIME/
                s/"[a-z_]*per_second": *[0-9.e+-]*/"per_second": RATE/' \
                "$tmp/log/$f.$k" >"$tmp/log/$f.$k.text"
        done
        diff -a "$tmp/log/$f.n.text" "$tmp/log/$f.w.text" || return 1
    done
    test $rc_native -eq $rc_windows || echo "status $rc_native, $rc_windows"
    test $rc_native -eq $rc_windows
}

# Wine keeps a file that was removed while it was open, under this name.
remove_gone()
{
    find "$tmp/windows" -name '*.gone' -exec rm {} +
}

same_files()
{
    remove_gone
    diff -rq "$tmp/native" "$tmp/windows"
}

report() # description, which may have backslashes; status
{
    n=$((n + 1))
    test "$2" = 0 || { printf 'not '; status=1; }
    printf 'ok %d - %s\n' $n "$1"
    test "$2" = 0 && return
    head -c 3000 "$tmp/log/diff" | sed 's/^/# /'
    # so that one difference does not make others
    rm -rf "$tmp/windows"
    cp -R "$tmp/native" "$tmp/windows"
}

# Run a command in both builds, as cross-checked pairs of files and texts.
# The expected status is first, so that no command fails for another reason.
both() # status, tool, argument...
{
    want=$1
    shift
    in_native "$@" </dev/null
    in_windows "$@" </dev/null
    {
        same_text && same_files && if test $rc_native -ne "$want"; then
            echo "status $rc_native, expected $want"
            cat "$tmp/log/err.n"
            false
        fi
    } >"$tmp/log/diff" 2>&1
    report "$*" $?
}

# Compare the bytes of standard input, and files, too.
both_of() # file on standard input, tool, argument...
{
    in=$1
    shift
    in_native "$@" <"$in"
    in_windows "$@" <"$in"
    { same_text && same_files && test $rc_native -eq 0; } >"$tmp/log/diff" 2>&1
    report "$* <${in##*/}" $?
}

# Put a file into both folders.
give() # source, name
{
    cp "$1" "$tmp/native/$2" && cp "$1" "$tmp/windows/$2"
}

# ---- the same commands

give "$models/tiny-llama-f16.gguf" F16.gguf
head -c 6000 "$models/persuasion.txt" >"$tmp/text"
give "$tmp/text" text.txt
printf '1 15 300 27 9 1000 44\n' >"$tmp/ids"
give "$tmp/ids" ids.txt

both 0 gguf-info F16.gguf
both 0 gguf-info --json F16.gguf
both 0 gguf-info --check F16.gguf
both 0 gguf-info --stats='blk.0.*' F16.gguf
both 0 gguf-info --hash F16.gguf
both 0 gguf-info --summary --types --markdown F16.gguf
both 0 gguf-info --help=all
both 0 gguf-quantize --version
both 0 gguf-quantize --list-types
both 0 gguf-quantize F16.gguf q4.gguf Q4_K_M 2
both 0 gguf-imatrix -m F16.gguf -f text.txt -c 128 --chunks 4 -t 2 -o im.gguf
both 0 gguf-imatrix --json im.gguf
both 0 gguf-imatrix im.gguf im.gguf -o twice.dat
both 0 gguf-quantize --imatrix im.gguf F16.gguf iq2.gguf IQ2_XS 2
both 0 gguf-quantize F16.gguf -o a.gguf=Q8_0 -o b.gguf=Q4_0 -o c.gguf=IQ3_S -t 2
both 0 gguf-quantize --imatrix im.gguf --target-size 3M F16.gguf size.gguf
both 0 gguf-quantize --dry-run --explain F16.gguf Q5_K_S
both 0 gguf-quantize --calibrate=text.txt --calib-tokens=512 -t 2 F16.gguf cal.gguf Q3_K_S
both 0 gguf-split --split-max-size 3M F16.gguf part
both 0 gguf-split --merge --verify part-00002-of-00005.gguf whole.gguf
cmp -s "$tmp/windows/F16.gguf" "$tmp/windows/whole.gguf"
verdict 'merging the shards gives the file' $? /dev/null
both 0 gguf-info part-00001-of-00005.gguf
both 1 gguf-info --diff --json F16.gguf q4.gguf
both 0 gguf-convert F16.gguf --to-safetensors folder
both 0 gguf-convert folder -o again.gguf=Q6_K
both 0 gguf-edit --set general.name='Grüße, 世界' --rename general.type=my.type q4.gguf
both 0 gguf-edit --delete 'tokenizer.*' --force --output bare.gguf q4.gguf
both 0 gguf-ppl -m q4.gguf -f text.txt -c 128 --chunks 3 -t 2
both 0 gguf-ppl -m iq2.gguf --base F16.gguf -f text.txt -c 128 --chunks 2 -t 2 --json
both 0 gguf-ppl -m a.gguf -f text.txt -c 128 --chunks 2 -t 2 -q --precision int8 \
    --per-token=tokens.csv --plot=plot.svg
both 0 gguf-eval -m q4.gguf --tokens ids.txt --save-logits logits.f32 -t 2
both 0 gguf-eval -m q4.gguf --print-graph
both 0 gguf-compare -m b.gguf --base F16.gguf -f text.txt -c 64 --chunks 1 -t 2
both 0 gguf-tokenize -m F16.gguf -f text.txt
both 0 gguf-tokenize -m F16.gguf -f ids.txt --detokenize
both_of "$tmp/text" gguf-tokenize -m F16.gguf -f - --json
both_of "$tmp/text" gguf-ppl -m q4.gguf -f - -c 64 --chunks 1 -t 2

# ---- errors, and outputs that exist

both 1 gguf-info missing.gguf
both 1 gguf-info text.txt
both 0 gguf-info .
both 1 gguf-split --merge part-00001-of-00005.gguf whole.gguf
both 0 gguf-split --merge --force part-00001-of-00005.gguf whole.gguf
both 1 gguf-quantize F16.gguf F16.gguf Q8_0
both 1 gguf-quantize --force F16.gguf ./F16.gguf Q8_0
both 1 gguf-quantize F16.gguf missing/out.gguf Q8_0
both 2 gguf-quantize F16.gguf out.gguf Q4_X
both 2 gguf-info --unknown
both 1 gguf-ppl -m F16.gguf -f q4.gguf

# ---- paths of Windows

# Run a command with arguments for each system; compare texts if the names of
# files in them are equal, and all files.
pair() # argument of native, argument of Windows, tool, argument...; @ is it
{
    to_native=$1 to_windows=$2 tool=$3
    shift 3
    what="$tool $*"
    (cd "$tmp/native" && run_with "$to_native" "$native/$tool" "$@") \
        >"$tmp/log/out.n" 2>"$tmp/log/err.n" </dev/null
    rc_native=$?
    (cd "$tmp/windows" && run_with "$to_windows" $WINE "$windows/$tool.exe" "$@") \
        >"$tmp/log/out.w" 2>"$tmp/log/err.w" </dev/null
    rc_windows=$?
    {
        test $rc_native -eq 0 && test $rc_windows -eq 0 && same_files ||
            { cat "$tmp/log/err.n" "$tmp/log/err.w"; false; }
    } >"$tmp/log/diff" 2>&1
    report "$what, @ is $to_windows" $?
}

run_with() # value of @, command...
{
    with=$1
    shift
    n_words=$#
    for word in "$@"; do
        case $word in
        *@*) word="${word%%@*}$with${word#*@}" ;;
        esac
        set -- "$@" "$word"
    done
    shift "$n_words"
    exec "$@"
}

# The folder of the Windows run by its drive; wine has all of / as Z:.
drive="Z:$(printf %s "$tmp/windows" | tr / '\\')"

mkdir -p "$tmp/native/sub/a b" "$tmp/windows/sub/a b"
pair sub/x.gguf 'sub\x.gguf' gguf-quantize F16.gguf @ Q8_0
pair 'sub/a b/x.gguf' 'sub\a b\x.gguf' gguf-quantize F16.gguf @ Q4_0
pair "$tmp/native/y.gguf" "$drive\\y.gguf" gguf-quantize F16.gguf @ Q4_1
pair "$tmp/native/y.gguf" "$drive\\y.gguf" gguf-edit @ general.name changed
pair "$tmp/native/sub/part" "$drive/sub\\part" gguf-split --split-max-tensors 20 F16.gguf @
pair sub/part-00001-of-00003.gguf 'sub\part-00002-of-00003.gguf' gguf-split --merge @ merged.gguf
pair sub/part 'sub\part' gguf-info @
pair sub 'sub\' gguf-convert F16.gguf --to-safetensors @/hf
pair sub/hf 'sub\hf\' gguf-convert @ -o hf.gguf
pair sub/hf "$drive\\sub\\hf" gguf-convert @ -o hf2.gguf=Q4_K_M
pair sub/x.gguf 'sub\x.gguf' gguf-quantize --allow-requantize @ Q4_K_M
test -f "$tmp/windows/sub/ggml-model-Q4_K_M.gguf"
verdict 'the default output lies beside the input' $? /dev/null
pair "$tmp/text" "Z:$tmp/text" gguf-imatrix -m F16.gguf -f @ -c 128 --chunks 1 -t 2 -o sub/im.gguf
pair "$tmp/native/sub/im.gguf" "$drive\\sub\\im.gguf" \
    gguf-quantize --imatrix @ F16.gguf weighted.gguf Q2_K
pair "$tmp/native/z.gguf=Q5_0" "$drive\\z.gguf=Q5_0" gguf-quantize F16.gguf -o @
pair 'Grüße 世界 🦙.gguf' 'Grüße 世界 🦙.gguf' gguf-quantize F16.gguf @ Q5_1
pair 'Grüße 世界 🦙.gguf' 'Grüße 世界 🦙.gguf' gguf-info --json @
same_text >"$tmp/log/diff"
verdict 'messages have names outside ASCII' $? "$tmp/log/diff"
long=$(printf '%060d' 0 | tr 0 n)
long=$long/$long/$long/$long/$long
mkdir -p "$tmp/native/$long" "$tmp/windows/$long"
pair "$long/a.gguf" "$(printf %s "$long" | tr / '\\')\\a.gguf" gguf-quantize F16.gguf @ IQ4_XS
pair "$long/part" "$drive\\$(printf %s "$long" | tr / '\\')\\part" gguf-split --split-max-tensors 30 F16.gguf @
pair "$long/part-00001-of-00002.gguf" "$long/part-00001-of-00002.gguf" gguf-info @
pair "$long" "$long" gguf-convert F16.gguf --to-safetensors @/hf
pair "$long/hf" "$long\\hf" gguf-convert @ -o "@.gguf"
in_windows gguf-info --table 's*b\p*.gguf' </dev/null
test "$rc_windows" -eq 0 && test "$(grep -c part "$tmp/log/out.w")" -ge 1
verdict 'patterns stand for the files that match' $? "$tmp/log/err.w"
in_windows gguf-tokenize -m F16.gguf -f NUL </dev/null
verdict 'NUL is an empty text' "$rc_windows" "$tmp/log/err.w"

# ---- interruption

# Start a job of seconds, and stop it when a part is complete: sets $job. It
# keeps its locks meanwhile.
start_job() # name of the output
{
    (cd "$tmp/windows" && exec $WINE "$windows/gguf-quantize.exe" \
        --imatrix im.gguf --resume F16.gguf "$1.gguf" IQ2_XXS 1) \
        >"$tmp/log/job" 2>&1 </dev/null &
    job=$!
    # The journal has a row for each complete part. Space is reserved before.
    tries=300 first=0 size=0
    while test $tries -gt 0 && { test "$first" -eq 0 || test "$size" -le "$first"; }; do
        tries=$((tries - 1))
        sleep 0.1
        test ! -s "$tmp/windows/$1.gguf.resume" ||
            size=$(wc -c <"$tmp/windows/$1.gguf.resume")
        test "$first" -ne 0 || first=$size
    done
    kill -STOP $job
}

in_native gguf-quantize -q --imatrix im.gguf F16.gguf stop.gguf IQ2_XXS 2
start_job stop
in_windows gguf-quantize --imatrix im.gguf --resume F16.gguf stop.gguf IQ2_XXS 1
test $rc_windows -eq 1 && grep -q 'another process' "$tmp/log/err.w"
verdict 'a second job on one output is refused' $? "$tmp/log/err.w"
kill -INT $job
kill -CONT $job
wait $job
rc=$?
test $rc -eq 130 && test ! -f "$tmp/windows/stop.gguf" &&
    test -s "$tmp/windows/stop.gguf.resume"
verdict 'Ctrl-C ends a job; its complete part stays' $? "$tmp/log/job"
in_windows gguf-quantize --imatrix im.gguf --resume F16.gguf stop.gguf IQ2_XXS 1
test $rc_windows -eq 0 && cmp "$tmp/native/stop.gguf" "$tmp/windows/stop.gguf" &&
    test ! -e "$tmp/windows/stop.gguf.resume"
verdict 'and it can be resumed' $? "$tmp/log/err.w"
start_job dead
kill -KILL $job
wait $job 2>/dev/null
test ! -f "$tmp/windows/dead.gguf" && test -s "$tmp/windows/dead.gguf.resume"
verdict 'a killed job leaves its complete part' $? "$tmp/log/job"
in_windows gguf-quantize --imatrix im.gguf --resume F16.gguf dead.gguf IQ2_XXS 1
test $rc_windows -eq 0 && cmp "$tmp/native/stop.gguf" "$tmp/windows/dead.gguf"
verdict 'and it can be resumed' $? "$tmp/log/err.w"
remove_gone
find "$tmp/windows" -name '*.tmp' -o -name '*.resume*' >"$tmp/log/left"
test ! -s "$tmp/log/left"
verdict 'no temporary files are left' $? "$tmp/log/left"

done_testing
