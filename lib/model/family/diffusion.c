/* SPDX-License-Identifier: MIT */
/* diffusion.c - models that fill in masked tokens */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "dream", .runs = true, LLAMA, NEOX, .bidirectional = true,
      .whole_sequence = true, .output_b = GG_MAY, UNUSED(W(OUTPUT_B)),
      .remark = "output.bias is not added" },
    { .name = "llada", .runs = true, LLAMA, FREQS,
      .qkv = &gg_arch_qkv_separate, .out_b = GG_MAY, .ffn_b = GG_MAY,
      .bidirectional = true, .whole_sequence = true,
      UNUSED(W(ATTN_OUT_B), W(FFN_GATE_B), W(FFN_UP_B), W(FFN_DOWN_B),
             W(ROPE_FREQS)),
      .remark = "biases and rope_freqs are not used" },
    { .name = "llada-moe", .runs = true, LLAMA, NEOX, OWN, HEAD_NORM,
      .bidirectional = true, .whole_sequence = true,
      .moe = MOE_ALL(NO, OR_PART) },
    { .name = "rnd1", .runs = true, LLAMA, NEOX, HEAD_NORM,
      .bidirectional = true,
      .whole_sequence = true, .moe = MOE_ALL(MUST, OR_PART) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_diffusion = { rows, GG_LEN(rows) };
