/* SPDX-License-Identifier: MIT */
/* ernie.c - ERNIE */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "ernie4_5", .runs = true, LLAMA, .out_b = GG_MAY,
      IDLE(W(ATTN_OUT_B)),
      .odd = "attn_output.bias is not added" },
    { .name = "ernie4_5-moe", .runs = true, LLAMA, .out_b = GG_MAY,
      .moe = { .where = GG_EXPERTS_LEAD_STEP, .select_b = GG_MAY,
               .norm = GG_MUST, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_WIDTH_ONLY },
      MORE(K(moe_step)), IDLE(W(ATTN_OUT_B)),
      .odd = "attn_output.bias is not added" },
    { .name = "paddleocr", .runs = true, LLAMA, .rope = GGUF_ROPE_MROPE,
      .rope_axes = true, .out_b = GG_MAY },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_ernie = { rows, GG_LEN(rows) };
