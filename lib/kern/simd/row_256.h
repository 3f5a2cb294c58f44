/* SPDX-License-Identifier: MIT */
/* row_256.h - view of one row of blocks: 32 codes are a vector of 256 bits
 *
 * A view of kern/block/block_view.h, used by decoders, dot products and the
 * packers of integer panels. The includer first defines the type TO and the
 * functions that take the weights: to_d, to_i8, to_u8, to_ps and to_signs
 * (floats.h). For each type of kern/block, gg_kern_each_NAME(to, src, n) then
 * passes n weights of the row at src to them.
 */
#ifndef GG_KERN_SIMD_ROW_256_H
#define GG_KERN_SIMD_ROW_256_H

#include "base/bytes.h"
#include "kern/simd/v256.h"
#define VI_ALONE /* the includer may have vectors of floats of another width */
#include "kern/simd/vi_256.h"

enum { PARTS = 1 };

#define one_row_half gg_v256_half_ps
#include "kern/block/one_row.h"

static GG_ALWAYS_INLINE void take_32(const struct rows *r, size_t off, VI v[1])
{
    v[0] = gg_v256_load256(r->at + off);
}

static GG_ALWAYS_INLINE void take_nibbles(const struct rows *r, size_t off,
                                          VI q[1])
{
    q[0] = gg_v256_nibbles(r->at + off);
}

static GG_ALWAYS_INLINE void or_where(VI q[1], uint32_t bits, VI value)
{
    q[0] = vi_or(q[0], vi_and(gg_v256_spread_bits(bits), value));
}

static GG_ALWAYS_INLINE VI all_8(const struct bytes *b, size_t off)
{
    return _mm256_set1_epi64x((long long)gg_bytes_load64le(b->at + off));
}

static GG_ALWAYS_INLINE void each_4(VI q[1], const struct bytes *b, size_t off)
{
    const VI which =
        _mm256_setr_epi64x(0x0101010100000000, 0x0303030302020202,
                           0x0505050504040404, 0x0707070706060606);
    q[0] = vi_lookup(all_8(b, off), which);
}

static GG_ALWAYS_INLINE void each_8(VI q[1], const struct bytes *b, size_t off)
{
    q[0] = _mm256_srlv_epi64(all_8(b, off), _mm256_setr_epi64x(0, 4, 2, 6));
}

/* ---- scales and minima of sub-blocks ---- */

static GG_ALWAYS_INLINE __m128i bytes_of(const uint32_t w[4])
{
    return _mm_setr_epi32((int)w[0], (int)w[1], (int)w[2], (int)w[3]);
}

static GG_ALWAYS_INLINE void subs_u8(struct subs *s, float d,
                                     const uint32_t w[2])
{
    const __m128i v = _mm_setr_epi32((int)w[0], (int)w[1], 0, 0);
    _mm256_storeu_ps(s->by,
                     _mm256_mul_ps(_mm256_set1_ps(d), gg_v256_u8_ps(v)));
}

/* Sixteen signed bytes. */
static GG_ALWAYS_INLINE void set_subs(struct subs *s, float d, __m128i v)
{
    const __m256 all = _mm256_set1_ps(d);
    _mm256_storeu_ps(s->by, _mm256_mul_ps(all, gg_v256_i8_ps(v)));
    v = _mm_srli_si128(v, 8);
    _mm256_storeu_ps(s->by + 8, _mm256_mul_ps(all, gg_v256_i8_ps(v)));
}

static GG_ALWAYS_INLINE void subs_i8(struct subs *s, float d,
                                     const uint32_t w[4], int zero)
{
    const __m128i v = bytes_of(w);
    set_subs(s, d, zero ? _mm_sub_epi8(v, _mm_set1_epi8((char)zero)) : v);
}

static GG_ALWAYS_INLINE void subs_low(struct subs *s, float d,
                                      const uint32_t w[4])
{
    set_subs(s, d, _mm_and_si128(bytes_of(w), _mm_set1_epi8(15)));
}

