/* SPDX-License-Identifier: MIT */
/* bert.c - BERT: encoders, texts into states or vectors */
#include "config.h"
#include "model/family/arch_row.h"

/* The activation that ModernBERT's hidden_activation names; GELU without the
 * key and for unknown names. */
static const struct gg_ffn_act *find_activation(const struct gg_hparams *hp)
{
    static const struct {
        const char *name;
        const struct gg_ffn_act *act;
    } names[] = { { "silu", &gg_ffn_act_silu },
                  { "swish", &gg_ffn_act_silu },
                  { "swiglu", &gg_ffn_act_silu },
                  { "relu", &gg_ffn_act_relu },
                  { "reglu", &gg_ffn_act_relu } };
    for (size_t i = 0; i < GG_LEN(names); i++)
        if (gg_str_eqz(hp->activation, names[i].name))
            return names[i].act;
    return &gg_ffn_act_gelu;
}

static const struct gg_ffn_act gelu_or_by_key = {
    .text = "GELU, or by hidden_activation", .of_model = find_activation
};

/* Find the form of the feed-forward part by tensors: with a gate, with the gate
 * in ffn_up, which then has twice the rows, or without one. */
static const struct gg_ffn *find_gate(const struct gg_hparams_reader *r,
                                      uint32_t il)
{
    char name[GG_WEIGHT_NAME];
    size_t i;
    if (gg_source_find(r->src, gg_weight_name(GG_W_FFN_GATE, il, name), NULL))
        return &gg_ffn_gated;
    if (!gg_source_find(r->src, gg_weight_name(GG_W_FFN_UP, il, name), &i))
        return &gg_ffn_plain;
    return gg_source_tensor(r->src, i).info->ne[1] ==
                   2 * (int64_t)r->hp->layer[il].n_ff
               ? &gg_ffn_fused
               : &gg_ffn_plain;
}

static const struct gg_ffn gated_or_not = { .text =
                                                "up and down, gated or not",
                                            .of_layer = find_gate };

static const uint16_t w_square[] = { N(ATTN_QKV_SQUARE), 0 };
static const struct gg_arch_qkv square = { .text = "fused, as many keys as "
                                                   "queries",
                                           .weights = w_square };

typedef struct gguf_tensor tensor;

static bool is_second_of_each(const struct gg_hparams_reader *r, uint32_t il)
{
    return r->hp->moe_every && il % r->hp->moe_every == 1;
}

static const struct gg_arch_experts second_of_each = {
    .text = "the second of each moe_every_n_layers",
    .of_layer = is_second_of_each
};

/* Jina's second norm: of the sum with the layer's input. */
static tensor *norm_residual_sum(const struct gg_model_at *at, tensor *x,
                                 tensor *y)
{
    return gg_weight_at(at, GG_W_ATTN_NORM_2)
               ? gg_model_apply_norm_if(at, GG_W_ATTN_NORM_2,
                                        gguf_op_add(at->c, y, x))
               : y;
}

/* ModernBERT skips a norm whose weight is missing. */
static struct gg_model_norms norms_if_there(const struct gg_model_at *at,
                                            const struct gg_model_norms *n)
{
    struct gg_model_norms y = *n;
    if (!gg_weight_at(at, (enum gg_weight)n->pre))
        y.pre = GG_W_NONE;
    return y;
}

static void choose_weights(struct gg_needs *n, const struct gg_hparams *hp,
                           const struct gg_model_layer *l)
{
    if (!l)
        gg_needs_set_weight(n, GG_W_EMBD_NORM, GG_MAY);
    else if (l == hp->layer)
        gg_needs_set_weight(n, GG_W_ATTN_NORM, GG_MAY);
}

static const struct gg_arch_rank by_mean = {
    .text = "ranks by the mean, GELU and a norm",
    .pools = GGUF_POOLING_MEAN,
    .act = gguf_op_gelu
};

/* clang-format off */
#define BERT                                                                  \
    .norm = GG_NORM_LAYER, .norm_b = GG_MUST,                                 \
    .mix_norm = { .add = W(ATTN_OUT_NORM) },                                  \
    .ffn_norm = { .add = W(LAYER_OUT_NORM) }, .embd_norm = true,              \
    .output = GG_OUTPUT_NONE, .whole_sequence = true

static const struct gg_arch rows[] = {
    { .name = "bert", .runs = true, BERT, NO_ROPE, .out_b = GG_MAY,
      .ffn = &gg_ffn_plain, .act = &gg_ffn_act_gelu, .ffn_b = GG_MAY,
      .position = GG_MUST, .types = GG_MAY },
    { .name = "eurobert", .runs = true, LLAMA, NEOX, .output = GG_OUTPUT_NONE,
      .whole_sequence = true },
    { .name = "jina-bert-v2", .runs = true, LAYER, NO_ROPE,
      .mix_norm = { .add = W(ATTN_OUT_NORM) },
      .finish_mixer = norm_residual_sum,
      .ffn_norm = { .add = W(LAYER_OUT_NORM) }, .embd_norm = true,
      .output = GG_OUTPUT_NONE, .whole_sequence = true, .out_b = GG_MUST,
      .alibi = 8,
      .qk_norm = { .form = GG_QK_ALL_HEADS, .kind = GG_NORM_LAYER,
      .optional = true,
              .bias = GG_MAY },
      .ffn = &gated_or_not, .act = &gg_ffn_act_gelu, .types = GG_MUST,
      MORE(M(ATTN_NORM_2), M(ATTN_NORM_2_B), M(FFN_UP_B), N(FFN_DOWN_B)),
      .remark = "a norm of the sum with the layer's input if attn_norm_2 is "
                "there" },
    { .name = "jina-bert-v3", .runs = true, BERT, NEOX, .out_b = GG_MAY,
      .ffn = &gg_ffn_plain, .act = &gg_ffn_act_gelu, .ffn_b = GG_MAY,
      .types = GG_MAY },
    { .name = "modern-bert", .runs = true, LLAMA, NEOX, .norm = GG_NORM_LAYER,
      .place_norms = { norms_if_there, "" },
      .choose_weights = { choose_weights,
                          "the first layer's mixer may have no norm" },
      .embd_norm = true, .qkv = &square, .ffn = &gg_ffn_fused,
      .act = &gelu_or_by_key, .output = GG_OUTPUT_NONE, .whole_sequence = true,
      .rank = &by_mean,
      .window = { &gg_arch_window_first_full, GG_MAY, 3,
                  .rope = &gg_arch_window_rope_own },
      MORE(M(CLS_NORM), KM(activation)) },
    { .name = "neo-bert", .runs = true,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(FFN_NORM)), ENC_OUTPUT_NORM),
      .qkv = &gg_arch_qkv_fused, .ffn = &gg_ffn_fused,
      .output = GG_OUTPUT_NONE, .whole_sequence = true },
    { .name = "nomic-bert", .runs = true, BERT, NEOX, .out_b = GG_MAY,
      .ffn_b = GG_MAY, .types = GG_MAY,
      UNUSED(W(FFN_GATE_B), W(FFN_UP_B), W(FFN_DOWN_B)),
      .remark = "biases of the feed-forward part are not used" },
    { .name = "nomic-bert-moe", .runs = true, BERT, NEOX, .out_b = GG_MAY,
      .ffn = &gg_ffn_plain, .act = &gg_ffn_act_gelu, .ffn_b = GG_MAY,
      .types = GG_MAY, .moe = { .where = &second_of_each, .plain = true },
      MORE(KM(moe_every)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_bert = { rows, GG_LEN(rows) };
