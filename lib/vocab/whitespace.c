/* SPDX-License-Identifier: MIT */
/* whitespace.c - "whitespace": byte-pair encoding of words between blanks
 *
 * Blanks are left out. Letters are changed to lower case unless the file says
 * no. (jina-embeddings-v2-base-zh, as llama.cpp of August 2026 reads it.) */
#include "config.h"
#include "vocab/unicode.h"
#include "vocab/utf8.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"

enum gguf_status gg_vocab_whitespace_load(struct gguf_vocab *v,
                                          const struct gguf_file *file,
                                          struct gguf_error *err)
{
    GG_TRY(gg_bpe_load(v, file, err));
    v->lowercase = !gg_bpe_keeps_case(v);
    return gg_vocab_load_normalizer(v, err);
}

enum gguf_status gg_vocab_whitespace_encode(const struct gguf_vocab *v,
                                            const char *text, size_t size,
                                            bool prefix,
                                            struct gguf_tokens *out,
                                            struct gguf_error *err)
{
    /* a character has one byte or more, and at most four in the other case */
    size_t n = 0, room = size <= SIZE_MAX / 4 ? 4 * size : 0;
    char *word = room || !size ? gg_mem_alloc(v->allocator, room) : NULL;
    enum gguf_status st = GGUF_OK;
    if (!word)
        return gg_error_set_nomem(err, room);
    for (size_t i = 0; st == GGUF_OK && i < size;) {
        uint32_t cp;
        i += gg_vocab_utf8_decode(text + i, size - i, GG_VOCAB_UTF8_MOST, &cp);
        if (!gg_unicode_is_space(cp)) {
            if (v->lowercase)
                cp = gg_unicode_to_lower(cp);
            n += gg_vocab_utf8_encode(cp, word + n);
        } else if (n) {
            st = gg_bpe_encode(v, word, n, prefix, out, err);
            n = 0;
        }
    }
    if (st == GGUF_OK && n)
        st = gg_bpe_encode(v, word, n, prefix, out, err);
    gg_mem_free(v->allocator, word);
    return st;
}
