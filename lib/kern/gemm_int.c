/* SPDX-License-Identifier: MIT */
/* gemm_int.c - types as integers times scales, and their rows into panels
 *
 * The decoder of a type gives its integers if the scale of a block is replaced
 * by 1, and the scale of its minima by 0; where steps are fractions of the
 * scale, by the power of two that makes them whole. So there is one decoder of
 * a type for all forms, and here is only where the scales are. That is the
 * reference; kernels that make integers of blocks (gg_kern_ints_fn) are
 * quicker.
 */
#include "config.h"
#include "kern/gemm_int.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "dtype/block.h"
#include "kern/c/block_io.h"
#include "kern/c/fp4.h"
#include "kern/kern.h"

#include <stddef.h>
#include <string.h>

enum { MOST_BLOCK = 512 }; /* bytes of 256 steps, at most */

struct ints_type;

/* Take the scale of a block and put the unit in its place. */
typedef float take_fn(const struct ints_type *t, uint8_t *block);
/* Write the minima of a block's groups, negated, to m[i * mr] and remove them
 * from the block. */
typedef void mins_fn(const struct ints_type *t, uint8_t *block, float *m,
                     size_t mr);

/* Write the scales of a block's runs, d times integers. These integers become 1
 * in the block. */
typedef void subs_fn(const struct ints_type *t, uint8_t *block, float d,
                     float *to, size_t mr);

struct ints_type {
    unsigned form; /* form of 16-bit products; 0: none */
    /* Form of 8-bit products, with integers from -bias to top - bias. 0: the
     * 16-bit form. */
    unsigned form_8;
    take_fn *take;
    unsigned d;   /* offset of the scale in a block */
    int unit;     /* log2 of the scale that the block gets instead */
    mins_fn *min; /* NULL: the type has no minima */
    unsigned m;   /* offset of the scale of minima */
    /* offset of the integers that multiply it, or that multiply the scale */
    unsigned scales;
    /* scales of runs in 8-bit products; NULL: the block's scale */
    subs_fn *sub;
};

static float take_f16(const struct ints_type *t, uint8_t *block)
{
    const float d = gg_kern_get_half(block + t->d);
    gg_bytes_store16le(block + t->d, (uint16_t)((15 + t->unit) << 10));
    return d;
}

static float take_f32(const struct ints_type *t, uint8_t *block)
{
    const float d = gg_bytes_f32_from_bits(gg_bytes_load32le(block + t->d));
    gg_bytes_store32le(block + t->d, gg_bytes_f32_bits(1));
    return d;
}

static float take_e8m0(const struct ints_type *t, uint8_t *block)
{
    const float d = gg_kern_e8m0_half(block[t->d]);
    block[t->d] = 128; /* 1 */
    return d;
}

/* The bits of an f16 are the upper nibbles of four words. */
static float take_iq1_m(const struct ints_type *t, uint8_t *block)
{
    const unsigned one = (15u + (unsigned)t->unit) << 10;
    unsigned half = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint8_t *at = block + t->d + 2 * i + 1; /* the upper byte */
        half |= (unsigned)(*at >> 4) << 4 * i;
        *at = (uint8_t)((*at & 15) | (one >> 4 * i & 15) << 4);
    }
    return gg_dtype_f16_to_f32((uint16_t)half);
}

static float take_min(const struct ints_type *t, uint8_t *block)
{
    const float m = gg_kern_get_half(block + t->m);
    gg_bytes_store16le(block + t->m, 0);
    return m;
}

static void min_plus(const struct ints_type *t, uint8_t *block, float *m,
                     size_t mr)
{
    (void)mr;
    *m = take_min(t, block);
}

static void min_q2_k(const struct ints_type *t, uint8_t *block, float *m,
                     size_t mr)
{
    const float dmin = take_min(t, block);
    const uint8_t *s = block + t->scales;
    for (unsigned i = 0; i < 16; i++)
        m[i * mr] = -dmin * (float)(s[i] >> 4);
}

static void min_k4(const struct ints_type *t, uint8_t *block, float *m,
                   size_t mr)
{
    const float dmin = take_min(t, block);
    const uint8_t *s = block + t->scales;
    for (unsigned i = 0; i < 8; i++)
        m[i * mr] = -dmin * (float)gg_kern_k4_min(s, i);
}

