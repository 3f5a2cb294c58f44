/* SPDX-License-Identifier: MIT */
/* lfm.c - classes of LFM2 */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name lfm2_vector_names[] = {
    N("model.dense_0.linear", "dense_2"), END_NAMES
};

static const struct gg_convert_name lfm2_names[] = {
    N("model.embedding_norm", "token_embd_norm"), /* it is the last one */
    N(L "operator_norm", B "attn_norm"),
    N(L "ffn_norm", B "ffn_norm"),
    N(L "self_attn.out_proj", B "attn_output"),
    N(L "self_attn.q_layernorm", B "attn_q_norm"),
    N(L "self_attn.k_layernorm", B "attn_k_norm"),
    N(L "feed_forward.w1", B "ffn_gate"),
    N(L "feed_forward.w2", B "ffn_down"),
    N(L "feed_forward.w3", B "ffn_up"),
    N(L "conv.in_proj", B "shortconv.in_proj"),
    N(L "conv.out_proj", B "shortconv.out_proj"),
    N_HOW(L "conv.conv", B "shortconv.conv", SQUEEZE),
    N(L "feed_forward.gate", B "ffn_gate_inp"),
    N(L "feed_forward.expert_bias", B "exp_probs_b.bias"),
    N(L "feed_forward.experts.@.w1", B "ffn_gate_exps"),
    N(L "feed_forward.experts.@.w2", B "ffn_down_exps"),
    N(L "feed_forward.experts.@.w3", B "ffn_up_exps"),
    PACKED_EXPERTS(L "feed_forward.experts."),
    END_NAMES
};

#define LFM2_KEYS                                                             \
    EACH("attention.head_count_kv", U32, kv_heads, IN_BACK),                  \
        U32("vocab_size", "vocab_size"),                                      \
        U32("shortconv.l_cache", "conv_L_cache")
#define LFM2_DENSE                                                            \
    OF("feed_forward_length", U32, feed_forward, IN_BACK),                    \
        F32("attention.layer_norm_rms_epsilon", "norm_eps rms_norm_eps"),     \
        LFM2_KEYS
#define LFM2_VECTORS U32("embedding_length_out", "dense_0_out"), LFM2_DENSE

static double kv_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    const double has =
        value_or(gg_convert_is_full(cfg, layer),
                 gg_hf_config_list_has(cfg, "full_attn_idxs", layer));
    return has * num_at(cfg, "num_key_value_heads", layer);
}

/* The width, or two thirds of it by a factor, rounded up to a multiple. */
static double feed_forward(const struct gg_hf_config *cfg)
{
    const double width = num_of(cfg, "block_ff_dim intermediate_size");
    const double multiple = num_or(cfg, "block_multiple_of", 256);
    if (!is_true(num_or(cfg, "block_auto_adjust_ff_dim", 0)))
        return width;
    const double adjusted = floor(num_or(cfg, "block_ffn_dim_multiplier", 1) *
                                  floor(2 * width / 3));
    return multiple * floor((adjusted + multiple - 1) / multiple);
}

static void put_layers(struct gg_back_maker *m)
{
    gg_back_put_layer_words(m, "layer_types", gg_back_has_attention,
                            "conv full_attention");
    gg_back_put_first_kv_heads(m);
}

static void put_lfm2(struct gg_back_maker *m)
{
    gg_back_put_num(m, "intermediate_size",
                    num_of(&m->keys, "feed_forward_length"));
    put_layers(m);
}

const struct gg_convert_arch gg_convert_family_lfm[] = {
    { .classes = "Lfm2ForCausalLM LFM2ForCausalLM "
                 "Lfm2AudioForConditionalGeneration",
      .arch = "lfm2",
      .back = put_lfm2,
      .ties = true,
      .names = OVER(lfm2_names),
      .keys = ROWS(LFM2_DENSE) },
    { .classes = "Lfm2Model",
      .arch = "lfm2",
      .back = put_lfm2,
      .before = "model.",
      .names = OVER_2(lfm2_vector_names, lfm2_names),
      .keys = ROWS(LFM2_VECTORS),
      .n_dense = 1 },
    { .classes = "Lfm2BidirectionalModel",
      .arch = "lfm2",
      .back = put_lfm2,
      .before = "model.",
      .names = OVER_2(lfm2_vector_names, lfm2_names),
      .keys = ROWS(LFM2_VECTORS, ALWAYS("attention.causal", BOOL, 0)),
      .n_dense = 1 },
    { .classes = "Lfm2MoeForCausalLM",
      .arch = "lfm2moe",
      .back = put_layers,
      .ties = true,
      .names = OVER(lfm2_names),
      .keys =
          ROWS(EXPERT_FF, U32("leading_dense_block_count", "num_dense_layers"),
               ALWAYS("expert_gating_func", U32, 2), LFM2_KEYS) },
    { .classes = NULL }
};
