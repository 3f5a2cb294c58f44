/* SPDX-License-Identifier: MIT */
/* expert.c - classes of models of several makers, most with experts */
#include "config.h"
#include "convert/class_row.h"

/* Grok 2, and Grok 1 as it was made a folder. */
#define G "transformer.decoder_layer.%."

static const struct gg_convert_name grok_names[] = {
    N(L "pre_attn_norm", B "attn_norm"),
    N(L "post_attn_norm", B "attn_output_norm"),
    N(L "pre_moe_norm", B "ffn_norm"),
    N(L "post_moe_norm", B "post_ffw_norm"),
    N("transformer.in_out_embed", "token_embd"),
    N("transformer.rms_norm", "output_norm"),
    N(G "rms_norm", B "attn_norm"),
    N(G "rms_norm_1", B "attn_output_norm"),
    N(G "rms_norm_2", B "ffn_norm"),
    N(G "rms_norm_3", B "layer_output_norm"),
    N(G "multi_head_attention.query", B "attn_q"),
    N(G "multi_head_attention.key", B "attn_k"),
    N(G "multi_head_attention.value", B "attn_v"),
    N(G "multi_head_attention.linear", B "attn_output"),
    N(G "router", B "ffn_gate_inp"),
    N(G "moe.@.linear", B "ffn_gate_exps"),
    N(G "moe.@.linear_v", B "ffn_up_exps"),
    N(G "moe.@.linear_1", B "ffn_down_exps"),
    END_NAMES
};

/* Experts beside a shared part. */
static const struct gg_convert_name arctic_names[] = {
    N(L "residual_layernorm", B "ffn_norm"),
    N(L "post_attention_layernorm", B "ffn_norm_exps"),
    N(L "residual_mlp.w1", B "ffn_gate"),
    N(L "residual_mlp.w2", B "ffn_down"),
    N(L "residual_mlp.w3", B "ffn_up"),
    END_NAMES
};

static const struct gg_convert_name laguna_names[] = {
    N(L "self_attn.g_proj", B "attn_gate"),
    N(L "mlp.experts.e_score_correction_bias", B "exp_probs_b.bias"), END_NAMES
};

static const struct gg_convert_name maple_names[] = {
    N("model.word_embeddings", "token_embd"), END_NAMES
};

static const struct gg_convert_name mimo2_names[] = {
    N(L "self_attn.qkv_proj", B "attn_qkv"),
    N(L "self_attn.attention_sink_bias", B "attn_sinks.weight"),
    N(L "pre_mlp_layernorm", B "ffn_norm"),
    N(L "final_layernorm", B "layer_output_norm"), END_NAMES
};

static const struct gg_convert_name spark_names[] = {
    N("model.embedding", "token_embd"),
    N(L "self_attn.q_k_v_proj", B "attn_qkv"),
    N(L "self_attn.g_proj", B "attn_gate"),
    N(L "self_attn.out_proj", B "attn_output"), END_NAMES
};

#define SH "shared_head."

static const struct gg_convert_name step35_names[] = {
    NORMS_PLUS_1,
    N_HOW(L "enorm", B "nextn.enorm", PLUS_1),
    N_HOW(L "hnorm", B "nextn.hnorm", PLUS_1),
    N_HOW(L "transformer." SH "norm", B "nextn.shared_head_norm", PLUS_1),
    N(L "transformer." SH "output", B "nextn.shared_head_head"),
    N_HOW(L SH "norm", B "nextn.shared_head_norm", PLUS_1),
    N_HOW(L "self_attn.g_proj", B "attn_gate", SQUEEZE),
    N_HOW(L "moe.gate", B "ffn_gate_inp", SQUEEZE),
    N(L "moe.router_bias", B "exp_probs_b.bias"),
    N_HOW(L "moe.gate_proj", B "ffn_gate_exps", SQUEEZE),
    N_HOW(L "moe.up_proj", B "ffn_up_exps", SQUEEZE),
    N_HOW(L "moe.down_proj", B "ffn_down_exps", SQUEEZE),
    N(L "share_expert.gate_proj", B "ffn_gate_shexp"),
    N(L "share_expert.up_proj", B "ffn_up_shexp"),
    N(L "share_expert.down_proj", B "ffn_down_shexp"),
    END_NAMES
};

