#!/bin/sh
# SPDX-License-Identifier: MIT
# Every public header compiles alone, as C11 and as C++11. Every struct in them
# can grow, or its comment says why not.
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

# Every initializer sets up its struct without a warning, in both languages.
{
    echo '#include <gguf/model.h>'
    echo '#include <gguf/backend_impl.h>'
    echo 'int main(void) {'
    sed -n 's/^#define \(GGUF_[A-Z0-9_]*_INIT\) GGUF_INIT(struct \(gguf_[a-z0-9_]*\)).*/\1 \2/p' \
        "$srcdir"/lib/gguf/*.h |
        while read -r macro struct; do
            echo "{ struct $struct s = $macro; if (!s.struct_size) return 1; }"
        done
    echo 'return 0; }'
} >"$tmp/t.c"
n=$((n + 1))
if test "$(wc -l <"$tmp/t.c")" -gt 40; then echo "ok $n - initializers are found"
else echo "not ok $n - initializers are found"; status=1; fi
check "initializers as C11" $CC_FOR_TEST -std=c11 -Wall -Wextra -Wpedantic \
    -Werror -I"$srcdir/lib" -fsyntax-only "$tmp/t.c"
if test -n "$CXX_FOR_TEST"; then
    cp "$tmp/t.c" "$tmp/t.cc"
    check "initializers as C++11" $CXX_FOR_TEST -std=c++11 -Wall -Wextra -Werror \
        -I"$srcdir/lib" -fsyntax-only "$tmp/t.cc"
fi

# Print a line for each struct: its name, and "sized" if it begins with its
# size, else "made" or "never" as its comment says, else "neither".
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
            else if (comment ~ /Only the library makes (it|them); later versions may add members/)
                kind = "made"
            else if (comment ~ /[Ll]ater versions add no members/) kind = "never"
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
same "every struct has its size, or says that it has all its members or is the library's" \
    "$tmp/bad"
# (a table of functions is written down member by member)
sed -n 's/ sized$//p' "$tmp/kinds" | grep -v '_iface$' | while read -r s; do
    init=$(echo "${s}_INIT" | tr a-z A-Z)
    grep -q "define $init\>" "$srcdir"/lib/gguf/*.h || echo "$s: no $init"
done >"$tmp/bad"
same "those with a size have an initialiser" "$tmp/bad"

# A struct that may grow is never in a program's memory: functions take it as
# const only, except tensors, whose members builders do not copy.
cat "$srcdir"/lib/gguf/*.h | tr '\n' ' ' | sed 's|/\*[^*]*\*\(\*\|[^*/][^*]*\*\)*/||g' |
    sed 's/const struct gguf_[a-z0-9_]*//g' >"$tmp/code"
sed -n 's/ made$//p' "$tmp/kinds" | grep -vx gguf_tensor | while read -r s; do
    grep -oE "struct $s \**[a-z_]+[,)]" "$tmp/code"
done >"$tmp/bad"
same "what the library makes is never a program's to fill" "$tmp/bad"
# Every function that takes a struct with a size, or a callback, is called with
# NULL in its place.
cat "$srcdir"/lib/gguf/*.h | tr '\n' ' ' |
    sed 's|/\*[^*]*\*\(\*\|[^*/][^*]*\*\)*/||g; s/;/;\n/g' |
    grep GGUF_API >"$tmp/functions"
{ sed -n 's/ sized$/ \\*/p' "$tmp/kinds" | grep -v '^gguf_allocator '
  printf '[a-z]_fn \\*[a-z_]+[,)]\n_callback [a-z_]+[,)]\n'; } >"$tmp/patterns"
takers() # functions, patterns
{
    sed -n 's/.*[ *]\(gguf_[a-z0-9_]*(\)/\1/p' "$1" | grep -E -f "$2" |
        sed 's/(.*//'
}
takers "$tmp/functions" "$tmp/patterns" | sort -u >"$tmp/takers"
while read -r f; do
    grep -q "\<$f(" "$srcdir/tests/model/check-null.c" || echo "$f"
done <"$tmp/takers" >"$tmp/bad"
same "check-null.c gives NULL to every function that takes one" "$tmp/bad"
n=$((n + 1))
if test "$(wc -l <"$tmp/takers")" -gt 90; then echo "ok $n - they are found"
else echo "not ok $n - they are found"; status=1; fi

# Print a line for each callback (parameter or member) without a comment on
# whether it may be NULL: beside it, before it, at the struct or function, or
# once for the whole header.
silent() # headers...
{
    awk '
        function says(s) { return s ~ /NULL|[Rr]equired|Needed|[Ww]ithout (it|them)/ }
        function check(what) {
            if (!whole && !says(what)) {
                gsub(/[ \t]+/, " ", code); print FILENAME ":" code
            }
        }
        FNR == 1 { whole = 0; before = code = note = structs = "" }
        /Everything is optional that does not say/ { whole = 1 }
        /^$/ { if (structs == "") before = ""; note = ""; next }
        /^ *\/\*/ { before = ""; open = 1 }
        open { before = before $0; if (/\*\//) open = 0; next }
        /^struct gguf_[a-z0-9_]+ \{/ { structs = before "."; before = ""; next }
        /^}/ { structs = before = ""; next }
        { line = $0; comment = ""
          if (match(line, /\/\*/)) {
              comment = substr(line, RSTART)
              if (comment !~ /\*\// && (getline more) > 0) {
                  comment = comment more
                  while (comment !~ /\*\// && (getline more) > 0)
                      comment = comment more
              }
              line = substr(line, 1, RSTART - 1)
          }
          code = code " " line }
        /;/ {
            if (code ~ /[a-z]_fn \*[a-z_]+[;,)]/ || code ~ /\(\*[a-z_]+\)\(/)
                if (code !~ /GGUF_API gguf_any_fn/)
                    check(comment before structs)
            code = ""
            if (structs != "") before = ""
        }' "$@"
}
silent "$srcdir"/lib/gguf/*.h >"$tmp/bad"
same "every callback says whether it may be NULL" "$tmp/bad"

printf '/* None. */\nstruct gguf_a {\n    int b;\n};\n' >"$tmp/x.h"
printf 'struct gguf_c {\n    size_t struct_size;\n};\n' >>"$tmp/x.h"
n=$((n + 1))
if test "$(kinds "$tmp/x.h" | tr '\n' ' ')" = "gguf_a neither gguf_c sized "
then echo "ok $n - a new one with neither is found"
else echo "not ok $n - a new one with neither is found"; status=1; fi
echo "1..$n"
exit $status
