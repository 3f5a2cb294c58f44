#!/bin/sh
# SPDX-License-Identifier: MIT
# A run does not overwrite a file that it reads: every option that names an
# input, with every option that names an output, by the same path, by another
# path, by a symbolic link and by a hard link.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
mkfolder=$builddir/tests/tools/mkfolder mklora=$builddir/tests/tools/mklora
share=$srcdir/share/tiny-llama
d=$tmp/d
m=$d/m.gguf i=$d/i.gguf
if test ! -f "$share/tiny-llama-f16.gguf"; then
    echo "1..0 # SKIP no model in share/"
    exit 0
fi
mkdir "$d" "$d/sub" "$d/soft" "$d/hard" || exit 99
cp "$share/tiny-llama-f16.gguf" "$m"
head -c 2000 "$share/persuasion.txt" >"$d/text"
cp "$d/text" "$d/text.part"
"$bin/gguf-split" -q --split-max-tensors 20 "$m" "$d/s" &&
    "$builddir/tests/tools/mkimatrix" "$d/i.dat" tensor blk.0.attn_q.weight \
        256 && "$bin/gguf-imatrix" -q -o "$i" "$d/i.dat" &&
    "$mklora" "$d/lora.gguf" "$m" 4 8 &&
    "$mklora" "$d/control.gguf" "$m" control 2 &&
    "$bin/gguf-ppl" -q -m "$m" -f "$d/text" -c 128 --chunks 1 \
        --save-base "$d/base.kld" --save-part "$d/part" >"$tmp/out" &&
    "$mkfolder" "$d/hf" bf16 files=2 wide && "$mkfolder" "$d/base" wide ||
    exit 99
printf 'base Q8_0\n' >"$d/recipe"
printf 'attn_q=Q8_0\n' >"$d/types"
printf '1 2 3\n' >"$d/ids"
printf '{"eos_token_id": 258}' >"$d/hf/generation_config.json"
printf '{"chat_template": "{{ messages }}"}' >"$d/hf/tokenizer_config.json"
printf '{{ messages }}' >"$d/hf/chat_template.jinja"
printf '%s\n' --- 'license: mit' --- '# A Model' >"$d/hf/README.md"
mkdir "$d/lora" "$d/back" || exit 99
printf '{"peft_type": "LORA", "lora_alpha": 4, "r": 2}' \
    >"$d/lora/adapter_config.json"
