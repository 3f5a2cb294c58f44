/* SPDX-License-Identifier: MIT */
/* gemm_i16.c - reference kernels of products of 16-bit integers */
#include "config.h"
#include "kern/gemm_int.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "kern/c/round.h"

#include <math.h>
#include <stdlib.h>

enum {
    MR = GG_GEMM_MR_C,
    NR = GG_GEMM_NR_C,
    STEPS = GG_GEMM_INT_STEPS,
    PAIRS = GG_GEMM_INT_PAIRS
};

/* Where step p of a row of a panel is, width wide. */
static size_t step_index(size_t p, size_t row, size_t width)
{
    const size_t pair = p / 32 * 16 + p % 16;
    return (pair * width + row) * 2 + p % 32 / 16;
}

void gg_kern_i16_pack_w_c(const struct gg_kern_gemm *g, void *panel,
                          size_t first, const float *src, size_t stride,
                          size_t n, size_t k)
{
    for (size_t p = 0; p < (k + STEPS - 1) / STEPS * STEPS; p++) {
        int16_t *q = gg_gemm_int_w_at(g, panel, p / STEPS).q;
        for (size_t r = 0; r < n; r++)
            q[step_index(p % STEPS, first + r, g->mr)] =
                p < k ? (int16_t)src[r * stride + p] : 0;
    }
}

static void round_all(const float *x, size_t n, float inverse, int16_t *i)
{
    for (size_t p = 0; p < STEPS; p++)
        i[p] = p < n ? (int16_t)gg_kern_nearest(x[p] * inverse) : 0;
}

/* The largest sum of magnitudes of a run. */
static int32_t largest_sum(const int16_t *i, unsigned n_runs)
{
    int32_t most = 0;
    for (unsigned r = 0; r < n_runs; r++) {
        int32_t sum = 0;
        for (unsigned p = 0; p < STEPS / n_runs; p++)
            sum += abs(*i++);
        most = GG_MAX(most, sum);
    }
    return most;
}

/* n floats, at most 256, to integers; returns their scale. */
static float round_block(const struct gg_kern_gemm_ints *ints, const float *x,
                         size_t n, int16_t *i)
{
    const float max = gg_kern_max_abs(x, n);
    const uint32_t bits = gg_bytes_f32_bits(max);
    if (bits >= 0x7f800000 || max < GG_GEMM_INT_LEAST) {
        round_all(x, 0, 0, i);
        return bits >= 0x7f800000 ? NAN : 0;
    }
    float inverse = GG_GEMM_INT_MOST / max;
    float scale = max / GG_GEMM_INT_MOST;
    round_all(x, n, inverse, i);
    const float coarser = gg_gemm_int_coarsen_scale(
        largest_sum(i, ints->n_scales), ints->most, STEPS / ints->n_scales);
    if (coarser != 1) {
        inverse /= coarser;
        scale *= coarser;
        round_all(x, n, inverse, i);
    }
    return scale;
}

void gg_kern_i16_pack_x_c(const struct gg_kern_gemm *g, void *panel,
                          size_t first, const float *src, size_t stride,
                          size_t n, size_t k)
{
    const unsigned n_mins = g->ints.n_mins;
    for (size_t b = 0; b * STEPS < k; b++) {
        const struct gg_gemm_int_x to = gg_gemm_int_x_at(g, panel, b);
        const size_t len = GG_MIN(k - b * STEPS, (size_t)STEPS);
        for (size_t c = first; c < first + n; c++) {
            int16_t i[STEPS];
            to.s[c] = round_block(
                &g->ints, src + (c - first) * stride + b * STEPS, len, i);
            for (size_t p = 0; p < STEPS; p++)
                to.i[step_index(p, c, g->nr)] = i[p];
            for (unsigned m = 0; m < n_mins; m++) {
                int32_t sum = 0;
                for (unsigned p = 0; p < STEPS / n_mins; p++)
                    sum += i[m * (STEPS / n_mins) + p];
                to.sum[m * g->nr + c] = (float)sum * to.s[c];
            }
        }
    }
}

/* One column of a block by its rows. */
static void multiply_column(const struct gg_gemm_int_w *w, const int16_t *x,
                            unsigned run, unsigned n_pairs, int32_t sum[MR])
{
    for (unsigned r = 0; r < MR; r++)
        sum[r] = 0;
    for (unsigned p = run * n_pairs; p < (run + 1) * n_pairs; p++)
        for (unsigned r = 0; r < MR; r++) {
            const int16_t *q = w->q + (p * MR + r) * 2;
            sum[r] += q[0] * x[p * NR * 2] + q[1] * x[p * NR * 2 + 1];
        }
}

static void multiply_tile(const void *w_panel, const void *x_panel,
                          size_t n_blocks, unsigned n_cols, float *y,
                          size_t y_stride, int add, unsigned n_scales,
                          unsigned n_mins)
{
    const struct gg_kern_gemm g = {
        .mr = MR,
        .nr = NR,
        .w_block = GG_GEMM_INT_W_BLOCK(MR, n_scales, n_mins),
        .x_block = GG_GEMM_INT_X_BLOCK(NR, n_mins),
        .ints = { .width = 2, .n_scales = n_scales, .n_mins = n_mins },
    };
    for (unsigned j = 0; j < n_cols; j++, y += y_stride) {
        float all[MR] = { 0 };
        for (size_t b = 0; b < n_blocks; b++) {
            const struct gg_gemm_int_w w =
                gg_gemm_int_w_at(&g, (void *)(uintptr_t)w_panel, b);
            const struct gg_gemm_int_x x =
                gg_gemm_int_x_at(&g, (void *)(uintptr_t)x_panel, b);
            float v[MR] = { 0 };
            for (unsigned s = 0; s < n_scales; s++) {
                int32_t sum[MR];
                multiply_column(&w, x.i + 2 * j, s, PAIRS / n_scales, sum);
                for (unsigned r = 0; r < MR; r++)
                    v[r] += (float)sum[r] * w.d[s * MR + r];
            }
            for (unsigned r = 0; r < MR; r++)
                all[r] += v[r] * x.s[j];
            for (unsigned m = 0; m < n_mins; m++)
                for (unsigned r = 0; r < MR; r++)
                    all[r] += w.m[m * MR + r] * x.sum[m * NR + j];
        }
        for (unsigned r = 0; r < MR; r++)
            y[r] = add ? y[r] + all[r] : all[r];
    }
}

#define X(scales, mins, most, level)                                          \
    GG_GEMM_INT_TILE(gg_kern_i16_tile_##scales##_##mins##_##level, scales,    \
                     mins)
GG_GEMM_I16_FORMS(X, c)
