/* SPDX-License-Identifier: MIT */
/* check-precision.c - products in a precision that the library does not have
 *
 * Blocks of 32 steps of 16-bit integers with a scale, different for weights
 * and activations, in tiles of 6 by 5. They replace the exact precision, so
 * that every operation that multiplies uses them. Sums of small integers are
 * exact in any order, so all results are compared with the C kernels' bits.
 */
#include "config.h"
#include "base/barrier.h"
#include "cpu/compute_table.h"
#include "dtype/f16.h"
#include "gguf/op.h"
#include "gguf/pool.h"
#include "tests/aligned.h"
#include "tests/cpu/ops.h"

#include <stdatomic.h>

enum { MR = 6, NR = 5, STEPS = 32 };

/* Weights are packed row by row, activations step by step. */
struct w_block {
    float scale[MR];
    int16_t q[MR][STEPS];
};
struct x_block {
    int16_t q[STEPS][NR];
    float scale[NR];
    char rest[12]; /* padding: a block may be longer than its data */
};

static _Atomic unsigned n_tiles;

/* A power of two that scales n numbers, stride apart, to less than 2^14.
 * Rounding loses 2^-14 of the largest number at most. */
static float scale_of(const float *x, size_t stride, size_t n)
{
    float max = 0;
    int e;
    for (size_t i = 0; i < n; i++)
        max = fmaxf(max, fabsf(x[i * stride]));
    frexpf(max, &e);
    return ldexpf(1, e - 14);
}

/* Element (r, p) of src is at r * row + p * step. */
static void put_weights(struct w_block *b, size_t first, const float *src,
                        size_t row, size_t step, size_t n, size_t k)
{
    for (size_t p = 0; p < k; p += STEPS, b++) {
        const size_t len = GG_MIN(k - p, (size_t)STEPS);
        for (size_t r = 0; r < n; r++) {
            const float *x = src + r * row + p * step;
            const float scale = scale_of(x, step, len);
            b->scale[first + r] = scale;
            for (size_t i = 0; i < STEPS; i++)
                b->q[first + r][i] =
                    i < len ? (int16_t)lrintf(x[i * step] / scale) : 0;
        }
    }
}

static void pack_w(const struct gg_kern_gemm *g, void *panel, size_t first,
                   const float *src, size_t stride, size_t n, size_t k)
{
    (void)g;
    put_weights(panel, first, src, stride, 1, n, k);
}

static void pack_wt(const struct gg_kern_gemm *g, void *panel, size_t first,
                    const float *src, size_t stride, size_t n, size_t k)
{
    (void)g;
    put_weights(panel, first, src, 1, stride, n, k);
}

static void pack_x(const struct gg_kern_gemm *g, void *panel, size_t first,
                   const float *src, size_t stride, size_t n, size_t k)
{
    struct x_block *b = panel;
    (void)g;
    for (size_t p = 0; p < k; p += STEPS, b++) {
        const size_t len = GG_MIN(k - p, (size_t)STEPS);
        for (size_t c = 0; c < n; c++) {
            const float *x = src + c * stride + p;
            const float scale = scale_of(x, 1, len);
            b->scale[first + c] = scale;
            for (size_t i = 0; i < STEPS; i++)
                b->q[i][first + c] =
                    i < len ? (int16_t)lrintf(x[i] / scale) : 0;
        }
    }
}

static void compute_tile(const void *w, const void *x, size_t n_blocks,
                         unsigned n_cols, float *y, size_t y_stride, int add)
{
    atomic_fetch_add(&n_tiles, 1);
    for (unsigned j = 0; j < n_cols; j++, y += y_stride)
        for (unsigned i = 0; i < MR; i++) {
            double sum = add ? (double)y[i] : 0;
            for (size_t b = 0; b < n_blocks; b++) {
                const struct w_block *wb = (const struct w_block *)w + b;
                const struct x_block *xb = (const struct x_block *)x + b;
                int64_t s = 0;
                for (int p = 0; p < STEPS; p++)
                    s += (int64_t)wb->q[i][p] * xb->q[p][j];
                sum += (double)s * (double)wb->scale[i] * (double)xb->scale[j];
            }
            y[i] = (float)sum;
        }
}

