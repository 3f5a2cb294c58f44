/* SPDX-License-Identifier: MIT */
/* moe.c - mixtures of experts: a router chooses some matrices for each token
 */
#include "config.h"
#include "model/build_int.h"

#include "base/compiler.h"

#include <math.h>

typedef struct gguf_tensor tensor;

/* Experts that the tokens chose. */
struct choice {
    tensor *ids;    /* i32 [n_used, N] */
    tensor *weight; /* [1, n_used, N] */
    tensor *likely; /* [1, n_expert, N]: of all */
};

/* The least divisor of weights, instead of a smaller sum: the smallest normal
 * number of half precision, as if weights were computed in it. */
#define LEAST_SUM 6.103515625e-5f

/* How likely each expert is, [n_expert, N]. */
static tensor *gate_probabilities(const struct gg_model_at *at,
                                  unsigned gating, tensor *logits)
{
    switch (gating) {
    case GG_EXPERT_SIGMOID: return gguf_op_sigmoid(at->c, logits);
    case GG_EXPERT_SQRT_SOFTPLUS:
        return gguf_op_sqrt(at->c, gguf_op_softplus(at->c, logits));
    case GG_EXPERT_SOFTMAX_OF_CHOSEN:
    case GG_EXPERT_SIGMOID_ON_INPUT: return logits;
    default: return gguf_op_soft_max(at->c, logits, NULL, 1, 0);
    }
}

/* Set scores [n_expert, N] to minus infinity in all but the best groups of
 * experts. The score of a group is the sum of its two best (DeepSeek-AI,
 * DeepSeek-V3, arXiv 2412.19437, and its code). DeepSeek-V2 took only the best
 * one, but files do not tell the two apart, and llama.cpp takes two for both.
 */
static tensor *in_groups(const struct gg_model_at *at, tensor *score)
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    const int64_t n = hp->n_group, used = hp->n_group_used;
    if (!score || n <= 1 || used >= n)
        return score;
    const int64_t per = hp->n_expert / n, n_tok = score->ne[1];
    const int64_t two = per > 1 ? 2 : 1;
    tensor *all = gguf_op_reshape_3d(c, score, per, n, n_tok);
    tensor *best =
        gguf_op_get_rows(c, gguf_op_reshape_4d(c, all, 1, per, n, n_tok),
                         gguf_op_top_k(c, all, two)); /* [1, two, n, N] */
    best = gguf_op_sum_rows(c, gguf_op_reshape_3d(c, best, two, n, n_tok));
    tensor *groups =
        gguf_op_top_k(c, gguf_op_reshape_2d(c, best, n, n_tok), used);
    tensor *none = gguf_op_clamp(c, all, -INFINITY, -INFINITY);
    all = gguf_op_set_rows(c, none, gguf_op_get_rows(c, all, groups), groups);
    return gguf_op_reshape_2d(c, all, hp->n_expert, n_tok);
}

static bool norms_weights(const struct gg_model_at *at)
{
    const uint8_t norm = at->arch->moe.norm;
    return norm == GG_MUST || (norm == GG_MAY && at->m->hp.expert_norm);
}

/* Input of the router, from x, the input of the experts. */
static tensor *router_input(const struct gg_model_at *at, tensor *x)
{
    return at->arch->moe.router_input.fn ? at->arch->moe.router_input.fn(at, x)
                                         : x;
}

/* Weights w [n, N] that add to 1. */
static tensor *norm_weights(const struct gg_model_at *at, tensor *w)
{
    tensor *sum = gguf_op_sum_rows(at->c, w);
    return gguf_op_div(at->c, w,
                       gguf_op_clamp(at->c, sum, LEAST_SUM, INFINITY));
}

/* Experts of each token id by a table, i32 [n_used, N]. */
static tensor *hash_experts(const struct gg_model_at *at)
{
    struct gguf_ctx *c = at->c;
    tensor *tokens = at->p->tokens;
    if (at->p->out_rows && gg_model_is_last_layer(at)) {
        tokens = gguf_op_reshape_2d(c, tokens, 1, tokens->ne[0]);
        tokens = gguf_op_get_rows(c, tokens, at->p->out_rows);
        tokens = gguf_op_reshape_1d(c, tokens, at->p->n_out);
    }
    return gguf_op_get_rows(c, gg_weight_at(at, GG_W_ROUTER_HASH), tokens);
}

