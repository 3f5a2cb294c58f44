/* SPDX-License-Identifier: MIT */
/* gemm_dots_impl.h - tiles of 16 rows by 12 columns of bytes, for AArch64
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
 *     ROWS(i, rows)              factors of rows of the i-th vector
 *     ADD_COLS(sum, i, v, cols)  sum + v times factors of columns
 *     COLUMN(v, j, i)            rows 4 i to 4 i + 3 of column j of sums v
 *     FROM_COLUMNS(i, v)         i-th vector of sums v that lie by columns
 *
 * Sums of 8 rows by two columns are four vectors. Those of three pairs of
 * columns stay in registers for all blocks, beside their integer sums. Each
 * weight is loaded once for these columns. Forms with scales of 16 steps have a
 * third set of sums, so they take two pairs. Forms with one scale for a block
 * keep the sums of the block in registers. Each element has the chain of
 * gemm_int_impl.h.
 */
#include "base/compiler.h"
#include "kern/gemm_i8.h"

#include <arm_neon.h>

enum {
    MR = GG_GEMM_MR_DOTPROD,
    NR = GG_GEMM_NR_DOTPROD,
    RUN = 32,
    OCTETS = RUN / 8, /* groups of 8 steps in a run */
    PAIRS = 3         /* most pairs of columns at a time */
};

struct ints {
    int32x4_t v[4];
};
struct sums {
    float32x4_t v[4];
};

/* Addresses in a block, at the current run of 8 rows and the first of some
 * columns. */
struct at {
    const int8_t *w, *x;
    const int32_t *begin;
    const float *s, *d;
};

/* Integer sums of n octets from first on. */
static GG_ALWAYS_INLINE void multiply_octets(struct ints acc[PAIRS],
                                             const struct at *at,
                                             const int32_t *begin, int first,
                                             int n, int n_pairs)
{
    GG_UNROLL
    for (int p = 0; p < n_pairs; p++)
        acc[p] = (struct ints)SUMS_OF(begin + 2 * p);
    GG_UNROLL
    for (int o = first; o < first + n; o++) {
        const int8x16_t w[4] = { vld1q_s8(at->w + W_AT(o, 0)),
                                 vld1q_s8(at->w + W_AT(o, 1)),
                                 vld1q_s8(at->w + W_AT(o, 2)),
                                 vld1q_s8(at->w + W_AT(o, 3)) };
        GG_UNROLL
        for (int p = 0; p < n_pairs; p++) {
            const int8x16_t x = vld1q_s8(at->x + 2 * RUN * p + o * 16);
            MULTIPLY(acc[p].v, w, x);
        }
    }
}

static GG_ALWAYS_INLINE struct sums zero_sums(void)
{
    const float32x4_t zero = vdupq_n_f32(0);
    return (struct sums){ { zero, zero, zero, zero } };
}

static GG_ALWAYS_INLINE struct sums to_floats(const struct ints *acc)
{
    struct sums to;
    GG_UNROLL
    for (int i = 0; i < 4; i++)
        to.v[i] = vcvtq_f32_s32(acc->v[i]);
    return to;
}

static GG_ALWAYS_INLINE struct sums times_rows(struct sums v, struct rows d)
{
    GG_UNROLL
    for (int i = 0; i < 4; i++)
        v.v[i] = vmulq_f32(v.v[i], ROWS(i, d));
    return v;
}

static GG_ALWAYS_INLINE void add_rows(struct sums *to, struct sums v,
                                      struct rows d)
{
    GG_UNROLL
    for (int i = 0; i < 4; i++)
        to->v[i] = vfmaq_f32(to->v[i], v.v[i], ROWS(i, d));
}

static GG_ALWAYS_INLINE void add_cols(struct sums *to, struct sums v,
                                      struct cols s)
{
    to->v[0] = ADD_COLS(to->v[0], 0, v.v[0], s);
    to->v[1] = ADD_COLS(to->v[1], 1, v.v[1], s);
    to->v[2] = ADD_COLS(to->v[2], 2, v.v[2], s);
    to->v[3] = ADD_COLS(to->v[3], 3, v.v[3], s);
}

static GG_ALWAYS_INLINE void add_scaled(struct sums *to, struct sums v,
                                        struct rows d, struct cols s)
{
    to->v[0] = vfmaq_f32(to->v[0], v.v[0], SCALE(0, d, s));
    to->v[1] = vfmaq_f32(to->v[1], v.v[1], SCALE(1, d, s));
    to->v[2] = vfmaq_f32(to->v[2], v.v[2], SCALE(2, d, s));
    to->v[3] = vfmaq_f32(to->v[3], v.v[3], SCALE(3, d, s));
}

