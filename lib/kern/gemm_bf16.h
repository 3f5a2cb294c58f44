/* SPDX-License-Identifier: MIT */
/* gemm_bf16.h - products of bf16: panels of pairs of steps
 *
 * Weights and activations are rounded to bf16, to nearest, ties to even;
 * subnormal numbers become 0 of the same sign. A block of a panel has two steps
 * (on AArch64 four) of each row or column side by side:
 *
 *     uint16_t q[mr or nr][k_block]
 *
 * An element of a tile is a chain of f32 sums, a pair of steps after the other.
 * The products of a pair are exact in f32; the processor decides in which order
 * they are added, whether the sum of both is rounded, and how: AVX-512 rounds
 * to nearest; AArch64 rounds to odd, by less than one unit in the last place,
 * the sum of both and then the chain.
 */
#ifndef GG_KERN_GEMM_BF16_H
#define GG_KERN_GEMM_BF16_H

#include "kern/gemm.h"

/* Contract: EXACT. */
gg_kern_gemm_pack_fn gg_kern_bf16_pack_w_c, gg_kern_bf16_pack_w_avx512bf16,
    gg_kern_bf16_pack_w_bf16;
gg_kern_gemm_pack_fn gg_kern_bf16_pack_x_c, gg_kern_bf16_pack_x_avx512bf16,
    gg_kern_bf16_pack_x_bf16;

/* Contract: SUM. */
gg_kern_gemm_tile_fn gg_kern_bf16_tile_c, gg_kern_bf16_tile_avx512bf16,
    gg_kern_bf16_tile_bf16;

#endif
