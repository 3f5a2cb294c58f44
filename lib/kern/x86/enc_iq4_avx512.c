/* SPDX-License-Identifier: MIT */
/* enc_iq4_avx512.c - encoders of IQ4_NL and IQ4_XS for AVX-512 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/enc_iq4.h"
#include "kern/simd/enc_search.h"
#include "kern/x86/pair_avx512.h"

#include <string.h>

#define FN(name) name##_avx512
#include "kern/simd/enc_iq4_impl.h"

/* The midpoints as a tree: below entry k are 2 k and 2 k + 1, and the sixteen
 * below the last eight are the levels. */
static inline struct pair levels_of(struct pair v)
{
    static const float tree[16] = { 0,       -4.5f,  -57.0f, 45.5f,
                                    -93.5f,  -28.5f, 19.0f,  79.0f,
                                    -115.5f, -74.0f, -42.0f, -16.0f,
                                    7.0f,    31.5f,  61.0f,  101.0f };
    static const float level[16] = GG_IQ4_LEVELS;
    const __m512 mid = _mm512_loadu_ps(tree);
    const __m512i one = _mm512_set1_epi32(1);
    __m512i k = one;
    for (int depth = 0; depth < 4; depth++) {
        const __mmask16 above =
            _mm512_cmp_ps_mask(v.v, _mm512_permutexvar_ps(k, mid), _CMP_GE_OQ);
        k = _mm512_add_epi32(k, k);
        k = _mm512_mask_add_epi32(k, above, k, one);
    }
    return (struct pair){ _mm512_permutexvar_ps(k, _mm512_loadu_ps(level)) };
}
