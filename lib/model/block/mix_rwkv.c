/* SPDX-License-Identifier: MIT */
/* mix_rwkv.c - RWKV: token shift, and a state for each head
 *
 * Peng et al., arXiv 2404.05892 (RWKV-6) and 2503.14456 (RWKV-7). Token shift
 * is computed for all N tokens, so that products have the same number of
 * columns in any pass. Only real tokens change the state.
 */
#include "config.h"
#include "model/build_int.h"

#include <inttypes.h>
#include <math.h>

typedef struct gguf_tensor tensor;

/* Epsilon of the norms of heads. */
#define HEAD_EPS 64e-5f

/* Columns of the memory of token shifts: the mixer's and the feed-forward
 * part's. */
enum { SHIFT_TIME, SHIFT_CHANNEL };

/* ---- the states ---- */

void gg_model_size_states_rwkv(const struct gguf_model *m,
                               const struct gg_model_layer *l,
                               struct gg_model_state_sizes *n)
{
    const struct gg_hparams *hp = &m->hp;
    *n = (struct gg_model_state_sizes){
        .conv = { hp->n_embd, l->ffn && l->ffn->shifts ? 2 : 1 },
        .scan = { hp->wkv_head, hp->wkv_head, hp->n_embd / hp->wkv_head }
    };
}

/* ---- which weights a layer has ---- */

/* Weights that come together, or not at all. */
static const uint16_t pairs[][2] = { { GG_W_TM7_G1, GG_W_TM7_G2 },
                                     { GG_W_TM_LN, GG_W_TM_LN_B } };

/* Check the coefficients of token shift: RWKV-6 has them in one tensor or in
 * five. */
enum gguf_status gg_model_check_rwkv(const struct gguf_model *m, uint32_t il,
                                     struct gguf_error *err)
{
    for (size_t i = 0; i < GG_LEN(pairs); i++) {
        const enum gg_weight a = (enum gg_weight)pairs[i][0],
                             b = (enum gg_weight)pairs[i][1];
        if (gg_model_has_weight(m, a, il) != gg_model_has_weight(m, b, il))
            return gg_model_fail_missing_weight(
                gg_model_has_weight(m, a, il) ? b : a, il, err);
    }
    if (gg_model_has_weight(m, GG_W_TM_LERP, il))
        return GGUF_OK;
    for (unsigned id = GG_W_TM_LERP_W; id <= GG_W_TM_LERP_G; id++)
        if (!gg_model_has_weight(m, (enum gg_weight)id, il))
            return gg_model_fail_missing_weight((enum gg_weight)id, il, err);
    return GGUF_OK;
}

/* RWKV-7 has a row for the gate, if it has a gate. */
enum gguf_status gg_model_check_rwkv7(const struct gguf_model *m, uint32_t il,
                                      struct gguf_error *err)
{
    char name[GG_WEIGHT_NAME];
    size_t i;
    GG_TRY(gg_model_check_rwkv(m, il, err));
    if (!gg_source_find(&m->src, gg_weight_name(GG_W_TM_LERP, il, name), &i))
        return GGUF_OK;
    const int64_t n = gg_source_tensor(&m->src, i).info->ne[3];
    const bool gated = gg_model_has_weight(m, GG_W_TM7_G1, il);
    if (n >= 5 + gated && n <= 6)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                        "tensor '%s' has %" PRId64 " rows, must have 6%s",
                        name, n, gated ? "" : ", or 5 without a gate");
}

/* ---- shifts ---- */

/* Difference between each token's predecessor in its sequence and the token,
 * for x [E, N]. Same shape. Stores the last token in the state. */
static tensor *token_shift(const struct gg_model_at *at, tensor *x,
                           int64_t which)
{
    struct gguf_ctx *c = at->c;
    const struct gg_model_pass *p = at->p;
    const int64_t n = at->m->hp.n_embd;
    tensor *memory = gg_model_view_states(at, p->states.conv[at->il], 3);
    tensor *now = gg_model_view_real_tokens(at, x, 0, n);
    if (!memory || !now)
        return NULL;
    memory = gguf_op_view_3d(c, memory, n, 1, p->n_seq, memory->nb[1],
                             memory->nb[2], (uint64_t)(which * memory->nb[1]));
    tensor *all = gguf_op_concat(c, memory, now, 1);
    if (!all)
        return NULL;
    tensor *before = gguf_op_view_3d(c, all, n, p->n_real, p->n_seq,
                                     all->nb[1], all->nb[2], 0);
    tensor *last =
        gguf_op_view_3d(c, all, n, 1, p->n_seq, all->nb[1], all->nb[2],
                        (uint64_t)(p->n_real * all->nb[1]));
    gg_model_store_state(at, last, memory);
    return gg_model_repeat_last_token(at, gguf_op_sub(c, before, now));
}

