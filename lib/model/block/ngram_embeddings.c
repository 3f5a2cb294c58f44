/* SPDX-License-Identifier: MIT */
/* ngram_embeddings.c - embeddings of hashed n-grams, added to the streams of a
 * layer (Qwen3.8; the idea is that of Engram, Cheng et al., arXiv 2601.07372)
 *
 * A token and the m - 1 tokens before it are an m-gram, for m = 2 to g. Its
 * hash selects a row of a table for each of several heads. The rows together
 * are a vector of n_embd numbers. Each stream receives a value computed from
 * the vector, times a gate, and a convolution over the gated values of tokens
 * that are g apart. The gate compares a key computed from the vector with the
 * stream.
 *
 * The memory of a sequence has the last inputs of the convolution and the last
 * g - 1 tokens, each as 1 + its id. 0 stands for a missing token.
 */
#include "config.h"
#include "model/build_int.h"

#include "base/compiler.h"

#include <inttypes.h>
#include <math.h>

typedef struct gguf_tensor tensor;

/* Least magnitude of a score, by the models' definition. */
#define LEAST_SCORE 1e-6f

/* ---- hashing ---- */

/* 1 + id of the token at index i of a sequence in a pass. Tokens of earlier
 * passes have negative indexes. 0: the token is missing. */
static int32_t token_at(const tensor *before, const tensor *tok, int64_t i,
                        int64_t seq)
{
    const bool past = i < 0;
    const tensor *t = past ? before : tok;
    const int64_t at = past ? before->ne[0] + i : i;
    const int32_t id =
        *(const int32_t *)(const void *)((const char *)t->data +
                                         at * t->nb[0] + seq * t->nb[2]);
    return past ? id : id + 1;
}

/* Ids of the last g tokens at index i, the last one first. A token that is
 * missing or ends texts makes itself and those before it ends of texts. */
static void list_tokens(const struct gg_hparams *hp, const tensor *before,
                        const tensor *tok, int64_t i, int64_t seq,
                        uint64_t id[GG_NGRAM_MAX])
{
    bool ended = false;
    for (uint32_t s = 0; s < hp->ngram_size; s++) {
        const int32_t one = token_at(before, tok, i - s, seq);
        ended = ended || !one || (s && (uint32_t)one - 1 == hp->ngram_eos);
        id[s] = ended ? hp->ngram_eos : (uint64_t)one - 1;
    }
}

/* Rows of the table: t [n_heads, n_tok, n_seq] of tokens src[1] [n, 1, n_seq]
 * after src[0] [g - 1, 1, n_seq]. Tokens after the first n repeat the last. */
static enum gguf_status hash_ngrams(tensor *t, unsigned ith, unsigned nth,
                                    void *user)
{
    const struct gg_hparams *hp = user;
    const struct gg_hparams_ngrams *n = &hp->ngrams;
    const tensor *before = t->src[0], *tok = t->src[1];
    const int64_t n_tok = t->ne[1];
    for (int64_t k = ith; k < n_tok * t->ne[2]; k += nth) {
        const int64_t i = GG_MIN(k % n_tok, tok->ne[0] - 1);
        int32_t *row = (int32_t *)t->data + k * t->ne[0];
        uint64_t id[GG_NGRAM_MAX], z;
        list_tokens(hp, before, tok, i, k / n_tok, id);
        z = id[0] * n->factor[0];
        for (uint32_t m = 1, h = 0; m < hp->ngram_size; m++) {
            z ^= id[m] * n->factor[m];
            for (uint32_t q = 0; q < hp->ngram_heads; q++, h++)
                row[h] = (int32_t)(z % n->size[h] + n->offset[h]);
        }
    }
    return GGUF_OK;
}

/* The last tokens after a pass: t shaped as src[0]; tokens src[1]. */
static enum gguf_status list_recent(tensor *t, unsigned ith, unsigned nth,
                                    void *user)
{
    const tensor *before = t->src[0], *tok = t->src[1];
    const int64_t n = t->ne[0];
    (void)user;
    for (int64_t k = ith; k < n * t->ne[2]; k += nth)
        ((int32_t *)t->data)[k] =
            token_at(before, tok, tok->ne[0] - n + k % n, k / n);
    return GGUF_OK;
}

/* Numbers of rows of the table for all tokens, [n_heads, n_tok, n_seq]; stores
 * the last tokens. */
