/* SPDX-License-Identifier: MIT */
/* vec_ref.c - reference kernels on rows */
#include "config.h"
#include "kern/vec.h"
#include "kern/codec.h"

#include "base/bytes.h"
#include "dtype/f16.h"

#include <math.h>
#include <string.h>

void gg_vec_add_c(float *y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

void gg_vec_mul_c(float *y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] * b[i];
}

void gg_vec_scale_c(float *y, const float *x, size_t n, float scale,
                    float bias)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * scale + bias;
}

/* At -infinity the quotient would be NaN; the limit is -0. */
static float silu(float x)
{
    return x == -INFINITY ? -0.0f : x / (1 + expf(-x));
}

void gg_vec_silu_c(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = silu(x[i]);
}

void gg_vec_swiglu_c(float *y, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = silu(gate[i]) * up[i];
}

void gg_vec_tanh_c(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = tanhf(x[i]);
}

float gg_vec_max_c(const float *x, size_t n)
{
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    return max;
}

double gg_vec_sum_c(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

float gg_vec_dot_c(const float *x, const float *y, size_t n)
{
    /* Sixteen chains, added in pairs: less error than one, and a compiler may
     * use its vectors. */
    float acc[16] = { 0 };
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (size_t l = 0; l < 16; l++)
            acc[l] += x[i + l] * y[i + l];
    for (size_t l = 0; i < n; i++, l++)
        acc[l] += x[i] * y[i];
    for (size_t half = 8; half; half /= 2)
        for (size_t l = 0; l < half; l++)
            acc[l] += acc[l + half];
    return acc[0];
}

/* acc = acc + w x, sixteen chains for each column, of n <= 16 numbers. */
static void add_products(float acc[GG_KERN_DOTS_COLS][16], const float *w,
                         const float *x, size_t x_stride, size_t n_cols,
                         size_t n)
{
    for (size_t j = 0; j < n_cols; j++, x += x_stride)
        for (size_t l = 0; l < n; l++)
            acc[j][l] += w[l] * x[l];
}

/* As dot, of FLOAT(v) for each number v of BITS bits, once for all columns. */
#define DOTS(NAME, BITS, FLOAT)                                               \
    static void get_##NAME(float *to, const unsigned char *w, size_t n)       \
    {                                                                         \
        uint##BITS##_t v;                                                     \
        for (size_t i = 0; i < n; i++) {                                      \
            memcpy(&v, w + i * sizeof v, sizeof v);                           \
            to[i] = FLOAT(v);                                                 \
        }                                                                     \
    }                                                                         \
    void gg_kern_dots_##NAME##_c(float *sum, const void *w, const float *x,   \
                                 size_t x_stride, size_t n_cols, size_t n)    \
    {                                                                         \
        const unsigned char *at = w;                                          \
        float acc[GG_KERN_DOTS_COLS][16] = { { 0 } }, v[16];                  \
        size_t i = 0;                                                         \
        for (; i + 16 <= n; i += 16) {                                        \
            get_##NAME(v, at + i * (BITS / 8), 16);                           \
            add_products(acc, v, x + i, x_stride, n_cols, 16);                \
        }                                                                     \
        get_##NAME(v, at + i * (BITS / 8), n - i);                            \
        add_products(acc, v, x + i, x_stride, n_cols, n - i);                 \
        for (size_t j = 0; j < n_cols; j++) {                                 \
            for (size_t half = 8; half; half /= 2)                            \
                for (size_t l = 0; l < half; l++)                             \
                    acc[j][l] += acc[j][l + half];                            \
            sum[j] = acc[j][0];                                               \
        }                                                                     \
    }
DOTS(f32, 32, gg_bytes_f32_from_bits)
DOTS(f16, 16, gg_dtype_f16_to_f32)
DOTS(bf16, 16, gg_dtype_bf16_to_f32)

double gg_vec_exp_sum_c(float *y, const float *x, size_t n, float max)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        float e = expf(x[i] - max);
        sum += e;
        if (y)
            y[i] = e;
    }
    return sum;
}

float gg_vec_exp_mul_c(float *y, const float *x, const float *f, size_t n,
                       float max)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++) {
        const float e = expf(x[i] - max);
        sum += e;
        y[i] = e * f[i];
    }
    return sum;
}

float gg_vec_scores_c(float *y, const float *x, const float *mask, size_t n,
                      float scale, float slope)
{
    for (size_t i = 0; i < n; i++)
        y[i] = mask ? x[i] * scale + slope * mask[i] : x[i] * scale;
    return gg_vec_max_c(y, n);
}

void gg_vec_soft_max_c(float *y, const float *x, const float *mask, size_t n,
                       float scale, float slope)
{
    float max = gg_vec_scores_c(y, x, mask, n, scale, slope);
    if (max == -INFINITY)
        max = 0;
    double sum = gg_vec_exp_sum_c(y, y, n, max);
    gg_vec_scale_c(y, y, n, sum == 0 ? 0 : (float)(1 / sum), 0);
}

void gg_vec_rms_norm_c(float *y, const float *x, const float *weight, size_t n,
                       float eps)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    float scale = 1 / sqrtf((float)(sum / (double)n) + eps);
    for (size_t i = 0; i < n; i++)
        y[i] = weight ? x[i] * scale * weight[i] : x[i] * scale;
}

void gg_vec_rope_norm_c(float *y, const float *x, const float *cosine,
                        const float *sine, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = a * cosine[i] - b * sine[i];
        y[2 * i + 1] = a * sine[i] + b * cosine[i];
    }
}

void gg_vec_rope_neox_c(float *y, const float *x, const float *cosine,
                        const float *sine, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++) {
        float a = x[i], b = x[n_pairs + i];
        y[i] = a * cosine[i] - b * sine[i];
        y[n_pairs + i] = a * sine[i] + b * cosine[i];
    }
}

void gg_vec_taps_c(float *y, const float *x, size_t x_stride, const float *w,
                   size_t w_stride, size_t n_taps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float sum = w[i] * x[i];
        for (size_t j = 1; j < n_taps; j++)
            sum += w[j * w_stride + i] * x[j * x_stride + i];
        y[i] = sum;
    }
}

void gg_vec_delta_c(const struct gg_vec_delta *p)
{
    const size_t n = p->n;
    for (size_t i = 0; i < p->n_rows; i++) {
        const float *from = p->from + i * n;
        float *s = p->s + i * n;
        for (size_t t = 0; t < p->n_tok; t++, from = s) {
            const float *g = p->g + t * n, *k = p->k + t * n;
            const float before = gg_vec_dot_c(from, p->gk + t * n, n);
            const float read = gg_vec_dot_c(from, p->gq + t * n, n);
            const float e = p->beta[t] * (p->v[t * p->v_stride + i] - before);
            p->y[t * p->y_stride + i] = read + e * p->kq[t];
            for (size_t j = 0; j < n; j++)
                s[j] = g[j] * from[j] + e * k[j];
        }
    }
}
