/* SPDX-License-Identifier: MIT */
/* bailing.c - Bailing (Ling) */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "bailingmoe", .runs = true, LLAMA, OWN,
      .moe = { .where = GG_EXPERTS_ALL, .norm = GG_MAY, .scale = true,
               .ff = GG_EXPERT_FF_KEY, .shared = GG_SHARED_COUNT },
      MORE(KM(n_dense)) },
    { .name = "bailingmoe2", .runs = true, LLAMA, NEOX, OWN, HEAD_NORM,
      .qkv = &gg_arch_qkv_fused,
      .moe = { .where = GG_EXPERTS_LEAD, .gating_key = GG_MUST,
               .gating = GG_GATING_KEY, .select_b = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_WIDTH_TIMES },
      .nextn = true, MORE(M(LAYER_OUT_NORM)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_bailing = { rows, GG_LEN(rows) };
