#!/bin/sh
# SPDX-License-Identifier: MIT
# The tools do not overwrite files that they read, do not remove files that
# they did not make, and keep a report until the new one is complete. The disk
# is compared after runs that are refused, that fail and that succeed.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
q=$bin/gguf-quantize edit=$bin/gguf-edit imatrix=$bin/gguf-imatrix
split=$bin/gguf-split ppl=$bin/gguf-ppl convert=$bin/gguf-convert
if test ! -f "$srcdir/share/tiny-llama/tiny-llama-f16.gguf"; then
    echo "1..0 # SKIP no model in share/"
    exit 0
fi
d=$tmp/d
m=$d/m.gguf
mkdir "$d" "$d/sub" || exit 99
cp "$srcdir/share/tiny-llama/tiny-llama-f16.gguf" "$m" &&
    "$split" -q --split-max-tensors 20 "$m" "$d/s" &&
    "$builddir/tests/tools/mkimatrix" "$d/i.dat" tensor blk.0.attn_q.weight \
        256 || exit 99
printf 'base Q8_0\n' >"$d/recipe"
printf 'attn_q=Q8_0\n' >"$d/types"
printf 'an old report' >"$d/report"
printf 'a text' >"$d/text"
ln -s m.gguf "$d/link"
ln "$d/i.dat" "$d/hard"

# Content of the folder: names, inodes, sizes, bytes.
look()
{
    (cd "$d" && ls -Ail . sub && cat m.gguf s-* i.dat recipe types report text |
        cksum)
}

# The command must end with status 1 and these words, and change nothing on the
# disk.
refused() # words, command...
{
    words=$1
    shift
    look >"$tmp/before"
    run "$@"
    look >"$tmp/after"
    test $rc -eq 1 && grep -q "$words" "$tmp/err" &&
        test "$(grep -vc ': warning: ' "$tmp/err")" -eq 1 &&
        cmp "$tmp/before" "$tmp/after" >>"$tmp/err" 2>&1
}

# ---------------------------------------------------------- gguf-quantize ---
refused 'both --imatrix and output' "$q" -q -f --imatrix "$d/i.dat" "$m" \
    "$d/i.dat" Q8_0
ok '--imatrix is not the output'
refused 'both --imatrix and output' "$q" -q -f --imatrix "$d/i.dat" "$m" \
    "$d/hard" Q8_0
ok 'nor by a hard link'
refused 'both --recipe and output' "$q" -q -f --recipe "$d/recipe" "$m" \
    "$d/sub/../recipe"
ok '--recipe is not the output'
refused 'both --tensor-type-file and output' "$q" -q -f --tensor-type-file \
    "$d/types" "$m" "$d/types" Q8_0
ok '--tensor-type-file is not the output'
refused 'both --tensor-type-file and report' "$q" -q -f --tensor-type-file \
    "$d/types" --report="$d/types" "$m" "$d/o.gguf" Q8_0
ok 'nor the report'
refused 'both --imatrix and report' "$q" -q -f --imatrix "$d/i.dat" \
    --report="$d/hard" "$m" "$d/o.gguf" Q8_0
ok '--imatrix is not the report'
refused 'both --recipe and report' "$q" -q -f --recipe "$d/recipe" \
    --report="$d/recipe" "$m" "$d/o.gguf"
ok '--recipe is not the report'
for name in m.gguf link sub/../m.gguf; do
    refused 'would be both input and output' "$q" -q -f "$m" "$d/$name" Q8_0
    ok "the input is not the output: $name"
    refused 'both report and input' "$q" -q -f --report="$d/$name" "$m" \
        "$d/o.gguf" Q8_0
    ok "nor the report: $name"
done
refused 'both input and output' "$q" -q -f "$d/s-00001-of-00003.gguf" \
    "$d/s-00002-of-00003.gguf" Q8_0
ok 'nor is another shard of it the output'
refused 'both report and input' "$q" -q -f --report="$d/s-00003-of-00003.gguf" \
    "$d/s-00001-of-00003.gguf" "$d/o.gguf" Q8_0
ok 'or the report'
refused 'both report and output' "$q" -q -f --report="$d/new" "$m" \
    "$d/sub/../new" Q8_0
ok 'a new report is not a new output'
refused 'output twice' "$q" -q -f "$m" -o "$d/new=Q8_0" -o "$d/sub/../new=F16"
ok 'nor are two outputs one'
for end in .resume .resume-data; do
    refused "both report and" "$q" -q -f --resume --report="$d/o$end" "$m" \
        "$d/o" Q8_0
    ok "a report is not what --resume writes: $end"
    refused "both output and" "$q" -q -f --resume "$m" -o "$d/o=Q8_0" \
        -o "$d/o$end=F16"
    ok "nor is a second output: $end"
    ln "$m" "$d/o$end"
    refused "both input and" "$q" -q -f --resume "$m" "$d/o" Q8_0
    ok "nor the input: $end"
    rm "$d/o$end"
    printf 'of others' >"$d/o$end"
    refused "o$end'* is " "$q" -q -f --resume "$m" "$d/o" Q8_0
    ok "a stranger's file stays: $end"
    rm "$d/o$end"
    ln -s text "$d/o$end"
    refused "is not a regular file" "$q" -q -f --resume "$m" "$d/o" Q8_0
    ok "so does a link: $end"
    rm "$d/o$end"
