/* SPDX-License-Identifier: MIT */
/* minimax.c - MiniMax */
#include "config.h"
#include "model/family/arch_row.h"

#include <inttypes.h>
#include <math.h>

typedef struct gguf_tensor tensor;

/* ---- MiniMax-01, MiniMax-M1 ---- */

/* Lightning attention (MiniMax-01, arXiv 2501.08313): linear attention with a
 * constant decay. For each head S = exp(-s) S + k v^T and y = S^T q, where S
 * includes the token's own key and value. Queries, keys and values pass a SiLU
 * first.
 *
 * In layer l of n, head h (from 0) has the slope s = 2^(-8 (h + 1) / n_head)
 * (1 - l / (n - 1) + 1e-5). */

static const uint16_t w_lightning[] = { N(LINEAR_QKV), N(LINEAR_NORM),
                                        N(ATTN_GATE), N(ATTN_OUT), 0 };

static void size_states(const struct gguf_model *m,
                        const struct gg_model_layer *l,
                        struct gg_model_state_sizes *n)
{
    (void)m;
    *n = (struct gg_model_state_sizes){ .scan = { l->dim_k, l->dim_k,
                                                  l->n_head } };
}

/* States are square, and slopes need a last layer that is not the first. */
static enum gguf_status check_lightning(const struct gguf_model *m,
                                        uint32_t il, struct gguf_error *err)
{
    const struct gg_model_layer *l = &m->hp.layer[il];
    if (l->dim_k != l->dim_v)
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "minimax-01.attention.value_length is %" PRIu32
                            ", expected the key_length %" PRIu32,
                            l->dim_v, l->dim_k);
    return m->hp.n_layer > 1
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                              "minimax-01.block_count is 1: the decay of "
                              "lightning attention is not defined");
}

/* exp(-s) of each head, the same for all tokens: [d, n_head, n_real, n_seq]. */
static tensor *build_decay(const struct gg_model_at *at)
{
    struct gguf_ctx *c = at->c;
    const int64_t d = at->layer->dim_k, h = at->layer->n_head;
    const double rate = 1 - (double)at->il / (at->m->hp.n_layer - 1) + 1e-5;
    tensor *x = gguf_op_view_1d(c, gg_weight_at(at, GG_W_LINEAR_NORM), h, 0);
    x = gguf_op_cumsum(c, gguf_op_exp(c, gguf_op_scale(c, x, 0))); /* 1 to h */
    x = gguf_op_exp(c, gguf_op_scale(c, x, (float)(-8 * log(2) / (double)h)));
    x = gguf_op_exp(c, gguf_op_scale(c, x, (float)-rate));
    x = gguf_op_repeat(c, gguf_op_reshape_2d(c, x, 1, h), d, h, 1, 1);
    return x ? gguf_op_view_4d(c, x, d, h, at->p->n_real, at->p->n_seq,
                               x->nb[1], 0, 0, 0)
             : NULL;
}

/* Queries, keys or values (i = 0, 1, 2) of real tokens: [d, n_head, n_real,
 * n_seq]. In x the three follow each other within each head. */
static tensor *view_part(const struct gg_model_at *at, tensor *x, int64_t i)
{
    const int64_t d = at->layer->dim_k;
    return x ? gguf_op_view_4d(at->c, x, d, at->layer->n_head, x->ne[1],
                               x->ne[2], 3 * d * x->nb[0], x->nb[1], x->nb[2],
                               (uint64_t)(i * d * x->nb[0]))
             : NULL;
}

static tensor *mix_lightning(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const int64_t n = (int64_t)at->layer->dim_k * at->layer->n_head;
    tensor *memory = gg_model_view_states(at, at->p->states.scan[at->il], 4);
    tensor *qkv = gguf_op_silu(c, gg_model_linear(at, GG_W_LINEAR_QKV, x));
    tensor *gate = gguf_op_sigmoid(c, gg_model_linear(at, GG_W_ATTN_GATE, x));
    tensor *state;
    qkv = gg_model_view_real_tokens(at, qkv, 0, 3 * n);
    tensor *y = gguf_op_gated_linear_attn(
        c, view_part(at, qkv, 0), view_part(at, qkv, 1), view_part(at, qkv, 2),
        build_decay(at), memory, 1, &state);
    gg_model_store_state(at, state, memory);
    y = gguf_op_reshape_3d(c, y, n, at->p->n_real, at->p->n_seq);
    y = gg_model_repeat_last_token(at, y);
    y = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_LINEAR_NORM, y);
    return gguf_op_mul(c, y, gate);
}

