/* SPDX-License-Identifier: MIT */
/* t5.c - T5: from text to text by an encoder and a decoder */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "t5", .runs = true, NO_ROPE, .mixer = GG_MIX_ENCDEC,
      .ffn = GG_FFN_IN_MIXER, .act = GG_ACT_GELU, .scale = GG_SCALE_ONE,
      MORE(K(n_buckets), KM(n_dec_layer), KM(dec_start),
           N(ENC_OUTPUT_NORM), N(DEC_OUTPUT_NORM)),
      IDLE(W(CROSS_REL)),
      .odd = "relative positions; ReLU without a gate; cross_attn_rel_b is "
             "not used" },
    { .name = "t5encoder", .runs = true, NO_ROPE, .mixer = GG_MIX_ENCODER,
      .ffn = GG_FFN_IN_MIXER, .act = GG_ACT_GELU, .scale = GG_SCALE_ONE,
      .no_causal = true, .no_memory = true, .output = GG_OUTPUT_NONE,
      MORE(K(n_buckets), N(ENC_OUTPUT_NORM), M(OUTPUT)),
      .odd = "relative positions; ReLU without a gate" },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_t5 = { rows, GG_LEN(rows) };