/* Interpolate between x and its predecessor: x + lerp * shift. */
static tensor *lerp_shift(const struct gg_model_at *at, tensor *x,
                          tensor *shift, tensor *lerp)
{
    return gguf_op_add(at->c, x, gguf_op_mul(at->c, shift, lerp));
}

/* Row i of a weight [E, 1, 1, n]. */
static tensor *weight_row(const struct gg_model_at *at, enum gg_weight id,
                          int64_t i)
{
    tensor *w = gg_weight_at(at, id);
    return w ? gguf_op_view_1d(at->c, w, w->ne[0], (uint64_t)(i * w->nb[3]))
             : NULL;
}

/* ---- heads ---- */

/* View the real tokens of x [E, N] as heads: [d, n_head, n_real, n_seq]. */
static tensor *split_heads(const struct gg_model_at *at, tensor *x)
{
    const int64_t n = at->m->hp.n_embd, d = at->m->hp.wkv_head;
    return gg_model_view_real_heads(at, gg_model_view_real_tokens(at, x, 0, n),
                                    0, d, n / d);
}

/* All of x [E, N] as heads: [d, n_head, N]. */
static tensor *all_heads(const struct gg_model_at *at, tensor *x)
{
    const int64_t n = at->m->hp.n_embd, d = at->m->hp.wkv_head;
    return gguf_op_reshape_3d(at->c, x, d, n / d, at->p->n_tok * at->p->n_seq);
}

/* Merge heads y [d, n_head, n_real, n_seq] of real tokens, after a norm of each
 * head if the layer has one, and pad to all tokens: [E, N]. */
static tensor *merge_heads(const struct gg_model_at *at, tensor *y)
{
    struct gguf_ctx *c = at->c;
    tensor *w = gg_weight_at(at, GG_W_TM_LN);
    tensor *b = gg_weight_at(at, GG_W_TM_LN_B);
    if (w)
        y = gguf_op_norm(c, y, HEAD_EPS);
    y = gguf_op_reshape_3d(c, y, at->m->hp.n_embd, at->p->n_real,
                           at->p->n_seq);
    y = gg_model_repeat_last_token(at, y);
    return w ? gguf_op_add(c, gguf_op_mul(c, y, w), b) : y;
}

/* Two matrices, of low rank, and an activation between them. */
static tensor *low_rank(const struct gg_model_at *at, enum gg_weight down,
                        tensor *(*act)(struct gguf_ctx *c, tensor *x),
                        enum gg_weight up, tensor *x)
{
    x = gg_model_linear(at, down, x);
    return gg_model_linear(at, up, act ? act(at->c, x) : x);
}

/* ---- RWKV-6 ---- */

/* Inputs that token shift mixes: for decay, key, value, receptance, gate. */
enum { MIX6_W, MIX6_K, MIX6_V, MIX6_R, MIX6_G, N_MIX6 };

/* Mix these inputs with coefficients that depend on the token. */
static void mixes_6(const struct gg_model_at *at, tensor *x,
                    tensor *out[N_MIX6])
{
    static const uint16_t lerps[N_MIX6] = { GG_W_TM_LERP_W, GG_W_TM_LERP_K,
                                            GG_W_TM_LERP_V, GG_W_TM_LERP_R,
                                            GG_W_TM_LERP_G };
    struct gguf_ctx *c = at->c;
    const int64_t n = at->m->hp.n_embd, rank = at->m->hp.n_mix,
                  n_tok = at->p->n_tok * at->p->n_seq;
    tensor *shift = token_shift(at, x, SHIFT_TIME);
    tensor *low = lerp_shift(at, x, shift, gg_weight_at(at, GG_W_TM_LERP_X));
    low = gguf_op_tanh(c, gg_model_linear(at, GG_W_TM6_W1, low));
    low = gguf_op_reshape_3d(c, low, rank, N_MIX6, n_tok);
    low = gguf_op_cont(c, gguf_op_permute(c, low, 0, 2, 1, 3));
    low = gg_model_linear(at, GG_W_TM6_W2, low); /* [E, N, 5] */
    for (int64_t i = 0; i < N_MIX6; i++) {
        tensor *lerp = gg_weight_at(at, (enum gg_weight)lerps[i]);
        if (!lerp)
            lerp = weight_row(at, GG_W_TM_LERP, i);
        out[i] = low ? gguf_op_view_2d(c, low, n, n_tok, low->nb[1],
                                       (uint64_t)(i * low->nb[2]))
                     : NULL;
        out[i] = lerp_shift(at, x, shift, gguf_op_add(c, out[i], lerp));
    }
}

