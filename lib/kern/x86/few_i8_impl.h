/* few_i8_impl.h - products of bytes straight from blocks, of few columns
 *
 * The tile of gemm_int_impl.h without its panel of weights: rows are lanes
 * here, too, their bytes are made of blocks in registers, and what is computed
 * in f32 is the same in the same order.
 *
 * Included once by the file of a level, which has included gemm_int_256.h and
 * rows_256.h, or those of 512, and defined
 *
 *     LEVEL             the suffix of its functions
 *     VI_DP             as in gemm_int_impl.h, or VI_MUL, VI_ADD and VI_WIDEN;
 *                       those without VI_DP have types of up to 7 bits alone
 *     VI_SCALE(c, a, b) c += the sums of two products of 16 bits
 */
#include "dtype/iq_code.h"

#include <stddef.h>

enum {
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

/* 32 bits of a column, in all lanes. */
static GG_ALWAYS_INLINE VI all_rows(const int32_t *x)
{
    return vi_words(*x);
}

/* The sums of products of n quads of the rows with those of columns at x, as
 * they are added before they are 32 bits wide: of 16 bits without VNNI. */
#ifdef VI_DP
static GG_ALWAYS_INLINE void multiply(VI to[NR], const VI *q, const int32_t *x,
                                      size_t n, int n_cols)
{
    GG_UNROLL
    for (size_t t = 0; t < n; t++) {
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            const VI b = all_rows(x + t * NR + (size_t)j);
            VI_DP(to[j], q[t], b);
        }
    }
}
#else
static GG_ALWAYS_INLINE void multiply(VI to[NR], const VI *q, const int32_t *x,
                                      size_t n, int n_cols)
{
    GG_UNROLL
    for (size_t t = 0; t < n; t++) {
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            const VI b = all_rows(x + t * NR + (size_t)j);
            if (t == 0)
                VI_MUL(to[j], q[t], b);
            else
                VI_ADD(to[j], q[t], b);
        }
    }
}
#endif

/* The integer sums of run i, n quads long, of weights of so many bits. */
static GG_ALWAYS_INLINE void dots(VI acc[NR], const VI *q,
                                  const struct acts *x, size_t i, size_t n,
                                  unsigned bits, int n_cols)
{
    const int32_t *at = x->quads + i * n * NR;
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        acc[j] = all_rows(x->begin + i * NR + (size_t)j);
#ifdef VI_DP
    (void)bits;
    multiply(acc, q, at, n, n_cols);
#else
    const size_t some = GG_MIN(n, (size_t)GG_GEMM_I8_SUMS(bits));
    GG_UNROLL
    for (size_t t = 0; t < n; t += some) {
        VI part[NR];
        multiply(part, q + t, at + t * NR, some, n_cols);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++)
            VI_WIDEN(acc[j], part[j]);
    }
#endif
}

/* 16 steps from quad t on, whose sums are multiplied by the rows' sub-scales,
 * integers in 16 bits, and added to acc.
 *
 * These sums have to fit into 16 bits, and do: of Q2_K they are at most 16 * 3
 * * 127 = 6096. Of Q3_K bytes are up to 7, and what the sums begin with takes
 * away what 4 in each adds: at most 16 * 4 * 127 = 8128 in the end, and 16 * 7
 * * 127 + 8128 = 22352 on the way. A run of 32 adds up to 2 * 15 * 6096 or
 * 2 * 32 * 8128, below 2^20. */
static GG_ALWAYS_INLINE void dots_scaled(VI acc[NR], const VI q[4],
                                         const int32_t *x, VI scale,
                                         const int32_t *begin, int n_cols)
{
    VI part[NR];
#ifdef VI_DP
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        part[j] = begin ? all_rows(begin + j) : vi_zero();
#else
    (void)begin;
#endif
    multiply(part, q, x, 4, n_cols);
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        VI_SCALE(acc[j], part[j], scale);
}

/* A run of 32 steps with a scale of its own: sums of the form 8_... */
static GG_ALWAYS_INLINE void add_run(VF sums[NR], const VI *q,
                                     const struct acts *x, size_t i, VF d,
                                     unsigned bits, int n_cols)
{
    VI acc[NR];
    dots(acc, q, x, i, RUN_QUADS, bits, n_cols);
    GG_UNROLL
    for (int j = 0; j < n_cols; j++) {
        const VF b = vf_all(x->s + i * NR + (size_t)j);
        sums[j] = vf_fma(vf_of(acc[j]), vf_mul(d, b), sums[j]);
    }
}

