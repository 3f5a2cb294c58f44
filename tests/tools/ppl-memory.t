#!/bin/sh
# SPDX-License-Identifier: MIT
# Memory of gguf-ppl besides weights and cache, with a vocabulary of 150,000
# words: less than 100 MB for any context, also for two models. Contexts of
# 2048 tokens; with GGUF_TEST_LONG of 32768, which takes some minutes.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
if test ! -r /proc/self/status || ! command -v python3 >/dev/null 2>&1; then
    skip 'memory of a run' 'no /proc, or no python3'
    done_testing
    exit
fi
ctx=2048
case ${TEST_CFLAGS-} in
*sanitize=address*)
    skip 'memory of a run' 'the sanitizer holds what was freed'
    done_testing
    exit
    ;;
esac
test -n "${GGUF_TEST_LONG-}" && ctx=32768
for type in Q8_0 F16; do
    "$builddir/tests/bench/mksynth" words $type "$tmp/$type.gguf" || exit 99
done
$AWK -v n=$ctx 'BEGIN { for (i = 0; i < 2 * n; i++) printf "%c%c%c%s",
    97 + i * i % 26, 97 + i % 25, 97 + i * 7 % 23, i % 9 ? " " : "\n" }' \
    >"$tmp/text"

# Largest RssAnon of a command in bytes, less the cache of each model: float
# keys and values of 2 heads of 64.
cat >"$tmp/peak.py" <<'EOF'
import subprocess, sys, time
ctx, models, most = int(sys.argv[1]), int(sys.argv[2]), 0
p = subprocess.Popen(sys.argv[3:], stdout=subprocess.DEVNULL)
while p.poll() is None:
    try:
        for line in open("/proc/%d/status" % p.pid):
            if line.startswith("RssAnon:"):
                most = max(most, 1024 * int(line.split()[1]))
    except OSError:
        pass
    time.sleep(0.004)
beside = most - models * ctx * 2 * 64 * 2 * 4
print("%.1f MB" % (beside / 1e6))
sys.exit(p.returncode or not 10e6 < beside < 100e6)
EOF
peak() # models, command...
{
    peak_n=$1
    shift
    run python3 "$tmp/peak.py" $ctx "$peak_n" "$ppl" -q -f "$tmp/text" \
        -c $ctx --chunks 1 -t 1 "$@"
    test $rc -eq 0
    ok "$(cat "$tmp/out") beside weights and cache, $ctx tokens: $about"
}
ppl=$bin/gguf-ppl
about='perplexity'
peak 1 -m "$tmp/Q8_0.gguf"
about='two models'
peak 2 -m "$tmp/Q8_0.gguf" --base "$tmp/F16.gguf"
done_testing
