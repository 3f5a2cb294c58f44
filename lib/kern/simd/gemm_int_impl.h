/* SPDX-License-Identifier: MIT */
/* gemm_int_impl.h - tiles of integers, in terms of a level's vectors
 *
 * Included once by the file of a level and a width of integers, which first
 * includes gemm_int_256.h or gemm_int_512.h and defines
 *
 *     MR, NR           rows (two vectors) and columns of a tile
 *     VI, VF, LANES    vectors of 32-bit integers and of floats, their lanes
 *     vi_zero, vi_load (aligned), vi_all (the 32 bits at p in all lanes)
 *     VI_DP(c, a, b)   c += the sums of products in each 32 bits of a (weights)
 *                      and b: of two 16-bit integers, or of four bytes, which
 *                      are unsigned in a. Or, for bytes, in two steps:
 *     VI_MUL, VI_ADD   c = and c += the sums of two products in each 16 bits;
 *                      n_sums of these fit into 16 bits
 *     VI_WIDEN(c, a)   c += the sums of two 16-bit integers
 *     vf_loadu, vf_storeu, vf_all, vf_add, vf_mul, vf_fma (a*b + c)
 *     vf_of            integers to floats
 *     AT_ONCE          columns at a time, a divisor of NR
 *     ROUND_TO, CASES  numbers of columns with code: CASE(n)
 *     BYTES            bytes of an integer
 *     X_SCALES         scales of a column in a block
 *
 * With 32 registers, f32 sums are in registers beside the integer sums. With 16
 * registers and six columns the compiler spills them between runs.
 */

enum { GROUPS = GG_GEMM_INT_STEPS * BYTES / 4 }; /* 32-bit groups of steps */

/* Set the integer sums of a run to begin, or to 0. */
static GG_ALWAYS_INLINE void begin_sums(VI acc[NR][2], const int32_t *begin,
                                        int n_cols)
{
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        acc[j][0] = acc[j][1] =
            begin ? vi_all((const float *)(const void *)(begin + j))
                  : vi_zero();
}

/* Add the products of a run of n groups to acc. n_sums: a divisor of n. */
#ifdef VI_DP
static GG_ALWAYS_INLINE void multiply_run(VI acc[NR][2], const int32_t *w,
                                          const int32_t *x,
                                          const int32_t *begin, size_t n,
                                          int n_cols, size_t n_sums)
{
    (void)n_sums;
    begin_sums(acc, begin, n_cols);
    for (size_t p = 0; p < n; p++, w += MR, x += NR) {
        const VI w0 = vi_load(w), w1 = vi_load(w + LANES);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            const VI b = vi_all((const float *)(const void *)(x + j));
            VI_DP(acc[j][0], w0, b);
            VI_DP(acc[j][1], w1, b);
        }
    }
}
#else
static GG_ALWAYS_INLINE void multiply_run(VI acc[NR][2], const int32_t *w,
                                          const int32_t *x,
                                          const int32_t *begin, size_t n,
                                          int n_cols, size_t n_sums)
{
    begin_sums(acc, begin, n_cols);
    GG_UNROLL
    for (size_t p = 0; p < n; p += n_sums) {
        VI part[NR][2];
        GG_UNROLL
        for (size_t t = 0; t < n_sums; t++, w += MR, x += NR) {
            const VI w0 = vi_load(w), w1 = vi_load(w + LANES);
            GG_UNROLL
            for (int j = 0; j < n_cols; j++) {
                const VI b = vi_all((const float *)(const void *)(x + j));
                if (t == 0) {
                    VI_MUL(part[j][0], w0, b);
                    VI_MUL(part[j][1], w1, b);
                } else {
                    VI_ADD(part[j][0], w0, b);
                    VI_ADD(part[j][1], w1, b);
                }
                if (t == n_sums - 1) {
                    VI_WIDEN(acc[j][0], part[j][0]);
                    VI_WIDEN(acc[j][1], part[j][1]);
                }
            }
        }
    }
}
#endif

/* sums += values times the factors of rows times those of columns */
static GG_ALWAYS_INLINE void add_runs(VF sums[NR][2], VI acc[NR][2],
                                      const float *d, const float *s,
                                      int n_cols)
{
    const VF d0 = vf_loadu(d), d1 = vf_loadu(d + LANES);
    GG_UNROLL
    for (int j = 0; j < n_cols; j++) {
        const VF b = vf_all(s + j);
        sums[j][0] = vf_fma(vf_of(acc[j][0]), vf_mul(d0, b), sums[j][0]);
        sums[j][1] = vf_fma(vf_of(acc[j][1]), vf_mul(d1, b), sums[j][1]);
    }
}

/* f32 sums += values times the factors of rows */
static GG_ALWAYS_INLINE void add_rows(VF sums[NR][2], VF v[NR][2],
                                      const float *d, int n_cols)
{
    const VF d0 = vf_loadu(d), d1 = vf_loadu(d + LANES);
    GG_UNROLL
    for (int j = 0; j < n_cols; j++) {
        sums[j][0] = vf_fma(v[j][0], d0, sums[j][0]);
        sums[j][1] = vf_fma(v[j][1], d1, sums[j][1]);
    }
}

