/* SPDX-License-Identifier: MIT */
/* cohere.c - Command R */
#include "config.h"
#include "model/family/arch_row.h"

static bool in_window_or_leading(const struct gg_hparams *hp, uint32_t il)
{
    return gg_arch_rope_in_windows.of_layer(hp, il) || il < hp->n_dense;
}

static const struct gg_arch_rope_rule in_windows_and_leading = {
    .text = "in windows and leading layers", .of_layer = in_window_or_leading
};

typedef struct gguf_tensor tensor;

static tensor *mean_of_both(const struct gg_model_at *at, tensor *sum,
                            tensor *shared)
{
    return gguf_op_scale(at->c, gguf_op_add(at->c, sum, shared), 0.5f);
}

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "cohere2", .runs = true, ONE, .order = GG_ORDER_PARALLEL,
      .norm = GG_NORM_LAYER, .rope_rule = &gg_arch_rope_in_windows,
      .window = { &gg_arch_window_last_full, GG_MUST, .period = 4 },
      .output = GG_OUTPUT_EMBD, .logit_scale = &gg_arch_logits_times,
      MORE(K(logit_scale)) },
    { .name = "cohere2moe", .runs = true, ONE, .order = GG_ORDER_PARALLEL,
      .choose_norm = { gg_arch_norm_by_epsilon,
                       "RMS or layer norms, by the epsilon's key" },
      .rope_rule = &in_windows_and_leading,
      .window = { &gg_arch_window_first_full, .key = GG_MUST },
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_SIGMOID,
               .gating_key = GG_MAY, .norm = GG_MAY, .scale = true,
               .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_wide_or_counted,
               .add_shared = { mean_of_both, "the mean of both" } },
      .logit_scale = &gg_arch_logits_times, .nextn = true,
      MORE(K(logit_scale), K(window_pattern), K(n_dense)) },
    { .name = "command-r", .runs = true, ONE, .order = GG_ORDER_PARALLEL,
      .norm = GG_NORM_LAYER,
      .qk_norm = { .form = GG_QK_EACH_HEAD, .kind = GG_NORM_LAYER,
      .optional = true },
      .output = GG_OUTPUT_EMBD, .logit_scale = &gg_arch_logits_times },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_cohere = { rows, GG_LEN(rows) };
