/* SPDX-License-Identifier: MIT */
/* hunyuan.c - Hunyuan */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "hunyuan-dense", .runs = true, LLAMA, NEOX,
      .qk = { .form = GG_QK_HEAD, .late = true }, MORE(KM(rope_alpha)) },
    { .name = "hunyuan-moe", .runs = true, LLAMA, NEOX,
      .qk = { .form = GG_QK_HEAD, .late = true },
      .moe = { .where = GG_EXPERTS_ALL, .norm = GG_MUST,
               .shared = GG_SHARED_WIDTH_MODEL } },
    { .name = "hunyuan_vl", .runs = true, LLAMA, NEOX, .rope_axes = true,
      .qk = { .form = GG_QK_HEAD, .late = true }, MORE(KM(rope_alpha)) },
    { .name = "hy_v3", .runs = true, LLAMA, NEOX, HEAD_NORM,
      .moe = { .where = GG_EXPERTS_TENSOR, .gating = GG_GATING_SIGMOID,
               .gating_key = GG_MAY, .norm = GG_MAY, .scale = true,
               .fused = true, .ff = GG_EXPERT_FF_KEY_OR_PART,
               .shared = GG_SHARED_WIDTH },
      .nextn = true,
      MORE(M(ROUTER_SELECT_BARE), M(FFN_GATE), M(FFN_UP), M(FFN_DOWN)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_hunyuan = { rows, GG_LEN(rows) };