#define GROK_KEYS                                                             \
    ELSE("attn_logit_softcapping", F32, "attn_logit_softcapping", 30),        \
        ELSE("router_logit_softcapping", F32, "router_logit_softcapping",     \
             30),                                                             \
        ABOVE_0("final_logit_softcapping", F32, "final_logit_softcapping"),   \
        EXPERT_FF,                                                            \
        ABOVE_0("attention.temperature_length", U32, "attn_temperature_len"), \
        OF("attention.output_scale", F32, grok_output_scale, IN_BACK),        \
        F32("embedding_scale", "embedding_multiplier_scale"),                 \
        F32("logit_scale", "output_multiplier_scale")

/* ---- Grok ---- */

static double grok_output_scale(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "attn_output_multiplier",
                  pow(gg_convert_head_dim(cfg), -0.5));
}

static bool stretches_positions(const struct gg_hf_config *cfg)
{
    return is_true(gg_hf_config_is_word(cfg, "rope_type", -1, "yarn")) ||
           is_true(gg_hf_config_is_word(cfg, "rope_type", -1, "original"));
}

/* How positions are stretched is not in an object of its own. */
static void put_grok(struct gg_back_maker *m)
{
    if (is_true(
            gg_hf_config_is_word(&m->keys, "rope.scaling.type", -1, "yarn"))) {
        gg_back_put_word(m, "rope_type", "yarn");
        gg_back_remove_member(m, "rope_scaling");
    }
    gg_back_put_num(m, "attn_output_multiplier",
                    num_of(&m->keys, "attention.output_scale"));
}

/* ---- Laguna ---- */

static double heads_of_layer(const struct gg_hf_config *cfg, int64_t layer)
{
    return num_at(cfg, "num_attention_heads_per_layer num_attention_heads",
                  layer);
}

static double laguna_n_dense(const struct gg_hf_config *cfg)
{
    return value_or(gg_convert_first_sparse(cfg), 1);
}

static double rotary_dims_full(const struct gg_hf_config *cfg)
{
    return gg_convert_rotary_dims(
        cfg, "rope_parameters.full_attention.partial_rotary_factor", 1);
}

static double rotary_dims_sliding(const struct gg_hf_config *cfg)
{
    return gg_hf_config_get(cfg, "rope_parameters.sliding_attention")
               ? gg_convert_rotary_dims(
                     cfg,
                     "rope_parameters.sliding_attention.partial_rotary_factor",
                     1)
               : NAN;
}

/* Does the layer have full attention, where every fourth layer has, from the
 * first on? */
static double is_full_each_fourth(const struct gg_hf_config *cfg,
                                  int64_t layer)
{
    return is_equal(gg_convert_is_full(cfg, layer), layer % 4 == 0);
}

static bool is_laguna(const struct gg_hf_config *cfg)
{
    return (num_or(cfg, "sliding_window", 0) == 0 ||
            is_true(value_or(gg_hf_config_all_layers(cfg, is_full_each_fourth),
                             1))) &&
           num_or(cfg, "moe_router_logit_softcapping", 0) == 0;
}

static double n_heads(const struct gg_hf_config *keys, int64_t layer)
{
    return num_at(keys, "attention.head_count", layer);
}

static double is_sliding_but_fourth(const struct gg_hf_config *keys,
                                    int64_t layer)
{
    return num_of(keys, "attention.sliding_window") > 0 ? layer % 4 > 0 : NAN;
}

