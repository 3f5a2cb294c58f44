/* SPDX-License-Identifier: MIT */
/* neon_floats.h - vectors of floats and of doubles */
#ifndef GG_KERN_ARM_NEON_FLOATS_H
#define GG_KERN_ARM_NEON_FLOATS_H

#define m128_ps_u32(v) vreinterpretq_u32_f32(v)
#define m128_u32_ps(v) vreinterpretq_f32_u32(v)

/* As M256_BINARY of neon_ints.h, for floats. */
#define M256_FLOATS(name, value)                                              \
    M256_INLINE __m128 _mm_##name(__m128 a, __m128 b)                         \
    {                                                                         \
        return value;                                                         \
    }                                                                         \
    M256_INLINE __m256 _mm256_##name(__m256 a, __m256 b)                      \
    {                                                                         \
        return (__m256){ _mm_##name(a.lo, b.lo), _mm_##name(a.hi, b.hi) };    \
    }
#define M256_FLOAT_BITS(name, f, x, y)                                        \
    M256_FLOATS(name, m128_u32_ps(f(m128_ps_u32(x), m128_ps_u32(y))))

M256_FLOATS(add_ps, vaddq_f32(a, b))
M256_FLOATS(sub_ps, vsubq_f32(a, b))
M256_FLOATS(mul_ps, vmulq_f32(a, b))
M256_FLOATS(div_ps, vdivq_f32(a, b))
/* The second if either is NaN or both are zeros. */
M256_FLOATS(min_ps, vbslq_f32(vcltq_f32(a, b), a, b))
M256_FLOATS(max_ps, vbslq_f32(vcgtq_f32(a, b), a, b))
M256_FLOATS(hadd_ps, vpaddq_f32(a, b))
M256_FLOATS(unpacklo_ps, vzip1q_f32(a, b))
M256_FLOATS(unpackhi_ps, vzip2q_f32(a, b))
M256_FLOAT_BITS(and_ps, vandq_u32, a, b)
M256_FLOAT_BITS(or_ps, vorrq_u32, a, b)
M256_FLOAT_BITS(xor_ps, veorq_u32, a, b)
M256_FLOAT_BITS(andnot_ps, vbicq_u32, b, a)

/* Subtracts b in even lanes and adds it in odd ones. */
M256_INLINE __m256 _mm256_addsub_ps(__m256 a, __m256 b)
{
    const float32x4_t sign = { -0.0f, 0.0f, -0.0f, 0.0f };
    return _mm256_add_ps(a, _mm256_xor_ps(b, (__m256){ sign, sign }));
}

M256_INLINE __m256 _mm256_fmadd_ps(__m256 a, __m256 b, __m256 c)
{
    return (__m256){ vfmaq_f32(c.lo, a.lo, b.lo),
                     vfmaq_f32(c.hi, a.hi, b.hi) };
}

M256_INLINE __m256 _mm256_fnmadd_ps(__m256 a, __m256 b, __m256 c)
{
    return (__m256){ vfmsq_f32(c.lo, a.lo, b.lo),
                     vfmsq_f32(c.hi, a.hi, b.hi) };
}

M256_INLINE __m256 _mm256_fmsub_ps(__m256 a, __m256 b, __m256 c)
{
    return _mm256_fmadd_ps(a, b, (__m256){ vnegq_f32(c.lo), vnegq_f32(c.hi) });
}

M256_INLINE __m256 _mm256_sqrt_ps(__m256 a)
{
    return (__m256){ vsqrtq_f32(a.lo), vsqrtq_f32(a.hi) };
}

/* About 1 / a, with a relative error below 1.5 * 2^-12: an estimate of eight
 * bits and one step of Newton's. */
M256_INLINE __m128 m128_rcp_ps(__m128 a)
{
    float32x4_t r = vrecpeq_f32(a);
    return vmulq_f32(r, vrecpsq_f32(a, r));
}

M256_INLINE __m256 _mm256_rcp_ps(__m256 a)
{
    return (__m256){ m128_rcp_ps(a.lo), m128_rcp_ps(a.hi) };
}

#define _MM_FROUND_TO_NEAREST_INT 0
#define _MM_FROUND_NO_EXC         8
/* To the nearest integer; mode must say so. */
M256_INLINE __m256 _mm256_round_ps(__m256 a, int mode)
{
    (void)mode;
    return (__m256){ vrndnq_f32(a.lo), vrndnq_f32(a.hi) };
}

/* Comparisons: all ones or 0. */
enum {
    _CMP_EQ_OQ,
    _CMP_LT_OQ,
    _CMP_LE_OQ,
    _CMP_UNORD_Q,
    _CMP_NEQ_UQ,
    _CMP_NGE_UQ,
    _CMP_GE_OQ,
    _CMP_GT_OQ
};

M256_INLINE __m128 m128_cmp_ps(__m128 a, __m128 b, int how)
{
    uint32x4_t m;
    switch (how) {
    case _CMP_EQ_OQ: m = vceqq_f32(a, b); break;
    case _CMP_LT_OQ: m = vcltq_f32(a, b); break;
    case _CMP_LE_OQ: m = vcleq_f32(a, b); break;
    case _CMP_GE_OQ: m = vcgeq_f32(a, b); break;
    case _CMP_GT_OQ: m = vcgtq_f32(a, b); break;
    case _CMP_NEQ_UQ: m = vmvnq_u32(vceqq_f32(a, b)); break;
    case _CMP_NGE_UQ: m = vmvnq_u32(vcgeq_f32(a, b)); break;
    default: /* _CMP_UNORD_Q */
        m = vmvnq_u32(vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b)));
        break;
    }
    return m128_u32_ps(m);
}