done
run sh -c '"$@" >>"$0"' "$d/text" "$q" -q -f --json "$m" "$d/text" Q8_0
test $rc -eq 1 -a "$(cat "$d/text")" = 'a text' &&
    grep -q 'both standard output and output' "$tmp/err"
ok 'standard output is not the output'
run "$q" -q "$m" -o "$d/o=Q8_0" -o "$d/o.resume=F16"
test $rc -eq 0 -a -s "$d/o" -a -s "$d/o.resume"
ok 'without --resume these are names like others'
rm -f "$d/o" "$d/o.resume"

# The report.
run "$q" -q -f --report="$d/report" --prune-layers 99 "$m" "$d/o.gguf" Q8_0
test $rc -eq 1 -a "$(cat "$d/report")" = 'an old report'
ok 'the old report stays when there is no plan'
touch "$d/o.gguf"
chmod 444 "$d/report"
node=$(ls -i "$d/report")
run "$q" -q -f --report="$d/report" "$m" "$d/sub" Q8_0
test $rc -eq 1 -a "$(cat "$d/report")" = 'an old report' -a \
    "$(ls -i "$d/report")" = "$node"
ok 'and when the run fails'
test -z "$(ls -A "$d" | grep '^\.')"
ok 'without anything left of the new one'
run "$q" -q -f --report="$d/report" "$m" "$d/o.gguf" Q8_0
test $rc -eq 0 -a "$(head -c 1 "$d/report")$(tail -n 1 "$d/report")" = '{}'
ok 'a run that succeeds replaces it'
ln -s report "$d/to-report"
run "$q" -q -f --report="$d/to-report" "$m" "$d/o.gguf" Q8_0
test $rc -eq 0 -a ! -h "$d/to-report" -a "$(ls -i "$d/report")" != "$node"
ok 'a link is replaced itself, as outputs are'
rm -f "$d/to-report"
mkfifo "$d/fifo"
timeout 20 cat "$d/fifo" >"$tmp/read" &
run timeout 20 "$q" -q -f --report="$d/fifo" "$m" "$d/sub" Q8_0
wait $!
test $rc -eq 1 -a -p "$d/fifo" -a ! -s "$tmp/read"
ok 'a pipe stays when the run fails'
timeout 20 cat "$d/fifo" >"$tmp/read" &
run timeout 20 "$q" -q -f --report="$d/fifo" "$m" "$d/o.gguf" Q8_0
wait $!
test $rc -eq 0 -a -p "$d/fifo" && grep -q '"snr_db"' "$tmp/read"
ok 'and gets the report when it succeeds'
timeout 20 sh -c ': <"$0"' "$d/fifo" &
run timeout 20 "$q" -q -f --report="$d/fifo" "$m" "$d/o.gguf" Q8_0
wait $!
test $rc -eq 1 -a -p "$d/fifo" && grep -q 'fifo: .*Broken pipe' "$tmp/err"
ok 'a reader that goes away is an error'
run "$q" -q -f --report=/dev/null "$m" "$d/sub" Q8_0
test $rc -eq 1 -a -c /dev/null
ok 'a device stays when the run fails'
run "$q" -q -f --report=/dev/null "$m" "$d/o.gguf" Q8_0
test $rc -eq 0 -a -c /dev/null
ok 'and when it succeeds'
if test -c /dev/full; then
    run "$q" -q -f --report=/dev/full "$m" "$d/o.gguf" Q8_0
    test $rc -eq 1 -a -c /dev/full && grep -q 'No space left' "$tmp/err"
    ok 'a full one is an error'
fi
run "$q" -q -f --report="$d/sub" "$m" "$d/o.gguf" Q8_0
test $rc -eq 1 -a -d "$d/sub" && grep -q 'not a regular file' "$tmp/err"
ok 'a folder cannot be a report'
rm -f "$d/o.gguf" "$d/fifo"

# Tables of several outputs.
run "$q" -n -q --explain "$m" -o "$d/a.gguf=Q8_0" -o "$d/b.gguf=F16"
test $rc -eq 0 && test "$(head -n 1 "$tmp/out")" = "$d/a.gguf: Q8_0" &&
    test "$(grep -c -x "$d/b.gguf: F16" "$tmp/out")" -eq 1 &&
    test "$(grep -B 1 -x "$d/b.gguf: F16" "$tmp/out" | head -n 1)" = '' &&
    test "$(grep -c ': Q8_0$' "$tmp/out")" -eq 1
