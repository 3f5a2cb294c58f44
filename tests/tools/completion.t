#!/bin/sh
# SPDX-License-Identifier: MIT
# Completion for bash and zsh knows every option and word of a tool's --help.
# bash offers the right words for some lines.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
made=$builddir/completion
if test ! -e "$made/bash/gguf-info" && test ! -e "$made/zsh/_gguf-info"; then
    skip 'completion' 'not made here (cross build, or configured without)'
    done_testing
    exit
fi

# ---- every name of every option of --help, in both
for tool in compare convert edit eval imatrix info ppl quantize split \
    tokenize; do
    "$bin/gguf-$tool" --help=all | sed -n 's/^ \{2,6\}\(-.*\)/\1/p' |
        sed 's/   *.*//; s/, /\n/g' | sed 's/[= [].*//' | sort -u >"$tmp/names"
    : >"$tmp/out"
    for f in bash/gguf-$tool zsh/_gguf-$tool; do
        test -e "$made/$f" || continue
        while read -r name; do
            grep -q -e "[*) '|]$name[]['=+ |)]" "$made/$f" ||
                echo "$f: no $name" >>"$tmp/out"
        done <"$tmp/names"
    done
    test "$(wc -l <"$tmp/names")" -ge 10 && test ! -s "$tmp/out"
    ok "all $(wc -l <"$tmp/names" | tr -d ' ') names of gguf-$tool"
done

# ---- what bash offers after the words of a line
if command -v bash >/dev/null 2>&1 && test -e "$made/bash/gguf-info"; then
    offers() # tool, words in the shell's cut, expected
    {
        tool=$1 words=$2
        # shellcheck disable=SC2016
        run bash --norc -c '. "$1" || exit
            complete -p "$2" | grep -q -- "-F _${2//-/_} $2$" || exit
            IFS="|" read -ra COMP_WORDS <<<"$2|$3"
            test "${3%|}" = "$3" || COMP_WORDS+=("")
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            "_${2//-/_}"
            echo "${COMPREPLY[*]}"' bash "$made/bash/$tool" "$tool" "$words"
        test $rc -eq 0 && test "$(cat "$tmp/out")" = "$3"
        ok "$tool $words: ${3:-files}"
    }
    offers gguf-quantize --allow --allow-requantize
    offers gguf-quantize 'in.gguf|out.gguf|q4_k' 'Q4_K_M Q4_K_S Q4_K_R4'
    offers gguf-quantize '--print-recipe|Q8' 'Q8_0 Q8_KV Q8_K_R8 Q8_KV_R8 Q8_0_R8'
    offers gguf-quantize 'in.gguf|-o|Q' ''
    offers gguf-info '--sort|s' size
    offers gguf-info '--sort|=|s' size
    offers gguf-info '--sort=s' size
    offers gguf-info '--sort|=|' 'name size type elements offset'
    offers gguf-info '--hash|=|' 'xxh64 xxh3-128 sha256'
    offers gguf-info '--hash|xx' ''
    offers gguf-info '--hash|--sum' '--summary'
    offers gguf-ppl '-m|m.gguf|--rope-sca' '--rope-scale --rope-scaling'
    offers gguf-ppl '-ctk|q8' 'q8_0'
    offers gguf-compare '--bisect=l' layer
    offers gguf-eval '--print-graph=' 'text dot'
    offers gguf-edit '--to-endian|b' big
    offers gguf-convert 'dir|--on-nonfinite|z' zero
    offers gguf-imatrix '--precision|' 'exact int16 int8'
    offers gguf-split '--spl' '--split --split-max-tensors --split-max-size --split-by-layer'
    offers gguf-split 'some' ''
    for f in "$made"/bash/*; do bash -n "$f" || break; done
    ok 'bash reads all of them'
else
    skip 'what bash offers' 'no bash, or configured without'
fi
if command -v zsh >/dev/null 2>&1 && test -e "$made/zsh/_gguf-info"; then
    for f in "$made"/zsh/*; do
        zsh -n "$f" && head -1 "$f" | grep -q '^#compdef gguf-' || break
    done
    ok 'zsh reads all of them'
else
    skip 'zsh' 'no zsh, or configured without'
fi
done_testing
