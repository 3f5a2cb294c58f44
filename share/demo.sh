#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh [TOOLS MODELS] - the main job, on the model that comes with the source
#
# Shows what is in the file, makes two smaller ones of it, and evaluates all
# three over a text that the model has not seen. TOOLS is the folder of the
# programs, MODELS that of tiny-llama; without them the programs are those of PATH
# and the model lies beside this file, as when it is installed. Run by
# ./bootstrap demo.
set -eu
test $# -gt 0 || set -- "$(dirname "$(command -v gguf-info)")" "$(dirname "$0")"
tools=$(cd "$1" && pwd) models=$(cd "$2" && pwd)
model=$models/tiny-llama-f16.gguf
text=$models/persuasion.txt
threads=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 130' INT TERM

show() # what a person would type
{
    printf '\n$ %s\n' "$*"
}

cd "$out"
cp "$model" F16.gguf

show gguf-info F16.gguf
"$tools/gguf-info" F16.gguf >info.txt
sed -n '1,24p' info.txt
lines=$(wc -l <info.txt)
test "$lines" -le 24 || echo "    ... $((lines - 24)) more lines"

for type in Q8_0 Q4_K_M; do
    show gguf-quantize F16.gguf $type.gguf $type $threads
    "$tools/gguf-quantize" F16.gguf $type.gguf $type "$threads" 2>&1
done

for type in F16 Q8_0 Q4_K_M; do
    show gguf-ppl -m $type.gguf -f persuasion.txt -c 512 -t $threads
    begin=$(date +%s.%N)
    "$tools/gguf-ppl" -m $type.gguf -f "$text" -c 512 -t "$threads" >ppl-$type.txt
    end=$(date +%s.%N)
    tail -n 1 ppl-$type.txt
    echo "$begin $end" >time-$type.txt
done

echo
printf '%-12s %10s %8s %11s %10s %8s\n' file bytes bits/w perplexity '+/-' seconds
for type in F16 Q8_0 Q4_K_M; do
    bpw=$("$tools/gguf-info" --json $type.gguf |
        sed -n 's/.*"bits_per_weight": *\([0-9.]*\).*/\1/p' | head -n 1)
    # Final estimate: PPL = 60.5220 +/- 0.67644
    set -- $(sed -n 's/^Final estimate: PPL = \([^ ]*\) +\/- \([^ ]*\).*/\1 \2/p' ppl-$type.txt)
    awk -v f=$type.gguf -v b="$(wc -c <$type.gguf)" -v w="$bpw" -v p="$1" -v u="$2" \
        '{ printf "%-12s %10d %8.2f %11s %10s %8.1f\n", f, b, w, p, u, $2 - $1 }' time-$type.txt
done
