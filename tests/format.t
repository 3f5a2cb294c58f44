#!/bin/sh
# SPDX-License-Identifier: MIT
# Layout of files and functions: none is too long to be read in one sitting,
# and every .c and .h except generated tables (*_tab.c) has the layout of
# .clang-format. Versions of clang-format differ, so only one is asked.
set -u
: "${srcdir:=.}"
n=0
verdict() # name, offenders
{
    n=$((n + 1))
    if test -z "$2"; then echo "ok $n - $1"
    else echo "not ok $n - $1"; echo "$2" | sed 's/^/# /'; fi
}
sources() # what find takes: the files that people write
{
    find lib tools tests doc "$@" ! -name '*_tab.c' | sort
}
cd "$srcdir" || exit 99

verdict 'no file has more than 600 lines' "$(
    sources '(' -name '*.[cht]' -o -name '*.sh' ')' | xargs wc -l |
    awk '$2 != "total" && $1 > 600 { print $2 ": " $1 }' | head -20)"

verdict 'half of the files of lib have fewer than 150 lines' "$(
    find lib -name '*.[ch]' ! -name '*_tab.c' | xargs wc -l |
    awk '$2 != "total" { n++; short += $1 < 150 }
         END { if (2 * short <= n) print short " of " n }')"

# The licence is in the first line, or after #!; see COPYING.
verdict 'every source names its licence' "$(
    find lib tools tests doc man m4 packaging share bootstrap configure.ac \
        Makefile.am libgguf.pc.in ! -name '*_tab.c' '(' -name '*.[cht1-9]' -o \
        -name '*.[1-9]in' -o -name '*.sh' -o -name '*.awk' -o -name '*.py' -o \
        -name '*.m4' -o -name 'Makefile.*' -o -name '*.map' -o -name '*.spec' \
        -o -name '*.rb' -o -name '*.pc.in' -o -name bootstrap -o \
        -name configure.ac ')' ! -name 'lt*.m4' ! -name libtool.m4 \
        ! -name 'Makefile.in' | sort |
    xargs awk 'FNR == 1 { seen = 0 }
        FNR <= 2 && /SPDX-License-Identifier: MIT/ { seen = 1 }
        FNR == 2 && !seen { print FILENAME }' | head -20)"

# Braces of functions stand alone in the first column: count lines between.
verdict 'no function of lib or tools has more than 60 lines' "$(
    sources -name '*.[ch]' | grep -E '^(lib|tools)/' | xargs awk '
    /^[{]$/ { begin = FNR }
    /^[}]$/ && begin {
        if (FNR - begin - 1 > 60)
            print FILENAME ":" begin ": " FNR - begin - 1
        begin = 0
    }' | head -20)"

# In f "$(command)" $?, bash has the status of command, dash the previous one.
verdict 'no status is asked for after a command among the words' "$(
    find tests -name '*.t' -o -name '*.sh' | sort |
    xargs grep -nE '^ *[a-z_]+ .*[$][(][^;]*[)][^;|&]* [$][?]' | head -20)"

for f in clang-format-14 clang-format; do
    case $($f --version 2>/dev/null) in
    *"version 14."*) break ;;
    esac
    f=
done
if test -z "$f"; then
    echo "ok $((n + 1)) - layout # SKIP no clang-format 14"
    echo "1..$((n + 1))"
    exit 0
fi
verdict 'files are as clang-format lays them out (clang-format -i)' "$(
    sources -name '*.[ch]' |
    xargs -n 60 "$f" --style=file --dry-run 2>&1 |
    sed -n 's/: warning: .*//p' | sort -u | head -20)"
# clang-format does not wrap comments. (Lines of published expressions stay.)
verdict 'no line has more than 80 characters' "$(
    sources -name '*.[ch]' |
    xargs awk 'length > 80 && !/^ *"/ { print FILENAME ":" FNR }' | head -20)"
echo "1..$n"