static GG_ALWAYS_INLINE void subs_high(struct subs *s, float d,
                                       const uint32_t w[4])
{
    const __m128i v = _mm_srli_epi16(bytes_of(w), 4);
    set_subs(s, d, _mm_and_si128(v, _mm_set1_epi8(15)));
}

static GG_ALWAYS_INLINE void subs_6(struct subs *s, float d, uint32_t low,
                                    uint32_t high)
{
    const VI pair = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    VI l = _mm256_srlv_epi32(vi_words((int)low), vi_sll(pair, 1));
    VI h = _mm256_srlv_epi32(vi_words((int)high), pair);
    l = vi_and(l, vi_words(15));
    h = vi_sll(vi_and(h, vi_words(3)), 4);
    l = vi_sub(vi_or(l, h), vi_words(32));
    _mm256_storeu_ps(s->by,
                     _mm256_mul_ps(_mm256_set1_ps(d), _mm256_cvtepi32_ps(l)));
}

/* ---- the sink ---- */

#include "kern/block/block_view.h"

#define bias_of(to)              0
#define take_pairs(to, q, v, at) pairs_of(q, v, at)
#define emit_d(to, d)            to_d(to, d, 0)
#define emit_min(to, i, dmin, m) ((void)(m))

static GG_ALWAYS_INLINE void emit_halves(TO *to, const VI q[1], size_t i,
                                         int zero, float s, float t)
{
    (void)i;
    to_i8(to, zero ? vi_sub8(q[0], vi_bytes(zero)) : q[0], s, t);
}

static GG_ALWAYS_INLINE void emit_halves_min(TO *to, const VI q[1], size_t i,
                                             float s, float t, float dmin,
                                             float m, float n)
{
    (void)i;
    (void)dmin;
    to_u8(to, q[0], s, m, t, n);
}

#define emit_own(to, q, i, zero, d) emit_halves(to, q, i, zero, d, d)
#define emit_run(to, q, i, zero, d) emit_halves(to, q, i, zero, d, d)
#define emit_sub(to, q, i, zero, s) emit_halves(to, q, i, zero, s, s)
#define emit_sub_min(to, q, i, s, d, m)                                       \
    emit_halves_min(to, q, i, s, s, d, m, m)
/* x + m equals x - (-m), bit for bit. */
#define emit_own_min(to, q, i, d, m) emit_sub_min(to, q, i, d, 1, -(m))

#define emit_signs(to, i, w, d) ((void)(i), to_signs(to, w, d))

#include "kern/block/block_k.h"
#include "kern/block/block_low.h"
#include "kern/block/block_q32.h"

#define EACH(NAME, N, ...)                                                    \
    static GG_ALWAYS_INLINE void gg_kern_each_##NAME(TO *to, const void *src, \
                                                     size_t n)                \
    {                                                                         \
        struct rows r = { src };                                              \
        for (size_t i = 0; i < n / (N); i++) {                                \
            block_##NAME(to, &r __VA_ARGS__);                                 \
            r.at += sizeof(struct gg_block_##NAME);                           \
        }                                                                     \
    }
#define EACH_256(NAME) EACH(NAME, 256, )
#define EACH_32(NAME)  EACH(NAME, 32, , 0)
EACH_32(q4_0)
EACH_32(q4_1)
EACH_32(q5_0)
EACH_32(q5_1)
EACH_32(q8_0)
EACH_32(q8_1)
EACH_32(q6_0)
EACH_32(iq4_nl)
EACH_32(mxfp4)
EACH(q2_0, 64, , 0)
EACH(q1_0, 128, , 0)
EACH_256(q2_k)
EACH_256(q3_k)
EACH_256(q4_k)
EACH_256(q5_k)
EACH_256(q6_k)
EACH_256(q8_k)
EACH_256(iq4_xs)
EACH_256(tq2_0)

#endif
