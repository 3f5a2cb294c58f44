/* SPDX-License-Identifier: MIT */
/* olmo.c - classes of OLMo */
#include "config.h"
#include "convert/class_row.h"

/* Every fourth layer has full attention, if config.json does not say. */
static double is_sliding(const struct gg_hf_config *cfg, int64_t layer)
{
    return value_or(gg_convert_is_sliding(cfg, layer), (layer + 1) % 4 > 0);
}

const struct gg_convert_arch gg_convert_family_olmo[] = {
    { .classes = "OlmoForCausalLM OLMoForCausalLM",
      .arch = "olmo",
      .names = LLAMA,
      .keys = ROWS(ALWAYS("attention.layer_norm_epsilon", F32, 1e-5),
                   F32("attention.clamp_kqv", "clip_qkv")),
      .permuted = true },
    { .classes = "Olmo2ForCausalLM",
      .arch = "olmo2",
      .names = OVER(gg_convert_names_post_norm) },
    { .classes = "Olmo3ForCausalLM",
      .arch = "olmo2",
      .names = OVER(gg_convert_names_post_norm),
      .keys = ROWS(WINDOW, EACH("attention.sliding_window_pattern", BOOL,
                                is_sliding, gg_back_put_sliding_layers)) },
    { .classes = "OlmoeForCausalLM",
      .arch = "olmoe",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(ELSE("attention.layer_norm_rms_epsilon", F32,
                        "rms_norm_eps", 0.00001)) },
    { .classes = NULL }
};
