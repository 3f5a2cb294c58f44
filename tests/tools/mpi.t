#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ppl --mpi: any number of ranks gives the bytes of one process. An error
# is printed once and ends all ranks; so does a killed rank. A build without
# MPI says so.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
schema=$srcdir/share/gguf-ppl.schema.json
if test ! -f "$m"; then
    skip 'mpi' 'no model in share/'
    done_testing
    exit
fi
t=$tmp/text q4=$tmp/q4.gguf
head -c 2000 "$srcdir/share/tiny-llama/persuasion.txt" >"$t"
run "$ppl" -m "$m" -f "$t" -c 64 --mpi
if grep -q 'without MPI' "$tmp/err"; then
    test $rc -eq 1 -a ! -s "$tmp/out" -a "$(wc -l <"$tmp/err")" -eq 1 &&
        grep -q -e '--mpi: built without MPI: .*configure --with-mpi' "$tmp/err"
    ok 'a build without MPI says how to build one with it'
    skip 'mpi' 'built without MPI'
    done_testing
    exit
fi
ranks() # how many, command...
{
    n_ranks=$1
    shift
    timeout 120 mpirun --oversubscribe -np "$n_ranks" "$@"
}
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
if ! mpirun --version 2>/dev/null | grep -q 'Open MPI' ||
    ! ranks 2 true >/dev/null 2>&1
then
    skip 'mpi' 'no Open MPI that starts processes here'
    done_testing
    exit
fi
"$bin/gguf-quantize" -q "$m" "$q4" Q4_K_M || exit 99

# Everything but times and numbers of ranks.
bytes()
{
    sed -e '/"timings": {/,/^  }/d' -e '/^time /d' -e '/^ranks /d' \
        -e '/"rank_chunks"/d' -e '/"seconds"/d' -e '/"tokens_per_second"/d' \
        "$tmp/out"
}

same() # name, numbers of ranks, arguments...
{
    same_name=$1 same_ranks=$2
    shift 2
    for form in '' -j; do
        run "$ppl" -t 1 "$@" $form
        bytes >"$tmp/one"
        for k in $same_ranks; do
            run ranks $k "$ppl" -t 1 "$@" $form --mpi
            test $rc -eq 0 -a -s "$tmp/one" && bytes | cmp -s - "$tmp/one"
            ok "$same_name: $k ranks $form, the bytes of one process"
        done
    done
}
same 'perplexity' '1 2 3 5' -m "$m" -f "$t" -c 64
cp "$tmp/out" "$tmp/alone.json"
same 'windows' '4' -m "$m" -f "$t" -c 64 --ppl-stride 16 --chunks 3..9
same 'two models' '2 5' -m "$q4" -m "$m" --base "$m" -f "$t" -c 64
cp "$tmp/out" "$tmp/side.json"
"$ppl" -q -m "$m" -f "$t" -c 64 --save-base "$tmp/logits" >"$tmp/out" || exit 99
same 'saved logits' '3' -m "$q4" --base "$tmp/logits"
cp "$t" "$tmp/in-1.txt"
tail -c 700 "$t" >"$tmp/in-2.txt"
same 'several texts' '1 2 4' -m "$m" -f "$tmp/in-*.txt" -c 64
same 'several texts, two models' '2 4' -m "$q4" --base "$m" \
    -f "$tmp/in-1.txt" -f "$tmp/in-2.txt" -c 64 --ppl-stride 48
awk 'length > 20 { gsub(/["\\]/, ""); printf "{\"text\": \"%s\"}\n", $0 }' \
    "$t" >"$tmp/lines.jsonl"
same 'lines of JSON' '1 2 4' -m "$m" -f "$tmp/lines.jsonl" --field text -c 8 \
    --skip-short
cp "$tmp/out" "$tmp/lines.json"
awk 'length > 30 { gsub(/["\\]/, ""); n++
    printf "{\"ctx\": \"%s\", \"endings\": [\"a table\", \"was\", \"%s of\", \"no\"], \"label\": %d}\n", \
        substr($0, 1, 25), substr($0, 26, 12), n % 4 }' "$t" >"$tmp/hella"
sed 's/"ctx"/"question"/; s/"endings"/"choices"/' "$tmp/hella" >"$tmp/choice"
awk 'BEGIN { for (i = 0; i < 9; i++)
    printf "%d,Anne heard Mary%d for _ was loud %d times.,she,the man,%d\n", i, i, i * i, i % 2 + 1 }' >"$tmp/wino"
