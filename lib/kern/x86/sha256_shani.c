/* SPDX-License-Identifier: MIT */
/* sha256_shani.c - SHA-256 by the processor's instructions for it
 *
 * The eight variables of a hash are in two vectors, as sha256rnds2 wants them
 * (Intel's manual, volume 2): f, e, b, a and h, g, d, c from the lowest lane
 * up. Each makes two rounds; the next four words of the schedule come from the
 * last sixteen.
 */
#include "config.h"
#include "kern/hash.h"

#include <immintrin.h>

/* Rounds 4 i to 4 i + 3, with their words in w0; the words that follow are in
 * w1, w2 and w3. Then w0 becomes those of four times four rounds later. */
#define ROUNDS(i, w0, w1, w2, w3)                                             \
    do {                                                                      \
        const __m128i *k = (const __m128i *)(gg_sha256_k + 4 * (i));          \
        const __m128i sum = _mm_add_epi32(w0, _mm_loadu_si128(k));            \
        hgdc = _mm_sha256rnds2_epu32(hgdc, feba, sum);                        \
        feba =                                                                \
            _mm_sha256rnds2_epu32(feba, hgdc, _mm_shuffle_epi32(sum, 0x0e));  \
        if ((i) < 12)                                                         \
            w0 = _mm_sha256msg2_epu32(                                        \
                _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1),                   \
                              _mm_alignr_epi8(w3, w2, 4)),                    \
                w3);                                                          \
    } while (0)
#define SIXTEEN_ROUNDS(i)                                                     \
    do {                                                                      \
        ROUNDS(i, w0, w1, w2, w3);                                            \
        ROUNDS(i + 1, w1, w2, w3, w0);                                        \
        ROUNDS(i + 2, w2, w3, w0, w1);                                        \
        ROUNDS(i + 3, w3, w0, w1, w2);                                        \
    } while (0)

static inline __m128i load_words(const uint8_t *p)
{
    const __m128i big_endian =
        _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p), big_endian);
}

void gg_hash_sha256_shani(uint32_t hash[8], const uint8_t *p, size_t n)
{
    __m128i *h = (__m128i *)hash;
    const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(h), 0xb1);
    const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(h + 1), 0x1b);
    __m128i feba = _mm_alignr_epi8(badc, hgfe, 8);
    __m128i hgdc = _mm_blend_epi16(hgfe, badc, 0xf0);
    for (; n; n--, p += 64) {
        const __m128i feba_0 = feba, hgdc_0 = hgdc;
        __m128i w0 = load_words(p), w1 = load_words(p + 16);
        __m128i w2 = load_words(p + 32), w3 = load_words(p + 48);
        SIXTEEN_ROUNDS(0);
        SIXTEEN_ROUNDS(4);
        SIXTEEN_ROUNDS(8);
        SIXTEEN_ROUNDS(12);
        feba = _mm_add_epi32(feba, feba_0);
        hgdc = _mm_add_epi32(hgdc, hgdc_0);
    }
    const __m128i abef = _mm_shuffle_epi32(feba, 0x1b);
    const __m128i ghcd = _mm_shuffle_epi32(hgdc, 0xb1);
    _mm_storeu_si128(h, _mm_blend_epi16(abef, ghcd, 0xf0));
    _mm_storeu_si128(h + 1, _mm_alignr_epi8(ghcd, abef, 8));
}