/* Partial rotary factors of both kinds of layers. */
static void put_rotary_by_type(struct gg_back_maker *m)
{
    gg_back_put_num(m, "rope_parameters.full_attention.partial_rotary_factor",
                    gg_back_rotary_of_key(&m->keys));
    gg_back_put_num(m,
                    "rope_parameters.sliding_attention.partial_rotary_factor",
                    num_of(&m->keys, "rope.dimension_count_swa") /
                        num_of(&m->keys, "attention.key_length"));
}

static void put_laguna(struct gg_back_maker *m)
{
    gg_back_put_num(m, "num_attention_heads", n_heads(&m->keys, 0));
    gg_back_put_layers(m, "num_attention_heads_per_layer", n_heads);
    gg_back_put_layer_words(m, "mlp_layer_types", gg_back_is_sparse,
                            "dense sparse");
    gg_back_put_layer_words(m, "layer_types", is_sliding_but_fourth,
                            "full_attention sliding_attention");
    put_rotary_by_type(m);
}

/* ---- Maple ---- */

static double rotary_dims(const struct gg_hf_config *cfg)
{
    return gg_convert_rotary_dims(
        cfg, "rope_parameters.partial_rotary_factor partial_rotary_factor", 1);
}

/* Limit of the gates and of the other half, in the model's own code. */
static double maple_limit(const struct gg_hf_config *cfg, int64_t layer)
{
    return (double)layer < num_of(cfg, "num_hidden_layers") ? 7 : NAN;
}

/* Layers with full attention have no positions, and the weights of chosen
 * experts have the sum 1. */
static bool is_maple(const struct gg_hf_config *cfg)
{
    return is_true(num_of(cfg, "nope_on_global_attention")) &&
           is_true(num_or(cfg, "norm_topk_prob", 1)) &&
           num_or(cfg, "num_shared_experts", 0) == 0 &&
           is_true(gg_hf_config_is_word(cfg, "hidden_act", -1, "silu"));
}

static void put_maple(struct gg_back_maker *m)
{
    gg_back_put_flag(m, "nope_on_global_attention", 1);
    gg_back_put_word(m, "hidden_act", "silu");
    gg_back_put_rotary_of_key(m);
}

/* ---- MiMo 2 ---- */

static double mimo_blocks(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "num_hidden_layers") + num_or(cfg, N_NEXTN, 3);
}

/* Nextn layers have windows. */
static double mimo_is_sliding(const struct gg_hf_config *cfg, int64_t layer)
{
    return !((double)layer < num_of(cfg, "num_hidden_layers")) ||
           is_true(num_at(cfg, "hybrid_layer_pattern", layer));
}

static double mimo_kv_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    return num_at(cfg,
                  is_true(mimo_is_sliding(cfg, layer))
                      ? "swa_num_key_value_heads"
                      : "num_key_value_heads",
                  layer);
}

static bool is_same(const struct gg_hf_config *cfg, const char *with_window,
                    const char *name)
{
    const double x = num_of(cfg, name);
    return num_or(cfg, with_window, x) == x;
}

/* Layers with windows have the same heads. */
static bool has_one_head_size(const struct gg_hf_config *cfg)
{
    return is_same(cfg, "swa_head_dim", "head_dim") &&
           is_same(cfg, "swa_v_head_dim", "v_head_dim") &&
           is_same(cfg, "swa_num_attention_heads", "num_attention_heads");
}

static double has_window(const struct gg_hf_config *keys, int64_t layer)
{
    return num_at(keys, "attention.sliding_window_pattern", layer);
}

static void put_mimo(struct gg_back_maker *m)
{
    gg_back_put_main_layers(m);
    gg_back_put_layers(m, "hybrid_layer_pattern", has_window);
    gg_back_put_num(m, "num_key_value_heads",
                    gg_back_first_layer(m, gg_back_full_kv_heads));
    gg_back_put_num(m, "swa_num_key_value_heads",
                    gg_back_first_layer(m, gg_back_sliding_kv_heads));
    gg_back_put_rotary_of_key(m);
}

