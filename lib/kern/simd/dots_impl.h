/* SPDX-License-Identifier: MIT */
/* dots_impl.h - rows of blocks by columns of activations, for a vector type
 *
 * Included after the definitions of VF and its functions (vf_256.h), FN(name),
 * VECS, the number of vectors that hold 32 numbers, and vf_of_i8, vf_of_u8 and
 * vf_of_ps, which make vector k of them from the arguments of to_i8, to_u8 and
 * to_ps (floats.h). A weight is rounded as its decoder rounds it, and vector i
 * of a row is added to sum i modulo 4, as in gg_vec_dot: the bits are those of
 * decoding first.
 */
#include "base/compiler.h"

/* Up to two columns at a time: with more, AVX2 has no registers left. */
enum { MOST_COLS = 2 };

struct dots {
    const float *x[MOST_COLS];
    VF sum[MOST_COLS][4];
    int n_cols; /* a constant once this is inlined */
};
#define TO struct dots

static GG_ALWAYS_INLINE float to_d(TO *to, float d, int unit)
{
    (void)to;
    (void)unit;
    return d;
}

/* Vector k of the next 32 numbers. */
static GG_ALWAYS_INLINE void add_vector(TO *to, VF w, int k)
{
    GG_UNROLL
    for (int j = 0; j < MOST_COLS; j++)
        if (j < to->n_cols)
            to->sum[j][k] =
                vf_fma(w, vf_load(to->x[j] + k * LANES), to->sum[j][k]);
}

/* End a run of 32 numbers. If those are fewer than four vectors, the next run
 * adds to the other sums: the sums change places, which only renames
 * registers. */
static GG_ALWAYS_INLINE void end_run(TO *to)
{
    GG_UNROLL
    for (int j = 0; j < MOST_COLS; j++) {
        if (j >= to->n_cols)
            continue;
        to->x[j] += 32;
        GG_UNROLL
        for (int k = 0; k < VECS && VECS < 4; k++) {
            const VF s = to->sum[j][k];
            to->sum[j][k] = to->sum[j][(k + VECS) % 4];
            to->sum[j][(k + VECS) % 4] = s;
        }
    }
}

static GG_ALWAYS_INLINE void to_i8(TO *to, __m256i q, float s0, float s1)
{
    const VF s[2] = { vf_set1(s0), vf_set1(s1) };
    GG_UNROLL
    for (int k = 0; k < VECS; k++)
        add_vector(to, vf_mul(s[2 * k / VECS], vf_of_i8(q, k)), k);
    end_run(to);
}

static GG_ALWAYS_INLINE void to_u8(TO *to, __m256i q, float s0, float m0,
                                   float s1, float m1)
{
    const VF s[2] = { vf_set1(s0), vf_set1(s1) };
    const VF m[2] = { vf_set1(m0), vf_set1(m1) };
    GG_UNROLL
    for (int k = 0; k < VECS; k++) {
        const VF w = vf_mul(s[2 * k / VECS], vf_of_u8(q, k));
        add_vector(to, vf_sub(w, m[2 * k / VECS]), k);
    }
    end_run(to);
}

static GG_ALWAYS_INLINE void to_ps(TO *to, const __m256 v[4])
{
    GG_UNROLL
    for (int k = 0; k < VECS; k++)
        add_vector(to, vf_of_ps(v, k), k);
    end_run(to);
}

static GG_ALWAYS_INLINE void to_signs(TO *to, uint32_t bits, float d)
{
    __m256 v[4];
    gg_v256_signs_ps(v, bits, d);
    to_ps(to, v);
}

#include "kern/simd/blocks_fork.h"
#include "kern/simd/blocks_iq.h"
#include "kern/simd/blocks_low.h"
#include "kern/simd/row_256.h"
#include "kern/simd/dots_tables.h"
#ifdef EACH_OF_LEVEL /* types for which the level has tables */
#include EACH_OF_LEVEL
#else
#define EACH_Q4_K gg_kern_each_q4_k
#endif

