/* SPDX-License-Identifier: MIT */
/* enc_tern.c - reference encoders of one and two bits and ternary digits
 *
 * No search: the scale is the largest or the mean magnitude. Importances are
 * not used. Source: quantize_row_tq1_0_ref, _tq2_0_ref, _q1_0_ref and
 * _q2_0_ref of ggml-quants.c (ggml commit d99724f).
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/block_io.h"
#include "kern/c/round.h"

/* Digits 0, 1, 2 of n elements; returns the scale. Where 1/scale overflows a
 * digit is that of zero. */
static float ternary_digits(const float *x, int n, uint8_t *digit)
{
    float d = gg_kern_max_abs(x, (size_t)n), inv = d != 0 ? 1 / d : 0;
    for (int j = 0; j < n; j++)
        digit[j] = (uint8_t)(gg_round_away(x[j] * inv) + 1);
    return d;
}

/* Digits as a number in base 3, as 256ths of 3^5, rounded up. */
static uint8_t ternary_byte(const uint8_t *digit, int n, int stride)
{
    unsigned q = 0;
    for (int k = 0; k < 5; k++)
        q = q * 3 + (k < n ? digit[k * stride] : 0u);
    return (uint8_t)(((q & 255) * 256 + 242) / 243);
}

void gg_kern_encode_tq1_0_c(const float *src, void *dst, size_t n_rows,
                            size_t row_len, const float *weight)
{
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 256; i++, src += 256) {
        struct gg_block_tq1_0 b;
        uint8_t digit[256];
        gg_kern_put_half(&b.d, ternary_digits(src, 256, digit));
        for (int j = 0; j < 32; j++)
            b.qs[j] = ternary_byte(digit + j, 5, 32);
        for (int j = 0; j < 16; j++)
            b.qs[32 + j] = ternary_byte(digit + 160 + j, 5, 16);
        for (int j = 0; j < 4; j++)
            b.qh[j] = ternary_byte(digit + 240 + j, 4, 4);
        GG_PUT_BLOCK(b, dst, i);
    }
}

void gg_kern_encode_tq2_0_c(const float *src, void *dst, size_t n_rows,
                            size_t row_len, const float *weight)
{
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 256; i++, src += 256) {
        struct gg_block_tq2_0 b;
        uint8_t digit[256];
        gg_kern_put_half(&b.d, ternary_digits(src, 256, digit));
        gg_kern_pack_pairs(b.qs, digit);
        GG_PUT_BLOCK(b, dst, i);
    }
}

void gg_kern_encode_q1_0_c(const float *src, void *dst, size_t n_rows,
                           size_t row_len, const float *weight)
{
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 128; i++, src += 128) {
        struct gg_block_q1_0 b;
        float sum = 0;
        memset(&b, 0, sizeof b);
        for (int j = 0; j < 128; j++) {
            sum += fabsf(src[j]);
            b.qs[j / 8] |= (uint8_t)((src[j] >= 0) << j % 8);
        }
        gg_kern_put_half(&b.d, sum / 128);
        GG_PUT_BLOCK(b, dst, i);
    }
}

void gg_kern_encode_q2_0_c(const float *src, void *dst, size_t n_rows,
                           size_t row_len, const float *weight)
{
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 64; i++, src += 64) {
        struct gg_block_q2_0 b;
        float d = gg_kern_max_abs(src, 64), inv = d > 0 ? 1 / d : 0;
        memset(&b, 0, sizeof b);
        for (int j = 0; j < 64; j++) {
            int q = gg_kern_clamp(gg_round_away(src[j] * inv) + 1, 0, 3);
            b.qs[j / 4] |= (uint8_t)(q << 2 * (j % 4));
        }
        gg_kern_put_half(&b.d, d);
        GG_PUT_BLOCK(b, dst, i);
    }
}
