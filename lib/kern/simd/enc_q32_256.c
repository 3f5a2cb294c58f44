/* SPDX-License-Identifier: MIT */
/* enc_q32_256.c - encoders of the types with blocks of 32
 *
 * Without importances a block is four vectors; with them 16 blocks of a row
 * are the lanes of a search.
 */
#include "config.h"
#include "kern/codec.h"
#include "base/compiler.h"
#include "kern/c/block_io.h"
#include "kern/c/round.h"
#include "kern/simd/enc_search.h"
#include "kern/simd/v256.h"

#include <float.h>
#include <stddef.h>
#include <string.h>

struct block32 {
    __m256 v[4];
};

static inline struct block32 load_block(const float *x)
{
    return (struct block32){ { _mm256_loadu_ps(x), _mm256_loadu_ps(x + 8),
                               _mm256_loadu_ps(x + 16),
                               _mm256_loadu_ps(x + 24) } };
}

/* Bits of the largest magnitude, NaN above all. */
static inline int max_abs_bits(const struct block32 *b)
{
    __m256i m =
        _mm256_max_epi32(gg_v256_abs_bits(b->v[0]), gg_v256_abs_bits(b->v[1]));
    m = _mm256_max_epi32(m, gg_v256_abs_bits(b->v[2]));
    return gg_v256_hmax_epi32(_mm256_max_epi32(m, gg_v256_abs_bits(b->v[3])));
}

/* Scale and codes of a block of Q8_0 and Q8_1. */
static inline float codes_q8(const float *src, __m256i *q)
{
    struct block32 x = load_block(src);
    float d = gg_bytes_f32_from_bits((uint32_t)max_abs_bits(&x)) / 127;
    __m256 inv = _mm256_set1_ps(d != 0 ? 1 / d : 0);
    __m256i v[4];
    GG_UNROLL
    for (int k = 0; k < 4; k++)
        v[k] = gg_round_away_epi32(_mm256_mul_ps(x.v[k], inv));
    *q = gg_v256_low_bytes(v);
    return d;
}

void gg_kern_encode_q8_0_256(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    uint8_t *p = dst;
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 32; i++, src += 32) {
        __m256i q;
        gg_v256_put_half_ps(p, codes_q8(src, &q));
        _mm256_storeu_si256((void *)(p + offsetof(struct gg_block_q8_0, qs)),
                            q);
        p += sizeof(struct gg_block_q8_0);
    }
}

void gg_kern_encode_q8_1_256(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    uint8_t *p = dst;
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 32; i++, src += 32) {
        __m256i q;
        float d = codes_q8(src, &q);
        gg_v256_put_half_ps(p, d);
        gg_v256_put_half_ps(p + offsetof(struct gg_block_q8_1, s),
                            (float)gg_v256_sum_i8(q) * d);
        _mm256_storeu_si256((void *)(p + offsetof(struct gg_block_q8_1, qs)),
                            q);
        p += sizeof(struct gg_block_q8_1);
    }
}

/* The element of largest magnitude, the first of several. */
static inline float extreme_element(const float *x, const struct block32 *b)
{
    int bits = max_abs_bits(b);
    if (bits > 0x7f800000) /* a NaN, which does not count */
        return gg_kern_max_abs_signed(x, 32);
    __m256i m = _mm256_set1_epi32(bits), e[4];
    GG_UNROLL
    for (int k = 0; k < 4; k++)
        e[k] = _mm256_cmpeq_epi32(gg_v256_abs_bits(b->v[k]), m);
    __m256i is = gg_v256_pack_bytes(e[0], e[1], e[2], e[3], 1);
    uint32_t mask = (uint32_t)_mm256_movemask_epi8(is);
    return bits ? x[GG_CTZ32(mask)] : 0;
}

/* Fifth bits of 32 codes: bit j is element j's. */
static inline void put_fifth(uint8_t *qh, __m256i q)
{
    int bits = _mm256_movemask_epi8(_mm256_slli_epi16(q, 3));
    gg_bytes_store32le(qh, (uint32_t)bits);
}

