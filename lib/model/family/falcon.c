/* SPDX-License-Identifier: MIT */
/* falcon.c - Falcon */
#include "config.h"
#include "model/family/arch_row.h"

typedef struct gguf_tensor tensor;

static const uint16_t w_norm[] = { M(M2_NORM), 0 };

/* Falcon-H1: attention and Mamba-2 on the same input, each with its own output
 * matrix. */
static tensor *mix_attention_mamba2(const struct gg_model_at *at, tensor *x)
{
    tensor *seen =
        gg_model_linear(at, GG_W_ATTN_OUT, gg_model_mix_attention(at, x));
    tensor *kept =
        gg_model_linear(at, GG_W_SSM_OUT, gg_model_mix_mamba2(at, x));
    return gguf_op_add(at->c, seen, kept);
}

static const struct gg_mixer attention_mamba2 = {
    .text = "attention and Mamba-2 side by side",
    .weights = gg_mixer_mamba2_weights,
    .more_weights = w_norm,
    .heads = true,
    .mix = mix_attention_mamba2,
    .memory = GG_MODEL_MEMORY_KV | GG_MODEL_MEMORY_STATES,
    .keys = gg_model_size_keys_heads,
    .states = gg_model_size_states_mamba2,
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "falcon", .runs = true, ONE, LAYER, NEOX,
      .order = GG_ORDER_PARALLEL, .qkv = &gg_arch_qkv_fused,
      .ffn = &gg_ffn_plain, .act = &gg_ffn_act_gelu,
      MORE(M(ATTN_NORM_2), M(ATTN_NORM_2_B)),
      .remark = "attention on attn_norm_2 if it is there" },
    { .name = "falcon-h1", .runs = true,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(FFN_NORM_BARE)), OUTPUT_NORM),
      NEOX, FREQS, .mixer = &attention_mamba2, .out_b = GG_MAY,
      .ffn_b = GG_MAY, MORE(SSM, K(ssm_groups), M(FFN_NORM)),
      UNUSED(W(ATTN_OUT_B), W(ROPE_FREQS)),
      .remark = "attn_output.bias and rope_freqs are not used" },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_falcon = { rows, GG_LEN(rows) };
