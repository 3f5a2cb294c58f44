#!/bin/sh
# SPDX-License-Identifier: MIT
# coverage.sh - counts the lines of library and tools that the tests ran
#
#   tests/coverage.sh BUILD     for a build with --enable-coverage whose tests
#                               ran; BUILD/*.gcov then mark the lines that no
#                               test ran with #####
#
# Prints a line for each folder of lib, one for the tools, one for all: lines
# that ran, lines of code, per cent. Headers are not counted. This is part of
# the row coverage of matrix.sh.
set -eu
cd "$1"
find lib tools -name '*.gcno' | sort | xargs ${GCOV-gcov} -l -p |
    awk '
    /^File / {
        name = $0
        gsub(/^File .|.$/, "", name)
        sub(/^.*\/(\.\.\/)*lib\//, "lib/", name)
        sub(/^.*\/(\.\.\/)*tools\//, "tools/", name)
        next
    }
    /^Lines executed:/ && name ~ /^(lib|tools)\/.*\.c$/ {
        sub(/^Lines executed:/, "")
        split($0, w, "% of ")
        room = name
        if (!sub(/^lib\//, "lib ", room)) room = "tools"
        sub(/\/.*/, "", room)
        ran = w[1] * w[2] / 100
        n[room] += w[2]; n["all"] += w[2]
        some[room] += ran; some["all"] += ran
    }
    { name = "" }
    END {
        for (r in n)
            printf "%-12s %6.0f of %6.0f lines  %5.1f %%\n", r, some[r], n[r],
                100 * some[r] / n[r] | "sort"
    }'