M256_INLINE __m256 _mm256_cmp_ps(__m256 a, __m256 b, int how)
{
    return (__m256){ m128_cmp_ps(a.lo, b.lo, how),
                     m128_cmp_ps(a.hi, b.hi, how) };
}

/* Lanes of b where mask is negative, else of a. */
M256_INLINE __m128 m128_blendv_ps(__m128 a, __m128 b, __m128 mask)
{
    int32x4_t m = vshrq_n_s32(vreinterpretq_s32_f32(mask), 31);
    return vbslq_f32(vreinterpretq_u32_s32(m), b, a);
}

M256_INLINE __m256 _mm256_blendv_ps(__m256 a, __m256 b, __m256 mask)
{
    return (__m256){ m128_blendv_ps(a.lo, b.lo, mask.lo),
                     m128_blendv_ps(a.hi, b.hi, mask.hi) };
}

/* Bit i: the sign of lane i. */
M256_INLINE int _mm256_movemask_ps(__m256 a)
{
    const int32x4_t lo = { 0, 1, 2, 3 }, hi = { 4, 5, 6, 7 };
    uint32x4_t x = vshlq_u32(vshrq_n_u32(m128_ps_u32(a.lo), 31), lo);
    uint32x4_t y = vshlq_u32(vshrq_n_u32(m128_ps_u32(a.hi), 31), hi);
    return (int)vaddvq_u32(vorrq_u32(x, y));
}

/* Loads and stores. */
#define _mm_loadu_ps  vld1q_f32
#define _mm_storeu_ps vst1q_f32

M256_INLINE __m256 _mm256_loadu_ps(const float *p)
{
    return (__m256){ vld1q_f32(p), vld1q_f32(p + 4) };
}
#define _mm256_load_ps _mm256_loadu_ps

M256_INLINE void _mm256_storeu_ps(float *p, __m256 a)
{
    vst1q_f32(p, a.lo);
    vst1q_f32(p + 4, a.hi);
}
#define _mm256_store_ps _mm256_storeu_ps

M256_INLINE void _mm_storel_pi(void *p, __m128 a)
{
    vst1_u8(p, vreinterpret_u8_f32(vget_low_f32(a)));
}

M256_INLINE void _mm_storeh_pi(void *p, __m128 a)
{
    vst1_u8(p, vreinterpret_u8_f32(vget_high_f32(a)));
}

