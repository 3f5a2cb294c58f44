/* SPDX-License-Identifier: MIT */
/* kimi.c - classes of Kimi */
#include "config.h"
#include "convert/class_row.h"

#define BM L "block_sparse_moe."

static const struct gg_convert_name kimi_names[] = {
    N_AXES(L "self_attn.q_conv1d", B "ssm_conv1d_q", "x, *, c > 1, x, 1, c"),
    N_AXES(L "self_attn.k_conv1d", B "ssm_conv1d_k", "x, *, c > 1, x, 1, c"),
    N_AXES(L "self_attn.v_conv1d", B "ssm_conv1d_v", "x, *, c > 1, x, 1, c"),
    N(L "self_attn.f_a_proj", B "ssm_f_a"),
    N(L "self_attn.f_b_proj", B "ssm_f_b"),
    N(L "self_attn.g_a_proj", B "ssm_g_a"),
    N(L "self_attn.g_b_proj", B "ssm_g_b"),
    N(L "self_attn.b_proj", B "ssm_beta"),
    N_HOW_AXES(L "self_attn.A_log", B "ssm_a", NEG_EXP,
               "1, 1, x, 1 > 1, 1, x, 1"),
    N(L "self_attn.dt_bias", B "ssm_dt.bias"),
    N(L "self_attn.o_norm", B "ssm_norm"),
    N(BM "gate.e_score_correction_bias", B "exp_probs_b.bias"),
    N(BM "shared_experts.gate_proj", B "ffn_gate_shexp"),
    N(BM "shared_experts.up_proj", B "ffn_up_shexp"),
    N(BM "shared_experts.down_proj", B "ffn_down_shexp"),
    END_NAMES
};

/* config.json counts layers from 1. */
static double is_full_attention(const struct gg_hf_config *cfg, int64_t layer)
{
    return gg_hf_config_list_has(cfg, "linear_attn_config.full_attn_layers",
                                 layer + 1);
}

static void put_attention_layers(struct gg_back_maker *m)
{
    const json_t *heads =
        gg_hf_config_get(&m->keys, "attention.head_count_kv");
    json_t *list = json_is_array(heads) ? json_array() : NULL;
    for (size_t i = 0; i < json_array_size(heads); i++)
        if (json_integer_value(json_array_get(heads, i)) > 0)
            json_array_append_new(list, json_integer((json_int_t)i + 1));
    if (list)
        gg_back_put(m->root, "linear_attn_config.full_attn_layers", list);
    gg_back_put_kv_heads(m);
}

static double key_length(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "kv_lora_rank") + num_of(cfg, "qk_rope_head_dim");
}

const struct gg_convert_arch gg_convert_family_kimi[] = {
    { .classes = "KimiLinearForCausalLM KimiLinearModel",
      .arch = "kimi-linear",
      .names = { kimi_names, gg_convert_names_latent, gg_convert_names_mixtral,
                 gg_convert_names_llama },
      .keys = ROWS(
          EACH("attention.head_count_kv", U32, is_full_attention,
               put_attention_layers),
          VOCAB_SIZE,
          U32("ssm.conv_kernel", "linear_attn_config.short_conv_kernel_size"),
          U32("kda.head_dim", "linear_attn_config.head_dim"),
          U32("attention.q_lora_rank", "q_lora_rank"),
          U32("attention.kv_lora_rank", "kv_lora_rank"),
          U32("rope.dimension_count", "qk_rope_head_dim"),
          OF("attention.key_length", U32, key_length, NO_BACK),
          OF("attention.key_length_mla", U32, gg_convert_mla_key_length,
             gg_back_put_nope_of_mla),
          U32("attention.value_length_mla", "v_head_dim"), EXPERT_FF,
          U32("expert_shared_count", "num_shared_experts"), LEAD,
          WEIGHTS_SCALE) },
    { .classes = NULL }
};
