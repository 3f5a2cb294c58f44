/* SPDX-License-Identifier: MIT */
/* enc_iq4.c - reference encoders of IQ4_NL and IQ4_XS
 *
 * As a symmetric search, but elements round to the 16 levels of a table.
 * Source: quantize_row_iq4_nl_impl of ggml-quants.c (ggml commit d99724f).
 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/enc_iq4.h"
#include "kern/c/enc_search_ref.h"

static const float level[16] = GG_IQ4_LEVELS;

/* Nearest level; the upper one of two as near. NaN gets the largest. */
static uint8_t nearest_level(float v)
{
    if (v <= level[0])
        return 0;
    for (uint8_t k = 1; k < 16; k++)
        if (v < level[k])
            return v - level[k - 1] < level[k] - v ? k - 1 : k;
    return 15;
}

/* The best of 15 scales for 32 elements, and the plain one; 0 for zeros. */
static float fit_levels(const float *x, const float *w)
{
    float max = gg_kern_max_abs_signed(x, 32);
    if (fabsf(max) < GG_ENC_ZERO)
        return 0;
    float scale = 0, best = 0;
    for (int k = -8; k <= 7; k++) {
        /* first the one that makes the extreme element level 0 */
        float inv =
            k == -8 ? 1 / (-max / level[0]) : ((float)k + level[0]) / max;
        float sum_qx = 0, sum_qq = 0;
        for (int j = 0; j < 32; j++) {
            float q = level[nearest_level(inv * x[j])];
            sum_qx += w[j] * q * x[j];
            sum_qq += w[j] * q * q;
        }
        if (k == -8) {
            scale = sum_qq > 0 ? sum_qx / sum_qq : 0;
            best = scale * sum_qx;
        } else if (sum_qq > 0 && sum_qx * sum_qx > best * sum_qq) {
            scale = sum_qx / sum_qq;
            best = scale * sum_qx;
        }
    }
    return scale;
}

/* Fits of the n / 32 parts of a block of n elements. */
static void fit_block(const float *x, const float *weight, int n, float *scale)
{
    float w[32], sigma2 = 0;
    for (int i = 0; i < n; i++)
        sigma2 += x[i] * x[i];
    sigma2 *= 2.0f / (float)n;
    for (int s = 0; s < n / 32; s++) {
        const float *xs = x + 32 * s;
        for (int j = 0; j < 32; j++)
            w[j] = weight ? weight[32 * s + j] * sqrtf(sigma2 + xs[j] * xs[j])
                          : xs[j] * xs[j];
        scale[s] = fit_levels(xs, w);
    }
}

static void put_levels(uint8_t qs[16], const float *x, float inv)
{
    for (int j = 0; j < 16; j++)
        qs[j] = (uint8_t)(nearest_level(inv * x[j]) |
                          nearest_level(inv * x[j + 16]) << 4);
}

void gg_kern_encode_iq4_nl_c(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    size_t n_block = row_len / 32;
    for (size_t i = 0; i < n_rows * n_block; i++, src += 32) {
        struct gg_block_iq4_nl b;
        float scale;
        fit_block(src, weight ? weight + i % n_block * 32 : NULL, 32, &scale);
        gg_kern_put_half(&b.d, scale);
        put_levels(b.qs, src, scale != 0 ? 1 / scale : 0);
        GG_PUT_BLOCK(b, dst, i);
    }
}

void gg_kern_encode_iq4_xs_c(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    size_t n_block = row_len / 256;
    for (size_t i = 0; i < n_rows * n_block; i++, src += 256) {
        struct gg_block_iq4_xs b;
        float scale[8];
        fit_block(src, weight ? weight + i % n_block * 256 : NULL, 256, scale);
        memset(&b, 0, sizeof b);
        float d = gg_kern_iq4_xs_scales(scale, &b);
        for (int s = 0; s < 8; s++) {
            float dl = d * (float)gg_kern_iq4_xs_scale(&b, s);
            put_levels(b.qs + 16 * s, src + 32 * s, dl != 0 ? 1 / dl : 0);
        }
        GG_PUT_BLOCK(b, dst, i);
    }
}