/* A run whose halves have scales of their own. */
static GG_ALWAYS_INLINE void
multiply_halves(const struct at *at, struct sums sums[PAIRS], int n_pairs)
{
    struct sums part[PAIRS];
    GG_UNROLL
    for (int h = 0; h < 2; h++) {
        struct ints acc[PAIRS];
        multiply_octets(acc, at, at->begin + h * NR, h * OCTETS / 2,
                        OCTETS / 2, n_pairs);
        const struct rows d = ROWS_OF(at->d + h * MR);
        GG_UNROLL
        for (int p = 0; p < n_pairs; p++) {
            const struct sums v = to_floats(&acc[p]);
            if (h == 0) /* -0 for 0 is lost in the sum that this joins */
                part[p] = times_rows(v, d);
            else
                add_rows(&part[p], v, d);
        }
    }
    GG_UNROLL
    for (int p = 0; p < n_pairs; p++)
        add_cols(&sums[p], part[p], COLS_OF(at->s + 2 * p));
}

/* A run, to sums, or to those of a block before they meet its scale. */
static GG_ALWAYS_INLINE void multiply_run(const struct at *at,
                                          struct sums sums[PAIRS],
                                          struct sums part[PAIRS], int n_pairs,
                                          int n_scales)
{
    struct ints acc[PAIRS];
    if (n_scales == 16) {
        multiply_halves(at, sums, n_pairs);
        return;
    }
    multiply_octets(acc, at, at->begin, 0, OCTETS, n_pairs);
    const struct rows d = ROWS_OF(at->d);
    GG_UNROLL
    for (int p = 0; p < n_pairs; p++) {
        const struct cols s = COLS_OF(at->s + 2 * p);
        if (n_scales == 1)
            add_cols(&part[p], to_floats(&acc[p]), s);
        else
            add_scaled(&sums[p], to_floats(&acc[p]), d, s);
    }
}

/* Sums as four rows of a column each: the first column's, the second's. */
static GG_ALWAYS_INLINE struct sums by_columns(struct sums v)
{
    return (struct sums){ { COLUMN(v.v, 0, 0), COLUMN(v.v, 0, 1),
                            COLUMN(v.v, 1, 0), COLUMN(v.v, 1, 1) } };
}

/* The inverse of by_columns(). */
static GG_ALWAYS_INLINE struct sums by_vectors(struct sums v)
{
    return (struct sums){ { FROM_COLUMNS(0, v.v), FROM_COLUMNS(1, v.v),
                            FROM_COLUMNS(2, v.v), FROM_COLUMNS(3, v.v) } };
}

/* Add values times factors of 8 rows, by columns. */
static GG_ALWAYS_INLINE void add_block(struct sums sums[PAIRS],
                                       const struct sums part[PAIRS],
                                       const float *d, int n_pairs)
{
    const float32x4_t rows[2] = { vld1q_f32(d), vld1q_f32(d + 4) };
    GG_UNROLL
    for (int p = 0; p < n_pairs; p++) {
        const struct sums v = by_columns(part[p]);
        GG_UNROLL
        for (int i = 0; i < 4; i++)
            sums[p].v[i] = vfmaq_f32(sums[p].v[i], v.v[i], rows[i % 2]);
    }
}

/* Add a minimum of each of 8 rows, times sums of activations, by columns. */
static GG_ALWAYS_INLINE void add_min(struct sums sums[PAIRS], const float *m,
                                     const float *sum, int n_pairs)
{
    const float32x4_t rows[2] = { vld1q_f32(m), vld1q_f32(m + 4) };
    GG_UNROLL
    for (int p = 0; p < n_pairs; p++) {
        const float32x2_t cols = vld1_f32(sum + 2 * p);
        float32x4_t *v = sums[p].v;
        v[0] = vfmaq_lane_f32(v[0], rows[0], cols, 0);
        v[1] = vfmaq_lane_f32(v[1], rows[1], cols, 0);
        v[2] = vfmaq_lane_f32(v[2], rows[0], cols, 1);
        v[3] = vfmaq_lane_f32(v[3], rows[1], cols, 1);
    }
}

static GG_ALWAYS_INLINE void add_mins(struct sums sums[PAIRS], const float *m,
                                      const float *sum, int n_pairs,
                                      int n_mins)
{
    for (int i = 0; i < n_mins; i += 4, m += 4 * MR, sum += 4 * NR) {
        GG_UNROLL
        for (int k = 0; k < 4; k++)
            add_min(sums, m + k * MR, sum + k * NR, n_pairs);
    }
}

/* Add minima to sums that do not lie by columns. */
static GG_ALWAYS_INLINE void turn_and_add_mins(struct sums sums[PAIRS],
                                               const float *m,
                                               const float *sum, int n_pairs,
                                               int n_mins)
{
    GG_UNROLL
    for (int p = 0; p < n_pairs; p++)
        sums[p] = by_columns(sums[p]);
    add_mins(sums, m, sum, n_pairs, n_mins);
    GG_UNROLL
    for (int p = 0; p < n_pairs; p++)
        sums[p] = by_vectors(sums[p]);
}