static const struct gg_kern_gemm ints = {
    .mr = MR,
    .nr = NR,
    .k_block = STEPS,
    .w_block = sizeof(struct w_block),
    .x_block = sizeof(struct x_block),
    .kc = 256,
    .mc = 3 * MR,
    .round = 2 * NR,
    .narrow = 0,
    .buf_size = GG_GEMM_BUF_SIZE,
    .pack_rows = gg_kern_gemm_pack_decoded,
    .pack_w = pack_w,
    .pack_wt = pack_wt,
    .pack_x = pack_x,
    .tile = compute_tile,
};

/* ---- a node by a table of kernels ---- */

struct job {
    struct gg_cpu_task task;
    tensor *node;
};

static void run_copy(void *user, unsigned ith, unsigned nth)
{
    const struct job *j = user;
    struct gg_cpu_task t = j->task;
    t.ith = ith;
    t.nth = nth;
    gg_cpu_op_row(j->node->op)->run(j->node, &t);
}

/* Compute the node. Returns whether it wrote only to its work memory. */
static bool compute_node(tensor *node, const struct gg_kern *kern, int team)
{
    const unsigned nth = gguf_pool_n_threads(ops_pools[team]);
    const size_t size = gg_cpu_op_row(node->op)->work(node, nth, kern);
    struct gg_barrier barrier;
    unsigned char *work = aligned_new(size + 64);
    if (!work || gg_barrier_init(&barrier, nth, 0, NULL) != GGUF_OK) {
        printf("Bail out! no memory or no barrier\n");
        exit(99);
    }
    memset(work, 0x77, size + 64);
    struct job j = {
        { .barrier = &barrier, .kern = kern, .work = work, .work_size = size },
        node
    };
    gguf_pool_run(ops_pools[team],
                  (struct gguf_pool_callback){ run_copy, &j });
    bool good = true;
    for (size_t i = 0; i < 64; i++)
        good = good && work[size + i] == 0x77;
    gg_barrier_fini(&barrier);
    aligned_free(work);
    return good;
}

/* Compute the node in this precision with 1 to 8 threads, and in the exact
 * one. Returns the largest difference. *good: the threads' bits are equal, and
 * the tile was called. */
static double compare_exact(tensor *t, bool *good)
{
    struct gg_kern kern = ops_kern;
    const size_t size = (size_t)gguf_tensor_size(t), n = size / sizeof(float);
    float *first = malloc(size + 1), *y = t->data;
    double worst = 0;
    kern.gemm[GG_GEMM_EXACT] = ints;
    *good = first != NULL;
    for (int team = 0; *good && team < N_TEAMS; team++) {
        memset(y, 0xff, size); /* NaN */
        n_tiles = 0;
        *good = compute_node(t, &kern, team) && (n_tiles > 0 || !n) &&
                (!team || !memcmp(first, y, size));
        memcpy(first, y, size);
    }
    *good = *good && compute_node(t, &ops_kern, 0);
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)first[i] - (double)y[i]);
        worst = d <= worst ? worst : d == d ? d : INFINITY;
    }
    free(first);
    return worst;
}

/* Integers from -7 to 7 in a type that has an encoder. */
static tensor *make_integers(ctx_t *c, uint32_t dtype, int64_t n0, int64_t n1,
                             int64_t n2, int64_t n3)
{
    tensor *t = gguf_tensor_create_4d(c, dtype, n0, n1, n2, n3);
    const struct gg_codec_kern *codec = &ops_kern.codec[gg_dtype_index(dtype)];
    float row[2048];
    for (int64_t r = 0; r < n1 * n2 * n3; r++) {
        for (int64_t i = 0; i < n0; i++)
            row[i] = (float)rnd_below(15) - 7;
        codec->encode(row, (char *)t->data + r * t->nb[1], 1, (size_t)n0,
                      NULL);
    }
    return t;
}

