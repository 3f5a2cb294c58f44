/* SPDX-License-Identifier: MIT */
/* amx_impl.h - products by tile registers, in terms of registers and vectors
 *
 * Included once by the file of the level, and by a test with registers in C.
 * They first define
 *
 *     NAME                     suffix of the kernels
 *     LANES, VI, VF, vi_, vf_  vectors (vi_512.h, vi_256.h)
 *     TILES_..., TILE_...      registers (amx.h)
 *     ROUND_STEPS(to, x, n)    n floats, at most 32, to bf16; 0 up to 32
 *     PACK_PAIRS               packer of weights of gemm_bf16.h
 *
 * Registers 0 to 3 are sums, 4 and 5 columns of activations, 6 and 7 rows of
 * weights.
 */
#include "base/compiler.h"
#include "kern/gemm_tiles.h"
#include "kern/simd/gemm_i8_column.h"

#include <string.h>

enum {
    MR = GG_GEMM_MR_TILES,
    NR = GG_GEMM_NR_TILES,
    SIDE = GG_GEMM_SIDE_TILES,
    STEPS = GG_GEMM_STEPS_TILES,
    BLOCK = GG_GEMM_INT_STEPS, /* steps of a block of bytes */
    VECTORS = MR / LANES,      /* vectors of a column of sums */
    RUNS = 4,                  /* runs of bytes that are stored before they are
                                * multiplied by scales */
    AT_ONCE = SIDE / RUNS      /* columns that are multiplied at a time */
};

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define NAMED(a)    JOIN(a, NAME)

void NAMED(gg_kern_tiles_enter_)(const struct gg_kern_gemm *g)
{
    const unsigned depth = gg_gemm_tiles_depth(g);
    struct gg_amx_config c = { .palette = 1 };
    for (int t = 0; t < 8; t++) {
        c.row_bytes[t] = (uint16_t)(t == 4 || t == 5 ? depth : 64);
        c.rows[t] = (uint8_t)(t == 6 || t == 7 ? depth / 4 : SIDE);
    }
    TILES_CONFIGURE(&c);
}

void NAMED(gg_kern_tiles_leave_)(void)
{
    TILES_RELEASE();
}

/* ---- bytes ---- */

void NAMED(gg_kern_i8_pack_x_)(const struct gg_kern_gemm *g, void *panel,
                               size_t first, const float *src, size_t stride,
                               size_t n, size_t k)
{
    const size_t n_words = g->x_block / 4 / NR;
    for (size_t at = 0; at < k; at += BLOCK) {
        const struct gg_gemm_i8_x to = gg_gemm_i8_x_at(g, panel, at / BLOCK);
        for (size_t c = 0; c < n; c++) {
            float part[BLOCK];
            int32_t col[GG_V256_COL_GROUPS];
            gg_gemm_i8_put_column(
                &g->ints, gg_v256_block_256(src + c * stride, at, k, part),
                col);
            for (size_t r = 0; r < BLOCK / STEPS; r++)
                memcpy(to.i + (r * NR + first + c) * STEPS,
                       col + r * (STEPS / 4), STEPS);
            for (size_t i = GG_GEMM_I8_QUADS; i < n_words; i++)
                ((int32_t *)(void *)to.i)[i * NR + first + c] = col[i];
        }
    }
}

/* Integer sums of 16 columns in RUNS runs. */
typedef int32_t gg_amx_sums[SIDE][RUNS][MR];

/* RUNS runs of a block, of all rows and 16 columns. */
struct runs {
    const uint8_t *w;
    const int8_t *x;
    const float *d, *m;   /* scales of the first run's rows, minima */
    const int32_t *begin; /* initial values of the first run's sums */
    const float *s, *xm;  /* scales of the first run's columns, sums */
    unsigned col;         /* first column */
    bool first, last;     /* begin, end a block */
};

/* Multiply run r, which has a number of steps, into registers 0 and 1, or 2 and
 * 3 if r is odd. */
