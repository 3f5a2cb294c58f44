/* SPDX-License-Identifier: MIT */
/* gemm_i8_256.c - packer of activations as bytes, for all x86 levels */
#include "config.h"
#include "kern/simd/gemm_i8_column.h"

enum { STEPS = GG_GEMM_INT_STEPS };

void gg_kern_i8_pack_x_256(const struct gg_kern_gemm *g, void *panel,
                           size_t first, const float *src, size_t stride,
                           size_t n, size_t k)
{
    for (size_t b = 0; b * STEPS < k; b++) {
        int32_t col[GG_V256_COLS][GG_V256_COL_GROUPS];
        for (size_t c = 0; c < n; c++) {
            float part[STEPS];
            gg_gemm_i8_put_column(
                &g->ints,
                gg_v256_block_256(src + c * stride, b * STEPS, k, part),
                col[c]);
        }
        gg_v256_put_cols((int32_t *)(void *)gg_gemm_i8_x_at(g, panel, b).i +
                             first,
                         g->nr, n, col, g->x_block / 4 / g->nr);
    }
}

#ifdef __aarch64__
void gg_kern_i8_pack_pairs_256(const struct gg_kern_gemm *g, void *panel,
                               size_t first, const float *src, size_t stride,
                               size_t n, size_t k)
{
    const size_t n_groups = g->x_block / 4 / g->nr;
    for (size_t b = 0; b * STEPS < k; b++) {
        int32_t *to = (int32_t *)(void *)gg_gemm_i8_x_at(g, panel, b).i;
        for (size_t c = 0; c < n; c++) {
            int32_t col[GG_V256_COL_GROUPS];
            float part[STEPS];
            gg_gemm_i8_put_column(
                &g->ints,
                gg_v256_block_256(src + c * stride, b * STEPS, k, part), col);
            for (size_t t = 0; t < GG_GEMM_I8_QUADS; t += 2)
                vst1_s32(to + gg_gemm_i8_x_index(g, 4 * t, first + c) / 4,
                         vld1_s32(col + t));
            for (size_t t = GG_GEMM_I8_QUADS; t < n_groups; t++)
                to[t * g->nr + first + c] = col[t];
        }
    }
}
#endif
