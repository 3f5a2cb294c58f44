/* SPDX-License-Identifier: MIT */
/* gemm_dots_impl.h - tiles of 16 rows by 8 columns of bytes, for AArch64
 *
 * Included once by the file of a level, which defines
 *
 *     LEVEL                the suffix of its functions
 *     W_AT(o, i)           offset of the i-th of four vectors with 8 steps of 8
 *                          rows, from step 8 o on, in weights of 16 rows
 *     HALF                 offset of the upper 8 rows from the lower ones
 *     struct rows, ROWS_OF(d)    factors of 8 rows
 *     struct cols, COLS_OF(s)    factors of two columns
 *     SUMS_OF(begin)             integer sums of two columns that begin so
 *     MULTIPLY(acc, w, x)        acc += products of 8 steps, 4 vectors w
 *     SCALE(i, rows, cols)       factors of the i-th vector of sums
 *     ADD_ROWS(sum, i, v, rows)  sum + v times factors
 *     ADD_COLS(sum, i, v, cols)
 *     ADD_MIN(sum, i, rows, cols)  sum + products of factors
 *     COLUMN(v, j, i)            rows 4 i to 4 i + 3 of column j of sums v
 *
 * Sums of 8 rows by two columns are four vectors. The weights of 32 steps of 8
 * rows are in 16 registers and meet all columns; sums in f32 are in memory.
 * Each element has the chain of gemm_int_impl.h.
 */
#include "base/compiler.h"
#include "kern/gemm_i8.h"

#include <arm_neon.h>

enum {
    MR = GG_GEMM_MR_DOTPROD,
    NR = GG_GEMM_NR_DOTPROD,
    RUN = 32,
    OCTETS = RUN / 8, /* groups of 8 steps in a run */
    PAIRS = NR / 2
};

struct ints {
    int32x4_t v[4];
};
struct sums {
    float32x4_t v[4];
};
struct weights {
    int8x16_t v[OCTETS][4];
};

static GG_ALWAYS_INLINE struct weights load_run(const int8_t *w)
{
    struct weights to;
    GG_UNROLL
    for (int o = 0; o < OCTETS; o++) {
        GG_UNROLL
        for (int i = 0; i < 4; i++)
            to.v[o][i] = vld1q_s8(w + W_AT(o, i));
    }
    return to;
}

/* Integer sums of the octets from first on, to floats. */
static GG_ALWAYS_INLINE struct sums multiply_run(const struct weights *w,
                                                 const int8_t *x,
                                                 const int32_t *begin,
                                                 int first, int n)
{
    struct ints acc = SUMS_OF(begin);
    struct sums to;
    GG_UNROLL
    for (int o = 0; o < n; o++) {
        const int8x16_t b = vld1q_s8(x + (first + o) * 16);
        MULTIPLY(acc.v, w->v[first + o], b);
    }
    GG_UNROLL
    for (int i = 0; i < 4; i++)
        to.v[i] = vcvtq_f32_s32(acc.v[i]);
    return to;
}

static GG_ALWAYS_INLINE struct sums zero_sums(void)
{
    const float32x4_t zero = vdupq_n_f32(0);
    return (struct sums){ { zero, zero, zero, zero } };
}

static GG_ALWAYS_INLINE struct sums add_rows(struct sums to, struct sums v,
                                             struct rows d)
{
    GG_UNROLL
    for (int i = 0; i < 4; i++)
        to.v[i] = ADD_ROWS(to.v[i], i, v.v[i], d);
    return to;
}

static GG_ALWAYS_INLINE struct sums add_cols(struct sums to, struct sums v,
                                             struct cols s)
{
    to.v[0] = ADD_COLS(to.v[0], 0, v.v[0], s);
    to.v[1] = ADD_COLS(to.v[1], 1, v.v[1], s);
    to.v[2] = ADD_COLS(to.v[2], 2, v.v[2], s);
    to.v[3] = ADD_COLS(to.v[3], 3, v.v[3], s);
    return to;
}

static GG_ALWAYS_INLINE struct sums add_scaled(struct sums to, struct sums v,
                                               struct rows d, struct cols s)
{
    to.v[0] = vfmaq_f32(to.v[0], v.v[0], SCALE(0, d, s));
    to.v[1] = vfmaq_f32(to.v[1], v.v[1], SCALE(1, d, s));
    to.v[2] = vfmaq_f32(to.v[2], v.v[2], SCALE(2, d, s));
    to.v[3] = vfmaq_f32(to.v[3], v.v[3], SCALE(3, d, s));
    return to;
}

/* Add the minima of 8 rows, times sums of activations. */
static GG_ALWAYS_INLINE struct sums add_mins(struct sums to, const float *m,
                                             const float *sum, int n_mins)
{
    for (int i = 0; i < n_mins; i++, m += MR, sum += NR) {
        const struct rows rows = ROWS_OF(m);
        const struct cols cols = COLS_OF(sum);
        to.v[0] = ADD_MIN(to.v[0], 0, rows, cols);
        to.v[1] = ADD_MIN(to.v[1], 1, rows, cols);
        to.v[2] = ADD_MIN(to.v[2], 2, rows, cols);
        to.v[3] = ADD_MIN(to.v[3], 3, rows, cols);
    }
    return to;
}

