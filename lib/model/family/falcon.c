/* SPDX-License-Identifier: MIT */
/* falcon.c - Falcon */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "falcon", .runs = true,
      ONE, LAYER, NEOX, .order = GG_ORDER_PARALLEL,
      .qkv = GG_QKV_FUSED, .ffn = GG_FFN_PLAIN, .act = GG_ACT_GELU,
      MORE(M(ATTN_NORM_2), M(ATTN_NORM_2_B)),
      .odd = "attention on attn_norm_2 if it is there" },
    { .name = "falcon-h1", .runs = true,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(FFN_NORM_BARE)), OUTPUT_NORM),
      NEOX, FREQS, .mixer = GG_MIX_ATTENTION_MAMBA2, .out_b = GG_MAY,
      .ffn_b = GG_MAY, MORE(SSM, K(ssm_groups), M(FFN_NORM)),
      IDLE(W(ATTN_OUT_B), W(ROPE_FREQS)),
      .odd = "attn_output.bias and rope_freqs are not used" },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_falcon = { rows, GG_LEN(rows) };
