/* few_i8_vnni512.c - products of bytes straight from blocks, of few columns
 *
 * The tile of gemm_int_impl.h without its panel of weights: rows are lanes
 * here, too, their bytes are made of blocks in registers, and what is computed
 * in f32 is the same in the same order.
 */
#include "config.h"
#include "base/compiler.h"
#include "dtype/iq_code.h"
#include "kern/gemm_i8.h"
#include "kern/x86/dp.h"
#include "kern/x86/rows_512.h"

enum {
    NR = GG_GEMM_NR_INT512,
    QUADS = GG_GEMM_I8_QUADS,
    RUN_QUADS = 32 / 4, /* of steps that share a scale of activations */
    AHEAD = 1024        /* bytes of each row that are asked for */
};

/* A block of activations. */
struct acts {
    const int32_t *quads, *begin;
    const float *s, *sum;
};

static GG_ALWAYS_INLINE struct acts acts_at(const int32_t *x,
                                            unsigned n_scales)
{
    const int32_t *begin = x + QUADS * NR;
    const float *s =
        (const float *)(const void *)(begin + GG_GEMM_I8_RUNS(n_scales) * NR);
    return (struct acts){ x, begin, s, s + GG_GEMM_I8_SCALES * NR };
}

/* The integer sums of run i, n quads long. */
static GG_ALWAYS_INLINE void dots(__m512i acc[NR], const __m512i *q,
                                  const struct acts *x, size_t i, size_t n,
                                  int n_cols)
{
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        acc[j] = _mm512_set1_epi32(x->begin[i * NR + (size_t)j]);
    GG_UNROLL
    for (size_t t = 0; t < n; t++) {
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            const __m512i b =
                _mm512_set1_epi32(x->quads[(i * n + t) * NR + (size_t)j]);
            GG_X86_DPBUSD_512(acc[j], q[t], b);
        }
    }
}

/* A run of 32 steps with a scale of its own: sums of the form 8_... */
static GG_ALWAYS_INLINE void add_run(__m512 sums[NR], const __m512i *q,
                                     const struct acts *x, size_t i, __m512 d,
                                     int n_cols)
{
    __m512i acc[NR];
    dots(acc, q, x, i, RUN_QUADS, n_cols);
    GG_UNROLL
    for (int j = 0; j < n_cols; j++) {
        const __m512 b = _mm512_set1_ps(x->s[i * NR + (size_t)j]);
        sums[j] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[j]),
                                  _mm512_mul_ps(d, b), sums[j]);
    }
}

/* Minimum i, which is to be taken away. */
static GG_ALWAYS_INLINE void add_min(__m512 sums[NR], const struct acts *x,
                                     size_t i, __m512 min, int n_cols)
{
    const __m512 m = _mm512_xor_ps(min, _mm512_set1_ps(-0.0f));
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        sums[j] = _mm512_fmadd_ps(
            m, _mm512_set1_ps(x->sum[i * NR + (size_t)j]), sums[j]);
}

static GG_ALWAYS_INLINE __m512i low_nibbles(__m512i v)
{
    return _mm512_and_si512(v, _mm512_set1_epi8(15));
}

static GG_ALWAYS_INLINE __m512i high_nibbles(__m512i v)
{
    return low_nibbles(_mm512_srli_epi32(v, 4));
}

/* n steps, at most 256, of each row by a block of activations. */
typedef void block_fn(__m512 sums[NR], const struct rows *r, const int32_t *x,
                      size_t n, int n_cols);

/* ---- blocks of 32 ---- */

