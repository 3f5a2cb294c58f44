/* SPDX-License-Identifier: MIT */
/* hunyuan.c - classes of Hunyuan */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name hunyuan_names[] = {
    N(L "self_attn.query_layernorm", B "attn_q_norm"),
    N(L "self_attn.key_layernorm", B "attn_k_norm"), END_NAMES
};

#define HUNYUAN_DYNAMIC                                                       \
    OF("context_length", U32, context_length, IN_BACK),                       \
        OF("rope.freq_base", F32, rope_base, IN_BACK), NO_SCALING,            \
        OF("rope.scaling.factor", F32, dynamic_factor, IN_BACK),              \
        OF("rope.scaling.original_context_length", U32, dynamic_context,      \
           IN_BACK)

static const struct gg_convert_name hunyuan_moe_names[] = {
    N(L "self_attn.query_layernorm", B "attn_q_norm"),
    N(L "self_attn.key_layernorm", B "attn_k_norm"),
    N(L "mlp.gate.wg", B "ffn_gate_inp"),
    N(L "mlp.shared_mlp.gate_proj", B "ffn_gate_shexp"),
    N(L "mlp.shared_mlp.up_proj", B "ffn_up_shexp"),
    N(L "mlp.shared_mlp.down_proj", B "ffn_down_shexp"),
    END_NAMES
};

/* As it was published, and as transformers write it. */
static const struct gg_convert_name hy3_names[] = {
    N(L "mlp.router.gate", B "ffn_gate_inp"),
    N(L "mlp.expert_bias", B "exp_probs_b"),
    N(L "mlp.e_score_correction_bias", B "exp_probs_b"),
    N(L "mlp.shared_mlp.gate_proj", B "ffn_gate_shexp"),
    N(L "mlp.shared_mlp.up_proj", B "ffn_up_shexp"),
    N(L "mlp.shared_mlp.down_proj", B "ffn_down_shexp"),
    N(L "final_layernorm", B "nextn.shared_head_norm"),
    END_NAMES
};

/* Hunyuan 4: gates and sinks of attention, and hyper-connections (hc), whose
 * numbers have no ".weight". */
static const struct gg_convert_name hy4_names[] = {
    N("model.hc_head.hc_head_fn", "output_hc_fn.weight"),
    N("model.hc_head.hc_head_base", "output_hc_base.weight"),
    N("model.hc_head.hc_head_scale", "output_hc_scale.weight"),
    N(L "hc_attn_layer.hc_pre.hc_fn", B "hc_attn_fn.weight"),
    N(L "hc_attn_layer.hc_pre.hc_base", B "hc_attn_base.weight"),
    N(L "hc_attn_layer.hc_pre.hc_scale", B "hc_attn_scale.weight"),
    N(L "hc_mlp_layer.hc_pre.hc_fn", B "hc_ffn_fn.weight"),
    N(L "hc_mlp_layer.hc_pre.hc_base", B "hc_ffn_base.weight"),
    N(L "hc_mlp_layer.hc_pre.hc_scale", B "hc_ffn_scale.weight"),
    N(L "self_attn.linear_gate", B "attn_gate"),
    N(L "self_attn.learnable_sink_param", B "attn_sinks.weight"),
    N(L "mlp.gate.e_score_correction.bias", B "exp_probs_b.bias"),
    PACKED_EXPERTS(L "mlp.experts."),
    END_NAMES
};

static const struct gg_convert_name hunyuan_vl_names[] = {
    N(L "self_attn.query_layernorm", B "attn_q_norm"),
    N(L "self_attn.key_layernorm", B "attn_k_norm"), END_NAMES
};

#define HUNYUAN_VL                                                            \
    ROWS(                                                                     \
        OF("expert_count", U32, vl_experts, put_vl_experts),                  \
        ELSE("rope.freq_base", F32, "rope_theta rope_parameters.rope_theta",  \
             10000),                                                          \
        OF("rope.scaling.alpha", F32, xd_alpha, IN_BACK), NO_SCALING,         \
        OF("rope.scaling.factor", F32, xd_factor, IN_BACK),                   \
        OF("rope.scaling.original_context_length", U32, xd_context, IN_BACK))