/* One of a block that has one scale: of the form 1_... */
static GG_ALWAYS_INLINE void add_part(VF part[NR], const VI acc[NR],
                                      const struct acts *x, size_t i,
                                      int n_cols)
{
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        part[j] =
            vf_fma(vf_of(acc[j]), vf_all(x->s + i * NR + (size_t)j), part[j]);
}

/* Minimum i, which is to be taken away. */
static GG_ALWAYS_INLINE void add_min(VF sums[NR], const struct acts *x,
                                     size_t i, VF min, int n_cols)
{
    const VF m = vf_neg(min);
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        sums[j] = vf_fma(m, vf_all(x->sum + i * NR + (size_t)j), sums[j]);
}

static GG_ALWAYS_INLINE VI low_nibbles(VI v)
{
    return vi_and(v, vi_bytes(15));
}

static GG_ALWAYS_INLINE VI high_nibbles(VI v)
{
    return low_nibbles(vi_srl(v, 4));
}

/* n steps, at most 256, of each row by a block of activations. */
typedef void block_fn(VF sums[NR], const struct rows *r, const int32_t *x,
                      size_t n, int n_cols);

/* ---- blocks of 32 ---- */

static GG_ALWAYS_INLINE void block_q4_0(VF sums[NR], const struct rows *r,
                                        const int32_t *xb, size_t n,
                                        int n_cols)
{
    const struct acts x = acts_at(xb, 8);
    struct rows at = *r;
    for (size_t i = 0; i < n / 32;
         i++, at.at += sizeof(struct gg_block_q4_0)) {
        VI v[4], q[RUN_QUADS];
        take(&at, offsetof(struct gg_block_q4_0, qs), v);
        GG_UNROLL
        for (int k = 0; k < 4; k++) {
            q[k] = low_nibbles(v[k]);
            q[k + 4] = high_nibbles(v[k]);
        }
        add_run(sums, q, &x, i, take_half(&at, 0), 4, n_cols);
    }
}

#ifdef VI_DP
static GG_ALWAYS_INLINE VI iq4_table(void)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    return vi_xor(vi_sixteen(level), vi_bytes(128));
}

static GG_ALWAYS_INLINE void levels_of(VI q[RUN_QUADS], const VI v[4],
                                       VI table)
{
    GG_UNROLL
    for (int k = 0; k < 4; k++) {
        q[k] = vi_lookup(table, low_nibbles(v[k]));
        q[k + 4] = vi_lookup(table, high_nibbles(v[k]));
    }
}

static GG_ALWAYS_INLINE void block_iq4_nl(VF sums[NR], const struct rows *r,
                                          const int32_t *xb, size_t n,
                                          int n_cols)
{
    const struct acts x = acts_at(xb, 8);
    const VI table = iq4_table();
    struct rows at = *r;
    for (size_t i = 0; i < n / 32;
         i++, at.at += sizeof(struct gg_block_iq4_nl)) {
        VI v[4], q[RUN_QUADS];
        take(&at, offsetof(struct gg_block_iq4_nl, qs), v);
        levels_of(q, v, table);
        add_run(sums, q, &x, i, take_half(&at, 0), 8, n_cols);
    }
}

static GG_ALWAYS_INLINE void block_q8_0(VF sums[NR], const struct rows *r,
                                        const int32_t *xb, size_t n,
                                        int n_cols)
{
    const struct acts x = acts_at(xb, 8);
    struct rows at = *r;
    for (size_t i = 0; i < n / 32;
         i++, at.at += sizeof(struct gg_block_q8_0)) {
        VI q[RUN_QUADS];
        take(&at, offsetof(struct gg_block_q8_0, qs), q);
        take(&at, offsetof(struct gg_block_q8_0, qs) + 16, q + 4);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = vi_xor(q[k], vi_bytes(128));
        add_run(sums, q, &x, i, take_half(&at, 0), 8, n_cols);
    }
}
#endif

/* ---- blocks of 256 ---- */

static GG_ALWAYS_INLINE void block_q4_k(VF sums[NR], const struct rows *r,
                                        const int32_t *xb, size_t n,
                                        int n_cols)
{
    const struct acts x = acts_at(xb, 8);
    VF scale[8], min[8];
    (void)n;
    take_k4(r, scale, min);
    for (size_t s = 0; s < 8; s += 2) {
        VI v[RUN_QUADS], q[RUN_QUADS];
        take(r, offsetof(struct gg_block_q4_k, qs) + 16 * s, v);
        take(r, offsetof(struct gg_block_q4_k, qs) + 16 * s + 16, v + 4);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = low_nibbles(v[k]);
        add_run(sums, q, &x, s, scale[s], 4, n_cols);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = high_nibbles(v[k]);
        add_run(sums, q, &x, s + 1, scale[s + 1], 4, n_cols);
    }
    for (size_t s = 0; s < 8; s++)
        add_min(sums, &x, s, min[s], n_cols);
}

