/* SPDX-License-Identifier: MIT */
/* granite.c - Granite */
#include "config.h"
#include "model/family/arch_row.h"

#include <math.h>

static bool is_finetuned(const struct gg_hparams *hp, uint32_t il)
{
    (void)il;
    return hp->rope_tuned;
}

static const struct gg_arch_rope_rule finetuned = {
    .text = "unless rope.scaling.finetuned is false", .of_layer = is_finetuned
};

static bool has_rope_by_pattern(const struct gg_hparams *hp, uint32_t il)
{
    return !hp->has[GG_HP_rope_pattern] || hp->layer[il].rope_pattern;
}

static const struct gg_arch_rope_rule by_pattern = {
    .text = "by attention.rope_pattern", .of_layer = has_rope_by_pattern
};

static float scale_by_key(const struct gg_hparams *hp,
                          const struct gg_model_layer *l)
{
    return hp->attn_scale != 0 ? hp->attn_scale : 1 / sqrtf((float)l->dim_k);
}

static const struct gg_arch_scale by_key = { .text = "by attention.scale",
                                             .of_layer = scale_by_key };

static float invert_logit_scale(const struct gg_hparams *hp)
{
    return hp->logit_scale != 0 ? 1 / hp->logit_scale : 1;
}

static const struct gg_arch_factor over = { .text = "divided by logit_scale",
                                            .of_model = invert_logit_scale,
                                            .key = true };

/* One matrix has the gates of the shared experts and their other rows. */
static void fuse_shared_gate(struct gg_needs *n, const struct gg_hparams *hp,
                             const struct gg_model_layer *l)
{
    (void)hp;
    if (!l || !n->weight[GG_W_UP_SHARED])
        return;
    gg_needs_set_weight(n, GG_W_GATE_UP_SHARED, GG_MUST);
    gg_needs_set_weight(n, GG_W_GATE_SHARED, GG_NO);
    gg_needs_set_weight(n, GG_W_UP_SHARED, GG_NO);
}

/* clang-format off */
#define GRANITE                                                               \
    LLAMA, FREQS, .out_b = GG_MAY,                                            \
    .scale = &by_key, .ffn_b = GG_MAY,                                        \
    .moe = { .where = &gg_arch_experts_if_any, .norm = GG_MUST,               \
             .shared = &gg_arch_shared_if_wide },                             \
    .embd_scale = &gg_arch_embd_by_key, .residual_scale = true,               \
    .logit_scale = &over

static const struct gg_arch rows[] = {
    { .name = "granite", .runs = true, GRANITE, LONGROPE,
      .rope_rule = &finetuned,
      MORE(KM(attn_scale), KM(rope_tuned), K(logit_scale)) },
    { .name = "granite_swa", .runs = true, GRANITE, LONGROPE,
      .rope_rule = &by_pattern, .sinks = GG_MUST,
      .window = { &gg_arch_window_listed, GG_MUST },
      .choose_weights = { fuse_shared_gate, "shared gate and up fused" },
      MORE(KM(attn_scale), K(logit_scale), K(window_pattern),
           KM(rope_pattern)) },
    { .name = "granitehybrid", .runs = true, GRANITE,
      .rope_rule = &finetuned,
      .other = &gg_mixer_mamba2, .mix_rule = &gg_arch_mix_by_kv,
      MORE(KM(attn_scale), KM(rope_tuned), SSM, K(ssm_groups)) },
    { .name = "granitemoe", .runs = true, GRANITE, LONGROPE,
      .rope_rule = &finetuned,
      MORE(KM(attn_scale), KM(rope_tuned), K(logit_scale)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_granite = { rows, GG_LEN(rows) };
