/* SPDX-License-Identifier: MIT */
/* enc_iq1.h - searches of the IQ1 encoders, which levels can replace
 *
 * The rest of the encoders is the same code at all levels (enc_iq1.c).
 */
#ifndef GG_KERN_C_ENC_IQ1_H
#define GG_KERN_C_ENC_IQ1_H

#include <stddef.h>

/* Division of a part into levels -1, 0 and 1. In sorted order the first `one'
 * elements are -1, those from `two' on are 1. down: whether the lower and the
 * upper half of the part are shifted down. */
struct gg_kern_iq1_split {
    int one, two;
    int down[2];
    float scale;
};

/* Importances of 256 elements: weight * sqrt(sigma2 + x^2), or x^2. */
typedef void gg_kern_iq1_weigh_fn(const float *x, const float *weight,
                                  float sigma2, float *w);

/* Find the best division of a part: 32 elements and one shift (IQ1_S), 16
 * elements and a shift for each half (IQ1_M).
 *
 * x, w     elements and their importances
 * order    receives the indices sorted by x, equal elements by index
 *
 * Returns 0 if no division has an error that can be computed. */
typedef int gg_kern_iq1_split_fn(const float *x, const float *w, int *order,
                                 struct gg_kern_iq1_split *best);

/* Code of the entry near a point whose error, by scale * v[level], is least. */
typedef unsigned gg_kern_iq1_near_fn(unsigned point, const float *x,
                                     const float *w, float scale,
                                     const float v[3]);

struct gg_kern_iq1_search {
    gg_kern_iq1_weigh_fn *weigh;
    gg_kern_iq1_split_fn *split_s, *split_m;
    gg_kern_iq1_near_fn *near;
};

extern const struct gg_kern_iq1_search gg_kern_iq1_search_c;

/* Values of the levels, shifted up and down by an eighth. */
#define GG_IQ1_SHIFTED                                                        \
    {                                                                         \
        { -0.875f, 0.125f, 1.125f },                                          \
        {                                                                     \
            -1.125f, -0.125f, 0.875f                                          \
        }                                                                     \
    }

/* The encoders with these searches. */
void gg_kern_iq1_s_encode(const struct gg_kern_iq1_search *search,
                          const float *src, void *dst, size_t n_rows,
                          size_t row_len, const float *weight);
void gg_kern_iq1_m_encode(const struct gg_kern_iq1_search *search,
                          const float *src, void *dst, size_t n_rows,
                          size_t row_len, const float *weight);

#endif
