#!/bin/sh
# SPDX-License-Identifier: MIT
# Models for measurements: sound files of every type, equal each time, that can
# be evaluated. mksynth refuses bad arguments.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
make=$builddir/tests/bench/mksynth
info=$bin/gguf-info
ppl=$bin/gguf-ppl
awk 'BEGIN { for (i = 0; i < 4000; i++) printf "%c%s", 97 + i * i % 26,
    i % 5 ? "" : i % 60 ? " " : "\n" }' >"$tmp/text"

# A number, not "nan": random weights give about e ^ 6, of 512 tokens.
finite() # model
{
    run "$ppl" -q -m "$1" -f "$tmp/text" -c 128 --chunks 2
    test $rc -eq 0 &&
        $AWK '/^Final estimate/ { ok = $5 > 50 && $5 < 50000 }
              END { exit !ok }' "$tmp/out"
}

for type in F32 F16 BF16 Q8_0 Q4_K_M IQ4_XS; do
    m=$tmp/$type.gguf
    run "$make" tiny $type "$m"
    test $rc -eq 0 -a ! -s "$tmp/err" && "$info" -q --check "$m" >"$tmp/out" &&
        finite "$m"
    ok "$type: a sound file, evaluated"
done
run "$make" tiny IQ2_XXS "$tmp/i.gguf"
test $rc -eq 0 && finite "$tmp/i.gguf"
ok 'a type that needs importance data'
for type in F16 Q4_K_M; do
    run "$make" tiny-moe $type "$tmp/x.gguf"
    test $rc -eq 0 && "$info" -q --check "$tmp/x.gguf" >"$tmp/out" &&
        finite "$tmp/x.gguf"
    ok "experts, $type"
done

run "$make" tiny F16 "$tmp/x.gguf"
cmp "$tmp/x.gguf" "$tmp/F16.gguf"
ok 'the same bytes again, over what was there'
run "$make" tiny F16 "$tmp/x.gguf" 2
! cmp -s "$tmp/x.gguf" "$tmp/F16.gguf" &&
    test "$(wc -c <"$tmp/x.gguf")" = "$(wc -c <"$tmp/F16.gguf")"
ok 'another seed, other weights'
"$bin/gguf-quantize" -q "$tmp/F32.gguf" "$tmp/q.gguf" Q4_K_M &&
    "$info" -q --diff "$tmp/q.gguf" "$tmp/Q4_K_M.gguf" >"$tmp/out"
test $? -eq 0 -a ! -s "$tmp/out"
ok 'weights as gguf-quantize makes them of the F32 file'
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
if test -f "$m"; then
    run "$make" tiny Q8_0 "$tmp/x.gguf" 1 "$m"
    "$bin/gguf-tokenize" -m "$m" -f "$tmp/text" >"$tmp/a" &&
        "$bin/gguf-tokenize" -m "$tmp/x.gguf" -f "$tmp/text" >"$tmp/b" &&
        cmp "$tmp/a" "$tmp/b" && finite "$tmp/x.gguf"
    ok "another model's vocabulary"
fi

run "$make" huge F16 "$tmp/no.gguf"
test $rc -eq 2 && grep -q 'SIZE is one of tiny' "$tmp/err"
ok 'a size that there is not'
run "$make" tiny F16 "$tmp/no.gguf" x
test $rc -eq 2 -a ! -e "$tmp/no.gguf"
ok 'a seed that is no number'
run "$make" tiny Q99 "$tmp/no.gguf"
test $rc -eq 1 -a ! -e "$tmp/no.gguf" && grep -q 'Q99' "$tmp/err"
ok 'a type that there is not'
run "$make" tiny F16 "$tmp/none/no.gguf"
test $rc -eq 1 && grep -q 'no.gguf: ' "$tmp/err"
ok 'a folder that there is not'
done_testing
