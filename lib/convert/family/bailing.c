/* SPDX-License-Identifier: MIT */
/* bailing.c - classes of Ling and Ring (Bailing) */
#include "config.h"
#include "convert/class_row.h"

/* Queries, keys and values in one matrix; rows permuted from halves to
 * pairs. */
static const struct gg_convert_name bailing_names[] = {
    N("model.word_embeddings", "token_embd"),
    N_AXES(L "attention.query_key_value", B "attn_q",
           "[qrows@0] h 2 d, * > h d 2, *"),
    N_AXES(L "attention.query_key_value", B "attn_k",
           "[krows@qrows] k 2 d, * > k d 2, *"),
    N_AXES(L "attention.query_key_value", B "attn_v", "[@qkrows] x, * > x, *"),
    N(L "attention.dense", B "attn_output"),
    END_NAMES
};

static const struct gg_convert_name bailing2_names[] = {
    N("model.word_embeddings", "token_embd"),
    N(L "attention.query_key_value", B "attn_qkv"),
    N(L "attention.query_layernorm", B "attn_q_norm"),
    N(L "attention.key_layernorm", B "attn_k_norm"),
    N(L "attention.dense", B "attn_output"),
    N(L "mlp.gate.expert_bias", B "exp_probs_b.bias"),
    N(L "final_layernorm", B "layer_output_norm"),
    END_NAMES
};

#define BAILING_2                                                             \
    LEAD, VOCAB_SIZE, EXPERT_FF,                                              \
        ELSE_OF("expert_shared_feed_forward_length", U32,                     \
                "moe_shared_expert_intermediate_size",                        \
                gg_convert_shared_width),                                     \
        WEIGHTS_SCALE, U32("expert_shared_count", "num_shared_experts"),      \
        WEIGHTS_NORM, NEXTN

/* With norm_head, rows of the output are divided by lengths of its columns. */
static bool keeps_head(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "norm_head", 0) == 0;
}

const struct gg_convert_arch gg_convert_family_bailing[] = {

    { .classes = "BailingMoeForCausalLM",
      .arch = "bailingmoe",
      .when = keeps_head,
      .names = OVER_2(bailing_names, gg_convert_names_experts),
      .keys = ROWS(ALL_ROT, LEAD, VOCAB_SIZE, EXPERT_FF,
                   ALWAYS("expert_weights_scale", F32, 1),
                   U32("expert_shared_count", "num_shared_experts"),
                   WEIGHTS_NORM) },
    { .classes = "BailingMoeV2ForCausalLM",
      .model_type = "bailing_moe",
      .instead = { { "scoring_func", "score_function" } },
      .arch = "bailingmoe2",
      .nextn = N_NEXTN,
      .names = OVER_3(bailing2_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys = ROWS(
          BLOCKS_NEXTN,
          OF("rope.dimension_count", U32, gg_convert_rotary_half, NO_BACK),
          BAILING_2) },
    /* its code subtracts the mean from the expert bias, which changes no
     * choice */
    { .classes = "SarvamMoEForCausalLM "
                 "modeling_sarvam_moe.SarvamMoEForCausalLM",
      .arch = "bailingmoe2",
      .nextn = N_NEXTN,
      .names = OVER_3(bailing2_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys = ROWS(BLOCKS_NEXTN, ALL_ROT, BAILING_2) },
    { .classes = NULL }
};
