/* SPDX-License-Identifier: MIT */
/* encoder_decoder.c - an encoder, and a decoder that attends to its states (T5)
 *
 * Raffel et al., arXiv 1910.10683: pre-norm layers with RMS norms. Scores are
 * not scaled and have a bias for the relative position of a key (section 2.1):
 * positions fall into buckets, and each bucket has a number for each head.
 * Layers without these numbers use the first layer's.
 *
 * The decoder's cross attention has neither bias nor positions. Its keys and
 * values do not depend on the decoded text: the encoder's pass computes and
 * stores them for all layers of the decoder.
 */
#include "config.h"
#include "model/build_int.h"

#include <math.h>

typedef struct gguf_tensor tensor;

/* ---- distances ---- */

int32_t gg_model_position_bucket(uint32_t n_buckets, bool both_ways,
                                 int64_t far)
{
    uint32_t n = n_buckets;
    int32_t first = 0;
    int64_t d = far < 0 ? -far : 0; /* later keys count as the nearest */
    if (both_ways) {
        n /= 2;
        first = far > 0 ? (int32_t)n : 0;
        d = far < 0 ? -far : far;
    }
    const uint32_t near = n / 2; /* distances with a bucket of their own */
    if (d < near)
        return first + (int32_t)d;
    if (d >= GG_MODEL_MAX_DISTANCE)
        return first + (int32_t)n - 1;
    /* a whole number where a distance is the first of its bucket, which
     * rounding must not make smaller */
    const double step =
        log((double)d / near) / log((double)GG_MODEL_MAX_DISTANCE / near);
    const uint32_t more = (uint32_t)floor(step * (n - near) + 1e-6);
    return first + (int32_t)GG_MIN(near + more, n - 1);
}

/* ---- a layer ---- */

/* Weights of a layer, of the encoder and of the decoder. */
struct half {
    enum gg_weight norm, q, k, v, out, rel, ffn_norm, gate, up, down;
};
#define HALF(P)                                                               \
    {                                                                         \
        GG_W_##P##_NORM, GG_W_##P##_Q, GG_W_##P##_K, GG_W_##P##_V,            \
            GG_W_##P##_OUT, GG_W_##P##_REL, GG_W_##P##_FFN_NORM,              \
            GG_W_##P##_GATE, GG_W_##P##_UP, GG_W_##P##_DOWN                   \
    }
static const struct half encoder = HALF(ENC), decoder = HALF(DEC);

/* The mask with the bias of a layer's numbers: [n_kv, n_tok, n_head, 1 or
 * n_seq]. */
static tensor *biased_mask(const struct gg_model_at *at, tensor *rel)
{
    const struct gg_model_pass_keys *keys = &at->p->keys;
    const tensor *m = keys->mask[GG_ATTN_FULL];
    if (!m)
        return NULL;
    tensor *y = gguf_op_get_rows(at->c, rel, keys->buckets);
    y = gguf_op_reshape_4d(at->c, y, at->layer->n_head, m->ne[0], m->ne[1],
                           m->ne[3]);
    y = gguf_op_cont(at->c, gguf_op_permute(at->c, y, 2, 0, 1, 3));
    return gguf_op_add(at->c, y, keys->mask[GG_ATTN_FULL]);
}

/* Mask with the bias of the first layer, which layers without a bias share. */
struct bias {
    tensor *first, *mask;
};

static tensor *mask_of(const struct gg_model_at *at, const struct half *h,
                       struct bias *b)
{
    tensor *own = gg_weight_at(at, h->rel);
    if (!own || own == b->first)
        return b->mask;
    tensor *mask = biased_mask(at, own);
    if (!b->first)
        *b = (struct bias){ own, mask };
    return mask;
}

/* Queries q [d * n_head, N] to keys k and values v as attention reads them,
 * n_tok of each of n_seq streams. */
static tensor *attend_heads(const struct gg_model_at *at, tensor *q,
                            int64_t n_tok, int64_t n_seq, tensor *k, tensor *v,
                            tensor *mask)
{
    const int64_t n_head = at->layer->n_head;
    q = gguf_op_reshape_4d(at->c, q, at->layer->dim_k, n_head, n_tok, n_seq);
    q = gguf_op_permute(at->c, q, 0, 2, 1, 3);
    tensor *y =
        gguf_op_attention(at->c, q, k, v, mask, at->layer->score_scale, 0, 0);
    return gguf_op_reshape_2d(at->c, y, at->layer->dim_v * n_head,
                              at->p->n_tok * at->p->n_seq);
}

static tensor *self_attention(const struct gg_model_at *at,
                              const struct half *h, tensor *x,
                              struct bias *bias)
{
    const int64_t n_kv = at->layer->n_head_kv;
    const struct gg_model_pass_keys *keys = &at->p->keys;
    tensor *mask = mask_of(at, h, bias);
    tensor *q = gg_model_linear(at, h->q, x);
    tensor *k = gg_model_update_cache(
        at, keys->k, gg_model_linear(at, h->k, x), at->layer->dim_k, n_kv);
    tensor *v = gg_model_update_cache(
        at, keys->v, gg_model_linear(at, h->v, x), at->layer->dim_v, n_kv);
    return attend_heads(at, q, keys->n_tok, keys->n_seq, k, v, mask);
}

