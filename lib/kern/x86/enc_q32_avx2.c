/* enc_q32_avx2.c - encoders of the types with blocks of 32
 *
 * Without importances a block is four vectors; with them 16 blocks of a row
 * are the lanes of a search.
 */
#include "config.h"
#include "kern/codec.h"
#include "base/compiler.h"
#include "kern/c/block_io.h"
#include "kern/x86/enc_search_avx2.h"
#include "kern/x86/x86.h"

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
    __m256i m = _mm256_max_epi32(gg_abs_bits(b->v[0]), gg_abs_bits(b->v[1]));
    m = _mm256_max_epi32(m, gg_abs_bits(b->v[2]));
    return gg_hmax_epi32(_mm256_max_epi32(m, gg_abs_bits(b->v[3])));
}

/* Round half away from zero, and to INT32_MIN what is out of range. Adding
 * the float below one half and cutting is exact: only what is at least half
 * reaches the next integer. */
static inline __m256i round_away(__m256 v)
{
    __m256 sign = _mm256_and_ps(v, _mm256_set1_ps(-0.0f));
    __m256 h = _mm256_or_ps(sign, _mm256_set1_ps(0x1.fffffep-2f));
    return _mm256_cvttps_epi32(_mm256_add_ps(v, h));
}

/* The low bytes of four vectors, whatever the rest of each lane is. */
static inline __m256i low_bytes(const __m256i v[4])
{
    const __m256i byte = _mm256_set1_epi32(255);
    return gg_pack_bytes(
        _mm256_and_si256(v[0], byte), _mm256_and_si256(v[1], byte),
        _mm256_and_si256(v[2], byte), _mm256_and_si256(v[3], byte), 0);
}

void gg_encode_q8_0_avx2(const float *src, void *dst, size_t n_rows,
                         size_t row_len, const float *weight)
{
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 32; i++, src += 32) {
        struct gg_block_q8_0 b;
        struct block32 x = load_block(src);
        float d = gg_f32_from_bits((uint32_t)max_abs_bits(&x)) / 127;
        __m256 inv = _mm256_set1_ps(d != 0 ? 1 / d : 0);
        __m256i v[4];
        for (int k = 0; k < 4; k++)
            v[k] = round_away(_mm256_mul_ps(x.v[k], inv));
        gg_put_half(&b.d, d);
        _mm256_storeu_si256((void *)b.qs, low_bytes(v));
        GG_PUT_BLOCK(b, dst, i);
    }
}

/* The element of largest magnitude, the first of several. */
static inline float extreme(const float *x, const struct block32 *b)
{
    int bits = max_abs_bits(b);
    __m256i m = _mm256_set1_epi32(bits), e[4];
    for (int k = 0; k < 4; k++)
        e[k] = _mm256_cmpeq_epi32(gg_abs_bits(b->v[k]), m);
    __m256i is = gg_pack_bytes(e[0], e[1], e[2], e[3], 1);
    uint32_t mask = (uint32_t)_mm256_movemask_epi8(is);
    return bits ? x[GG_CTZ32(mask)] : 0;
}

/* Two halves of 16 codes to nibbles. */
static inline void put_nibbles(uint8_t qs[16], __m256i q)
{
    __m128i lo = _mm256_castsi256_si128(q);
    __m128i hi = _mm256_extracti128_si256(q, 1);
    lo = _mm_and_si128(lo, _mm_set1_epi8(15));
    hi = _mm_and_si128(hi, _mm_set1_epi8(15));
    _mm_storeu_si128((void *)qs, _mm_or_si128(lo, _mm_slli_epi16(hi, 4)));
}

/* 32 codes about half without importances; returns the scale. */
static inline float plain_symmetric(const float *src, int half, __m256i *q)
{
    struct block32 x = load_block(src);
    float d = extreme(src, &x) / -(float)half;
    __m256 inv = _mm256_set1_ps(d != 0 ? 1 / d : 0);
    __m256 mid = _mm256_set1_ps((float)half + 0.5f);
    __m256i v[4];
    for (int k = 0; k < 4; k++)
        v[k] = _mm256_cvttps_epi32(
            _mm256_add_ps(_mm256_mul_ps(x.v[k], inv), mid));
    *q = _mm256_min_epi8(low_bytes(v), _mm256_set1_epi8((char)(2 * half - 1)));
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
static void load_row_part(struct gg_lanes *l, const float *x,
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
    gg_lanes_load_avx2(l->x, v, 32);
    gg_lanes_load_avx2(l->w, w, 32);
}

/* Codes about half of one block by its fit; a zero block has codes 0. */
static __m256i symmetric_codes(const float *x, float inv, int half)
{
    __m256i v[4];
    for (int k = 0; k < 4; k++) {
        __m256 t = _mm256_mul_ps(_mm256_set1_ps(inv),
                                 _mm256_loadu_ps(x + 8 * k));
        v[k] = _mm256_add_epi32(
            gg_clamp_epi32(gg_nearest_epi32(t), -half, half - 1),
            _mm256_set1_epi32(inv != 0 ? half : 0));
    }
    return gg_pack_bytes(v[0], v[1], v[2], v[3], 0);
}

static void q4_0_row_weighted(const float *x, uint8_t *dst, size_t row_len,
                              const float *weight)
{
    const size_t size = sizeof(struct gg_block_q4_0);
    if (!gg_all_finite(x, row_len)) {
        gg_encode_q4_0_c(x, dst, 1, row_len, weight);
        return;
    }
    float mean2 = mean_square(x, row_len);
    for (size_t i = 0, n_block = row_len / 32; i < n_block; i += 16) {
        struct gg_lanes l;
        struct gg_lanes_fit f;
        size_t n = n_block - i < 16 ? n_block - i : 16;
        load_row_part(&l, x + 32 * i, weight + 32 * i, n, mean2);
        gg_lanes_symmetric_avx2(&l, 32, 8, &f);
        for (size_t k = 0; k < n; k++) {
            uint8_t *b = dst + (i + k) * size;
            gg_put_half(b, f.scale[k]);
            put_nibbles(b + 2, symmetric_codes(x + 32 * (i + k), f.inv[k], 8));
        }
    }
}

void gg_encode_q4_0_avx2(const float *src, void *dst, size_t n_rows,
                         size_t row_len, const float *weight)
{
    const size_t size = sizeof(struct gg_block_q4_0);
    uint8_t *out = dst;
    for (size_t r = 0; weight && r < n_rows; r++)
        q4_0_row_weighted(src + r * row_len, out + r * row_len / 32 * size,
                          row_len, weight);
    for (size_t i = 0; !weight && i < n_rows * row_len / 32; i++) {
        __m256i q;
        gg_put_half(out, plain_symmetric(src + 32 * i, 8, &q));
        put_nibbles(out + 2, q);
        out += size;
    }
}
