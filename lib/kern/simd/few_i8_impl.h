/* SPDX-License-Identifier: MIT */
/* few_i8_impl.h - few columns of bytes straight from blocks
 *
 * Included once by the file of a level, which first includes gemm_int_256.h and
 * rows_256.h, or gemm_int_512.h and rows_512.h, and defines
 *
 *     LEVEL             the suffix of its functions
 *     VI_DP             as in gemm_int_impl.h; or VI_MUL, VI_ADD and VI_WIDEN,
 *                       which support only types of up to 7 bits
 *     VI_SCALE(c, a, b) c += the sums of two products of 16 bits
 *
 * or, where dot products multiply signed bytes and columns lie in pairs
 * (gemm_i8.h), SIGNED and
 *
 *     VI_DP_TWO(c, a, b, x) c += the products of the quads a and b with the two
 *                           quads of a column at x
 *     VI_SCALE(c, a, b)     c += products of 32 bits
 *
 *
 * lanes_blocks.h turns blocks into bytes; this file turns bytes into sums.
 */
#include "kern/simd/few_sums.h"

#if defined(VI_DP) || SIGNED
#define FEW_TYPES        GG_KERN_FEW_ALL
#define CODE(KIND, BITS) KIND##_8
#define TWO_APART        !SIGNED /* bytes of 7 bits are not enough */
#else
#define FEW_TYPES        GG_KERN_FEW_LOW
#define CODE(KIND, BITS) KIND##_##BITS
#define TWO_APART        0
#endif
#define FEW_X_WORDS(n_scales, n_mins)                                         \
    (GG_GEMM_I8_X_BLOCK((size_t)NR, n_scales, n_mins) / 4)

/* A block of activations. */
struct acts {
    const int32_t *quads, *begin;
    const float *s, *sum;
    /* initial values of the sums of 16 steps, by fold_begin() */
    int32_t begin_16[16][8];
};
static_assert(SIGNED || (int)NR <= 8, "columns in 256 bits");

static GG_ALWAYS_INLINE void acts_at(struct acts *x, const int32_t *at,
                                     unsigned n_scales)
{
    x->quads = at;
    x->begin = at + QUADS * NR;
    x->s = (const float *)(const void *)(x->begin +
                                         GG_GEMM_I8_RUNS(n_scales) * NR);
    x->sum = x->s + GG_GEMM_I8_SCALES * NR;
}

/* The quads of 16 or 32 steps that begin with quad t. */
static GG_ALWAYS_INLINE const int32_t *quads_at(const struct acts *x, size_t t)
{
    return x->quads +
           (SIGNED ? t / PARTS * PARTS * NR + t % PARTS * 2 : t * NR);
}

/* Sums of products of n quads of the rows with those of the columns at x,
 * before they are widened to 32 bits: 16-bit sums without VNNI. */
#if SIGNED
static GG_ALWAYS_INLINE void multiply_quads(VI to[COLS], const VI *q,
                                            const int32_t *x, size_t n,
                                            int n_cols)
{
    GG_UNROLL
    for (size_t t = 0; t < n; t += 2) {
        GG_UNROLL
        for (int j = 0; j < n_cols; j++)
            VI_DP_TWO(to[j], q[t], q[t + 1],
                      x + j / 2 * 16 + j % 2 * 2 + t * 2);
    }
}
#else
static GG_ALWAYS_INLINE void multiply_quads(VI to[COLS], const VI *q,
                                            const int32_t *x, size_t n,
                                            int n_cols)
{
    GG_UNROLL
    for (size_t t = 0; t < n; t++) {
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            const VI b = vi_words(x[t * NR + (size_t)j]);
#ifdef VI_DP
            VI_DP(to[j], q[t], b);
#else
            if (t == 0)
                VI_MUL(to[j], q[t], b);
            else
                VI_ADD(to[j], q[t], b);
#endif
        }
    }
}

#endif

/* The integer sums of run i, n quads long. */
static GG_ALWAYS_INLINE void multiply_run(const struct out *o, VI acc[COLS],
                                          const VI *q, size_t i, size_t n)
{
    const int32_t *at = quads_at(o->x, i * n);
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        acc[j] = vi_words(o->x->begin[i * NR + (size_t)j]);
#if defined(VI_DP) || SIGNED
    multiply_quads(acc, q, at, n, o->n_cols);
#else
    const size_t some = GG_MIN(n, (size_t)GG_GEMM_I8_SUMS(o->bits));
    GG_UNROLL
    for (size_t t = 0; t < n; t += some) {
        VI part[COLS];
        multiply_quads(part, q + t, at + t * NR, some, o->n_cols);
        GG_UNROLL
        for (int j = 0; j < o->n_cols; j++)
            VI_WIDEN(acc[j], part[j]);
    }
#endif
}

/* The scale of activations of run i. */
static GG_ALWAYS_INLINE VF scale_at(const struct out *o, size_t i, int j)
{
    return vf_all(o->x->s + i * NR + (size_t)j);
}

/* ---- functions that few_impl.h calls ---- */

/* A scale that is d times a small integer. */
typedef VF scale_of_run;
static GG_ALWAYS_INLINE scale_of_run scale_of(VF d, VI sub)
{
    return vf_mul(d, vf_of(sub));
}