static tensor *choose_rows(const struct gg_model_at *at)
{
    struct gguf_ctx *c = at->c;
    const struct gg_model_pass *p = at->p;
    const struct gg_hparams *hp = &at->m->hp;
    tensor *before = gg_model_view_states(at, p->states.recent[at->il], 3);
    tensor *tok = gguf_op_view_3d(c, p->tokens, p->n_real, 1, p->n_seq,
                                  p->n_tok * p->tokens->nb[0],
                                  p->n_tok * p->tokens->nb[0], 0);
    tensor *const src[] = { before, tok };
    struct gguf_custom hash = GGUF_CUSTOM_INIT, recent = GGUF_CUSTOM_INIT;
    hash.compute.fn = hash_ngrams;
    hash.compute.user = (void *)(uintptr_t)hp;
    recent.compute.fn = list_recent;
    tensor *ids = gguf_op_custom(
        c, GGUF_DTYPE_I32,
        (int64_t[]){ hp->ngrams.n_heads, p->n_tok, p->n_seq, 1 }, 2, src,
        &hash);
    tensor *now = gguf_op_custom(
        c, GGUF_DTYPE_I32,
        (int64_t[]){ (int64_t)hp->ngram_size - 1, 1, p->n_seq, 1 }, 2, src,
        &recent);
    gguf_graph_add(p->graph, ids); /* before the memory changes */
    gg_model_store_state(at, now, before);
    return ids;
}

/* ---- the terms of a layer ---- */

/* Vectors of all tokens, [n_embd, N]. */
static tensor *embed_ngrams(const struct gg_model_at *at)
{
    struct gguf_ctx *c = at->c;
    const int64_t n = at->p->n_tok * at->p->n_seq;
    const int64_t heads = at->m->hp.ngrams.n_heads;
    tensor *ids = gguf_op_reshape_1d(c, choose_rows(at), heads * n);
    tensor *w = gg_weight_at(at, GG_W_NGRAM_EMBD);
    tensor *x = gg_model_apply_weight_scale(at, GG_W_NGRAM_EMBD,
                                            gguf_op_get_rows(c, w, ids));
    x = gg_model_add_lora_rows(at, w, ids, x);
    return gguf_op_reshape_2d(c, x, at->m->hp.n_embd, n);
}

/* Gates [n, N] of streams h [n_embd, n, N]: the sigmoid of the signed square
 * root of each score. */
static tensor *gate_streams(const struct gg_model_at *at, tensor *x, tensor *h)
{
    struct gguf_ctx *c = at->c;
    const int64_t d = h->ne[0], n = h->ne[1], n_tok = h->ne[2];
    tensor *key = gguf_op_reshape_3d(c, gg_model_linear(at, GG_W_NGRAM_KEY, x),
                                     d, n, n_tok);
    tensor *s =
        gguf_op_mul(c, gg_model_norm_streams(at, GG_W_NGRAM_NORM_KEY, key),
                    gg_model_norm_streams(at, GG_W_NGRAM_NORM_QUERY, h));
    s = gguf_op_sum_rows(c, gguf_op_reshape_3d(c, s, d, n, n_tok));
    s = gguf_op_scale(c, gguf_op_reshape_2d(c, s, n, n_tok),
                      1 / sqrtf((float)d));
    tensor *sign = gguf_op_clamp(c, gguf_op_scale(c, s, 1e38f), -1, 1);
    s = gguf_op_clamp(c, gguf_op_abs(c, s), LEAST_SCORE, INFINITY);
    return gguf_op_sigmoid(c, gguf_op_mul(c, sign, gguf_op_sqrt(c, s)));
}

/* Convolution of the normed values u [n_embd * n, N], whose taps are g tokens
 * apart. */
