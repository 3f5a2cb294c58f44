/* SPDX-License-Identifier: MIT */
/* gemm_bf16.c - reference kernels of products of bf16 */
#include "config.h"
#include "dtype/f16.h"
#include "kern/gemm_bf16.h"

enum { MR = GG_GEMM_MR_C, NR = GG_GEMM_NR_C };

/* A subnormal is 0. */
static uint16_t round_bf16(float x)
{
    const uint32_t bits = gg_bytes_f32_bits(x);
    return bits & 0x7f800000 ? gg_dtype_f32_to_bf16(x)
                             : (uint16_t)(bits >> 16 & 0x8000);
}

static void pack_pairs(void *panel, size_t first, size_t width,
                       const float *src, size_t stride, size_t n, size_t k)
{
    uint16_t *q = panel;
    for (size_t p = 0; p < k + k % 2; p++)
        for (size_t r = 0; r < n; r++)
            q[(p / 2 * width + first + r) * 2 + p % 2] =
                p < k ? round_bf16(src[r * stride + p]) : 0;
}

void gg_kern_bf16_pack_w_c(const struct gg_kern_gemm *g, void *panel,
                           size_t first, const float *src, size_t stride,
                           size_t n, size_t k)
{
    pack_pairs(panel, first, g->mr, src, stride, n, k);
}

void gg_kern_bf16_pack_x_c(const struct gg_kern_gemm *g, void *panel,
                           size_t first, const float *src, size_t stride,
                           size_t n, size_t k)
{
    pack_pairs(panel, first, g->nr, src, stride, n, k);
}

void gg_kern_bf16_tile_c(const void *w_panel, const void *x_panel,
                         size_t n_blocks, unsigned n_cols, float *y,
                         size_t y_stride, int add)
{
    const uint16_t *w = w_panel, *x = x_panel;
    float acc[NR][MR] = { { 0 } };
    for (size_t p = 0; p < n_blocks; p++, w += 2 * MR, x += 2 * NR)
        for (unsigned j = 0; j < NR; j++)
            for (unsigned i = 0; i < 2 * MR; i++)
                acc[j][i / 2] += gg_dtype_bf16_to_f32(w[i]) *
                                 gg_dtype_bf16_to_f32(x[2 * j + i % 2]);
    for (unsigned j = 0; j < n_cols; j++, y += y_stride)
        for (unsigned i = 0; i < MR; i++)
            y[i] = add ? y[i] + acc[j][i] : acc[j][i];
}
