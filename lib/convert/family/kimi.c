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
    { L "self_attn.A_log", B "ssm_a", GG_HOW_NEG_EXP,
      "1, 1, x, 1 > 1, 1, x, 1", NULL },
    N(L "self_attn.dt_bias", B "ssm_dt.bias"),
    N(L "self_attn.o_norm", B "ssm_norm"),
    N(BM "gate.e_score_correction_bias", B "exp_probs_b.bias"),
    N(BM "shared_experts.gate_proj", B "ffn_gate_shexp"),
    N(BM "shared_experts.up_proj", B "ffn_up_shexp"),
    N(BM "shared_experts.down_proj", B "ffn_down_shexp"),
    END_NAMES
};

const struct gg_convert_arch gg_convert_family_kimi[] = {
    { .classes = "KimiLinearForCausalLM KimiLinearModel",
      .arch = "kimi-linear",
      .names = { kimi_names, gg_convert_names_latent, gg_convert_names_mixtral,
                 gg_convert_names_llama },
      .keys = ROWS(
          EACH("attention.head_count_kv", U32,
               "has(linear_attn_config.full_attn_layers,1)"),
          VOCAB_SIZE,
          U32("ssm.conv_kernel", "linear_attn_config.short_conv_kernel_size"),
          U32("kda.head_dim", "linear_attn_config.head_dim"),
          U32("attention.q_lora_rank", "q_lora_rank"),
          U32("attention.kv_lora_rank", "kv_lora_rank"),
          U32("rope.dimension_count", "qk_rope_head_dim"),
          OF("attention.key_length", U32, "kv_lora_rank+qk_rope_head_dim"),
          OF("attention.key_length_mla", U32, NOPE "+qk_rope_head_dim"),
          U32("attention.value_length_mla", "v_head_dim"), EXPERT_FF,
          U32("expert_shared_count", "num_shared_experts"), LEAD,
          WEIGHTS_SCALE) },
    { .classes = NULL }
};
