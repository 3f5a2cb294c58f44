/* SPDX-License-Identifier: MIT */
/* ints_256.c - blocks to integers and scales for integer panels
 *
 * A sink for blocks_*.h (floats.h) that keeps integers and scales apart.
 */
#include "config.h"
#include "kern/gemm_int.h"
#include "kern/simd/gemm_int_cols.h"

struct ints {
    uint8_t *q;
    float *d, *m;
    int bias;
    /* constants once this is inlined: */
    int bytes;  /* bytes of an integer: 1 or 2 */
    int halves; /* each 16 steps have a scale */
    int folded; /* scales, small integers then, are multiplied into q: d is
                 * that of a block */
};
#define TO struct ints

static GG_ALWAYS_INLINE float to_d(TO *to, float d, int unit)
{
    const float one = (float)(1 << unit);
    if (!to->folded)
        return d;
    *to->d++ = d / one;
    return one;
}

static GG_ALWAYS_INLINE void store_32(TO *to, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)to->q, v);
    to->q += 32;
}

/* The low bytes of 16-bit integers, which fit into a byte. */
static GG_ALWAYS_INLINE __m256i low_bytes(__m256i lo, __m256i hi)
{
#ifdef __aarch64__ /* bytes of any sign */
    return (__m256i){ vuzp1q_u8(lo.lo, lo.hi), vuzp1q_u8(hi.lo, hi.hi) };
#else
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(lo, hi), 0xd8);
#endif
}

/* Store 16-bit integers: steps 0 .. 15 and 16 .. 31. */
static GG_ALWAYS_INLINE void put_16(TO *to, __m256i lo, __m256i hi)
{
    if (to->bytes == 2) { /* pairs of steps t and t + 16 */
        const __m256i a = _mm256_unpacklo_epi16(lo, hi);
        const __m256i b = _mm256_unpackhi_epi16(lo, hi);
        store_32(to, _mm256_permute2x128_si256(a, b, 0x20));
        store_32(to, _mm256_permute2x128_si256(a, b, 0x31));
    } else {
        const __m256i bias = _mm256_set1_epi16((short)to->bias);
        store_32(to, low_bytes(_mm256_add_epi16(lo, bias),
                               _mm256_add_epi16(hi, bias)));
    }
}

static GG_ALWAYS_INLINE __m256i scale_ints(__m256i v, float s)
{
    return _mm256_mullo_epi16(v, _mm256_set1_epi16((short)(int)s));
}

static GG_ALWAYS_INLINE void to_i8(TO *to, __m256i q, float s0, float s1)
{
    const __m256i lo = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(q));
    const __m256i hi = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(q, 1));
    if (to->folded) {
        put_16(to, scale_ints(lo, s0), scale_ints(hi, s1));
        return;
    }
    if (to->bytes == 2)
        put_16(to, lo, hi);
    else
        store_32(to, _mm256_add_epi8(q, _mm256_set1_epi8((char)to->bias)));
    *to->d++ = s0;
    if (to->halves)
        *to->d++ = s1;
}

/* Below 128, so that a sign makes no difference. */
static GG_ALWAYS_INLINE void to_u8(TO *to, __m256i q, float s0, float m0,
                                   float s1, float m1)
{
    to_i8(to, q, s0, s1);
    *to->m++ = -m0;
    if (to->halves)
        *to->m++ = -m1;
}

static GG_ALWAYS_INLINE void to_signs(TO *to, uint32_t bits, float d)
{
    const __m256i two = _mm256_set1_epi8(2), one = _mm256_set1_epi8(1);
    const __m256i set = _mm256_and_si256(gg_v256_spread_bits(bits), two);
    to_i8(to, _mm256_sub_epi8(set, one), d, d);
}

/* Not used: no type of this file passes floats. */
static GG_ALWAYS_INLINE void to_ps(TO *to, const __m256 v[4])
{
    (void)to;
    (void)v;
}

#include "kern/simd/blocks_fork.h"
#include "kern/simd/blocks_iq.h"
#include "kern/simd/blocks_low.h"
#include "kern/simd/row_256.h"

#define INTS_BY(NAME, BYTES, HALVES, FOLDED, SUFFIX)                          \
    void gg_kern_ints##SUFFIX(const void *src, size_t n, int bias, void *q,   \
                              float *d, float *m)                             \
    {                                                                         \
        TO to = { q, d, m, bias, BYTES, HALVES, FOLDED };                     \
        gg_kern_each_##NAME(&to, src, n);                                     \
    }
#define X(ID, NAME, HALVES, FOLDED_8, FOLDED_16)                              \
    INTS_BY(NAME, 1, HALVES, FOLDED_8, 8_##NAME##_256)                        \
    INTS_BY(NAME, 2, HALVES, FOLDED_16, 16_##NAME##_256)
GG_KERN_INTS(X)

void gg_kern_int_pack_groups_256(const struct gg_kern_gemm *g, void *block,
                                 size_t first, const int32_t *src,
                                 size_t stride, size_t n, size_t n_groups)
{
    for (size_t t = 0; t < n_groups; t += 8) {
        int32_t *dst = (int32_t *)block + t * g->mr + first;
        size_t r = 0;
        for (; r + 8 <= n; r += 8) {
            __m256i v[8];
            GG_UNROLL
            for (size_t i = 0; i < 8; i++)
                v[i] = gg_v256_load256(src + (r + i) * stride + t);
            gg_v256_put_8(dst + r, g->mr, v);
        }
        for (; r < n; r++)
            gg_v256_put_1(dst + r, g->mr,
                          gg_v256_load256(src + r * stride + t));
    }
}
