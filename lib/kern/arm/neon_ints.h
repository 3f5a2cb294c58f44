/* SPDX-License-Identifier: MIT */
/* neon_ints.h - vectors of integers */
#ifndef GG_KERN_ARM_NEON_INTS_H
#define GG_KERN_ARM_NEON_INTS_H

/* A register of bytes as one of other elements, and back. */
#define m128_u8(v)     (v)
#define m128_s8(v)     vreinterpretq_s8_u8(v)
#define m128_s16(v)    vreinterpretq_s16_u8(v)
#define m128_u16(v)    vreinterpretq_u16_u8(v)
#define m128_s32(v)    vreinterpretq_s32_u8(v)
#define m128_u32(v)    vreinterpretq_u32_u8(v)
#define m128_s64(v)    vreinterpretq_s64_u8(v)
#define m128_u64(v)    vreinterpretq_u64_u8(v)
#define m128_of_u8(v)  (v)
#define m128_of_s8(v)  vreinterpretq_u8_s8(v)
#define m128_of_s16(v) vreinterpretq_u8_s16(v)
#define m128_of_u16(v) vreinterpretq_u8_u16(v)
#define m128_of_s32(v) vreinterpretq_u8_s32(v)
#define m128_of_u32(v) vreinterpretq_u8_u32(v)
#define m128_of_s64(v) vreinterpretq_u8_s64(v)
#define m128_of_u64(v) vreinterpretq_u8_u64(v)

/* Defines _mm_ONE, which is value, and _mm256_TWO, which is _mm_ONE of both
 * halves. */
