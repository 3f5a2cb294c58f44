/* SPDX-License-Identifier: MIT */
/* t5.c - T5: from text to text by an encoder and a decoder */
#include "config.h"
#include "model/family/arch_row.h"

static const uint16_t w_encoder[] = { N(ENC_NORM),
                                      N(ENC_Q),
                                      N(ENC_K),
                                      N(ENC_V),
                                      N(ENC_OUT),
                                      M(ENC_REL),
                                      N(ENC_FFN_NORM),
                                      M(ENC_GATE),
                                      N(ENC_UP),
                                      N(ENC_DOWN),
                                      0 };
static const uint16_t w_decoder[] = { N(DEC_NORM),
                                      N(DEC_Q),
                                      N(DEC_K),
                                      N(DEC_V),
                                      N(DEC_OUT),
                                      M(DEC_REL),
                                      N(CROSS_NORM),
                                      N(CROSS_Q),
                                      N(CROSS_K),
                                      N(CROSS_V),
                                      N(CROSS_OUT),
                                      M(CROSS_REL),
                                      N(DEC_FFN_NORM),
                                      M(DEC_GATE),
                                      N(DEC_UP),
                                      N(DEC_DOWN),
                                      0 };

static const struct gg_mixer encoder_decoder = {
    .text = "encoder and decoder",
    .weights = w_encoder,
    .more_weights = w_decoder,
    .counts = true,
    .memory = GG_MODEL_MEMORY_KV | GG_MODEL_MEMORY_CROSS,
    .keys = gg_model_size_keys_heads,
    .stack = gg_model_stack_encdec,
};
static const struct gg_mixer encoder = { .text = "encoder",
                                         .weights = w_encoder,
                                         .counts = true,
                                         .memory = GG_MODEL_MEMORY_KV,
                                         .keys = gg_model_size_keys_heads,
                                         .stack = gg_model_stack_encoder };

static const struct gg_ffn in_mixer = { .text = "" };

/* Layers without a bias for relative positions use the first layer's. */
static void choose_weights(struct gg_needs *n, const struct gg_hparams *hp,
                           const struct gg_model_layer *l)
{
    static const enum gg_weight first[] = { GG_W_ENC_REL, GG_W_DEC_REL };
    for (size_t i = 0; l == hp->layer && i < GG_LEN(first); i++)
        if (n->weight[first[i]])
            gg_needs_set_weight(n, first[i], GG_MUST);
}

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "t5", .runs = true, NO_ROPE, .mixer = &encoder_decoder,
      .ffn = &in_mixer, .choose_weights = { choose_weights, "" },
      .act = &gg_ffn_act_gelu, .scale = &gg_arch_scale_one,
      MORE(K(n_buckets), KM(n_dec_layer), KM(dec_start), N(ENC_OUTPUT_NORM),
           N(DEC_OUTPUT_NORM)),
      UNUSED(W(CROSS_REL)),
      .remark = "relative positions; ReLU without a gate; cross_attn_rel_b is "
                "not used" },
    { .name = "t5encoder", .runs = true, NO_ROPE, .mixer = &encoder,
      .ffn = &in_mixer, .choose_weights = { choose_weights, "" },
      .act = &gg_ffn_act_gelu, .scale = &gg_arch_scale_one,
      .bidirectional = true,
      .whole_sequence = true, .output = GG_OUTPUT_NONE,
      MORE(K(n_buckets), N(ENC_OUTPUT_NORM), M(OUTPUT)),
      .remark = "relative positions; ReLU without a gate" },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_t5 = { rows, GG_LEN(rows) };
