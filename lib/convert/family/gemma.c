/* SPDX-License-Identifier: MIT */
/* gemma.c - classes of Gemma */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"

#include "base/ckd.h"

/* Tokens without a row: images and audio, whose vectors come from elsewhere. */
static enum gguf_status fill_rows(struct gg_convert_view *v,
                                  struct gguf_error *err)
{
    int64_t rows;
    if (v->n_dims != 2)
        return gg_convert_refuse_view(v, "is no matrix", err);
    if (!gg_convert_get_count(v->c, "vocab_size", &rows) || rows <= v->ne[1])
        return GGUF_OK;
    if (rows / 2 - GG_CONVERT_MORE_TOKENS > v->ne[1] ||
        gg_ckd_mul(&v->n_zeros, (uint64_t)(rows - v->ne[1]),
                   (uint64_t)v->ne[0]))
        return gg_convert_refuse_view(
            v, "has more rows than vocab_size allows", err);
    v->ne[1] = rows;
    return GGUF_OK;
}

static const struct gg_convert_transform filled = {
    .text = "rows of zeros up to vocab_size",
    .view = fill_rows,
    .if_added = true
};

/* Norms multiply by 1 + weight. */
static const struct gg_convert_name gemma_names[] = {
    N_HOW("model.norm", "output_norm", PLUS_1),
    N_HOW(L "input_layernorm", B "attn_norm", PLUS_1),
    N_HOW(L "post_attention_layernorm", B "ffn_norm", PLUS_1), END_NAMES
};

static const struct gg_convert_name gemma2_names[] = {
    N_HOW("model.norm", "output_norm", PLUS_1),
    N_HOW(L "input_layernorm", B "attn_norm", PLUS_1),
    N_HOW(L "post_attention_layernorm", B "post_attention_norm", PLUS_1),
    N_HOW(L "pre_feedforward_layernorm", B "ffn_norm", PLUS_1),
    N_HOW(L "post_feedforward_layernorm", B "post_ffw_norm", PLUS_1),
    N_HOW(L "self_attn.q_norm", B "attn_q_norm", PLUS_1),
    N_HOW(L "self_attn.k_norm", B "attn_k_norm", PLUS_1),
    END_NAMES
};

/* From here on they multiply by the weight. */
static const struct gg_convert_name gemma3n_names[] = {
    N(L "post_attention_layernorm", B "post_attention_norm"),
    N(L "pre_feedforward_layernorm", B "ffn_norm"),
    N(L "post_feedforward_layernorm", B "post_ffw_norm"),
    N_HOW("model.embed_tokens", "token_embd", filled),
    { .from = "model.embed_tokens_per_layer",
      .to = "per_layer_token_embd",
      .transform = &filled,
      .n_rows = "vocab_size_per_layer_input" },
    N("model.per_layer_model_projection", "per_layer_model_proj"),
    N("model.per_layer_projection_norm", "per_layer_proj_norm"),
    N(L "per_layer_input_gate", B "inp_gate"),
    N(L "per_layer_projection", B "proj"),
    N(L "post_per_layer_input_norm", B "post_norm"),
    N("model.altup_projections.@", "altup_proj"),
    N("model.altup_unembed_projections.@", "altup_unembd_proj"),
    N(L "altup.correction_coefs", B "altup_correct_coef"),
    N(L "altup.correct_output_scale", B "altup_correct_scale.weight"),
    N(L "altup.prediction_coefs", B "altup_predict_coef"),
    N(L "altup.modality_router", B "altup_router"),
    N(L "altup.router_norm", B "altup_router_norm"),
    N(L "laurel.linear_left", B "laurel_l"),
    N(L "laurel.linear_right", B "laurel_r"),
    N(L "laurel.post_laurel_norm", B "laurel_post_norm"),
    END_NAMES
};

static const struct gg_convert_name gemma4_names[] = {
    N(L "layer_scalar", B "layer_output_scale.weight"),
    N(L "router.proj", B "ffn_gate_inp"),
    N(L "router.scale", B "ffn_gate_inp.scale"),
    N(L "router.per_expert_scale", B "ffn_down_exps.scale"),
    N(L "experts.gate_up_proj", B "ffn_gate_up_exps.weight"),
    N(L "experts.down_proj", B "ffn_down_exps.weight"),
    EACH_EXPERT(L "experts.@."),
    N(L "pre_feedforward_layernorm_2", B "pre_ffw_norm_2"),
    N(L "post_feedforward_layernorm_1", B "post_ffw_norm_1"),
    N(L "post_feedforward_layernorm_2", B "post_ffw_norm_2"),
    END_NAMES
};

