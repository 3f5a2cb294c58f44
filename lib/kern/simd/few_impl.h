/* SPDX-License-Identifier: MIT */
/* few_impl.h - rows by columns, block by block
 *
 * Included by few_i8_impl.h and few_i16_impl.h after their functions on bytes.
 * Several columns are multiplied with lanes (lanes.h) by code for each kind of
 * type: code for each type would be most of the library. For one column, where
 * producing bytes is most of the work, there is code for each type that
 * multiplies bytes as they are produced, up to a fifth faster. Sanitizer builds
 * lack it, because it takes minutes to compile with them.
 */
#ifdef GGUF_INSTRUMENTED
#define ONE_BY_TYPE 0
#else
#define ONE_BY_TYPE 1
#endif

struct type;
typedef void cols_fn(const struct gg_kern_few *f, const struct type *t);

struct type {
    lanes_fn *lanes;
    size_t size;             /* bytes of 256 steps of a row */
    size_t n_scales, n_mins; /* number of scales and minima of 256 steps */
    size_t x_words;          /* 32 bits each of a block of activations */
    int bias;                /* GG_KERN_FEW_ALL */
    cols_fn *one; /* function for one column of this type; NULL: cols[0] */
    /* functions for 1 column (without one), 2, 4 and COLS */
    cols_fn *const *cols;
};

/* ---- kinds: n_runs of 32 steps, all 8 but for the kind own ---- */

static GG_ALWAYS_INLINE void own_kind(struct out *o, const struct lanes *w,
                                      size_t n_runs)
{
    for (size_t i = 0; i < n_runs; i++)
        own_run(o, w->q + i * PARTS, i, w->d[i]);
    own_end(o);
}

static GG_ALWAYS_INLINE void sub_kind(struct out *o, const struct lanes *w,
                                      size_t n_runs)
{
    for (size_t i = 0; i < n_runs; i++)
        sub_run(o, w->q + i * PARTS, i, scale_of(w->d[0], w->sub[i]));
    sub_end(o, w->d[0]);
}

static GG_ALWAYS_INLINE void half_kind(struct out *o, const struct lanes *w,
                                       size_t n_runs)
{
    for (size_t i = 0; i < 2 * n_runs; i += 2) {
        GG_UNROLL
        for (size_t h = i; h < i + 2; h++)
            half_run(o, w->q + h * 4, h, scale_of(w->d[0], w->sub[h]));
    }
    sub_end(o, w->d[0]);
}

static GG_ALWAYS_INLINE void fold_kind(struct out *o, const struct lanes *w,
                                       size_t n_runs)
{
    fold_begin(o);
    for (size_t i = 0; i < 2 * n_runs; i += 2) {
        GG_UNROLL
        for (size_t h = i; h < i + 2; h++)
            fold_run(o, w->q + h * 4, h, w->sub[h], 0);
    }
    one_end(o, w->d[0]);
}

/* log2 of the factor by which the bytes of the i-th 16 steps of Q2_K are
 * larger. */
static GG_ALWAYS_INLINE unsigned two_shift(size_t i)
{
    return TWO_APART ? (unsigned)(i % 8 / 2 * 2) : 0;
}

static GG_ALWAYS_INLINE void two_kind(struct out *o, const struct lanes *w,
                                      size_t n_runs)
{
    o->bias = 0;
    for (size_t i = 0; i < 2 * n_runs; i += 8) {
        GG_UNROLL
        for (size_t h = 0; h < 8; h++)
            fold_run(o, w->q + (i + h) * 4, i + h, w->sub[i + h],
                     two_shift(h));
    }
    one_end(o, w->d[0]);
}

static GG_ALWAYS_INLINE void one_kind(struct out *o, const struct lanes *w,
                                      size_t n_runs)
{
    for (size_t i = 0; i < n_runs; i++)
        one_run(o, w->q + i * PARTS, i);
    one_end(o, w->d[0]);
}

