/* SPDX-License-Identifier: MIT */
/* attn_i16_impl.h - rounding for attention, 16 floats at a time
 *
 * Included once by attn_i16_256.c and attn_i16_avx512.c, which first define U,
 * a unit of 16 floats, UI, the bits of their magnitudes, operations on these
 * (u_, ui_), and FN(name), the name with the level's suffix.
 */
#include <string.h>

enum { UNIT = GG_ATTN_I16_UNIT };

static inline void all_zero(size_t n, int16_t *to)
{
    memset(to, 0, (n + UNIT - 1) / UNIT * UNIT * sizeof *to);
}

/* Multiply n floats by a number and round them to integers. */
static GG_ALWAYS_INLINE void round_all(const float *x, size_t n, float inverse,
                                       int16_t *to)
{
    const U f = u_all(inverse);
    size_t i = 0;
    for (; i + UNIT <= n; i += UNIT)
        u_round(to + i, u_mul(u_load(x + i), f));
    if (i < n)
        u_round(to + i, u_mul(u_load_n(x + i, n - i), f));
}

/* Bits of the largest magnitude of a row. *sum receives the sum of squares, or
 * of magnitudes. */
static GG_ALWAYS_INLINE uint32_t measure_row(const float *x, size_t n,
                                             bool square, float *sum)
{
    UI most = ui_zero();
    U all = u_all(0);
    size_t i = 0;
    for (; i + UNIT <= n; i += UNIT) {
        const U v = u_load(x + i);
        most = u_most(most, v);
        all = u_add(all, square ? u_mul(v, v) : v);
    }
    if (i < n) {
        const U v = u_load_n(x + i, n - i);
        most = u_most(most, v);
        all = u_add(all, square ? u_mul(v, v) : v);
    }
    *sum = u_sum(all);
    return ui_largest(most);
}

/* Euclidean length of x times a number. */
static float row_length(const float *x, size_t n, float factor)
{
    U all = u_all(0);
    for (size_t i = 0; i < n; i += UNIT) {
        const U v =
            u_mul(n - i >= UNIT ? u_load(x + i) : u_load_n(x + i, n - i),
                  u_all(factor));
        all = u_add(all, u_mul(v, v));
    }
    return sqrtf(u_sum(all));
}

/* All rows are measured before the first is rounded: computing a row's scale is
 * one long dependency chain. */
void FN(gg_kern_attn_i16_round)(const float *x, size_t stride, size_t n_rows,
                                size_t n, int16_t *to, size_t to_stride,
                                float *scale)
{
    uint32_t bits[GG_ATTN_I16_ROWS];
    float sum[GG_ATTN_I16_ROWS];
    for (size_t r = 0; r < n_rows; r++)
        bits[r] = measure_row(x + r * stride, n, true, &sum[r]);
    for (size_t r = 0; r < n_rows; r++) {
        const float *row = x + r * stride;
        const float max = gg_bytes_f32_from_bits(bits[r]);
        if (!gg_kern_attn_i16_is_scalable(bits[r])) {
            scale[r] = gg_kern_attn_i16_zero_scale(bits[r]);
            all_zero(n, to + r * to_stride);
            continue;
        }
        const float f = GG_ATTN_I16_MOST / max;
        const struct gg_kern_attn_i16_scale s = gg_kern_attn_i16_scale_of(
            max,
            gg_kern_attn_i16_fits_squares(max) ? sqrtf(sum[r]) * f
                                               : row_length(row, n, f),
            GG_ATTN_I16_LENGTH);
        round_all(row, n, s.inverse, to + r * to_stride);
        scale[r] = s.scale;
    }
}

void FN(gg_kern_attn_i16_weights)(const float *x, size_t stride, size_t n_cols,
                                  size_t n, int16_t *to, float *scale)
{
    uint32_t bits[NR];
    float sum[NR];
    for (size_t j = 0; j < n_cols; j++)
        bits[j] = measure_row(x + j * stride, n, false, &sum[j]);
    for (size_t j = 0; j < n_cols;
         j++, x += stride, to += GG_ATTN_I16_STRIDE) {
        const float max = gg_bytes_f32_from_bits(bits[j]);
        if (!gg_kern_attn_i16_is_scalable(bits[j])) {
            scale[j] = gg_kern_attn_i16_zero_scale(bits[j]);
            all_zero(n, to);
            continue;
        }
        const struct gg_kern_attn_i16_scale s = gg_kern_attn_i16_scale_of(
            max, sum[j] * (GG_ATTN_I16_MOST / max), GG_ATTN_I16_SUM);
        round_all(x, n, s.inverse, to);
        scale[j] = s.scale;
    }
}

/* Factor of the dv values of a step. */
static inline float inverse_of(const float *x, size_t dv, float *scale)
{
    UI most = ui_zero();
    for (size_t i = 0; i < dv; i += UNIT)
        most = u_most(most, u_load(x + i));
    const uint32_t bits = ui_largest(most);
    const float max = gg_bytes_f32_from_bits(bits);
    const bool some = gg_kern_attn_i16_is_scalable(bits);
    *scale =
        some ? max / GG_ATTN_I16_VALUE : gg_kern_attn_i16_zero_scale(bits);
    return some ? GG_ATTN_I16_VALUE / max : 0;
}

void FN(gg_kern_attn_i16_values)(const float *x, size_t stride, size_t n,
                                 size_t dv, int16_t *panel, size_t size,
                                 float *scale)
{
    /* A step whose integers are all 0 has the inverse 0. Infinity times 0 is
     * NaN, which becomes INT32_MIN, whose lower half is 0 as well. */
    for (size_t p = 0; p < n; p += 2, x += 2 * stride) {
        const float *y = p + 1 < n ? x + stride : x;
        const float a = inverse_of(x, dv, scale + p);
        const float b = p + 1 < n ? inverse_of(y, dv, scale + p + 1) : 0;
        int16_t *to = panel + p * MR;
        for (size_t i = 0; i < dv; i += MR, to += size)
            for (size_t j = 0; j < MR; j += UNIT)
                u_pairs(to + 2 * j, u_mul(u_load(x + i + j), u_all(a)),
                        u_mul(u_load(y + i + j), u_all(b)));
    }
}

void FN(gg_kern_attn_i16_rows)(const int16_t *row, size_t stride,
                               size_t n_steps, int16_t *panel)
{
    for (size_t p = 0; p < n_steps; p += UNIT) {
        __m256i v[GG_ATTN_I16_ROWS];
        GG_UNROLL
        for (size_t i = 0; i < GG_ATTN_I16_ROWS; i++)
            v[i] = gg_v256_load256(row + i * stride + p);
        gg_v256_put_8((int32_t *)(void *)panel + p / 2 * MR, MR, v);
    }
}