static GG_ALWAYS_INLINE void block_q4_0(__m512 sums[NR], const struct rows *r,
                                        const int32_t *xb, size_t n,
                                        int n_cols)
{
    const struct acts x = acts_at(xb, 8);
    struct rows at = *r;
    for (size_t i = 0; i < n / 32;
         i++, at.at += sizeof(struct gg_block_q4_0)) {
        __m512i v[4], q[RUN_QUADS];
        take(&at, offsetof(struct gg_block_q4_0, qs), v);
        GG_UNROLL
        for (int k = 0; k < 4; k++) {
            q[k] = low_nibbles(v[k]);
            q[k + 4] = high_nibbles(v[k]);
        }
        add_run(sums, q, &x, i, take_half(&at, 0), n_cols);
    }
}

static GG_ALWAYS_INLINE __m512i iq4_table(void)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    return _mm512_xor_si512(
        _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)level)),
        _mm512_set1_epi8((char)128));
}

static GG_ALWAYS_INLINE void levels_of(__m512i q[RUN_QUADS],
                                       const __m512i v[4], __m512i table)
{
    GG_UNROLL
    for (int k = 0; k < 4; k++) {
        q[k] = _mm512_shuffle_epi8(table, low_nibbles(v[k]));
        q[k + 4] = _mm512_shuffle_epi8(table, high_nibbles(v[k]));
    }
}

static GG_ALWAYS_INLINE void block_iq4_nl(__m512 sums[NR],
                                          const struct rows *r,
                                          const int32_t *xb, size_t n,
                                          int n_cols)
{
    const struct acts x = acts_at(xb, 8);
    const __m512i table = iq4_table();
    struct rows at = *r;
    for (size_t i = 0; i < n / 32;
         i++, at.at += sizeof(struct gg_block_iq4_nl)) {
        __m512i v[4], q[RUN_QUADS];
        take(&at, offsetof(struct gg_block_iq4_nl, qs), v);
        levels_of(q, v, table);
        add_run(sums, q, &x, i, take_half(&at, 0), n_cols);
    }
}

static GG_ALWAYS_INLINE void block_q8_0(__m512 sums[NR], const struct rows *r,
                                        const int32_t *xb, size_t n,
                                        int n_cols)
{
    const struct acts x = acts_at(xb, 8);
    struct rows at = *r;
    for (size_t i = 0; i < n / 32;
         i++, at.at += sizeof(struct gg_block_q8_0)) {
        __m512i q[RUN_QUADS];
        take(&at, offsetof(struct gg_block_q8_0, qs), q);
        take(&at, offsetof(struct gg_block_q8_0, qs) + 16, q + 4);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = _mm512_xor_si512(q[k], _mm512_set1_epi8((char)128));
        add_run(sums, q, &x, i, take_half(&at, 0), n_cols);
    }
}

/* ---- blocks of 256 ---- */

static GG_ALWAYS_INLINE void block_q4_k(__m512 sums[NR], const struct rows *r,
                                        const int32_t *xb, size_t n,
                                        int n_cols)
{
    const struct acts x = acts_at(xb, 8);
    __m512 scale[8], min[8];
    (void)n;
    take_k4(r, scale, min);
    for (size_t s = 0; s < 8; s += 2) {
        __m512i v[RUN_QUADS], q[RUN_QUADS];
        take(r, offsetof(struct gg_block_q4_k, qs) + 16 * s, v);
        take(r, offsetof(struct gg_block_q4_k, qs) + 16 * s + 16, v + 4);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = low_nibbles(v[k]);
        add_run(sums, q, &x, s, scale[s], n_cols);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = high_nibbles(v[k]);
        add_run(sums, q, &x, s + 1, scale[s + 1], n_cols);
    }
    for (size_t s = 0; s < 8; s++)
        add_min(sums, &x, s, min[s], n_cols);
}

/* Bit s of each byte, moved to where a fifth bit is. */
static GG_ALWAYS_INLINE __m512i fifth_bits(__m512i high, unsigned s)
{
    const __m512i bit = _mm512_slli_epi32(_mm512_srli_epi32(high, s), 4);
    return _mm512_and_si512(bit, _mm512_set1_epi8(16));
}

