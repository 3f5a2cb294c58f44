/* SPDX-License-Identifier: MIT */
/* hunyuan.c - Hunyuan */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "hunyuan-dense", .runs = true, LLAMA, NEOX,
      .qk_norm = { .form = GG_QK_HEAD, .after_rope = true },
      MORE(KM(rope_alpha)) },
    { .name = "hunyuan-moe", .runs = true, LLAMA, NEOX,
      .qk_norm = { .form = GG_QK_HEAD, .after_rope = true },
      .moe = { .where = &gg_arch_experts_all, .norm = GG_MUST,
               .shared = &gg_arch_shared_or_model } },
    { .name = "hunyuan_vl", .runs = true, LLAMA, NEOX, .mrope_sections = true,
      .qk_norm = { .form = GG_QK_HEAD, .after_rope = true },
      MORE(KM(rope_alpha)) },
    { .name = "hy_v3", .runs = true, LLAMA, NEOX, HEAD_NORM,
      .moe = { .where = &gg_arch_experts_by_router,
               .gating = GG_GATING_SIGMOID, .gating_key = GG_MAY,
               .norm = GG_MAY, .scale = true,
               .ff = &gg_arch_expert_width_or_part,
               .shared = &gg_arch_shared_wide },
      .nextn = true,
      MORE(M(ROUTER_SELECT_BARE), M(FFN_GATE), M(FFN_UP), M(FFN_DOWN)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_hunyuan = { rows, GG_LEN(rows) };