typedef void each_fn(TO *to, const void *src, size_t n);

/* Multiply n numbers by n_cols columns. A row whose vectors are not a multiple
 * of four ends with a block of 32; the whole block is added to the first
 * sum. */
static GG_ALWAYS_INLINE void some_cols(float *sum, const void *w,
                                       const float *x, size_t x_stride,
                                       int n_cols, size_t n, each_fn *each,
                                       gg_kern_decode_fn *decode,
                                       size_t block_size)
{
    const VF zero = vf_set1(0.0f);
    TO to;
    to.n_cols = n_cols;
    GG_UNROLL
    for (int j = 0; j < MOST_COLS; j++) {
        to.x[j] = j < n_cols ? x + (size_t)j * x_stride : x;
        GG_UNROLL
        for (int k = 0; k < 4; k++)
            to.sum[j][k] = zero;
    }
    const size_t rest = decode ? n % (4 * LANES) : 0;
    each(&to, w, n - rest);
    if (rest) {
        float last[32];
        decode((const unsigned char *)w + (n - rest) / 32 * block_size, last,
               rest);
        GG_UNROLL
        for (int k = 0; k < VECS; k++)
            GG_UNROLL
        for (int j = 0; j < MOST_COLS; j++)
            to.sum[j][0] = vf_fma(vf_load(last + k * LANES),
                                  vf_load(to.x[j] + k * LANES), to.sum[j][0]);
    }
    GG_UNROLL
    for (int j = 0; j < MOST_COLS; j++)
        if (j < n_cols)
            sum[j] = vf_hsum(vf_add(vf_add(to.sum[j][0], to.sum[j][1]),
                                    vf_add(to.sum[j][2], to.sum[j][3])));
}

/* Define a copy for each number of columns, so that sums stay in registers.
 * EACH reads the numbers. DECODE: the decoder of a type with blocks of 32; NULL
 * for longer blocks. */
#define DOTS_BY(NAME, EACH, DECODE)                                           \
    void FN(gg_kern_dots_##NAME)(float *sum, const void *w, const float *x,   \
                                 size_t x_stride, size_t n_cols, size_t n)    \
    {                                                                         \
        const size_t size = sizeof(struct gg_block_##NAME);                   \
        for (; n_cols > 1; n_cols -= 2, sum += 2, x += 2 * x_stride)          \
            some_cols(sum, w, x, x_stride, 2, n, EACH, DECODE, size);         \
        if (n_cols)                                                           \
            some_cols(sum, w, x, x_stride, 1, n, EACH, DECODE, size);         \
    }
#define DOTS_32(NAME)                                                         \
    DOTS_BY(NAME, gg_kern_each_##NAME, gg_kern_decode_##NAME##_256)
#define DOTS(NAME) DOTS_BY(NAME, gg_kern_each_##NAME, NULL)

DOTS_32(q4_0)
DOTS_32(q4_1)
DOTS_32(q5_0)
DOTS_32(q5_1)
DOTS_32(q8_0)
DOTS_32(q8_1)
DOTS_32(iq4_nl)
DOTS_BY(q2_k, EACH_Q2_K, NULL)
DOTS(q3_k)
DOTS_BY(q4_k, EACH_Q4_K, NULL)
DOTS(q5_k)
DOTS(q6_k)
DOTS(q8_k)
DOTS(iq4_xs)
DOTS_BY(tq2_0, EACH_TQ2_0, NULL)
DOTS(iq1_s)
DOTS(iq1_m)
DOTS(iq2_xxs)
DOTS(iq2_xs)
DOTS(iq2_s)
DOTS(iq3_xxs)
DOTS(iq3_s)
DOTS(tq1_0)
DOTS(q1_0)
DOTS(q2_0)
DOTS_32(mxfp4)
DOTS(nvfp4)
DOTS_32(q6_0)
DOTS(iq2_k)
DOTS(iq3_k)
DOTS(iq4_k)
DOTS(iq5_k)
DOTS(iq6_k)