static GG_ALWAYS_INLINE void sub_run(struct out *o, const VI q[PARTS],
                                     size_t i, VF d)
{
    VI acc[COLS];
    multiply_run(o, acc, q, i, PARTS);
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        o->sum[j] =
            vf_fma(vf_of(acc[j]), vf_mul(d, scale_at(o, i, j)), o->sum[j]);
}

static GG_ALWAYS_INLINE void own_run(struct out *o, const VI q[PARTS],
                                     size_t i, VF d)
{
    sub_run(o, q, i, d);
}

/* Add up runs that share a scale of activations before scaling. */
static GG_ALWAYS_INLINE void half_run(struct out *o, const VI q[4], size_t i,
                                      VF d)
{
    VI acc[COLS];
    multiply_run(o, acc, q, i, 4);
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++) {
        const VF v = vf_fma(vf_of(acc[j]), d, o->part[j]);
        o->part[j] = i % 2 ? vf_zero() : v;
        if (i % 2)
            o->sum[j] = vf_fma(v, scale_at(o, i / 2, j), o->sum[j]);
    }
}

/* Add up scaled runs that share a scale of weights. */
static GG_ALWAYS_INLINE void add_part(struct out *o, const VI acc[COLS],
                                      size_t i)
{
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        o->part[j] = vf_fma(vf_of(acc[j]), scale_at(o, i, j), o->part[j]);
}

static GG_ALWAYS_INLINE void one_run(struct out *o, const VI q[PARTS],
                                     size_t i)
{
    VI acc[COLS];
    multiply_run(o, acc, q, i, PARTS);
    add_part(o, acc, i);
}

/* Initial value of a sum of 16 steps: -4 times the sum of activations, or 0 if
 * weights are signed. */
#if SIGNED
static GG_ALWAYS_INLINE void fold_begin(struct out *o)
{
    (void)o;
}
#else
static GG_ALWAYS_INLINE void fold_begin(struct out *o)
{
    const __m256i four = _mm256_set1_epi8(4), m1 = _mm256_set1_epi16(-1);
    const int32_t *quads = o->x->quads;
    for (size_t i = 0; i < 16; i++, quads += 4 * NR) {
        __m256i sum = _mm256_setzero_si256();
        GG_UNROLL
        for (size_t t = 0; t < 4; t++) { /* reads of the next quad, too */
            const __m256i v =
                _mm256_loadu_si256((const void *)(quads + t * NR));
            sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(four, v));
        }
        _mm256_storeu_si256((void *)o->x->begin_16[i],
                            _mm256_madd_epi16(sum, m1));
    }
}
#endif

/* Sums of 16 steps have to fit into 16 bits. In Q2_K, larger bytes are shifted
 * down first: sums are at most 16 * 3 * 127 = 6096. In Q3_K, bytes are up to 7,
 * and the initial value cancels the 4 that is added to each: at most 16 * 4 *
 * 127 = 8128 in the end and 16 * 7 * 127 + 8128 = 22352 on the way. A run of 32
 * adds up to 2 * 15 * 6096 or 2 * 32 * 8128, below 2^20. */
static GG_ALWAYS_INLINE void fold_run(struct out *o, const VI q[4], size_t i,
                                      VI sub, unsigned n)
{
    VI part[COLS];
#if SIGNED
    const VI factor = sub;
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        part[j] = vi_zero();
#elif defined(VI_DP)
    const VI factor = o->bias ? vi_and(sub, vi_words(0xffff)) : sub;
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        part[j] = o->bias ? vi_words(o->x->begin_16[i][j]) : vi_zero();
#else
    const VI factor = vi_or(sub, vi_sll(sub, 16));
#endif
    multiply_quads(part, q, quads_at(o->x, 4 * i), 4, o->n_cols);
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++) {
        part[j] = n ? vi_sra(part[j], n) : part[j];
        VI_SCALE(o->total[j], part[j], factor);
    }
    if (i % 2 == 0)
        return;
    add_part(o, o->total, i / 2);
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        o->total[j] = vi_zero();
}

static GG_ALWAYS_INLINE void own_end(struct out *o)
{
    (void)o;
}

static GG_ALWAYS_INLINE void sub_end(struct out *o, VF d)
{
    (void)o;
    (void)d;
}

static GG_ALWAYS_INLINE void one_end(struct out *o, VF d)
{
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        o->sum[j] = vf_fma(o->part[j], d, o->sum[j]);
}

/* Functions of each kind, and without VNNI of each number of bits that the kind
 * has there. */
/* clang-format off */
#if defined(VI_DP) || SIGNED
#define KINDS(X) X(own, 8) X(sub, 8) X(half, 8) X(two, 8) X(fold, 8) X(one, 8)
#else
#define KINDS(X) \
    X(own, 4) X(own, 5) X(own, 7) X(sub, 4) X(sub, 5) X(sub, 7) X(half, 6) \
    X(half, 7) X(two, 2) X(one, 4)
#endif
/* clang-format on */
#include "kern/simd/few_impl.h"

#define X(LEV, ID, NAME, KIND, N, SCALES, MINS, BIAS, BITS, ...)              \
    FEW(gg_kern_few8_##NAME##_##LEV, NAME, KIND, CODE(KIND, BITS), N, SCALES, \
        MINS, BIAS, BITS)
FEW_TYPES(X, LEVEL)
