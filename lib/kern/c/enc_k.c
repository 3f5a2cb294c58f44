/* SPDX-License-Identifier: MIT */
/* enc_k.c - reference encoders of Q2_K, Q3_K, Q4_K, Q5_K, Q6_K and Q8_K
 *
 * Each sub-block is fitted. Then the block's scales become small integers, and
 * every element is rounded again by the scale that a decoder will read. Source:
 * quantize_row_q*_K_ref and _impl of ggml-quants.c (ggml commit d99724f).
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/enc_k.h"

/* Importances of a sub-block where none are given. */
static void plain_weights(float *w, const float *x, int n,
                          const struct gg_kern_affine_search *s)
{
    float mean = 0;
    if (!s->abs_error) {
        for (int i = 0; i < n; i++)
            mean += x[i] * x[i];
        mean = sqrtf(mean / (float)n);
        for (int i = 0; i < n; i++)
            w[i] = mean + fabsf(x[i]);
    } else {
        for (int i = 0; i < n; i++)
            w[i] = fabsf(x[i]);
    }
}

/* Round the elements by the scales that a decoder will see. A sub-block whose
 * scale became zero keeps the codes of its fit. */
static void affine_requantize(const float *x,
                              const struct gg_kern_affine_type *t,
                              struct gg_kern_affine_block *b)
{
    float d = gg_dtype_f16_to_f32(b->d), dmin = gg_dtype_f16_to_f32(b->dmin);
    for (int j = 0; j < t->n_sub; j++) {
        float scale = d * (float)b->scale[j];
        float min = dmin * (float)b->min[j];
        if (scale == 0)
            continue;
        for (int i = t->sub * j; i < t->sub * (j + 1); i++)
            b->q[i] = (uint8_t)gg_kern_clamp(
                gg_kern_nearest((x[i] + min) / scale), 0, t->plain.q_max);
    }
}

static void affine_plain(const float *x, const struct gg_kern_affine_type *t,
                         struct gg_kern_affine_block *b)
{
    float scale[16], min[16], w[GG_ENC_MAX_N];
    for (int j = 0; j < t->n_sub; j++) {
        const float *xs = x + t->sub * j;
        plain_weights(w, xs, t->sub, &t->plain);
        scale[j] = gg_kern_fit_affine(xs, w, t->sub, &t->plain,
                                      b->q + t->sub * j, &min[j]);
    }
    b->d = gg_kern_half_of(
        gg_kern_plain_scale_codes(scale, t->n_sub, t->scale_max, b->scale));
    b->dmin = gg_kern_half_of(
        gg_kern_plain_scale_codes(min, t->n_sub, t->scale_max, b->min));
    gg_kern_affine_store(t, 0, b);
    affine_requantize(x, t, b);
}

static void affine_weighted(const float *x, const float *weight,
                            const struct gg_kern_affine_type *t,
                            struct gg_kern_affine_block *b)
{
    float scale[16], min[16], sum_w[16], w[GG_ENC_MAX_N], sum2 = 0;
    for (int i = 0; i < 256; i++)
        sum2 += x[i] * x[i];
    /* twice the mean square; the 16-element types take it once */
    float sigma2 = (t->sub == 32 ? 2 * sum2 : sum2) / 256;
    for (int j = 0; j < t->n_sub; j++) {
        const float *xs = x + t->sub * j;
        sum_w[j] = 0;
        for (int i = 0; i < t->sub; i++) {
            w[i] = weight[t->sub * j + i] * sqrtf(sigma2 + xs[i] * xs[i]);
            sum_w[j] += w[i];
        }
        scale[j] = gg_kern_fit_affine(xs, w, t->sub, &t->weighted,
                                      b->q + t->sub * j, &min[j]);
    }
    b->d = gg_kern_half_of(
        gg_kern_fit_positive(scale, sum_w, t->n_sub, t->scale_max, b->scale));
    b->dmin = gg_kern_half_of(
        gg_kern_fit_positive(min, sum_w, t->n_sub, t->scale_max, b->min));
    gg_kern_affine_store(t, 1, b);
    affine_requantize(x, t, b);
}

/* One of the three types with minima, and how its block is laid out. */
struct affine_kind {
    struct gg_kern_affine_type t;
    size_t size;
    void (*put)(const struct gg_kern_affine_block *a, uint8_t *out);
};