/* Addresses in a block, at the current run. */
struct at {
    const int8_t *x;
    const int32_t *begin;
    const float *s, *d;
};

/* A run of 8 rows by the pair p of columns. */
static GG_ALWAYS_INLINE void multiply_pair(const struct weights *w,
                                           struct at at, struct sums *sums,
                                           struct sums *part, int p,
                                           int n_scales)
{
    const int8_t *x = at.x + 2 * RUN * p;
    const int32_t *begin = at.begin + 2 * p;
    const struct cols cols = COLS_OF(at.s + 2 * p);
    if (n_scales == 16) {
        struct sums v =
            add_rows(zero_sums(), multiply_run(w, x, begin, 0, OCTETS / 2),
                     ROWS_OF(at.d));
        v = add_rows(v, multiply_run(w, x, begin + NR, OCTETS / 2, OCTETS / 2),
                     ROWS_OF(at.d + MR));
        sums[p] = add_cols(sums[p], v, cols);
        return;
    }
    const struct sums v = multiply_run(w, x, begin, 0, OCTETS);
    if (n_scales == 1)
        part[p] = add_cols(part[p], v, cols);
    else
        sums[p] = add_scaled(sums[p], v, ROWS_OF(at.d), cols);
}

/* A block of 8 rows by n_pairs pairs of columns. w: the first of these rows; d:
 * their scales. n_scales and n_mins are constants. */
static GG_ALWAYS_INLINE void tile_block(const int8_t *w, const float *d,
                                        const int8_t *x, struct sums *sums,
                                        int n_pairs, int n_scales, int n_mins)
{
    const int n_runs = GG_GEMM_I8_RUNS(n_scales);
    const int32_t *begin =
        (const int32_t *)(const void *)(x + GG_GEMM_INT_STEPS * NR);
    const float *s = (const float *)(const void *)(begin + n_runs * NR);
    const float *m = d + n_scales * MR, *sum = s + GG_GEMM_I8_SCALES * NR;
    struct at at = { x, begin, s, d };
    struct sums part[PAIRS];
    for (int p = 0; n_scales == 1 && p < n_pairs; p++)
        part[p] = zero_sums();
    for (int r = 0; r < GG_GEMM_I8_SCALES; r++) {
        const struct weights run = load_run(w);
        for (int p = 0; p < n_pairs; p++)
            multiply_pair(&run, at, sums, part, p, n_scales);
        w += RUN * MR;
        at.x += RUN * NR;
        at.s += NR;
        at.begin += n_runs / GG_GEMM_I8_SCALES * NR;
        at.d += n_scales / GG_GEMM_I8_SCALES * MR;
    }
    for (int p = 0; p < n_pairs; p++) {
        if (n_scales == 1)
            sums[p] = add_rows(sums[p], part[p], ROWS_OF(d));
        if (n_mins)
            sums[p] = add_mins(sums[p], m, sum + 2 * p, n_mins);
    }
}

/* All blocks of 8 rows: the lower ones, or the upper ones (h 1). */
static GG_ALWAYS_INLINE void tile_rows(const int8_t *w, const int8_t *x,
                                       size_t n_blocks, int h,
                                       struct sums *sums, int n_pairs,
                                       int n_scales, int n_mins)
{
    const size_t w_block = GG_GEMM_I8_W_BLOCK(MR, n_scales, n_mins);
    const size_t x_block = GG_GEMM_I8_X_BLOCK(NR, n_scales, n_mins);
    for (; n_blocks; n_blocks--, w += w_block, x += x_block) {
        const float *d =
            (const float *)(const void *)(w + GG_GEMM_INT_STEPS * MR);
        tile_block(w + h * HALF, d + h * (MR / 2), x, sums, n_pairs, n_scales,
                   n_mins);
    }
}

static GG_ALWAYS_INLINE void store_column(float *y, int add, float32x4_t a,
                                          float32x4_t b)
{
    vst1q_f32(y, add ? vaddq_f32(vld1q_f32(y), a) : a);
    vst1q_f32(y + 4, add ? vaddq_f32(vld1q_f32(y + 4), b) : b);
}

static GG_ALWAYS_INLINE void multiply_tile(const void *w, const void *x,
                                           size_t n_blocks, unsigned n_cols,
                                           float *y, size_t y_stride, int add,
                                           int n_scales, int n_mins)
{
    const int n_pairs = (int)(n_cols + 1) / 2;
    for (int h = 0; h < 2; h++, y += MR / 2) {
        struct sums sums[PAIRS];
        for (int p = 0; p < n_pairs; p++)
            sums[p] = zero_sums();
        tile_rows(w, x, n_blocks, h, sums, n_pairs, n_scales, n_mins);
        for (unsigned j = 0; j < n_cols; j++) {
            const float32x4_t *v = sums[j / 2].v;
            float *to = y + j * y_stride;
            if (j % 2)
                store_column(to, add, COLUMN(v, 1, 0), COLUMN(v, 1, 1));
            else
                store_column(to, add, COLUMN(v, 0, 0), COLUMN(v, 0, 1));
        }
    }
}

#define X(scales, mins, level)                                                \
    GG_GEMM_INT_TILE(gg_kern_i8_tile_##scales##_##mins##_##level, scales, mins)
GG_GEMM_I8_TILES(X, LEVEL)
