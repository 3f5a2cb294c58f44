/* SPDX-License-Identifier: MIT */
/* glm.c - classes of ChatGLM and GLM */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name glm4_names[] = {
    N(L "post_self_attn_layernorm", B "post_attention_norm"),
    N(L "post_mlp_layernorm", B "post_ffw_norm"),
    N(L "mlp.gate_up_proj", B "ffn_up"), END_NAMES
};

/* Of models that see: queries and keys turn in pairs in their code, and in
 * halves where positions have several axes. */
static const struct gg_convert_name glm4v_names[] = {
    N_HOW(L "self_attn.q_proj", B "attn_q", HALVES),
    N_HOW(L "self_attn.k_proj", B "attn_k", HALVES), END_NAMES
};

static const struct gg_convert_name glm_names[] = {
    N(L "mlp.gate_up_proj", B "ffn_up"), /* both, as one */
    END_NAMES
};

static const struct gg_convert_name chatglm_names[] = {
    N("embedding.word_embeddings", "token_embd"),
    N("encoder.final_layernorm", "output_norm"),
    N("output_layer", "output"),
    N("encoder.layers.%.input_layernorm", B "attn_norm"),
    N("encoder.layers.%.self_attention.query_key_value", B "attn_qkv"),
    N("encoder.layers.%.self_attention.dense", B "attn_output"),
    N("encoder.layers.%.post_attention_layernorm", B "ffn_norm"),
    N("encoder.layers.%.mlp.dense_h_to_4h", B "ffn_up"),
    N("encoder.layers.%.mlp.dense_4h_to_h", B "ffn_down"),
    N_NOT("rotary_pos_emb.inv_freq"),
    END_NAMES
};

static const struct gg_convert_name glm4moe_names[] = {
    N(L "post_attention_layernorm", B "post_attention_norm"), END_NAMES
};

#define GLM4_MOE                                                              \
    ROWS(BLOCKS_NEXTN,                                                        \
         OF("rope.dimension_count", U32,                                      \
            HEAD "*partial_rotary_factor|rope_parameters."                    \
                 "partial_rotary_factor|0.5//1"),                             \
         EXPERT_FF, U32("expert_shared_count", "n_shared_experts"), LEAD,     \
         ALWAYS("expert_gating_func", U32, 2), WEIGHTS_SCALE, WEIGHTS_NORM,   \
         NEXTN)

/* Matrices for words, and others for what is seen. */
static const struct gg_convert_name cogvlm_names[] = {
    N(L "self_attn.language_expert_query_key_value", B "attn_qkv"),
    N(L "self_attn.language_expert_dense", B "attn_output"),
    N(L "self_attn.vision_expert_query_key_value", B "vis_attn_qkv"),
    N(L "self_attn.vision_expert_dense", B "vis_attn_output"),
    N(L "mlp.language_mlp.gate_proj", B "ffn_gate"),
    N(L "mlp.language_mlp.up_proj", B "ffn_up"),
    N(L "mlp.language_mlp.down_proj", B "ffn_down"),
    N(L "mlp.vision_mlp.gate_proj", B "vis_gate"),
    N(L "mlp.vision_mlp.up_proj", B "vis_up"),
    N(L "mlp.vision_mlp.down_proj", B "vis_down"),
    END_NAMES
};

const struct gg_convert_arch gg_convert_family_glm[] = {
    { .classes = "Glm4ForCausalLM Glm4vForConditionalGeneration",
      .arch = "glm4",
      .when = "rope_parameters.mrope_section.0|"
              "rope_scaling.mrope_section.0|0=0",
      .roles = GLM_ROLES,
      .names = OVER(glm4_names),
      .keys = ROWS(PART_ROT("0.5")) },
    { .classes = "Glm4vForConditionalGeneration "
                 "GlmOcrForConditionalGeneration Glm4ForCausalLM",
      .arch = "glm4",
      .roles = GLM_ROLES,
      .layers = LAYERS_NEXTN,
      .names = OVER_3(glm4v_names, gg_convert_names_nextn, glm4_names),
      .keys = ROWS(BLOCKS_NEXTN, PART_ROT("0.5"), NEXTN) },
    { .classes = "ChatGLMModel ChatGLMForConditionalGeneration",
      .arch = "chatglm",
      .roles = "eos=<|endoftext|> eot=<|user|> unk=<|endoftext|>",
      .strip = "transformer.",
      .names = { chatglm_names },
      .keys = ROWS(
          U32("context_length", "seq_length"),
          U32("embedding_length", "hidden_size"),
          OF("feed_forward_length", U32,
             "ffn_hidden_size|intermediate_size|(4*hidden_size)"),
          U32("block_count", "num_layers num_hidden_layers"),
          U32("attention.head_count", "num_attention_heads"),
          OF("attention.head_count_kv", U32,
             "multi_query_group_num|num_key_value_heads|num_attention_heads"),
          OR("attention.layer_norm_rms_epsilon",
             "layernorm_epsilon rms_norm_eps", F32, 1e-5),
          FILE_TYPE,
          OF("rope.dimension_count", U32,
             "attention_dim|kv_channels|" HEAD
             "*partial_rotary_factor|0.5//1"),
          ALWAYS("/tokenizer.ggml.add_bos_token", BOOL, 0),
          OF("rope.freq_base", F32, "10000*rope_ratio|1")),
      .only_keys = true },
    /* GLM-4 and GLM-Edge in transformers' own form */
    { .classes = "GlmForCausalLM",
      .arch = "chatglm",
      .roles = "eos=<|endoftext|> eot=<|user|> unk=<|endoftext|>",
      .names = OVER(glm_names),
      .keys = ROWS(OF("rope.dimension_count", U32,
                      HEAD "*partial_rotary_factor|rope_parameters."
                           "partial_rotary_factor|0.5//1"),
                   ALWAYS("/tokenizer.ggml.add_bos_token", BOOL, 0)) },
    { .classes = "Glm4MoeForCausalLM Glm4vMoeForConditionalGeneration",
      .arch = "glm4moe",
      .roles = GLM_MOE_ROLES,
      .names = OVER_3(glm4moe_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .layers = LAYERS_NEXTN,
      .keys = GLM4_MOE },
    { .classes = "SolarOpenForCausalLM",
      .arch = "glm4moe",
      .roles = "eos=<|endoftext|> eot=<|endoftext|> unk=<unk> "
               "bos=<|startoftext|>",
      .names = OVER_3(glm4moe_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .layers = LAYERS_NEXTN,
      .keys = GLM4_MOE },
    { .classes = "GlmMoeDsaForCausalLM",
      .arch = "glm-dsa",
      .roles = GLM_MOE_ROLES,
      .when = "rope_parameters.partial_rotary_factor|"
              "partial_rotary_factor|1=1",
      .layers = LAYERS_NEXTN,
      .names = { gg_convert_names_latent, gg_convert_names_indexer,
                 gg_convert_names_nextn, gg_convert_names_experts,
                 gg_convert_names_llama },
      .keys = ROWS(BLOCKS_NEXTN, LATENT_KEYS, NEXTN, INDEXER_KEYS,
                   EACH("attention.indexer.types", BOOL,
                        "i<len(indexer_types)?indexer_types:full")) },
    { .classes = "CogVLMForCausalLM",
      .arch = "cogvlm",
      .names = OVER(cogvlm_names),
      .rope_count = true,
      .vocab_size = true },
    { .classes = NULL }
};