/* A lane is loaded or stored if bit 31 of its mask is set. A lane that is not
 * loaded is 0. */
M256_INLINE __m256 _mm256_maskload_ps(const float *p, __m256i mask)
{
    int32_t m[8];
    float v[8];
    _mm256_storeu_si256(m, mask);
    for (int i = 0; i < 8; i++)
        v[i] = m[i] < 0 ? p[i] : 0.0f;
    return _mm256_loadu_ps(v);
}

M256_INLINE void _mm256_maskstore_ps(float *p, __m256i mask, __m256 a)
{
    int32_t m[8];
    float v[8];
    _mm256_storeu_si256(m, mask);
    _mm256_storeu_ps(v, a);
    for (int i = 0; i < 8; i++)
        if (m[i] < 0)
            p[i] = v[i];
}

/* Constants. */
#define _mm_setzero_ps() vdupq_n_f32(0)
#define _mm_set1_ps(x)   vdupq_n_f32(x)
#define _mm_setr_ps(...) ((float32x4_t){ __VA_ARGS__ })

M256_INLINE __m256 _mm256_set1_ps(float x)
{
    return (__m256){ vdupq_n_f32(x), vdupq_n_f32(x) };
}
#define _mm256_setzero_ps() _mm256_set1_ps(0.0f)

M256_INLINE __m256 _mm256_broadcast_ss(const float *p)
{
    float32x4_t v = vld1q_dup_f32(p);
    return (__m256){ v, v };
}

M256_INLINE __m256 _mm256_broadcast_ps(const __m128 *p)
{
    return (__m256){ *p, *p };
}

M256_INLINE __m256 _mm256_broadcastss_ps(__m128 a)
{
    return _mm256_set1_ps(vgetq_lane_f32(a, 0));
}

M256_INLINE __m256 _mm256_setr_ps(float a, float b, float c, float d, float e,
                                  float f, float g, float h)
{
    return (__m256){ (float32x4_t){ a, b, c, d },
                     (float32x4_t){ e, f, g, h } };
}

/* Halves and single lanes. */
M256_INLINE __m128 _mm256_castps256_ps128(__m256 a)
{
    return a.lo;
}

M256_INLINE __m256 _mm256_castps128_ps256(__m128 a)
{
    return (__m256){ a, a };
}

M256_INLINE __m128 _mm256_extractf128_ps(__m256 a, int i)
{
    return i ? a.hi : a.lo;
}

M256_INLINE __m256 _mm256_insertf128_ps(__m256 a, __m128 b, int i)
{
    return i ? (__m256){ a.lo, b } : (__m256){ b, a.hi };
}

M256_INLINE float _mm_cvtss_f32(__m128 a)
{
    return vgetq_lane_f32(a, 0);
}

M256_INLINE float _mm256_cvtss_f32(__m256 a)
{
    return vgetq_lane_f32(a.lo, 0);
}

M256_INLINE __m128 _mm_add_ss(__m128 a, __m128 b)
{
    return vcopyq_laneq_f32(a, 0, vaddq_f32(a, b), 0);
}

M256_INLINE __m128 _mm_min_ss(__m128 a, __m128 b)
{
    return vcopyq_laneq_f32(a, 0, _mm_min_ps(a, b), 0);
}

M256_INLINE __m128 _mm_max_ss(__m128 a, __m128 b)
{
    return vcopyq_laneq_f32(a, 0, _mm_max_ps(a, b), 0);
}

/* Shuffles. */
#define _mm_movehdup_ps(a)  vtrn2q_f32(a, a)
#define _mm_movehl_ps(a, b) vcombine_f32(vget_high_f32(b), vget_high_f32(a))
#define _mm_shuffle_ps(a, b, n)                                               \
    __builtin_shufflevector(a, b, (n)&3, (n) >> 2 & 3, 4 + ((n) >> 4 & 3),    \
                            4 + ((n) >> 6 & 3))
#define _mm256_shuffle_ps(a, b, n)                                            \
    ((__m256){ _mm_shuffle_ps((a).lo, (b).lo, n),                             \
               _mm_shuffle_ps((a).hi, (b).hi, n) })