same 'HellaSwag' '1 2 4' -m "$m" -f "$tmp/hella" --hellaswag
cp "$tmp/out" "$tmp/tasks.json"
same 'WinoGrande' '4' -m "$m" -f "$tmp/wino" --winogrande --compat
same 'multiple choice' '2' -m "$m" -f "$tmp/choice" --multiple-choice \
    --tasks 9 --chunks 2..8

# ---- files that rank 0 writes
page() # file: without what depends on time and ranks
{
    sed -e '/timings/,/^  }/d' -e '/rank_chunks/d' -e '/seconds/d' \
        -e '/tokens_per_second/d' "$1"
}
written() # name, numbers of ranks, arguments...
{
    written_name=$1 written_ranks=$2
    shift 2
    "$ppl" -q -t 1 "$@" --per-token "$tmp/1.csv" --plot "$tmp/1.svg" \
        --html "$tmp/1.html" --force >"$tmp/o" 2>&1 || exit 99
    for k in $written_ranks; do
        run ranks $k "$ppl" -q -t 1 "$@" --per-token "$tmp/k.csv" \
            --plot "$tmp/k.svg" --html "$tmp/k.html" --force --mpi
        page "$tmp/1.html" >"$tmp/1.page"
        test $rc -eq 0 && cmp -s "$tmp/1.csv" "$tmp/k.csv" &&
            cmp -s "$tmp/1.svg" "$tmp/k.svg" &&
            page "$tmp/k.html" | cmp -s - "$tmp/1.page"
        ok "$written_name: $k ranks write the files of one process"
    done
}
written 'perplexity' '1 2 4' -m "$m" -f "$t" -c 64
written 'two models' '1 2 4' -m "$q4" -m "$m" --base "$m" -f "$t" -c 64
written 'several texts' '3' -m "$m" -f "$tmp/in-1.txt" -f "$tmp/in-2.txt" \
    -c 64 --ppl-stride 40
run ranks 2 "$ppl" -q -t 1 -m "$m" -f "$t" -c 64 --mpi --per-token "$tmp/1.csv"
test $rc -eq 1 && grep -q 'rank 0: .*1.csv: ' "$tmp/err" &&
    ! grep -q 'Final' "$tmp/out"
ok 'a file that exists is known before'

# ---- calibrations
quantize=$bin/gguf-quantize
m1=$tmp/layer.gguf few='--calib-tokens 2k'
"$quantize" -q --prune-layers 1,2,3,4,5 "$m" "$m1" COPY || exit 99
head -c 9000 "$srcdir/share/tiny-llama/persuasion.txt" >"$tmp/calib"
"$quantize" -q -t 1 --calibrate "$tmp/calib" $few "$m1" "$tmp/1.gguf" Q4_K_M ||
    exit 99
for k in 1 2 3; do
    rm -f "$tmp/k.gguf"
    TMPDIR=$tmp
    export TMPDIR
    run ranks $k "$quantize" -t 1 --mpi --calibrate "$tmp/calib" $few "$m1" \
        "$tmp/k.gguf" Q4_K_M
    unset TMPDIR
    test $rc -eq 0 && cmp -s "$tmp/1.gguf" "$tmp/k.gguf" &&
        test "$(grep -c 'new bytes in' "$tmp/err")" -eq 1 &&
        test -z "$(find "$tmp" -name 'gguf-quantize-*')"
    ok "a calibration: $k ranks write the bytes of one process"
done
rm -f "$tmp/k.gguf"
"$quantize" -q -t 1 --resume --calibrate "$tmp/calib" $few "$m1" \
    "$tmp/k.gguf" Q4_K_M &
pid=$!
i=0
while kill -0 $pid 2>/dev/null && test $i -lt 500 &&
    ! test "$(cat "$tmp/k.gguf.resume" 2>/dev/null | wc -c)" -ge 2400
do
    i=$((i + 1))
    sleep 0.02
done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
run ranks 2 "$quantize" -f -t 1 --resume --mpi --calibrate "$tmp/calib" $few \
    "$m1" "$tmp/k.gguf" Q4_K_M
