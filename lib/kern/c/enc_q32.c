/* SPDX-License-Identifier: MIT */
/* enc_q32.c - reference encoders of the types with blocks of 32
 *
 * Without importances a block's extreme element sets the scale; with them
 * the scale is searched for (enc_search_ref.h), an element's weight being its
 * column's importance times sqrt(mean square of the row + its square).
 * Source: quantize_row_*_ref and _impl of ggml-quants.c (ggml commit d99724f).
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/block_io.h"
#include "kern/c/enc_search_ref.h"
#include "kern/c/round.h"

#include <float.h>
#include <stdbool.h>

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
    float d = gg_kern_max_abs_signed(x, 32) / -(float)half;
    float inv = d != 0 ? 1 / d : 0;
    for (int j = 0; j < 32; j++) {
        int v = (int8_t)gg_kern_truncate(x[j] * inv + ((float)half + 0.5f));
        q[j] = (uint8_t)(v < 2 * half - 1 ? v : 2 * half - 1);
    }
    return d;
}

/* Codes 0 .. q_max upwards from the least element. ggml cuts codes of Q4_1 to
 * 8 bits and then to q_max, those of Q5_1 to 8 bits only. */
static float plain_affine(const float *x, int q_max, uint8_t q[32], float *min)
{
    float lo = FLT_MAX, hi = -FLT_MAX;
    for (int j = 0; j < 32; j++) {
        lo = x[j] < lo ? x[j] : lo;
        hi = x[j] > hi ? x[j] : hi;
    }
    float d = (hi - lo) / (float)q_max;
    float inv = d != 0 ? 1 / d : 0;
    for (int j = 0; j < 32; j++) {
        int v = (int8_t)gg_kern_truncate((x[j] - lo) * inv + 0.5f);
        q[j] = (uint8_t)(v < q_max ? v : q_max);
    }
    *min = lo;
    return d;
}

/* The blocks of all rows, one after another. */
struct walk {
    const float *src, *weight; /* weight: of a row, may be NULL */
    size_t row_len, n, i;      /* blocks, and those that were met */
    /* elements of the block and their importances; w NULL: none */
    const float *x, *w;
    float mean2; /* mean square of the row, for importances */
};

static struct walk walk_of(const float *src, size_t n_rows, size_t row_len,
                           const float *weight)
{
    return (struct walk){ .src = src,
                          .weight = weight,
                          .row_len = row_len,
                          .n = n_rows * (row_len / 32) };
}

static bool next_block(struct walk *k)
{
    if (k->i == k->n)
        return false;
    size_t at = 32 * k->i++, column = at % k->row_len;
    k->x = k->src + at;
    k->w = k->weight ? k->weight + column : NULL;
    if (k->w && !column)
        k->mean2 = mean_square(k->x, k->row_len);
    return true;
}

static void pack_fifth(uint8_t qh[4], const uint8_t q[32])
{
    uint32_t bits = 0;
    for (int j = 0; j < 32; j++)
        bits |= (uint32_t)(q[j] >> 4 & 1) << j;
    gg_bytes_store32le(qh, bits);
}

/* One of the four types: how codes are fitted, and where a block's scale,
 * least element (if affine) and codes go. */
struct type32 {
    int half, q_max; /* symmetric about half, or (half 0) affine */
    size_t size;
    void (*put)(uint8_t *out, float d, float m, const uint8_t q[32]);
};

/* Scale and codes of a block. */
static float symmetric_block(const struct walk *k, int half, uint8_t q[32])
{
    float w[32];
    if (!k->w)
        return plain_symmetric(k->x, half, q);
    block_weights(w, k->x, k->w, k->mean2);
    return gg_kern_fit_symmetric(k->x, w, 32, half, q);
}

static float affine_block(const struct walk *k, int q_max, uint8_t q[32],
                          float *min)
{
    const struct gg_kern_affine_search search = GG_AFFINE_W(q_max);
    float w[32];
    if (!k->w)
        return plain_affine(k->x, q_max, q, min);
    block_weights(w, k->x, k->w, k->mean2);
    float d = gg_kern_fit_affine(k->x, w, 32, &search, q, min);
    *min = -*min;
    return d;
}

