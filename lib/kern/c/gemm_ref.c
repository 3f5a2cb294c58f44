/* SPDX-License-Identifier: MIT */
/* gemm_ref.c - reference kernels of dense products */
#include "config.h"
#include "kern/gemm_exact.h"

enum { MR = GG_GEMM_MR_C, NR = GG_GEMM_NR_C };

void gg_kern_gemm_tile_c(const void *w_panel, const void *x_panel,
                         size_t n_blocks, unsigned n_cols, float *y,
                         size_t y_stride, int add)
{
    const float *w = w_panel, *x = x_panel;
    float acc[NR][MR] = { { 0 } };
    for (size_t p = 0; p < n_blocks; p++, w += MR, x += NR)
        for (unsigned j = 0; j < NR; j++)
            for (unsigned i = 0; i < MR; i++)
                acc[j][i] += w[i] * x[j];
    for (unsigned j = 0; j < n_cols; j++, y += y_stride)
        for (unsigned i = 0; i < MR; i++)
            y[i] = add ? y[i] + acc[j][i] : acc[j][i];
}

static void pack_floats(float *dst, size_t width, const float *src,
                        size_t stride, size_t rows, size_t k)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t p = 0; p < k; p++)
            dst[p * width + r] = src[r * stride + p];
}

GG_GEMM_EXACT_PACKERS(c)