/* The decay of x: exp(-exp(..)). */
static tensor *decay_6(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    tensor *w =
        low_rank(at, GG_W_TM_DECAY_W1, gguf_op_tanh, GG_W_TM_DECAY_W2, x);
    w = gguf_op_add(c, w, gg_weight_at(at, GG_W_TM_DECAY));
    return gguf_op_exp(c, gguf_op_neg(c, gguf_op_exp(c, w)));
}

tensor *gg_model_mix_rwkv6(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    tensor *memory = gg_model_view_states(at, at->p->states.scan[at->il], 4);
    tensor *in[N_MIX6], *state;
    mixes_6(at, x, in);
    tensor *r = gg_model_linear(at, GG_W_TM_RECEPT, in[MIX6_R]);
    tensor *k = gg_model_linear(at, GG_W_TM_KEY, in[MIX6_K]);
    tensor *v = gg_model_linear(at, GG_W_TM_VALUE, in[MIX6_V]);
    tensor *g = gguf_op_silu(c, gg_model_linear(at, GG_W_TM_GATE, in[MIX6_G]));
    tensor *y = gguf_op_rwkv_wkv6(
        c, split_heads(at, r), split_heads(at, k), split_heads(at, v),
        gg_weight_at(at, GG_W_TM_FIRST),
        split_heads(at, decay_6(at, in[MIX6_W])), memory, &state);
    gg_model_store_state(at, state, memory);
    return gguf_op_mul(c, merge_heads(at, y), g);
}

/* Repeat keys or values x [d * n_kv, N] for all heads: consecutive heads share
 * one. Returns [E, N]. */
static tensor *repeat_heads(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const int64_t n = at->m->hp.n_embd, d = at->m->hp.wkv_head;
    if (!x || x->ne[0] == n)
        return x;
    const int64_t n_tok = x->ne[1], n_kv = x->ne[0] / d, each = n / d / n_kv;
    x = gguf_op_reshape_4d(c, x, d, 1, n_kv, n_tok);
    x = gguf_op_repeat(c, x, d, each, n_kv, n_tok);
    return gguf_op_reshape_2d(c, x, n, n_tok);
}

/* RWKV-6 converted from a model with attention (RWKV6-Qwen2): the state
 * includes a token before it is read by that token, and keys are multiplied by
 * 1 minus the decay. */
tensor *gg_model_mix_rwkv6_linear(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    tensor *memory = gg_model_view_states(at, at->p->states.scan[at->il], 4);
    tensor *in[N_MIX6], *state;
    mixes_6(at, x, in);
    tensor *r = gg_model_linear(at, GG_W_TM_RECEPT, in[MIX6_R]);
    tensor *k = repeat_heads(at, gg_model_linear(at, GG_W_TM_KEY, in[MIX6_K]));
    tensor *v =
        repeat_heads(at, gg_model_linear(at, GG_W_TM_VALUE, in[MIX6_V]));
    tensor *g =
        gguf_op_sigmoid(c, gg_model_linear(at, GG_W_TM_GATE, in[MIX6_G]));
    tensor *w = decay_6(at, in[MIX6_W]);
    k = gguf_op_sub(c, k, gguf_op_mul(c, k, w));
    tensor *y = gguf_op_gated_linear_attn(
        c, split_heads(at, r), split_heads(at, k), split_heads(at, v),
        split_heads(at, w), memory, 1 / sqrtf((float)at->m->hp.wkv_head),
        &state);
    gg_model_store_state(at, state, memory);
    return gguf_op_mul(c, merge_heads(at, y), g);
}

/* ---- RWKV-7 ---- */

/* Inputs that token shift mixes: for receptance, decay, key, value, learning
 * rate, gate. */
enum { MIX7_R, MIX7_W, MIX7_K, MIX7_V, MIX7_A, MIX7_G, N_MIX7 };

/* The decay of x: exp(-exp(-1/2) sigmoid(..)). */
static tensor *decay_7(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    tensor *w = low_rank(at, GG_W_TM7_W1, gguf_op_tanh, GG_W_TM7_W2, x);
    w = gguf_op_sigmoid(c, gguf_op_add(c, w, gg_weight_at(at, GG_W_TM7_W0)));
    return gguf_op_exp(c, gguf_op_scale(c, w, -0.606531f));
}