/* f32 sums += values times the factors of columns */
static GG_ALWAYS_INLINE void add_cols(VF sums[NR][2], VF v[NR][2],
                                      const float *s, int n_cols)
{
    GG_UNROLL
    for (int j = 0; j < n_cols; j++) {
        const VF b = vf_all(s + j);
        sums[j][0] = vf_fma(v[j][0], b, sums[j][0]);
        sums[j][1] = vf_fma(v[j][1], b, sums[j][1]);
    }
}

static GG_ALWAYS_INLINE void set_zero(VF v[NR][2], int n_cols)
{
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        v[j][0] = v[j][1] = vf_zero();
}

/* Multiply a block, with numbers that are constants. Where rows have more
 * scales than columns, or columns more than rows, runs that share the coarser
 * scale are added up first. */
static GG_ALWAYS_INLINE void tile_block(const int32_t *w, const int32_t *x,
                                        VF sums[NR][2], int n_cols,
                                        int n_scales, int n_mins,
                                        size_t n_sums)
{
    const int n_runs = n_scales > X_SCALES ? n_scales : X_SCALES;
    const int n_parts = n_scales < X_SCALES ? n_scales : X_SCALES;
    const size_t n = GROUPS / (unsigned)n_runs;
    const float *d = (const float *)(const void *)(w + (size_t)GROUPS * MR);
    const float *m = d + (size_t)n_scales * MR;
    const int32_t *begin = x + (size_t)GROUPS * NR;
    const float *s =
        (const float *)(const void *)(begin + (BYTES == 1 ? n_runs : 0) * NR);
    const float *xm = s + (size_t)X_SCALES * NR;
    for (int i = 0; i < n_parts; i++) {
        VF part[NR][2];
        set_zero(part, n_cols);
        for (int r = 0; r < n_runs / n_parts; r++) {
            VI acc[NR][2];
            VF v[NR][2];
            multiply_run(acc, w, x, BYTES == 1 ? begin : NULL, n, n_cols,
                         n_sums);
            if (n_scales == X_SCALES) {
                add_runs(sums, acc, d, s, n_cols);
            } else {
                GG_UNROLL
                for (int j = 0; j < n_cols; j++) {
                    v[j][0] = vf_of(acc[j][0]);
                    v[j][1] = vf_of(acc[j][1]);
                }
                if (n_scales == n_runs)
                    add_rows(part, v, d, n_cols);
                else
                    add_cols(part, v, s, n_cols);
            }
            w += n * MR;
            x += n * NR;
            begin += NR;
            d += n_scales == n_runs ? MR : 0;
            s += X_SCALES == n_runs ? NR : 0;
        }
        if (n_scales > X_SCALES) {
            add_cols(sums, part, s, n_cols);
            s += NR;
        } else if (n_scales < X_SCALES) {
            add_rows(sums, part, d, n_cols);
            d += MR;
        }
    }
    for (int i = 0; i < n_mins; i++, m += MR, xm += NR) {
        const VF m0 = vf_loadu(m), m1 = vf_loadu(m + LANES);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            const VF b = vf_all(xm + j);
            sums[j][0] = vf_fma(m0, b, sums[j][0]);
            sums[j][1] = vf_fma(m1, b, sums[j][1]);
        }
    }
}

/* Computes a number of columns that has code; stores the wanted columns to
 * y. */
static GG_ALWAYS_INLINE void tile_cols(const unsigned char *w,
                                       const unsigned char *x, size_t n_blocks,
                                       int n_cols, unsigned n_wanted, float *y,
                                       size_t y_stride, int add, int n_scales,
                                       int n_mins, size_t n_sums)
{
    VF sums[NR][2];
    set_zero(sums, n_cols);
    for (size_t b = 0; b < n_blocks; b++) {
        tile_block((const int32_t *)(const void *)w,
                   (const int32_t *)(const void *)x, sums, n_cols, n_scales,
                   n_mins, n_sums);
        w += W_BLOCK(MR, n_scales, n_mins);
        x += X_BLOCK(NR, n_scales, n_mins);
    }
    GG_UNROLL
    for (int j = 0; j < n_cols; j++) {
        float *to = y + (size_t)j * y_stride;
        if ((unsigned)j >= n_wanted)
            continue;
        if (add) {
            sums[j][0] = vf_add(vf_loadu(to), sums[j][0]);
            sums[j][1] = vf_add(vf_loadu(to + LANES), sums[j][1]);
        }
        vf_storeu(to, sums[j][0]);
        vf_storeu(to + LANES, sums[j][1]);
    }
}

#define CASE(n)                                                               \
    case n:                                                                   \
        tile_cols(w, at, n_blocks, n, some, y, y_stride, add, n_scales,       \
                  n_mins, n_sums);                                            \
        break;

static GG_ALWAYS_INLINE void multiply_tile(const void *w, const void *x,
                                           size_t n_blocks, unsigned n_cols,
                                           float *y, size_t y_stride, int add,
                                           int n_scales, int n_mins,
                                           size_t n_sums)
{
    const unsigned char *at = x;
    for (unsigned j = 0; j < n_cols; j += AT_ONCE) {
        const unsigned some = GG_MIN(n_cols - j, (unsigned)AT_ONCE);
        switch ((some + ROUND_TO - 1) / ROUND_TO * ROUND_TO) {
            CASES
        }
        at += 4 * AT_ONCE; /* 32 bits each, in any form */
        y += AT_ONCE * y_stride;
    }
}