/* Bit s of each byte, moved to where a fifth bit is. */
static GG_ALWAYS_INLINE VI fifth_bits(VI high, unsigned s)
{
    return vi_and(vi_sll(vi_srl(high, s), 4), vi_bytes(16));
}

static GG_ALWAYS_INLINE void block_q5_k(VF sums[NR], const struct rows *r,
                                        const int32_t *xb, size_t n,
                                        int n_cols)
{
    const struct acts x = acts_at(xb, 8);
    VF scale[8], min[8];
    VI high[RUN_QUADS];
    (void)n;
    take_k4(r, scale, min);
    take(r, offsetof(struct gg_block_q5_k, qh), high);
    take(r, offsetof(struct gg_block_q5_k, qh) + 16, high + 4);
    for (unsigned s = 0; s < 8; s += 2) {
        VI v[RUN_QUADS], q[RUN_QUADS];
        take(r, offsetof(struct gg_block_q5_k, qs) + 16 * s, v);
        take(r, offsetof(struct gg_block_q5_k, qs) + 16 * s + 16, v + 4);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = vi_or(low_nibbles(v[k]), fifth_bits(high[k], s));
        add_run(sums, q, &x, s, scale[s], 5, n_cols);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = vi_or(high_nibbles(v[k]), fifth_bits(high[k], s + 1));
        add_run(sums, q, &x, s + 1, scale[s + 1], 5, n_cols);
    }
    for (size_t s = 0; s < 8; s++)
        add_min(sums, &x, s, min[s], n_cols);
}

#ifdef VI_DP
static GG_ALWAYS_INLINE void block_iq4_xs(VF sums[NR], const struct rows *r,
                                          const int32_t *xb, size_t n,
                                          int n_cols)
{
    const struct acts x = acts_at(xb, 8);
    const VI table = iq4_table();
    VI v[4], q[RUN_QUADS];
    VF scale[8];
    (void)n;
    take_iq4_xs(r, scale);
    for (size_t s = 0; s < 8; s++) {
        take(r, offsetof(struct gg_block_iq4_xs, qs) + 16 * s, v);
        levels_of(q, v, table);
        add_run(sums, q, &x, s, scale[s], 8, n_cols);
    }
}
#endif

/* Runs of 16 steps; two share a scale of activations. */
static GG_ALWAYS_INLINE void block_q6_k(VF sums[NR], const struct rows *r,
                                        const int32_t *xb, size_t n,
                                        int n_cols)
{
    const struct acts x = acts_at(xb, 16);
    const VI two = vi_bytes(0x30);
    const VF d = take_half(r, offsetof(struct gg_block_q6_k, d));
    VI scale[4], low[2][RUN_QUADS], up[RUN_QUADS], q[4], acc[NR];
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
            VF part[NR];
            GG_UNROLL
            for (size_t p = 0; p < 2; p++) {
                const VF s = vf_mul(d, byte_ps(scale[2 * h + k / 2],
                                               (int)(2 * (k % 2) + p), 1));
                GG_UNROLL
                for (size_t i = 0; i < 4; i++) {
                    const VI l = low[k % 2][4 * p + i];
                    VI u = up[4 * p + i];
                    u = k < 2 ? vi_sll(u, (unsigned)(4 - 2 * k))
                              : vi_srl(u, (unsigned)(2 * k - 4));
                    q[i] = vi_or(k < 2 ? low_nibbles(l) : high_nibbles(l),
                                 vi_and(u, two));
                }
                dots(acc, q, &x, 8 * h + 2 * k + p, 4, 6, n_cols);
                GG_UNROLL
                for (int j = 0; j < n_cols; j++)
                    part[j] =
                        vf_fma(vf_of(acc[j]), s, p ? part[j] : vf_zero());
            }
            GG_UNROLL
            for (int j = 0; j < n_cols; j++)
                sums[j] =
                    vf_fma(part[j], vf_all(x.s + (4 * h + k) * NR + (size_t)j),
                           sums[j]);
        }
    }
}

/* A sub-scale as dots_scaled takes it: byte b of each lane, or its low nibble,
 * as 16 bits; the other half is 0 where sums are of 32 bits. */
