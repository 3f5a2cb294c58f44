/* SPDX-License-Identifier: MIT */
/* neon_ops.h - the operations of kern/x86/avx2_ops.h by NEON
 *
 * Each is a few instructions here, and would be more in terms of AVX2's.
 */
#ifndef GG_KERN_ARM_NEON_OPS_H
#define GG_KERN_ARM_NEON_OPS_H

M256_INLINE __m256i m256_lookup(__m256i table, __m256i i)
{
    return (__m256i){ vqtbl1q_u8(table.lo, i.lo), vqtbl1q_u8(table.hi, i.hi) };
}

M256_INLINE __m256i m256_lookup_32(__m256i low, __m256i high, __m256i i)
{
    const uint8x16x2_t table = { { low.lo, high.lo } };
    return (__m256i){ vqtbl2q_u8(table, i.lo), vqtbl2q_u8(table, i.hi) };
}

M256_INLINE __m256i m256_select(__m256i a, __m256i b, __m256i mask)
{
    return (__m256i){ vbslq_u8(mask.lo, b.lo, a.lo),
                      vbslq_u8(mask.hi, b.hi, a.hi) };
}

M256_INLINE __m256 m256_select_ps(__m256 a, __m256 b, __m256 mask)
{
    return (__m256){ vbslq_f32(m128_ps_u32(mask.lo), b.lo, a.lo),
                     vbslq_f32(m128_ps_u32(mask.hi), b.hi, a.hi) };
}

M256_INLINE __m256i m256_has_bit(__m256i v, __m256i bit)
{
    return (__m256i){ vtstq_u8(v.lo, bit.lo), vtstq_u8(v.hi, bit.hi) };
}

M256_INLINE __m256i m256_nibbles(__m128i b)
{
    return (__m256i){ vandq_u8(b, vdupq_n_u8(15)), b >> 4 };
}

M256_INLINE __m256i m256_srl8(__m256i v, int n)
{
    return (__m256i){ v.lo >> n, v.hi >> n };
}

M256_INLINE __m256i m256_put_bits(__m256i q, __m256i b, __m256i mask)
{
    return m256_select(q, b, mask);
}

M256_INLINE __m256i m256_to_ints(__m256 a)
{
    return (__m256i){ m128_of_s32(vcvtnq_s32_f32(a.lo)),
                      m128_of_s32(vcvtnq_s32_f32(a.hi)) };
}

M256_INLINE __m256 m256_halves_ps(__m256i v)
{
    const uint16x4_t lo = vmovn_u32(m128_u32(v.lo));
    const uint16x4_t hi = vmovn_u32(m128_u32(v.hi));
    return (__m256){ vcvt_f32_f16(vreinterpret_f16_u16(lo)),
                     vcvt_f32_f16(vreinterpret_f16_u16(hi)) };
}

/* Eight integers as 16 bits, saturating. */
M256_INLINE int16x8_t m256_words(__m256i v)
{
    return vqmovn_high_s32(vqmovn_s32(m128_s32(v.lo)), m128_s32(v.hi));
}

M256_INLINE __m256i m256_pack_signed(__m256i a, __m256i b, __m256i c,
                                     __m256i d)
{
    return (__m256i){
        m128_of_s8(vqmovn_high_s16(vqmovn_s16(m256_words(a)), m256_words(b))),
        m128_of_s8(vqmovn_high_s16(vqmovn_s16(m256_words(c)), m256_words(d)))
    };
}

M256_INLINE __m256i m256_pack_unsigned(__m256i a, __m256i b, __m256i c,
                                       __m256i d)
{
    return (__m256i){
        vqmovun_high_s16(vqmovun_s16(m256_words(a)), m256_words(b)),
        vqmovun_high_s16(vqmovun_s16(m256_words(c)), m256_words(d))
    };
}

#endif
