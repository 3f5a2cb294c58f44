/* SPDX-License-Identifier: MIT */
/* dots_512.h - rows of blocks that dots_avx512.c multiplies by tables
 *
 * Included by dots_impl.h, after its definitions.
 *
 * A sub-block with 16 codes has 16 different weights, which fit into one
 * vector. They are computed once, rounded as the decoder rounds them, and
 * looked up by their codes. vpermps reads the low four bits of a lane, so codes
 * need no mask.
 */
static inline VF codes_0_to_15(void)
{
    return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                          15);
}

/* Add 32 bytes of nibbles: low nibbles belong to one sub-block of 32, high
 * nibbles to the next. */
static GG_ALWAYS_INLINE void add_nibbles(TO *to, const uint8_t *qs, VF low,
                                         VF high)
{
    const __m512i a = _mm512_cvtepu8_epi32(gg_v256_load128(qs));
    const __m512i b = _mm512_cvtepu8_epi32(gg_v256_load128(qs + 16));
    add_vector(to, _mm512_permutexvar_ps(a, low), 0);
    add_vector(to, _mm512_permutexvar_ps(b, low), 1);
    end_run(to);
    add_vector(to, _mm512_permutexvar_ps(_mm512_srli_epi32(a, 4), high), 0);
    add_vector(to, _mm512_permutexvar_ps(_mm512_srli_epi32(b, 4), high), 1);
    end_run(to);
}

static GG_ALWAYS_INLINE void each_q4_k_512(TO *to, const void *src, size_t n)
{
    struct rows r = { src };
    const VF code = codes_0_to_15();
    for (size_t i = 0; i < n / 256; i++) {
        struct subs scale, min;
        take_k4(to, &r, &scale, &min);
        GG_UNROLL
        for (unsigned s = 0; s < 8; s += 2) {
            const VF low =
                vf_sub(vf_mul(vf_set1(scale.by[s]), code), vf_set1(min.by[s]));
            const VF high = vf_sub(vf_mul(vf_set1(scale.by[s + 1]), code),
                                   vf_set1(min.by[s + 1]));
            add_nibbles(to, r.at + AT(q4_k, qs) + 16 * s, low, high);
        }
        r.at += sizeof(struct gg_block_q4_k);
    }
}
#define EACH_Q4_K each_q4_k_512
