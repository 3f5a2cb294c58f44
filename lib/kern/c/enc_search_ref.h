/* SPDX-License-Identifier: MIT */
/* enc_search_ref.h - fitting a scale (and a minimum) to a few floats
 *
 * The encoders' searches, in C. Each tries a short list of scales, rounds the
 * elements by each, and keeps the least-squares fit that explains them best,
 * by importance. Source: the functions make_*_quants of ggml-quants.c (ggml
 * commit d99724f); the order of the float operations is theirs, since it
 * decides which of two nearly equal candidates wins.
 *
 * x, w     n floats and their importances
 * q        n codes, written
 */
#ifndef GG_KERN_C_ENC_SEARCH_REF_H
#define GG_KERN_C_ENC_SEARCH_REF_H

#include <stdint.h>

#define GG_ENC_MAX_N 32 /* elements that a search takes at most */

/* Below this magnitude a group counts as zero. */
#define GG_ENC_ZERO 1e-15f

/* x ~ scale * (q - half), q in 0 .. 2*half - 1. Returns scale; 0 with codes 0
 * for a zero group. */
float gg_kern_fit_symmetric(const float *x, const float *w, int n, int half,
                            uint8_t *q);

/* As gg_kern_fit_symmetric, with importances x^2: instead of trying other
 * scales, single codes are changed while that helps. */
float gg_kern_fit_refined(const float *x, int n, int half, uint8_t *q);

/* Candidates of an affine search: n_step + 1 divisions of the range, into
 * q_max + start + k * step parts. */
struct gg_kern_affine_search {
    int q_max;
    float start, step;
    int n_step;
    int abs_error; /* judge by |error|, not its square */
};

/* Searches of ggml, without and with importances. */
#define GG_AFFINE_Q2                                                          \
    {                                                                         \
        3, -0.5f, 0.1f, 15, 1                                                 \
    }
#define GG_AFFINE_Q4                                                          \
    {                                                                         \
        15, -1.0f, 0.1f, 20, 0                                                \
    }
#define GG_AFFINE_Q5                                                          \
    {                                                                         \
        31, -0.5f, 0.1f, 15, 0                                                \
    }
#define GG_AFFINE_W(q)                                                        \
    {                                                                         \
        q, -0.9f, 0.05f, 36, 0                                                \
    }

/* x ~ scale * q - min, q in 0 .. q_max, min >= 0. Returns scale. */
float gg_kern_fit_affine(const float *x, const float *w, int n,
                         const struct gg_kern_affine_search *s, uint8_t *q,
                         float *min);

/* x ~ scale * q, x mostly not negative, q in 0 .. q_max: a search over nine
 * scales, then single codes are changed while that helps. Returns scale. */
float gg_kern_fit_positive(const float *x, const float *w, int n, int q_max,
                           uint8_t *q);

#endif
