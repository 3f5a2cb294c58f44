/* SPDX-License-Identifier: MIT */
/* rwkv.c - RWKV */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
#define RANKS_7                                                               \
    K(wkv_head), K(rank_decay), K(rank_iclr), K(rank_vres), KM(rank_gate),    \
        KM(n_shift)

static const struct gg_arch rows[] = {
    { .name = "arwkv7", .runs = true, LLAMA, NO_ROPE, OWN,
      .mixer = GG_MIX_RWKV7, .norm_eps_maybe = true, MORE(RANKS_7) },
    { .name = "rwkv6", .runs = true, LAYER, NO_ROPE, OWN,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(ATTN_NORM_2)), OUTPUT_NORM),
      .norm_eps_maybe = true, .mixer = GG_MIX_RWKV6,
      .ffn = GG_FFN_CHANNEL_MIX_R, .embd_norm = GG_MUST,
      .rescales = true,
      MORE(K(wkv_head), K(n_mix), K(n_decay), KM(n_shift)) },
    { .name = "rwkv6qwen2", .runs = true, LLAMA, NO_ROPE, OWN,
      .norm_eps_maybe = true, .mixer = GG_MIX_RWKV6_LINEAR,
      MORE(K(wkv_head), K(n_mix), K(n_decay), KM(rescale), KM(n_shift),
           M(OUTPUT_NORM_B)),
      .odd = "rescale_every_n_layers does nothing" },
    { .name = "rwkv7", .runs = true, LAYER, NO_ROPE, OWN,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(ATTN_NORM_2)), OUTPUT_NORM),
      .norm_eps_maybe = true, .mixer = GG_MIX_RWKV7,
      .ffn = GG_FFN_CHANNEL_MIX, .embd_norm = GG_MUST, MORE(RANKS_7) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_rwkv = { rows, GG_LEN(rows) };