/* Choice of experts ids [n_used, N], with scores p [n, N] of all. */
static struct choice weigh_chosen(const struct gg_model_at *at, tensor *p,
                                  tensor *ids)
{
    struct gguf_ctx *c = at->c;
    const unsigned gating = at->m->hp.expert_gating;
    struct choice y = { .ids = ids };
    if (!p || !ids)
        return y;
    const int64_t used = ids->ne[0], n_tok = p->ne[1];
    p = gguf_op_reshape_3d(c, p, 1, p->ne[0], n_tok);
    tensor *w = gguf_op_get_rows(c, p, ids); /* the expert bias is left out */
    w = gguf_op_reshape_2d(c, w, used, n_tok);
    if (gating == GG_EXPERT_SOFTMAX_OF_CHOSEN)
        w = gguf_op_soft_max(c, w, NULL, 1, 0);
    if (gating == GG_EXPERT_SIGMOID_ON_INPUT)
        w = gguf_op_sigmoid(c, w);
    if (norms_weights(at))
        w = norm_weights(at, w);
    w = gg_model_apply_scale(at, w,
                             at->arch->moe.scale ? at->m->hp.expert_scale : 1);
    y.weight = gguf_op_reshape_3d(c, w, 1, used, n_tok);
    y.likely = p;
    return y;
}

static struct choice choose_experts(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    tensor *p = gate_probabilities(at, at->m->hp.expert_gating,
                                   gg_model_linear(at, GG_W_ROUTER, x));
    tensor *b = gg_weight_at(at, GG_W_ROUTER_SELECT_B);
    if (!b)
        b = gg_weight_at(at, GG_W_ROUTER_SELECT_BARE);
    tensor *ids =
        at->layer->hash_routing
            ? hash_experts(at)
            : gguf_op_top_k(c, in_groups(at, b ? gguf_op_add(c, p, b) : p),
                            at->layer->n_expert_used);
    return weigh_chosen(at, p, ids);
}

/* Results of the chosen experts for x [n_embd, 1 or n_used, N]: [n_embd,
 * n_used, N]. */
static tensor *apply_experts(const struct gg_model_at *at,
                             const struct choice *y, tensor *x)
{
    tensor *gate, *up;
    const bool gated = gg_weight_at(at, GG_W_GATE_EXPS) ||
                       gg_weight_at(at, GG_W_GATE_UP_EXPS);
    if (at->arch->moe.plain || !gated) {
        up = gg_model_linear_id(at, GG_W_UP_EXPS, x, y->ids);
        return gg_model_linear_id(at, GG_W_DOWN_EXPS,
                                  gg_model_apply_act(at, up), y->ids);
    }
    if (gg_weight_at(at, GG_W_GATE_UP_EXPS)) {
        tensor *both = gg_model_linear_id(at, GG_W_GATE_UP_EXPS, x, y->ids);
        gate = gg_model_take_row_half(at, both, 0);
        up = gg_model_take_row_half(at, both, 1);
    } else {
        gate = gg_model_linear_id(at, GG_W_GATE_EXPS, x, y->ids);
        up = gg_model_linear_id(at, GG_W_UP_EXPS, x, y->ids);
    }
    up = gg_model_apply_gated_act(at, gate, up, at->layer->clamp_exp);
    return gg_model_linear_id(at, GG_W_DOWN_EXPS, up, y->ids);
}

/* Input of the shared experts' down projection, for x [n_embd, N]. */
static tensor *shared_hidden(const struct gg_model_at *at, tensor *x)
{
    tensor *gate, *up;
    if (at->arch->moe.plain)
        return gg_model_apply_act(at, gg_model_linear(at, GG_W_UP_SHARED, x));
    if (gg_weight_at(at, GG_W_GATE_UP_SHARED)) {
        tensor *both = gg_model_linear(at, GG_W_GATE_UP_SHARED, x);
        gate = gg_model_take_row_half(at, both, 0);
        up = gg_model_take_row_half(at, both, 1);
    } else {
        up = gg_model_linear(at, GG_W_UP_SHARED, x);
        gate = gg_model_linear(at, GG_W_GATE_SHARED, x);
    }
    return gg_model_apply_gated_act(at, gate, up, at->layer->clamp_shexp);
}

/* Result of the shared experts for x [n_embd, N]; NULL: not in this layer. */
static tensor *apply_shared(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    if (!gg_weight_at(at, GG_W_DOWN_SHARED))
        return NULL;
    tensor *y = shared_hidden(at, x);
    y = gg_model_linear(at, GG_W_DOWN_SHARED, y);
    if (!gg_weight_at(at, GG_W_ROUTER_SHARED))
        return y;
    tensor *much = gg_model_linear(at, GG_W_ROUTER_SHARED, x);
    return gguf_op_mul(c, y, gguf_op_sigmoid(c, much));
}

/* Multiply the results of experts, [n_embd, n_used, N], or their inputs, by the
 * experts' weights. */
static tensor *weight_experts(const struct gg_model_at *at,
                              const struct choice *y, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const int64_t used = at->layer->n_expert_used;
    if (!x)
        return NULL;
    const int64_t n = x->ne[0], n_tok = x->ne[1];
    x = gguf_op_reshape_3d(c, x, n, 1, n_tok);
    if (at->m->hp.expert_gating != GG_EXPERT_SIGMOID_ON_INPUT)
        return gguf_op_mul(c, apply_experts(at, y, x), y->weight);
    x = gguf_op_repeat(c, x, n, used, n_tok, 1);
    return apply_experts(at, y, gguf_op_mul(c, x, y->weight));
}

