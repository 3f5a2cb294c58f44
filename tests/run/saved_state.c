/* SPDX-License-Identifier: MIT */
/* saved_state.c - sessions with texts, and their states as bytes */
#include "config.h"
#include "tests/run/saved_state.h"

#include <stdlib.h>

void *saved_file_of(const char *name, const char *changes, size_t *size)
{
    static struct variant v;
    variant_open(&v, name, changes);
    void *file = variant_file(&v, size);
    variant_close(&v);
    return file;
}

static gguf_token token_at(int text, size_t i, size_t n_vocab)
{
    return (gguf_token)((i * (text ? 53 : 37) + 11) % n_vocab);
}

bool saved_decode(struct run *r, int text, int32_t seq, size_t from, size_t to,
                  float *out)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[SAVED_CTX];
    int32_t seqs[SAVED_CTX];
    for (size_t i = from; i < to; i++) {
        tok[i - from] = token_at(text, i, r->n_vocab);
        seqs[i - from] = seq;
    }
    b.n = to - from;
    b.token = tok;
    b.seq = seqs;
    return out ? run_logits(r, &b, out)
               : gguf_session_decode(r->session, &b, &r->err) == GGUF_OK;
}

bool saved_encode(struct run *r, int text, int32_t seq)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[7];
    int32_t seqs[7];
    if (!gguf_model_info(r->model)->encodes_first)
        return true;
    for (size_t i = 0; i < 7; i++) {
        tok[i] = token_at(text, i + 3, r->n_vocab);
        seqs[i] = seq;
    }
    b.n = 7;
    b.token = tok;
    b.seq = seqs;
    return gguf_session_encode(r->session, &b, &r->err) == GGUF_OK;
}

bool saved_get(struct run *r, uint32_t seq, struct saved_bytes *b)
{
    b->p = NULL;
    if (gguf_session_state_size(r->session, seq, &b->n, &r->err) != GGUF_OK)
        return false;
    b->p = malloc((size_t)b->n);
    return gguf_session_state_get(r->session, seq, b->p, b->n, &r->err) ==
           GGUF_OK;
}

enum gguf_status saved_set(struct run *r, uint32_t seq,
                           const struct saved_bytes *b)
{
    return gguf_session_state_set(r->session, seq, b->p, b->n, &r->err);
}

struct gguf_session_params saved_params_of(const struct saved_kind *k)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.n_ctx = SAVED_CTX;
    p.n_seq = 3;
    p.n_ubatch = 8;
    p.key_dtype = p.value_dtype = gguf_dtype_find(k->dtype);
    p.unified = k->unified;
    p.full_windows = k->full_windows;
    return p;
}

bool saved_fill(struct run *r, const struct saved_kind *k)
{
    return saved_encode(r, 0, 0) && saved_encode(r, 1, 1) &&
           saved_decode(r, 0, 0, 0, 17, NULL) &&
           saved_decode(r, 1, 1, 0, SAVED_B, NULL) &&
           saved_decode(r, 0, 0, 17, SAVED_A, NULL) &&
           (!k->holes || gguf_session_remove_tokens(r->session, 0, 30, 37,
                                                    &r->err) == GGUF_OK);
}