/* A block of 8 rows by n_pairs pairs of columns. n_pairs, n_scales and n_mins
 * are constants.
 *
 * w      weights of the first of these rows
 * d      scales of the rows, then their minima
 * x      the block of all columns
 * c      the first column
 * sums   are added to; lie by columns if n_scales is 1 */
static GG_ALWAYS_INLINE void tile_block(const int8_t *w, const float *d,
                                        const int8_t *x, size_t c,
                                        struct sums sums[PAIRS], int n_pairs,
                                        int n_scales, int n_mins)
{
    const int n_runs = GG_GEMM_I8_RUNS(n_scales);
    const int32_t *begin =
        (const int32_t *)(const void *)(x + GG_GEMM_INT_STEPS * NR) + c;
    const float *s = (const float *)(const void *)(begin + n_runs * NR);
    const float *sum = s + GG_GEMM_I8_SCALES * NR;
    struct at at = { w, x + RUN * c, begin, s, d };
    struct sums part[PAIRS];
    GG_UNROLL
    for (int p = 0; p < n_pairs; p++)
        part[p] = zero_sums();
    for (int r = 0; r < GG_GEMM_I8_SCALES; r++) {
        multiply_run(&at, sums, part, n_pairs, n_scales);
        at.w += RUN * MR;
        at.x += RUN * NR;
        at.s += NR;
        at.begin += n_runs / GG_GEMM_I8_SCALES * NR;
        at.d += n_scales / GG_GEMM_I8_SCALES * MR;
    }
    if (n_scales == 1)
        add_block(sums, part, d, n_pairs);
    if (n_mins && n_scales == 1)
        add_mins(sums, d + n_scales * MR, sum, n_pairs, n_mins);
    else if (n_mins)
        turn_and_add_mins(sums, d + n_scales * MR, sum, n_pairs, n_mins);
}

static GG_ALWAYS_INLINE void store_column(float *y, int add, float32x4_t a,
                                          float32x4_t b)
{
    vst1q_f32(y, add ? vaddq_f32(vld1q_f32(y), a) : a);
    vst1q_f32(y + 4, add ? vaddq_f32(vld1q_f32(y + 4), b) : b);
}

/* Where a tile's sums go: n columns. */
struct to {
    float *y;
    size_t stride;
    unsigned n;
    int add;
};

/* All blocks of 8 rows (h 0: the lower ones) by n_pairs pairs of columns, from
 * column c on. */
static GG_ALWAYS_INLINE void tile_pairs(const int8_t *w, const int8_t *x,
                                        size_t n_blocks, int h, size_t c,
                                        const struct to *to, int n_pairs,
                                        int n_scales, int n_mins)
{
    struct sums sums[PAIRS];
    GG_UNROLL
    for (int p = 0; p < n_pairs; p++)
        sums[p] = zero_sums();
    for (; n_blocks; n_blocks--) {
        const float *d =
            (const float *)(const void *)(w + GG_GEMM_INT_STEPS * MR);
        tile_block(w + h * HALF, d + h * (MR / 2), x, c, sums, n_pairs,
                   n_scales, n_mins);
        w += GG_GEMM_I8_W_BLOCK(MR, n_scales, n_mins);
        x += GG_GEMM_I8_X_BLOCK(NR, n_scales, n_mins);
    }
    float *y = to->y + c * to->stride + h * (MR / 2);
    GG_UNROLL
    for (int p = 0; p < n_pairs; p++, y += 2 * to->stride) {
        const struct sums s = n_scales == 1 ? sums[p] : by_columns(sums[p]);
        store_column(y, to->add, s.v[0], s.v[1]);
        if (c + 2 * (size_t)p + 1 < to->n)
            store_column(y + to->stride, to->add, s.v[2], s.v[3]);
    }
}

static GG_ALWAYS_INLINE void multiply_tile(const void *w, const void *x,
                                           size_t n_blocks, unsigned n_cols,
                                           float *y, size_t y_stride, int add,
                                           int n_scales, int n_mins)
{
    const size_t most = n_scales == 16 ? 2 : PAIRS;
    const struct to to = { y, y_stride, n_cols, add };
    for (int h = 0; h < 2; h++)
        for (size_t c = 0; c < n_cols; c += 2 * most) {
            const size_t n = GG_MIN(most, (n_cols - c + 1) / 2);
            if (n == 3)
                tile_pairs(w, x, n_blocks, h, c, &to, 3, n_scales, n_mins);
            else if (n == 2)
                tile_pairs(w, x, n_blocks, h, c, &to, 2, n_scales, n_mins);
            else
                tile_pairs(w, x, n_blocks, h, c, &to, 1, n_scales, n_mins);
        }
}

#define X(scales, mins, level)                                                \
    GG_GEMM_INT_TILE(gg_kern_i8_tile_##scales##_##mins##_##level, scales, mins)
GG_GEMM_I8_TILES(X, LEVEL)
