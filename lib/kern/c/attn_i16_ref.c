/* SPDX-License-Identifier: MIT */
/* attn_i16_ref.c - reference kernels of attention in integers */
#include "config.h"
#include "kern/attn_i16.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "kern/c/round.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    MR = GG_ATTN_I16_MR_C,
    NR = GG_ATTN_I16_NR_C,
    UNIT = GG_ATTN_I16_UNIT,
    STRIDE = GG_ATTN_I16_STRIDE
};

/* Sum of UNIT lanes, in the order in which vectors add them. */
static float sum_of(float lane[UNIT])
{
    for (size_t half = UNIT / 2; half; half /= 2)
        for (size_t i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

static int16_t nearest_int(float x)
{
    return (int16_t)gg_kern_nearest(x);
}

/* n floats times a number, filled up with 0. */
static void round_all(const float *x, size_t n, float inverse, int16_t *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = nearest_int(x[i] * inverse);
    for (; n % UNIT; n++)
        to[n] = 0;
}

static void all_zero(size_t n, int16_t *to)
{
    memset(to, 0, (n + UNIT - 1) / UNIT * UNIT * sizeof *to);
}

static float row_length(const float *x, size_t n, float factor)
{
    float lane[UNIT] = { 0 };
    for (size_t i = 0; i < n; i++) {
        const float y = x[i] * factor;
        lane[i % UNIT] += y * y;
    }
    return sqrtf(sum_of(lane));
}

/* Round one row; returns its scale. */
static float round_row(const float *x, size_t n, int16_t *to)
{
    const float max = gg_kern_max_abs(x, n);
    const uint32_t bits = gg_bytes_f32_bits(max);
    if (!gg_kern_attn_i16_is_scalable(bits)) {
        all_zero(n, to);
        return gg_kern_attn_i16_zero_scale(bits);
    }
    const float f = GG_ATTN_I16_MOST / max;
    const struct gg_kern_attn_i16_scale s = gg_kern_attn_i16_scale_of(
        max,
        gg_kern_attn_i16_fits_squares(max) ? row_length(x, n, 1) * f
                                           : row_length(x, n, f),
        GG_ATTN_I16_LENGTH);
    round_all(x, n, s.inverse, to);
    return s.scale;
}

void gg_kern_attn_i16_round_c(const float *x, size_t stride, size_t n_rows,
                              size_t n, int16_t *to, size_t to_stride,
                              float *scale)
{
    for (size_t r = 0; r < n_rows; r++)
        scale[r] = round_row(x + r * stride, n, to + r * to_stride);
}

void gg_kern_attn_i16_weights_c(const float *x, size_t stride, size_t n_cols,
                                size_t n, int16_t *to, float *scale)
{
    for (size_t j = 0; j < n_cols; j++, x += stride, to += STRIDE) {
        const float max = gg_kern_max_abs(x, n);
        const uint32_t bits = gg_bytes_f32_bits(max);
        float lane[UNIT] = { 0 };
        if (!gg_kern_attn_i16_is_scalable(bits)) {
            all_zero(n, to);
            scale[j] = gg_kern_attn_i16_zero_scale(bits);
            continue;
        }
        for (size_t i = 0; i < n; i++)
            lane[i % UNIT] += x[i];
        const struct gg_kern_attn_i16_scale s = gg_kern_attn_i16_scale_of(
            max, sum_of(lane) * (GG_ATTN_I16_MOST / max), GG_ATTN_I16_SUM);
        round_all(x, n, s.inverse, to);
        scale[j] = s.scale;
    }
}

void gg_kern_attn_i16_rows_c(const int16_t *row, size_t stride, size_t n_steps,
                             int16_t *panel)
{
    for (size_t p = 0; p < n_steps; p++)
        for (size_t r = 0; r < GG_ATTN_I16_ROWS; r++)
            panel[(p / 2 * MR + r) * 2 + p % 2] = row[r * stride + p];
}

void gg_kern_attn_i16_values_c(const float *x, size_t stride, size_t n,
                               size_t dv, int16_t *panel, size_t size,
                               float *scale)
{
    for (size_t p = 0; p < n + n % 2; p++) {
        float inverse = 0;
        if (p < n) {
            const float max = gg_kern_max_abs(x + p * stride, dv);
            const uint32_t bits = gg_bytes_f32_bits(max);
            const bool some = gg_kern_attn_i16_is_scalable(bits);
            inverse = some ? GG_ATTN_I16_VALUE / max : 0;
            scale[p] = some ? max / GG_ATTN_I16_VALUE
                            : gg_kern_attn_i16_zero_scale(bits);
        }
        for (size_t i = 0; i < dv; i++)
            panel[i / MR * size + (p / 2 * MR + i % MR) * 2 + p % 2] =
                inverse != 0 ? nearest_int(x[p * stride + i] * inverse) : 0;
    }
}

void gg_kern_attn_i16_tile_c(const int16_t *w, const int16_t *x,
                             size_t n_pairs, unsigned n_cols, const float *row,
                             const float *col, float *y, size_t y_stride)
{
    for (unsigned j = 0; j < n_cols; j++, y += y_stride)
        for (unsigned r = 0; r < MR; r++) {
            int32_t sum = 0;
            for (size_t p = 0; p < 2 * n_pairs; p++)
                sum += w[(p / 2 * MR + r) * 2 + p % 2] *
                       x[p / GG_ATTN_I16_STEPS * NR * STRIDE + j * STRIDE +
                         p % GG_ATTN_I16_STEPS];
            y[r] = row ? (float)sum * (row[r] * col[j])
                       : y[r] + (float)sum * col[j];
        }
}
