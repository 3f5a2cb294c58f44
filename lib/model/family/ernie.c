/* SPDX-License-Identifier: MIT */
/* ernie.c - ERNIE */
#include "config.h"
#include "model/family/arch_row.h"

static bool is_leading_step(const struct gg_hparams_reader *r, uint32_t il)
{
    const uint32_t step = r->hp->moe_step;
    return il >= r->hp->n_dense && step && (il + 1) % step == 0;
}

static const struct gg_arch_experts leading_in_steps = {
    .text = "after leading_dense_block_count, in steps",
    .of_layer = is_leading_step
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "ernie4_5", .runs = true, LLAMA, .out_b = GG_MAY,
      UNUSED(W(ATTN_OUT_B)),
      .remark = "attn_output.bias is not added" },
    { .name = "ernie4_5-moe", .runs = true, LLAMA, .out_b = GG_MAY,
      .moe = { .where = &leading_in_steps, .expert_bias = GG_MAY,
               .norm = GG_MUST, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_if_wide },
      MORE(K(moe_step)), UNUSED(W(ATTN_OUT_B)),
      .remark = "attn_output.bias is not added" },
    { .name = "paddleocr", .runs = true, LLAMA, .rope = GGUF_ROPE_MROPE,
      .mrope_sections = true, .out_b = GG_MAY },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_ernie = { rows, GG_LEN(rows) };