#define _mm256_permute_ps(a, n) _mm256_shuffle_ps(a, a, n)

M256_INLINE __m256i _mm256_castps_si256(__m256 a)
{
    return (__m256i){ vreinterpretq_u8_f32(a.lo), vreinterpretq_u8_f32(a.hi) };
}

M256_INLINE __m256 _mm256_castsi256_ps(__m256i a)
{
    return (__m256){ vreinterpretq_f32_u8(a.lo), vreinterpretq_f32_u8(a.hi) };
}

M256_INLINE __m128i _mm_castps_si128(__m128 a)
{
    return vreinterpretq_u8_f32(a);
}

M256_INLINE __m128 _mm_castsi128_ps(__m128i a)
{
    return vreinterpretq_f32_u8(a);
}

M256_INLINE __m256 _mm256_permute2f128_ps(__m256 a, __m256 b, int i)
{
    return _mm256_castsi256_ps(_mm256_permute2x128_si256(
        _mm256_castps_si256(a), _mm256_castps_si256(b), i));
}

M256_INLINE __m256 _mm256_permutevar8x32_ps(__m256 a, __m256i i)
{
    return _mm256_castsi256_ps(
        _mm256_permutevar8x32_epi32(_mm256_castps_si256(a), i));
}

/* Lanes of each half by the low two bits of i. */
M256_INLINE __m128 m128_permutevar_ps(__m128 a, __m128i i)
{
    uint32x4_t at = vandq_u32(m128_u32(i), vdupq_n_u32(3));
    at = vmlaq_u32(vdupq_n_u32(0x03020100), at, vdupq_n_u32(0x04040404));
    return vreinterpretq_f32_u8(
        vqtbl1q_u8(vreinterpretq_u8_f32(a), m128_of_u32(at)));
}

M256_INLINE __m256 _mm256_permutevar_ps(__m256 a, __m256i i)
{
    return (__m256){ m128_permutevar_ps(a.lo, i.lo),
                     m128_permutevar_ps(a.hi, i.hi) };
}

/* Conversions. */
M256_INLINE __m256 _mm256_cvtepi32_ps(__m256i a)
{
    return (__m256){ vcvtq_f32_s32(m128_s32(a.lo)),
                     vcvtq_f32_s32(m128_s32(a.hi)) };
}

/* x86 has INT32_MIN for numbers out of range and for NaN. */
M256_INLINE __m128i m128_or_least(__m128 a, int32x4_t i)
{
    uint32x4_t in = vcaltq_f32(a, vdupq_n_f32(0x1p31f));
    return m128_of_s32(vbslq_s32(in, i, vdupq_n_s32(INT32_MIN)));
}

M256_INLINE __m256i _mm256_cvtps_epi32(__m256 a)
{
    return (__m256i){ m128_or_least(a.lo, vcvtnq_s32_f32(a.lo)),
                      m128_or_least(a.hi, vcvtnq_s32_f32(a.hi)) };
}

M256_INLINE __m256i _mm256_cvttps_epi32(__m256 a)
{
    return (__m256i){ m128_or_least(a.lo, vcvtq_s32_f32(a.lo)),
                      m128_or_least(a.hi, vcvtq_s32_f32(a.hi)) };
}

M256_INLINE __m256 _mm256_cvtph_ps(__m128i a)
{
    float16x8_t h = vreinterpretq_f16_u8(a);
    return (__m256){ vcvt_f32_f16(vget_low_f16(h)), vcvt_high_f32_f16(h) };
}

M256_INLINE __m128i _mm256_cvtps_ph(__m256 a, int mode)
{
    (void)mode;
    return vreinterpretq_u8_f16(vcvt_high_f16_f32(vcvt_f16_f32(a.lo), a.hi));
}

M256_INLINE float _cvtsh_ss(unsigned short h)
{
    float16x4_t v = vreinterpret_f16_u16(vdup_n_u16(h));
    return vgetq_lane_f32(vcvt_f32_f16(v), 0);
}

