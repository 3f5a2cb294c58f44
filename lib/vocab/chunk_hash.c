/* SPDX-License-Identifier: MIT */
/* chunk_hash.c - "test": hashes of chunks of five bytes, for test models
 *
 * The token of a chunk b[0] ... b[k-1] is the sum of b[i] * 31^(k-1-i), modulo
 * the number of tokens. The text of a token is its id in hexadecimal digits, so
 * that texts cannot be restored. Checked against llama.cpp v0.5.0, whose
 * generated test models have such vocabularies (pull request 29084).
 */
#include "config.h"
#include "vocab/vocab_int.h"

#include <inttypes.h>
#include <stdio.h>

enum { CHUNK = 5, BASE = 31 };

enum gguf_status gg_vocab_chunk_hash_encode(const struct gguf_vocab *v,
                                            const char *text, size_t size,
                                            bool prefix,
                                            struct gguf_tokens *out,
                                            struct gguf_error *err)
{
    (void)prefix;
    for (size_t i = 0; i < size;) {
        uint32_t hash = 0;
        for (const size_t end = size - i < CHUNK ? size : i + CHUNK; i < end;)
            hash = BASE * hash + (uint8_t)text[i++];
        GG_TRY(gg_vocab_tokens_push(
            out, (gguf_token)(hash % (uint32_t)v->n_tokens), err));
    }
    return GGUF_OK;
}

void gg_vocab_chunk_hash_put(const struct gguf_vocab *v, gguf_token id,
                             struct gg_vocab_sink *s)
{
    char digits[12];
    (void)v;
    snprintf(digits, sizeof digits, "%" PRIx32, (uint32_t)id);
    for (const char *p = digits; *p; p++)
        gg_vocab_sink_put(s, *p);
}