#define M256_UNARY(one, two, value)                                           \
    M256_INLINE __m128i _mm_##one(__m128i a)                                  \
    {                                                                         \
        return value;                                                         \
    }                                                                         \
    M256_INLINE __m256i _mm256_##two(__m256i a)                               \
    {                                                                         \
        return (__m256i){ _mm_##one(a.lo), _mm_##one(a.hi) };                 \
    }
#define M256_BINARY(one, two, value)                                          \
    M256_INLINE __m128i _mm_##one(__m128i a, __m128i b)                       \
    {                                                                         \
        return value;                                                         \
    }                                                                         \
    M256_INLINE __m256i _mm256_##two(__m256i a, __m256i b)                    \
    {                                                                         \
        return (__m256i){ _mm_##one(a.lo, b.lo), _mm_##one(a.hi, b.hi) };     \
    }
/* A function of NEON on elements of type t, with a result of type r. */
#define M256_NEON_TO(name, f, t, r)                                           \
    M256_BINARY(name, name, m128_of_##r(f##_##t(m128_##t(a), m128_##t(b))))
#define M256_NEON(name, f, t) M256_NEON_TO(name, f, t, t)

M256_NEON(add_epi8, vaddq, u8)
M256_NEON(add_epi16, vaddq, u16)
M256_NEON(add_epi32, vaddq, u32)
M256_NEON(add_epi64, vaddq, u64)
M256_NEON(sub_epi8, vsubq, u8)
M256_NEON(sub_epi16, vsubq, u16)
M256_NEON(sub_epi32, vsubq, u32)
M256_NEON(sub_epi64, vsubq, u64)
M256_NEON(mullo_epi16, vmulq, u16)
M256_NEON(mullo_epi32, vmulq, u32)
M256_NEON(min_epi8, vminq, s8)
M256_NEON(min_epi32, vminq, s32)
M256_NEON(max_epi32, vmaxq, s32)
M256_NEON_TO(cmpeq_epi8, vceqq, u8, u8)
M256_NEON_TO(cmpeq_epi32, vceqq, u32, u32)
M256_NEON_TO(cmpeq_epi64, vceqq, u64, u64)
M256_NEON_TO(cmpgt_epi32, vcgtq, s32, u32)
M256_NEON(unpacklo_epi8, vzip1q, u8)
M256_NEON(unpackhi_epi8, vzip2q, u8)
M256_NEON(unpacklo_epi16, vzip1q, u16)
M256_NEON(unpackhi_epi16, vzip2q, u16)
M256_NEON(unpacklo_epi32, vzip1q, u32)
M256_NEON(unpackhi_epi32, vzip2q, u32)
M256_NEON(unpacklo_epi64, vzip1q, u64)
M256_NEON(unpackhi_epi64, vzip2q, u64)
M256_NEON(hadd_epi32, vpaddq, s32)
M256_BINARY(and_si128, and_si256, vandq_u8(a, b))
M256_BINARY(or_si128, or_si256, vorrq_u8(a, b))
M256_BINARY(xor_si128, xor_si256, veorq_u8(a, b))
M256_BINARY(andnot_si128, andnot_si256, vbicq_u8(b, a))
M256_UNARY(abs_epi32, abs_epi32, m128_of_s32(vabsq_s32(m128_s32(a))))

/* To half the width, saturating: of each 128 bits of a, then of b. */
#define M256_NARROW(name, f, t, r)                                            \
    M256_BINARY(name, name,                                                   \
                m128_of_##r(f##_high_##t(f##_##t(m128_##t(a)), m128_##t(b))))
M256_NARROW(packs_epi32, vqmovn, s32, s16)
M256_NARROW(packs_epi16, vqmovn, s16, s8)
M256_NARROW(packus_epi32, vqmovun, s32, u16)
M256_NARROW(packus_epi16, vqmovun, s16, u8)

/* Sums of the two products of signed 16 bits. */
M256_BINARY(madd_epi16, madd_epi16,
            m128_of_s32(vpaddq_s32(vmull_s16(vget_low_s16(m128_s16(a)),
                                             vget_low_s16(m128_s16(b))),
                                   vmull_high_s16(m128_s16(a), m128_s16(b)))))

/* The products of unsigned bytes of a and signed bytes of b, of elements of
 * even and of odd number; their sums saturate. */
M256_BINARY(maddubs_epi16, maddubs_epi16,
            m128_of_s16(vqaddq_s16(
                vmulq_s16(m128_s16(vandq_u8(a, m128_of_u16(vdupq_n_u16(255)))),
                          vshrq_n_s16(vshlq_n_s16(m128_s16(b), 8), 8)),
                vmulq_s16(vreinterpretq_s16_u16(vshrq_n_u16(m128_u16(a), 8)),
                          vshrq_n_s16(m128_s16(b), 8)))))

/* The upper halves of products of unsigned 16 bits. */
M256_BINARY(mulhi_epu16, mulhi_epu16,
            m128_of_u16(vuzp2q_u16(
                vreinterpretq_u16_u32(vmull_u16(vget_low_u16(m128_u16(a)),
                                                vget_low_u16(m128_u16(b)))),
                vreinterpretq_u16_u32(vmull_high_u16(m128_u16(a),
                                                     m128_u16(b))))))

/* Sums of eight absolute differences of bytes. */
M256_BINARY(sad_epu8, sad_epu8,
            m128_of_u64(vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(vabdq_u8(a, b))))))

/* Bytes of a by the low four bits of b; 0 where b has bit 7. */
M256_BINARY(shuffle_epi8, shuffle_epi8,
            vqtbl1q_u8(a, vandq_u8(b, vdupq_n_u8(0x8f))))

/* One shift for all lanes. It is less than their width. */
#define M256_SHIFT(name, t, op)                                               \
    M256_INLINE __m128i _mm_##name(__m128i a, int n)                          \
    {                                                                         \
        return m128_of_##t(m128_##t(a) op n);                                 \
    }                                                                         \
    M256_INLINE __m256i _mm256_##name(__m256i a, int n)                       \
    {                                                                         \
        return (__m256i){ _mm_##name(a.lo, n), _mm_##name(a.hi, n) };         \
    }
M256_SHIFT(slli_epi16, u16, <<)
M256_SHIFT(slli_epi32, u32, <<)
M256_SHIFT(slli_epi64, u64, <<)
M256_SHIFT(srli_epi16, u16, >>)
M256_SHIFT(srli_epi32, u32, >>)
M256_SHIFT(srli_epi64, u64, >>)
M256_SHIFT(srai_epi16, s16, >>)
M256_SHIFT(srai_epi32, s32, >>)

/* A shift for each lane; 0 if it is the width or more. */
M256_BINARY(srlv_epi32, srlv_epi32,
            m128_of_u32(vshlq_u32(m128_u32(a),
                                  vnegq_s32(vreinterpretq_s32_u32(vminq_u32(
                                      m128_u32(b), vdupq_n_u32(32)))))))
/* The shifts must be below 128. */
M256_BINARY(srlv_epi64, srlv_epi64,
            m128_of_u64(vshlq_u64(m128_u64(a), vnegq_s64(m128_s64(b)))))

M256_INLINE __m256i _mm256_srl_epi16(__m256i a, __m128i n)
{
    return _mm256_srli_epi16(a, vgetq_lane_s32(m128_s32(n), 0));
}

/* Bytes of b where mask has bit 7, else of a. */
M256_INLINE __m128i _mm_blendv_epi8(__m128i a, __m128i b, __m128i mask)
{
    return vbslq_u8(m128_of_s8(vshrq_n_s8(m128_s8(mask), 7)), b, a);
}

M256_INLINE __m256i _mm256_blendv_epi8(__m256i a, __m256i b, __m256i mask)
{
    return (__m256i){ _mm_blendv_epi8(a.lo, b.lo, mask.lo),
                      _mm_blendv_epi8(a.hi, b.hi, mask.hi) };
}

/* Loads and stores. */
M256_INLINE __m128i _mm_loadu_si128(const void *p)
{
    return vld1q_u8(p);
}

M256_INLINE __m128i _mm_loadl_epi64(const void *p)
{
    return vcombine_u8(vld1_u8(p), vdup_n_u8(0));
}

M256_INLINE void _mm_storeu_si128(void *p, __m128i a)
{
    vst1q_u8(p, a);
}

M256_INLINE void _mm_storel_epi64(void *p, __m128i a)
{
    vst1_u8(p, vget_low_u8(a));
}

M256_INLINE __m256i _mm256_loadu_si256(const void *p)
{
    const uint8_t *b = p;
    return (__m256i){ vld1q_u8(b), vld1q_u8(b + 16) };
}
#define _mm256_load_si256 _mm256_loadu_si256

M256_INLINE void _mm256_storeu_si256(void *p, __m256i a)
{
    uint8_t *b = p;
    vst1q_u8(b, a.lo);
    vst1q_u8(b + 16, a.hi);
}
#define _mm256_store_si256 _mm256_storeu_si256

M256_INLINE __m256i m256_pair(__m128i lo, __m128i hi)
{
    return (__m256i){ lo, hi };
}

/* Constants. */
#define M256_SET1(suffix, t, T)                                               \
    M256_INLINE __m128i _mm_set1_##suffix(T x)                                \
    {                                                                         \
        return m128_of_##t(vdupq_n_##t(x));                                   \
    }                                                                         \
    M256_INLINE __m256i _mm256_set1_##suffix(T x)                             \
    {                                                                         \
        return (__m256i){ _mm_set1_##suffix(x), _mm_set1_##suffix(x) };       \
    }
M256_SET1(epi8, s8, int8_t)
M256_SET1(epi16, s16, int16_t)
M256_SET1(epi32, s32, int32_t)
M256_SET1(epi64x, s64, int64_t)

#define _mm_setzero_si128() vdupq_n_u8(0)
#define _mm256_setzero_si256()                                                \
    (__m256i)                                                                 \
    {                                                                         \
        vdupq_n_u8(0), vdupq_n_u8(0)                                          \
    }

#define _mm_setr_epi8(...)   m128_of_s8(((int8x16_t){ __VA_ARGS__ }))
#define _mm_setr_epi32(...)  m128_of_s32(((int32x4_t){ __VA_ARGS__ }))
#define _mm_set_epi64x(b, a) m128_of_s64(((int64x2_t){ (a), (b) }))

M256_INLINE __m128i _mm_set_epi8(int8_t p, int8_t o, int8_t n, int8_t m,
                                 int8_t l, int8_t k, int8_t j, int8_t i,
                                 int8_t h, int8_t g, int8_t f, int8_t e,
                                 int8_t d, int8_t c, int8_t b, int8_t a)
{
    return _mm_setr_epi8(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
}

M256_INLINE __m256i _mm256_setr_epi32(int a, int b, int c, int d, int e, int f,
                                      int g, int h)
{
    return (__m256i){ _mm_setr_epi32(a, b, c, d), _mm_setr_epi32(e, f, g, h) };
}

M256_INLINE __m256i _mm256_setr_epi64x(int64_t a, int64_t b, int64_t c,
                                       int64_t d)
{
    return (__m256i){ _mm_set_epi64x(b, a), _mm_set_epi64x(d, c) };
}

#define _mm256_setr_epi8(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ...) \
    m256_pair(_mm_setr_epi8(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p),  \
              _mm_setr_epi8(__VA_ARGS__))

M256_INLINE __m256i _mm256_setr_epi16(int16_t a, int16_t b, int16_t c,
                                      int16_t d, int16_t e, int16_t f,
                                      int16_t g, int16_t h, int16_t i,
                                      int16_t j, int16_t k, int16_t l,
                                      int16_t m, int16_t n, int16_t o,
                                      int16_t p)
{
    return (__m256i){ m128_of_s16(((int16x8_t){ a, b, c, d, e, f, g, h })),
                      m128_of_s16(((int16x8_t){ i, j, k, l, m, n, o, p })) };
}

/* Halves. */
M256_INLINE __m128i _mm256_castsi256_si128(__m256i a)
{
    return a.lo;
}

M256_INLINE __m256i _mm256_castsi128_si256(__m128i a)
{
    return (__m256i){ a, a };
}

M256_INLINE __m256i _mm256_broadcastsi128_si256(__m128i a)
{
    return (__m256i){ a, a };
}

M256_INLINE __m256i _mm256_set_m128i(__m128i hi, __m128i lo)
{
    return (__m256i){ lo, hi };
}

M256_INLINE __m128i _mm256_extracti128_si256(__m256i a, int i)
{
    return i ? a.hi : a.lo;
}

M256_INLINE __m256i _mm256_inserti128_si256(__m256i a, __m128i b, int i)
{
    return i ? (__m256i){ a.lo, b } : (__m256i){ b, a.hi };
}

/* One of four halves, or 0. */
M256_INLINE __m128i m256_half(__m256i a, __m256i b, int i)
{
    __m256i of = i & 2 ? b : a;
    return i & 8 ? vdupq_n_u8(0) : i & 1 ? of.hi : of.lo;
}

M256_INLINE __m256i _mm256_permute2x128_si256(__m256i a, __m256i b, int i)
{
    return (__m256i){ m256_half(a, b, i), m256_half(a, b, i >> 4) };
}

/* Single lanes. */
M256_INLINE int _mm_cvtsi128_si32(__m128i a)
{
    return vgetq_lane_s32(m128_s32(a), 0);
}

M256_INLINE __m128i _mm_cvtsi32_si128(int x)
{
    return m128_of_s32(((int32x4_t){ x, 0, 0, 0 }));
}

#define _mm256_extract_epi32(a, i)                                            \
    vgetq_lane_s32(m128_s32((i)&4 ? (a).hi : (a).lo), (i)&3)

/* Wider lanes. */
#define M256_WIDEN(name, f, t, half, r)                                       \
    M256_INLINE __m256i _mm256_cvt##name(__m128i a)                           \
    {                                                                         \
        return (__m256i){ m128_of_##r(f##_##t(vget_low_##t(m128_##t(a)))),    \
                          m128_of_##r(f##_high_##t(m128_##t(a))) };           \
    }
M256_WIDEN(epi8_epi16, vmovl, s8, 8, s16)
M256_WIDEN(epu8_epi16, vmovl, u8, 8, u16)
M256_WIDEN(epi16_epi32, vmovl, s16, 4, s32)
M256_WIDEN(epu16_epi32, vmovl, u16, 4, u32)
M256_WIDEN(epi32_epi64, vmovl, s32, 2, s64)

M256_INLINE __m256i _mm256_cvtepi8_epi32(__m128i a)
{
    return _mm256_cvtepi16_epi32(
        m128_of_s16(vmovl_s8(vget_low_s8(m128_s8(a)))));
}

M256_INLINE __m256i _mm256_cvtepu8_epi32(__m128i a)
{
    return _mm256_cvtepu16_epi32(m128_of_u16(vmovl_u8(vget_low_u8(a))));
}

M256_INLINE __m128i _mm_cvtepu8_epi16(__m128i a)
{
    return m128_of_u16(vmovl_u8(vget_low_u8(a)));
}

/* Shuffles by constants. */
#define m128_lanes4(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#define _mm_shuffle_epi32(a, n)                                               \
    m128_of_u32(m128_lanes4(m128_u32(a), m128_u32(a), (n)&3, (n) >> 2 & 3,    \
                            (n) >> 4 & 3, (n) >> 6 & 3))
#define _mm256_shuffle_epi32(a, n)                                            \
    m256_pair(_mm_shuffle_epi32((a).lo, n), _mm_shuffle_epi32((a).hi, n))
#define _mm_alignr_epi8(a, b, n) vextq_u8(b, a, n)
#define _mm_srli_si128(a, n)     vextq_u8(a, vdupq_n_u8(0), n)
#define _mm_slli_si128(a, n)     vextq_u8(vdupq_n_u8(0), a, 16 - (n))
#define _mm256_srli_si256(a, n)                                               \
    m256_pair(_mm_srli_si128((a).lo, n), _mm_srli_si128((a).hi, n))

#define m256_lane(n, i, from) ((n) >> (i)&1 ? (from) + (i) : (i))
#define _mm_blend_epi16(a, b, n)                                              \
    m128_of_u16(__builtin_shufflevector(                                      \
        m128_u16(a), m128_u16(b), m256_lane(n, 0, 8), m256_lane(n, 1, 8),     \
        m256_lane(n, 2, 8), m256_lane(n, 3, 8), m256_lane(n, 4, 8),           \
        m256_lane(n, 5, 8), m256_lane(n, 6, 8), m256_lane(n, 7, 8)))
#define m128_blend_epi32(a, b, n)                                             \
    m128_of_u32(m128_lanes4(m128_u32(a), m128_u32(b), m256_lane(n, 0, 4),     \
                            m256_lane(n, 1, 4), m256_lane(n, 2, 4),           \
                            m256_lane(n, 3, 4)))

M256_INLINE __m256i m256_blend_epi16(__m256i a, __m256i b, __m256i mask)
{
    return (__m256i){ vbslq_u8(mask.lo, b.lo, a.lo),
                      vbslq_u8(mask.hi, b.hi, a.hi) };
}

/* Lane i is all ones if bit i of n is set, else 0. */
M256_INLINE __m128i m128_mask16(unsigned n)
{
    const uint16x8_t bit = { 1, 2, 4, 8, 16, 32, 64, 128 };
    return m128_of_u16(vtstq_u16(vdupq_n_u16((uint16_t)n), bit));
}

M256_INLINE __m256i _mm256_blend_epi16(__m256i a, __m256i b, int n)
{
    __m128i mask = m128_mask16((unsigned)n);
    return m256_blend_epi16(a, b, (__m256i){ mask, mask });
}

M256_INLINE __m256i _mm256_blend_epi32(__m256i a, __m256i b, int n)
{
    const uint32x4_t lo = { 1, 2, 4, 8 }, hi = { 16, 32, 64, 128 };
    uint32x4_t of = vdupq_n_u32((uint32_t)n);
    return m256_blend_epi16(a, b,
                            (__m256i){ m128_of_u32(vtstq_u32(of, lo)),
                                       m128_of_u32(vtstq_u32(of, hi)) });
}

/* The 64 bits of number i. */
M256_INLINE uint64x1_t m256_quarter(__m256i a, int i)
{
    uint64x2_t of = m128_u64(i & 2 ? a.hi : a.lo);
    return i & 1 ? vget_high_u64(of) : vget_low_u64(of);
}

M256_INLINE __m256i _mm256_permute4x64_epi64(__m256i a, int n)
{
    return (__m256i){ m128_of_u64(vcombine_u64(m256_quarter(a, n),
                                               m256_quarter(a, n >> 2))),
                      m128_of_u64(vcombine_u64(m256_quarter(a, n >> 4),
                                               m256_quarter(a, n >> 6))) };
}

/* Lanes of a by the low three bits of each lane of i. */
M256_INLINE __m256i _mm256_permutevar8x32_epi32(__m256i a, __m256i i)
{
    const uint8x16x2_t table = { { a.lo, a.hi } };
    const uint32x4_t four = vdupq_n_u32(0x04040404);
    const uint32x4_t byte = vdupq_n_u32(0x03020100);
    const uint32x4_t seven = vdupq_n_u32(7);
    uint32x4_t lo = vmlaq_u32(byte, vandq_u32(m128_u32(i.lo), seven), four);
    uint32x4_t hi = vmlaq_u32(byte, vandq_u32(m128_u32(i.hi), seven), four);
    return (__m256i){ vqtbl2q_u8(table, m128_of_u32(lo)),
                      vqtbl2q_u8(table, m128_of_u32(hi)) };
}

/* Bit i: bit 7 of byte i. */
M256_INLINE int _mm_movemask_epi8(__m128i a)
{
    const int8x16_t place = { -7, -6, -5, -4, -3, -2, -1, 0,
                              -7, -6, -5, -4, -3, -2, -1, 0 };
    uint8x16_t bits = vshlq_u8(vandq_u8(a, vdupq_n_u8(128)), place);
    return vaddv_u8(vget_low_u8(bits)) | vaddv_u8(vget_high_u8(bits)) << 8;
}

M256_INLINE int _mm256_movemask_epi8(__m256i a)
{
    return (int)((unsigned)_mm_movemask_epi8(a.lo) |
                 (unsigned)_mm_movemask_epi8(a.hi) << 16);
}

M256_INLINE unsigned _mm_popcnt_u32(unsigned x)
{
    return (unsigned)__builtin_popcount(x);
}

#endif
