/* deq_q32_avx2.c - decoders of the types with blocks of 32 */
#include "config.h"
#include "kern/codec.h"
#include "base/bytes.h"
#include "dtype/iq_code.h"
#include "kern/x86/x86.h"

/* Run BODY with p at each block and dst at its floats. */
#define EACH_BLOCK(BLOCK, BODY)                                               \
    const uint8_t *p = src;                                                   \
    for (size_t i = 0; i < n / 32; i++, dst += 32, p += sizeof(BLOCK)) {      \
        float d = gg_x86_half_ps(p);                                          \
        BODY                                                                  \
    }

void gg_kern_decode_q4_0_avx2(const void *src, float *dst, size_t n)
{
    const __m256i eight = _mm256_set1_epi8(8);
    EACH_BLOCK(struct gg_block_q4_0, {
        __m256i q = gg_x86_nibbles(p + offsetof(struct gg_block_q4_0, qs));
        gg_x86_put_i8(dst, _mm256_sub_epi8(q, eight), d, d);
    })
}

/* x + m is x - (-m), bit for bit. */
void gg_kern_decode_q4_1_avx2(const void *src, float *dst, size_t n)
{
    EACH_BLOCK(struct gg_block_q4_1, {
        float m = -gg_x86_half_ps(p + offsetof(struct gg_block_q4_1, m));
        __m256i q = gg_x86_nibbles(p + offsetof(struct gg_block_q4_1, qs));
        gg_x86_put_u8(dst, q, d, m, d, m);
    })
}

/* Nibbles with their fifth bits. */
static inline __m256i five_bits(const uint8_t *qs, const uint8_t *qh)
{
    __m256i hi = _mm256_and_si256(gg_x86_spread_bits(gg_bytes_load32le(qh)),
                                  _mm256_set1_epi8(16));
    return _mm256_or_si256(gg_x86_nibbles(qs), hi);
}

void gg_kern_decode_q5_0_avx2(const void *src, float *dst, size_t n)
{
    const __m256i half = _mm256_set1_epi8(16);
    EACH_BLOCK(struct gg_block_q5_0, {
        __m256i q = five_bits(p + offsetof(struct gg_block_q5_0, qs),
                              p + offsetof(struct gg_block_q5_0, qh));
        gg_x86_put_i8(dst, _mm256_sub_epi8(q, half), d, d);
    })
}

void gg_kern_decode_q5_1_avx2(const void *src, float *dst, size_t n)
{
    EACH_BLOCK(struct gg_block_q5_1, {
        float m = -gg_x86_half_ps(p + offsetof(struct gg_block_q5_1, m));
        __m256i q = five_bits(p + offsetof(struct gg_block_q5_1, qs),
                              p + offsetof(struct gg_block_q5_1, qh));
        gg_x86_put_u8(dst, q, d, m, d, m);
    })
}

void gg_kern_decode_q8_0_avx2(const void *src, float *dst, size_t n)
{
    EACH_BLOCK(struct gg_block_q8_0, {
        gg_x86_put_i8(
            dst, gg_x86_load256(p + offsetof(struct gg_block_q8_0, qs)), d, d);
    })
}

void gg_kern_decode_q8_1_avx2(const void *src, float *dst, size_t n)
{
    EACH_BLOCK(struct gg_block_q8_1, {
        gg_x86_put_i8(
            dst, gg_x86_load256(p + offsetof(struct gg_block_q8_1, qs)), d, d);
    })
}

void gg_kern_decode_iq4_nl_avx2(const void *src, float *dst, size_t n)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    const __m256i table = _mm256_broadcastsi128_si256(gg_x86_load128(level));
    EACH_BLOCK(struct gg_block_iq4_nl, {
        __m256i q = gg_x86_nibbles(p + offsetof(struct gg_block_iq4_nl, qs));
        gg_x86_put_i8(dst, _mm256_shuffle_epi8(table, q), d, d);
    })
}