/* GEGLU, or as in the first T5 ReLU without a gate. */
static tensor *feed_forward(const struct gg_model_at *at, const struct half *h,
                            tensor *x)
{
    tensor *up = gg_model_linear(at, h->up, x);
    if (gg_weight_at(at, h->gate))
        up = gguf_op_geglu(at->c, gg_model_linear(at, h->gate, x), up);
    else
        up = gguf_op_relu(at->c, up);
    return gg_model_linear(at, h->down, up);
}

/* Multiply y, the result of a part, by output matrix out and add it to the
 * residual stream x. */
static tensor *join_part(const struct gg_model_at *at, enum gg_weight out,
                         tensor *x, tensor *y)
{
    return gguf_op_add(at->c, x, gg_model_linear(at, out, y));
}

static tensor *norm_states(const struct gg_model_at *at, enum gg_weight id,
                           tensor *x)
{
    return gg_model_apply_norm(at, at->m->hp.norm, id, x);
}

static tensor *after_ffn(const struct gg_model_at *at, const struct half *h,
                         tensor *x)
{
    return gguf_op_add(at->c, x,
                       feed_forward(at, h, norm_states(at, h->ffn_norm, x)));
}

/* ---- the encoder ---- */

/* States of all tokens, after the last norm. */
static tensor *build_encoder(const struct gg_model_pass *p, tensor *x)
{
    struct bias bias = { NULL, NULL };
    struct gg_model_at at = gg_model_at_layer(p, NULL, 0);
    for (uint32_t il = 0; il < p->model->hp.n_layer; il++) {
        at = gg_model_at_layer(p, NULL, il);
        tensor *y = self_attention(&at, &encoder,
                                   norm_states(&at, encoder.norm, x), &bias);
        x = after_ffn(&at, &encoder, join_part(&at, encoder.out, x, y));
    }
    return norm_states(&at, GG_W_ENC_OUTPUT_NORM, x);
}

tensor *gg_model_stack_encoder(const struct gg_model_pass *p, tensor *x)
{
    x = build_encoder(p, x);
    return p->out_rows ? gguf_op_get_rows(p->ctx, x, p->out_rows) : x;
}

/* Store keys or values of states x for the decoder. */
static void store_states(const struct gg_model_at *at, enum gg_weight id,
                         tensor *x, tensor *memory)
{
    gguf_graph_add(at->p->graph,
                   gguf_op_set_rows(at->c, memory, gg_model_linear(at, id, x),
                                    at->p->cross.rows));
}

static tensor *encode_text(const struct gg_model_pass *p, tensor *x)
{
    x = build_encoder(p, x);
    for (uint32_t il = 0; il < p->model->hp.n_dec_layer; il++) {
        const struct gg_model_at at = gg_model_at_layer(p, NULL, il);
        store_states(&at, GG_W_CROSS_K, x, p->cross.k[il]);
        store_states(&at, GG_W_CROSS_V, x, p->cross.v[il]);
    }
    if (!p->n_out)
        return NULL;
    return p->out_rows ? gguf_op_get_rows(p->ctx, x, p->out_rows) : x;
}

/* ---- the decoder ---- */

static tensor *cross_attention(const struct gg_model_at *at, tensor *x)
{
    const struct gg_model_pass_cross *cross = &at->p->cross;
    const struct gg_model_pass *p = at->p;
    const struct gg_model_cache_rows rows = { cross->n_kv, cross->n_cells,
                                              p->first_stream, p->n_seq };
    const int64_t n_kv = at->layer->n_head_kv;
    tensor *q = gg_model_linear(at, GG_W_CROSS_Q, x);
    tensor *k = gg_model_view_cache_rows(at, cross->k[at->il], &rows,
                                         at->layer->dim_k, n_kv);
    tensor *v = gg_model_view_cache_rows(at, cross->v[at->il], &rows,
                                         at->layer->dim_v, n_kv);
    return attend_heads(at, q, p->n_tok, p->n_seq, k, v, cross->mask);
}

static tensor *decode_text(const struct gg_model_pass *p, tensor *x)
{
    struct bias bias = { NULL, NULL };
    struct gg_model_at at = gg_model_at_layer(p, NULL, 0);
    const uint32_t n = p->model->hp.n_dec_layer;
    for (uint32_t il = 0; il < n; il++) {
        const bool last = il == n - 1;
        at = gg_model_at_layer(p, NULL, il);
        tensor *y = self_attention(&at, &decoder,
                                   norm_states(&at, decoder.norm, x), &bias);
        if (last && !p->n_out)
            return NULL;
        x = join_part(&at, decoder.out, x, y);
        y = cross_attention(&at, norm_states(&at, GG_W_CROSS_NORM, x));
        x = join_part(&at, GG_W_CROSS_OUT, x, y);
        /* after this only tokens whose output is wanted */
        if (last && p->out_rows)
            x = gguf_op_get_rows(p->ctx, x, p->out_rows);
        x = after_ffn(&at, &decoder, x);
    }
    return norm_states(&at, GG_W_DEC_OUTPUT_NORM, x);
}

tensor *gg_model_stack_encdec(const struct gg_model_pass *p, tensor *x)
{
    return p->encodes ? encode_text(p, x) : decode_text(p, x);
}
