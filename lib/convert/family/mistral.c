/* SPDX-License-Identifier: MIT */
/* mistral.c - classes of Mistral */
#include "config.h"
#include "convert/class_row.h"

/* Gates and others of experts stay one tensor. */
static const struct gg_convert_name mistral4_names[] = {
    N(L "mlp.experts.gate_up_proj", B "ffn_gate_up_exps.weight"), END_NAMES
};

/* How queries grow with their places. (llama.cpp's converter leaves it out for
 * this model, whose code has it.) */
#define IN_ROPE(NAME) NAME ".original_max_position_embeddings"
#define BETA          "rope_parameters.llama_4_scaling_beta"

const struct gg_convert_arch gg_convert_family_mistral[] = {
    { .classes = "Mistral3ForConditionalGeneration Ministral3ForCausalLM",
      .arch = "mistral3",
      .when = "model_type:mistral4=0",
      .names = LLAMA,
      .keys = ROWS(F32("rope.scaling.yarn_log_multiplier",
                       "rope_parameters.mscale_all_dim"),
                   F32("attention.temperature_scale",
                       "rope_parameters.llama_4_scaling_beta")),
      TURNED },
    { .classes = "Mistral4ForCausalLM Mistral3ForConditionalGeneration "
                 "Ministral3ForCausalLM",
      .arch = "mistral4",
      .when = "model_type:mistral4",
      .names = OVER_3(mistral4_names, gg_convert_names_latent,
                      gg_convert_names_experts),
      .keys = ROWS(LATENT_KEYS, F32("attention.temperature_scale", BETA),
                   OF("attention.temperature_length", U32,
                      BETA ">0?" IN_ROPE("rope_parameters") "|" IN_ROPE(
                          "rope_scaling"))) },
    { .classes = NULL }
};
