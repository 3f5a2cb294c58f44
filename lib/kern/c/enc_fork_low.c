/* SPDX-License-Identifier: MIT */
/* enc_fork_low.c - reference encoders of IQ1_BN, IQ2_BN, Q8_KV and Q8_K_R8
 *
 * No search and no importances: the scale of a row, or of a block of Q8_K_R8,
 * follows from its largest magnitude.
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/block_io.h"
#include "kern/c/round.h"

/* Digit of a ternary type, 0 to 2. A row of zeros has digits 2. */
static unsigned digit_of(float x, float threshold)
{
    return fabsf(x) < threshold ? 1 : x < 0 ? 0 : 2;
}

/* Digits at x, x + stride, ..., as 256ths of 3^5, rounded up; the first has
 * the lowest weight. */
static uint8_t ternary_byte(const float *x, int n, int stride, float threshold)
{
    unsigned v = 0;
    for (int k = n - 1; k >= 0; k--)
        v = v * 3 + digit_of(x[k * stride], threshold);
    return (uint8_t)((256 * v + 242) / 243);
}

/* 64 elements: 12 bytes of five digits, three for each 16 elements; the 16ths
 * elements are in the last byte. */
static void encode_iq1_bn(uint8_t *p, const float *x, float threshold)
{
    for (int i = 0; i < 12; i++)
        p[i] = ternary_byte(x + i / 3 * 16 + i % 3 * 5, 5, 1, threshold);
    p[12] = ternary_byte(x + 15, 4, 16, threshold);
}

void gg_kern_encode_iq1_bn_c(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    uint8_t *p = dst;
    (void)weight;
    for (size_t r = 0; r < n_rows; r++) {
        float max = gg_kern_max_abs(src, row_len);
        gg_kern_put_half(p, max);
        p += 2;
        for (size_t i = 0; i < row_len; i += 64, src += 64, p += 13)
            encode_iq1_bn(p, src, 0.5f * max);
    }
}

void gg_kern_encode_iq2_bn_c(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    uint8_t *p = dst;
    (void)weight;
    for (size_t r = 0; r < n_rows; r++) {
        float max = gg_kern_max_abs(src, row_len);
        gg_bytes_store32le(p, gg_bytes_f32_bits(max));
        p += 4;
        for (size_t i = 0; i < row_len; i += 64, src += 64)
            for (int j = 0; j < 16; j++) {
                unsigned v = 0;
                for (int l = 0; l < 4; l++)
                    v |= digit_of(src[16 * l + j], 0.5f * max) << 2 * l;
                *p++ = (uint8_t)v;
            }
    }
}

/* The header: the scale, then the sum of the row's codes. */
void gg_kern_encode_q8_kv_c(const float *src, void *dst, size_t n_rows,
                            size_t row_len, const float *weight)
{
    uint8_t *p = dst;
    (void)weight;
    for (size_t r = 0; r < n_rows; r++, p += 8 + row_len, src += row_len) {
        float max = gg_kern_max_abs(src, row_len);
        float d = max / 127, id = d != 0 ? 1 / d : 0;
        uint32_t sum = 0;
        for (size_t i = 0; i < row_len; i++) {
            int q = gg_kern_nearest(id * src[i]);
            p[8 + i] = (uint8_t)q;
            sum += (uint32_t)q;
        }
        gg_bytes_store32le(p, gg_bytes_f32_bits(d));
        gg_bytes_store32le(p + 4, sum);
    }
}

/* Rows of Q8_K_R8 before they are interleaved: blocks of Q8_0. Each eight
 * blocks share a scale. */
void gg_kern_encode_q8_k_r8_c(const float *src, void *dst, size_t n_rows,
                              size_t row_len, const float *weight)
{
    enum { LEN = 256, SHORT = 32 };
    uint8_t *p = dst;
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / LEN; i++, src += LEN) {
        const float max = gg_kern_max_abs(src, LEN);
        const float d = max / 127, id = d != 0 ? 127 / max : 0;
        for (int k = 0; k < LEN; k++) {
            if (k % SHORT == 0) {
                gg_kern_put_half(p, d);
                p += 2;
            }
            *p++ = (uint8_t)gg_kern_nearest(id * src[k]);
        }
    }
}

void gg_kern_encode_q8_k_r16_c(const float *src, void *dst, size_t n_rows,
                               size_t row_len, const float *weight)
{
    gg_kern_encode_q8_k_r8_c(src, dst, n_rows, row_len, weight);
}