static void encode_affine(const struct affine_kind *kind, const float *src,
                          uint8_t *out, size_t n_rows, size_t row_len,
                          const float *weight)
{
    size_t n_block = row_len / 256;
    for (size_t i = 0; i < n_rows * n_block; i++, src += 256) {
        struct gg_kern_affine_block a;
        if (weight)
            affine_weighted(src, weight + i % n_block * 256, &kind->t, &a);
        else
            affine_plain(src, &kind->t, &a);
        kind->put(&a, out + i * kind->size);
    }
}

static void put_q2_k(const struct gg_kern_affine_block *a, uint8_t *out)
{
    struct gg_block_q2_k b;
    gg_bytes_store16le(&b.d, a->d);
    gg_bytes_store16le(&b.dmin, a->dmin);
    for (int j = 0; j < 16; j++)
        b.scales[j] = (uint8_t)(a->scale[j] | a->min[j] << 4);
    gg_kern_pack_pairs(b.qs, a->q);
    GG_PUT_BLOCK(b, out, 0);
}

/* Low nibbles of two sub-blocks share 32 bytes. */
static void pack_nibbles(uint8_t qs[128], const uint8_t q[256])
{
    for (int e = 0; e < 128; e++) {
        const uint8_t *p = q + e / 32 * 64 + e % 32;
        qs[e] = (uint8_t)((p[0] & 15) | (p[32] & 15) << 4);
    }
}

static void put_q4_k(const struct gg_kern_affine_block *a, uint8_t *out)
{
    struct gg_block_q4_k b;
    gg_bytes_store16le(&b.d, a->d);
    gg_bytes_store16le(&b.dmin, a->dmin);
    gg_kern_k4_pack(b.scales, a->scale, a->min);
    pack_nibbles(b.qs, a->q);
    GG_PUT_BLOCK(b, out, 0);
}

static void put_q5_k(const struct gg_kern_affine_block *a, uint8_t *out)
{
    struct gg_block_q5_k b;
    gg_bytes_store16le(&b.d, a->d);
    gg_bytes_store16le(&b.dmin, a->dmin);
    gg_kern_k4_pack(b.scales, a->scale, a->min);
    pack_nibbles(b.qs, a->q);
    memset(b.qh, 0, sizeof b.qh);
    for (int e = 0; e < 256; e++)
        b.qh[e % 32] |= (uint8_t)(a->q[e] >> 4 << e / 32);
    GG_PUT_BLOCK(b, out, 0);
}

