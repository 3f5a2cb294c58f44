/* SPDX-License-Identifier: MIT */
/* mix_delta.c - delta rules: a convolution over queries, keys and values, and a
 * state that each token corrects
 *
 * Gated DeltaNet of Qwen3-Next and Qwen 3.5 (arXiv 2412.06464) has one gate per
 * head, Kimi's delta rule (arXiv 2510.26692) one per element of a key. Kimi K3
 * and Ling 3.0 bound the logarithm of these gates.
 */
#include "config.h"
#include "model/build_int.h"

#include <math.h>

typedef struct gguf_tensor tensor;

/* Inputs of the delta rule for real tokens: [d, heads, n_real, n_seq], where q
 * and k may have fewer heads; g [1 or d, heads, ..] is the logarithm of the
 * gates; beta [1, heads, ..]. */
struct rule {
    tensor *q, *k, *v, *g, *beta;
};

/* Normalise heads x [d, ..]: x / sqrt(sum of x^2 + eps), as in the models' own
 * code (l2norm of flash-linear-attention, which both papers use). */
static tensor *norm_heads(const struct gg_model_at *at, tensor *x)
{
    if (!x)
        return NULL;
    const float d = (float)x->ne[0];
    x = gguf_op_rms_norm(at->c, x, at->m->hp.eps / d);
    return gguf_op_scale(at->c, x, 1 / sqrtf(d));
}

/* Apply the delta rule and update the state. Returns a tensor shaped as v. */
static tensor *apply_rule(const struct gg_model_at *at, const struct rule *r)
{
    struct gguf_ctx *c = at->c;
    tensor *memory = gg_model_view_states(at, at->p->states.scan[at->il], 4);
    tensor *state;
    tensor *y =
        gguf_op_gated_delta(c, norm_heads(at, r->q), norm_heads(at, r->k),
                            r->v, r->g, r->beta, memory, &state);
    gg_model_store_state(at, state, memory);
    return y;
}

/* Heads y after their norm, times gate [d * heads, n_real, n_seq]: [d * heads,
 * N]. */
static tensor *gate_heads(const struct gg_model_at *at, enum gg_weight norm,
                          tensor *y, tensor *gate)
{
    const struct gg_model_pass *p = at->p;
    y = gg_model_apply_norm(at, GG_NORM_RMS, norm, y);
    if (!y)
        return NULL;
    y = gguf_op_reshape_3d(at->c, y, y->ne[0] * y->ne[1], p->n_real, p->n_seq);
    return gg_model_repeat_last_token(at, gguf_op_mul(at->c, y, gate));
}

/* One number per head and real token, shaped as the rule takes it. */
static tensor *head_numbers(const struct gg_model_at *at, tensor *x,
                            int64_t heads)
{
    return gguf_op_reshape_4d(at->c, x, 1, heads, at->p->n_real, at->p->n_seq);
}

/* ---- one gate a head ---- */

/* A head's state is square. */
void gg_model_size_states_delta(const struct gguf_model *m,
                                const struct gg_model_layer *l,
                                struct gg_model_state_sizes *n)
{
    const struct gg_hparams *hp = &m->hp;
    (void)l;
    *n = (struct gg_model_state_sizes){
        .conv = { hp->ssm_inner + 2 * (int64_t)hp->ssm_groups * hp->ssm_state,
                  (int64_t)hp->ssm_conv - 1 },
        .scan = { hp->ssm_state, hp->ssm_state, hp->ssm_dt }
    };
}

/* Rows of a matrix's result that belong together key head by key head: rows
 * [first, first + n) of each group's, [n * groups, N]. */
static tensor *of_groups(const struct gg_model_at *at, tensor *all,
                         int64_t first, int64_t n)
{
    const int64_t groups = at->m->hp.ssm_groups;
    if (!all)
        return NULL;
    const int64_t es = all->nb[0], n_tok = all->ne[1];
    tensor *y =
        gguf_op_view_3d(at->c, all, n, groups, n_tok, all->ne[0] / groups * es,
                        all->nb[1], (uint64_t)(first * es));
    return gguf_op_reshape_2d(at->c, gguf_op_cont(at->c, y), n * groups,
                              n_tok);
}

/* Projections of tokens, each [.., N]. */
struct made {
    tensor *qkv, *z, *alpha, *beta;
};

