#!/bin/sh
# SPDX-License-Identifier: MIT
# fuzz.sh - runs fuzz targets one after another and prints their results
#
#   tests/fuzz/fuzz.sh TARGET...
#
# Runs in a folder that was configured with --enable-fuzz; `make fuzz` calls
# it. Each target gets $FUZZ_TIME seconds and its seeds. New inputs are kept in
# fuzz/TARGET for the next run, failures in fuzz/TARGET-crash-..., -oom-... or
# -timeout-..., the log in fuzz/TARGET.log. Prints a row per target. Exit
# status: 1 if any failed.
set -u
: "${FUZZ_TIME:=60}"
status=0

# The number of statistic $2 in libFuzzer's log $1.
stat() {
    sed -n "s/^stat::$2: *//p" "$1"
}

# Largest input in bytes: longer ones only take longer.
max_len() {
    case $1 in
    decode) echo 600 ;;
    encode | meta) echo 1024 ;;
    arch | text) echo 256 ;;
    adapter | split) echo 8192 ;;
    check | folder | quant) echo 16384 ;;
    model) echo 32768 ;;
    *) echo 4096 ;;
    esac
}

# Memory limit in MB: a model is a file, its weights and a session.
rss_limit() {
    case $1 in
    arch) echo 2048 ;;
    *) echo 512 ;;
    esac
}

printf '%-11s %6s %6s %12s %7s %8s  %s\n' target wall cpu executions \
    corpus 'peak MB' failures
for name; do
    if ! test -x "tests/fuzz/fuzz-$name"; then
        echo "fuzz.sh: tests/fuzz/fuzz-$name is not here:" \
            "configure with --enable-fuzz CC=clang" >&2
        exit 1
    fi
    log=fuzz/$name.log
    rm -rf "fuzz/$name.seeds"
    mkdir -p "fuzz/$name" "fuzz/$name.seeds"
    "tests/fuzz/check-$name" --seeds "fuzz/$name.seeds" || exit 1
    begin=$(date +%s)
    (
        "tests/fuzz/fuzz-$name" -max_total_time="$FUZZ_TIME" \
            -max_len="$(max_len "$name")" -timeout=10 \
            -rss_limit_mb="$(rss_limit "$name")" \
            -print_final_stats=1 -artifact_prefix="fuzz/$name-" \
            "fuzz/$name" "fuzz/$name.seeds" >"$log" 2>&1
        times >"$log.cpu"
    )
    cpu=$(awk -F '[ms ]' \
        'NR == 2 { printf "%.1f", $1 * 60 + $2 + $4 * 60 + $5 }' "$log.cpu")
    rm -f "$log.cpu"
    wall=$(($(date +%s) - begin))
    failures=$(sed -n 's/^.*Test unit written to //p' "$log" | tr '\n' ' ')
    test -n "$(stat "$log" number_of_executed_units)" ||
        failures="$failures(see $log)"
    test -z "$failures" || status=1
    printf '%-11s %6s %6s %12s %7s %8s  %s\n' "$name" "$wall" "$cpu" \
        "$(stat "$log" number_of_executed_units)" \
        "$(find "fuzz/$name" -type f | wc -l)" \
        "$(stat "$log" peak_rss_mb)" "${failures:-none}"
done
exit $status
