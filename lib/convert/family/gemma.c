/* SPDX-License-Identifier: MIT */
/* gemma.c - classes of Gemma */
#include "config.h"
#include "convert/class_row.h"

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
    N_HOW("model.embed_tokens", "token_embd", FILL),
    N_HOW("model.embed_tokens_per_layer", "per_layer_token_embd", FILL),
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
        OF("final_logit_softcapping", F32,                                    \
           "final_logit_softcapping>0?final_logit_softcapping"),              \
        WINDOW, OR("attention.head_count_kv", "num_key_value_heads", U32, 4)
#define SPARSITY                                                              \
    EACH("activation_sparsity_scale", F32,                                    \
         "quantile(activation_sparsity_pattern)")

static const struct gg_convert_name embedding_names[] = {
    N("model.dense_0.linear", "dense_2"), N("model.dense_1.linear", "dense_3"),
    N_NOT("lm_head"), END_NAMES
};

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
    { .classes = "Gemma2ForCausalLM",
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
      .arch = "gemma4",
      .ties = true,
      .drops_copy = true,
      .names = OVER_2(gemma4_names, gemma3n_names),
      .keys = ROWS(
          OR("context_length", "max_position_embeddings", U32, 131072),
          EACH("feed_forward_length", U32,
               "use_double_wide_mlp=1?(i+1>num_hidden_layers-num_kv_shared_"
               "layers|0)*intermediate_size+intermediate_size"),
          U32("feed_forward_length", "intermediate_size"),
          EACH("attention.head_count_kv", U32,
               "num_global_key_value_heads?(layer_types:sliding_attention?num_"
               "key_value_heads:num_global_key_value_heads)"),
          U32("attention.head_count_kv", "num_key_value_heads"),
          U32("attention.key_length", "global_head_dim"),
          U32("attention.value_length", "global_head_dim"),
          OF("final_logit_softcapping", F32,
             "final_logit_softcapping>0?final_logit_softcapping"),
          WINDOW, U32("attention.shared_kv_layers", "num_kv_shared_layers"),
          OF("embedding_length_per_layer_input", U32,
             "hidden_size_per_layer_input|0"),
          PATTERN, U32("attention.key_length_swa", "head_dim"),
          U32("attention.value_length_swa", "head_dim"),
          U32("expert_feed_forward_length",
              "expert_intermediate_size moe_intermediate_size"),
          U32("rope.dimension_count", "global_head_dim"),
          OF("rope.dimension_count_swa", U32,
             "head_dim*rope_parameters.partial_rotary_factor|1//1")),
      .last = BEGINS,
      .pieces = "gemma4" },
    { .classes = NULL }
};
