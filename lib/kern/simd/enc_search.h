/* SPDX-License-Identifier: MIT */
/* enc_search.h - the searches of c/enc_search_ref.h for 16 groups at once
 *
 * One lane per group. Each lane does the float operations of the C search in
 * the same order, so the results are the same bits. Rounding uses one
 * instruction instead of ggml's bit trick, which is the same only up to 2^22.
 * So elements must be finite, and a search that could leave that range gives
 * up; its caller then uses the C encoder.
 */
#ifndef GG_KERN_SIMD_ENC_SEARCH_H
#define GG_KERN_SIMD_ENC_SEARCH_H

#include "kern/c/enc_search_ref.h"

/* Groups in lanes: element i of group g is x[i][g], with importance w[i][g]. */
struct gg_kern_lanes {
    float x[GG_ENC_MAX_N][16], w[GG_ENC_MAX_N][16];
};

/* Results per group: the fit, and the rounding that gave it, q =
 * clamp(nearest(inv * (x - base))). */
struct gg_kern_lanes_fit {
    float scale[16], min[16], inv[16], base[16];
};

/* Load 16 groups of n floats (a multiple of 8), group after group, into one
 * of the arrays of struct gg_kern_lanes. */
typedef void gg_kern_lanes_load_fn(float out[][16], const float *src, int n);
gg_kern_lanes_load_fn gg_kern_lanes_load_256, gg_kern_lanes_load_avx512;

/* As gg_kern_fit_symmetric; min and base are zero. */
typedef void gg_kern_lanes_symmetric_fn(const struct gg_kern_lanes *l, int n,
                                        int half,
                                        struct gg_kern_lanes_fit *out);
gg_kern_lanes_symmetric_fn gg_kern_lanes_symmetric_256,
    gg_kern_lanes_symmetric_avx512;

/* Compute the scales of gg_kern_fit_refined for n groups of 16 elements, with
 * half = 4. n is at most GG_REFINED_MAX. Elements may be any floats; the scale
 * of a group that is not finite is meaningless. */
#define GG_REFINED_MAX 512
void gg_kern_scales_refined_256(const float *x, int n, float *scale);

/* As gg_kern_fit_affine. Returns 0 if it gives up. */
typedef int gg_kern_lanes_affine_fn(const struct gg_kern_lanes *l, int n,
                                    const struct gg_kern_affine_search *s,
                                    struct gg_kern_lanes_fit *out);
gg_kern_lanes_affine_fn gg_kern_lanes_affine_256, gg_kern_lanes_affine_avx512;

/* Compute the scales of gg_kern_fit_positive for eight groups of n elements (a
 * multiple of 8), for every input. x and w have a pointer for each group. */
void gg_kern_scales_positive_256(const float *const x[8],
                                 const float *const w[8], int n, int q_max,
                                 float scale[8]);

#endif
