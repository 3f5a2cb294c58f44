#!/bin/sh
# SPDX-License-Identifier: MIT
# Folders that become files and folders again give the Rust library the same
# ids, on texts in ten scripts with special tokens, blanks, digits and emoji.
# Part of make check-long, if node finds npm's package "tokenizers":
#     NODE_PATH=.../node_modules GGUF_TEST_LONG=1 tests/tools/tokenizers.t
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
convert=$bin/gguf-convert
js=$srcdir/tests/tools/tokenizers.js
if test -z "${GGUF_TEST_LONG-}"; then
    skip 'tokenizers of folders that come back' 'of make check-long'
    done_testing
fi
if ! node -e "require('tokenizers')" >/dev/null 2>&1; then
    skip 'tokenizers of folders that come back' \
        'node has no package "tokenizers" (NODE_PATH)'
    done_testing
fi

same() # folder, description
{
    rm -rf "$tmp/file.gguf" "$tmp/back"
    run "$convert" -q "$1" -o "$tmp/file.gguf"
    test $rc -eq 0 &&
        run "$convert" -q "$tmp/file.gguf" --to-safetensors "$tmp/back" &&
        test $rc -eq 0 && run node "$js" compare "$1" "$tmp/back" &&
        test $rc -eq 0
    ok "$2"
}

mkdir "$tmp/made" && node "$js" make "$tmp/made" || exit 99
for kind in $(node "$js" list); do
    same "$tmp/made/$kind" "a tokenizer like $kind's"
done
if test -f "$GGUF_SHARED/models/hf-qwen2/tokenizer.json"; then
    same "$GGUF_SHARED/models/hf-qwen2" 'the trained qwen2'
else
    skip 'a trained tokenizer' 'it is not here'
fi
done_testing
