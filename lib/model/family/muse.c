/* SPDX-License-Identifier: MIT */
/* muse.c - Muse Glimmer */
#include "config.h"
#include "model/family/arch_row.h"

typedef struct gguf_tensor tensor;

/* With an epsilon of their own. */
static tensor *norm_result(const struct gg_model_at *at, unsigned id,
                           tensor *y)
{
    return gg_model_apply_norm_with_eps(at, GG_NORM_RMS, (enum gg_weight)id,
                                        1e-8f, y);
}

static void choose_no_embd_norm(struct gg_needs *n,
                                const struct gg_hparams *hp,
                                const struct gg_model_layer *l)
{
    (void)hp;
    (void)l;
    gg_needs_set_weight(n, GG_W_EMBD_NORM, GG_NO);
}

static const struct gg_arch_window_rope not_scaled = {
    .text = "own base if given, not scaled", .base = true, .gain = true
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "muse-glimmer", .runs = true, SANDWICH_NORM, OWN, HEAD_NORM,
      .rope_rule = &gg_arch_rope_in_windows,
      .norm_result = { norm_result,
                       "norms of results with an epsilon of 1e-8" },
      .gate_attention = { gg_arch_gate_elements, "sigmoid gate" },
      .window = { &gg_arch_window_last_full, GG_MUST, 4,
                  .rope = &not_scaled },
      .embd_norm = true,
      .choose_weights = { choose_no_embd_norm,
                          "that of embeddings without weights" },
      .logit_scale = &gg_arch_logits_times, DEFAULTS(D(logit_softcap, 30)),
      MORE(N(ATTN_GATE), K(logit_scale)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_muse = { rows, GG_LEN(rows) };
