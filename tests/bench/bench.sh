#!/bin/sh
# SPDX-License-Identifier: MIT
# bench.sh - runs the programs of make bench and writes tables and JSON
#
#     bench.sh [TABLES]
#
# TABLES are some of products codecs graphs attention linalg feedback passes
# tokens; default: all. make bench runs it in the build folder. Variables:
#
#     BENCH_JSON     file for the JSON (default: bench.json)
#     BENCH_THREADS  threads of passes and tokens (default: 1); 0: one for each
#                    processor
#     BENCH_ROUNDS   runs of each measurement; the best counts (default: 3)
#     BENCH_SIZES    sizes of models, as mksynth names them (default: 160m moe);
#                    also 1b 8b
#     BENCH_TYPES    types of models (default: F16 Q8_0 Q4_K_M)
#     BENCH_CONTEXTS contexts of passes (default: 512 4096)
#     BENCH_MODELS   folder for the models, which are kept there
#
# doc/bench.md explains the tables.
set -u
: "${builddir:=.}" "${AWK:=awk}" "${BENCH_JSON:=bench.json}"
: "${BENCH_THREADS:=1}" "${BENCH_ROUNDS:=3}" "${BENCH_SIZES:=160m moe}"
: "${BENCH_TYPES:=F16 Q8_0 Q4_K_M}" "${BENCH_CONTEXTS:=512 4096}"
tables=${*:-products codecs graphs attention linalg feedback passes tokens}
b=$builddir/tests/bench
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
models=${BENCH_MODELS:-$tmp}
test "$BENCH_THREADS" -gt 0 || BENCH_THREADS=$(getconf _NPROCESSORS_ONLN)

# Run a program for each model: $model is its path, $type its type.
each_model() # command...
{
    for size in $BENCH_SIZES; do
        for type in $BENCH_TYPES; do
            model=$models/$size-$type.gguf
            test -f "$model" || "$b/mksynth" "$size" "$type" "$model" ||
                return 1
            "$@" || return 1
            test -n "${BENCH_MODELS-}" || rm -f "$model"
        done
    done
}

passes()
{
    for precision in exact int16 int8; do
        case $precision-$type in
        int*-F16 | int*-BF16 | int*-F32) continue ;; # products are exact, too
        esac
        for context in $BENCH_CONTEXTS; do
            "$b/bench-pass" -t "$BENCH_THREADS" -r "$BENCH_ROUNDS" \
                -p $precision -c "$context" "$model" || return 1
        done
    done
}

tokens()
{
    "$b/bench-pass" -t "$BENCH_THREADS" -g 16 "$model"
}

measure() # table
{
    case $1 in
    products) "$b/bench-gemm" "$BENCH_THREADS" "$BENCH_ROUNDS" ;;
    codecs) "$b/bench-codec" '' "$BENCH_ROUNDS" ;;
    graphs) "$b/bench-graph" ;;
    attention) "$b/bench-attn" '' "$BENCH_ROUNDS" ;;
    linalg) "$b/bench-linalg" "$BENCH_ROUNDS" ;;
    feedback) "$b/bench-feedback" "$BENCH_ROUNDS" ;;
    passes | tokens) each_model "$1" ;;
    *)
        echo "bench.sh: no such table: $1" >&2
        return 2
        ;;
    esac
}

: >"$tmp/rows"
for table in $tables; do
    { measure "$table" || echo $? >"$tmp/failed"; } | tee -a "$tmp/rows" |
        $AWK -F '\t' '
        $1 != table { print "\n" $1 ":"; table = $1 }
        { line = sprintf("%-26s %-30s %-8s %-5s %2d %10.5g %-12s", $2, $3, $4,
                         $5, $6, $7, $8)
          if ($9 != "-") line = line sprintf(" %5.1f%% of %s", 100 * $9, $10)
          if ($11 != "-")
              line = line sprintf(", median %.1f%% worse", 100 * $11)
          sub(/ +$/, "", line)
          print line
          fflush() }'
    test ! -f "$tmp/failed" || exit "$(cat "$tmp/failed")"
done
$AWK -F '\t' -v machine="$(uname -sm)" \
    -v cpu="$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null |
        sed 1q)" -v n="$(getconf _NPROCESSORS_ONLN)" '
    function text(s) { gsub(/[\\"]/, "\\\\&", s); return "\"" s "\"" }
    function name(s) { return s == "-" ? "null" : text(s) }
    function number(s) { return s == "-" ? "null" : s }
    BEGIN { printf "{\"schema\": 1, \"system\": %s, \"processor\": %s, " \
            "\"processors\": %d,\n \"rows\": [", text(machine), text(cpu), n }
    { printf "%s\n  {\"table\": %s, \"what\": %s, \"shape\": %s, " \
          "\"level\": %s, \"precision\": %s, \"threads\": %s, " \
          "\"value\": %s, \"unit\": %s, \"part\": %s, \"of\": %s, " \
          "\"spread\": %s}", (NR > 1 ? "," : ""), text($1), text($2),
          name($3), name($4), name($5), number($6), number($7), text($8),
          number($9), name($10), number($11) }
    END { print "\n]}" }' "$tmp/rows" >"$tmp/json" &&
    cp "$tmp/json" "$BENCH_JSON"
