#!/bin/sh
# The programs in README, libgguf(3) and doc/tour.md compile without warnings against the
# library that was just built, and do what is said of them.
set -u
: "${srcdir:=.}" "${builddir:=.}" "${CC_FOR_TEST:=cc}"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0
status=0
verdict() # name, exit status, log
{
    n=$((n + 1))
    if test "$2" = 0; then echo "ok $n - $1"
    else echo "not ok $n - $1"; sed 's/^/# /' "$3"; status=1; fi
}
sed -n '/^A program$/,/^    cc prog.c/p' "$srcdir/README" |
    sed -n '/^    #include/,/^    }$/s/^    //p' >"$tmp/prog.c"
lines=$(wc -l <"$tmp/prog.c")
test "$lines" -gt 10 && test "$lines" -lt 25
verdict "README has a short program" $? "$tmp/prog.c"

compile() # $tmp/NAME.c to $tmp/NAME
{
    "$builddir/libtool" --silent --mode=compile --tag=CC $CC_FOR_TEST -std=c11 \
        -Wall -Wextra -Werror -I"$srcdir/lib" ${TEST_CFLAGS-} -c "$tmp/$1.c" \
        -o "$tmp/$1.lo" >"$tmp/log" 2>&1 &&
        "$builddir/libtool" --silent --mode=link --tag=CC $CC_FOR_TEST \
            ${TEST_CFLAGS-} "$tmp/$1.lo" "$builddir/libgguf.la" -o "$tmp/$1" >>"$tmp/log" 2>&1
}
compile prog
verdict "it compiles" $? "$tmp/log"

model=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
"$tmp/prog" "$model" >"$tmp/out" 2>&1 &&
    grep -q '^token_embd.weight: 524288 elements$' "$tmp/out"
verdict "it lists the tensors of the shipped model" $? "$tmp/out"

printf 'GGUF' >"$tmp/bad.gguf"
if "$tmp/prog" "$tmp/bad.gguf" >"$tmp/out" 2>&1; then bad=1; else
    test "$(wc -l <"$tmp/out")" = 1; bad=$?
fi
verdict "and refuses a truncated file with one line" "$bad" "$tmp/out"

# Perplexity of the first chunks of the shipped text.
sed -n '/^#include/,/^\.EE/p' "$srcdir/man/libgguf.3" |
    sed '/^\./d; s/\\-/-/g; s/\\e/\\/g' >"$tmp/ppl.c"
compile ppl
verdict "the program in libgguf(3) compiles" $? "$tmp/log"
head -c 4000 "$srcdir/share/tiny-llama/persuasion.txt" |
    "$tmp/ppl" "$model" >"$tmp/out" 2>&1 && grep -q '^[1-9][0-9.]* +/- [0-9.]*$' "$tmp/out"
verdict "it prints a perplexity" $? "$tmp/out"
if "$tmp/ppl" "$tmp/bad.gguf" </dev/null >"$tmp/out" 2>&1; then bad=1; else
    test "$(wc -l <"$tmp/out")" = 1; bad=$?
fi
verdict "and refuses a truncated file with one line" "$bad" "$tmp/out"

# What the tour says it prints.
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$srcdir/doc/tour.md" \
    >"$tmp/tour.c"
sed -n '/a.out$/,/^$/s/^    \([0-9].*\)/\1/p' "$srcdir/doc/tour.md" \
    >"$tmp/want"
lines=$(wc -l <"$tmp/tour.c")
test "$lines" -gt 20 && test "$lines" -lt 60 && test -s "$tmp/want"
verdict "the tour has a program of less than 60 lines" $? "$tmp/tour.c"
compile tour
verdict "it compiles" $? "$tmp/log"
"$tmp/tour" >"$tmp/out" 2>&1 && cmp "$tmp/out" "$tmp/want" >>"$tmp/out" 2>&1
verdict "it prints what the tour says" $? "$tmp/out"
echo "1..$n"
exit $status