test $rc -eq 0 && cmp -s "$tmp/1.gguf" "$tmp/k.gguf"
ok 'ranks continue a calibration of one process'
rm -f "$tmp/k.gguf"
cp "$t" "$tmp/text.1"
cp "$tmp/calib" "$tmp/text.0"
run ranks 2 sh -c "exec '$quantize' -q -t 1 --mpi --calibrate \
    '$tmp/text.'\$OMPI_COMM_WORLD_RANK $few '$m1' '$tmp/k.gguf' Q4_K_M"
test $rc -eq 1 -a ! -e "$tmp/k.gguf" &&
    grep -q 'rank 1: .*the texts or options of rank 1 differ' "$tmp/err"
ok 'a rank with another text'

# ---- importance data
imatrix=$bin/gguf-imatrix
"$imatrix" -q -t 1 -m "$m" -f "$t" -c 64 -o "$tmp/1.imatrix" || exit 99
for k in 1 2 4; do
    rm -f "$tmp/k.imatrix"
    TMPDIR=$tmp
    export TMPDIR
    run ranks $k "$imatrix" -q -t 1 -m "$m" -f "$t" -c 64 \
        -o "$tmp/k.imatrix" --mpi
    unset TMPDIR
    test $rc -eq 0 && cmp -s "$tmp/1.imatrix" "$tmp/k.imatrix" &&
        test -z "$(find "$tmp" -name 'gguf-imatrix-*')"
    ok "importance data: $k ranks, the bytes of one process"
done
run ranks 3 "$imatrix" -t 1 -m "$m" -f "$t" -c 64 --chunks 0..6 --mpi \
    --save-part "$tmp/i0"
test $rc -eq 0 && "$imatrix" -q -m "$m" -f "$t" -c 64 --chunks 6.. \
    --save-part "$tmp/i1" && "$imatrix" -q --merge-parts "$tmp/i1" "$tmp/i0" \
    -o "$tmp/k.imatrix" --force && cmp -s "$tmp/1.imatrix" "$tmp/k.imatrix"
ok 'importance data: a part has the chunks of all ranks'
run ranks 4 "$imatrix" -q -t 1 -m "$m" -f "$t" -c 64 --chunks 2 --mpi \
    -o "$tmp/k.imatrix" --force
"$imatrix" -q -t 1 -m "$m" -f "$t" -c 64 --chunks 2 -o "$tmp/2.imatrix" &&
    test $rc -eq 0 && cmp -s "$tmp/2.imatrix" "$tmp/k.imatrix"
ok 'importance data: more ranks than chunks'
run ranks 1 "$imatrix" -q -t 1 -m "$m" -f "$t" -c 64 --mpi -o "$tmp/x" : -np 1 \
    "$imatrix" -q -t 1 -m "$q4" -f "$t" -c 64 --mpi -o "$tmp/x"
test $rc -eq 1 -a ! -e "$tmp/x" && grep -q \
    "^gguf-imatrix: rank 1: is a part of another run: 'model.0' is" "$tmp/err"
ok 'importance data: a rank with another model'
run "$imatrix" -m "$m" -f "$t" --mpi --resume -o "$tmp/x"
test $rc -eq 2 && grep -q -e '--mpi' "$tmp/err"
ok 'importance data: what is for one process is refused'
if test -c /dev/full; then
    run ranks 2 "$imatrix" -q -t 1 -m "$m" -f "$t" -c 64 --mpi -j >/dev/full
    "$imatrix" -q -t 1 -m "$m" -f "$t" -c 64 --mpi -j >/dev/full 2>"$tmp/err"
    test $? -eq 1 && grep -q 'standard output: ' "$tmp/err"
    ok 'importance data: a full disk'
fi
for f in alone side lines tasks; do
    if command -v python3 >/dev/null 2>&1; then
        run python3 "$srcdir/tests/tools/schema.py" "$schema" "$tmp/$f.json"
        test $rc -eq 0 -a ! -s "$tmp/out"
        ok "$f: JSON keeps to the schema"
    else
        skip "$f: JSON keeps to the schema" 'no python3'
    fi
done

# Numbers of chunks that the ranks computed, from a document.
shares()
{
    sed -n 's/^ *"rank_chunks": \[\(.*\)\],*$/\1/p' "$1" | tr -d ,
}
set -- $(shares "$tmp/alone.json")
sum=0
for k in "$@"; do sum=$((sum + k)); done
test $# -eq 5 -a $sum -eq "$("$ppl" -q -m "$m" -f "$t" -c 64 |
    sed -n 's/^chunks *\([0-9]*\) of.*/\1/p')"