static tensor *convolve_values(const struct gg_model_at *at, tensor *u)
{
    struct gguf_ctx *c = at->c;
    const struct gg_model_pass *p = at->p;
    const int64_t g = at->m->hp.ngram_size, taps = at->m->hp.ngram_taps;
    tensor *kernel =
        gguf_op_cast(c, gg_weight_at(at, GG_W_NGRAM_CONV), GGUF_DTYPE_F32);
    kernel = gguf_op_cont(c, gguf_op_transpose(c, kernel));
    if (!u || !kernel)
        return NULL;
    const int64_t width = u->ne[0], past = (taps - 1) * g;
    tensor *all = gg_model_view_real_tokens(at, u, 0, width), *y = NULL;
    if (past) {
        tensor *before = gg_model_view_states(at, p->states.ngrams[at->il], 3);
        all = gguf_op_concat(c, before, all, 1);
        if (all)
            gg_model_store_state(
                at,
                gguf_op_view_3d(c, all, width, past, p->n_seq, all->nb[1],
                                all->nb[2],
                                (uint64_t)(p->n_real * all->nb[1])),
                before);
    }
    for (int64_t k = 0; all && k < taps; k++) {
        tensor *x =
            gguf_op_view_3d(c, all, width, p->n_real, p->n_seq, all->nb[1],
                            all->nb[2], (uint64_t)(k * g * all->nb[1]));
        tensor *w =
            gguf_op_view_1d(c, kernel, width, (uint64_t)(k * kernel->nb[1]));
        x = gguf_op_mul(c, x, w);
        y = y ? gguf_op_add(c, y, x) : x;
    }
    return gg_model_repeat_last_token(at, gguf_op_silu(c, y));
}

tensor *gg_model_add_ngrams(const struct gg_model_at *at, tensor *h)
{
    struct gguf_ctx *c = at->c;
    if (!h)
        return NULL;
    const int64_t d = h->ne[0], n = h->ne[1], n_tok = h->ne[2];
    gguf_graph_add(at->p->graph, h); /* earlier layers are computed first */
    tensor *x = embed_ngrams(at);
    tensor *gate = gguf_op_reshape_3d(c, gate_streams(at, x, h), n, 1, n_tok);
    tensor *v = gguf_op_reshape_3d(c, gg_model_linear(at, GG_W_NGRAM_VALUE, x),
                                   d, 1, n_tok);
    v = gguf_op_out_prod(c, v, gate);
    tensor *y = convolve_values(
        at, gg_model_norm_streams(at, GG_W_NGRAM_NORM_CONV, v));
    y = gguf_op_reshape_3d(c, y, d, n, n_tok);
    return gguf_op_add(c, h, gguf_op_add(c, v, y));
}

/* ---- weights and states ---- */

void gg_mixer_needs_ngrams(struct gg_needs *n, const struct gg_model_layer *l)
{
    static const uint16_t all[] = { GG_NEED(NGRAM_KEY),
                                    GG_NEED(NGRAM_VALUE),
                                    GG_NEED(NGRAM_NORM_KEY),
                                    GG_NEED(NGRAM_NORM_QUERY),
                                    GG_NEED(NGRAM_NORM_CONV),
                                    GG_NEED(NGRAM_CONV),
                                    0 };
    if (l->has_ngrams)
        gg_needs_add_list(n, all);
}

void gg_model_size_states_ngrams(const struct gguf_model *m,
                                 const struct gg_model_layer *l,
                                 struct gg_model_state_sizes *n)
{
    const struct gg_hparams *hp = &m->hp;
    gg_model_size_states_delta(m, l, n);
    if (!l->has_ngrams)
        return;
    n->ngrams[0] = (int64_t)hp->n_embd * hp->n_streams;
    n->ngrams[1] = ((int64_t)hp->ngram_taps - 1) * hp->ngram_size;
    n->recent = (int64_t)hp->ngram_size - 1;
}

enum gguf_status gg_model_check_ngrams(const struct gguf_model *m, uint32_t il,
                                       struct gguf_error *err)
{
    const struct gg_hparams_ngrams *n = &m->hp.ngrams;
    const tensor *t = m->top.w[GG_W_NGRAM_EMBD];
    if (!m->hp.layer[il].has_ngrams)
        return GGUF_OK;
    for (uint32_t h = 0; h < n->n_heads; h++)
        if (t->ne[1] < (int64_t)n->offset[h] + n->size[h])
            return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                                "tensor '%s' has %" PRId64
                                " rows, head %" PRIu32 " needs %" PRId64,
                                t->name, t->ne[1], h,
                                (int64_t)n->offset[h] + n->size[h]);
    return GGUF_OK;
}

enum gguf_status gg_model_check_no_ngrams(const struct gguf_model *m,
                                          uint32_t il, struct gguf_error *err)
{
    if (!m->hp.layer[il].has_ngrams)
        return GGUF_OK;
    return gg_error_set(
        err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
        "layer %" PRIu32 " has embeddings of n-grams, but no delta rule", il);
}
