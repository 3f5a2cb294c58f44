#!/bin/sh
# SPDX-License-Identifier: MIT
# The commands of doc/cluster.md run as they are printed there, and give the
# digits of one run. Variables play Slurm's part.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
page=$srcdir/doc/cluster.md
if test ! -f "$m"; then
    skip 'cluster' 'no model in share/'
    done_testing
    exit
fi
MODEL=$tmp/model.gguf TEXT=$tmp/text CTX=64 CHUNKS=0
cp "$m" "$MODEL"
head -c 2000 "$srcdir/share/tiny-llama/persuasion.txt" >"$TEXT"
PATH=$bin:$PATH
export MODEL TEXT CTX CHUNKS PATH
cd "$tmp" || exit 99

for f in share.sh Makefile ppl.sbatch; do
    awk -v f="$f" '/^```$/ { on = 0 } on; /^```/ && $2 == f { on = 1 }' \
        "$page" >"$f"
    test -s "$f"
    ok "the page has $f"
done
chmod +x share.sh

figure()
{
    grep -E '^ *"(ppl|ppl_error|nll|scored)"' "$1"
}

# The page's number of chunks.
run gguf-ppl -m "$MODEL" -f "$TEXT" -c 64 --chunks 1 --save-part first.part
CHUNKS=$(sed -n 's/^.*first.part: part, 1 of \([0-9]*\) chunks$/\1/p' "$tmp/err")
test "${CHUNKS:-0}" -ge 8
ok 'saving the first says how many chunks there are'
gguf-ppl -q -j -m "$MODEL" -f "$TEXT" -c 64 >one.json || exit 99
figure one.json >one
test -s one
ok 'one run has figures'

same() # name: what all parts give is what one run gives
{
    test "$rc" -eq 0 && gguf-ppl -j --merge-parts part.* >all.json &&
        figure all.json | cmp -s - one
    ok "$1: the digits of one run"
}

if make --version 2>/dev/null | grep -q GNU && command -v seq >/dev/null; then
    run env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -j2
    test $rc -eq 0 && figure ppl.json | cmp -s - one
    ok 'make: the digits of one run'
    rm -f part.2
    run env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make
    test $rc -eq 0 && test "$(grep -c '^\./share.sh' "$tmp/out")" = 1 &&
        figure ppl.json | cmp -s - one
    ok 'make: goes on with the part that is missing'
else
    skip 'make' 'no GNU make and seq'
fi

rm -f part.*
SLURM_ARRAY_TASK_COUNT=3 SLURM_CPUS_PER_TASK=2
export SLURM_ARRAY_TASK_COUNT SLURM_CPUS_PER_TASK
rc=0
for i in 2 0 1; do
    SLURM_ARRAY_TASK_ID=$i sh ppl.sbatch >"$tmp/out" 2>"$tmp/err" || rc=1
done
same 'an array of three tasks'

rm -f part.*
if mpirun --version 2>/dev/null | grep -q 'Open MPI' &&
    mpirun --allow-run-as-root --oversubscribe -n 2 true >/dev/null 2>&1
then
    sed -n 's/^    \$ mpirun -n 4 sh/sh/p' "$page" >command
    run sh -c "mpirun --allow-run-as-root --oversubscribe -n 4 $(cat command)"
    test -s command && test "$(ls part.* | wc -l)" = 4
    ok 'mpirun starts four shares'
    same 'mpirun'
else
    skip 'mpirun' 'no Open MPI that starts processes here'
fi
cd / || exit 99
done_testing
