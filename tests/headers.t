#!/bin/sh
# SPDX-License-Identifier: MIT
# Every public header compiles alone, as C11 and as C++11; and every struct in
# them can grow, or says why it cannot.
set -u
: "${srcdir:=.}" "${CC_FOR_TEST:=cc}" "${CXX_FOR_TEST=}"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0
status=0
check() # name compiler...
{
    name=$1; shift
    n=$((n + 1))
    if "$@" 2>"$tmp/log"; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"; sed 's/^/# /' "$tmp/log"; status=1
    fi
}
for h in "$srcdir"/lib/gguf/*.h; do
    b=$(basename "$h")
    printf '#include <gguf/%s>\n#include <gguf/%s>\nint main(void) { return 0; }\n' \
        "$b" "$b" >"$tmp/t.c"
    check "$b as C11" $CC_FOR_TEST -std=c11 -Wall -Wextra -Wpedantic -Werror \
        -I"$srcdir/lib" -fsyntax-only "$tmp/t.c"
    if test -n "$CXX_FOR_TEST"; then
        cp "$tmp/t.c" "$tmp/t.cc"
        check "$b as C++11" $CXX_FOR_TEST -std=c++11 -Wall -Wextra -Werror \
            -I"$srcdir/lib" -fsyntax-only "$tmp/t.cc"
    fi
done

# A line for each struct: its name, "sized" if it begins with its size, else
# "made" or "never" as its comment says, else "neither".
kinds() # headers...
{
    awk '
        /^\/\*/ { comment = "" }
        /^(\/\*| \*)/ { sub(/^\/?[ *]+/, ""); sub(/ *\*\/$/, "")
                         comment = comment " " $0; next }
        /^struct gguf_[a-z0-9_]+ \{$/ { name = $2; first = 1; next }
        name != "" && first {
            first = 0
            kind = "neither"
            if ($1 == "size_t" && $2 ~ /^struct_size;/) kind = "sized"
            else if (comment ~ /Made by the library: (it|they) may grow/)
                kind = "made"
            else if (comment ~ /never grows/) kind = "never"
            print name, kind
        }
        !/^[ \t]/ { comment = "" }
        /^}/ { name = "" }' "$@"
}
same() # description, file with offenders
{
    n=$((n + 1))
    if test ! -s "$2"; then echo "ok $n - $1"
    else echo "not ok $n - $1"; sed 's/^/# /' "$2"; status=1; fi
}
kinds "$srcdir"/lib/gguf/*.h >"$tmp/kinds"
n=$((n + 1))
if test "$(wc -l <"$tmp/kinds")" -gt 50; then echo "ok $n - structs are found"
else echo "not ok $n - structs are found"; status=1; fi
sed -n 's/ neither$//p' "$tmp/kinds" >"$tmp/bad"
same "every struct has its size, or says that it never grows or is the library's" \
    "$tmp/bad"
# (a table of functions is written down member by member)
sed -n 's/ sized$//p' "$tmp/kinds" | grep -v '_iface$' | while read -r s; do
    init=$(echo "${s}_INIT" | tr a-z A-Z)
    grep -q "define $init\>" "$srcdir"/lib/gguf/*.h || echo "$s: no $init"
done >"$tmp/bad"
same "those with a size have an initialiser" "$tmp/bad"

# What may grow at its end is never in the memory of a program: no function
# takes one but as const, or a tensor, whose members builders do not copy.
cat "$srcdir"/lib/gguf/*.h | tr '\n' ' ' | sed 's|/\*[^*]*\*\(\*\|[^*/][^*]*\*\)*/||g' |
    sed 's/const struct gguf_[a-z0-9_]*//g' >"$tmp/code"
sed -n 's/ made$//p' "$tmp/kinds" | grep -vx gguf_tensor | while read -r s; do
    grep -oE "struct $s \**[a-z_]+[,)]" "$tmp/code"
done >"$tmp/bad"
same "what the library makes is never a program's to fill" "$tmp/bad"
printf '/* None. */\nstruct gguf_a {\n    int b;\n};\n' >"$tmp/x.h"
printf 'struct gguf_c {\n    size_t struct_size;\n};\n' >>"$tmp/x.h"
n=$((n + 1))
if test "$(kinds "$tmp/x.h" | tr '\n' ' ')" = "gguf_a neither gguf_c sized "
then echo "ok $n - a new one with neither is found"
else echo "not ok $n - a new one with neither is found"; status=1; fi
echo "1..$n"
exit $status