ok "each chunk was evaluated once ($*)"

run ranks 5 "$ppl" -q -j -t 1 -m "$m" -f "$t" -c 64 --chunks 2 --mpi
cp "$tmp/out" "$tmp/few.json"
set -- $(shares "$tmp/few.json")
test $rc -eq 0 -a $# -eq 5 -a "${1-}" = 1
ok "more ranks than chunks ($*)"

# A rank that is stopped for a while takes fewer chunks. It starts with the
# others, and is stopped once it computes.
cat >"$tmp/slow.sh" <<'END'
#!/bin/sh
"$@" &
sleep 1.5
kill -STOP $!
sleep 2
kill -CONT $!
wait $!
END
chmod +x "$tmp/slow.sh"
long=$srcdir/share/tiny-llama/persuasion.txt
run ranks 1 "$ppl" -q -j -t 1 -m "$m" -f "$long" --chunks 64 --mpi : \
    -np 1 "$tmp/slow.sh" "$ppl" -q -j -t 1 -m "$m" -f "$long" --chunks 64 --mpi
set -- $(shares "$tmp/out")
test $rc -eq 0 -a $# -eq 2 && test $(($1 + $2)) -eq 64 -a "$2" -lt "$1"
ok "a slow rank takes fewer chunks ($*)"

# ---- a part of what all did
run ranks 3 "$ppl" -t 1 -m "$m" -f "$t" -c 64 --chunks 0..7 --mpi \
    --save-part "$tmp/p0"
test $rc -eq 0 && grep -q 'p0: part, 7 of [0-9]* chunks' "$tmp/err" &&
    "$ppl" -q -m "$m" -f "$t" -c 64 --chunks 7.. --save-part "$tmp/p1" \
        >"$tmp/o" && "$ppl" -q -m "$m" -f "$t" -c 64 >"$tmp/o" &&
    "$ppl" --merge-parts "$tmp/p1" "$tmp/p0" | grep -qx "$(tail -1 "$tmp/o")"
ok '--save-part has the chunks of all ranks'
run ranks 3 "$ppl" -t 1 -m "$m" -f "$t" -c 64 --mpi --save-part "$tmp/p0"
test $rc -eq 1 && grep -q 'rank 0: .*p0: exists' "$tmp/err"
ok 'a part that exists is kept'

# ---- errors
said() # status, what is in the one line of ours
{
    test $rc -eq "$1" -a "$(grep -c '^gguf-ppl: ' "$tmp/err")" -eq 1 &&
        grep -q "^gguf-ppl: $2" "$tmp/err"
}
run ranks 3 "$ppl" -m "$tmp/none.gguf" -f "$t" --mpi
said 1 'rank [012]: .*none.gguf: there is no such file'
ok 'an error of all ranks is said once'
run ranks 3 "$ppl" -m "$m" -f "$t" --mpi --bogus
said 2 "rank [012]: unknown option '--bogus'"
ok 'a wrong usage, too'
head -c 8000 "$long" >"$t"
own="$ppl -q -t 1 -m $m -f $t -c 64 --mpi"
run ranks 2 $own : -np 1 "$ppl" -q -m "$tmp/none.gguf" -f "$t" -c 64 --mpi
said 1 'rank 2: .*none.gguf: there is no such file'
ok 'an error of one rank ends all'
run ranks 1 "$ppl" -q -m "$tmp/none.gguf" -f "$t" -c 64 --mpi : -np 2 $own
said 1 'rank 0: .*none.gguf: there is no such file'
ok 'of rank 0, too'
sed 's/the/The/' "$t" >"$tmp/text2"
run ranks 2 $own : -np 1 "$ppl" -q -m "$m" -f "$tmp/text2" -c 64 --mpi
said 1 "rank 2: is a part of another run: '\(text\|tokens\)' is\|rank .: the texts of the ranks"
ok 'a rank with another text'
run ranks 2 $own : -np 1 "$ppl" -q -m "$q4" -f "$t" -c 64 --mpi
said 1 "rank 2: is a part of another run: 'model.0' is"
ok 'a rank with another model'
run ranks 2 $own : -np 1 "$ppl" -q -m "$m" -f "$t" -c 64 --mpi --chunks 5
said 1 'rank [012]: the texts of the ranks differ: .* have 5 to '
ok 'a rank with fewer chunks'
run ranks 2 "$ppl" -m "$m" -f - --mpi
said 2 'rank [01]: --mpi: only one rank has standard input'
ok 'standard input'
for how in '--save-base x' --layer-major; do
    # shellcheck disable=SC2086
    run "$ppl" -m "$m" -f "$t" --base "$q4" $how --mpi
    test $rc -eq 2 && grep -q "exclude each other" "$tmp/err"
    ok "$how is for one process"
