/* SPDX-License-Identifier: MIT */
/* granite.c - classes of Granite */
#include "config.h"
#include "convert/class_row.h"

#define GRANITE                                                               \
    F32("attention.scale", "attention_multiplier"),                           \
        F32("embedding_scale", "embedding_multiplier"),                       \
        F32("residual_scale", "residual_multiplier"),                         \
        F32("logit_scale", "logits_scaling")

static const struct gg_convert_name granitemoe_names[] = {
    N(L "block_sparse_moe.router.layer", B "ffn_gate_inp"),
    N_HOW(L "block_sparse_moe.input_linear", B "ffn_gate_exps", HALF_1),
    N_HOW(L "block_sparse_moe.input_linear", B "ffn_up_exps", HALF_2),
    N(L "block_sparse_moe.output_linear", B "ffn_down_exps"),
    N_HOW(L "shared_mlp.input_linear", B "ffn_gate_shexp", HALF_1),
    N_HOW(L "shared_mlp.input_linear", B "ffn_up_shexp", HALF_2),
    N(L "shared_mlp.output_linear", B "ffn_down_shexp"),
    END_NAMES
};

/* A model without experts has only the shared one. */
static const struct gg_convert_name granite_dense_names[] = {
    N_HOW(L "shared_mlp.input_linear", B "ffn_gate", HALF_1),
    N_HOW(L "shared_mlp.input_linear", B "ffn_up", HALF_2),
    N(L "shared_mlp.output_linear", B "ffn_down"), END_NAMES
};

/* As transformers 5 names experts. Older names are those of granitemoe_names.
 */
static const struct gg_convert_name granite_swa_names[] = {
    N(L "self_attn.sinks", B "attn_sinks.weight"),
    N(L "block_sparse_moe.router", B "ffn_gate_inp"),
    N(L "block_sparse_moe.experts.gate_up_proj", B "ffn_gate_up_exps.weight"),
    N(L "block_sparse_moe.experts.down_proj", B "ffn_down_exps.weight"),
    N(L "shared_mlp.input_linear", B "ffn_up_shexp"),
    END_NAMES
};

static const struct gg_convert_name bamba_names[] = {
    N("model.final_layernorm", "output_norm"), END_NAMES
};

#define GRANITE_SWA                                                           \
    WINDOW,                                                                   \
        EACH("attention.sliding_window_pattern", BOOL, is_sliding,            \
             gg_back_put_sliding_layers),                                     \
        EACH("attention.rope_pattern", BOOL, has_rope, put_layer_bases),      \
        OF("rope.freq_base", F32, layer_base, gg_back_put_rope_base)

#define GRANITE_HYBRID                                                        \
    EACH("attention.head_count_kv", U32, kv_heads, IN_BACK),                  \
        U32("vocab_size", "vocab_size"),                                      \
        ELSE_OF("rope.dimension_count", U32, "attn_rotary_emb",               \
                gg_convert_head_dim),                                         \
        GRANITE,                                                              \
        U32("expert_shared_feed_forward_length", "shared_intermediate_size"), \
        U32("ssm.conv_kernel", "mamba_d_conv"),                               \
        U32("ssm.state_size", "mamba_d_state"),                               \
        U32("ssm.group_count", "mamba_n_groups"),                             \
        OF("ssm.inner_size", U32, gg_convert_mamba_inner_size, IN_BACK),      \
        U32("ssm.time_step_rank", "mamba_n_heads")

/* ---- layers with and without attention ---- */

static double is_attention(const struct gg_hf_config *cfg, int64_t layer)
{
    return gg_hf_config_is_word(cfg, "layer_types", layer, "attention");
}

static double kv_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    const double has = value_or(
        is_attention(cfg, layer),
        value_or(gg_convert_attention_by_period(cfg, layer),
                 gg_hf_config_list_has(cfg, "attn_layer_indices", layer)));
    return has * num_at(cfg, "num_key_value_heads", layer);
}

static bool is_without_experts(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "num_local_experts", 0) == 0;
}

static bool is_all_attention(const struct gg_hf_config *cfg)
{
    return is_true(gg_hf_config_all_layers(cfg, is_attention));
}

static bool is_dense_attention(const struct gg_hf_config *cfg)
{
    return is_all_attention(cfg) && is_without_experts(cfg);
}

static void put_layers(struct gg_back_maker *m)
{
    gg_back_put_layer_words(m, "layer_types", gg_back_has_attention,
                            "mamba attention");
    gg_back_put_first_kv_heads(m);
}

/* The folder has the hybrid class if the number of key heads is a list. */
static void put_attention_only(struct gg_back_maker *m)
{
    if (gg_hf_config_list_len(&m->keys, "attention.head_count_kv") > 0)
        put_layers(m);
    gg_back_put_mamba_expand(m);
}

static void put_hybrid(struct gg_back_maker *m)
{
    gg_back_put_num(m, "max_position_embeddings",
                    num_of(&m->keys, "context_length"));
    put_layers(m);
    gg_back_put_mamba_expand(m);
}

