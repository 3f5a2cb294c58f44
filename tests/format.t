#!/bin/sh
# Every .c and .h is laid out as .clang-format says (generated tables, *_tab.c,
# are not). Versions of clang-format differ, so only one is asked.
set -u
: "${srcdir:=.}"
for f in clang-format-14 clang-format; do
    case $($f --version 2>/dev/null) in
    *"version 14."*) break ;;
    esac
    f=
done
if test -z "$f"; then
    echo '1..0 # SKIP no clang-format 14'
    exit 0
fi
cd "$srcdir" || exit 99
echo 1..2
bad=$(find lib tools tests doc -name '*.[ch]' ! -name '*_tab.c' | sort |
    xargs -n 60 "$f" --style=file --dry-run 2>&1 |
    sed -n 's/: warning: .*//p' | sort -u | head -20)
if test -z "$bad"; then echo 'ok 1 - files are as clang-format lays them out'
else
    echo 'not ok 1 - files are as clang-format lays them out (clang-format -i)'
    echo "$bad" | sed 's/^/# /'
fi
# It touches no comments. (Lines of published expressions stay whole.)
bad=$(find lib tools tests doc -name '*.[ch]' ! -name '*_tab.c' | sort |
    xargs awk 'length > 80 && !/^ *"/ { print FILENAME ":" FNR }' | head -20)
if test -z "$bad"; then echo 'ok 2 - no line has more than 80 characters'
else
    echo 'not ok 2 - no line has more than 80 characters'
    echo "$bad" | sed 's/^/# /'
fi
