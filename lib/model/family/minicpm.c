/* SPDX-License-Identifier: MIT */
/* minicpm.c - MiniCPM */
#include "config.h"
#include "model/family/arch_row.h"

#include <math.h>

/* MiniCPM's first files lack these keys. Then the model's definition applies
 * (MiniCPM-2B: scale_emb 12, scale_depth 1.4, dim_model_base 256). */
static void fill_residual_scale(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    if (!hp->has[GG_HP_residual_scale])
        hp->residual_scale = 1.4f / sqrtf((float)hp->n_layer);
}

static float embd_scale(const struct gg_hparams *hp)
{
    return hp->has[GG_HP_embd_scale] ? hp->embd_scale : 12;
}

static float logit_scale(const struct gg_hparams *hp)
{
    const float over =
        hp->has[GG_HP_logit_scale] ? hp->logit_scale : (float)hp->n_embd / 256;
    return over != 0 ? 1 / over : 1;
}

static const struct gg_arch_factor
    key_or_twelve = { .text = "times embedding_scale, or 12",
                      .of_model = embd_scale,
                      .key = true },
    over_or_width = { .text = "divided by logit_scale, or n_embd/256",
                      .of_model = logit_scale,
                      .key = true };

/* ---- MiniCPM 3 ---- */

static float embd_scale_3(const struct gg_hparams *hp)
{
    (void)hp;
    return 12;
}

static float logit_scale_3(const struct gg_hparams *hp)
{
    return 256.0f / (float)hp->n_embd;
}

static const struct gg_arch_factor twelve = { .text = "times 12",
                                              .of_model = embd_scale_3 },
                                   over_width = { .text = "times 256/n_embd",
                                                  .of_model = logit_scale_3,
                                                  .key = true };

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "minicpm", .runs = true, LLAMA, FREQS, LONGROPE, .out_b = GG_MAY,
      .ffn_b = GG_MAY, .moe = MOE_IF_ANY, .embd_scale = &key_or_twelve,
      .residual_scale = true,
      .fill_hparams = { fill_residual_scale, ", or by 1.4/sqrt(layers)" },
      .logit_scale = &over_or_width },
    { .name = "minicpm3", .runs = true, LLAMA, NEOX, LONGROPE,
      .mixer = &gg_mixer_latent_expanded, .embd_scale = &twelve,
      .residual_scale = true,
      .fill_hparams = { fill_residual_scale, ", or by 1.4/sqrt(layers)" },
      .logit_scale = &over_width, MORE(K(rank_kv), K(rank_q)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_minicpm = { rows, GG_LEN(rows) };
