/* SPDX-License-Identifier: MIT */
/* mistral.c - classes of Mistral */
#include "config.h"
#include "convert/class_row.h"

/* Gate and up of experts stay one tensor. */
static const struct gg_convert_name mistral4_names[] = {
    N(L "mlp.experts.gate_up_proj", B "ffn_gate_up_exps.weight"), END_NAMES
};

/* Temperature of queries. (llama.cpp's converter leaves it out for this model,
 * whose code has it.) */

#define BETA "rope_parameters.llama_4_scaling_beta"

static double temperature_length(const struct gg_hf_config *cfg)
{
    return num_of(cfg, BETA) > 0
               ? num_of(cfg,
                        "rope_parameters.original_max_position_embeddings "
                        "rope_scaling.original_max_position_embeddings")
               : NAN;
}

static bool is_mistral4(const struct gg_hf_config *cfg)
{
    return is_true(gg_hf_config_is_word(cfg, "model_type", -1, "mistral4"));
}

static bool is_mistral3(const struct gg_hf_config *cfg)
{
    return gg_hf_config_is_word(cfg, "model_type", -1, "mistral4") == 0;
}

const struct gg_convert_defaults gg_convert_defaults_mistral = {
    "mistral",
    { { "num_attention_heads", 32 },
      { "num_hidden_layers", 32 },
      { "num_key_value_heads", 8 },
      { "hidden_size", 4096 },
      { "intermediate_size", 14336 },
      { "max_position_embeddings", 131072 },
      { "vocab_size", 32000 },
      { "rms_norm_eps", 1e-6 },
      { "rope_theta", 10000 } }
};

const struct gg_convert_arch gg_convert_family_mistral[] = {
    { .classes = "Mistral3ForConditionalGeneration Ministral3ForCausalLM",
      .arch = "mistral3",
      .when = is_mistral3,
      .names = LLAMA,
      .keys = ROWS(F32("rope.scaling.yarn_log_multiplier",
                       "rope_parameters.mscale_all_dim"),
                   F32("attention.temperature_scale",
                       "rope_parameters.llama_4_scaling_beta")),
      PERMUTED },
    { .classes = "Mistral4ForCausalLM Mistral3ForConditionalGeneration "
                 "Ministral3ForCausalLM",
      .arch = "mistral4",
      .when = is_mistral4,
      .names = OVER_3(mistral4_names, gg_convert_names_latent,
                      gg_convert_names_experts),
      .keys = ROWS(LATENT_KEYS, F32("attention.temperature_scale", BETA),
                   OF("attention.temperature_length", U32, temperature_length,
                      NO_BACK)) },
    { .classes = NULL }
};