#define OWN_KEYS                                                              \
    U32("context_length", "max_position_embeddings"),                         \
        U32("embedding_length", "hidden_size"),                               \
        U32("block_count", "num_hidden_layers"),                              \
        U32("feed_forward_length", "intermediate_size"),                      \
        U32("attention.head_count", "num_attention_heads"),                   \
        U32("attention.head_count_kv",                                        \
            "num_key_value_heads num_attention_heads"),                       \
        F32("attention.layer_norm_rms_epsilon", "rms_norm_eps"),              \
        U32("attention.key_length", "head_dim"),                              \
        U32("attention.value_length", "head_dim")
#define GEMMA3_KEYS                                                           \
    OR("context_length", "max_position_embeddings", U32, 131072),             \
        OR("attention.head_count", "num_attention_heads", U32, 8),            \
        OR("attention.layer_norm_rms_epsilon", "rms_norm_eps", F32, 1e-6),    \
        OR("attention.key_length", "head_dim", U32, 256),                     \
        OR("attention.value_length", "head_dim", U32, 256),                   \
        OR("rope.freq_base",                                                  \
           "rope_parameters.full_attention.rope_theta "                       \
           "rope_parameters.rope_theta rope_theta",                           \
           F32, 1e6),                                                         \
        ABOVE_0("final_logit_softcapping", F32, "final_logit_softcapping"),   \
        WINDOW, OR("attention.head_count_kv", "num_key_value_heads", U32, 4)
#define SPARSITY                                                              \
    EACH("activation_sparsity_scale", F32, sparsity_scale, IN_BACK)

static const struct gg_convert_name embedding_names[] = {
    N("model.dense_0.linear", "dense_2"), N("model.dense_1.linear", "dense_3"),
    N_NOT("lm_head"), END_NAMES
};

/* ---- Gemma 3n ---- */

/* Quantile of the normal distribution by Newton's method, and its inverse.
 * config.json has the fraction of active gates in single precision, from which
 * the threshold in standard deviations is computed. */
static double normal_quantile(double p)
{
    double x = 0;
    if (!(p > 0 && p < 1))
        return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
    for (int k = 0; k < 100; k++) {
        const double below = 0.5 * erfc(-x / sqrt(2));
        const double density = exp(-x * x / 2) / sqrt(6.283185307179586);
        const double step = (below - p) / density;
        x -= step > 1 ? 1 : step < -1 ? -1 : step;
    }
    return x;
}

static double normal_part(double x)
{
    return (double)(float)(0.5 * erfc(-x / sqrt(2)));
}

static double sparsity_scale(const struct gg_hf_config *cfg, int64_t layer)
{
    return normal_quantile(
        (float)num_at(cfg, "activation_sparsity_pattern", layer));
}

static double gate_sparsity(const struct gg_hf_config *keys, int64_t layer)
{
    return value_or(
        normal_part(num_at(keys, "activation_sparsity_scale", layer)), 0);
}

static void put_gemma3n(struct gg_back_maker *m)
{
    gg_back_put_layers(m, "activation_sparsity_pattern", gate_sparsity);
    gg_back_put_num(m, "vocab_size_per_layer_input",
                    gg_back_count_rows(m, "per_layer_token_embd.weight"));
}

/* ---- Gemma 4 ---- */

/* Layers that share the keys of earlier ones are twice as wide. */
static double wide_feed_forward(const struct gg_hf_config *cfg, int64_t layer)
{
    const double width = num_at(cfg, "intermediate_size", layer);
    const double own = num_of(cfg, "num_hidden_layers") -
                       num_or(cfg, "num_kv_shared_layers", 0);
    return num_of(cfg, "use_double_wide_mlp") == 1
               ? is_above((double)layer + 1, own) * width + width
               : NAN;
}

static double kv_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    const double global = num_at(cfg, "num_global_key_value_heads", layer);
    if (!is_true(global))
        return NAN;
    return is_true(gg_convert_is_sliding(cfg, layer))
               ? num_at(cfg, "num_key_value_heads", layer)
               : global;
}

static double rotary_dims_sliding(const struct gg_hf_config *cfg)
{
    return floor(num_of(cfg, "head_dim") *
                 num_or(cfg, "rope_parameters.partial_rotary_factor", 1));
}

