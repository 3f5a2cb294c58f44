/* ints_avx2.c - blocks to bytes and scales, for panels of integers
 *
 * What blocks_*.h hand on are integers and scales: they stay apart here.
 */
#include "config.h"
#include "kern/gemm_int.h"
#include "kern/x86/x86.h"

struct ints {
    uint8_t *q;
    __m256i bias;
    float *d, *m;
    int halves; /* scales are of 16 steps; a constant once this is inlined */
};
#define TO struct ints

static GG_ALWAYS_INLINE void put(TO *to, __m256i q, float s0, float s1)
{
    _mm256_storeu_si256((__m256i *)(void *)to->q,
                        _mm256_add_epi8(q, to->bias));
    to->q += 32;
    *to->d++ = s0;
    if (to->halves)
        *to->d++ = s1;
}

static GG_ALWAYS_INLINE void to_i8(TO *to, __m256i q, float s0, float s1)
{
    put(to, q, s0, s1);
}

static GG_ALWAYS_INLINE void to_u8(TO *to, __m256i q, float s0, float m0,
                                   float s1, float m1)
{
    (void)m1;
    put(to, q, s0, s1);
    *to->m++ = -m0;
}

/* Of types that are not here. */
static GG_ALWAYS_INLINE void to_ps(TO *to, const __m256 v[4])
{
    (void)to;
    (void)v;
}

#include "kern/x86/blocks_fork.h"
#include "kern/x86/blocks_k.h"
#include "kern/x86/blocks_low.h"
#include "kern/x86/blocks_q32.h"

#define INTS_BY(NAME, HALVES)                                                 \
    void gg_kern_ints_##NAME##_avx2(const void *src, size_t n, int bias,      \
                                    uint8_t *q, float *d, float *m)           \
    {                                                                         \
        TO to = { q, _mm256_set1_epi8((char)bias), d, m, HALVES };            \
        gg_kern_each_##NAME(&to, src, n);                                     \
    }
#define X(ID, NAME, HALVES) INTS_BY(NAME, HALVES)
GG_KERN_INTS(X)
