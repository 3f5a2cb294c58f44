/* SPDX-License-Identifier: MIT */
/* vocab_compare.c - compare vocabularies, token by token */
#include "config.h"
#include "gguf/eval.h"

#include "base/error.h"
#include "gguf/text.h"

#include <string.h>

static enum gguf_status refuse_differing(const char *what, uint64_t a,
                                         uint64_t b, struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "the models have different vocabularies: %s %" PRIu64
                        " and %" PRIu64,
                        what, a, b);
}

/* Has one vocabulary all tokens of the other, and further ones after them? */
static bool is_padded(const struct gguf_vocab *a, const struct gguf_vocab *b)
{
    const size_t na = gguf_vocab_n_tokens(a), nb = gguf_vocab_n_tokens(b);
    const size_t n = na < nb ? na : nb;
    size_t i = 0;
    for (; na != nb && i < n; i++) {
        const struct gguf_str x = gguf_vocab_token_text(a, (gguf_token)i);
        const struct gguf_str y = gguf_vocab_token_text(b, (gguf_token)i);
        if (x.size != y.size || (x.size && memcmp(x.data, y.data, x.size)))
            return false;
    }
    return n && i == n;
}

static enum gguf_status same_texts(const struct gguf_vocab *a,
                                   const struct gguf_vocab *b,
                                   struct gguf_error *err)
{
    for (size_t i = 0; i < gguf_vocab_n_tokens(a); i++) {
        const struct gguf_str x = gguf_vocab_token_text(a, (gguf_token)i);
        const struct gguf_str y = gguf_vocab_token_text(b, (gguf_token)i);
        char ex[48], ey[48];
        if (x.size == y.size && (!x.size || !memcmp(x.data, y.data, x.size)))
            continue;
        gguf_text_escape(ex, sizeof ex, x);
        gguf_text_escape(ey, sizeof ey, y);
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the models have different vocabularies: token "
                            "%zu is '%s' and '%s'",
                            i, ex, ey);
    }
    return GGUF_OK;
}

/* Token that replaces each chunk's first token; GGUF_TOKEN_NONE: none. */
static gguf_token first_token_of_chunks(const struct gguf_vocab *v)
{
    return gguf_vocab_wants_bos(v) ? gguf_vocab_special_id(v, GGUF_SPECIAL_BOS)
                                   : GGUF_TOKEN_NONE;
}

enum gguf_status gguf_scan_compare_vocab(const struct gguf_model *a,
                                         const struct gguf_model *b,
                                         struct gguf_error *err)
{
    const struct gguf_vocab *va = gguf_model_vocab(a);
    const struct gguf_vocab *vb = gguf_model_vocab(b);
    const uint32_t na = gguf_model_info(a)->n_vocab;
    const uint32_t nb = gguf_model_info(b)->n_vocab;
    if (na != nb && is_padded(va, vb))
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "the models have different vocabularies: %" PRIu32 " tokens and "
            "%" PRIu32 ", the same up to the shorter's end: one of them is "
            "padded; make both of the same folder or file",
            na, nb);
    if (na != nb)
        return refuse_differing("logits", na, nb, err);
    if (gguf_vocab_n_tokens(va) != gguf_vocab_n_tokens(vb))
        return refuse_differing("tokens", gguf_vocab_n_tokens(va),
                                gguf_vocab_n_tokens(vb), err);
    GG_TRY(same_texts(va, vb, err));
    const gguf_token fa = first_token_of_chunks(va),
                     fb = first_token_of_chunks(vb);
    if (fa == fb)
        return GGUF_OK;
    if (fa != GGUF_TOKEN_NONE && fb != GGUF_TOKEN_NONE)
        return refuse_differing("a text begins with token", fa, fb, err);
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "the models have different vocabularies: one begins a "
                        "text with a BOS, the other does not");
}
