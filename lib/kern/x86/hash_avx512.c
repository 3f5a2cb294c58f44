/* SPDX-License-Identifier: MIT */
/* hash_avx512.c - two XXH64 of the same bytes: the four lanes of one sum in the
 * low half of a vector, those of the other in the high half */
#include "config.h"
#include "kern/hash.h"

#include <immintrin.h>

void gg_hash_xxh64_two_avx512(uint64_t a[4], const uint8_t *p, uint64_t b[4],
                              const uint8_t *q, size_t k)
{
    /* The first two primes of base/xxh64.c. */
    const __m512i prime_1 = _mm512_set1_epi64((long long)0x9E3779B185EBCA87);
    const __m512i prime_2 = _mm512_set1_epi64((long long)0xC2B2AE3D27D4EB4F);
    __m512i acc = _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)a)),
        _mm256_loadu_si256((const __m256i *)b), 1);
    for (; k; k--, p += 32, q += 32) {
        const __m512i x = _mm512_inserti64x4(
            _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p)),
            _mm256_loadu_si256((const __m256i *)q), 1);
        acc = _mm512_add_epi64(acc, _mm512_mullo_epi64(x, prime_2));
        acc = _mm512_mullo_epi64(_mm512_rol_epi64(acc, 31), prime_1);
    }
    _mm256_storeu_si256((__m256i *)a, _mm512_castsi512_si256(acc));
    _mm256_storeu_si256((__m256i *)b, _mm512_extracti64x4_epi64(acc, 1));
}