static GG_ALWAYS_INLINE VI sub_nibble(VI v, int b)
{
    const VI low = vi_and(vi_srl(v, (unsigned)(8 * b)), vi_words(15));
#ifdef VI_DP
    return low;
#else
    return vi_or(low, vi_sll(low, 16));
#endif
}

/* Sub-scales stay out of the bytes: integers are the same when sums of 16 steps
 * are multiplied by them, which are a quarter as many. */
static GG_ALWAYS_INLINE void block_q2_k(VF sums[NR], const struct rows *r,
                                        const int32_t *xb, size_t n,
                                        int n_cols)
{
    const struct acts x = acts_at(xb, 1);
    const VF dmin = take_half(r, offsetof(struct gg_block_q2_k, dmin));
    const VF d = take_half(r, offsetof(struct gg_block_q2_k, d));
    VI scale[4], v[RUN_QUADS];
    VF part[NR] = { vf_zero() };
    (void)n;
    take(r, offsetof(struct gg_block_q2_k, scales), scale);
    for (size_t h = 0; h < 2; h++) {
        take(r, offsetof(struct gg_block_q2_k, qs) + 32 * h, v);
        take(r, offsetof(struct gg_block_q2_k, qs) + 32 * h + 16, v + 4);
        GG_UNROLL
        for (size_t k = 0; k < 4; k++) {
            const size_t run = 4 * h + k;
            VI acc[NR] = { vi_zero() };
            GG_UNROLL
            for (size_t p = 0; p < 2; p++) {
                VI q[4];
                GG_UNROLL
                for (size_t i = 0; i < 4; i++)
                    q[i] = vi_and(vi_srl(v[4 * p + i], (unsigned)(2 * k)),
                                  vi_bytes(3));
                dots_scaled(
                    acc, q, x.quads + (2 * run + p) * 4 * NR,
                    sub_nibble(scale[2 * h + k / 2], (int)(2 * (k % 2) + p)),
                    NULL, n_cols);
            }
            add_part(part, acc, &x, run, n_cols);
        }
    }
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        sums[j] = vf_fma(part[j], d, sums[j]);
    GG_UNROLL
    for (size_t i = 0; i < 16; i++)
        add_min(
            sums, &x, i,
            vf_mul(dmin, byte_ps(high_nibbles(scale[i / 4]), (int)(i % 4), 0)),
            n_cols);
}

#ifdef VI_DP
/* What sums of 16 steps begin with: -4 times the sum of activations. */
enum { SUM_STRIDE = 8 };
static_assert((int)NR <= (int)SUM_STRIDE, "columns in 256 bits");
static GG_ALWAYS_INLINE void begin_16(int32_t to[16][SUM_STRIDE],
                                      const int32_t *quads)
{
    const __m256i four = _mm256_set1_epi8(4), m1 = _mm256_set1_epi16(-1);
    for (size_t i = 0; i < 16; i++, quads += 4 * NR) {
        __m256i sum = _mm256_setzero_si256();
        GG_UNROLL
        for (size_t t = 0; t < 4; t++) { /* reads of the next quad, too */
            const __m256i x =
                _mm256_loadu_si256((const void *)(quads + t * NR));
            sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(four, x));
        }
        _mm256_storeu_si256((void *)to[i], _mm256_madd_epi16(sum, m1));
    }
}

/* Byte b of each lane with its sign, as 16 bits. */
static GG_ALWAYS_INLINE VI sub_byte(VI v, int b)
{
    return vi_srl(vi_sra(vi_sll(v, (unsigned)(24 - 8 * b)), 8), 16);
}

static GG_ALWAYS_INLINE void block_q3_k(VF sums[NR], const struct rows *r,
                                        const int32_t *xb, size_t n,
                                        int n_cols)
{
    const struct acts x = acts_at(xb, 1);
    int32_t begin[16][SUM_STRIDE];
    VI scale[4], high[RUN_QUADS], v[RUN_QUADS];
    VF part[NR] = { vf_zero() };
    const VF d = take_k3(r, scale);
    (void)n;
    begin_16(begin, x.quads);
    take(r, offsetof(struct gg_block_q3_k, hmask), high);
    take(r, offsetof(struct gg_block_q3_k, hmask) + 16, high + 4);
    for (size_t h = 0; h < 2; h++) {
        take(r, offsetof(struct gg_block_q3_k, qs) + 32 * h, v);
        take(r, offsetof(struct gg_block_q3_k, qs) + 32 * h + 16, v + 4);
        GG_UNROLL
        for (size_t k = 0; k < 4; k++) {
            const size_t run = 4 * h + k;
            VI acc[NR] = { vi_zero() };
            GG_UNROLL
            for (size_t p = 0; p < 2; p++) {
                VI q[4];
                GG_UNROLL
                for (size_t i = 0; i < 4; i++) {
                    const VI bit =
                        vi_sll(vi_srl(high[4 * p + i], (unsigned)run), 2);
                    q[i] = vi_srl(v[4 * p + i], (unsigned)(2 * k));
                    q[i] = vi_or(vi_and(q[i], vi_bytes(3)),
                                 vi_and(bit, vi_bytes(4)));
                }
                dots_scaled(
                    acc, q, x.quads + (2 * run + p) * 4 * NR,
                    sub_byte(scale[2 * h + k / 2], (int)(2 * (k % 2) + p)),
                    begin[2 * run + p], n_cols);
            }
            add_part(part, acc, &x, run, n_cols);
        }
    }
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        sums[j] = vf_fma(part[j], d, sums[j]);
}
#endif