static void sub_k4(const struct ints_type *t, uint8_t *block, float d,
                   float *to, size_t mr)
{
    static const uint8_t ones[12] = { 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1 };
    uint8_t *s = block + t->scales;
    for (unsigned i = 0; i < 8; i++)
        to[i * mr] = d * (float)gg_kern_k4_scale(s, i);
    memcpy(s, ones, sizeof ones);
}

static void sub_q6_k(const struct ints_type *t, uint8_t *block, float d,
                     float *to, size_t mr)
{
    uint8_t *s = block + t->scales;
    for (unsigned i = 0; i < 16; i++) {
        to[i * mr] = d * (float)(int8_t)s[i];
        s[i] = 1;
    }
}

/* The stored bits are 32 more than the scale: 33 stands for 1. */
static void sub_iq4_xs(const struct ints_type *t, uint8_t *block, float d,
                       float *to, size_t mr)
{
    uint8_t *high = block + offsetof(struct gg_block_iq4_xs, scales_h);
    uint8_t *low = block + t->scales;
    for (unsigned i = 0; i < 8; i++) {
        const int lo = low[i / 2] >> 4 * (i & 1) & 15;
        const int hi = high[i / 4] >> 2 * (i % 4) & 3;
        to[i * mr] = d * (float)((lo | hi << 4) - 32);
    }
    memset(high, 0xaa, 2);
    memset(low, 0x11, 4);
}

/* 2 s + 1 of four bits of each 8, from the lowest on. */
static void sub_nibbles(const struct ints_type *t, uint8_t *block, float d,
                        float *to, size_t mr, unsigned n)
{
    uint8_t *s = block + t->scales;
    for (unsigned i = 0; i < n; i++)
        to[i * mr] = d * (float)(2 * (s[i / 2] >> 4 * (i & 1) & 15) + 1);
    memset(s, 0, n / 2);
}

static void sub_iq2(const struct ints_type *t, uint8_t *block, float d,
                    float *to, size_t mr)
{
    sub_nibbles(t, block, d, to, mr, 16);
}

static void sub_iq3_s(const struct ints_type *t, uint8_t *block, float d,
                      float *to, size_t mr)
{
    sub_nibbles(t, block, d, to, mr, 8);
}

/* Scales of n_bits below bit top of a byte, in bytes that are step apart. */
static void sub_top(uint8_t *s, size_t step, unsigned top, unsigned n_bits,
                    float d, float *to, size_t mr)
{
    const unsigned mask = ((1u << n_bits) - 1) << (top - n_bits);
    for (unsigned i = 0; i < 8; i++, s += step) {
        to[i * mr] = d * (float)(2 * ((*s & mask) >> (top - n_bits)) + 1);
        *s = (uint8_t)(*s & ~mask);
    }
}

static void sub_iq2_xxs(const struct ints_type *t, uint8_t *block, float d,
                        float *to, size_t mr)
{
    sub_top(block + t->scales + 7, 8, 8, 4, d, to, mr);
}

static void sub_iq3_xxs(const struct ints_type *t, uint8_t *block, float d,
                        float *to, size_t mr)
{
    sub_top(block + t->scales + 64 + 3, 4, 8, 4, d, to, mr);
}

static void sub_iq1_s(const struct ints_type *t, uint8_t *block, float d,
                      float *to, size_t mr)
{
    sub_top(block + t->scales + 1, 2, 7, 3, d, to, mr);
}

/* Four times three bits of a word, below those of the block's scale. */
static void sub_iq1_m(const struct ints_type *t, uint8_t *block, float d,
                      float *to, size_t mr)
{
    for (unsigned i = 0; i < 16; i++) {
        uint8_t *at = block + t->scales + i / 4 * 2;
        const unsigned s = gg_bytes_load16le(at);
        to[i * mr] = d * (float)(2 * (s >> 3 * (i % 4) & 7) + 1);
        if (i % 4 == 3)
            gg_bytes_store16le(at, (uint16_t)(s & 0xf000));
    }
}

