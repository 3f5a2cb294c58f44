#!/bin/sh
# Every public header compiles alone, as C11 and as C++11.
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
echo "1..$n"
exit $status