#define MULTIPLY(OP, C0, C1, A)                                               \
    do {                                                                      \
        TILE_ZERO(C0);                                                        \
        TILE_ZERO(C1);                                                        \
        TILE_LOAD(A, x, STEPS);                                               \
        TILE_LOAD(6, w, 4 * MR);                                              \
        TILE_LOAD(7, w + 4 * SIDE, 4 * MR);                                   \
        OP(C0, A, 6);                                                         \
        OP(C1, A, 7);                                                         \
    } while (0)
static GG_ALWAYS_INLINE void multiply_run(const struct runs *t, int r,
                                          int steps, int has_bias)
{
    const int at = r * steps;
    const uint8_t *w = t->w + at * MR;
    const int8_t *x = t->x + at / STEPS * NR * STEPS + at % STEPS;
    if (has_bias && r % 2)
        MULTIPLY(TILE_MULTIPLY_SU, 2, 3, 5);
    else if (has_bias)
        MULTIPLY(TILE_MULTIPLY_SU, 0, 1, 4);
    else if (r % 2)
        MULTIPLY(TILE_MULTIPLY_SS, 2, 3, 5);
    else
        MULTIPLY(TILE_MULTIPLY_SS, 0, 1, 4);
}

static GG_ALWAYS_INLINE void store_run(int r, gg_amx_sums sums)
{
    int32_t *to = sums[0][r];
    if (r % 2) {
        TILE_STORE(2, to, sizeof sums[0]);
        TILE_STORE(3, to + SIDE, sizeof sums[0]);
    } else {
        TILE_STORE(0, to, sizeof sums[0]);
        TILE_STORE(1, to + SIDE, sizeof sums[0]);
    }
}

/* Vector v of the integer sums of column c in a run, as floats. */
static GG_ALWAYS_INLINE VF sums_at(const struct runs *t, int r, unsigned c,
                                   int v, int has_bias, gg_amx_sums sums)
{
    VI i = vi_load((const void *)(sums[c][r] + v * LANES));
    if (has_bias)
        i = vi_add(
            i, vi_all((const float *)(const void *)(t->begin + r * NR + c)));
    return vf_of(i);
}

/* Multiply the integer sums of columns c to c + AT_ONCE by scales, and add them
 * to those of the runs before, in the order of gemm_int_impl.h.
 *
 * d      scales of the rows by run; one for a block: d[0]
 * sums   f32 sums of all columns
 * parts  those of this block's runs, if rows have one scale for a block
 */
static GG_ALWAYS_INLINE void scale_runs(const struct runs *t, unsigned c,
                                        VF d[RUNS][VECTORS], gg_amx_sums ints,
                                        float sums[NR][MR],
                                        float parts[NR][MR], int n_scales,
                                        int n_mins, int has_bias)
{
    const bool whole = n_scales == 1;
    VF sum[AT_ONCE][VECTORS];
    for (int j = 0; j < AT_ONCE; j++)
        for (int v = 0; v < VECTORS; v++)
            sum[j][v] = !whole ? vf_loadu(sums[t->col + c + j] + v * LANES)
                        : t->first
                            ? vf_zero()
                            : vf_loadu(parts[t->col + c + j] + v * LANES);
    GG_UNROLL
    for (int r = 0; r < RUNS; r++) {
        if (n_scales == 16 && r % 2)
            continue;
        const float *s = t->s + (n_scales == 16 ? r / 2 : r) * NR + c;
        GG_UNROLL
        for (int j = 0; j < AT_ONCE; j++) {
            const VF b = vf_all(s + j);
            GG_UNROLL
            for (int v = 0; v < VECTORS; v++) {
                VF x = sums_at(t, r, c + (unsigned)j, v, has_bias, ints);
                if (n_scales == 8) {
                    sum[j][v] = vf_fma(x, vf_mul(d[r][v], b), sum[j][v]);
                    continue;
                }
                if (n_scales == 16) {
                    const VF y =
                        sums_at(t, r + 1, c + (unsigned)j, v, has_bias, ints);
                    x = vf_fma(x, d[r][v], vf_zero());
                    x = vf_fma(y, d[r + 1][v], x);
                }
                sum[j][v] = vf_fma(x, b, sum[j][v]);
            }
        }
    }
    if (whole && t->last) GG_UNROLL
        for (int j = 0; j < AT_ONCE; j++)
            for (int v = 0; v < VECTORS; v++)
                sum[j][v] = vf_fma(sum[j][v], d[0][v],
                                   vf_loadu(sums[t->col + c + j] + v * LANES));
    for (int i = 0; i < n_mins && t->last; i++)
        GG_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        const VF m = vf_loadu(t->m + i * MR + v * LANES);
        GG_UNROLL
        for (int j = 0; j < AT_ONCE; j++)
            sum[j][v] = vf_fma(m, vf_all(t->xm + i * NR + c + j), sum[j][v]);
    }
    float(*to)[MR] = whole && !t->last ? parts : sums;
    GG_UNROLL
    for (int j = 0; j < AT_ONCE; j++)
        for (int v = 0; v < VECTORS; v++)
            vf_storeu(to[t->col + c + j] + v * LANES, sum[j][v]);
}