pair=base_model.model.model.layers.0.self_attn.q_proj.lora_
{
    printf '\000\002\000\000\000\000\000\000'
    printf '%-512s' "{\"${pair}A.weight\": {\"dtype\": \"F32\", \"shape\":
[2, 256], \"data_offsets\": [0, 2048]}, \"${pair}B.weight\":
{\"dtype\": \"F32\", \"shape\": [256, 2], \"data_offsets\": [2048, 4096]}}"
    head -c 4096 /dev/zero
} >"$d/lora/adapter_model.safetensors"
"$bin/gguf-convert" -q "$d/base" -o "$d/base.gguf" &&
    cp "$d/base.gguf" "$d/back/model.safetensors" || exit 99

# Names, inodes and sizes of all files, and the bytes of one.
look() # path
{
    ls -AilR "$d" && cksum "$1"
}

# Run a command with a path of the input in place of @, that path without its
# ending in place of %, or its folder in place of a ^ at the start. It must end
# with status 1 and one line with the name of the file and these words, and
# change nothing on the disk.
refused() # input, words, command...
{
    in=$1 words=$2
    shift 2
    base=${in##*/}
    ln -s "$d/$in" "$d/soft/$base"
    ln "$d/$in" "$d/hard/$base"
    for path in "$in" "sub/../$in" "soft/$base" "hard/$base"; do
        clash "$d/$path" "$@"
        ok "${1##*/} $base: $words: ${path%"$base"}"
    done
    rm "$d/soft/$base" "$d/hard/$base"
}

clash() # path, command...
{
    path=$1
    shift
    for arg; do
        shift
        case $arg in
        *@*) arg=${arg%%@*}$path${arg#*@} ;;
        *%*) arg=${arg%%%*}${path%.*}${arg#*%} ;;
        ^*) arg=${path%/*}${arg#^} ;;
        esac
        set -- "$@" "$arg"
    done
    look "$path" >"$tmp/before"
    run "$@" <"$d/text"
    look "$path" >"$tmp/after"
    test $rc -eq 1 && grep -q -e "$base' would be both $words" "$tmp/err" &&
        test "$(grep -vc ': warning: ' "$tmp/err")" -eq 1 &&
        cmp "$tmp/before" "$tmp/after" >>"$tmp/err" 2>&1
}

# Files that a journal, or data of an unfinished output, would replace.
for f in types i.dat lora.gguf; do
    cp "$d/$f" "$d/$f.resume" && cp "$d/$f" "$d/$f.resume-data" || exit 99
done

# ------------------------------------------------------------ gguf-convert ---
convert="$bin/gguf-convert"
for f in config.json generation_config.json tokenizer.json \
    tokenizer_config.json chat_template.jinja README.md \
    model.safetensors.index.json model-00001-of-00002.safetensors; do
    refused hf/$f 'input and output' "$convert" -q -f "$d/hf" -o @
done
refused i.gguf '--imatrix and output' "$convert" -q -f --imatrix "$i" "$d/hf" \
    -o @=Q8_0
refused types '--tensor-type-file and output' "$convert" -q -f \
    --tensor-type-file "$d/types" "$d/hf" -o @=Q8_0
refused types.resume '--tensor-type-file and journal' "$convert" -q -f \
    --resume --tensor-type-file "$d/types.resume" "$d/hf" -o %=Q8_0
refused text '--verify and output' "$convert" -q -f --verify "$d/text" \
    "$d/hf" -o @
for f in adapter_config.json adapter_model.safetensors; do
    refused lora/$f 'input and output' "$convert" -q -f --base "$d/base" \
        "$d/lora" -o @
done
refused base/config.json 'input and output' "$convert" -q -f \
    --base "$d/base" "$d/lora" -o @
refused base.gguf 'input and output' "$convert" -q -f --base "$d/base.gguf" \
    "$d/lora" -o @
refused back/model.safetensors 'input and output' "$convert" -q -f \
    "$d/back/model.safetensors" --to-safetensors ^
rm -r "$d/back"

# ----------------------------------------------------------- gguf-quantize ---
q="$bin/gguf-quantize"
for f in m.gguf s-00002-of-00003.gguf; do
    of=$(echo "$d/$f" | sed s/-00002-/-00001-/)
    refused $f 'input and output' "$q" -q -f "$of" @ Q8_0
    refused $f 'report and input' "$q" -q -f --report=@ "$of" "$d/new" Q8_0
done
while read -r option f; do
    set -- "$q" -q -f "$option" "$d/$f" "$m"
    type=Q8_0
    test "$option" = --recipe && type=
    refused "$f" "$option and output" "$@" @ $type
    refused "$f" "$option and report" "$@" --report=@ "$d/new" $type
done <<END
--imatrix i.dat
--imatrix i.gguf
--recipe recipe
--tensor-type-file types
--lora lora.gguf
END
refused i.dat.resume '--imatrix and journal' "$q" -q -f --resume \
    --imatrix "$d/i.dat.resume" "$m" % Q8_0
refused i.dat.resume-data '--imatrix and unfinished output' "$q" -q -f \
    --resume --imatrix "$d/i.dat.resume-data" "$m" % Q8_0
refused lora.gguf.resume '--lora and journal' "$q" -q -f --resume \
    --lora "$d/lora.gguf.resume" "$m" % Q8_0

# ------------------------------------------------------------ gguf-imatrix ---
im="$bin/gguf-imatrix"
for out in -o --save-part; do
    word=output
    test $out = -o || word=part
    refused m.gguf "--model and $word" "$im" -q --force -m "$m" \
        -f "$d/text" $out @
    refused s-00002-of-00003.gguf "--model and $word" "$im" -q --force \
        -m "$d/s-00001-of-00003.gguf" -f "$d/text" $out @
    refused text "--file and $word" "$im" -q --force -m "$m" -f "$d/text" \
        $out @
    refused text "--file and $word" "$im" -q --force -m "$m" -f - $out @
done
refused i.dat 'input and output' "$im" -q --force "$i" "$d/i.dat" -o @
refused m.gguf '--model and output' "$im" -q --force -m "$m" "$d/i.dat" -o @
refused text.part '--file and checkpoint' "$im" -q --force -m "$m" \
    -f "$d/text.part" --save-every 1 -o %
refused part 'input and output' "$im" -q --force --merge-parts "$d/part" -o @

# --------------------------------------------------------------- gguf-edit ---
edit="$bin/gguf-edit"
refused text '--set-file and output' "$edit" -q -f --set-file a.b="$d/text" \
    -o @ "$m"
refused text '--set-file and output' "$edit" -q -f --set-file a.b=- -o @ "$m"
refused m.gguf 'input and output' "$edit" -q -f --set a.b=1 -o @ "$m"
refused m.gguf '--set-file and output' "$edit" -q -f --set-file a.b="$m" @
refused s-00002-of-00003.gguf 'input and output' "$edit" -q -f --set a.b=1 \
    -o @ "$d/s-00001-of-00003.gguf"

# -------------------------------------------------------------- gguf-split ---
split="$bin/gguf-split"
refused s-00002-of-00003.gguf 'input and output' "$split" -q -f --merge \
    "$d/s-00001-of-00003.gguf" @
refused s-00001-of-00003.gguf 'input and output' "$split" -q -f \
    --split-max-tensors 20 "$d/s-00001-of-00003.gguf" ^/s

# ---------------------------------------------------------------- gguf-ppl ---
ppl="$bin/gguf-ppl"
eval="$bin/gguf-eval"
for out in --save-base --per-token --save-part --plot --html; do
    end=
    case $out in
    --plot) end=.svg ;;
    --html) end=.html ;;
    esac
    while read -r option f; do
        ln "$d/$f" "$d/in$end" || exit 99
        set -- "$ppl" -q -c 128 --chunks 1 --force
        test "$option" = --model || set -- "$@" -m "$m"
        test "$option" = --file || set -- "$@" -f "$d/text"
        test "$option" = --base -a $out = --save-base ||
            refused "in$end" "$option and $out" "$@" "$option" "$d/in$end" \
                "$out" @
        rm "$d/in$end"
    done <<END
--model m.gguf
--base base.gguf
--base base.kld
--file text
--lora lora.gguf
--control-vector control.gguf
END
done
refused text '--file and --per-token' "$ppl" -q -m "$m" -f - --force \
    --per-token @
refused s-00002-of-00003.gguf '--model and --per-token' "$ppl" -q --force \
    -m "$d/s-00001-of-00003.gguf" -f "$d/text" --per-token @
for option in --lora=lora.gguf --control-vector=control.gguf --file=text \
    --model=m.gguf; do
    f=${option#*=} option=${option%=*}
    set -- "$eval" -q
    test $option = --model || set -- "$@" -m "$m"
    test $option = --file || set -- "$@" -f "$d/text"
    refused "$f" "$option and --save-embeddings" "$@" $option "$d/$f" \
        --pooling mean --save-embeddings @
    test $option = --model -o $option = --file ||
        refused "$f" "$option and --save-logits" "$eval" -q -m "$m" \
            $option "$d/$f" --tokens "$d/ids" --save-logits @
done
refused m.gguf '--model and --save-logits' "$eval" -q -m "$m" \
    --tokens "$d/ids" --save-logits @
refused ids '--tokens and --save-logits' "$eval" -q -m "$m" \
    --tokens "$d/ids" --save-logits @
cp "$d/part" "$d/part.svg" && cp "$d/part" "$d/part.html" || exit 99
refused part.svg 'part and --plot' "$ppl" -q --force --merge-parts \
    "$d/part.svg" --plot @
refused part.html 'part and --html' "$ppl" -q --force --merge-parts \
    "$d/part.html" --html @
done_testing
