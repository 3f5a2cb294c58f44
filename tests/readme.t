#!/bin/sh
# SPDX-License-Identifier: MIT
# The programs in README, libgguf(3) and doc/tour.md compile without warnings
# against the built library, and print the text's output.
set -u
. "${srcdir:-.}/tests/tap.sh"
sed -n '/^A program$/,/^    cc prog.c/p' "$srcdir/README" |
    sed -n '/^    #include/,/^    }$/s/^    //p' >"$tmp/prog.c"
lines=$(wc -l <"$tmp/prog.c")
test "$lines" -gt 10 && test "$lines" -lt 25
verdict "README has a short program" $? "$tmp/prog.c"

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

n_archs=$(grep -c '^| \*\*' "$srcdir/doc/architectures.md")
grep "^Evaluation: $n_archs architectures: " "$srcdir/README" >"$tmp/out" 2>&1
verdict "README says how many architectures are evaluated ($n_archs)" $? "$tmp/out"
grep "Evaluates $n_archs architectures " "$srcdir/ChangeLog" >"$tmp/out" 2>&1
verdict "and ChangeLog" $? "$tmp/out"

# gguf-ppl's output in README, except the time and the machine's figures.
shown()
{
    sed -e '/^time /d' -e 's/^\(mode .*\), [0-9]* threads*, .*/\1/' "$1"
}
# Are texts equal except for the last digit of figures, in which machines
# differ? Words are equal, numbers within 1e-6.
same()
{
    awk 'function rest(s) { gsub(/[0-9]+(\.[0-9]+)?/, "#", s); return s }
    NR == FNR { want[++n] = $0; next }
    { if (rest($0) != rest(want[++m])) { print "want " want[m]; print "have " $0; bad = 1; next }
      a = $0; b = want[m]
      while (match(a, /[0-9]+(\.[0-9]+)?/)) {
          x = substr(a, RSTART, RLENGTH); a = substr(a, RSTART + RLENGTH)
          match(b, /[0-9]+(\.[0-9]+)?/)
          y = substr(b, RSTART, RLENGTH); b = substr(b, RSTART + RLENGTH)
          d = x - y
          if (d * d > 1e-12 * y * y) { print "want " y; print "have " x; bad = 1 }
      } }
    END { exit bad || m != n }' "$1" "$2"
}
# Sizes of the demo's files.
for type in Q8_0 Q4_K_M; do
    "$builddir/gguf-quantize" -qf "$model" "$tmp/demo.gguf" $type >"$tmp/log" 2>&1
    size=$(wc -c <"$tmp/demo.gguf" | tr -d ' ')
    grep "^ *$type.gguf *$size " "$srcdir/README" >"$tmp/out" 2>&1
    verdict "README says how many bytes the demo's $type has ($size)" $? "$tmp/log"
done

said=$(sed -n '/\$ gguf-ppl -m small.gguf -f persuasion.txt --chunks 4$/,/^$/p' \
    "$srcdir/README" | sed -e 1d -e 's/^    //')
echo "$said" >"$tmp/said"
"$builddir/gguf-quantize" -q "$model" "$tmp/small.gguf" Q4_K_M >"$tmp/log" 2>&1 &&
    cp "$srcdir/share/tiny-llama/persuasion.txt" "$tmp" &&
    "$builddir/gguf-ppl" -m "$tmp/small.gguf" -f "$tmp/persuasion.txt" \
        --chunks 4 >"$tmp/ppl.out" 2>>"$tmp/log" &&
    shown "$tmp/said" | grep . >"$tmp/want" &&
    shown "$tmp/ppl.out" | sed "s|$tmp/||" >"$tmp/have" &&
    same "$tmp/want" "$tmp/have" >>"$tmp/log"
verdict "gguf-ppl prints what README shows" $? "$tmp/log"

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

# The tour's program prints the tour's output.
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

# The program that writes.
cp "$srcdir/doc/generate.c" "$tmp/generate.c"
test "$(grep -vc SPDX "$tmp/generate.c")" -lt 100
verdict "doc/generate.c has less than 100 lines, but for its licence" $? "$tmp/generate.c"
TEST_LIBS=-lm
compile generate
verdict "it compiles" $? "$tmp/log"
begin='Once upon a time'
said() { sed -n "/generate .* '$begin' $1\$/{n;s/^    //p;}" "$srcdir/doc/from-ggml.md"; }
"$tmp/generate" "$model" "$begin" 20 >"$tmp/greedy" 2>&1 &&
    test "$(cat "$tmp/greedy")" = "$(said 20)"
verdict "it goes on as doc/from-ggml.md says" $? "$tmp/greedy"
"$tmp/generate" "$model" "$begin" 20 0.8 1 >"$tmp/out" 2>&1 &&
    cmp "$tmp/greedy" "$tmp/out" >>"$tmp/out" 2>&1
verdict "the best one of all is the most probable" $? "$tmp/out"
"$tmp/generate" "$model" "$begin" 20 0.8 40 0.95 7 >"$tmp/out" 2>&1 &&
    test "$(cat "$tmp/out")" = "$(said '20 0.8 40 0.95 7')"
verdict "a seed says what is drawn" $? "$tmp/out"
"$tmp/generate" "$model" "$begin" 20 0.8 40 0.95 8 >"$tmp/again" 2>&1 &&
    ! cmp -s "$tmp/out" "$tmp/again"
verdict "another one something else" $? "$tmp/again"
# Every function that the page names exists.
grep -o '`gguf_[a-z0-9_]*`' "$srcdir/doc/from-ggml.md" | tr -d '`' |
    grep -v -e '_$' -e '^gguf_\(init_from_file\|find_key\|get_val_u32\|find_tensor\|get_tensor_offset\|write_to_file\)$' |
    sort -u >"$tmp/named"
grep -ohw 'gguf_[a-z0-9_]*' "$srcdir"/lib/gguf/*.h | sort -u >"$tmp/there"
comm -23 "$tmp/named" "$tmp/there" >"$tmp/out"
test -s "$tmp/named" && test ! -s "$tmp/out"
verdict "what the page calls ours is in the headers" $? "$tmp/out"
"$tmp/generate" "$model" "$begin" 9999 >"$tmp/out" 2>"$tmp/err"
test $? = 1 && test "$(sed '/^$/d' "$tmp/err" | wc -l)" = 1
verdict "a full context is an error of one line" $? "$tmp/err"
done_testing