M256_INLINE unsigned short _cvtss_sh(float x, int mode)
{
    (void)mode;
    return vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(x))),
                         0);
}

/* Doubles. */
#define M256_DOUBLES(name, value)                                             \
    M256_INLINE __m128d _mm_##name(__m128d a, __m128d b)                      \
    {                                                                         \
        return value;                                                         \
    }                                                                         \
    M256_INLINE __m256d _mm256_##name(__m256d a, __m256d b)                   \
    {                                                                         \
        return (__m256d){ _mm_##name(a.lo, b.lo), _mm_##name(a.hi, b.hi) };   \
    }
#define M256_DOUBLE_BITS(name, f, x, y)                                       \
    M256_DOUBLES(name, vreinterpretq_f64_u64(f(vreinterpretq_u64_f64(x),      \
                                               vreinterpretq_u64_f64(y))))
M256_DOUBLES(add_pd, vaddq_f64(a, b))
M256_DOUBLES(sub_pd, vsubq_f64(a, b))
M256_DOUBLES(mul_pd, vmulq_f64(a, b))
M256_DOUBLES(min_pd, vbslq_f64(vcltq_f64(a, b), a, b))
M256_DOUBLES(max_pd, vbslq_f64(vcgtq_f64(a, b), a, b))
M256_DOUBLES(unpackhi_pd, vzip2q_f64(a, b))
M256_DOUBLE_BITS(and_pd, vandq_u64, a, b)
M256_DOUBLE_BITS(andnot_pd, vbicq_u64, b, a)

M256_INLINE __m256d _mm256_fmadd_pd(__m256d a, __m256d b, __m256d c)
{
    return (__m256d){ vfmaq_f64(c.lo, a.lo, b.lo),
                      vfmaq_f64(c.hi, a.hi, b.hi) };
}

M256_INLINE __m256d _mm256_set1_pd(double x)
{
    return (__m256d){ vdupq_n_f64(x), vdupq_n_f64(x) };
}
#define _mm256_setzero_pd() _mm256_set1_pd(0.0)

M256_INLINE __m256d _mm256_loadu_pd(const double *p)
{
    return (__m256d){ vld1q_f64(p), vld1q_f64(p + 2) };
}

M256_INLINE void _mm256_storeu_pd(double *p, __m256d a)
{
    vst1q_f64(p, a.lo);
    vst1q_f64(p + 2, a.hi);
}

M256_INLINE __m128d _mm256_castpd256_pd128(__m256d a)
{
    return a.lo;
}

M256_INLINE __m128d _mm256_extractf128_pd(__m256d a, int i)
{
    return i ? a.hi : a.lo;
}

M256_INLINE __m256d _mm256_castsi256_pd(__m256i a)
{
    return (__m256d){ vreinterpretq_f64_u8(a.lo), vreinterpretq_f64_u8(a.hi) };
}

M256_INLINE __m128d _mm_add_sd(__m128d a, __m128d b)
{
    return vcopyq_laneq_f64(a, 0, vaddq_f64(a, b), 0);
}

M256_INLINE double _mm_cvtsd_f64(__m128d a)
{
    return vgetq_lane_f64(a, 0);
}

M256_INLINE __m256d _mm256_cvtps_pd(__m128 a)
{
    return (__m256d){ vcvt_f64_f32(vget_low_f32(a)), vcvt_high_f64_f32(a) };
}

/* Toward 0; INT32_MIN for numbers out of range and for NaN. */
M256_INLINE __m128i _mm256_cvttpd_epi32(__m256d a)
{
    int32x4_t i =
        vmovn_high_s64(vmovn_s64(vcvtq_s64_f64(a.lo)), vcvtq_s64_f64(a.hi));
    const float64x2_t end = vdupq_n_f64(0x1p31);
    uint32x4_t in = vmovn_high_u64(vmovn_u64(vcaltq_f64(a.lo, end)),
                                   vcaltq_f64(a.hi, end));
    return m128_of_s32(vbslq_s32(in, i, vdupq_n_s32(INT32_MIN)));
}

#endif
