/* SPDX-License-Identifier: MIT */
/* blocks_q32.h - blocks of 32, handed on as floats.h says */
#ifndef GG_KERN_X86_BLOCKS_Q32_H
#define GG_KERN_X86_BLOCKS_Q32_H

#include "base/bytes.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"
#include "kern/x86/x86.h"

/* Run BODY with p at each block. */
#define EACH_BLOCK(BLOCK, BODY)                                               \
    const uint8_t *p = src;                                                   \
    for (size_t i = 0; i < n / 32; i++, p += sizeof(BLOCK)) {                 \
        float d = gg_x86_half_ps(p);                                          \
        BODY                                                                  \
    }

static GG_ALWAYS_INLINE void gg_kern_each_q4_0(TO *to, const void *src,
                                               size_t n)
{
    const __m256i eight = _mm256_set1_epi8(8);
    EACH_BLOCK(struct gg_block_q4_0, {
        __m256i q = gg_x86_nibbles(p + offsetof(struct gg_block_q4_0, qs));
        to_i8(to, _mm256_sub_epi8(q, eight), d, d);
    })
}

/* x + m is x - (-m), bit for bit. */
static GG_ALWAYS_INLINE void gg_kern_each_q4_1(TO *to, const void *src,
                                               size_t n)
{
    EACH_BLOCK(struct gg_block_q4_1, {
        float m = -gg_x86_half_ps(p + offsetof(struct gg_block_q4_1, m));
        __m256i q = gg_x86_nibbles(p + offsetof(struct gg_block_q4_1, qs));
        to_u8(to, q, d, m, d, m);
    })
}

/* Nibbles with their fifth bits. */
static inline __m256i five_bits(const uint8_t *qs, const uint8_t *qh)
{
    __m256i hi = _mm256_and_si256(gg_x86_spread_bits(gg_bytes_load32le(qh)),
                                  _mm256_set1_epi8(16));
    return _mm256_or_si256(gg_x86_nibbles(qs), hi);
}

static GG_ALWAYS_INLINE void gg_kern_each_q5_0(TO *to, const void *src,
                                               size_t n)
{
    const __m256i half = _mm256_set1_epi8(16);
    EACH_BLOCK(struct gg_block_q5_0, {
        __m256i q = five_bits(p + offsetof(struct gg_block_q5_0, qs),
                              p + offsetof(struct gg_block_q5_0, qh));
        to_i8(to, _mm256_sub_epi8(q, half), d, d);
    })
}

static GG_ALWAYS_INLINE void gg_kern_each_q5_1(TO *to, const void *src,
                                               size_t n)
{
    EACH_BLOCK(struct gg_block_q5_1, {
        float m = -gg_x86_half_ps(p + offsetof(struct gg_block_q5_1, m));
        __m256i q = five_bits(p + offsetof(struct gg_block_q5_1, qs),
                              p + offsetof(struct gg_block_q5_1, qh));
        to_u8(to, q, d, m, d, m);
    })
}

static GG_ALWAYS_INLINE void gg_kern_each_q8_0(TO *to, const void *src,
                                               size_t n)
{
    EACH_BLOCK(struct gg_block_q8_0, {
        to_i8(to, gg_x86_load256(p + offsetof(struct gg_block_q8_0, qs)), d,
              d);
    })
}

static GG_ALWAYS_INLINE void gg_kern_each_q8_1(TO *to, const void *src,
                                               size_t n)
{
    EACH_BLOCK(struct gg_block_q8_1, {
        to_i8(to, gg_x86_load256(p + offsetof(struct gg_block_q8_1, qs)), d,
              d);
    })
}

static GG_ALWAYS_INLINE void gg_kern_each_iq4_nl(TO *to, const void *src,
                                                 size_t n)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    const __m256i table = _mm256_broadcastsi128_si256(gg_x86_load128(level));
    EACH_BLOCK(struct gg_block_iq4_nl, {
        __m256i q = gg_x86_nibbles(p + offsetof(struct gg_block_iq4_nl, qs));
        to_i8(to, _mm256_shuffle_epi8(table, q), d, d);
    })
}

#endif
