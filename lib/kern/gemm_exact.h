/* SPDX-License-Identifier: MIT */
/* gemm_exact.h - packers of exact panels, in terms of a transposition
 *
 * Included by the file of a level, which first defines MR, NR and
 *
 *     static void pack_floats(float *dst, size_t width, const float *src,
 *                      size_t stride, size_t rows, size_t k)
 *
 * which does dst[p * width + r] = src[r * stride + p].
 */
#ifndef GG_KERN_GEMM_EXACT_H
#define GG_KERN_GEMM_EXACT_H

#include "kern/gemm.h"

#include <string.h>

#define GG_GEMM_EXACT_PACKERS(level)                                          \
    void gg_kern_gemm_pack_w_##level(                                         \
        const struct gg_kern_gemm *g, void *panel, size_t first,              \
        const float *src, size_t stride, size_t n, size_t k)                  \
    {                                                                         \
        pack_floats((float *)panel + first, g->mr, src, stride, n, k);        \
    }                                                                         \
    void gg_kern_gemm_pack_x_##level(                                         \
        const struct gg_kern_gemm *g, void *panel, size_t first,              \
        const float *src, size_t stride, size_t n, size_t k)                  \
    {                                                                         \
        pack_floats((float *)panel + first, g->nr, src, stride, n, k);        \
    }                                                                         \
    void gg_kern_gemm_pack_wt_##level(                                        \
        const struct gg_kern_gemm *g, void *panel, size_t first,              \
        const float *src, size_t stride, size_t n, size_t k)                  \
    {                                                                         \
        float *dst = (float *)panel + first;                                  \
        for (size_t p = 0; p < k; p++, dst += g->mr, src += stride) {         \
            if (n == MR) /* a length that the compiler knows */               \
                memcpy(dst, src, MR * sizeof *dst);                           \
            else                                                              \
                memcpy(dst, src, n * sizeof *dst);                            \
        }                                                                     \
    }

#endif
