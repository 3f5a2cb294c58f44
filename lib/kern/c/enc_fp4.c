/* SPDX-License-Identifier: MIT */
/* enc_fp4.c - reference encoders of MXFP4 and NVFP4
 *
 * The largest magnitude sets the scale, an element gets the level with the
 * least error, the first of several. Importances are not used. Source:
 * quantize_row_mxfp4_ref and _nvfp4_ref of ggml-quants.c (ggml commit
 * d99724f).
 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"
#include "kern/c/fp4.h"
#include "kern/c/round.h"

/* Levels 8-15 are the negative ones; they never win against 0-7 for an x
 * that is not negative, nor those for a negative x. */
static uint8_t nearest_level(float x, float d)
{
    static const float level[8] = { 0, 1, 2, 3, 4, 6, 8, 12 };
    float a = fabsf(x), best = a;
    uint8_t k = 0;
    for (uint8_t i = 1; i < 8; i++) {
        float e = fabsf(level[i] * d - a);
        if (e < best) {
            best = e;
            k = i;
        }
    }
    return k && x < 0 ? k + 8 : k;
}

void gg_kern_encode_mxfp4_c(const float *src, void *dst, size_t n_rows,
                            size_t row_len, const float *weight)
{
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 32; i++, src += 32) {
        struct gg_block_mxfp4 b;
        b.e = gg_kern_mxfp4_exponent(gg_kern_max_abs(src, 32));
        float d = gg_kern_e8m0_half(b.e);
        for (int j = 0; j < 16; j++)
            b.qs[j] = (uint8_t)(nearest_level(src[j], d) |
                                nearest_level(src[j + 16], d) << 4);
        GG_PUT_BLOCK(b, dst, i);
    }
}

void gg_kern_encode_nvfp4_c(const float *src, void *dst, size_t n_rows,
                            size_t row_len, const float *weight)
{
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 64; i++, src += 64) {
        struct gg_block_nvfp4 b;
        for (int s = 0; s < 4; s++) {
            const float *x = src + 16 * s;
            b.d[s] = gg_kern_ue4m3_of(gg_kern_max_abs(x, 16) / 6);
            float d = gg_kern_ue4m3_half(b.d[s]);
            for (int j = 0; j < 8; j++)
                b.qs[8 * s + j] = (uint8_t)(nearest_level(x[j], d) |
                                            nearest_level(x[j + 8], d) << 4);
        }
        GG_PUT_BLOCK(b, dst, i);
    }
}