/* ---- the operations ---- */

static void check_matmul(void)
{
    static const int64_t cases[][3] = {
        /* m, n, k */
        { 1, 1, 1 },     { 7, 2, 31 },    { 6, 3, 32 },     { 50, 4, 33 },
        { 31, 13, 257 }, { 19, 40, 700 }, { 100, 3, 1056 }, { 2, 1100, 40 },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        const int64_t m = cases[i][0], n = cases[i][1], k = cases[i][2];
        bool good;
        ctx_t *c = new_ctx();
        tensor *t = gguf_op_matmul(
            c,
            make_integers(c, i & 1 ? GGUF_DTYPE_F16 : GGUF_DTYPE_F32, k, m, 1,
                          1),
            make_integers(c, GGUF_DTYPE_F32, k, n, 1, 1));
        const double d = compare_exact(t, &good);
        ok(good && d == 0, "product of %d by %d, %d steps: equal", (int)m,
           (int)n, (int)k);
        gguf_ctx_destroy(c);
    }
}

/* Numbers that are not small integers are rounded to 2^-14 of the largest, on
 * both sides. */
static void check_rounding(void)
{
    const int64_t k = 512;
    bool good;
    ctx_t *c = new_ctx();
    tensor *w = between(c, PLAIN, k, 40, 1, 1, -1, 1);
    tensor *t = gguf_op_matmul(c, w, between(c, PLAIN, k, 20, 1, 1, -1, 1));
    const double d = compare_exact(t, &good);
    ok(good && d > 0 && d < (double)k * 2.1 * 0x1p-14,
       "product of fractions: %g from exact", d);
    gguf_ctx_destroy(c);
}

static void check_matmul_id(void)
{
    bool good;
    ctx_t *c = new_ctx();
    tensor *a = make_integers(c, GGUF_DTYPE_F16, 70, 23, 5, 1);
    tensor *b = make_integers(c, GGUF_DTYPE_F32, 70, 2, 30, 1);
    tensor *ids = gguf_tensor_create_2d(c, GGUF_DTYPE_I32, 2, 30);
    set_ids(ids, 5);
    tensor *t = gguf_op_matmul_id(c, a, b, ids);
    const double d = compare_exact(t, &good);
    ok(good && d == 0, "products with a matrix for each column: equal");
    gguf_ctx_destroy(c);
}

/* Products of queries and keys are exact here. Weights lose 2^-14 of the
 * largest, which is at most their sum. */
static void check_attention(void)
{
    static const int64_t cases[][6] = {
        /* d, dv, tokens, keys, heads, heads of keys */
        { 64, 64, 9, 300, 4, 2 },
        { 20, 13, 37, 129, 6, 2 },
        { 33, 40, 5, 17, 128, 1 },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        const int64_t *n = cases[i];
        bool good;
        ctx_t *c = new_ctx();
        const uint32_t type = i ? GGUF_DTYPE_F32 : GGUF_DTYPE_F16;
        tensor *t = gguf_op_attention(
            c, make_integers(c, GGUF_DTYPE_F32, n[0], n[2], n[4], 1),
            make_integers(c, type, n[0], n[3], n[5], 1),
            make_integers(c, type, n[1], n[3], n[5], 1), NULL, 0.01f, 0, 0);
        const double d = compare_exact(t, &good);
        ok(good && d > 0 && d < (double)n[3] * 8 * 0x1p-14,
           "attention of %d heads to %d keys: %g from exact", (int)n[4],
           (int)n[3], d);
        gguf_ctx_destroy(c);
    }
}

int main(void)
{
    ops_begin();
    check_matmul();
    check_rounding();
    check_matmul_id();
    check_attention();
    ops_finish();
    return done_testing();
}