done
sed 's/no"/of"/' "$tmp/hella" >"$tmp/hella2"
run ranks 2 "$ppl" -q -t 1 -m "$m" -f "$tmp/hella" --hellaswag --mpi : -np 1 \
    "$ppl" -q -t 1 -m "$m" -f "$tmp/hella2" --hellaswag --mpi
said 1 "rank 2: is a part of another run: 'text' is"
ok 'a rank with other tasks'
run ranks 2 "$ppl" -q -t 1 -m "$m" -f "$t" -f "$tmp/in-2.txt" -c 64 --mpi : -np 1 \
    "$ppl" -q -t 1 -m "$m" -f "$t" -f "$tmp/text2" -c 64 --mpi
said 1 "rank 2: is a part of another run: 'texts' is\|rank .: the texts of the ranks"
ok 'a rank with other texts'
"$ppl" -q -m "$m" -f "$t" -c 64 --mpi >/dev/full 2>"$tmp/err"
rc=$?
said 1 'standard output: '
ok 'a full disk'

if test -c /dev/full && mkdir "$tmp/full" && mount -t tmpfs -o size=4k none \
    "$tmp/full" 2>/dev/null
then
    run ranks 2 "$ppl" -q -t 1 -m "$m" -f "$t" -c 64 --mpi \
        --save-part "$tmp/full/part"
    said 1 'rank 0: .*full/part: ' && test -z "$(ls -A "$tmp/full")"
    ok 'a full disk while a part is saved: nothing is left'
    run ranks 2 "$imatrix" -q -t 1 -m "$m" -f "$t" -c 64 --mpi \
        -o "$tmp/full/imatrix"
    test $rc -eq 1 && grep -q '^gguf-imatrix: rank 0: .*full/imatrix: ' \
        "$tmp/err" && test -z "$(ls -A "$tmp/full")"
    ok 'nor of importance data'
    umount "$tmp/full"
else
    skip 'a full disk while a part is saved' 'no disk of a few bytes here'
fi

# ---- a rank that is killed
cat >"$tmp/start.sh" <<'END'
#!/bin/sh
echo $$ >"$1.$OMPI_COMM_WORLD_RANK"
shift
exec "$@"
END
chmod +x "$tmp/start.sh"
killed() # name, victim, file that must not be there, command...
{
    killed_name=$1 victim=$2 killed_file=$3
    shift 3
    rm -f "$tmp"/pid.* "$killed_file"
    ranks 3 "$tmp/start.sh" "$tmp/pid" "$@" >"$tmp/out" 2>"$tmp/err" &
    job=$!
    k=0
    while test ! -s "$tmp/pid.$victim" -a $k -lt 100; do
        k=$((k + 1))
        sleep 0.1
    done
    sleep 1.5
    kill -9 "$(cat "$tmp/pid.$victim")" 2>/dev/null
    killed=$?
    wait $job
    rc=$?
    test $killed -eq 0 -a $rc -ne 0 -a $rc -ne 124 -a ! -e "$killed_file"
    ok "$killed_name: rank $victim is killed: all end, no file appears ($rc)"
}
for victim in 2 0; do
    killed 'perplexity' $victim "$tmp/killed.part" "$ppl" -q -t 1 -m "$m" \
        -f "$long" --mpi --save-part "$tmp/killed.part"
done
killed 'tables and pictures' 1 "$tmp/killed.csv" "$ppl" -q -t 1 -m "$m" \
    -f "$long" --mpi --per-token "$tmp/killed.csv" --plot "$tmp/killed.svg"
test ! -e "$tmp/killed.svg"
ok 'nor a picture'
killed 'importance data' 1 "$tmp/killed.imatrix" "$imatrix" -q -t 1 -m "$m" \
    -f "$long" --mpi -o "$tmp/killed.imatrix"
done_testing