/* ---- positions of unlimited context ("dynamic", by alpha) ---- */

enum { DYNAMIC_CONTEXT = 262144 };

static bool is_dynamic(const struct gg_hf_config *cfg)
{
    return is_true(
        gg_hf_config_is_word(cfg, "rope_scaling.type", -1, "dynamic"));
}

static double context_length(const struct gg_hf_config *cfg)
{
    return is_dynamic(cfg) ? DYNAMIC_CONTEXT
                           : num_of(cfg, "max_position_embeddings");
}

static double rope_base(const struct gg_hf_config *cfg)
{
    const double base = num_or(cfg, "rope_theta", 10000);
    const double head = gg_convert_head_dim(cfg);
    return is_dynamic(cfg)
               ? base * pow(num_or(cfg, "rope_scaling.alpha", 1000),
                            head / (head - 2))
               : base;
}

static double dynamic_factor(const struct gg_hf_config *cfg)
{
    return is_dynamic(cfg) ? 1 : NAN;
}

static double dynamic_context(const struct gg_hf_config *cfg)
{
    return is_dynamic(cfg) ? DYNAMIC_CONTEXT : NAN;
}

/* The base is the usual one, stretched by alpha. */
static void put_dynamic(struct gg_back_maker *m)
{
    const struct gg_hf_config *keys = &m->keys;
    const double base = num_of(keys, "rope.freq_base");
    const double head = num_of(keys, "attention.key_length");
    const bool dynamic =
        gg_hf_config_get(keys, "rope.scaling.original_context_length") != NULL;
    gg_back_put_num(m, "max_position_embeddings",
                    num_of(keys, "context_length"));
    gg_back_put_num(m, "rope_theta", dynamic ? 10000 : base);
    if (!dynamic)
        return;
    gg_back_put_word(m, "rope_scaling.type", "dynamic");
    gg_back_put_num(m, "rope_scaling.alpha",
                    pow(base / 10000, (head - 2) / head));
    gg_back_put_num(m, "rope_scaling.factor",
                    num_of(keys, "rope.scaling.factor"));
}

/* ---- positions of several axes, whose base depends on alpha: who reads the
 * file computes that ---- */

static bool has_axes(const struct gg_hf_config *cfg)
{
    const double by_type =
        gg_hf_config_is_word(cfg, "rope_scaling.type", -1, "xdrope");
    const double by_xd =
        is_above(num_of(cfg, "rope_parameters.xdrope_section.0"), 0);
    const double by_m =
        is_above(num_of(cfg, "rope_parameters.mrope_section.0"), 0);
    return is_true(value_or(by_type, value_or(by_xd, by_m)));
}

static double vl_experts(const struct gg_hf_config *cfg)
{
    const double n = num_of(cfg, "num_experts");
    return n > 1 ? n : NAN;
}

static void put_vl_experts(struct gg_back_maker *m)
{
    gg_back_put_num(m, "num_experts", num_of(&m->keys, "expert_count"));
}

static double xd_alpha(const struct gg_hf_config *cfg)
{
    return has_axes(cfg)
               ? num_of(cfg, "rope_scaling.alpha rope_parameters.alpha")
               : NAN;
}

static double xd_factor(const struct gg_hf_config *cfg)
{
    return has_axes(cfg)
               ? num_or(cfg, "rope_scaling.factor rope_parameters.factor", 1)
               : NAN;
}

static double xd_context(const struct gg_hf_config *cfg)
{
    return has_axes(cfg) ? num_of(cfg, "max_position_embeddings") : NAN;
}

