/* SPDX-License-Identifier: MIT */
/* exaone.c - EXAONE */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "exaone", .runs = true, LLAMA, NEOX, FREQS },
    { .name = "exaone-moe", .runs = true, LLAMA, NEOX, OWN, FREQS, HEAD_NORM,
      .rope_where = GG_ROPE_WHERE_WINDOWS,
      .window = { GG_WINDOW_LAST_FULL, GG_MUST, .period = 4 },
      .moe = { .where = GG_EXPERTS_LEAD, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .select_b = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_WIDTH },
      .nextn = true },
    { .name = "exaone4", .runs = true, AFTER, NEOX, FREQS, HEAD_NORM,
      .rope_where = GG_ROPE_WHERE_WINDOWS,
      .window = { GG_WINDOW_LAST_FULL, GG_MAY, 4, .only_at = 64, .size = 4096 },
      .nextn = true,
      .odd = "without windows every layer has positions" },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_exaone = { rows, GG_LEN(rows) };