/* gg_kern_encode_q2_k_c and so on. */
#define ENCODER(NAME, TYPE)                                                   \
    void gg_kern_encode_##NAME##_c(const float *src, void *dst,               \
                                   size_t n_rows, size_t row_len,             \
                                   const float *weight)                       \
    {                                                                         \
        static const struct affine_kind kind = {                              \
            TYPE, sizeof(struct gg_block_##NAME), put_##NAME                  \
        };                                                                    \
        encode_affine(&kind, src, dst, n_rows, row_len, weight);              \
    }
ENCODER(q2_k, GG_AFFINE_Q2_K)
ENCODER(q4_k, GG_AFFINE_Q4_K)
ENCODER(q5_k, GG_AFFINE_Q5_K)

/* Scales of 16 elements and their codes; half and codes' bias as in
 * gg_kern_fit_symmetric. A sub-block whose scale became zero keeps its
 * codes. */
static void symmetric_requantize(const float *x, const float scale[16],
                                 int half, uint8_t q[256])
{
    for (int e = 0; e < 256; e++) {
        float d = scale[e / 16];
        if (d != 0)
            q[e] = (uint8_t)(gg_kern_clamp(gg_kern_nearest(x[e] / d), -half,
                                           half - 1) +
                             half);
    }
}

static void q3_k_block(const float *x, const float *weight,
                       struct gg_block_q3_k *b)
{
    uint8_t q[256], code[16];
    float scale[16], sum_w[16], w[16], sum2 = 0, d;
    for (int i = 0; i < 256; i++)
        sum2 += x[i] * x[i];
    float sigma2 = 2 * sum2 / 256;
    for (int j = 0; j < 16; j++) {
        const float *xs = x + 16 * j;
        if (!weight) {
            scale[j] = gg_kern_fit_refined(xs, 16, 4, q + 16 * j);
            continue;
        }
        sum_w[j] = 0;
        for (int i = 0; i < 16; i++) {
            w[i] = weight[16 * j + i] * sqrtf(sigma2 + xs[i] * xs[i]);
            sum_w[j] += w[i];
        }
        scale[j] = gg_kern_fit_symmetric(xs, w, 16, 4, q + 16 * j);
    }
    d = weight ? gg_kern_fit_symmetric(scale, sum_w, 16, 32, code)
               : gg_kern_q3_k_scale_codes(scale, code);
    gg_kern_put_half(&b->d, d);
    gg_kern_k3_pack(b->scales, code);
    for (int j = 0; j < 16; j++)
        scale[j] = gg_kern_get_half(&b->d) * (float)(code[j] - 32);
    symmetric_requantize(x, scale, 4, q);
    memset(b->hmask, 0, sizeof b->hmask);
    for (int e = 0; e < 256; e++)
        b->hmask[e % 32] |= (uint8_t)(q[e] >> 2 << e / 32);
    gg_kern_pack_pairs(b->qs, q);
}

void gg_kern_encode_q3_k_c(const float *src, void *dst, size_t n_rows,
                           size_t row_len, const float *weight)
{
    size_t n_block = row_len / 256;
    for (size_t i = 0; i < n_rows * n_block; i++, src += 256) {
        struct gg_block_q3_k b;
        q3_k_block(src, weight ? weight + i % n_block * 256 : NULL, &b);
        GG_PUT_BLOCK(b, dst, i);
    }
}

static void gg_kern_q6_k_pack(struct gg_block_q6_k *b, const uint8_t q[256])
{
    for (int h = 0; h < 2; h++, q += 128) {
        for (int j = 0; j < 64; j++)
            b->ql[64 * h + j] = (uint8_t)((q[j] & 15) | (q[j + 64] & 15) << 4);
        for (int j = 0; j < 32; j++)
            b->qh[32 * h + j] =
                (uint8_t)(q[j] >> 4 | q[j + 32] >> 4 << 2 |
                          q[j + 64] >> 4 << 4 | q[j + 96] >> 4 << 6);
    }
}

static void q6_k_block(const float *x, const float *weight,
                       struct gg_block_q6_k *b)
{
    uint8_t q[256];
    float scale[16], w[16];
    for (int j = 0; j < 16; j++) {
        const float *xs = x + 16 * j;
        for (int i = 0; i < 16; i++)
            w[i] = weight ? weight[16 * j + i] : xs[i] * xs[i];
        scale[j] = gg_kern_fit_symmetric(xs, w, 16, 32, q + 16 * j);
    }
    if (!gg_kern_q6_k_scales(scale, b)) {
        memset(b, 0, sizeof *b);
        return;
    }
    for (int j = 0; j < 16; j++)
        scale[j] = gg_kern_get_half(&b->d) * (float)b->scales[j];
    symmetric_requantize(x, scale, 32, q);
    gg_kern_q6_k_pack(b, q);
}

void gg_kern_encode_q6_k_c(const float *src, void *dst, size_t n_rows,
                           size_t row_len, const float *weight)
{
    size_t n_block = row_len / 256;
    for (size_t i = 0; i < n_rows * n_block; i++, src += 256) {
        struct gg_block_q6_k b;
        q6_k_block(src, weight ? weight + i % n_block * 256 : NULL, &b);
        GG_PUT_BLOCK(b, dst, i);
    }
}

/* For activations: the extreme element becomes -127 or 127. */
void gg_kern_encode_q8_k_c(const float *src, void *dst, size_t n_rows,
                           size_t row_len, const float *weight)
{
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 256; i++, src += 256) {
        struct gg_block_q8_k b;
        memset(&b, 0, sizeof b);
        float max = gg_kern_max_abs_signed(src, 256), inv = -127.0f / max,
              d = 0;
        for (int j = 0; max != 0 && j < 256; j++) {
            int v = gg_kern_nearest(inv * src[j]);
            b.qs[j] = (int8_t)(v < 127 ? v : 127);
            d = 1 / inv;
        }
        for (int j = 0; j < 16; j++) {
            int sum = 0;
            for (int k = 16 * j; k < 16 * j + 16; k++)
                sum += b.qs[k];
            gg_bytes_store16le(&b.bsums[j], (uint16_t)sum);
        }
        gg_bytes_store32le(&b.d, gg_bytes_f32_bits(d));
        GG_PUT_BLOCK(b, dst, i);
    }
}