static void encode32(const struct type32 *t, const float *src, uint8_t *out,
                     size_t n_rows, size_t row_len, const float *weight)
{
    struct walk k = walk_of(src, n_rows, row_len, weight);
    for (; next_block(&k); out += t->size) {
        uint8_t q[32];
        float m = 0, d = t->half ? symmetric_block(&k, t->half, q)
                                 : affine_block(&k, t->q_max, q, &m);
        t->put(out, d, m, q);
    }
}

static void put_q4_0(uint8_t *out, float d, float m, const uint8_t q[32])
{
    (void)m;
    gg_kern_put_half(out, d);
    pack_nibbles(out + offsetof(struct gg_block_q4_0, qs), q);
}

static void put_q4_1(uint8_t *out, float d, float m, const uint8_t q[32])
{
    gg_kern_put_half(out, d);
    gg_kern_put_half(out + offsetof(struct gg_block_q4_1, m), m);
    pack_nibbles(out + offsetof(struct gg_block_q4_1, qs), q);
}

static void put_q5_0(uint8_t *out, float d, float m, const uint8_t q[32])
{
    (void)m;
    gg_kern_put_half(out, d);
    pack_fifth(out + offsetof(struct gg_block_q5_0, qh), q);
    pack_nibbles(out + offsetof(struct gg_block_q5_0, qs), q);
}

static void put_q5_1(uint8_t *out, float d, float m, const uint8_t q[32])
{
    gg_kern_put_half(out, d);
    gg_kern_put_half(out + offsetof(struct gg_block_q5_1, m), m);
    pack_fifth(out + offsetof(struct gg_block_q5_1, qh), q);
    pack_nibbles(out + offsetof(struct gg_block_q5_1, qs), q);
}

/* gg_kern_encode_q4_0_c and so on. */
#define ENCODER(NAME, HALF, Q_MAX)                                            \
    void gg_kern_encode_##NAME##_c(const float *src, void *dst,               \
                                   size_t n_rows, size_t row_len,             \
                                   const float *weight)                       \
    {                                                                         \
        static const struct type32 t = { HALF, Q_MAX,                         \
                                         sizeof(struct gg_block_##NAME),      \
                                         put_##NAME };                        \
        encode32(&t, src, dst, n_rows, row_len, weight);                      \
    }
ENCODER(q4_0, 8, 15)
ENCODER(q4_1, 0, 15)
ENCODER(q5_0, 16, 31)
ENCODER(q5_1, 0, 31)

/* Scale and codes of a block of Q8_0 and Q8_1. */
static float codes_q8(const float *x, int8_t q[32])
{
    float d = gg_kern_max_abs(x, 32) / 127, inv = d != 0 ? 1 / d : 0;
    for (int j = 0; j < 32; j++)
        q[j] = (int8_t)gg_round_away(x[j] * inv);
    return d;
}

void gg_kern_encode_q8_0_c(const float *src, void *dst, size_t n_rows,
                           size_t row_len, const float *weight)
{
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 32; i++, src += 32) {
        struct gg_block_q8_0 b;
        gg_kern_put_half(&b.d, codes_q8(src, b.qs));
        GG_PUT_BLOCK(b, dst, i);
    }
}

/* For activations: as Q8_0, and the scaled sum. */
void gg_kern_encode_q8_1_c(const float *src, void *dst, size_t n_rows,
                           size_t row_len, const float *weight)
{
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 32; i++, src += 32) {
        struct gg_block_q8_1 b;
        float d = codes_q8(src, b.qs);
        int sum = 0;
        for (int j = 0; j < 32; j++)
            sum += b.qs[j];
        gg_kern_put_half(&b.d, d);
        gg_kern_put_half(&b.s, (float)sum * d);
        GG_PUT_BLOCK(b, dst, i);
    }
}