/* 32 codes about half without importances; returns the scale. */
static GG_ALWAYS_INLINE float plain_symmetric(const float *src, int half,
                                              __m256i *q)
{
    struct block32 x = load_block(src);
    float d = extreme_element(src, &x) / -(float)half;
    __m256 inv = _mm256_set1_ps(d != 0 ? 1 / d : 0);
    __m256 mid = _mm256_set1_ps((float)half + 0.5f);
    __m256i v[4];
    GG_UNROLL
    for (int k = 0; k < 4; k++)
        v[k] = _mm256_cvttps_epi32(
            _mm256_add_ps(_mm256_mul_ps(x.v[k], inv), mid));
    *q = _mm256_min_epi8(gg_v256_low_bytes(v),
                         _mm256_set1_epi8((char)(2 * half - 1)));
    return d;
}

/* Least and largest of eight, NaN-free. */
static inline float least_lane(__m256 v)
{
    __m128 m =
        _mm_min_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_min_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_min_ss(m, _mm_shuffle_ps(m, m, 1)));
}

/* 32 codes upwards from the least element, without importances. */
static GG_ALWAYS_INLINE float plain_affine(const float *src, int q_max,
                                           __m256i *q, float *min)
{
    struct block32 x = load_block(src);
    __m256 lo = _mm256_set1_ps(FLT_MAX), hi = _mm256_set1_ps(FLT_MAX);
    GG_UNROLL
    for (int k = 0; k < 4; k++) {
        /* a NaN is never the lesser; the largest is the least of -x */
        __m256 n = _mm256_xor_ps(x.v[k], _mm256_set1_ps(-0.0f));
        lo = _mm256_min_ps(x.v[k], lo);
        hi = _mm256_min_ps(n, hi);
    }
    float first = least_lane(lo), last = -least_lane(hi);
    /* the reference takes the first of several zeros, whatever their signs */
    for (int j = 0; first == 0 && j < 32; j++)
        if (src[j] == 0) {
            first = src[j];
            last = last == 0 ? first : last;
            break;
        }
    float d = (last - first) / (float)q_max;
    __m256 inv = _mm256_set1_ps(d != 0 ? 1 / d : 0);
    __m256 base = _mm256_set1_ps(first), half = _mm256_set1_ps(0.5f);
    __m256i v[4];
    GG_UNROLL
    for (int k = 0; k < 4; k++) {
        __m256 t = _mm256_mul_ps(_mm256_sub_ps(x.v[k], base), inv);
        v[k] = _mm256_cvttps_epi32(_mm256_add_ps(t, half));
    }
    *q = _mm256_min_epi8(gg_v256_low_bytes(v), _mm256_set1_epi8((char)q_max));
    *min = first;
    return d;
}

static float mean_square(const float *x, size_t n)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum / (float)n;
}

/* Up to 16 blocks of a row as lanes; missing ones repeat the last. */
static void load_row_part(struct gg_kern_lanes *l, const float *x,
                          const float *weight, size_t n_block, float mean2)
{
    float w[512], v[512];
    __m256 m = _mm256_set1_ps(mean2);
    for (size_t i = 0; i < 512; i += 8) {
        size_t from = i / 32 < n_block ? i : (n_block - 1) * 32 + i % 32;
        __m256 t = _mm256_loadu_ps(x + from);
        _mm256_storeu_ps(v + i, t);
        t = _mm256_sqrt_ps(_mm256_add_ps(m, _mm256_mul_ps(t, t)));
        t = _mm256_mul_ps(_mm256_loadu_ps(weight + from), t);
        _mm256_storeu_ps(w + i, t);
    }
    gg_kern_lanes_load_256(l->x, v, 32);
    gg_kern_lanes_load_256(l->w, w, 32);
}

/* Codes of a block by its fit: about half, where a block of zeros has codes
 * 0, or (half 0) from its base to q_max. */
static __m256i fit_codes(const float *x, const struct gg_kern_lanes_fit *f,
                         size_t g, int half, int q_max)
{
    __m256 inv = _mm256_set1_ps(f->inv[g]), base = _mm256_set1_ps(f->base[g]);
    __m256i bias = _mm256_set1_epi32(f->inv[g] != 0 ? half : 0), v[4];
    GG_UNROLL
    for (int k = 0; k < 4; k++) {
        __m256 t = _mm256_sub_ps(_mm256_loadu_ps(x + 8 * k), base);
        v[k] = gg_v256_nearest_epi32(_mm256_mul_ps(inv, t));
        v[k] = gg_v256_clamp_epi32(v[k], -half, half ? half - 1 : q_max);
        v[k] = _mm256_add_epi32(v[k], bias);
    }
    return gg_v256_pack_bytes(v[0], v[1], v[2], v[3], 0);
}