/* A type's row: its form is for integers at least as large as these.
 *
 *     Q8_0, Q8_K        -128 .. 127
 *     Q4_0 .. Q6_0      -32 .. 31; Q4_1, Q5_1: 0 .. 31
 *     IQ4_NL, MXFP4     -127 .. 113, -12 .. 12
 *     Q1_0, Q2_0, TQ    -1 .. 2
 *     Q2_K              15 * 3
 *     Q3_K              32 * 4
 *     Q4_K, Q5_K        63 * 15 = 945, 63 * 31 = 1953
 *     Q6_K              128 * 32 = 4096
 *     IQ4_XS            32 * 127 = 4064
 *     IQ2, in eighths   31 * 43 = 1333
 *     IQ3_XXS, quarters 31 * 62 = 1922
 *     IQ3_S             31 * 15
 *     IQ1, in eighths   15 * 9
 *
 * Of 8 bits without sub-scales: Q6_K 32, IQ4_XS 127, IQ2 43, IQ3_XXS 62, IQ3_S
 * 15, IQ1 9. */
#define ROW(ID, NAME, FORM, FORM_8, UNIT)                                     \
    [GG_DT_##ID] = { .form = GG_GEMM_##FORM,                                  \
                     .form_8 = GG_GEMM_##FORM_8,                              \
                     .take = take_f16,                                        \
                     .d = offsetof(struct gg_block_##NAME, d),                \
                     .unit = UNIT },
#define ROW_ALL(ID, NAME, FORM, FORM_8, UNIT, MIN, M, SCALES, SUB)            \
    [GG_DT_##ID] = { .form = GG_GEMM_##FORM,                                  \
                     .form_8 = GG_GEMM_##FORM_8,                              \
                     .take = take_f16,                                        \
                     .d = offsetof(struct gg_block_##NAME, d),                \
                     .unit = UNIT,                                            \
                     .min = MIN,                                              \
                     .m = offsetof(struct gg_block_##NAME, M),                \
                     .scales = offsetof(struct gg_block_##NAME, SCALES),      \
                     .sub = SUB },
#define ROW_MIN(ID, NAME, FORM, FORM_8, MIN, M, SCALES, SUB)                  \
    ROW_ALL(ID, NAME, FORM, FORM_8, 0, MIN, M, SCALES, SUB)
#define ROW_SUB(ID, NAME, FORM_8, UNIT, SUB, SCALES)                          \
    ROW_ALL(ID, NAME, I16_1, FORM_8, UNIT, NULL, d, SCALES, SUB)
/* clang-format off */
static const struct ints_type types[GG_N_DTYPES] = {
    [GG_DT_F16] = { .form_8 = GG_GEMM_BF16 },
    [GG_DT_BF16] = { .form_8 = GG_GEMM_BF16 },
    ROW(Q4_0, q4_0, I16_8, U4_8, 0)
    ROW(Q5_0, q5_0, I16_8, U5_8, 0)
    ROW(Q8_0, q8_0, I16_8, I8_8, 0)
    ROW(Q8_1, q8_1, I16_8, I8_8, 0)
    ROW(Q6_0, q6_0, I16_8, U7_8, 0)
    ROW(IQ4_NL, iq4_nl, I16_8, I8_8, 0)
    ROW(Q1_0, q1_0, I16_8, U4_8, 0)
    ROW(Q2_0, q2_0, I16_8, U4_8, 0)
    ROW_MIN(Q4_1, q4_1, I16_8_8, U4_8_8, min_plus, m, m, NULL)
    ROW_MIN(Q5_1, q5_1, I16_8_8, U5_8_8, min_plus, m, m, NULL)
    ROW_MIN(Q2_K, q2_k, I16_1_16, U6_1_16, min_q2_k, dmin, scales, NULL)
    ROW(Q3_K, q3_k, I16_1, I8_1_127, 0)
    ROW_MIN(Q4_K, q4_k, I16_1_8, U4_8_8, min_k4, dmin, scales, sub_k4)
    ROW_MIN(Q5_K, q5_k, I16_1_8, U5_8_8, min_k4, dmin, scales, sub_k4)
    ROW_SUB(Q6_K, q6_k, U6_16, 0, sub_q6_k, scales)
    ROW_SUB(IQ4_XS, iq4_xs, I8_8, 0, sub_iq4_xs, scales_l)
    ROW_SUB(IQ2_XXS, iq2_xxs, U7_8, 3, sub_iq2_xxs, qs)
    ROW_SUB(IQ2_XS, iq2_xs, U7_16, 3, sub_iq2, scales)
    ROW_SUB(IQ2_S, iq2_s, U7_16, 3, sub_iq2, scales)
    ROW_SUB(IQ3_XXS, iq3_xxs, U7_8, 2, sub_iq3_xxs, qs)
    ROW_SUB(IQ3_S, iq3_s, U5_8, 0, sub_iq3_s, scales)
    ROW_SUB(IQ1_S, iq1_s, U5_8, 3, sub_iq1_s, qh)
    ROW(TQ1_0, tq1_0, I16_1, U4_1, 0)
    ROW(TQ2_0, tq2_0, I16_1, U4_1, 0)
    [GG_DT_Q8_K] = { GG_GEMM_I16_1, GG_GEMM_I8_1, take_f32,
                     offsetof(struct gg_block_q8_k, d), 0, NULL, 0, 0, NULL },
    [GG_DT_MXFP4] = { GG_GEMM_I16_8, GG_GEMM_U5_8, take_e8m0,
                      offsetof(struct gg_block_mxfp4, e),
                      0, NULL, 0, 0, NULL },
    [GG_DT_IQ1_M] = { GG_GEMM_I16_1, GG_GEMM_U6_16, take_iq1_m,
                      offsetof(struct gg_block_iq1_m, scales),
                      3, NULL, 0, offsetof(struct gg_block_iq1_m, scales),
                      sub_iq1_m },
};
/* clang-format on */

enum gg_kern_gemm_form gg_kern_gemm_form_of(const struct gg_kern *kern,
                                            int dtype_index)
{
    const unsigned form_8 = types[dtype_index].form_8;
    unsigned form = GG_GEMM_EXACT;
    if (kern->precision != GG_PRECISION_EXACT)
        form = types[dtype_index].form;
    if (kern->precision == GG_PRECISION_INT8 && form_8 &&
        kern->gemm[form_8].tile)
        form = form_8;
    return (enum gg_kern_gemm_form)form;
}

/* A copy of len elements of a row, whole blocks, that decodes to integers;
 * scales and minima to the panel's row r. */
static void take_scales(const struct gguf_dtype_info *dt,
                        const struct ints_type *t,
                        const struct gg_kern_gemm *g, const uint8_t *src,
                        size_t len, struct gg_gemm_int_w to, size_t r,
                        uint8_t block[MOST_BLOCK])
{
    const size_t mr = g->mr, n = len / dt->block_len;
    const size_t n_scales = g->ints.n_scales * dt->block_len / 256;
    const size_t n_mins = g->ints.n_mins * dt->block_len / 256;
    const float unit = 1.0f / (float)(1 << t->unit);
    float *d = to.d + r, *m = to.m + r;
    memcpy(block, src, n * dt->block_size);
    for (size_t b = 0; b < n; b++, m += n_mins * mr) {
        uint8_t *at = block + b * dt->block_size;
        const float scale = t->take(t, at) * unit;
        if (t->min)
            t->min(t, at, m, mr);
        if (t->sub && g->ints.width == 1)
            t->sub(t, at, scale, d, mr);
        else
            for (size_t i = 0; i < n_scales; i++)
                d[i * mr] = scale;
        d += n_scales * mr;
    }
}

/* Scales and minima are 0 where a block has not all its steps. */
static void clear_last(const struct gg_kern_gemm *g, void *panel, size_t k)
{
    const struct gg_gemm_int_w last =
        gg_gemm_int_w_at(g, panel, k / GG_GEMM_INT_STEPS);
    if (k % GG_GEMM_INT_STEPS)
        memset(last.d, 0,
               (g->ints.n_scales + g->ints.n_mins) * g->mr * sizeof(float));
}

/* The kernels that need no floats, by the bytes of an integer. */
static gg_kern_ints_fn *const ints_256[GG_N_DTYPES][3] = {
#define X(ID, NAME, HALVES, FOLDED_8, FOLDED_16)                              \
    [GG_DT_##ID] = { [1] = GG_256(gg_kern_ints8_##NAME##_256),                \
                     [2] = GG_256(gg_kern_ints16_##NAME##_256) },
    GG_KERN_INTS(X)
#undef X
};

/* Source of a panel's rows, and memory for decoding. */
struct source {
    const struct gguf_dtype_info *dt;
    const struct ints_type *type;
    gg_kern_decode_fn *decode;
    gg_kern_ints_fn *ints; /* NULL: rows go through floats */
    float *buf;
};

static struct source source_of(const struct gg_kern *kern,
                               const struct gg_kern_gemm *g, int dtype,
                               float *buf)
{
    struct source s = { .dt = gg_dtype_by_index(dtype),
                        .type = &types[dtype],
                        .decode = kern->codec[dtype].decode,
                        .buf = buf };
    if (kern->cpu & GG_CPU_256 && g->pack_groups)
        s.ints = ints_256[dtype][g->ints.width];
    return s;
}

/* Rows of one panel's block as integers and scales at once. */
static void pack_direct(const struct gg_kern_gemm *g, const struct source *s,
                        const uint8_t *src, size_t src_stride, size_t first,
                        size_t n, size_t len, struct gg_gemm_int_w to)
{
    const size_t mr = g->mr, row = GG_GEMM_INT_STEPS * g->ints.width;
    const size_t stride = row + 32, used = len * g->ints.width;
    const size_t n_scales = GG_MAX(g->ints.n_scales * len / 256, 1);
    const size_t n_mins = g->ints.n_mins * len / 256;
    const int bias = g->ints.bias;
    uint8_t *q = (uint8_t *)s->buf;
    for (size_t r = 0; r < n; r++, src += src_stride, q += stride) {
        float d[GG_GEMM_INT_STEPS / 16], m[GG_GEMM_INT_STEPS / 16];
        gg_kern_gemm_prefetch(src, len / s->dt->block_len * s->dt->block_size);
        s->ints(src, len, bias, q, d, m);
        memset(q + used, bias, row - used);
        for (size_t i = 0; i < n_scales; i++)
            to.d[i * mr + first + r] = d[i];
        for (size_t i = 0; i < n_mins; i++)
            to.m[i * mr + first + r] = m[i];
    }
    g->pack_groups(g, to.q, first, (const int32_t *)(const void *)s->buf,
                   stride / 4, n, row / 4);
}

/* Pack rows from copies whose scale is 1. All copies are made before the first
 * is decoded: loading bytes right after they were stored in another size is
 * slow. */
static void pack_copies(const struct gg_kern_gemm *g, const struct source *s,
                        const uint8_t *src, size_t src_stride, size_t first,
                        size_t n, size_t len, struct gg_gemm_int_w to)
{
    enum { STRIDE = GG_GEMM_BUF_STRIDE };
    uint8_t block[GG_GEMM_BUF_ROWS][MOST_BLOCK];
    for (size_t r = 0; r < n; r++, src += src_stride) {
        gg_kern_gemm_prefetch(src, len / s->dt->block_len * s->dt->block_size);
        take_scales(s->dt, s->type, g, src, len, to, first + r, block[r]);
    }
    for (size_t r = 0; r < n; r++)
        s->decode(block[r], s->buf + r * STRIDE, len);
    g->pack_w(g, to.q, first, s->buf, STRIDE, n, len);
}

static void pack_some(const struct gg_kern *kern, const struct gg_kern_gemm *g,
                      const struct gg_kern_gemm_rows *w, size_t first,
                      size_t n, size_t k, void *panel, float *buf)
{
    const struct source s = source_of(kern, g, w->dtype_index, buf);
    if (!first)
        clear_last(g, panel, k);
    for (size_t p = 0; p < k; p += GG_GEMM_INT_STEPS) {
        const size_t len = GG_MIN(k - p, (size_t)GG_GEMM_INT_STEPS);
        const struct gg_gemm_int_w to =
            gg_gemm_int_w_at(g, panel, p / GG_GEMM_INT_STEPS);
        const uint8_t *src = (const uint8_t *)w->at + (w->first + p) /
                                                          s.dt->block_len *
                                                          s.dt->block_size;
        if (s.ints)
            pack_direct(g, &s, src, w->stride, first, n, len, to);
        else
            pack_copies(g, &s, src, w->stride, first, n, len, to);
    }
}

void gg_kern_gemm_pack_ints(const struct gg_kern *kern,
                            const struct gg_kern_gemm *g,
                            const struct gg_kern_gemm_rows *w, size_t n_rows,
                            size_t k, void *panels, void *buf)
{
    gg_kern_gemm_pack_panels(kern, g, w, n_rows, k, panels, buf, pack_some);
}
