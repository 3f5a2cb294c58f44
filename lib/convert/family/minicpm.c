/* SPDX-License-Identifier: MIT */
/* minicpm.c - classes of MiniCPM */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name minicpm3_names[] = {
    N(L "self_attn.q_a_proj", B "attn_q_a"),
    N(L "self_attn.q_a_layernorm", B "attn_q_a_norm"),
    N(L "self_attn.q_b_proj", B "attn_q_b"),
    N(L "self_attn.kv_a_proj_with_mqa", B "attn_kv_a_mqa"),
    N(L "self_attn.kv_a_layernorm", B "attn_kv_a_norm"),
    N(L "self_attn.kv_b_proj", B "attn_kv_b"),
    END_NAMES
};

const struct gg_convert_arch gg_convert_family_minicpm[] = {
    { .classes = "MiniCPMForCausalLM",
      .arch = "minicpm",
      .names = LLAMA,
      .keys = ROWS(
          F32("embedding_scale", "scale_emb"),
          OF("residual_scale", F32, "scale_depth/sqrt(num_hidden_layers)"),
          OF("logit_scale", F32, "hidden_size/dim_model_base")),
      .turned = true },
    { .classes = "MiniCPM3ForCausalLM",
      .arch = "minicpm3",
      .names = OVER(minicpm3_names),
      .keys = ROWS(
          FILE_TYPE, U32("context_length", "max_position_embeddings"),
          U32("embedding_length", "hidden_size"),
          U32("block_count", "num_hidden_layers"),
          U32("feed_forward_length", "intermediate_size"),
          U32("attention.head_count", "num_attention_heads"),
          U32("attention.head_count_kv", "num_key_value_heads"),
          F32("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
          U32("vocab_size", "vocab_size"),
          U32("attention.q_lora_rank", "q_lora_rank"),
          U32("attention.kv_lora_rank", "kv_lora_rank"),
          OF("attention.key_length", U32, "qk_nope_head_dim+qk_rope_head_dim"),
          U32("rope.dimension_count", "qk_rope_head_dim")),
      .only_keys = true },
    { .classes = NULL }
};
