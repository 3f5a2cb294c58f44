/* SPDX-License-Identifier: MIT */
/* gemm_i8.c - reference kernels of products of bytes */
#include "config.h"
#include "kern/gemm_i8.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "kern/c/round.h"

#include <math.h>

enum {
    MR = GG_GEMM_MR_C,
    NR = GG_GEMM_NR_C,
    STEPS = GG_GEMM_INT_STEPS,
    RUN = 32 /* steps that share a scale of activations */
};

void gg_kern_i8_pack_w_c(const struct gg_kern_gemm *g, void *panel,
                         size_t first, const float *src, size_t stride,
                         size_t n, size_t k)
{
    const int bias = g->ints.bias;
    for (size_t p = 0; p < (k + STEPS - 1) / STEPS * STEPS; p++) {
        uint8_t *q = (uint8_t *)panel + p / STEPS * g->w_block;
        for (size_t r = 0; r < n; r++)
            q[gg_gemm_i8_w_index(g, p % STEPS, first + r)] =
                (uint8_t)((p < k ? (int)src[r * stride + p] : 0) + bias);
    }
}

/* n floats, at most 32, to integers; returns their scale. */
static float round_run(const float *x, size_t n, int8_t i[RUN])
{
    const float max = gg_kern_max_abs(x, n);
    const uint32_t bits = gg_bytes_f32_bits(max);
    const bool good = bits < 0x7f800000 && max >= GG_GEMM_INT_LEAST;
    const float inverse = good ? GG_GEMM_I8_MOST / max : 0;
    for (size_t p = 0; p < RUN; p++)
        i[p] = p < n && good ? (int8_t)gg_kern_nearest(x[p] * inverse) : 0;
    return bits >= 0x7f800000 ? NAN : good ? max / GG_GEMM_I8_MOST : 0;
}

static int32_t sum_of(const int8_t *i, unsigned n)
{
    int32_t sum = 0;
    while (n--)
        sum += *i++;
    return sum;
}

static void put_column(const struct gg_kern_gemm *g, struct gg_gemm_i8_x to,
                       size_t c, const float *x, size_t n)
{
    const unsigned n_runs = GG_GEMM_I8_RUNS(g->ints.n_scales);
    const unsigned n_mins = g->ints.n_mins;
    int8_t i[STEPS];
    for (size_t r = 0; r < STEPS / RUN; r++) {
        const size_t at = r * RUN;
        to.s[r * g->nr + c] =
            round_run(x + GG_MIN(at, n),
                      n > at ? GG_MIN(n - at, (size_t)RUN) : 0, i + at);
    }
    for (size_t p = 0; p < STEPS; p++)
        to.i[gg_gemm_i8_x_index(g, p, c)] = i[p];
    for (unsigned r = 0; r < n_runs; r++)
        to.begin[r * g->nr + c] =
            -g->ints.bias * sum_of(i + r * (STEPS / n_runs), STEPS / n_runs);
    for (unsigned m = 0; m < n_mins; m++)
        to.sum[m * g->nr + c] =
            (float)sum_of(i + m * (STEPS / n_mins), STEPS / n_mins) *
            to.s[m * (STEPS / n_mins) / RUN * g->nr + c];
}

void gg_kern_i8_pack_x_c(const struct gg_kern_gemm *g, void *panel,
                         size_t first, const float *src, size_t stride,
                         size_t n, size_t k)
{
    for (size_t b = 0; b * STEPS < k; b++)
        for (size_t c = 0; c < n; c++)
            put_column(g, gg_gemm_i8_x_at(g, panel, b), first + c,
                       src + c * stride + b * STEPS,
                       GG_MIN(k - b * STEPS, (size_t)STEPS));
}

/* A run of a column by its rows. */
static void multiply_column(const uint8_t *q, const int8_t *x,
                            unsigned n_quads, int32_t sum[MR])
{
    for (unsigned p = 0; p < 4 * n_quads; p++)
        for (unsigned r = 0; r < MR; r++)
            sum[r] +=
                q[p / 4 * 4 * MR + r * 4 + p % 4] * x[p / 4 * 4 * NR + p % 4];
}

static void multiply_tile(const void *w_panel, const void *x_panel,
                          size_t n_blocks, unsigned n_cols, float *y,
                          size_t y_stride, int add, unsigned n_scales,
                          unsigned n_mins)
{
    const struct gg_kern_gemm g = {
        .mr = MR,
        .nr = NR,
        .w_block = GG_GEMM_I8_W_BLOCK(MR, n_scales, n_mins),
        .x_block = GG_GEMM_I8_X_BLOCK(NR, n_scales, n_mins),
        .ints = { .n_scales = n_scales, .n_mins = n_mins, .width = 1 },
    };
    const unsigned n_runs = GG_GEMM_I8_RUNS(n_scales);
    const unsigned quads = GG_GEMM_I8_QUADS / n_runs;
    for (unsigned j = 0; j < n_cols; j++, y += y_stride) {
        float v[MR] = { 0 };
        for (size_t b = 0; b < n_blocks; b++) {
            const struct gg_gemm_int_w w =
                gg_gemm_int_w_at(&g, (void *)(uintptr_t)w_panel, b);
            const struct gg_gemm_i8_x x =
                gg_gemm_i8_x_at(&g, (void *)(uintptr_t)x_panel, b);
            for (unsigned s = 0; s < n_runs; s++) {
                int32_t sum[MR];
                for (unsigned r = 0; r < MR; r++)
                    sum[r] = x.begin[s * NR + j];
                multiply_column((const uint8_t *)w.q + s * quads * MR * 4,
                                x.i + s * quads * NR * 4 + j * 4, quads, sum);
                for (unsigned r = 0; r < MR; r++)
                    v[r] += (float)sum[r] *
                            (w.d[s * n_scales / n_runs * MR + r] *
                             x.s[s * GG_GEMM_I8_SCALES / n_runs * NR + j]);
            }
            for (unsigned m = 0; m < n_mins; m++)
                for (unsigned r = 0; r < MR; r++)
                    v[r] += w.m[m * MR + r] * x.sum[m * NR + j];
        }
        for (unsigned r = 0; r < MR; r++)
            y[r] = add ? y[r] + v[r] : v[r];
    }
}

#define X(scales, mins, level)                                                \
    GG_GEMM_INT_TILE(gg_kern_i8_tile_##scales##_##mins##_##level, scales, mins)
GG_GEMM_I8_TILES(X, c)
