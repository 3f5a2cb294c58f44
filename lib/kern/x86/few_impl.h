/* SPDX-License-Identifier: MIT */
/* few_impl.h - rows by columns, block by block: after few_blocks.h */

enum { AHEAD = 1024 }; /* bytes of each row that are asked for */

/* Code for each number of columns takes minutes to compile with checks. */
#if defined(__SANITIZE_ADDRESS__)
#define ONE_FOR_ALL 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ONE_FOR_ALL 1
#endif
#endif
#ifndef ONE_FOR_ALL
#define ONE_FOR_ALL 0
#endif

/* Rows are far apart, and of each a short part is read at a time: what follows,
 * or what is multiplied next, jump further on, is asked for. */
static void ask(const struct rows *r, size_t jump, size_t left, size_t size)
{
    const uintptr_t at =
        (uintptr_t)r->at + (left > AHEAD ? AHEAD : AHEAD + jump);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t off = 0; off < size; off += 64)
            GG_PREFETCH((const void *)(at + i * r->stride + off));
}

/* Of a type; constants once this is inlined. */
struct shape {
    size_t size;              /* bytes of 256 steps */
    size_t n_scales, x_words; /* of a block of activations */
    int bias;
    unsigned bits;
};

/* ROWS rows by n_cols columns to y. */
static GG_ALWAYS_INLINE void some_rows(const struct gg_kern_few *f,
                                       struct rows r, size_t jump, float *y,
                                       int n_cols, block_fn *block,
                                       const struct shape *type)
{
    const int32_t *x = f->x;
    struct acts acts;
    struct out o;
    o.x = &acts;
    o.n_cols = n_cols;
    o.bias = type->bias;
    o.bits = type->bits;
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        o.sum[j] = vf_zero();
    for (size_t k = f->k; k; r.at += type->size) {
        const size_t n = GG_MIN(k, (size_t)GG_GEMM_INT_STEPS);
        ask(&r, jump, k * type->size / GG_GEMM_INT_STEPS, type->size);
        acts_at(&acts, x, (unsigned)type->n_scales);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            o.part[j] = vf_zero();
            o.total[j] = vi_zero();
        }
        block(&o, &r, n);
        x += type->x_words;
        k -= n;
        if (n < GG_GEMM_INT_STEPS) { /* a panel's block goes on with zeros */
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
static GG_ALWAYS_INLINE void some_cols(const struct gg_kern_few *f, int n_cols,
                                       block_fn *block,
                                       const struct shape *type)
{
    enum { ALL = GG_GEMM_PANEL_ROWS };
    const size_t one = f->k * type->size / GG_GEMM_INT_STEPS; /* of a row */
    for (size_t i = 0; i < ALL; i += ROWS) {
        const struct rows r = { (const uint8_t *)f->w + i * f->w_stride,
                                f->w_stride };
        /* the next rows' first step, or from the last rows to the first */
        const size_t jump = i + ROWS < ALL ? ROWS * f->w_stride - one
                                           : f->jump - i * f->w_stride;
        some_rows(f, r, jump, f->y + i, n_cols, block, type);
    }
}

/* As many columns as there is code for: pack_x or zeros fill the panel. */
static GG_ALWAYS_INLINE void few(const struct gg_kern_few *f, block_fn *block,
                                 const struct shape *type)
{
    if (ONE_FOR_ALL || f->n_cols > 4)
        some_cols(f, COLS, block, type);
    else if (f->n_cols > 2)
        some_cols(f, 4, block, type);
    else if (f->n_cols == 2)
        some_cols(f, 2, block, type);
    else
        some_cols(f, 1, block, type);
}

#define FEW(FULL, NAME, N, SCALES, MINS, BIAS, BITS)                          \
    void FULL(const struct gg_kern_few *f)                                    \
    {                                                                         \
        const struct shape s = { (N) * sizeof(struct gg_block_##NAME),        \
                                 SCALES, FEW_X_WORDS(SCALES, MINS), BIAS,     \
                                 BITS };                                      \
        few(f, block_##NAME, &s);                                             \
    }