static void put_axes(struct gg_back_maker *m)
{
    const struct gg_hf_config *keys = &m->keys;
    const double alpha = num_of(keys, "rope.scaling.alpha");
    const json_t *axes = gg_hf_config_get(keys, "rope.dimension_sections");
    if (alpha > 0)
        gg_back_put_word(m, "rope_scaling.type", "xdrope");
    if (axes)
        gg_back_put(m->root, "rope_scaling.xdrope_section",
                    json_deep_copy(axes));
    gg_back_put_num(m, "rope_scaling.alpha", alpha);
    if (alpha > 0)
        gg_back_put_num(m, "rope_scaling.factor",
                        num_of(keys, "rope.scaling.factor"));
}

/* ---- experts ---- */

static double shared_width(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "moe_intermediate_size") *
           num_or(cfg, "num_shared_experts", 1);
}

/* ---- Hunyuan 4 ---- */

/* Groups of experts, which one group does without. */
static double hy4_groups(const struct gg_hf_config *cfg)
{
    const double n = num_of(cfg, "n_group");
    return n == 1 && num_of(cfg, "topk_group") == 1 ? NAN : n;
}

static double hy4_groups_used(const struct gg_hf_config *cfg)
{
    return isnan(hy4_groups(cfg)) ? NAN : num_of(cfg, "topk_group");
}

static double hy4_limit(const struct gg_hf_config *cfg, int64_t layer)
{
    const double x = num_at(cfg, "swiglu_limit", layer);
    return x > 0 && (double)layer < num_of(cfg, "num_hidden_layers") ? x : NAN;
}

/* Does the layer have an indexer, or share the choice of an earlier one? By
 * indexer_types, or in early folders by layer_types. */
static double hy4_has_indexer(const struct gg_hf_config *cfg, int64_t layer)
{
    const double full =
        gg_hf_config_is_word(cfg, "indexer_types", layer, "full");
    if (!isnan(full))
        return full;
    return gg_hf_config_is_word(cfg, "layer_types", layer,
                                "sparse_attention") == 1 ||
           gg_hf_config_is_word(cfg, "layer_types", layer,
                                "deepseek_sparse_attention") == 1;
}

static double hy4_is_dense(const struct gg_hf_config *cfg, int64_t layer)
{
    return (double)layer < gg_convert_first_sparse(cfg) ||
           is_true(is_equal(
               gg_hf_config_is_word(cfg, "mlp_layer_types", layer, "dense"),
               0));
}

/* Is a member missing, or true? */
static bool is_on(const struct gg_hf_config *cfg, const char *name)
{
    return num_or(cfg, name, 1) == 1;
}

/* Dense layers come first; the gate has an element for each element of
 * attention's result. */
static bool is_hy4(const struct gg_hf_config *cfg)
{
    const double dense = num_of(cfg, "first_k_dense_replace");
    const double listed = gg_convert_first_sparse(cfg);
    return is_on(cfg, "enable_ihc") && is_on(cfg, "gated_mla") &&
           is_on(cfg, "learnable_sink") &&
           gg_hf_config_is_word(cfg, "gating_type", -1, "elementwise") != 0 &&
           gg_hf_config_is_word(cfg, "hidden_act", -1, "silu") != 0 &&
           (isnan(listed) ||
            (value_or(dense, listed) == listed &&
             gg_hf_config_all_layers(cfg, hy4_is_dense) == 1));
}

static bool is_sparse_hy4(const struct gg_hf_config *cfg)
{
    return is_hy4(cfg) && hy4_has_indexer(cfg, 0) == 1;
}

static bool is_full_hy4(const struct gg_hf_config *cfg)
{
    return is_hy4(cfg) && gg_hf_config_get(cfg, "indexer_types") == NULL &&
           gg_hf_config_first_layer(cfg, hy4_has_indexer) ==
               num_of(cfg, "num_hidden_layers");
}

static double has_indexer_key(const struct gg_hf_config *keys, int64_t layer)
{
    (void)layer;
    return num_of(keys, "attention.indexer.top_k") > 0;
}

static void put_hy4(struct gg_back_maker *m)
{
    gg_back_put_word(m, "hidden_act", "silu");
    gg_back_put_num(m, "head_dim", num_of(&m->keys, "rope.dimension_count"));
    gg_back_put_layer_words(m, "mlp_layer_types", gg_back_is_sparse,
                            "dense sparse");
    gg_back_put_layer_words(m, "layer_types", has_indexer_key,
                            "full_attention deepseek_sparse_attention");
}