static GG_ALWAYS_INLINE void block_q5_k(__m512 sums[NR], const struct rows *r,
                                        const int32_t *xb, size_t n,
                                        int n_cols)
{
    const struct acts x = acts_at(xb, 8);
    __m512 scale[8], min[8];
    __m512i high[RUN_QUADS];
    (void)n;
    take_k4(r, scale, min);
    take(r, offsetof(struct gg_block_q5_k, qh), high);
    take(r, offsetof(struct gg_block_q5_k, qh) + 16, high + 4);
    for (unsigned s = 0; s < 8; s += 2) {
        __m512i v[RUN_QUADS], q[RUN_QUADS];
        take(r, offsetof(struct gg_block_q5_k, qs) + 16 * s, v);
        take(r, offsetof(struct gg_block_q5_k, qs) + 16 * s + 16, v + 4);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = _mm512_or_si512(low_nibbles(v[k]), fifth_bits(high[k], s));
        add_run(sums, q, &x, s, scale[s], n_cols);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = _mm512_or_si512(high_nibbles(v[k]),
                                   fifth_bits(high[k], s + 1));
        add_run(sums, q, &x, s + 1, scale[s + 1], n_cols);
    }
    for (size_t s = 0; s < 8; s++)
        add_min(sums, &x, s, min[s], n_cols);
}

static GG_ALWAYS_INLINE void block_iq4_xs(__m512 sums[NR],
                                          const struct rows *r,
                                          const int32_t *xb, size_t n,
                                          int n_cols)
{
    const struct acts x = acts_at(xb, 8);
    const __m512i table = iq4_table();
    __m512i v[4], q[RUN_QUADS];
    __m512 scale[8];
    (void)n;
    take_iq4_xs(r, scale);
    for (size_t s = 0; s < 8; s++) {
        take(r, offsetof(struct gg_block_iq4_xs, qs) + 16 * s, v);
        levels_of(q, v, table);
        add_run(sums, q, &x, s, scale[s], n_cols);
    }
}

/* Runs of 16 steps; two share a scale of activations. */
static GG_ALWAYS_INLINE void block_q6_k(__m512 sums[NR], const struct rows *r,
                                        const int32_t *xb, size_t n,
                                        int n_cols)
{
    const struct acts x = acts_at(xb, 16);
    const __m512i two = _mm512_set1_epi8(0x30);
    const __m512 d = take_half(r, offsetof(struct gg_block_q6_k, d));
    __m512i scale[4], low[2][RUN_QUADS], up[RUN_QUADS], q[4], acc[NR];
    (void)n;
    take(r, offsetof(struct gg_block_q6_k, scales), scale);
    for (size_t h = 0; h < 2; h++) {
        const size_t qh = offsetof(struct gg_block_q6_k, qh) + 32 * h;
        for (size_t k = 0; k < 4; k++) /* 16 bytes each */
            take(r, 64 * h + 16 * k, low[k / 2] + k % 2 * 4);
        take(r, qh, up);
        take(r, qh + 16, up + 4);
        GG_UNROLL
        for (size_t k = 0; k < 4; k++) {
            __m512 part[NR];
            GG_UNROLL
            for (size_t p = 0; p < 2; p++) {
                const __m512 s =
                    _mm512_mul_ps(d, byte_ps(scale[2 * h + k / 2],
                                             (int)(2 * (k % 2) + p), 1));
                GG_UNROLL
                for (size_t i = 0; i < 4; i++) {
                    const __m512i l = low[k % 2][4 * p + i];
                    __m512i u = up[4 * p + i];
                    u = k < 2 ? _mm512_slli_epi32(u, (unsigned)(4 - 2 * k))
                              : _mm512_srli_epi32(u, (unsigned)(2 * k - 4));
                    q[i] = _mm512_or_si512(k < 2 ? low_nibbles(l)
                                                 : high_nibbles(l),
                                           _mm512_and_si512(u, two));
                }
                dots(acc, q, &x, 8 * h + 2 * k + p, 4, n_cols);
                GG_UNROLL
                for (int j = 0; j < n_cols; j++)
                    part[j] =
                        _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[j]), s,
                                        p ? part[j] : _mm512_setzero_ps());
            }
            GG_UNROLL
            for (int j = 0; j < n_cols; j++)
                sums[j] = _mm512_fmadd_ps(
                    part[j], _mm512_set1_ps(x.s[(4 * h + k) * NR + (size_t)j]),
                    sums[j]);
        }
    }
}

