#!/bin/sh
# SPDX-License-Identifier: MIT
# An architecture is added by three files of one name, as HACKING shows: two
# rows and a text. The example is Qwen3 under another name, so that its digest
# is that of llama.cpp's outputs for Qwen3.
set -u
. "${srcdir:-.}/tests/tap.sh"

new=arcef family=llama
mkdir -p "$tmp/tests/family/$family" "$tmp/folders" || exit 99
example() # rows, or lines of the text, of HACKING
{
    awk -v begin="$1" -v end="$2" 'index($0, begin) { on = 1 }
        on { sub(/^    /, ""); print } on && index($0, end) { exit }' \
        "$srcdir/HACKING"
}
put() # file, what the first line has that the rows go before
{
    awk -v rows="$tmp/rows" -v at="$2" 'index($0, at) && !done {
        while ((getline row < rows) > 0) print row
        done = 1 } { print }' "$srcdir/$1"
}

example '{ .name = "arcef"' '},' >"$tmp/rows"
put lib/model/family/$family.c '.name = "baichuan"' >"$tmp/model.c"
test -s "$tmp/rows" && grep -q "$new" "$tmp/model.c"
verdict "HACKING has a row of the model" $? "$tmp/rows"
example '{ .classes = "ArcefForCausalLM"' '},' >"$tmp/rows"
put lib/convert/family/$family.c '{ .classes =' >"$tmp/convert.c"
test -s "$tmp/rows" && grep -q "$new" "$tmp/convert.c"
verdict "HACKING has a row of its folder" $? "$tmp/rows"
example 'seed 0x718e' 'key attention.key_length 8' |
    sed "s/^digest .*/$(grep '^digest' "$srcdir/tests/family/qwen/qwen3.txt")/" \
        >"$tmp/tests/family/$family/$new.txt"
cp "$srcdir/tests/family/blocks.txt" "$tmp/tests/family/"

# Link the library with these two files in place of its own.
for f in model convert; do
    $CC_FOR_TEST -std=c11 -ffp-contract=off -I"$builddir" -I"$srcdir" \
        -I"$srcdir/lib" ${TEST_CFLAGS-} -c "$tmp/$f.c" -o "$tmp/$f.o" || exit 99
done
try() # what it checks, program, its argument, its other objects
{
    what=$1 program=$2 argument=$3
    shift 3
    "$builddir/libtool" --silent --mode=link --tag=CC $CC_FOR_TEST \
        ${TEST_CFLAGS-} "$tmp/model.o" "$tmp/convert.o" \
        "$builddir/$program.o" "$@" "$builddir/tests/libmodel.la" \
        "$builddir/libgg.la" ${TEST_LIBS-} -o "$tmp/program" >"$tmp/out" 2>&1 &&
        (cd "$tmp" && srcdir=$tmp GGUF_SHARED= ./program "$argument") \
            >"$tmp/out" 2>&1 && grep -q "^ok.*$new" "$tmp/out"
    verdict "$what" $? "$tmp/out"
}
try "the model has llama.cpp's outputs" tests/family/check-archs $new \
    "$builddir/tests/family/page.o"
try "its variants hold" tests/family/check-variants $new \
    "$builddir/tests/family/refbert.o"
try "a folder becomes it, with its keys" tests/convert/check-archs \
    "$tmp/folders" "$builddir/tests/libfolder.la"
done_testing
