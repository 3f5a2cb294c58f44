/* SPDX-License-Identifier: MIT */
/* bailing.c - Bailing (Ling) */
#include "config.h"
#include "model/family/arch_row.h"

static double width_times_count(const struct gg_hparams *hp, double own,
                                double ff)
{
    return gg_arch_shared_wide.width(hp, own, ff) * hp->n_shared;
}

static const struct gg_arch_shared counted_of_width = {
    .text = "shared: expert_shared_count of own width",
    .width = width_times_count
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "bailingmoe", .runs = true, LLAMA, OWN,
      .moe = { .where = &gg_arch_experts_all, .norm = GG_MAY, .scale = true,
               .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted },
      MORE(KM(n_dense)) },
    { .name = "bailingmoe2", .runs = true, LLAMA, NEOX, OWN, HEAD_NORM,
      .qkv = &gg_arch_qkv_fused,
      .moe = { .where = &gg_arch_experts_leading, .gating_key = GG_MUST,
               .gating = GG_GATING_KEY, .expert_bias = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &counted_of_width },
      .nextn = true, MORE(M(LAYER_OUT_NORM)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_bailing = { rows, GG_LEN(rows) };
