#!/bin/sh
# SPDX-License-Identifier: MIT
# A calibrated file diverges no more than the plain one, in any type: on a model
# with experts whose activations have full rank, where feedback gains little.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
q=$bin/gguf-quantize
m=$tmp/m.gguf
"$builddir/tests/tools/mkfullrank" "$m" || exit 99

# Two texts of random words of the vocabulary, with equal frequencies.
for seed in 1 2; do
    awk -v s=$seed 'BEGIN {
        for (i = 0; i < 8000; i++) {
            s = (s * 16807) % 2147483647
            w = s % 1789
            printf "%c%c%c", 65 + w % 26, 97 + int(w / 26) % 26,
                97 + int(w / 676)
        }
    }' >"$tmp/$seed.txt"
done
"$bin/gguf-imatrix" -q -m "$m" -f "$tmp/1.txt" -o "$tmp/i.gguf" || exit 99

# Divergences of plain and calibrated file: mean, its error, median.
measure() # type
{
    "$q" -q -f --imatrix "$tmp/i.gguf" "$m" "$tmp/plain.gguf" "$1" &&
        "$q" -q -f --imatrix "$tmp/i.gguf" --calibrate "$tmp/1.txt" "$m" \
            "$tmp/new.gguf" "$1" &&
        "$bin/gguf-ppl" -q -j -c 256 --chunks 6 -f "$tmp/2.txt" --base "$m" \
            -m "$tmp/plain.gguf" -m "$tmp/new.gguf" |
        awk -F ': ' '
            /"kld": / { n = 2 }
            /"kld_quantiles": / { all = 1 }
            /"dp": / { all = 0 }
            all && /"quantile": 0.5,/ { n = 1 }
            n && /"(value|error)": / { printf "%.4g ", $2; n-- }'
}

types='Q4_0 Q8_0 Q2_K Q6_K IQ1_S IQ2_XS IQ3_S IQ4_XS TQ2_0 NVFP4'
test -n "${GGUF_TEST_LONG-}" &&
    types="$types Q4_1 Q5_0 Q5_1 Q3_K_M Q4_K_M Q5_K_M IQ1_M IQ2_XXS IQ2_S
        IQ3_XXS IQ4_NL TQ1_0 MXFP4"
for type in $types; do
    run measure $type
    echo "# $type: $(cat "$tmp/out")"
    # a few tokens that choose other experts have a large part of the mean
    test $rc -eq 0 &&
        awk '{ exit !(NF == 6 && $4 <= $1 + $2 && $6 <= $3) }' "$tmp/out" &&
        test "$(wc -c <"$tmp/plain.gguf")" -eq "$(wc -c <"$tmp/new.gguf")"
    ok "$type: as many bytes, and no more divergence"
done
done_testing
