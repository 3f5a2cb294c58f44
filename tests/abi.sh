#!/bin/sh
# SPDX-License-Identifier: MIT
# abi.sh - compare the shared library's interface with the recorded one
#
#   tests/abi.sh why SOURCE           Print why the comparison cannot run, if so.
#   tests/abi.sh check SOURCE BUILD   Compare the library in BUILD with the
#                                     record; exit 1 if something was removed or
#                                     changed.
#   tests/abi.sh write SOURCE BUILD   Record the library in BUILD.
#
# The record is tests/libgguf.abi: a line for each public function, enumerator,
# member of a struct and function type (abi.awk), as abidw of libabigail reads
# them from the debugging data. BUILD is configured with CFLAGS that have -g.
#
# New lines do not count: functions are added, and structs grow at their
# end. Whoever removes or changes a line records the library anew and says in
# the ChangeLog how programs change with it. The row abi of matrix.sh runs check.
set -eu
mode=$1 src=$2
record=$src/tests/libgguf.abi
if test "$mode" = why; then
    if ! command -v abidw >/dev/null; then echo "abidw is not installed"
    elif ! test -s "$record"; then echo "tests/libgguf.abi is missing"
    elif test "$(uname -m)" != x86_64; then echo "the record is of x86_64"
    fi
    exit 0
fi
interface() # BUILD
{
    abidw --headers-dir "$src/lib/gguf" --drop-private-types --no-corpus-path \
        --no-comp-dir-path --no-show-locs --no-elf-needed \
        --no-parameter-names "$1/.libs/libgguf.so" |
        awk -f "$src/tests/abi.awk" | LC_ALL=C sort -u
}
case $mode in
check)
    interface "$3" >"$3/libgguf.abi"
    test "$(wc -l <"$3/libgguf.abi")" -gt 1000
    diff "$record" "$3/libgguf.abi" >"$3/abi.diff" || :
    if grep '^<' "$3/abi.diff"; then
        echo "the lines above are not in the interface any more; all differences:"
        cat "$3/abi.diff"
        exit 1
    fi
    sed -n 's/^> /new: /p' "$3/abi.diff"
    ;;
write)
    interface "$3" >"$record.new"
    mv "$record.new" "$record"
    ;;
*) echo "abi.sh: '$mode': expected why, check or write" >&2; exit 2 ;;
esac
