/* enc_q32.c - reference encoders of the types with blocks of 32
 *
 * Without importances a block's extreme element sets the scale; with them
 * the scale is searched for (enc_search.h), an element's weight being its
 * column's importance times sqrt(mean square of the row + its square).
 * Source: quantize_row_*_ref and _impl of ggml-quants.c (ggml commit d99724f).
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/block_io.h"
#include "kern/c/enc_search.h"
#include "kern/c/round.h"

/* Elements j and j + 16 share byte j. */
static void pack_nibbles(uint8_t qs[16], const uint8_t q[32])
{
    for (int j = 0; j < 16; j++)
        qs[j] = (uint8_t)((q[j] & 15) | (q[j + 16] & 15) << 4);
}

static float mean_square(const float *x, size_t n)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum / (float)n;
}

static void block_weights(float w[32], const float *x, const float *weight,
                          float mean2)
{
    for (int j = 0; j < 32; j++)
        w[j] = weight[j] * sqrtf(mean2 + x[j] * x[j]);
}

/* Codes 0 .. 2*half-1 about half, the extreme element at an end. A code that
 * leaves the range is cut to 8 bits first, as ggml's int8_t is. */
static float plain_symmetric(const float *x, int half, uint8_t q[32])
{
    float d = gg_max_abs_signed(x, 32) / -(float)half;
    float inv = d != 0 ? 1 / d : 0;
    for (int j = 0; j < 32; j++) {
        int v = (int8_t)gg_truncate(x[j] * inv + ((float)half + 0.5f));
        q[j] = (uint8_t)(v < 2 * half - 1 ? v : 2 * half - 1);
    }
    return d;
}

void gg_encode_q4_0_c(const float *src, void *dst, size_t n_rows,
                      size_t row_len, const float *weight)
{
    size_t n_block = row_len / 32;
    for (size_t r = 0; r < n_rows; r++, src += row_len) {
        float mean2 = weight ? mean_square(src, row_len) : 0;
        for (size_t i = 0; i < n_block; i++) {
            struct gg_block_q4_0 b;
            const float *x = src + 32 * i;
            uint8_t q[32];
            float d, w[32];
            if (weight) {
                block_weights(w, x, weight + 32 * i, mean2);
                d = gg_fit_symmetric(x, w, 32, 8, q);
            } else {
                d = plain_symmetric(x, 8, q);
            }
            gg_put_half(&b.d, d);
            pack_nibbles(b.qs, q);
            GG_PUT_BLOCK(b, dst, r * n_block + i);
        }
    }
}

void gg_encode_q8_0_c(const float *src, void *dst, size_t n_rows,
                      size_t row_len, const float *weight)
{
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 32; i++, src += 32) {
        struct gg_block_q8_0 b;
        float d = gg_max_abs(src, 32) / 127;
        float inv = d != 0 ? 1 / d : 0;
        gg_put_half(&b.d, d);
        for (int j = 0; j < 32; j++)
            b.qs[j] = (int8_t)gg_round_away(src[j] * inv);
        GG_PUT_BLOCK(b, dst, i);
    }
}
