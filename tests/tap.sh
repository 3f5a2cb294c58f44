# SPDX-License-Identifier: MIT
# tap.sh - for shell tests: TAP, and a scratch folder $tmp. Sourced.
: "${srcdir:=.}" "${builddir:=.}" "${CC_FOR_TEST:=cc}" "${AWK:=awk}"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0
status=0

verdict() # description, 0 if it holds, file to show if it does not
{
    n=$((n + 1))
    if test "$2" = 0; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        sed 's/^/# /' "$3"
        status=1
    fi
}

skip() # description, why
{
    n=$((n + 1))
    echo "ok $n # SKIP $1: $2"
}

done_testing()
{
    echo "1..$n"
    exit $status
}

# Compile $tmp/NAME.c, as a program that uses the built library, to $tmp/NAME.
# Messages go to $tmp/log.
compile() # NAME
{
    $CC_FOR_TEST -std=c11 -Wall -Wextra -Werror -I"$srcdir/lib" \
        ${TEST_CFLAGS-} -c "$tmp/$1.c" -o "$tmp/$1.o" >"$tmp/log" 2>&1 &&
        "$builddir/libtool" --silent --mode=link --tag=CC $CC_FOR_TEST \
            ${TEST_CFLAGS-} "$tmp/$1.o" "$builddir/libgguf.la" \
            ${TEST_LIBS-} -o "$tmp/$1" >>"$tmp/log" 2>&1
}