/* ---- rows by columns ---- */

/* Prefetch a block's part up to end that take() has not prefetched. */
static GG_ALWAYS_INLINE void prefetch_rest(const struct rows *r, uintptr_t end)
{
    while (*r->ahead < end)
        prefetch_lines(r, 64);
    *r->ahead = end;
}

static GG_ALWAYS_INLINE void add_mins(struct out *o, const VF *min, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        GG_UNROLL
        for (int j = 0; j < o->n_cols; j++)
            o->sum[j] = vf_fma(min[i], vf_all(o->x->sum + i * NR + (size_t)j),
                               o->sum[j]);
    }
}

/* n steps of ROWS rows by o's block of activations. */
typedef void block_fn(struct out *o, const struct type *t,
                      const struct rows *r, size_t n);

#define KIND_BLOCK(KIND, BITS)                                                \
    static GG_ALWAYS_INLINE void KIND##_##BITS##_block(                       \
        struct out *o, const struct type *t, const struct rows *r, size_t n)  \
    {                                                                         \
        const uintptr_t end = *r->ahead + ROWS * t->size;                     \
        struct lanes w;                                                       \
        t->lanes(&w, r, n);                                                   \
        prefetch_rest(r, end);                                                \
        KIND##_kind(o, &w, n / 32);                                           \
        add_mins(o, w.min, t->n_mins *n / GG_GEMM_INT_STEPS);                 \
    }
KINDS(KIND_BLOCK)

/* ROWS rows by n_cols columns to y. */
static GG_ALWAYS_INLINE void some_rows(const struct gg_kern_few *f,
                                       const struct type *t, struct rows r,
                                       float *y, block_fn *block, int n_cols,
                                       unsigned bits)
{
    const int32_t *x = f->x;
    VF sum[COLS], part[COLS];
    VI total[COLS];
    struct acts acts;
    struct out o = { sum, part, total, &acts, n_cols, t->bias, bits };
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        o.sum[j] = vf_zero();
    for (size_t k = f->k; k; r.at += t->size) {
        const size_t n = GG_MIN(k, (size_t)GG_GEMM_INT_STEPS);
        acts_at(&acts, x, (unsigned)t->n_scales);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            o.part[j] = vf_zero();
            o.total[j] = vi_zero();
        }
        block(&o, t, &r, n);
        x += t->x_words;
        k -= n;
        if (n < GG_GEMM_INT_STEPS) { /* zeros fill up the panel's block */
            GG_UNROLL
            for (int j = 0; j < n_cols; j++)
                o.sum[j] = vf_add(o.sum[j], vf_zero());
        }
    }
    GG_UNROLL
    for (int j = 0; j < n_cols; j++, y += f->y_stride) {
        if ((unsigned)j >= f->n_cols)
            continue;
        if (f->add)
            o.sum[j] = vf_add(vf_loadu(y), o.sum[j]);
        vf_storeu(y, o.sum[j]);
    }
}

/* All rows by n_cols columns. */
static GG_ALWAYS_INLINE void some_cols(const struct gg_kern_few *f,
                                       const struct type *t, block_fn *block,
                                       int n_cols, unsigned bits)
{
    uintptr_t ahead = (uintptr_t)f->next;
    for (size_t i = 0; i < GG_GEMM_PANEL_ROWS; i += ROWS) {
        const struct rows r = { (const uint8_t *)f->w + i * f->w_stride,
                                f->w_stride, &ahead };
        some_rows(f, t, r, f->y + i, block, n_cols, bits);
    }
}

#define COLUMNS(NAME, BLOCK, N, BITS)                                         \
    static void NAME(const struct gg_kern_few *f, const struct type *t)       \
    {                                                                         \
        some_cols(f, t, BLOCK, N, BITS);                                      \
    }
