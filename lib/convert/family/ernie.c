/* SPDX-License-Identifier: MIT */
/* ernie.c - classes of ERNIE */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name ernie_names[] = {
    N_AXES(L "self_attn.qkv_proj", B "attn_q", "[qrows@0] x, * > x, *"),
    N_AXES(L "self_attn.qkv_proj", B "attn_k", "[krows@qrows] x, * > x, *"),
    N_AXES(L "self_attn.qkv_proj", B "attn_v", "[@qkrows] x, * > x, *"),
    N_HOW(L "mlp.up_gate_proj", B "ffn_gate", HALF_1),
    N_HOW(L "mlp.up_gate_proj", B "ffn_up", HALF_2),
    END_NAMES
};

static const struct gg_convert_name ernie_moe_names[] = {
    N(L "mlp.moe_statics.e_score_correction_bias", B "exp_probs_b.bias"),
    N_NOT("model.mtp_block.%.input_layernorm"),
    N_NOT("model.mtp_block.%.post_attention_layernorm"),
    N_NOT("model.mtp_block.%.self_attn.q_proj"),
    N_NOT("model.mtp_block.%.self_attn.k_proj"),
    N_NOT("model.mtp_block.%.self_attn.v_proj"),
    N_NOT("model.mtp_block.%.self_attn.o_proj"),
    N_NOT("model.mtp_block.%.mlp.gate_proj"),
    N_NOT("model.mtp_block.%.mlp.up_proj"),
    N_NOT("model.mtp_block.%.mlp.down_proj"),
    N_NOT("model.mtp_emb_norm.%"),
    N_NOT("model.mtp_hidden_norm.%"),
    N_NOT("model.mtp_linear_proj.%"),
    END_NAMES
};

static double shared_width(const struct gg_hf_config *cfg)
{
    const double n = num_of(cfg, "moe_num_shared_experts");
    return n > 0 ? num_of(cfg, "moe_intermediate_size") * n : NAN;
}

const struct gg_convert_arch gg_convert_family_ernie[] = {
    { .classes = "Ernie4_5_ForCausalLM Ernie4_5ForCausalLM",
      .arch = "ernie4_5",
      .ties = true,
      .names = OVER(ernie_names) },
    { .classes = "Ernie4_5_MoeForCausalLM",
      .arch = "ernie4_5-moe",
      .ties = true,
      .names = OVER_2(ernie_moe_names, gg_convert_names_experts),
      .keys = ROWS(
          U32("expert_count", "moe_num_experts"),
          U32("expert_used_count", "moe_k"),
          U32("interleave_moe_layer_step", "moe_layer_interval"),
          U32("leading_dense_block_count", "moe_layer_start_index"), EXPERT_FF,
          U32("expert_shared_count", "moe_num_shared_experts"),
          /* written because it is the width; readers ignore it if tensors have
           * widths */
          OF("expert_shared_feed_forward_length", U32, shared_width,
             NO_BACK)) },
    { .classes = "PaddleOCRVLForConditionalGeneration",
      .arch = "paddleocr",
      .names = LLAMA },
    { .classes = NULL }
};
