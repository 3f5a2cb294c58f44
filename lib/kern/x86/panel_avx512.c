/* SPDX-License-Identifier: MIT */
/* panel_avx512.c - rows of blocks straight into exact panels, for AVX-512
 *
 * Lanes are rows: four bytes of each of 16 rows lie in a vector before anything
 * is decoded. So the transposition moves a quarter to an eighth of the bytes
 * that floats would take, and the scale of each row is in its lane.
 *
 * A byte of a lane is masked in place instead of moved down. Byte b then is its
 * number times 2^8b, exactly, as an integer and as a float. Its scale is
 * divided by 2^8b in advance. That is exact, too: scales are f16 or products of
 * f16 with integers below 2^8, at least 2^-24, and so far above subnormal
 * numbers. So each product is rounded as the decoder rounds it.
 */
#include "config.h"
#include "base/compiler.h"
#include "dtype/block.h"
#include "dtype/iq_code.h"
#include "kern/gemm.h"
#include "kern/x86/rows_512.h"

#include <stddef.h>
#include <string.h>

/* Rows, and where their steps go, width floats apart. */
struct place {
    struct rows rows;
    float *to;
    size_t width;
};

/* Scales of 16 rows divided by 1, 2^8, 2^16 and 2^24, and minima to add. */
struct factors {
    __m512 s[4], m;
};

static GG_ALWAYS_INLINE struct factors factors_of(__m512 scale, __m512 min)
{
    return (struct factors){
        { scale, _mm512_mul_ps(scale, _mm512_set1_ps(0x1p-8f)),
          _mm512_mul_ps(scale, _mm512_set1_ps(0x1p-16f)),
          _mm512_mul_ps(scale, _mm512_set1_ps(0x1p-24f)) },
        min
    };
}

/* The bytes of v, less bias, are the next four steps. */
static GG_ALWAYS_INLINE void put_four(struct place *p, __m512i v,
                                      const struct factors *f, unsigned bias,
                                      int has_min)
{
    GG_UNROLL
    for (unsigned b = 0; b < 4; b++) {
        const __m512i q =
            _mm512_and_si512(v, _mm512_set1_epi32((int)(255u << 8 * b)));
        __m512 w = bias ? _mm512_cvtepi32_ps(_mm512_sub_epi32(
                              q, _mm512_set1_epi32((int)(bias << 8 * b))))
                        : _mm512_cvtepu32_ps(q);
        w = _mm512_mul_ps(f->s[b], w);
        if (has_min)
            w = _mm512_add_ps(w, f->m);
        _mm512_storeu_ps(p->to, w);
        p->to += p->width;
    }
}

static GG_ALWAYS_INLINE void end_block(struct place *p, size_t size, size_t n)
{
    p->rows.at += size;
    p->to += n * p->width;
}

#define BEGIN struct place to = { { src, stride, NULL }, dst, width };

/* ---- plain numbers ---- */

enum { RUN = 16 }; /* bytes of a row that are taken together */

/* Steps that are 32 bits, or the low or high half of 32 bits, of each row. */
static GG_ALWAYS_INLINE __m512 low_f16(__m512i v)
{
    return halves_to_floats(v);
}

static GG_ALWAYS_INLINE __m512 high_f16(__m512i v)
{
    return halves_to_floats(_mm512_srli_epi32(v, 16));
}

static GG_ALWAYS_INLINE __m512 low_bf16(__m512i v)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
}

static GG_ALWAYS_INLINE __m512 high_bf16(__m512i v)
{
    return _mm512_castsi512_ps(
        _mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000)));
}

/* n steps of size bytes, of all rows; fewer than a run at the end by way of a
 * copy, since the last row may end with its memory. */
