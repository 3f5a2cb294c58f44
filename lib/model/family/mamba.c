/* SPDX-License-Identifier: MIT */
/* mamba.c - Mamba: state spaces */
#include "config.h"
#include "model/family/arch_row.h"

static const uint16_t w_norms[] = { N(M1_DT_NORM), N(M1_B_NORM), N(M1_C_NORM),
                                    0 };

static const struct gg_mixer mamba = { .text = "Mamba", GG_MIXER_MAMBA };
static const struct gg_mixer mamba_norm = { .text = "Mamba with norms on dt, "
                                                    "B, C",
                                            GG_MIXER_MAMBA,
                                            .more_weights = w_norms };

static const struct gg_ffn no_ffn = { .text = "none", .absent = true };

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "jamba", .runs = true, LLAMA, NO_ROPE, .other = &mamba_norm,
      .mix_rule = &gg_arch_mix_by_kv,
      .moe = { .where = &gg_arch_experts_by_router }, MORE(SSM) },
    { .name = "mamba", .runs = true, ONE, NO_ROPE, .order = GG_ORDER_SINGLE,
      .mixer = &mamba, .ffn = &no_ffn, MORE(SSM, KM(ssm_rms)) },
    { .name = "mamba2", .runs = true, ONE, NO_ROPE, .order = GG_ORDER_SINGLE,
      .mixer = &gg_mixer_mamba2, .ffn = &no_ffn, MORE(SSM, K(ssm_groups)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_mamba = { rows, GG_LEN(rows) };
