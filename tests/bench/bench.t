#!/bin/sh
# SPDX-License-Identifier: MIT
# bench.sh makes tables of rows, peers.sh of times; both refuse bad arguments.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
sh=${SHELL:-/bin/sh}
here=$srcdir/tests/bench
m=$tmp/tiny.gguf
"$builddir/tests/bench/mksynth" tiny Q8_0 "$m" || exit 99

# programs that print rows, in place of those that measure
mkdir -p "$tmp/fake/tests/bench"
for p in gemm attn; do
    cat >"$tmp/fake/tests/bench/bench-$p" <<END
#!/bin/sh
printf 'products\tQ4_K\t8 x 4 "a"\tavx2\texact\t1\t12.5\tGB/s\t0.5\tpeak\t0.02\n'
printf 'products\tF16\t-\t-\t-\t2\t3\ts\t-\t-\t-\n'
END
    chmod +x "$tmp/fake/tests/bench/bench-$p"
done
cat >"$tmp/want" <<'END'

products:
Q4_K                       8 x 4 "a"                      avx2     exact  1       12.5 GB/s          50.0% of peak, median 2.0% worse
F16                        -                              -        -      2          3 s
END
run env builddir="$tmp/fake" BENCH_JSON="$tmp/b.json" "$sh" "$here/bench.sh" \
    products
test $rc -eq 0 && cmp "$tmp/out" "$tmp/want"
ok 'rows as a table'
if command -v python3 >/dev/null 2>&1; then
    run python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert d["schema"] == 1 and d["processors"] >= 1 and len(d["rows"]) == 2
assert d["rows"][0] == {"table": "products", "what": "Q4_K",
    "shape": "8 x 4 \"a\"", "level": "avx2", "precision": "exact",
    "threads": 1, "value": 12.5, "unit": "GB/s", "part": 0.5, "of": "peak",
    "spread": 0.02}
assert d["rows"][1]["part"] is None and d["rows"][1]["level"] is None' \
        "$tmp/b.json"
    test $rc -eq 0
    ok 'and as JSON'
else
    skip 'and as JSON' 'no python3'
fi
run env builddir="$tmp/fake" BENCH_JSON="$tmp/c.json" "$sh" "$here/bench.sh" \
    products nothing
test $rc -ne 0 -a ! -e "$tmp/c.json" && grep -q 'no such table' "$tmp/err"
ok 'a table that there is not'

# gguf-ppl takes llama-perplexity's options: compare it with itself
printf '#!/bin/sh\nexec "%s" -q "$@"\n' "$bin/gguf-ppl" \
    >"$tmp/llama-perplexity"
chmod +x "$tmp/llama-perplexity"
awk 'BEGIN { for (i = 0; i < 9000; i++) printf "%c%s", 97 + i * i % 26,
    i % 5 ? "" : " " }' >"$tmp/text"
run env builddir="$builddir" "$sh" "$here/peers.sh" -r 3 -n 2,24 -c 128 \
    -f "$tmp/text" "$tmp/llama-perplexity" "$m"
test $rc -eq 0 && $AWK '/^tiny.gguf/ { ok = $2 > 0 && $3 > 0 && $4 > 0.2 &&
    $4 < 5 } END { exit !ok }' "$tmp/out"
ok 'a program that is as fast'
run env builddir="$builddir" "$sh" "$here/peers.sh" -q Q4_0 \
    -o --allow-requantize "$tmp/none/llama-quantize" "$m"
test $rc -eq 1 && grep -q 'llama-quantize failed' "$tmp/err"
ok 'a program that is not there'
run "$sh" "$here/peers.sh" "$tmp/llama-perplexity" "$m"
test $rc -eq 2 && grep -q 'the text' "$tmp/err"
ok 'no text'
run "$sh" "$here/peers.sh" -f "$tmp/text" "$tmp/other" "$m"
test $rc -eq 2
ok 'a program of another kind'
run "$builddir/tests/bench/timed" "$tmp/t" sh -c 'exit 3'
test $rc -eq 3 && $AWK 'NF == 3 && $1 >= 0 && $2 >= 0 && $3 > 0 { ok = 1 }
    END { exit !ok }' "$tmp/t"
ok 'timed ends as the program did'
done_testing