#define PLAIN(NAME, SIZE, PUT)                                                \
    void gg_kern_panel_##NAME##_avx512(const void *src, size_t stride,        \
                                       float *dst, size_t width, size_t n)    \
    {                                                                         \
        BEGIN                                                                 \
        __m512i v[4];                                                         \
        for (; n >= RUN / (SIZE); n -= RUN / (SIZE)) {                        \
            take_16(&to.rows, 0, v);                                          \
            GG_UNROLL                                                         \
            for (size_t i = 0; i < RUN / (SIZE); i++)                         \
                _mm512_storeu_ps(to.to + i * width, PUT);                     \
            end_block(&to, RUN, RUN / (SIZE));                                \
        }                                                                     \
        unsigned char last[ROWS][RUN] = { { 0 } };                            \
        for (size_t r = 0; n && r < ROWS; r++)                                \
            memcpy(last[r], to.rows.at + r * stride, n * (SIZE));             \
        take_16(&(struct rows){ last[0], RUN, NULL }, 0, v);                  \
        for (size_t i = 0; i < n; i++)                                        \
            _mm512_storeu_ps(to.to + i * width, PUT);                         \
    }
PLAIN(f32, 4, _mm512_castsi512_ps(v[i]))
PLAIN(f16, 2, i % 2 ? high_f16(v[i / 2]) : low_f16(v[i / 2]))
PLAIN(bf16, 2, i % 2 ? high_bf16(v[i / 2]) : low_bf16(v[i / 2]))

/* ---- blocks, whose lanes are rows ---- */

struct to {
    struct place *p;
    size_t n;
    VF d, min; /* the last that were put */
    /* constants once this is inlined: */
    int bias, apart, min_first;
};
#define TO struct to

/* n vectors of steps. All come in order. */
static GG_ALWAYS_INLINE void put_steps(struct to *to, const VI *q, int n,
                                       VF scale)
{
    const struct factors f = factors_of(scale, to->min);
    GG_UNROLL
    for (int k = 0; k < n; k++)
        put_four(to->p, q[k], &f, (unsigned)to->bias, to->min_first);
}

static GG_ALWAYS_INLINE void put_d(struct to *to, VF d)
{
    to->d = d;
}

static GG_ALWAYS_INLINE void put_min(struct to *to, size_t i, VF m)
{
    (void)i;
    to->min = m;
}

static GG_ALWAYS_INLINE void put_own(struct to *to, const VI q[PARTS],
                                     size_t i, VF d)
{
    (void)i;
    put_steps(to, q, PARTS, d);
}

static GG_ALWAYS_INLINE void put_run(struct to *to, const VI q[PARTS],
                                     size_t i)
{
    put_own(to, q, i, to->d);
}

static GG_ALWAYS_INLINE void put_sub(struct to *to, const VI q[PARTS],
                                     size_t i, VI sub)
{
    put_own(to, q, i, vf_mul(to->d, vf_of(sub)));
}

static GG_ALWAYS_INLINE void put_half(struct to *to, const VI q[PARTS / 2],
                                      size_t i, VI sub)
{
    (void)i;
    put_steps(to, q, PARTS / 2, vf_mul(to->d, vf_of(sub)));
}

#include "kern/simd/lanes_blocks.h"

/* BIAS: what makes codes positive. */
#define PANEL(NAME, N, BIAS, MIN_FIRST)                                       \
    void gg_kern_panel_##NAME##_avx512(const void *src, size_t stride,        \
                                       float *dst, size_t width, size_t n)    \
    {                                                                         \
        struct place p = { { src, stride, NULL }, dst, width };               \
        for (; n; n -= 256 / (N)) {                                           \
            struct to to = { &p,   256 / (N), vf_zero(), vf_zero(),           \
                             BIAS, 0,         MIN_FIRST };                    \
            BLOCKS_##N(NAME, &to, &p.rows);                                   \
            p.rows.at += sizeof(struct gg_block_##NAME);                      \
        }                                                                     \
    }
PANEL(q4_0, 8, 8, 0)
PANEL(q8_0, 8, 128, 0)
PANEL(q2_k, 1, 0, 1)
PANEL(q3_k, 1, 4, 0)
PANEL(q4_k, 1, 0, 1)
PANEL(q5_k, 1, 0, 1)
PANEL(q6_k, 1, 32, 0)
PANEL(iq4_xs, 1, 128, 0)