static void put_gemma4(struct gg_back_maker *m)
{
    const struct gg_hf_config *keys = &m->keys;
    gg_back_put_num(m, "intermediate_size",
                    num_of(keys, "feed_forward_length"));
    if (gg_hf_config_list_len(keys, "feed_forward_length") > 0)
        gg_back_put_flag(m, "use_double_wide_mlp", 1);
    gg_back_put_num(m, "num_key_value_heads",
                    num_of(keys, "attention.head_count_kv"));
    if (gg_hf_config_list_len(keys, "attention.head_count_kv") == 0)
        return;
    gg_back_put_num(m, "num_key_value_heads",
                    gg_back_first_layer(m, gg_back_sliding_kv_heads));
    gg_back_put_num(m, "num_global_key_value_heads",
                    gg_back_first_layer(m, gg_back_full_kv_heads));
}

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_gemma[] = {
    { .classes = "GemmaForCausalLM",
      .arch = "gemma",
      .ties = true,
      .drops_copy = true,
      .names = OVER(gemma_names),
      .keys = ROWS(OWN_KEYS),
      .last = ROWS(ALWAYS("/tokenizer.ggml.prefix_token_id", U32, 67),
                   ALWAYS("/tokenizer.ggml.suffix_token_id", U32, 69),
                   ALWAYS("/tokenizer.ggml.middle_token_id", U32, 68),
                   ALWAYS("/tokenizer.ggml.fsep_token_id", U32, 70)),
      .roles = "eot=<end_of_turn>",
      .only_keys = true },
    { .classes = "Gemma2ForCausalLM MERaLiON2ForConditionalGeneration",
      .arch = "gemma2",
      .ties = true,
      .drops_copy = true,
      .names = OVER(gemma2_names),
      .keys = ROWS(OWN_KEYS, FILE_TYPE,
                   F32("attn_logit_softcapping", "attn_logit_softcapping"),
                   F32("final_logit_softcapping", "final_logit_softcapping"),
                   WINDOW),
      .only_keys = true },
    { .classes = "Gemma3ForCausalLM Gemma3ForConditionalGeneration",
      .model_type = "gemma3_text",
      .arch = "gemma3",
      .ties = true,
      .drops_copy = true,
      .names = OVER(gemma2_names),
      .keys = ROWS(GEMMA3_KEYS) },
    { .classes = "Gemma3TextModel",
      .arch = "gemma-embedding",
      .before = "model.",
      .names = OVER_2(embedding_names, gemma2_names),
      .keys = ROWS(GEMMA3_KEYS, U32("dense_2_feat_in", "dense_0_in"),
                   U32("dense_2_feat_out", "dense_0_out"),
                   U32("dense_3_feat_in", "dense_1_in"),
                   U32("dense_3_feat_out", "dense_1_out")),
      .n_dense = 2,
      .dense_asked = true },
    { .classes = "Gemma3nForCausalLM Gemma3nForConditionalGeneration",
      .arch = "gemma3n",
      .back = put_gemma3n,
      .ties = true,
      .drops_copy = true,
      .names = OVER(gemma3n_names),
      .keys = ROWS(GEMMA3_KEYS, U32("altup.active_idx", "altup_active_idx"),
                   U32("altup.num_inputs", "altup_num_inputs"),
                   U32("embedding_length_per_layer_input",
                       "hidden_size_per_layer_input"),
                   U32("attention.shared_kv_layers", "num_kv_shared_layers"),
                   SPARSITY, PATTERN) },
    { .classes = "Gemma4ForCausalLM Gemma4ForConditionalGeneration "
                 "Gemma4UnifiedForConditionalGeneration",
      .model_type = "gemma4_text",
      .instead = { { "rope_theta",
                     "rope_parameters.full_attention.rope_theta" } },
      .arch = "gemma4",
      .back = put_gemma4,
      .ties = true,
      .drops_copy = true,
      .names = OVER_2(gemma4_names, gemma3n_names),
      .keys = ROWS(
          OR("context_length", "max_position_embeddings", U32, 131072),
          EACH("feed_forward_length", U32, wide_feed_forward, IN_BACK),
          U32("feed_forward_length", "intermediate_size"),
          EACH("attention.head_count_kv", U32, kv_heads, IN_BACK),
          U32("attention.head_count_kv", "num_key_value_heads"),
          U32("attention.key_length", "global_head_dim"),
          U32("attention.value_length", "global_head_dim"),
          ABOVE_0("final_logit_softcapping", F32, "final_logit_softcapping"),
          WINDOW, U32("attention.shared_kv_layers", "num_kv_shared_layers"),
          ELSE("embedding_length_per_layer_input", U32,
               "hidden_size_per_layer_input", 0),
          PATTERN, U32("attention.key_length_swa", "head_dim"),
          U32("attention.value_length_swa", "head_dim"),
          U32("expert_feed_forward_length",
              "expert_intermediate_size moe_intermediate_size"),
          U32("rope.dimension_count", "global_head_dim"),
          OF("rope.dimension_count_swa", U32, rotary_dims_sliding, NO_BACK)),
      .last = BEGINS,
      .pieces = "gemma4" },
    { .classes = NULL }
};