/* Sum the experts' results y [d, n_used, N]: [d, N]. */
static tensor *sum_experts(const struct gg_model_at *at, tensor *y)
{
    struct gguf_ctx *c = at->c;
    tensor *sum = NULL;
    for (int64_t i = 0; y && i < y->ne[1]; i++) {
        tensor *one = gguf_op_view_2d(c, y, y->ne[0], y->ne[2], y->nb[2],
                                      (uint64_t)(i * y->nb[1]));
        sum = sum ? gguf_op_add(c, sum, one) : one;
    }
    return y && y->ne[1] == 1 ? gguf_op_cont(c, sum) : sum;
}

/* Add chunk experts, computed from the result x [n_embd, N] of the experts.
 * Each group of experts has one. It is used as often as experts of its group
 * were chosen, with the weight of the expert that has its number (GroveMoE's
 * "adjugate experts", weighted as in llama.cpp). */
static tensor *apply_chunks(const struct gg_model_at *at,
                            const struct choice *all, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    if (!x || !gg_weight_at(at, GG_W_UP_CHUNKS))
        return x;
    const int64_t most = hp->n_expert / hp->n_per_group, n_tok = x->ne[1];
    const int64_t n = GG_MIN((int64_t)at->layer->n_expert_used, most);
    tensor *ids = gguf_op_view_2d(c, all->ids, n, n_tok, all->ids->nb[1], 0);
    ids = gguf_op_reshape_1d(c, gguf_op_cont(c, ids), n * n_tok);
    ids = gguf_op_get_rows(c, at->p->chunk, ids);
    ids = gguf_op_reshape_2d(c, ids, n, n_tok);
    tensor *w = gguf_op_get_rows(c, all->likely, ids);
    w = norm_weights(at, gguf_op_reshape_2d(c, w, n, n_tok));
    tensor *in = gguf_op_reshape_3d(c, x, x->ne[0], 1, n_tok);
    tensor *gate = gg_model_linear_id(at, GG_W_GATE_CHUNKS, in, ids);
    tensor *up = gg_model_linear_id(at, GG_W_UP_CHUNKS, in, ids);
    up = gg_model_apply_gated_act(at, gate, up, 0);
    up = gg_model_linear_id(at, GG_W_DOWN_CHUNKS, up, ids);
    up = sum_experts(
        at, gguf_op_mul(c, up, gguf_op_reshape_3d(c, w, 1, n, n_tok)));
    return gguf_op_add(c, x, gguf_op_scale(c, up, hp->group_scale));
}

tensor *gg_model_build_moe(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct choice chosen = choose_experts(at, router_input(at, x));
    /* experts may have another width; two matrices project to it and back */
    const bool routed = gg_weight_at(at, GG_W_ROUTED_DOWN) != NULL;
    const enum gg_weight down = routed ? GG_W_ROUTED_DOWN : GG_W_LATENT_DOWN;
    const enum gg_weight up = routed ? GG_W_ROUTED_UP : GG_W_LATENT_UP;
    const bool latent = gg_weight_at(at, down) != NULL;
    tensor *in = latent ? gg_model_linear(at, down, x) : x;
    tensor *sum = sum_experts(at, weight_experts(at, &chosen, in));
    if (gg_weight_at(at, GG_W_ROUTED_NORM))
        sum = gg_model_apply_norm_if(at, GG_W_ROUTED_NORM, sum);
    if (latent)
        sum = gg_model_linear(at, up, sum);
    sum = apply_chunks(at, &chosen, sum);
    tensor *shared = apply_shared(at, x);
    if (!shared)
        return sum;
    return at->arch->moe.add_shared.fn
               ? at->arch->moe.add_shared.fn(at, sum, shared)
               : gguf_op_add(c, sum, shared);
}

tensor *gg_model_build_value_experts(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    tensor *p = gate_probabilities(at, at->m->hp.expert_gating,
                                   gg_model_linear(at, GG_W_ATTN_V_ROUTER, x));
    tensor *b = gg_weight_at(at, GG_W_ATTN_V_SELECT_B);
    tensor *ids =
        gguf_op_top_k(c, b ? gguf_op_add(c, p, b) : p, at->m->hp.n_value_used);
    const struct choice chosen = weigh_chosen(at, p, ids);
    if (!chosen.weight)
        return NULL;
    x = gguf_op_reshape_3d(c, x, x->ne[0], 1, x->ne[1]);
    x = gguf_op_silu(c, gg_model_linear_id(at, GG_W_ATTN_V_EXPS, x, ids));
    return sum_experts(at, gguf_op_mul(c, x, chosen.weight));
}

tensor *gg_model_build_ffn(const struct gg_model_at *at, tensor *x)
{
    const struct gg_arch_dense_branch *beside = at->arch->moe.dense_branch;
    if (!at->layer->moe)
        return at->layer->ffn->build(at, x);
    return beside ? beside->build(at, x) : gg_model_build_moe(at, x);
}