/* sigmoid(first + up down x) */
static tensor *lora_sigmoid(const struct gg_model_at *at, enum gg_weight first,
                            enum gg_weight down, enum gg_weight up, tensor *x)
{
    tensor *y = low_rank(at, down, NULL, up, x);
    return gguf_op_sigmoid(at->c,
                           gguf_op_add(at->c, y, gg_weight_at(at, first)));
}

/* Values, of all but the first layer some of that one's. */
static tensor *values_7(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    tensor *v = gg_model_linear(at, GG_W_TM_VALUE, x);
    if (!at->il)
        at->across->value = v;
    if (at->across->value == v)
        return v;
    tensor *much = lora_sigmoid(at, GG_W_TM7_V0, GG_W_TM7_V1, GG_W_TM7_V2, x);
    tensor *rest = gguf_op_sub(c, at->across->value, v);
    return gguf_op_add(c, v, gguf_op_mul(c, rest, much));
}

/* Term of the token itself in each head's result: [E, N]. */
static tensor *bonus_7(const struct gg_model_at *at, tensor *k, tensor *r,
                       tensor *v)
{
    struct gguf_ctx *c = at->c;
    const int64_t n = at->m->hp.n_embd;
    tensor *much =
        gguf_op_mul(c, gguf_op_mul(c, k, r), gg_weight_at(at, GG_W_TM7_R_K));
    much = gguf_op_sum_rows(c, all_heads(at, much));
    v = gguf_op_mul(c, all_heads(at, v), much);
    return gguf_op_reshape_2d(c, v, n, at->p->n_tok * at->p->n_seq);
}

tensor *gg_model_mix_rwkv7(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    tensor *memory = gg_model_view_states(at, at->p->states.scan[at->il], 4);
    tensor *shift = token_shift(at, x, SHIFT_TIME);
    const bool gated = gg_weight_at(at, GG_W_TM7_G1) != NULL;
    tensor *in[N_MIX7], *state;
    for (int64_t i = 0; i < (gated ? N_MIX7 : MIX7_G); i++)
        in[i] = lerp_shift(at, x, shift, weight_row(at, GG_W_TM_LERP, i));
    tensor *r = gg_model_linear(at, GG_W_TM_RECEPT, in[MIX7_R]);
    tensor *k = gg_model_linear(at, GG_W_TM_KEY, in[MIX7_K]);
    tensor *v = values_7(at, in[MIX7_V]);
    tensor *a =
        lora_sigmoid(at, GG_W_TM7_A0, GG_W_TM7_A1, GG_W_TM7_A2, in[MIX7_A]);
    tensor *kk = gguf_op_mul(c, k, gg_weight_at(at, GG_W_TM7_K_K));
    kk = gguf_op_l2_norm(c, all_heads(at, kk), 1e-12f);
    kk = gguf_op_reshape_2d(c, kk, at->m->hp.n_embd,
                            at->p->n_tok * at->p->n_seq);
    tensor *ka = gguf_op_mul(c, k, gg_weight_at(at, GG_W_TM7_K_A));
    k = gguf_op_add(c, k, gguf_op_sub(c, gguf_op_mul(c, ka, a), ka));
    tensor *y = gguf_op_rwkv_wkv7(
        c, split_heads(at, r), split_heads(at, k), split_heads(at, v),
        split_heads(at, decay_7(at, in[MIX7_W])),
        split_heads(at, gguf_op_neg(c, kk)),
        split_heads(at, gguf_op_mul(c, kk, a)), memory, &state);
    gg_model_store_state(at, state, memory);
    y = gguf_op_add(c, merge_heads(at, y), bonus_7(at, k, r, v));
    if (!gated)
        return y;
    return gguf_op_mul(
        c, y,
        low_rank(at, GG_W_TM7_G1, gguf_op_sigmoid, GG_W_TM7_G2, in[MIX7_G]));
}

/* ---- the feed-forward part ---- */

tensor *gg_model_channel_mix(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    tensor *shift = token_shift(at, x, SHIFT_CHANNEL);
    tensor *k = lerp_shift(at, x, shift, gg_weight_at(at, GG_W_CM_LERP_K));
    k = gguf_op_relu_sqr(c, gg_model_linear(at, GG_W_CM_KEY, k));
    k = gg_model_linear(at, GG_W_CM_VALUE, k);
    if (!gg_weight_at(at, GG_W_CM_RECEPT))
        return k;
    tensor *r = lerp_shift(at, x, shift, gg_weight_at(at, GG_W_CM_LERP_R));
    r = gguf_op_sigmoid(c, gg_model_linear(at, GG_W_CM_RECEPT, r));
    return gguf_op_mul(c, r, k);
}