/* ---- rows ---- */

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

/* ROWS rows to y. */
static GG_ALWAYS_INLINE void some_rows(const struct gg_kern_few *f,
                                       struct rows r, size_t jump, float *y,
                                       int n_cols, block_fn *block,
                                       size_t size, size_t n_scales,
                                       size_t n_mins)
{
    const int32_t *x = f->x;
    VF sums[NR];
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        sums[j] = vf_zero();
    for (size_t k = f->k; k; r.at += size) {
        const size_t n = GG_MIN(k, (size_t)GG_GEMM_INT_STEPS);
        ask(&r, jump, k / 32 * (size / 8), size);
        block(sums, &r, x, n, n_cols);
        x += GG_GEMM_I8_X_BLOCK(NR, n_scales, n_mins) / sizeof *x;
        k -= n;
        if (n < GG_GEMM_INT_STEPS) { /* a panel's block goes on with zeros */
            GG_UNROLL
            for (int j = 0; j < n_cols; j++)
                sums[j] = vf_add(sums[j], vf_zero());
        }
    }
    GG_UNROLL
    for (int j = 0; j < n_cols; j++, y += f->y_stride) {
        if ((unsigned)j >= f->n_cols)
            continue;
        if (f->add)
            sums[j] = vf_add(vf_loadu(y), sums[j]);
        vf_storeu(y, sums[j]);
    }
}

static GG_ALWAYS_INLINE void few(const struct gg_kern_few *f, int n_cols,
                                 block_fn *block, size_t size, /* of 256 */
                                 size_t n_scales, size_t n_mins)
{
    enum { ALL = GG_GEMM_PANEL_ROWS };
    const size_t one = f->k / 32 * (size / 8); /* bytes of a row */
    for (size_t i = 0; i < ALL; i += ROWS) {
        const struct rows r = { (const uint8_t *)f->w + i * f->w_stride,
                                f->w_stride };
        /* the next rows' first step, or from the last rows to the first */
        const size_t jump = i + ROWS < ALL ? ROWS * f->w_stride - one
                                           : f->jump - i * f->w_stride;
        some_rows(f, r, jump, f->y + i, n_cols, block, size, n_scales, n_mins);
    }
}

/* As many columns as there is code for: pack_x or zeros fill the panel. */
#define FEW_NAMED(FULL, NAME, SIZE, SCALES, MINS)                             \
    void FULL(const struct gg_kern_few *f)                                    \
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
#define FEW_JOIN(NAME, LEV, ...)                                              \
    FEW_NAMED(gg_kern_few_##NAME##_##LEV, NAME, __VA_ARGS__)
#define FEW_OF(NAME, LEV, ...) FEW_JOIN(NAME, LEV, __VA_ARGS__)
#define FEW(NAME, ...)         FEW_OF(NAME, LEVEL, __VA_ARGS__)

FEW(q4_0, 8 * sizeof(struct gg_block_q4_0), 8, 0)
FEW(q2_k, sizeof(struct gg_block_q2_k), 1, 16)
FEW(q4_k, sizeof(struct gg_block_q4_k), 8, 8)
FEW(q5_k, sizeof(struct gg_block_q5_k), 8, 8)
FEW(q6_k, sizeof(struct gg_block_q6_k), 16, 0)
#ifdef VI_DP
FEW(iq4_nl, 8 * sizeof(struct gg_block_iq4_nl), 8, 0)
FEW(q8_0, 8 * sizeof(struct gg_block_q8_0), 8, 0)
FEW(q3_k, sizeof(struct gg_block_q3_k), 1, 0)
FEW(iq4_xs, sizeof(struct gg_block_iq4_xs), 8, 0)
#endif