#define HY4_KEYS                                                              \
    OF("expert_group_count", U32, hy4_groups, NO_BACK),                       \
        OF("expert_group_used_count", U32, hy4_groups_used, NO_BACK),         \
        ELSE_OF("leading_dense_block_count", U32, "first_k_dense_replace",    \
                gg_convert_first_sparse),                                     \
        LATENT_KEYS, ALWAYS("expert_gating_func", U32, 2),                    \
        EACH("swiglu_clamp_exp", F32, hy4_limit, gg_back_put_swiglu_limit),   \
        U32("hyper_connection.count", "hc_mult"),                             \
        F32("hyper_connection.epsilon", "hc_eps"),                            \
        F32("hyper_connection.magnitude", "hc_magnitude")

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_hunyuan[] = {
    { .classes = "HunYuanDenseV1ForCausalLM",
      .arch = "hunyuan-dense",
      .back = put_dynamic,
      .names = OVER(hunyuan_names),
      .keys = ROWS(HUNYUAN_DYNAMIC) },
    { .classes = "HunYuanMoEV1ForCausalLM",
      .arch = "hunyuan-moe",
      .back = put_dynamic,
      .names = OVER_2(hunyuan_moe_names, gg_convert_names_experts),
      .keys =
          ROWS(OF("context_length", U32, context_length, IN_BACK),
               OF("rope.freq_base", F32, rope_base, IN_BACK),
               U32("expert_shared_feed_forward_length", "intermediate_size"),
               ELSE("expert_feed_forward_length", U32, "moe_intermediate_size",
                    NAN),
               ELSE("expert_used_count", U32, "moe_topk", NAN),
               ELSE("expert_shared_count", U32, "num_shared_expert", NAN)) },
    { .classes = "HYV3ForCausalLM",
      .arch = "hy_v3",
      .nextn = N_NEXTN,
      .names =
          OVER_3(hy3_names, gg_convert_names_nextn, gg_convert_names_experts),
      .keys = ROWS(
          BLOCKS_NEXTN, EXPERT_FF,
          OF("expert_shared_feed_forward_length", U32, shared_width, NO_BACK),
          ELSE("expert_weights_norm", BOOL, "route_norm", 1),
          ELSE("expert_weights_scale", F32, "router_scaling_factor", 1),
          ALWAYS("expert_gating_func", U32, 2), NEXTN_ABOVE_0) },
    /* with an indexer, and without; nextn layers are left out */
    { .classes = "HYV4ForCausalLM",
      .arch = "hy_v4",
      .model_type = "hy_v4",
      .instead = { { "num_experts", "n_routed_experts" } },
      .when = is_sparse_hy4,
      .back = put_hy4,
      .skip = "model.mtp_layers. mtp_layers.",
      .names = { hy4_names, gg_convert_names_latent, gg_convert_names_indexer,
                 gg_convert_names_experts, gg_convert_names_llama },
      .keys = ROWS(HY4_KEYS, INDEXER_KEYS,
                   EACH("attention.indexer.types", BOOL, hy4_has_indexer,
                        gg_back_put_indexer_types)) },
    { .classes = "HYV4ForCausalLM",
      .arch = "hy_v4",
      .model_type = "hy_v4",
      .instead = { { "num_experts", "n_routed_experts" } },
      .when = is_full_hy4,
      .back = put_hy4,
      .skip = "model.mtp_layers. mtp_layers.",
      .names =
          OVER_3(hy4_names, gg_convert_names_latent, gg_convert_names_experts),
      .keys = ROWS(HY4_KEYS) },
    { .classes = "HunYuanVLForConditionalGeneration",
      .arch = "hunyuan_vl",
      .back = put_axes,
      .drops_copy = true,
      .names = OVER(hunyuan_vl_names),
      .keys = HUNYUAN_VL },
    { .classes = NULL }
};
