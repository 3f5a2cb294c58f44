#!/bin/sh
# SPDX-License-Identifier: MIT
# No memory: each allocation of a conversion fails once (nomem.c), some of them
# with all later ones, and the address space ends at every tenth MB (with
# GGUF_TEST_LONG at every MB). Each run says "memory" and leaves no output, or
# gives the output of a run with memory. It does not crash or print another
# message.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
preload=$builddir/tests/fault/.libs/nomem.so
case ${TEST_CFLAGS-}${EMULATOR:+emulator} in
*sanitize* | *emulator*)
    skip 'no memory' 'another allocator'
    done_testing
    ;;
esac
LD_PRELOAD=$preload GGUF_NOMEM_COUNT=$tmp/count "$bin/gguf-info" --version \
    >/dev/null 2>&1
if ! test -s "$tmp/count"; then
    skip 'no memory' 'nothing can be preloaded'
    done_testing
fi
step=13 mb=10
test -z "${GGUF_TEST_LONG-}" || step=1 mb=1

# Check the files after a run. $1: the fault.
judge()
{
    if test $rc -eq 0 && diff -r "$tmp/want" "$out" >/dev/null 2>&1; then
        return
    fi
    # the last allocation comes when the output has its name
    if test $rc -eq 1 && grep -qi 'memory' "$tmp/err" &&
        { ! test -e "$out" || diff -r "$tmp/want" "$out" >/dev/null 2>&1; }; then
        return
    fi
    echo "$1: status $rc: $(head -c 200 "$tmp/err")" >>"$tmp/bad"
}

# Fail every allocation of a command whose output is $out.
sweep() # description, command...
{
    what=$1
    shift
    : >"$tmp/bad"
    rm -rf "$out" "$tmp/want"
    run env LD_PRELOAD="$preload" GGUF_NOMEM_COUNT="$tmp/count" "$@"
    mv "$out" "$tmp/want" || exit 99
    count=$(cat "$tmp/count")
    i=1
    while test $i -le "$count"; do
        for all in '' +; do
            rm -rf "$out"
            run env LD_PRELOAD="$preload" GGUF_NOMEM="$i$all" "$@"
            judge "allocation $i$all"
            test $step -eq 1 || break
        done
        i=$((i + step))
    done
    verdict "$what: each of $count allocations fails, in steps of $step" \
        "$(test -s "$tmp/bad"; echo $((1 - $?)))" "$tmp/bad"
}

spaces() # description, command...
{
    what=$1 size=20
    shift
    : >"$tmp/bad"
    rm -rf "$out" "$tmp/want"
    "$@" && mv "$out" "$tmp/want" || exit 99
    while test $size -le 100; do
        rm -rf "$out"
        (
            # shellcheck disable=SC3045
            ulimit -v $((size * 1024)) && exec "$@"
        ) >"$tmp/out" 2>"$tmp/err"
        rc=$?
        grep -q 'shared libraries' "$tmp/err" || judge "$size MB"
        size=$((size + mb))
    done
    verdict "$what: address spaces of 20 to 100 MB, in steps of $mb" \
        "$(test -s "$tmp/bad"; echo $((1 - $?)))" "$tmp/bad"
}

"$builddir/tests/tools/mkfolder" "$tmp/hf" bf16 files=2 || exit 99
printf -- '---\ntags: [a, b]\nlicense: mit\n---\n# A model\n' >"$tmp/hf/README.md"
out=$tmp/out.gguf
sweep 'a folder' "$bin/gguf-convert" -q "$tmp/hf" -o "$out"
cp "$tmp/want" "$tmp/m.gguf"
out=$tmp/back
sweep 'the way back' "$bin/gguf-convert" -q "$tmp/m.gguf" \
    --to-safetensors="$out"

"$builddir/tests/tools/mkfolder" "$tmp/see" vision wide || exit 99
out=$tmp/out.gguf
sweep 'a projector' "$bin/gguf-convert" -q -t 1 "$tmp/see" --mmproj -o "$out"
"$bin/gguf-quantize" -q "$srcdir/share/tiny-llama/tiny-llama-f16.gguf" \
    --prune-layers 1,2,3,4,5 "$tmp/plain.gguf" Q4_K_M || exit 99
sweep 'rows moved into groups' "$bin/gguf-quantize" -q -t 1 \
    --repack-to=interleaved "$tmp/plain.gguf" "$out"

# 200,000 values of config.json take some 40 MB as a tree.
{
    printf '{"id2label":{"x":"y"'
    awk 'BEGIN { for (i = 0; i < 200000; i++) printf ",\"%d\":\"l%d\"", i, i }'
    printf '},'
    sed 's/^{//' "$tmp/hf/config.json"
} >"$tmp/config.json" && mv "$tmp/config.json" "$tmp/hf" || exit 99
out=$tmp/out.gguf
spaces 'a folder with a long config.json' "$bin/gguf-convert" -q -t 1 \
    "$tmp/hf" -o "$out"
done_testing
