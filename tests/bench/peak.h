/* SPDX-License-Identifier: MIT */
/* peak.h - the multiply-add peak of a processor, in registers only
 *
 * peak_run(level, rounds) does rounds * peak_flops(level) floating-point
 * operations (a multiply-add is two) with the vectors of a level: 0 is plain
 * C, 1 and up are the rows of gg_kern_cpu_levels. There are enough independent
 * chains to hide the latency of a multiply-add. peak_run_ints() and
 * peak_ints() do so for integers of 2 or 1 bytes with sums in 32 bits; sums of
 * bytes without VNNI have 16 bits.
 */
#ifndef PEAK_H
#define PEAK_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define PEAK_X86 1
#endif

enum { PEAK_CHAINS = 12 };

static volatile float peak_sink;

#if PEAK_X86
/* Each chain begins with another value: equal ones would be computed once. */
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

#if PEAK_X86
/* Repeat one instruction twelve times, or two where multiply and add are two.
 */
#define PEAK_TWELVE(X)                                                        \
    X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define PEAK_CLOBBERS                                                         \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",   \
        "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define PEAK_LOOP(NAME, TARGET, X)                                            \
    __attribute__((target(TARGET))) static inline void NAME(size_t rounds)    \
    {                                                                         \
        for (size_t i = 0; i < rounds; i++)                                   \
            __asm__ volatile(PEAK_TWELVE(X)::: PEAK_CLOBBERS);                \
    }
#define PEAK_Z16(i) "vpdpwssd %%zmm1, %%zmm0, %%zmm" #i "\n\t"
#define PEAK_Z8(i)  "vpdpbusd %%zmm1, %%zmm0, %%zmm" #i "\n\t"
#define PEAK_ZM(i)                                                            \
    "vpmaddwd %%zmm1, %%zmm0, %%zmm2\n\t"                                     \
    "vpaddd %%zmm2, %%zmm" #i ", %%zmm" #i "\n\t"
#define PEAK_ZB(i)                                                            \
    "vpmaddubsw %%zmm1, %%zmm0, %%zmm2\n\t"                                   \
    "vpaddw %%zmm2, %%zmm" #i ", %%zmm" #i "\n\t"
#define PEAK_Y16(i) "%{vex%} vpdpwssd %%ymm1, %%ymm0, %%ymm" #i "\n\t"
#define PEAK_Y8(i)  "%{vex%} vpdpbusd %%ymm1, %%ymm0, %%ymm" #i "\n\t"
#define PEAK_YM(i)                                                            \
    "vpmaddwd %%ymm1, %%ymm0, %%ymm2\n\t"                                     \
    "vpaddd %%ymm2, %%ymm" #i ", %%ymm" #i "\n\t"
#define PEAK_YB(i)                                                            \
    "vpmaddubsw %%ymm1, %%ymm0, %%ymm2\n\t"                                   \
    "vpaddw %%ymm2, %%ymm" #i ", %%ymm" #i "\n\t"
PEAK_LOOP(peak_z16, "avx512vnni", PEAK_Z16)
PEAK_LOOP(peak_z8, "avx512vnni", PEAK_Z8)
PEAK_LOOP(peak_zm, "avx512bw", PEAK_ZM)
PEAK_LOOP(peak_y16, "avx2", PEAK_Y16)
PEAK_LOOP(peak_y8, "avx2", PEAK_Y8)
PEAK_LOOP(peak_ym, "avx2", PEAK_YM)
PEAK_LOOP(peak_zb, "avx512bw", PEAK_ZB)
PEAK_LOOP(peak_yb, "avx2", PEAK_YB)
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
    static const double lanes[] = { 4, 8, 8, 16, 16, 16, 16 };
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

/* Operations of a round. */
static inline double peak_ints(unsigned level, unsigned width)
{
    /* at each level twice the number of 16-bit integers in a vector; amx is
     * compared with vectors, too */
    static const double ints[] = { 4, 32, 32, 64, 64, 64, 64 };
    return PEAK_CHAINS * ints[level] * (width == 1 ? 2 : 1);
}

static inline void peak_run_ints(unsigned level, unsigned width, size_t rounds)
{
#if PEAK_X86
    static void (*const run[][2])(size_t) = {
        { peak_c, peak_c },    { peak_ym, peak_yb },  { peak_y16, peak_y8 },
        { peak_zm, peak_zb },  { peak_z16, peak_z8 }, { peak_z16, peak_z8 },
        { peak_z16, peak_z8 },
    };
    run[level][width == 1](rounds);
#else
    (void)level;
    (void)width;
    peak_c(rounds);
#endif
}

#endif
