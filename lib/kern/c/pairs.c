/* SPDX-License-Identifier: MIT */
/* pairs.c - reference kernels of products of integers of both sides */
#include "config.h"
#include "kern/pairs.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "kern/c/round.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    MR = GG_PAIRS_MR_C,
    NR = GG_PAIRS_NR_C,
    UNIT = GG_PAIRS_UNIT,
    STRIDE = GG_PAIRS_STRIDE
};

/* Bits of the largest magnitude: NaN is more than infinity, that than all
 * numbers. */
static uint32_t largest(const float *x, size_t n)
{
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = gg_bytes_f32_bits(x[i]) & 0x7fffffff;
        max = GG_MAX(max, bits);
    }
    return max;
}

/* Of UNIT lanes, as vectors add them up. */
static float sum_of(float lane[UNIT])
{
    for (size_t half = UNIT / 2; half; half /= 2)
        for (size_t i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

static int16_t nearest(float x)
{
    return (int16_t)gg_kern_nearest(x);
}

/* n floats times a number, filled up with 0. */
static void round_all(const float *x, size_t n, float inverse, int16_t *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = nearest(x[i] * inverse);
    for (; n % UNIT; n++)
        to[n] = 0;
}

static void all_zero(size_t n, int16_t *to)
{
    memset(to, 0, (n + UNIT - 1) / UNIT * UNIT * sizeof *to);
}

static float length(const float *x, size_t n, float factor)
{
    float lane[UNIT] = { 0 };
    for (size_t i = 0; i < n; i++) {
        const float y = x[i] * factor;
        lane[i % UNIT] += y * y;
    }
    return sqrtf(sum_of(lane));
}

/* Of one row; returns its scale. */
static float round_row(const float *x, size_t n, int16_t *to)
{
    const uint32_t bits = largest(x, n);
    const float max = gg_bytes_f32_from_bits(bits);
    if (!gg_kern_pairs_is_some(bits)) {
        all_zero(n, to);
        return gg_kern_pairs_nothing(bits);
    }
    const float f = GG_PAIRS_MOST / max;
    const struct gg_kern_pairs_scale s = gg_kern_pairs_scale_of(
        max,
        gg_kern_pairs_is_plain(max) ? length(x, n, 1) * f : length(x, n, f),
        GG_PAIRS_LENGTH);
    round_all(x, n, s.inverse, to);
    return s.scale;
}

void gg_kern_pairs_round_c(const float *x, size_t stride, size_t n_rows,
                           size_t n, int16_t *to, size_t to_stride,
                           float *scale)
{
    for (size_t r = 0; r < n_rows; r++)
        scale[r] = round_row(x + r * stride, n, to + r * to_stride);
}

void gg_kern_pairs_weights_c(const float *x, size_t stride, size_t n_cols,
                             size_t n, int16_t *to, float *scale)
{
    for (size_t j = 0; j < n_cols; j++, x += stride, to += STRIDE) {
        const uint32_t bits = largest(x, n);
        const float max = gg_bytes_f32_from_bits(bits);
        float lane[UNIT] = { 0 };
        if (!gg_kern_pairs_is_some(bits)) {
            all_zero(n, to);
            scale[j] = gg_kern_pairs_nothing(bits);
            continue;
        }
        for (size_t i = 0; i < n; i++)
            lane[i % UNIT] += x[i];
        const struct gg_kern_pairs_scale s = gg_kern_pairs_scale_of(
            max, sum_of(lane) * (GG_PAIRS_MOST / max), GG_PAIRS_SUM);
        round_all(x, n, s.inverse, to);
        scale[j] = s.scale;
    }
}

void gg_kern_pairs_rows_c(const int16_t *row, size_t stride, size_t n_steps,
                          int16_t *panel)
{
    for (size_t p = 0; p < n_steps; p++)
        for (size_t r = 0; r < GG_PAIRS_ROWS; r++)
            panel[(p / 2 * MR + r) * 2 + p % 2] = row[r * stride + p];
}

void gg_kern_pairs_values_c(const float *x, size_t stride, size_t n, size_t dv,
                            int16_t *panel, size_t size, float *scale)
{
    for (size_t p = 0; p < n + n % 2; p++) {
        float inverse = 0;
        if (p < n) {
            const uint32_t bits = largest(x + p * stride, dv);
            const float max = gg_bytes_f32_from_bits(bits);
            const bool some = gg_kern_pairs_is_some(bits);
            inverse = some ? GG_PAIRS_VALUE / max : 0;
            scale[p] =
                some ? max / GG_PAIRS_VALUE : gg_kern_pairs_nothing(bits);
        }
        for (size_t i = 0; i < dv; i++)
            panel[i / MR * size + (p / 2 * MR + i % MR) * 2 + p % 2] =
                inverse != 0 ? nearest(x[p * stride + i] * inverse) : 0;
    }
}

void gg_kern_pairs_tile_c(const int16_t *w, const int16_t *x, size_t n_pairs,
                          unsigned n_cols, const float *row, const float *col,
                          float *y, size_t y_stride)
{
    for (unsigned j = 0; j < n_cols; j++, y += y_stride)
        for (unsigned r = 0; r < MR; r++) {
            int32_t sum = 0;
            for (size_t p = 0; p < 2 * n_pairs; p++)
                sum += w[(p / 2 * MR + r) * 2 + p % 2] *
                       x[p / GG_PAIRS_STEPS * NR * STRIDE + j * STRIDE +
                         p % GG_PAIRS_STEPS];
            y[r] = row ? (float)sum * (row[r] * col[j])
                       : y[r] + (float)sum * col[j];
        }
}
