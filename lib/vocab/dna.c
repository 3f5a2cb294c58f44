/* SPDX-License-Identifier: MIT */
/* dna.c - "hybriddna": byte-pair encoding, and words of six bases
 *
 * Between <dna> and </dna> each six letters are a token, the last ones filled
 * up with A, whatever their case; others are <oov>. Their texts in the file end
 * in U+E000, so that they differ from those of ordinary tokens. (Carbon's
 * tokenizer, as llama.cpp of August 2026 reads it.)
 */
#include "config.h"
#include "vocab/vocab_int.h"

#include "base/str.h"

#define MARK "\xee\x80\x80"
enum { N_BASES = 6, MARK_SIZE = 3 };

struct ids {
    gguf_token begin, end, oov;
};

static struct ids find_ids(const struct gguf_vocab *v)
{
    return (struct ids){ gguf_vocab_find_token(v, GG_STR("<dna>")),
                         gguf_vocab_find_token(v, GG_STR("</dna>")),
                         gguf_vocab_find_token(v, GG_STR("<oov>")) };
}

/* Where tag begins in size bytes of text, or size. */
static size_t find_tag(const char *text, size_t size, struct gguf_str tag)
{
    for (size_t i = 0; i + tag.size <= size; i++)
        if (!memcmp(text + i, tag.data, tag.size))
            return i;
    return size;
}

static enum gguf_status put_bases(const struct gguf_vocab *v,
                                  const struct ids *ids, const char *text,
                                  size_t size, struct gguf_tokens *out,
                                  struct gguf_error *err)
{
    for (size_t i = 0; i < size; i += N_BASES) {
        char word[N_BASES + MARK_SIZE];
        for (size_t k = 0; k < N_BASES; k++) {
            char c = i + k < size ? text[i + k] : 'A';
            word[k] = c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
        }
        memcpy(word + N_BASES, MARK, MARK_SIZE);
        gguf_token id =
            gguf_vocab_find_token(v, (struct gguf_str){ word, sizeof word });
        GG_TRY(gg_vocab_tokens_push(out, id == GGUF_TOKEN_NONE ? ids->oov : id,
                                    err));
    }
    return GGUF_OK;
}

enum gguf_status gg_vocab_dna_encode(const struct gguf_vocab *v,
                                     const char *text, size_t size,
                                     bool prefix, struct gguf_tokens *out,
                                     struct gguf_error *err)
{
    const struct gguf_str open = GG_STR("<dna>"), close = GG_STR("</dna>");
    const struct ids ids = find_ids(v);
    if (ids.begin == GGUF_TOKEN_NONE || ids.end == GGUF_TOKEN_NONE ||
        ids.oov == GGUF_TOKEN_NONE)
        return gg_bpe_encode(v, text, size, prefix, out, err);
    while (size) {
        size_t n = find_tag(text, size, open);
        if (n)
            GG_TRY(gg_bpe_encode(v, text, n, prefix, out, err));
        if (n == size)
            return GGUF_OK;
        GG_TRY(gg_vocab_tokens_push(out, ids.begin, err));
        text += n + open.size;
        size -= n + open.size;
        n = find_tag(text, size, close);
        GG_TRY(put_bases(v, &ids, text, n, out, err));
        if (n == size)
            return GGUF_OK;
        GG_TRY(gg_vocab_tokens_push(out, ids.end, err));
        text += n + close.size;
        size -= n + close.size;
    }
    return GGUF_OK;
}

void gg_vocab_dna_put(const struct gguf_vocab *v, gguf_token id,
                      struct gg_vocab_sink *s)
{
    struct gguf_str t = v->token[id].text;
    gguf_token oov = find_ids(v).oov;
    if (oov == GGUF_TOKEN_NONE || id <= oov || t.size <= MARK_SIZE ||
        memcmp(t.data + t.size - MARK_SIZE, MARK, MARK_SIZE) != 0) {
        gg_bpe_put(v, id, s);
        return;
    }
    for (size_t i = 0; i < t.size - MARK_SIZE; i++)
        gg_vocab_sink_put(s, t.data[i]);
}
