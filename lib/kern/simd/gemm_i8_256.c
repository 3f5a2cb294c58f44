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
            int32_t *run = to + gg_gemm_i8_x_index(g, 0, first + c) / 4;
            for (size_t t = 0; t < GG_GEMM_I8_QUADS; t += 8) {
                GG_UNROLL
                for (size_t o = 0; o < 4; o++)
                    vst1_s32(run + 4 * o, vld1_s32(col + t + 2 * o));
                run += (size_t)8 * g->nr;
            }
            int32_t *one = to + first + c + (size_t)GG_GEMM_I8_QUADS * g->nr;
            for (size_t t = GG_GEMM_I8_QUADS; t < n_groups; t += 8) {
                GG_UNROLL
                for (size_t i = 0; i < 8; i++, one += g->nr)
                    *one = col[t + i];
            }
        }
    }
}
#endif
