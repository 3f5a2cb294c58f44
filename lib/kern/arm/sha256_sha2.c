/* SPDX-License-Identifier: MIT */
/* sha256_sha2.c - SHA-256 by the instructions of AArch64 for it
 *
 * The eight variables of a hash are in two vectors, a to d and e to h, from the
 * lowest lane up. SHA256H and SHA256H2 make four rounds of each; SHA256SU0 and
 * SHA256SU1 compute the next four words of the schedule from the last sixteen
 * (Arm Architecture Reference Manual, A64 SIMD and floating-point
 * instructions).
 */
#include "config.h"
#include "kern/hash.h"

#include <arm_neon.h>

/* Rounds 4 i to 4 i + 3, with their words in w0; the words that follow are in
 * w1, w2 and w3. Then w0 becomes those of four times four rounds later. */
#define ROUNDS(i, w0, w1, w2, w3)                                             \
    do {                                                                      \
        const uint32x4_t sum =                                                \
            vaddq_u32(w0, vld1q_u32(gg_sha256_k + 4 * (i)));                  \
        const uint32x4_t before = abcd;                                       \
        abcd = vsha256hq_u32(abcd, efgh, sum);                                \
        efgh = vsha256h2q_u32(efgh, before, sum);                             \
        if ((i) < 12)                                                         \
            w0 = vsha256su1q_u32(vsha256su0q_u32(w0, w1), w2, w3);            \
    } while (0)
#define SIXTEEN_ROUNDS(i)                                                     \
    do {                                                                      \
        ROUNDS(i, w0, w1, w2, w3);                                            \
        ROUNDS(i + 1, w1, w2, w3, w0);                                        \
        ROUNDS(i + 2, w2, w3, w0, w1);                                        \
        ROUNDS(i + 3, w3, w0, w1, w2);                                        \
    } while (0)

/* Four words, stored with the highest byte first. */
static inline uint32x4_t load_words(const uint8_t *p)
{
    return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(p)));
}

void gg_hash_sha256_sha2(uint32_t hash[8], const uint8_t *p, size_t n)
{
    uint32x4_t abcd = vld1q_u32(hash), efgh = vld1q_u32(hash + 4);
    for (; n; n--, p += 64) {
        const uint32x4_t abcd_0 = abcd, efgh_0 = efgh;
        uint32x4_t w0 = load_words(p), w1 = load_words(p + 16);
        uint32x4_t w2 = load_words(p + 32), w3 = load_words(p + 48);
        SIXTEEN_ROUNDS(0);
        SIXTEEN_ROUNDS(4);
        SIXTEEN_ROUNDS(8);
        SIXTEEN_ROUNDS(12);
        abcd = vaddq_u32(abcd, abcd_0);
        efgh = vaddq_u32(efgh, efgh_0);
    }
    vst1q_u32(hash, abcd);
    vst1q_u32(hash + 4, efgh);
}
