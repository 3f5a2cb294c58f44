/* peak.h - the multiply-add rate of a processor, from registers only
 *
 * peak_run(level, rounds) does rounds * peak_flops(level) floating-point
 * operations (a multiply-add is two) with the vectors of a level: 0 is what
 * the compiler makes of C, 1 and up are the rows of gg_kern_cpu_levels. There
 * are enough independent chains to hide the latency of a multiply-add.
 */
#ifndef PEAK_H
#define PEAK_H

#include <stddef.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define PEAK_X86 1
#endif

enum { PEAK_CHAINS = 12 };

static volatile float peak_sink;

#if PEAK_X86
/* Each chain from another value: equal ones would be computed once. */
#define START256(i) _mm256_set1_ps(0.01f * (i))
#define START512(i) _mm512_set1_ps(0.01f * (i))

__attribute__((target("avx2,fma"))) static inline void peak_avx2(size_t rounds)
{
    const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
    __m256 c0 = START256(0), c1 = START256(1), c2 = START256(2),
           c3 = START256(3), c4 = START256(4), c5 = START256(5),
           c6 = START256(6), c7 = START256(7), c8 = START256(8),
           c9 = START256(9), c10 = START256(10), c11 = START256(11);
    for (size_t i = 0; i < rounds; i++) {
        c0 = _mm256_fmadd_ps(c0, a, b);
        c1 = _mm256_fmadd_ps(c1, a, b);
        c2 = _mm256_fmadd_ps(c2, a, b);
        c3 = _mm256_fmadd_ps(c3, a, b);
        c4 = _mm256_fmadd_ps(c4, a, b);
        c5 = _mm256_fmadd_ps(c5, a, b);
        c6 = _mm256_fmadd_ps(c6, a, b);
        c7 = _mm256_fmadd_ps(c7, a, b);
        c8 = _mm256_fmadd_ps(c8, a, b);
        c9 = _mm256_fmadd_ps(c9, a, b);
        c10 = _mm256_fmadd_ps(c10, a, b);
        c11 = _mm256_fmadd_ps(c11, a, b);
    }
    c0 = _mm256_add_ps(_mm256_add_ps(c0, c1), _mm256_add_ps(c2, c3));
    c4 = _mm256_add_ps(_mm256_add_ps(c4, c5), _mm256_add_ps(c6, c7));
    c8 = _mm256_add_ps(_mm256_add_ps(c8, c9), _mm256_add_ps(c10, c11));
    peak_sink = _mm256_cvtss_f32(_mm256_add_ps(_mm256_add_ps(c0, c4), c8));
}

__attribute__((target("avx512f"))) static inline void
peak_avx512(size_t rounds)
{
    const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
    __m512 c0 = START512(0), c1 = START512(1), c2 = START512(2),
           c3 = START512(3), c4 = START512(4), c5 = START512(5),
           c6 = START512(6), c7 = START512(7), c8 = START512(8),
           c9 = START512(9), c10 = START512(10), c11 = START512(11);
    for (size_t i = 0; i < rounds; i++) {
        c0 = _mm512_fmadd_ps(c0, a, b);
        c1 = _mm512_fmadd_ps(c1, a, b);
        c2 = _mm512_fmadd_ps(c2, a, b);
        c3 = _mm512_fmadd_ps(c3, a, b);
        c4 = _mm512_fmadd_ps(c4, a, b);
        c5 = _mm512_fmadd_ps(c5, a, b);
        c6 = _mm512_fmadd_ps(c6, a, b);
        c7 = _mm512_fmadd_ps(c7, a, b);
        c8 = _mm512_fmadd_ps(c8, a, b);
        c9 = _mm512_fmadd_ps(c9, a, b);
        c10 = _mm512_fmadd_ps(c10, a, b);
        c11 = _mm512_fmadd_ps(c11, a, b);
    }
    c0 = _mm512_add_ps(_mm512_add_ps(c0, c1), _mm512_add_ps(c2, c3));
    c4 = _mm512_add_ps(_mm512_add_ps(c4, c5), _mm512_add_ps(c6, c7));
    c8 = _mm512_add_ps(_mm512_add_ps(c8, c9), _mm512_add_ps(c10, c11));
    peak_sink = _mm512_cvtss_f32(_mm512_add_ps(_mm512_add_ps(c0, c4), c8));
}
#endif

static inline void peak_c(size_t rounds)
{
    float c[PEAK_CHAINS * 4];
    for (size_t l = 0; l < PEAK_CHAINS * 4; l++)
        c[l] = 0.5f;
    for (size_t i = 0; i < rounds; i++)
        for (size_t l = 0; l < PEAK_CHAINS * 4; l++)
            c[l] = c[l] * 0.999f + 0.001f;
    for (size_t l = 1; l < PEAK_CHAINS * 4; l++)
        c[0] += c[l];
    peak_sink = c[0];
}

static inline double peak_flops(unsigned level)
{
    static const double lanes[] = { 4, 8, 8, 16, 16, 16 };
    return 2 * PEAK_CHAINS * lanes[level];
}

static inline void peak_run(unsigned level, size_t rounds)
{
#if PEAK_X86
    if (level == 1 || level == 2)
        peak_avx2(rounds);
    else if (level > 2)
        peak_avx512(rounds);
    else
#endif
        peak_c(rounds);
    (void)level;
}

#endif