/* One of the four types: how codes are fitted and where they are put. */
struct type32 {
    int half, q_max; /* symmetric about half, or (half 0) affine */
    size_t size;
    void (*put)(uint8_t *out, float d, float m, __m256i q);
    gg_kern_encode_fn *reference;
};

static GG_ALWAYS_INLINE void row_weighted(const struct type32 *t,
                                          const float *x, uint8_t *out,
                                          size_t row_len, const float *weight)
{
    const struct gg_kern_affine_search search = GG_AFFINE_W(t->q_max);
    float mean2 = mean_square(x, row_len);
    int fine = gg_v256_all_finite(x, row_len);
    for (size_t i = 0, n_block = row_len / 32; fine && i < n_block; i += 16) {
        struct gg_kern_lanes l;
        struct gg_kern_lanes_fit f;
        size_t n = n_block - i < 16 ? n_block - i : 16;
        load_row_part(&l, x + 32 * i, weight + 32 * i, n, mean2);
        if (t->half)
            gg_kern_lanes_symmetric_256(&l, 32, t->half, &f);
        else
            fine = gg_kern_lanes_affine_256(&l, 32, &search, &f);
        for (size_t k = 0; fine && k < n; k++)
            t->put(out + (i + k) * t->size, f.scale[k], -f.min[k],
                   fit_codes(x + 32 * (i + k), &f, k, t->half, t->q_max));
    }
    if (!fine)
        t->reference(x, out, 1, row_len, weight);
}

static GG_ALWAYS_INLINE void encode32(const struct type32 *t, const float *src,
                                      uint8_t *out, size_t n_rows,
                                      size_t row_len, const float *weight)
{
    for (size_t r = 0; weight && r < n_rows; r++)
        row_weighted(t, src + r * row_len, out + r * (row_len / 32) * t->size,
                     row_len, weight);
    for (size_t i = 0; !weight && i < n_rows * row_len / 32; i++) {
        __m256i q;
        float m = 0, d;
        d = t->half ? plain_symmetric(src + 32 * i, t->half, &q)
                    : plain_affine(src + 32 * i, t->q_max, &q, &m);
        t->put(out + i * t->size, d, m, q);
    }
}

static inline void put_q4_0(uint8_t *out, float d, float m, __m256i q)
{
    (void)m;
    gg_v256_put_half_ps(out, d);
    gg_v256_put_nibbles(out + offsetof(struct gg_block_q4_0, qs), q);
}

static inline void put_q4_1(uint8_t *out, float d, float m, __m256i q)
{
    gg_v256_put_half_ps(out, d);
    gg_v256_put_half_ps(out + offsetof(struct gg_block_q4_1, m), m);
    gg_v256_put_nibbles(out + offsetof(struct gg_block_q4_1, qs), q);
}

static inline void put_q5_0(uint8_t *out, float d, float m, __m256i q)
{
    (void)m;
    gg_v256_put_half_ps(out, d);
    put_fifth(out + offsetof(struct gg_block_q5_0, qh), q);
    gg_v256_put_nibbles(out + offsetof(struct gg_block_q5_0, qs), q);
}

static inline void put_q5_1(uint8_t *out, float d, float m, __m256i q)
{
    gg_v256_put_half_ps(out, d);
    gg_v256_put_half_ps(out + offsetof(struct gg_block_q5_1, m), m);
    put_fifth(out + offsetof(struct gg_block_q5_1, qh), q);
    gg_v256_put_nibbles(out + offsetof(struct gg_block_q5_1, qs), q);
}

/* ZERO: the code of zero in a symmetric type, 0 in an affine one; MOST: the
 * largest code. */
#define ENCODER(NAME, ZERO, MOST)                                             \
    void gg_kern_encode_##NAME##_256(const float *src, void *dst,             \
                                     size_t n_rows, size_t row_len,           \
                                     const float *weight)                     \
    {                                                                         \
        static const struct type32 t = { ZERO, MOST,                          \
                                         sizeof(struct gg_block_##NAME),      \
                                         put_##NAME,                          \
                                         gg_kern_encode_##NAME##_c };         \
        encode32(&t, src, dst, n_rows, row_len, weight);                      \
    }
ENCODER(q4_0, 8, 15)
ENCODER(q4_1, 0, 15)
ENCODER(q5_0, 16, 31)
ENCODER(q5_1, 0, 31)
