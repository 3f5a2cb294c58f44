/* SPDX-License-Identifier: MIT */
/* few_impl.h - rows by columns, block by block: after few_blocks.h */

/* Code for each number of columns takes minutes to compile with checks. */
#ifdef GGUF_INSTRUMENTED
#define ONE_FOR_ALL 1
#else
#define ONE_FOR_ALL 0
#endif

/* Up to end: what take() has not asked for of a block's part. */
static GG_ALWAYS_INLINE void ask_rest(const struct rows *r, uintptr_t end)
{
    while (*r->ahead < end)
        ask(r, 64);
    *r->ahead = end;
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
                                       struct rows r, float *y, int n_cols,
                                       block_fn *block,
                                       const struct shape *type)
{
    const int32_t *x = f->x;
    VF sum[COLS], part[COLS];
    VI total[COLS];
    struct acts acts;
    struct out o = { sum, part, total, &acts, n_cols, type->bias, type->bits };
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        o.sum[j] = vf_zero();
    for (size_t k = f->k; k; r.at += type->size) {
        const size_t n = GG_MIN(k, (size_t)GG_GEMM_INT_STEPS);
        const uintptr_t end = *r.ahead + ROWS * type->size;
        acts_at(&acts, x, (unsigned)type->n_scales);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            o.part[j] = vf_zero();
            o.total[j] = vi_zero();
        }
        block(&o, &r, n);
        ask_rest(&r, end);
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
    uintptr_t ahead = (uintptr_t)f->next;
    for (size_t i = 0; i < GG_GEMM_PANEL_ROWS; i += ROWS) {
        const struct rows r = { (const uint8_t *)f->w + i * f->w_stride,
                                f->w_stride, &ahead };
        some_rows(f, r, f->y + i, n_cols, block, type);
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
