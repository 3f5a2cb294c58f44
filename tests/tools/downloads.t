#!/bin/sh
# SPDX-License-Identifier: MIT
# Failed downloads: an error page or pointer in place of a file is named,
# whatever file it replaces. Messages say what to do with folders of another
# form.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
mkfolder=$builddir/tests/tools/mkfolder
hf=$tmp/hf h=$tmp/h
"$mkfolder" "$hf" && "$mkfolder" "$tmp/two" files=2 || exit 99
"$bin/gguf-convert" -q "$hf" -o "$tmp/m.gguf" || exit 99

fails() # words: one line, and no output
{
    test $rc -eq 1 -a ! -e "$tmp/o.gguf" -a "$(wc -l <"$tmp/err")" -eq 1 &&
        grep -q -e "$1" "$tmp/err"
}
convert() # folder, option...
{
    run "$bin/gguf-convert" -q "$@" -o "$tmp/o.gguf"
}

# The content, by the name that messages have for it.
make() # name: the file $tmp/x
{
    case $1 in
    'a Git LFS pointer')
        printf '%s\n' 'version https://git-lfs.github.com/spec/v1' \
            'oid sha256:00' 'size 7' ;;
    'a web page') printf '\n<!DOCTYPE html><html></html>' ;;
    'a web page 2') printf '\357\273\277<html><body></body></html>' ;;
    "a server's error") printf '{"error":"not found"}' ;;
    'the answer of a server without this file') printf 'Entry not found' ;;
    'the answer of a server that wants a token')
        printf 'Access to model a/b is restricted.' ;;
    'a GGUF file') cat "$tmp/m.gguf" ;;
    'a safetensors file') cat "$hf/model.safetensors" ;;
    'a ZIP archive') printf 'PK\003\004 and more' ;;
    'a pickle of Python') printf '\200\002}q\000.' ;;
    'a file compressed by gzip') printf '\037\213\010\000 and more' ;;
    'an array of NumPy') printf '\223NUMPY\001\000 and more' ;;
    esac >"$tmp/x"
}
while read -r kind; do
    make "$kind"
    for file in config.json generation_config.json tokenizer.json \
        tokenizer_config.json model.safetensors model.safetensors.index.json \
        tokenizer.model adapter_config.json chat_template.jinja; do
        from=$hf
        test $file != model.safetensors.index.json || from=$tmp/two
        case "$kind,$file" in
        'a safetensors file,model.safetensors') continue ;;
        esac
        rm -rf "$h"
        cp -r "$from" "$h" && cp "$tmp/x" "$h/$file" || exit 99
        convert "$h"
        fails "h: $file: .*it looks like ${kind% 2}"
        ok "$file: $kind"
    done
    case $kind in
    'a GGUF file') continue ;;
    esac
    run "$bin/gguf-info" "$tmp/x"
    test $rc -eq 1 && grep -q "it looks like ${kind% 2}" "$tmp/err"
    ok "a GGUF file: $kind"
    run "$bin/gguf-quantize" -q --imatrix "$tmp/x" "$tmp/m.gguf" \
        "$tmp/o.gguf" Q8_0
    fails "it looks like ${kind% 2}"
    ok "importance data: $kind"
done <<'END'
a Git LFS pointer
a web page
a web page 2
a server's error
the answer of a server without this file
the answer of a server that wants a token
a GGUF file
a safetensors file
a ZIP archive
a pickle of Python
a file compressed by gzip
an array of NumPy
END
rm -rf "$h"
cp -r "$hf" "$h" && : >"$h/config.json"
convert "$h"
fails 'config.json: the file is empty'
ok 'an empty file'
# Cards may begin like a page, but are not pointers.
rm -rf "$h"
cp -r "$hf" "$h" && printf '<html><b>A model</b></html>' >"$h/README.md"
convert "$h"
test $rc -eq 0
ok 'a card may be a page'
rm -f "$tmp/o.gguf"
make 'a Git LFS pointer'
cp "$tmp/x" "$h/README.md"
convert "$h"
fails 'h: README.md: it looks like a Git LFS pointer: .*(git lfs pull)'
ok 'a card that is a pointer'

# ---- other forms of folders
only() # name, what is missing, words of the advice; file...: without these
{
    other=$1 missing=$2 words=$3
    shift 3
    rm -rf "$h"
    cp -r "$hf" "$h" || exit 99
    for file; do
        rm "$h/$file"
    done
    : >"$h/$other"
    convert "$h"
    fails "h: [^;]*$missing.*; '$other' $words"
    ok "$other without $missing: what to do"
}
w=model.safetensors
only pytorch_model.bin $w 'is PyTorch.*: save the model as safetensors' $w
only pytorch_model-00001-of-00002.bin $w 'is PyTorch' $w
only model-00001-of-00002.safetensors $w.index.json \
    'is a shard: download the index' $w
only consolidated.safetensors $w 'has the names of its authors' $w
only consolidated.00.pth $w 'is of its authors' $w
only tf_model.h5 $w 'is TensorFlow' $w
only flax_model.msgpack $w 'is Flax' $w
only other.safetensors $w 'must be named so' $w
only model.pt $w 'is PyTorch' $w
only weights.npz $w 'is of NumPy or MLX' $w
only params.json config.json "is of the authors' own form" config.json
only m.gguf model.safetensors 'is a GGUF file: gguf-quantize' $w
only tekken.json tokenizer.json 'is of Mistral.s own code' tokenizer.json
only tokenizer.model.v3 tokenizer.model 'must be named tokenizer.model' \
    tokenizer.json
only vocab.json tokenizer.json 'is of an older form: save' tokenizer.json
rm -rf "$h"
cp -r "$hf" "$h" && rm "$h/$w"
convert "$h"
fails 'there is neither model.safetensors nor model.safetensors.index.json$'
ok 'without anything there is no advice'
done_testing