/* ---- Spark 2.5 ---- */

/* Gates of heads by a sigmoid; GELU. */
static bool is_spark(const struct gg_hf_config *cfg)
{
    return is_true(num_of(cfg, "headwise_attn_output_gate")) &&
           is_true(gg_hf_config_is_word(cfg, "gate_attn_act_mode", -1,
                                        "sigmoid")) &&
           is_true(gg_hf_config_is_word(cfg, "hidden_act", -1, "gelu"));
}

static void put_spark(struct gg_back_maker *m)
{
    gg_back_put_flag(m, "headwise_attn_output_gate", 1);
    gg_back_put_word(m, "gate_attn_act_mode", "sigmoid");
    gg_back_put_word(m, "hidden_act", "gelu");
    put_rotary_by_type(m);
}

/* ---- Step 3.5 ---- */

/* NAME in the object of layers with windows. */
static double num_by_type(const struct gg_hf_config *cfg, int64_t layer,
                          const char *of_windows, const char *name)
{
    const double x = num_at(cfg, name, layer);
    return is_true(gg_convert_is_sliding(cfg, layer))
               ? value_or(num_at(cfg, of_windows, layer), x)
               : x;
}

static double step_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    return num_by_type(cfg, layer,
                       "attention_other_setting.num_attention_heads",
                       "num_attention_heads");
}

static double step_kv_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    return num_by_type(cfg, layer,
                       "attention_other_setting.num_attention_groups",
                       "num_attention_groups");
}

/* Number of layers before the first with experts. moe_layers_enum lists the
 * layers with experts, as a text or as numbers. */
static double step_n_dense(const struct gg_hf_config *cfg)
{
    const json_t *v = gg_hf_config_get(cfg, "moe_layers_enum");
    const char *text = json_string_value(v);
    double n = 0;
    if (!text)
        return num_or(cfg, "moe_layers_enum", 0);
    for (int i = 0; i < 15 && text[i] >= '0' && text[i] <= '9'; i++)
        n = 10 * n + (text[i] - '0');
    return n;
}

static double limit_or_0(const struct gg_hf_config *cfg, const char *name,
                         int64_t layer)
{
    return gg_hf_config_get(cfg, name) ? value_or(num_at(cfg, name, layer), 0)
                                       : NAN;
}

static double swiglu_limit(const struct gg_hf_config *cfg, int64_t layer)
{
    return limit_or_0(cfg, "swiglu_limits", layer);
}

static double swiglu_limit_shared(const struct gg_hf_config *cfg,
                                  int64_t layer)
{
    return limit_or_0(cfg, "swiglu_limits_shared", layer);
}

static double has_rotary_of_type(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_equal(is_true(gg_convert_is_sliding(cfg, layer)) ? 1 : 0.5,
                    num_at(cfg, "partial_rotary_factors", layer));
}

/* Half of a head is rotated; in layers with windows all of it. */
static bool turns_by_type(const struct gg_hf_config *cfg)
{
    return is_true(
        value_or(gg_hf_config_all_layers(cfg, has_rotary_of_type), 1));
}

static double full_heads(const struct gg_hf_config *keys, int64_t layer)
{
    return gg_back_num_if(keys, layer, 0, "attention.head_count");
}

static double sliding_heads(const struct gg_hf_config *keys, int64_t layer)
{
    return gg_back_num_if(keys, layer, 1, "attention.head_count");
}

static double rotary_part(const struct gg_hf_config *keys, int64_t layer)
{
    return has_window(keys, layer) == 1 ? 1 : 0.5;
}

static double rope_base(const struct gg_hf_config *keys, int64_t layer)
{
    return num_of(keys, has_window(keys, layer) == 1 ? "rope.freq_base_swa"
                                                     : "rope.freq_base");
}

