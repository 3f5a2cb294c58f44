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

static double residual_scale(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "scale_depth") / sqrt(num_of(cfg, "num_hidden_layers"));
}

static double logit_scale(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "hidden_size") / num_of(cfg, "dim_model_base");
}

static void put_minicpm(struct gg_back_maker *m)
{
    const struct gg_hf_config *keys = &m->keys;
    gg_back_put_num(m, "scale_depth",
                    num_of(keys, "residual_scale") *
                        sqrt(num_of(keys, "block_count")));
    gg_back_put_num(m, "dim_model_base",
                    num_of(keys, "embedding_length") /
                        num_of(keys, "logit_scale"));
}

const struct gg_convert_arch gg_convert_family_minicpm[] = {
    { .classes = "MiniCPMForCausalLM",
      .arch = "minicpm",
      .back = put_minicpm,
      .names = LLAMA,
      .keys = ROWS(F32("embedding_scale", "scale_emb"),
                   OF("residual_scale", F32, residual_scale, IN_BACK),
                   OF("logit_scale", F32, logit_scale, IN_BACK)),
      .permuted = true },
    { .classes = "MiniCPM3ForCausalLM",
      .arch = "minicpm3",
      .names = OVER(minicpm3_names),
      .keys = ROWS(FILE_TYPE, U32("context_length", "max_position_embeddings"),
                   U32("embedding_length", "hidden_size"),
                   U32("block_count", "num_hidden_layers"),
                   U32("feed_forward_length", "intermediate_size"),
                   U32("attention.head_count", "num_attention_heads"),
                   U32("attention.head_count_kv", "num_key_value_heads"),
                   F32("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
                   U32("vocab_size", "vocab_size"),
                   U32("attention.q_lora_rank", "q_lora_rank"),
                   U32("attention.kv_lora_rank", "kv_lora_rank"),
                   OF("attention.key_length", U32, gg_convert_mla_key_length,
                      gg_back_put_nope),
                   U32("rope.dimension_count", "qk_rope_head_dim")),
      .only_keys = true },
    { .classes = NULL }
};
