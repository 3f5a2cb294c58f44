/* SPDX-License-Identifier: MIT */
/* horizon.c - K2 Horizon
 *
 * Written after llama.cpp's description of October 2026. No other program's
 * outputs were at hand: a calculation in double precision, written from that
 * description, confirms the outputs (tests/family/horizon/k2-horizon.txt). */
#include "config.h"
#include "model/family/arch_row.h"

#include <inttypes.h>
#include <math.h>

typedef struct gguf_tensor tensor;

/* Experts compute the values of layers that have experts (mixture of value
 * attention). */
static void choose_values(struct gg_needs *n, const struct gg_hparams *hp,
                          const struct gg_model_layer *l)
{
    static const uint16_t experts[] = { N(ATTN_V_ROUTER), M(ATTN_V_SELECT_B),
                                        N(ATTN_V_EXPS), 0 };
    if (!l || !l->moe || !hp->n_value_expert)
        return;
    gg_needs_set_weight(n, GG_W_ATTN_V, GG_NO);
    gg_needs_add_list(n, experts);
}

/* Softmax and sigmoid are the gatings of values. */
static enum gguf_status check_values(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const uint32_t n = hp->n_value_expert, used = hp->n_value_used,
                   gating = hp->expert_gating;
    if (used < (n > 0) || used > n)
        return gg_hparams_fail_range(r, GG_HP_n_value_used, used, n > 0, n);
    if (!n || gating <= GG_EXPERT_SIGMOID || !gg_finding_is_fatal(r->report))
        return GGUF_OK;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_expert_gating);
    return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_UNSUPPORTED,
                           "%s is %" PRIu32
                           ", must be 1 or 2 for experts that compute values",
                           r->key, gating);
}

/* Norms have equal groups, and layers with experts have their width. */
static enum gguf_status check_horizon(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const uint32_t groups = hp->n_norm_groups;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_n_norm_groups);
    if (groups && hp->n_embd % groups)
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s is %" PRIu32
                               ", must divide embedding_length %" PRIu32,
                               r->key, groups, hp->n_embd);
    if (hp->n_expert && !gg_hparams_find(r, GG_HP_n_ff_expert))
        return gg_hparams_fail_missing(r, GG_HP_n_ff_expert);
    for (uint32_t il = hp->n_dense; hp->n_expert && il < hp->n_layer; il++)
        if (!hp->layer[il].n_ff_expert)
            return gg_hparams_fail_range(r, GG_HP_n_ff_expert, 0, 1,
                                         GG_WIDTH_MAX);
    return check_values(r);
}

static const struct gg_mixer value_experts = {
    .text = "attention whose values experts may compute",
    .heads = true,
    .check_hparams = check_horizon,
    .mix = gg_model_mix_attention,
    .out = GG_W_ATTN_OUT,
    .memory = GG_MODEL_MEMORY_KV,
    .keys = gg_model_size_keys_heads
};

/* Norms with a weight for each head, which files have as one vector or as a row
 * for each head. */
static tensor *norm_each_head(const struct gg_model_at *at, enum gg_weight id,
                              tensor *x)
{
    tensor *w = gg_weight_at(at, id);
    if (!w || !x)
        return x;
    x = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_NONE, x);
    w = gguf_op_reshape_2d(at->c, w, x->ne[0], x->ne[1]);
    return gguf_op_mul(at->c, x, w);
}

static void size_either(const struct gg_hparams *hp,
                        const struct gg_model_layer *l,
                        struct gg_model_sizes *z)
{
    (void)hp;
    (void)l;
    z->qk_0 = z->qk_q1 = z->qk_k1 = z->any;
}

static enum gguf_status check_head_norm(const struct gguf_model *m,
                                        enum gg_weight id, uint32_t il,
                                        int64_t n, struct gguf_error *err)
{
    char name[GG_WEIGHT_NAME];
    const int64_t d = m->hp.layer[il].dim_k;
    size_t i;
    if (!gg_source_find(&m->src, gg_weight_name(id, il, name), &i))
        return GGUF_OK;
    const struct gguf_tensor_info *t = gg_source_tensor(&m->src, i).info;
    if ((t->ne[0] == d && t->ne[1] == n) ||
        (t->ne[0] == d * n && t->ne[1] == 1))
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_TENSOR, t->info_off,
                        "tensor '%s' has shape [%" PRId64 ", %" PRId64
                        "], must be [%" PRId64 ", %" PRId64 "] or [%" PRId64
                        "]",
                        name, t->ne[0], t->ne[1], d, n, d * n);
}

static enum gguf_status check_head_norms(const struct gguf_model *m,
                                         uint32_t il, struct gguf_error *err)
{
    const struct gg_model_layer *l = &m->hp.layer[il];
    GG_TRY(check_head_norm(m, GG_W_ATTN_Q_NORM, il, l->n_head, err));
    return check_head_norm(m, GG_W_ATTN_K_NORM, il, l->n_head_kv, err);
}

/* log2(1 + 2^x), an element for each element of the result. */
static tensor *gate_by_softplus_2(const struct gg_model_at *at, tensor *x,
                                  tensor *taken)
{
    struct gguf_ctx *c = at->c;
    if (!gg_weight_at(at, GG_W_ATTN_GATE))
        return taken;
    x = gguf_op_scale(c, gg_model_linear(at, GG_W_ATTN_GATE, x),
                      0.69314718055994531f);
    x = gguf_op_scale(c, gguf_op_softplus(c, x), 1.4426950408889634f);
    return gguf_op_mul(c, taken, x);
}

static double width_of_expert(const struct gg_model_layer *l, double ff)
{
    (void)ff;
    return l->n_ff_expert ? l->n_ff_expert : NAN;
}

static const struct gg_arch_expert_width own_width = { .text = "own width",
                                                       .width =
                                                           width_of_expert };

static double width_if_counted(const struct gg_hparams *hp, double own,
                               double ff)
{
    (void)ff;
    return !hp->n_shared     ? 0
           : hp->n_ff_shared ? hp->n_ff_shared
                             : own * hp->n_shared;
}

static const struct gg_arch_shared if_counted = {
    .text = "shared: own width or expert_shared_count, if that is above 0",
    .width = width_if_counted
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "k2-horizon", .runs = true, LLAMA, NEOX,
      .mixer = &value_experts, .qkv = &gg_arch_qkv_separate,
      .qk_norm = { .form = GG_QK_EACH_HEAD, .optional = true,
                   .norm_heads = { norm_each_head, "" } },
      .gate_attention = { gate_by_softplus_2, "softplus gate of base 2" },
      .check_layer = check_head_norms,
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_SIGMOID,
               .gating_key = GG_MAY, .expert_bias = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = &own_width, .shared = &if_counted },
      .choose_weights = { choose_values,
                          "values of layers with experts by experts, if "
                          "attention.value_expert_count is above 0" },
      .layer_sizes = { size_either, "" },
      MORE(M(ATTN_GATE), KM(n_norm_groups), KM(n_value_expert),
           KM(n_value_used), KM(moe_every)),
      .remark = "norms of attention.group_norm_groups equal parts" },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_horizon = { rows, GG_LEN(rows) };