/* The numbers of layers with experts, with commas between. */
static void put_sparse_layers(struct gg_back_maker *m)
{
    json_t *text = json_string("");
    for (int64_t i = 0; i < gg_back_n_layers(m); i++) {
        if (!is_true(gg_back_is_sparse(&m->keys, i)))
            continue;
        json_t *more = json_sprintf("%s%s%" PRId64, json_string_value(text),
                                    json_string_length(text) ? "," : "", i);
        json_decref(text);
        text = more;
    }
    gg_back_put(m->root, "moe_layers_enum", text);
}

/* Limit for each layer; null: none. */
static void put_limits(struct gg_back_maker *m, const char *name,
                       const char *key)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < gg_back_n_layers(m); i++) {
        const double x = num_at(&m->keys, key, i);
        json_array_append_new(list,
                              x > 0 ? gg_back_number_to_json(x) : json_null());
    }
    gg_back_put(m->root, name, list);
}

static void put_step(struct gg_back_maker *m)
{
    gg_back_put_num(m, "num_attention_heads",
                    gg_back_first_layer(m, full_heads));
    gg_back_put_num(m, "num_attention_groups",
                    gg_back_first_layer(m, gg_back_full_kv_heads));
    gg_back_put_num(m, "attention_other_setting.num_attention_heads",
                    gg_back_first_layer(m, sliding_heads));
    gg_back_put_num(m, "attention_other_setting.num_attention_groups",
                    gg_back_first_layer(m, gg_back_sliding_kv_heads));
    gg_back_put_layers(m, "partial_rotary_factors", rotary_part);
    gg_back_put_layers(m, "rope_theta", rope_base);
    put_sparse_layers(m);
    put_limits(m, "swiglu_limits", "swiglu_clamp_exp");
    put_limits(m, "swiglu_limits_shared", "swiglu_clamp_shexp");
}

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_expert[] = {
    { .classes = "Grok1ForCausalLM GrokForCausalLM",
      .arch = "grok",
      .when = stretches_positions,
      .back = put_grok,
      .names = OVER_2(grok_names, gg_convert_names_mixtral),
      .keys = ROWS(GROK_KEYS, WORD("rope.scaling.type", "yarn"),
                   F32("rope.scaling.factor", "scaling_factor"),
                   U32("rope.scaling.original_context_length",
                       "original_max_position_embeddings"),
                   F32("rope.scaling.yarn_ext_factor", "extrapolation_factor"),
                   F32("rope.scaling.yarn_attn_factor", "attn_factor"),
                   F32("rope.scaling.yarn_beta_fast", "beta_fast"),
                   F32("rope.scaling.yarn_beta_slow", "beta_slow")) },
    { .classes = "Grok1ForCausalLM GrokForCausalLM",
      .arch = "grok",
      .back = put_grok,
      .names = OVER_2(grok_names, gg_convert_names_mixtral),
      .keys = ROWS(GROK_KEYS) },
    { .classes = "ArcticForCausalLM",
      .arch = "arctic",
      .names = OVER_2(arctic_names, gg_convert_names_mixtral),
      .keys = ROWS(VOCAB_SIZE, OF("rope.dimension_count", U32,
                                  gg_convert_head_width, NO_BACK)),
      .permuted = true },
    /* every fourth layer, from the first on, has full attention */
    { .classes = "LagunaForCausalLM",
      .arch = "laguna",
      .when = is_laguna,
      .back = put_laguna,
      .names = OVER_2(laguna_names, gg_convert_names_experts),
      .keys = ROWS(
          EACH("attention.head_count", U32, heads_of_layer, IN_BACK),
          VOCAB_SIZE,
          ABOVE_0("attention.sliding_window", U32, "sliding_window"),
          EXPERT_FF, SHARED_FF, ALWAYS("expert_weights_norm", BOOL, 1),
          F32("expert_weights_scale", "moe_routed_scaling_factor"),
          ALWAYS("expert_gating_func", U32, 2),
          OF("leading_dense_block_count", U32, laguna_n_dense, IN_BACK),
          OF("rope.dimension_count", U32, rotary_dims_full, IN_BACK),
          OF("rope.dimension_count_swa", U32, rotary_dims_sliding, IN_BACK)) },
    { .classes = "MapleForCausalLM",
      .arch = "maple",
      .when = is_maple,
      .back = put_maple,
      .names = OVER_2(maple_names, gg_convert_names_experts),
      .keys = ROWS(VOCAB_SIZE,
                   OF("rope.dimension_count", U32, rotary_dims, IN_BACK),
                   WINDOW, PATTERN, EXPERT_FF,
                   EACH("swiglu_clamp_exp", F32, maple_limit, NO_BACK)) },
    /* three nextn layers, which config.json does not mention */
    { .classes = "MiMoV2FlashForCausalLM MiMoV2ForCausalLM",
      .arch = "mimo2",
      .when = has_one_head_size,
      .back = put_mimo,
      .nextn = N_NEXTN,
      .n_nextn = 3,
      .drafts = "model.mtp.layers.",
      .names = OVER_3(mimo2_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys = ROWS(
          OF("block_count", U32, mimo_blocks, IN_BACK),
          EACH("attention.head_count_kv", U32, mimo_kv_heads, IN_BACK), WINDOW,
          EACH("attention.sliding_window_pattern", U32, mimo_is_sliding,
               IN_BACK),
          U32("attention.value_length", "v_head_dim"), EXPERT_FF,
          OF("rope.dimension_count", U32, rotary_dims, IN_BACK),
          ELSE("attention.layer_norm_rms_epsilon", F32, "layernorm_epsilon",
               1e-5),
          F32("attention.value_scale", "attention_value_scale"),
          ELSE("nextn_predict_layers", U32, N_NEXTN, 3)) },
    { .classes = "Spark2_5ForCausalLM",
      .arch = "spark2_5",
      .when = is_spark,
      .back = put_spark,
      .names = OVER(spark_names),
      .keys = ROWS(
          VOCAB_SIZE, WINDOW, PATTERN,
          OF("rope.dimension_count", U32, rotary_dims_full, IN_BACK),
          OF("rope.dimension_count_swa", U32, rotary_dims_sliding, IN_BACK)) },
    { .classes = "Step3p5ForCausalLM Step3p7ForConditionalGeneration",
      .arch = "step35",
      .when = turns_by_type,
      .back = put_step,
      .nextn = N_NEXTN,
      .names = OVER_2(step35_names, gg_convert_names_nextn),
      .keys = ROWS(
          BLOCKS_NEXTN, EACH("attention.head_count", U32, step_heads, IN_BACK),
          ELSE("rope.freq_base", F32, "rope_theta", NAN),
          EACH("attention.head_count_kv", U32, step_kv_heads, IN_BACK), WINDOW,
          PATTERN, U32("expert_count", "moe_num_experts"),
          U32("expert_used_count", "moe_top_k"), EXPERT_FF,
          U32("expert_shared_feed_forward_length", "share_expert_dim"),
          F32("expert_weights_scale", "moe_router_scaling_factor"),
          BOOL("expert_weights_norm", "norm_expert_weight"),
          OF("leading_dense_block_count", U32, step_n_dense, IN_BACK),
          ELSE("moe_every_n_layers", U32, "moe_every_n_layer", 1),
          ELSE("attention.layer_norm_rms_epsilon", F32, "rms_norm_eps", 1e-5),
          EACH("swiglu_clamp_exp", F32, swiglu_limit, IN_BACK),
          EACH("swiglu_clamp_shexp", F32, swiglu_limit_shared, IN_BACK),
          NEXTN_ABOVE_0) },
    { .classes = NULL }
};
