/* SPDX-License-Identifier: MIT */
/* minicpm.c - MiniCPM */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "minicpm", .runs = true, LLAMA, FREQS, LONGROPE, .out_b = GG_MAY,
      .ffn_b = GG_MAY, .moe = MOE_IF_ANY,
      .embd_scale = GG_EMBD_SCALE_KEY_OR_TWELVE, .residual_scale = true,
      .residual_depth = true, .logit_scale = GG_LOGIT_SCALE_OVER_OR_WIDTH },
    { .name = "minicpm3", .runs = true, LLAMA, NEOX, LONGROPE,
      .mixer = &gg_mixer_latent_expanded, .embd_scale = GG_EMBD_SCALE_TWELVE,
      .residual_scale = true, .residual_depth = true,
      .logit_scale = GG_LOGIT_SCALE_WIDTH, MORE(K(rank_kv), K(rank_q)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_minicpm = { rows, GG_LEN(rows) };
