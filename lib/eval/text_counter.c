/* SPDX-License-Identifier: MIT */
/* text_counter.c - count bytes and words of the text of tokens */
#include "config.h"
#include "eval/text_counter.h"

#include "base/error.h"
#include "base/mem.h"

static size_t put_piece(struct gg_text_counter *s, gguf_token id, bool leads)
{
    return leads
               ? gguf_vocab_detokenize(s->vocab, &id, 1, 0, s->piece, s->room)
               : gguf_vocab_piece(s->vocab, id, 0, s->piece, s->room);
}

/* Read the bytes of a token, valid until the next call. leads: it is the first
 * with bytes. */
static enum gguf_status read_piece(struct gg_text_counter *s, gguf_token id,
                                   bool leads, struct gguf_str *out,
                                   struct gguf_error *err)
{
    size_t n = put_piece(s, id, leads);
    if (n > s->room) {
        char *more = gg_mem_grow(s->allocator, s->piece, &s->room, 1, n, err);
        if (!more)
            return GGUF_E_NOMEM;
        s->piece = more;
        n = put_piece(s, id, leads);
    }
    *out = (struct gguf_str){ s->piece, n };
    return GGUF_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Index of the first token that has bytes, of tokens 0 to end - 1; end: none.
 * Tokenizing may have put a blank before it. */
static size_t find_leading(const struct gguf_vocab *v, const gguf_token *text,
                           size_t end)
{
    size_t i = 0;
    while (i < end && !gguf_vocab_piece(v, text[i], 0, NULL, 0))
        i++;
    return i;
}

/* Is token first at the begin of a word: does white space, or nothing, come
 * before it? */
static enum gguf_status ends_with_blank(struct gg_text_counter *s,
                                        const gguf_token *text, size_t first,
                                        size_t lead, bool *blank,
                                        struct gguf_error *err)
{
    *blank = true;
    for (size_t i = first; i-- > lead;) {
        struct gguf_str p;
        GG_TRY(read_piece(s, text[i], i == lead, &p, err));
        if (!p.size)
            continue;
        *blank = is_blank(p.data[p.size - 1]);
        break;
    }
    return GGUF_OK;
}

enum gguf_status gg_text_counter_add(struct gg_text_counter *s,
                                     const gguf_token *text, size_t first,
                                     size_t end, struct gguf_error *err)
{
    const size_t lead = find_leading(s->vocab, text, end);
    bool blank;
    GG_TRY(ends_with_blank(s, text, first, lead, &blank, err));
    for (size_t i = first; i < end; i++) {
        struct gguf_str p;
        GG_TRY(read_piece(s, text[i], i == lead, &p, err));
        for (size_t k = 0; k < p.size; k++) {
            const bool now = is_blank(p.data[k]);
            s->n_words += blank && !now;
            blank = now;
        }
        s->n_bytes += p.size;
    }
    return GGUF_OK;
}

void gg_text_counter_fini(struct gg_text_counter *s)
{
    gg_mem_free(s->allocator, s->piece);
}