static struct made make_inputs(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    const int64_t r = hp->ssm_dt / hp->ssm_groups, d = hp->ssm_state;
    struct made y;
    if (gg_weight_at(at, GG_W_DELTA_BA)) {
        tensor *ba = gg_model_linear(at, GG_W_DELTA_BA, x);
        y.beta = of_groups(at, ba, 0, r);
        y.alpha = of_groups(at, ba, r, r);
    } else {
        y.beta = gg_model_linear(at, GG_W_DELTA_BETA, x);
        y.alpha = gg_model_linear(at, GG_W_DELTA_ALPHA, x);
    }
    if (gg_weight_at(at, GG_W_DELTA_QKV) &&
        gg_weight_at(at, GG_W_DELTA_GATE)) {
        y.qkv = gg_model_linear(at, GG_W_DELTA_QKV, x);
        y.z = gg_model_linear(at, GG_W_DELTA_GATE, x);
        return y;
    }
    /* the first files of Qwen3-Next */
    tensor *in = gg_model_linear(at, GG_W_DELTA_IN, x);
    y.qkv =
        gguf_op_concat(c, of_groups(at, in, 0, d), of_groups(at, in, d, d), 0);
    y.qkv = gguf_op_concat(c, y.qkv, of_groups(at, in, 2 * d, r * d), 0);
    y.z = of_groups(at, in, (2 + r) * d, r * d);
    return y;
}

/* Repeat heads x [d, n, n_real, n_seq] r times each. The rule pairs value head
 * h with key head h mod n; Qwen3-Next pairs it with h / r. */
static tensor *in_blocks(const struct gg_model_at *at, tensor *x, int64_t r)
{
    const struct gg_model_pass *p = at->p;
    if (!x || r == 1)
        return x;
    const int64_t d = x->ne[0], n = x->ne[1], n_tok = p->n_real * p->n_seq;
    x = gguf_op_reshape_4d(at->c, gguf_op_cont(at->c, x), d, 1, n, n_tok);
    x = gguf_op_repeat(at->c, x, d, r, n, n_tok);
    return gguf_op_reshape_4d(at->c, x, d, r * n, p->n_real, p->n_seq);
}

/* n: how often key heads are repeated before the rule; it tiles the rest. act:
 * activation of the output's gate. */
static tensor *mix_delta(const struct gg_model_at *at, tensor *x, int64_t n,
                         tensor *(*act)(struct gguf_ctx *c, tensor *x))
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    const int64_t d = hp->ssm_state, n_k = hp->ssm_groups, n_v = hp->ssm_dt;
    const struct made y = make_inputs(at, x);
    tensor *before = gg_model_view_states(at, at->p->states.conv[at->il], 3);
    tensor *qkv = gg_model_view_real_tokens(at, y.qkv, 0, (2 * n_k + n_v) * d);
    qkv = gguf_op_silu(c, gg_model_apply_conv(at, GG_W_M2_CONV, qkv, before));
    tensor *g = gguf_op_add(c, gg_model_view_real_tokens(at, y.alpha, 0, n_v),
                            gg_weight_at(at, GG_W_M2_DT_B));
    g = gguf_op_mul(c, gguf_op_softplus(c, g), gg_weight_at(at, GG_W_HEADS_A));
    tensor *beta =
        gguf_op_sigmoid(c, gg_model_view_real_tokens(at, y.beta, 0, n_v));
    const struct rule r = {
        .q = in_blocks(at, gg_model_view_real_heads(at, qkv, 0, d, n_k), n),
        .k = in_blocks(at, gg_model_view_real_heads(at, qkv, n_k * d, d, n_k),
                       n),
        .v = gg_model_view_real_heads(at, qkv, 2 * n_k * d, d, n_v),
        .g = head_numbers(at, g, n_v),
        .beta = head_numbers(at, beta, n_v),
    };
    tensor *z = act(c, gg_model_view_real_tokens(at, y.z, 0, n_v * d));
    return gate_heads(at, GG_W_DELTA_NORM, apply_rule(at, &r), z);
}

tensor *gg_model_mix_delta(const struct gg_model_at *at, tensor *x)
{
    return mix_delta(at, x, at->m->hp.ssm_dt / at->m->hp.ssm_groups,
                     gguf_op_silu);
}

tensor *gg_model_mix_delta_tiled(const struct gg_model_at *at, tensor *x)
{
    return mix_delta(at, x, 1, gguf_op_silu);
}

tensor *gg_model_mix_delta_sigmoid(const struct gg_model_at *at, tensor *x)
{
    return mix_delta(at, x, 1, gguf_op_sigmoid);
}

/* ---- a gate for each element of a key ---- */

const uint16_t gg_mixer_kda_weights[] = { GG_NEED(KDA_Q),
                                          GG_NEED(KDA_K),
                                          GG_NEED(KDA_V),
                                          GG_NEED(KDA_CONV_Q),
                                          GG_NEED(KDA_CONV_K),
                                          GG_NEED(KDA_CONV_V),
                                          GG_NEED(KDA_BETA),
                                          GG_NEED(KDA_DT_B),
                                          GG_NEED(KDA_NORM),
                                          GG_NEED(KDA_OUT),
                                          0 };