ok '--explain: each table says which output it is about'
run "$q" -q --explain --report "$m" -o "$d/a.gguf=Q8_0" -o "$d/b.gguf=Q4_0"
test $rc -eq 0 && test "$(grep -c -x "$d/a.gguf: Q8_0" "$tmp/out")" -eq 2 &&
    test "$(grep -c -x "$d/b.gguf: Q4_0" "$tmp/out")" -eq 2
ok '--report: so does each of these'
rm -f "$d/a.gguf" "$d/b.gguf"
run "$q" -q -n --explain "$m" "$d/a.gguf" Q8_0
test $rc -eq 0 && ! grep -q ': Q8_0$' "$tmp/out"
ok 'one output needs no name'

# ------------------------------------------------------------ gguf-imatrix ---
for name in i.dat hard sub/../i.dat; do
    refused 'both input and output' "$imatrix" -q --force -o "$d/$name" "$d/i.dat"
    ok "gguf-imatrix: IN is not OUT: $name"
done
for name in m.gguf link; do
    refused 'both --model and output' "$imatrix" -q --force --model "$m" \
        -o "$d/$name" "$d/i.dat"
    ok "gguf-imatrix: --model is not OUT: $name"
done
refused 'both --model and output' "$imatrix" -q --force \
    --model "$d/s-00001-of-00003.gguf" -o "$d/s-00003-of-00003.gguf" "$d/i.dat"
ok 'gguf-imatrix: nor is a shard of it'
run "$imatrix" -q --force -o "$d/x.gguf" "$d/i.dat"
test $rc -eq 0 -a -s "$d/x.gguf"
ok 'gguf-imatrix: another name is'
rm -f "$d/x.gguf"

# --------------------------------------------------------------- gguf-edit ---
refused 'both --set-file and output' "$edit" -q -f --set-file a.b="$d/text" \
    -o "$d/text" "$m"
ok 'gguf-edit: --set-file is not OUT'
refused 'both --set-file and output' "$edit" -q -f --set-file a.b="$d/link" "$m"
ok 'gguf-edit: nor the file that is edited'
touch "$m.edit-journal"
refused 'both --set-file and journal' "$edit" -q -f --set-file \
    a.b="$m.edit-journal" "$m"
ok 'gguf-edit: nor its journal'
rm -f "$m.edit-journal"
look >"$tmp/before"
run sh -c '"$@" <"$0"' "$d/text" "$edit" -q -f --set-file a.b=- \
    -o "$d/text" "$m"
look >"$tmp/after"
test $rc -eq 1 && grep -q 'both --set-file and output' "$tmp/err" &&
    cmp "$tmp/before" "$tmp/after"
ok 'gguf-edit: nor is standard input'
refused 'both input and output' "$edit" -q -f --set a.b=1 -o "$d/link" "$m"
ok 'gguf-edit: FILE is not OUT'

# -------------------------------------------------------------- gguf-split ---
refused 'input' "$split" -q -f --merge "$d/s" "$d/s-00002-of-00003.gguf"
ok 'gguf-split: a shard is not OUT'
refused 'input' "$split" -q -f --split-max-tensors 20 \
    "$d/s-00001-of-00003.gguf" "$d/s"
ok 'gguf-split: nor are the new ones the old ones'

# --------------------------------------------------------------- addresses ---
# Options that do not read from servers say so before anything is done.
far() # COMMAND...
{
    run "$@"
    test $rc -eq 1 && test ! -s "$tmp/out" &&
        grep -q '://.*is on a server, expected a local file' "$tmp/err" &&
        test "$(wc -l <"$tmp/err")" -eq 1
}
far "$ppl" -m https://example.org/m.gguf -f "$d/text"
ok 'gguf-ppl: a model on a server'
far "$bin/gguf-eval" -m hf://o/r/m.gguf --print-graph
ok 'gguf-ppl: its graph'
HF_ENDPOINT=https://hub.example far "$ppl" -m "$m" -f "$d/text" \
    --base hf://o/r@v1/m.gguf &&
    grep -q "(curl -LO 'https://hub.example/o/r/resolve/v1/m.gguf')" "$tmp/err"
ok 'gguf-ppl: a base on a server, and where it is'
far "$ppl" -m "$m" -f "$d/text" --lora hf://o/r/lora.gguf=2
ok 'gguf-ppl: an adapter on a server'
far "$ppl" -m "$m" -f http://example.org/text
ok 'gguf-ppl: a text on a server'
far "$imatrix" -m hf://o/r/m.gguf -f "$d/text" -o "$d/x.dat"
ok 'gguf-imatrix: a model on a server'
far "$imatrix" https://example.org/a.gguf -o "$d/x.dat"
ok 'gguf-imatrix: data on a server'
far "$edit" -f --set a.b=1 https://example.org/m.gguf
ok 'gguf-edit: a model on a server'
far "$q" --imatrix https://example.org/a.gguf "$m" "$d/x.gguf" Q4_0
ok 'gguf-quantize: importance data on a server'
done_testing