/* ---- windows ---- */

/* Without layer_types each fourth layer has full attention, from the first. */
static double is_sliding(const struct gg_hf_config *cfg, int64_t layer)
{
    return value_or(gg_convert_is_sliding(cfg, layer), layer % 4 != 0);
}

/* A layer whose base is 0 has no rotary embedding. */
static double has_rope(const struct gg_hf_config *cfg, int64_t layer)
{
    const double base = num_at(cfg, "layer_rope_theta", layer);
    return isnan(base) ? NAN : base != 0;
}

/* Base of the first layer with rotary embedding. */
static double layer_base(const struct gg_hf_config *cfg)
{
    const size_t n = gg_hf_config_list_len(cfg, "layer_rope_theta");
    for (size_t i = 0; i < n; i++)
        if (is_true(has_rope(cfg, (int64_t)i)))
            return num_at(cfg, "layer_rope_theta", (int64_t)i);
    return num_of(cfg, "rope_theta rope_parameters.rope_theta");
}

/* Files have one base for all layers. */
static double has_one_base(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_true(has_rope(cfg, layer))
               ? is_equal(num_at(cfg, "layer_rope_theta", layer),
                          layer_base(cfg))
               : 1;
}

static bool is_of_one_base(const struct gg_hf_config *cfg)
{
    return is_true(gg_hf_config_all_layers(cfg, has_one_base));
}

static double base_of_layer(const struct gg_hf_config *keys, int64_t layer)
{
    return num_at(keys, "attention.rope_pattern", layer) *
           num_or(keys, "rope.freq_base", 10000);
}

static void put_layer_bases(struct gg_back_maker *m)
{
    gg_back_put_layers(m, "layer_rope_theta", base_of_layer);
}

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_granite[] = {
    { .classes = "GraniteForCausalLM",
      .arch = "granite",
      .back = put_attention_only,
      .names = LLAMA,
      .keys = ROWS(GRANITE),
      .last = OF_SIZE,
      PERMUTED },
    { .classes = "GraniteMoeForCausalLM GraniteMoeSharedForCausalLM",
      .model_type = "granitemoe",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "granitemoe",
      .back = put_attention_only,
      .names = OVER(granitemoe_names),
      .keys = ROWS(GRANITE, U32("expert_shared_feed_forward_length",
                                "shared_intermediate_size")),
      PERMUTED },
    { .classes = "GraniteSWAForCausalLM",
      .model_type = "granite_swa",
      .arch = "granite_swa",
      .when = is_of_one_base,
      .names = OVER(granite_swa_names),
      .keys = ROWS(GRANITE, GRANITE_SWA),
      .last = OF_SIZE,
      PERMUTED },
    { .classes = "GraniteMoeSWAForCausalLM",
      .model_type = "granitemoe_swa",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "granite_swa",
      .when = is_of_one_base,
      .names = OVER_2(granite_swa_names, granitemoe_names),
      .keys = ROWS(
          GRANITE,
          U32("expert_shared_feed_forward_length", "shared_intermediate_size"),
          GRANITE_SWA),
      PERMUTED },
    { .classes = "GraniteMoeHybridForCausalLM",
      .model_type = "granitemoehybrid",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "granite",
      .back = put_attention_only,
      .when = is_dense_attention,
      .names = OVER(granite_dense_names),
      .keys = ROWS(GRANITE_HYBRID, ALWAYS("rope.scaling.finetuned", BOOL, 1)),
      .permuted = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .model_type = "granitemoehybrid",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "granitemoe",
      .back = put_attention_only,
      .when = is_all_attention,
      .names = OVER(granitemoe_names),
      .keys = ROWS(GRANITE_HYBRID, ALWAYS("rope.scaling.finetuned", BOOL, 1)),
      .permuted = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .model_type = "granitemoehybrid",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "granitehybrid",
      .back = put_hybrid,
      .when = is_without_experts,
      .names = { granite_dense_names, gg_convert_names_hybrid,
                 gg_convert_names_llama },
      .keys = ROWS(ALWAYS("context_length", U32, 1 << 20), GRANITE_HYBRID,
                   ALWAYS("rope.scaling.finetuned", BOOL, 0)),
      .permuted = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .model_type = "granitemoehybrid",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "granitehybrid",
      .back = put_hybrid,
      .names = { granitemoe_names, gg_convert_names_hybrid,
                 gg_convert_names_llama },
      .keys = ROWS(ALWAYS("context_length", U32, 1 << 20), GRANITE_HYBRID,
                   ALWAYS("rope.scaling.finetuned", BOOL, 0)),
      .permuted = true },
    { .classes = "BambaForCausalLM",
      .arch = "granitehybrid",
      .back = put_hybrid,
      .names = { bamba_names, gg_convert_names_hybrid,
                 gg_convert_names_llama },
      .keys = ROWS(GRANITE_HYBRID, ALWAYS("rope.scaling.finetuned", BOOL, 1)),
      .permuted = true },
    { .classes = NULL }
};