/* ---- rows ---- */

/* Rows are far apart, and of each a short part is read at a time: what follows,
 * or belongs to the next rows, is asked for. */
static void ask(const struct gg_kern_few *f, const struct rows *r, size_t left,
                size_t size)
{
    const size_t ahead = left > AHEAD ? AHEAD : AHEAD + f->jump;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t at = 0; at < size; at += 64)
            GG_PREFETCH(r->at + i * r->stride + ahead + at);
}

static GG_ALWAYS_INLINE void few(const struct gg_kern_few *f, int n_cols,
                                 block_fn *block, size_t size, /* of 256 */
                                 size_t n_scales, size_t n_mins)
{
    struct rows r = { f->w, f->w_stride };
    const int32_t *x = f->x;
    __m512 sums[NR];
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        sums[j] = _mm512_setzero_ps();
    for (size_t k = f->k; k; r.at += size) {
        const size_t n = GG_MIN(k, (size_t)GG_GEMM_INT_STEPS);
        ask(f, &r, k / 32 * (size / 8), size);
        block(sums, &r, x, n, n_cols);
        x += GG_GEMM_I8_X_BLOCK(NR, n_scales, n_mins) / sizeof *x;
        k -= n;
        if (n < GG_GEMM_INT_STEPS) { /* a panel's block goes on with zeros */
            GG_UNROLL
            for (int j = 0; j < n_cols; j++)
                sums[j] = _mm512_add_ps(sums[j], _mm512_setzero_ps());
        }
    }
    GG_UNROLL
    for (int j = 0; j < n_cols; j++) {
        float *y = f->y + (size_t)j * f->y_stride;
        if ((unsigned)j >= f->n_cols)
            continue;
        if (f->add)
            sums[j] = _mm512_add_ps(_mm512_loadu_ps(y), sums[j]);
        _mm512_storeu_ps(y, sums[j]);
    }
}

/* As many columns as there is code for: pack_x or zeros fill the panel. */
#define FEW(NAME, SIZE, SCALES, MINS)                                         \
    void gg_kern_few_##NAME##_vnni512(const struct gg_kern_few *f)            \
    {                                                                         \
        if (f->n_cols <= 1)                                                   \
            few(f, 1, block_##NAME, SIZE, SCALES, MINS);                      \
        else if (f->n_cols <= 2)                                              \
            few(f, 2, block_##NAME, SIZE, SCALES, MINS);                      \
        else if (f->n_cols <= 4)                                              \
            few(f, 4, block_##NAME, SIZE, SCALES, MINS);                      \
        else                                                                  \
            few(f, 6, block_##NAME, SIZE, SCALES, MINS);                      \
    }

FEW(q4_0, 8 * sizeof(struct gg_block_q4_0), 8, 0)
FEW(iq4_nl, 8 * sizeof(struct gg_block_iq4_nl), 8, 0)
FEW(q8_0, 8 * sizeof(struct gg_block_q8_0), 8, 0)
FEW(q4_k, sizeof(struct gg_block_q4_k), 8, 8)
FEW(q5_k, sizeof(struct gg_block_q5_k), 8, 8)
FEW(q6_k, sizeof(struct gg_block_q6_k), 16, 0)
FEW(iq4_xs, sizeof(struct gg_block_iq4_xs), 8, 0)