#if ONE_BY_TYPE
#define COLUMN_1(NAME, BLOCK, BITS)
#define FIRST(NAME) NULL
#else
#define COLUMN_1(NAME, BLOCK, BITS) COLUMNS(NAME, BLOCK, 1, BITS)
#define FIRST(NAME)                 NAME
#endif
#define KIND_COLUMNS(NAME, BITS)                                              \
    COLUMN_1(NAME##_##BITS##_1, NAME##_##BITS##_block, BITS)                  \
    COLUMNS(NAME##_##BITS##_2, NAME##_##BITS##_block, 2, BITS)                \
    COLUMNS(NAME##_##BITS##_4, NAME##_##BITS##_block, 4, BITS)                \
    COLUMNS(NAME##_##BITS##_all, NAME##_##BITS##_block, COLS, BITS)           \
    static cols_fn *const NAME##_##BITS[4] = { FIRST(NAME##_##BITS##_1),      \
                                               NAME##_##BITS##_2,             \
                                               NAME##_##BITS##_4,             \
                                               NAME##_##BITS##_all };
KINDS(KIND_COLUMNS)

/* Lanes of a type of a kind. */
#define LANES_own(NAME)  NAME
#define LANES_sub(NAME)  NAME
#define LANES_half(NAME) NAME
#define LANES_fold(NAME) NAME
#define LANES_one(NAME)  NAME
#if TWO_APART
#define LANES_two(NAME) NAME##_apart
#else
#define LANES_two(NAME) NAME
#endif

/* Computes numbers of columns that have code: pack_x or zeros fill the
 * panel. */
static GG_ALWAYS_INLINE void multiply_few(const struct gg_kern_few *f,
                                          const struct type *t)
{
    const unsigned n = f->n_cols;
    if (n == 1 && t->one)
        t->one(f, t);
    else
        t->cols[n > 4 ? 3 : n > 2 ? 2 : n - 1](f, t);
}

#if ONE_BY_TYPE
#include "kern/simd/few_one.h"
#else
#define ONE_DECLARE(NAME)
#define ONE_DEFINE(NAME, N, KIND, BITS)
#define ONE_OF(NAME) NULL
#endif

/* Where weights are signed, types whose bytes use 3, 7 or 8 bits have no bias
 * (lanes.h). */
#define LANES_BY_0(KIND, NAME)      LANES_OF(LANES_##KIND(NAME), ROWS_LEVEL)
#define LANES_BY_1(KIND, NAME)      LANES_OF(NAME, LEVEL)
#define LANES_BY_(SIGN, KIND, NAME) LANES_BY_##SIGN(KIND, NAME)
#define LANES_BY(SIGN, KIND, NAME)  LANES_BY_(SIGN, KIND, NAME)
#define SIGN_2                      0
#define SIGN_3                      SIGNED
#define SIGN_4                      0
#define SIGN_5                      0
#define SIGN_6                      0
#define SIGN_7                      SIGNED
#define SIGN_8                      SIGNED

/* FULL, the kernel of a type; CODE: of its kind. */
#define FEW(FULL, NAME, KIND, CODE, N, SCALES, MINS, BIAS, BITS)              \
    ONE_DECLARE(NAME)                                                         \
    static const struct type type_##NAME = {                                  \
        .lanes = LANES_BY(SIGN_##BITS, KIND, NAME),                           \
        .size = (N) * sizeof(struct gg_block_##NAME),                         \
        .n_scales = SCALES,                                                   \
        .n_mins = MINS,                                                       \
        .x_words = FEW_X_WORDS(SCALES, MINS),                                 \
        .bias = SIGN_##BITS ? 0 : (BIAS),                                     \
        .one = ONE_OF(NAME),                                                  \
        .cols = CODE                                                          \
    };                                                                        \
    ONE_DEFINE(NAME, N, KIND, BITS)                                           \
    void FULL(const struct gg_kern_few *f)                                    \
    {                                                                         \
        multiply_few(f, &type_##NAME);                                        \
    }
