/* SPDX-License-Identifier: MIT */
/* phi.c - classes of Phi */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name phi3_names[] = {
    N(L "self_attn.qkv_proj", B "attn_qkv"),
    N(L "mlp.gate_up_proj", B "ffn_up"), /* both, as one */
    END_NAMES
};

static const struct gg_convert_name phi2_names[] = {
    N("model.final_layernorm", "output_norm"),
    N(L "self_attn.dense", B "attn_output"), N(L "mlp.fc1", B "ffn_up"),
    N(L "mlp.fc2", B "ffn_down"), END_NAMES
};

static double rotary_dims(const struct gg_hf_config *cfg)
{
    return gg_convert_rotary_width(cfg, 1);
}

static double phi2_rotary_dims(const struct gg_hf_config *cfg)
{
    return gg_convert_rotary_width(cfg, NAN);
}

static double four_times_width(const struct gg_hf_config *cfg)
{
    return 4 * num_of(cfg, "hidden_size n_embd");
}

const struct gg_convert_arch gg_convert_family_phi[] = {
    { .classes = "Phi3ForCausalLM Phi4ForCausalLMV",
      .arch = "phi3",
      .names = OVER(phi3_names),
      .keys =
          ROWS(U32("context_length", "max_position_embeddings"),
               U32("rope.scaling.original_context_length",
                   "original_max_position_embeddings "
                   "rope_scaling.original_max_position_embeddings "
                   "rope_parameters.original_max_position_embeddings"),
               U32("embedding_length", "hidden_size"),
               U32("feed_forward_length", "intermediate_size"),
               U32("block_count", "num_hidden_layers"),
               U32("attention.head_count", "num_attention_heads"),
               U32("attention.head_count_kv", "num_key_value_heads"),
               F32("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
               OF("rope.dimension_count", U32, rotary_dims, NO_BACK),
               F32("rope.freq_base", "rope_theta rope_parameters.rope_theta"),
               FILE_TYPE,
               ELSE("attention.sliding_window", U32, "sliding_window", 0)),
      .only_keys = true,
      .rope_count = true },
    { .classes = "PhiForCausalLM",
      .arch = "phi2",
      .names = OVER(phi2_names),
      .keys = ROWS(
          U32("context_length", "n_positions max_position_embeddings"),
          U32("embedding_length", "hidden_size n_embd"),
          ELSE_OF("feed_forward_length", U32, "intermediate_size",
                  four_times_width),
          U32("block_count", "num_hidden_layers n_layer"),
          U32("attention.head_count", "num_attention_heads n_head"),
          U32("attention.head_count_kv",
              "num_key_value_heads num_attention_heads n_head"),
          F32("attention.layer_norm_epsilon",
              "layer_norm_epsilon layer_norm_eps"),
          THETA, OF("rope.dimension_count", U32, phi2_rotary_dims, NO_BACK),
          FILE_TYPE, ALWAYS("/tokenizer.ggml.add_bos_token", BOOL, 0)),
      .only_keys = true,
      .rope_count = true },
    { .classes = "PhiMoEForCausalLM PhimoeForCausalLM",
      .arch = "phimoe",
      .names = OVER(gg_convert_names_mixtral),
      .keys = ROWS(
          U32("context_length", "max_position_embeddings"),
          U32("rope.scaling.original_context_length",
              "original_max_position_embeddings "
              "rope_scaling.original_max_position_embeddings "
              "rope_parameters.original_max_position_embeddings"),
          U32("embedding_length", "hidden_size"),
          U32("feed_forward_length", "intermediate_size"),
          U32("block_count", "num_hidden_layers"),
          U32("attention.head_count", "num_attention_heads"),
          U32("attention.head_count_kv", "num_key_value_heads"),
          F32("attention.layer_norm_rms_epsilon", "rms_norm_eps"), ALL_ROT,
          F32("rope.freq_base", "rope_theta rope_parameters.rope_theta"),
          FILE_TYPE,
          ELSE("attention.sliding_window", U32, "sliding_window", 0),
          U32("expert_used_count", "num_experts_per_tok"),
          U32("expert_count", "num_local_experts")),
      .only_keys = true },
    { .classes = NULL }
};