void gg_model_size_states_kda(const struct gguf_model *m,
                              const struct gg_model_layer *l,
                              struct gg_model_state_sizes *n)
{
    const struct gg_hparams *hp = &m->hp;
    const int64_t d = hp->kda_head, heads = l->n_head;
    *n = (struct gg_model_state_sizes){ .conv = { 3 * d * heads,
                                                  (int64_t)hp->ssm_conv - 1 },
                                        .scan = { d, d, heads } };
}

/* Heads of queries, keys or values (i = 0, 1, 2) after a convolution of their
 * own, and SiLU. */
static tensor *convolve_heads(const struct gg_model_at *at, tensor *x, int i)
{
    static const enum gg_weight of[] = { GG_W_KDA_Q, GG_W_KDA_K, GG_W_KDA_V };
    static const enum gg_weight conv[] = { GG_W_KDA_CONV_Q, GG_W_KDA_CONV_K,
                                           GG_W_KDA_CONV_V };
    struct gguf_ctx *c = at->c;
    const int64_t d = at->m->hp.kda_head, n = d * at->layer->n_head;
    tensor *all = gg_model_view_states(at, at->p->states.conv[at->il], 3);
    tensor *before =
        all ? gguf_op_view_3d(c, all, n, all->ne[1], all->ne[2], all->nb[1],
                              all->nb[2], (uint64_t)(i * n * all->nb[0]))
            : NULL;
    x = gg_model_view_real_tokens(at, gg_model_linear(at, of[i], x), 0, n);
    x = gguf_op_silu(c, gg_model_apply_conv(at, conv[i], x, before));
    return gg_model_view_real_heads(at, x, 0, d, at->layer->n_head);
}

/* Projection of real tokens by one matrix, or by the low-rank pair a and b if
 * the layer has b: [d * heads, ..]. */
static tensor *project_real(const struct gg_model_at *at, enum gg_weight full,
                            enum gg_weight a, enum gg_weight b, tensor *x)
{
    const int64_t n = (int64_t)at->m->hp.kda_head * at->layer->n_head;
    x = gg_weight_at(at, b) ? gg_model_linear(at, b, gg_model_linear(at, a, x))
                            : gg_model_linear(at, full, x);
    return gg_model_view_real_tokens(at, x, 0, n);
}

/* Logarithm of the gates, [d, heads, ..], from their projection u [d * heads,
 * ..] and the number a of each head: a softplus(u), or in (bound, 0) if the
 * file has a bound:
 *
 *     bound * sigmoid(sign * a * u)
 *
 * sign makes a positive: -1 if files have a < 0. */
static tensor *decay_log(const struct gg_model_at *at, tensor *u, float sign)
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    const struct gg_model_pass *p = at->p;
    const int64_t heads = at->layer->n_head;
    tensor *flat = gg_weight_at(at, GG_W_KDA_A_FLAT);
    tensor *a = flat ? gguf_op_reshape_2d(c, flat, 1, heads)
                     : gg_weight_at(at, GG_W_KDA_A);
    u = gguf_op_add(c, u, gg_weight_at(at, GG_W_KDA_DT_B));
    u = gguf_op_reshape_4d(c, u, hp->kda_head, heads, p->n_real, p->n_seq);
    if (!hp->has[GG_HP_kda_bound])
        return gguf_op_mul(c, gguf_op_softplus(c, u), a);
    u = gg_model_apply_scale(at, gguf_op_mul(c, u, a), sign);
    return gguf_op_scale(c, gguf_op_sigmoid(c, u), hp->kda_bound);
}

static tensor *mix_kda(const struct gg_model_at *at, tensor *x, float sign)
{
    struct gguf_ctx *c = at->c;
    const int64_t heads = at->layer->n_head;
    const enum gg_weight full =
        gg_weight_at(at, GG_W_KDA_G_BARE) ? GG_W_KDA_G_BARE : GG_W_KDA_G;
    tensor *u = project_real(at, GG_W_KDA_F, GG_W_KDA_F_A, GG_W_KDA_F_B, x);
    tensor *beta = gg_model_view_real_tokens(
        at, gg_model_linear(at, GG_W_KDA_BETA, x), 0, heads);
    const struct rule r = {
        .q = convolve_heads(at, x, 0),
        .k = convolve_heads(at, x, 1),
        .v = convolve_heads(at, x, 2),
        .g = decay_log(at, u, sign),
        .beta = head_numbers(at, gguf_op_sigmoid(c, beta), heads),
    };
    tensor *gate = gguf_op_sigmoid(
        c, project_real(at, full, GG_W_KDA_G_A, GG_W_KDA_G_B, x));
    return gate_heads(at, GG_W_KDA_NORM, apply_rule(at, &r), gate);
}

tensor *gg_model_mix_kda(const struct gg_model_at *at, tensor *x)
{
    return mix_kda(at, x, -1);
}

tensor *gg_model_mix_kda_positive(const struct gg_model_at *at, tensor *x)
{
    return mix_kda(at, x, 1);
}
