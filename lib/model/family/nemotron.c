/* SPDX-License-Identifier: MIT */
/* nemotron.c - Nemotron */
#include "config.h"
#include "model/family/arch_row.h"

static const struct gg_mixer *mixer_of_layer(const struct gg_arch *a,
                                             const struct gg_hparams *hp,
                                             uint32_t il)
{
    return hp->layer[il].n_ff ? NULL : gg_arch_mix_by_kv.of_layer(a, hp, il);
}

static const struct gg_arch_mix_rule single_parts = {
    .text = "layers without key/value heads; those with a feed-forward width "
            "have that part only",
    .of_layer = mixer_of_layer
};

static bool has_width(const struct gg_hparams_reader *r, uint32_t il)
{
    return r->hp->layer[il].n_ff > 0;
}

static const struct gg_arch_experts with_width = {
    .text = "layers with a feed-forward width", .of_layer = has_width
};

static enum gg_model_norm always_rms(const struct gg_hparams *hp)
{
    (void)hp;
    return GG_NORM_RMS;
}

/* Files may have the epsilon of RMS norms, of layer norms, or both. */
static void fill_epsilon(struct gg_hparams_reader *r)
{
    if (!r->hp->has[GG_HP_norm_rms_eps])
        r->hp->norm_rms_eps = r->hp->norm_eps;
}

/* clang-format off */
/* Two names for one. */
#define NEMOTRON                                                              \
    ONE, NO_ROPE, .order = GG_ORDER_SINGLE,                                   \
    .choose_norm = { always_rms, "RMS" },                                     \
    .fill_hparams = { fill_epsilon, "" },                                     \
    .other = &gg_mixer_mamba2, .mix_rule = &single_parts,                     \
    .out_b = GG_MAY, .ffn = &gg_ffn_plain, .act = &gg_ffn_act_relu_sqr,       \
    .ffn_b = GG_MAY,                                                          \
    .moe = { .where = &with_width, .gating = GG_GATING_SIGMOID,               \
             .expert_bias = GG_MUST, .norm = GG_MAY, .scale = true,           \
             .plain = true, .ff = &gg_arch_expert_width_or_part,              \
             .shared = &gg_arch_shared_if_wide },                             \
    MORE(SSM, K(ssm_groups), KM(moe_latent), M(LATENT_DOWN),                  \
         M(LATENT_UP))

static const struct gg_arch rows[] = {
    { .name = "nemotron", .runs = true, LLAMA, LAYER, NEOX, OWN,
      .out_b = GG_MAY, .ffn = &gg_ffn_plain, .act = &gg_ffn_act_relu_sqr,
      .ffn_b = GG_MAY },
    { .name = "nemotron_h", .runs = true, NEMOTRON },
    { .name = "nemotron_h_moe", .runs = true, NEMOTRON },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_nemotron = { rows, GG_LEN(rows) };