static const struct gg_mixer lightning = { .text = "lightning attention",
                                           .weights = w_lightning,
                                           .mix = mix_lightning,
                                           .out = GG_W_ATTN_OUT,
                                           .memory = GG_MODEL_MEMORY_STATES,
                                           .states = size_states,
                                           .check = check_lightning };

static const struct gg_mixer *mixer_by_eights(const struct gg_arch *a,
                                              const struct gg_hparams *hp,
                                              uint32_t il)
{
    const uint32_t step = hp->has[GG_HP_attn_interval] ? hp->attn_interval : 8;
    const bool attends = hp->has[GG_HP_recurrent] ? !hp->layer[il].recurrent
                                                  : (il + 1) % step == 0;
    return attends ? gg_arch_mixer(a) : a->other;
}

static const struct gg_arch_mix_rule by_eights = {
    .text = "all but every full_attention_interval-th layer (8), or "
            "attention.recurrent_layers",
    .of_layer = mixer_by_eights
};

/* The norm's output is the residual, not its input. */
static tensor *join_normed(const struct gg_model_at *at, tensor *normed,
                           tensor *y)
{
    return gguf_op_add(at->c, y,
                       gguf_op_scale(at->c, normed, at->m->hp.residual_scale));
}

static void choose_gate(struct gg_needs *n, const struct gg_hparams *hp,
                        const struct gg_model_layer *l)
{
    (void)hp;
    if (l)
        gg_needs_set_weight(n, GG_W_GATE_EXPS, GG_MAY);
}

/* ---- MiniMax-M3 ---- */

static const uint16_t w_blocks[] = { N(IDX_Q_PROJ), N(IDX_K_PROJ),
                                     N(IDX_Q_NORM), N(IDX_K_NORM), 0 };

/* A head of the indexer for each of keys. */
static enum gguf_status check_index_heads(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    for (uint32_t il = hp->n_dense; il < hp->n_layer && hp->n_idx; il++) {
        const uint32_t n = hp->layer[il].n_head_kv;
        if (hp->n_idx != n)
            return gg_hparams_fail_range(r, GG_HP_n_idx, hp->n_idx, n, n);
    }
    return GGUF_OK;
}

static const struct gg_mixer blocks = { .text = "attention to chosen blocks",
                                        .weights = w_blocks,
                                        .heads = true,
                                        .positions = true,
                                        .check_hparams = check_index_heads,
                                        .mix = gg_model_mix_blocks,
                                        .out = GG_W_ATTN_OUT,
                                        .memory = GG_MODEL_MEMORY_KV,
                                        .keys = gg_model_size_keys_blocks };

static const struct gg_mixer *mixer_of_layer(const struct gg_arch *a,
                                             const struct gg_hparams *hp,
                                             uint32_t il)
{
    return il < hp->n_dense ? a->other : gg_arch_mixer(a);
}

static const struct gg_arch_mix_rule leading = {
    .text = "layers before leading_dense_block_count",
    .of_layer = mixer_of_layer
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "minimax-01", .runs = true, LLAMA, NEOX,
      .other = &lightning, .mix_rule = &by_eights,
      .join_part = { join_normed,
                     "a part's normed input, times residual_scale, is added "
                     "to its result" },
      .moe = MOE_ALL(MUST, NULL),
      .choose_weights = { choose_gate, "experts may have no gate" },
      MORE(K(residual_scale), KM(attn_interval), KM(recurrent)) },
    { .name = "minimax-m2", .runs = true, LLAMA, NEOX, OWN,
      .qkv = &gg_arch_qkv_separate, .qk_norm = { .form = GG_QK_ALL_HEADS },
      .moe = { .where = &gg_arch_experts_all, .gating = GG_GATING_KEY,
               .gating_key = GG_MAY, .expert_bias = GG_MUST, .norm = GG_MUST },
      MORE(K(n_ff_expert)) },
    { .name = "minimax-m3", .runs = true, LLAMA, NEOX, OWN, HEAD_NORM,
      .mixer = &blocks, .other = &gg_mixer_attention, .mix_rule = &leading,
      .act = &gg_ffn_act_oai,
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .expert_bias = GG_MUST, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted },
      MORE(INDEXER, K(idx_block), K(idx_local)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_minimax = { rows, GG_LEN(rows) };