/* Runs number t of a tile: all columns take the same runs before the next. */
static GG_ALWAYS_INLINE struct runs find_runs(const void *w_panel,
                                              const void *x_panel, size_t t,
                                              size_t n_groups, int n_scales,
                                              int n_mins)
{
    const struct gg_kern_gemm g = {
        .mr = MR,
        .nr = NR,
        .w_block = GG_GEMM_I8_W_BLOCK(MR, n_scales, n_mins),
        .x_block = GG_GEMM_I8_X_BLOCK(NR, n_scales, n_mins),
        .ints = { .width = 1, .n_scales = n_scales, .n_mins = n_mins },
    };
    const size_t n_runs = GG_GEMM_I8_RUNS(n_scales), parts = n_runs / RUNS;
    const size_t b = t / n_groups / parts, p = t / n_groups % parts;
    const size_t col = t % n_groups * SIDE, step = p * RUNS * (BLOCK / n_runs);
    const struct gg_gemm_int_w w =
        gg_gemm_int_w_at(&g, (void *)(uintptr_t)w_panel, b);
    const struct gg_gemm_i8_x x =
        gg_gemm_i8_x_at(&g, (void *)(uintptr_t)x_panel, b);
    return (struct runs){
        .w = (const uint8_t *)w.q + step * MR,
        .x = x.i + step / STEPS * NR * STEPS + col * STEPS,
        .d = w.d + (n_scales == 1 ? 0 : p * RUNS * MR),
        .m = w.m,
        .begin = x.begin + p * RUNS * NR + col,
        .s = x.s + step / 32 * NR + col,
        .xm = x.sum + col,
        .col = (unsigned)col,
        .first = p == 0,
        .last = p == parts - 1,
    };
}

/* Store f32 sums, or add them, to y. */
static void put_sums(float sums[NR][MR], unsigned n_cols, float *y,
                     size_t y_stride, int add)
{
    for (unsigned j = 0; j < n_cols; j++, y += y_stride)
        for (int v = 0; v < VECTORS; v++) {
            VF sum = vf_loadu(sums[j] + v * LANES);
            if (add)
                sum = vf_add(vf_loadu(y + v * LANES), sum);
            vf_storeu(y + v * LANES, sum);
        }
}

/* Registers multiply some runs while vectors scale those before: the code has
 * both in turn, and stores sums when they are likely to be ready. */
