#!/bin/sh
# SPDX-License-Identifier: MIT
# peers.sh - measures another program and ours in turns
#
# Run it in a build folder, after make check or make bench built the tests:
#
#     peers.sh [OPTION]... PROGRAM MODEL...
#
# PROGRAM is the path of a llama-perplexity, llama-imatrix, llama-quantize or
# llama-bench. Its name chooses the measurement on each MODEL:
#
#     llama-perplexity  gguf-ppl: a chunk of a text
#     llama-imatrix     gguf-imatrix: a chunk of a text
#     llama-quantize    gguf-quantize, to the type of -q: a file
#     llama-bench       bench-pass: a token by itself
#
# Times are differences between runs with many and with few chunks (or tokens),
# so that loading does not count; for files they are whole runs. Prints medians
# of RUNS pairs of runs, and the median, smallest and largest ratio of the
# pairs: for processor time (all threads, user and system), which other
# programs do not change, and for wall time. On a shared machine use one
# thread: threads that wait for each other use processor time, too.
#
#     -f TEXT     the text
#     -r RUNS     pairs of runs (default: 5)
#     -t THREADS  threads (default: 1)
#     -c TOKENS   tokens of a chunk (default: 512)
#     -n FEW,MANY numbers of chunks (default: 4,12)
#     -q TYPE     type for llama-quantize (default: Q4_K_M)
#     -o ARGS     more arguments for our program, such as '--precision int8'
#     -x ARGS     more arguments for the other program, such as '-rtr'
set -u
here=$(dirname "$0")
text='' runs=5 threads=1 ctx=512 few=4 many=12 type=Q4_K_M ours='' extra=''
: "${builddir:=.}"

usage()
{
    sed -n '2,/^set/{s/^# \{0,1\}//p;}' "$here/peers.sh" >&2
    exit 2
}

while getopts f:r:t:c:n:q:o:x: opt; do
    case $opt in
    f) text=$OPTARG ;;
    r) runs=$OPTARG ;;
    t) threads=$OPTARG ;;
    c) ctx=$OPTARG ;;
    n) few=${OPTARG%,*} many=${OPTARG#*,} ;;
    q) type=$OPTARG ;;
    o) ours=$OPTARG ;;
    x) extra=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
test $# -ge 2 && test "$many" -gt "$few" && test "$runs" -ge 1 || usage
peer=$1
shift
case ${peer##*/} in
llama-perplexity | llama-imatrix) test -n "$text" || usage ;;
llama-quantize | llama-bench) ;;
*) usage ;;
esac
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM

# Time a command. Its line goes to $tmp/NAME, its messages to $tmp/log.
timed() # NAME command...
{
    timed_name=$1
    shift
    "$builddir/tests/bench/timed" "$tmp/$timed_name" "$@" >"$tmp/log" 2>&1 &&
        return
    echo "peers.sh: $1 failed:" >&2
    tail -5 "$tmp/log" >&2
    exit 1
}

# Run both programs with n chunks, tokens or files: first ours, then the other.
both() # NAME n model
{
    case ${peer##*/} in
    llama-perplexity)
        timed "ours.$1" "$builddir/gguf-ppl" -q -m "$3" -f "$text" -c "$ctx" \
            -t "$threads" --chunks "$2" $ours
        timed "peer.$1" "$peer" -m "$3" -f "$text" -c "$ctx" -b "$ctx" \
            -ub 512 -t "$threads" --chunks "$2" $extra
        ;;
    llama-imatrix)
        timed "ours.$1" "$builddir/gguf-imatrix" -q -m "$3" -f "$text" \
            -c "$ctx" -t "$threads" --chunks "$2" -o "$tmp/ours.imatrix" \
            --force $ours
        timed "peer.$1" "$peer" -m "$3" -f "$text" -c "$ctx" -b "$ctx" \
            -ub 512 -t "$threads" --chunks "$2" -o "$tmp/peer.gguf" $extra
        ;;
    llama-quantize)
        timed "ours.$1" "$builddir/gguf-quantize" -q --force -t "$threads" \
            $ours "$3" "$tmp/ours.gguf" "$type"
        timed "peer.$1" "$peer" $extra "$3" "$tmp/peer.gguf" "$type" "$threads"
        ;;
    llama-bench)
        timed "ours.$1" "$builddir/tests/bench/bench-pass" -t "$threads" \
            -g "$2" $ours "$3"
        timed "peer.$1" "$peer" -m "$3" -p 0 -n "$2" -r 1 -t "$threads" $extra
        ;;
    esac
}

# Print a line of the table for one column (1: wall time, 2: processor time) of
# the files with both programs' times.
report() # column
{
    paste -d ' ' "$tmp/ours.few" "$tmp/ours.many" "$tmp/peer.few" \
        "$tmp/peer.many" |
        awk -v c="$1" -v n="$units" '{
            a = ($(3 + c) - $c) / n
            b = ($(9 + c) - $(6 + c)) / n
            print a, b, (a > 0 ? b / a : 0) }' >"$tmp/pairs"
    for k in 1 2 3; do
        cut -d ' ' -f $k "$tmp/pairs" | sort -g |
            awk '{ v[NR] = $1 }
                 END { print v[int((NR + 1) / 2)], v[1], v[NR] }'
    done | awk 'NR < 3 { printf " %9.3f", $1 }
                NR == 3 { printf " %7.2f (%.2f to %.2f)", $1, $2, $3 }'
}

case ${peer##*/} in
llama-quantize) unit=file units=1 ;;
llama-bench) unit=token units=$((many - few)) ;;
*) unit="chunk of $ctx" units=$((many - few)) ;;
esac
echo "seconds for a $unit, $threads thread(s), medians of $runs runs in turns"
printf '%-28s %9s %9s %-24s %9s %9s %s\n' model ours \
    "${peer##*/}" ' ratio, processor time' ours ' ' ' ratio, time'
for m in "$@"; do
    rm -f "$tmp"/ours.few "$tmp"/ours.many "$tmp"/peer.few "$tmp"/peer.many
    r=0
    while test $r -lt "$runs"; do
        if test "$unit" = file; then
            for p in ours peer; do
                echo '0 0 0' >>"$tmp/$p.few"
            done
        else
            both few "$few" "$m"
        fi
        both many "$many" "$m"
        r=$((r + 1))
    done
    printf '%-28s' "${m##*/}"
    report 2
    printf ' '
    report 1
    echo
done