static GG_ALWAYS_INLINE void multiply_bytes(const void *w, const void *x,
                                            size_t n_blocks, unsigned n_cols,
                                            float *y, size_t y_stride, int add,
                                            int n_scales, int n_mins,
                                            int has_bias)
{
    _Alignas(64) float sums[NR][MR], parts[NR][MR];
    _Alignas(64) gg_amx_sums ints[2];
    const int n_runs = GG_GEMM_I8_RUNS(n_scales);
    const size_t n_groups = (n_cols + SIDE - 1) / SIDE;
    const size_t n = n_blocks * (size_t)(n_runs / RUNS) * n_groups;
    struct runs now, before = { 0 };
    memset(sums, 0, n_groups * SIDE * sizeof sums[0]);
    for (size_t t = 0; n && t <= n; t++, before = now) {
        VF d[RUNS][VECTORS];
        now = before;
        if (t < n)
            now = find_runs(w, x, t, n_groups, n_scales, n_mins);
        for (int r = 0; r < RUNS && t; r++)
            for (int v = 0; v < VECTORS; v++)
                d[r][v] = vf_loadu(before.d + (n_scales == 1 ? 0 : r * MR) +
                                   v * LANES);
        GG_UNROLL
        for (int r = 0; r < RUNS; r++) {
            const unsigned c = (unsigned)r * AT_ONCE;
            if (t < n)
                multiply_run(&now, r, BLOCK / n_runs, has_bias);
            if (t && before.col + c < n_cols)
                scale_runs(&before, c, d, ints[1 - t % 2], sums, parts,
                           n_scales, n_mins, has_bias);
            if (t < n)
                store_run(r, ints[t % 2]);
        }
    }
    put_sums(sums, n_cols, y, y_stride, add);
}

#define X(scales, mins, has_bias, suffix)                                     \
    void gg_kern_i8_tile_##suffix(const void *w, const void *x,               \
                                  size_t n_blocks, unsigned n_cols, float *y, \
                                  size_t y_stride, int add)                   \
    {                                                                         \
        multiply_bytes(w, x, n_blocks, n_cols, y, y_stride, add, scales,      \
                       mins, has_bias);                                       \
    }
#define TILES_OF(name) GG_GEMM_I8_TILES_AMX(X, name)
TILES_OF(NAME)
#undef X

/* ---- bf16 ---- */

void NAMED(gg_kern_bf16_pack_w_)(const struct gg_kern_gemm *g, void *panel,
                                 size_t first, const float *src, size_t stride,
                                 size_t n, size_t k)
{
    uint16_t *q = panel;
    const size_t end = (k + STEPS - 1) / STEPS * STEPS / 2;
    PACK_PAIRS(g, panel, first, src, stride, n, k);
    for (size_t p = (k + 1) / 2; p < end; p++)
        memset(q + (p * MR + first) * 2, 0, n * 2 * sizeof *q);
}

void NAMED(gg_kern_bf16_pack_x_)(const struct gg_kern_gemm *g, void *panel,
                                 size_t first, const float *src, size_t stride,
                                 size_t n, size_t k)
{
    (void)g;
    uint16_t *q = (uint16_t *)panel + first * STEPS;
    for (size_t p = 0; p < k; p += STEPS, q += NR * STEPS)
        for (size_t c = 0; c < n; c++)
            ROUND_STEPS(q + c * STEPS, src + c * stride + p,
                        GG_MIN(k - p, (size_t)STEPS));
}

void NAMED(gg_kern_bf16_tile_)(const void *w_panel, const void *x_panel,
                               size_t n_blocks, unsigned n_cols, float *y,
                               size_t y_stride, int add)
{
    _Alignas(64) float sums[NR][MR];
    const uint16_t *w = w_panel, *x = x_panel;
    const bool two = n_cols > SIDE;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (size_t b = 0; b < n_blocks; b++, w += STEPS * MR, x += STEPS * NR) {
        TILE_LOAD(4, x, 2 * STEPS);
        TILE_LOAD(6, w, 4 * MR);
        TILE_LOAD(7, w + 2 * SIDE, 4 * MR);
        TILE_MULTIPLY_BF16(0, 4, 6);
        TILE_MULTIPLY_BF16(1, 4, 7);
        if (two) {
            TILE_LOAD(5, x + SIDE * STEPS, 2 * STEPS);
            TILE_MULTIPLY_BF16(2, 5, 6);
            TILE_MULTIPLY_BF16(3, 5, 7);
        }
    }
    TILE_STORE(0, sums[0], 4 * MR);
    TILE_STORE(1, sums[0] + SIDE, 4 * MR);
    TILE_STORE(2, sums[SIDE], 4 * MR);
    TILE_STORE(3, sums[SIDE] + SIDE, 4 * MR);
    put_sums(sums, n_cols, y, y_stride, add);
}
