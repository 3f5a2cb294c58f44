/* SPDX-License-Identifier: MIT */
/* check-gemm.c - matrix products at every level: tiles, packing, whole
 * products
 *
 * Sums are compared with double precision: on any data within the bound for
 * any order of summation, and with equal bits on data whose partial sums are
 * all exact.
 */
#include "config.h"
#include "base/barrier.h"
#include "cpu/matmul.h"
#include "gguf/pool.h"
#include "tests/aligned.h"
#include "tests/kern/kern.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

static const float guard = -12345.675f;

static void *must_alloc(void *p)
{
    if (!p) {
        printf("Bail out! out of memory\n");
        exit(1);
    }
    return p;
}

static float *make_floats(size_t n)
{
    return must_alloc(malloc((n + 1) * sizeof(float)));
}

/* Small integers with exact sums of products, or random floats. */
static void fill_floats(float *x, size_t n, bool exact)
{
    for (size_t i = 0; i < n; i++)
        x[i] = exact ? (float)rnd_below(15) - 7 : rnd_f32();
}

/* ---- tiles and packers ---- */

/* Pack panels of that width from every offset; trans: src is a matrix of
 * steps. */
static bool pack_good(const struct gg_kern_gemm *g, gg_kern_gemm_pack_fn *pack,
                      size_t width, bool trans)
{
    enum { MAX_K = 53, STRIDE = 61, PAD = 8 };
    static float src[STRIDE * STRIDE], dst[32 * MAX_K + 2 * PAD];
    bool good = true;
    fill_floats(src, STRIDE * STRIDE, false);
    for (size_t first = 0; first < width; first++)
        for (size_t n = 0; n <= width - first; n++)
            for (size_t k = 0; k <= MAX_K; k += 1 + k / 4) {
                for (size_t i = 0; i < sizeof dst / sizeof *dst; i++)
                    dst[i] = guard;
                pack(g, dst + PAD, first, src, STRIDE, n, k);
                for (size_t i = 0; i < PAD; i++)
                    good = good && dst[i] == guard &&
                           dst[PAD + width * k + i] == guard;
                for (size_t i = 0; i < width * k; i++) {
                    const size_t p = i / width, r = i % width - first;
                    const bool in = i % width >= first && r < n;
                    const size_t at = trans ? p * STRIDE + r : r * STRIDE + p;
                    good = good && dst[PAD + i] == (in ? src[at] : guard);
                }
            }
    return good;
}

static void check_pack(const char *level, const struct gg_kern_gemm *g)
{
    ok(pack_good(g, g->pack_w, g->mr, false) &&
           pack_good(g, g->pack_wt, g->mr, true) &&
           pack_good(g, g->pack_x, g->nr, false),
       "%s: packers transpose and touch nothing else", level);
}

static void check_tile(const char *level, const struct gg_kern_gemm *g)
{
    enum { K = 71, STRIDE = 45, MAX_MR = 32, MAX_NR = 12 };
    static _Alignas(64) float w[K * MAX_MR];
    static float x[K * MAX_NR], y[MAX_NR * STRIDE];
    bool exact_good = true, bound = true, rest = true;
    for (int exact = 0; exact < 2; exact++)
        for (unsigned cols = 1; cols <= g->nr; cols++)
            for (size_t k = 0; k <= K; k += k < 4 ? 1 : 67) {
                const int add = (int)(rnd64() >> 63);
                fill_floats(w, k * g->mr, exact);
                fill_floats(x, k * g->nr, exact);
                for (size_t i = 0; i < MAX_NR * STRIDE; i++)
                    y[i] = guard;
                for (size_t j = 0; j < cols; j++)
                    for (size_t i = 0; i < g->mr; i++)
                        y[1 + j * STRIDE + i] = add ? 3 : NAN;
                g->tile(w, x, k, cols, y + 1, STRIDE, add);
                for (size_t j = 0; j < g->nr; j++)
                    for (size_t i = 0; i < STRIDE - 1; i++) {
                        const float got = y[1 + j * STRIDE + i];
                        if (i >= g->mr || j >= cols) {
                            rest = rest && got == guard;
                            continue;
                        }
                        double want = add ? 3 : 0, size = want;
                        for (size_t p = 0; p < k; p++) {
                            const double t = (double)w[p * g->mr + i] *
                                             (double)x[p * g->nr + j];
                            want += t;
                            size += fabs(t);
                        }
                        if (exact)
                            exact_good = exact_good && (double)got == want;
                        else
                            bound = bound &&
                                    fabs((double)got - want) <=
                                        (double)(k + 1) * FLT_EPSILON * size;
                    }
            }
    ok(exact_good, "%s: tiles of exact inputs are equal", level);
    ok(bound, "%s: tiles within the bound of any order", level);
    ok(rest, "%s: tiles write nothing else", level);
}

/* Panels of packed rows against the reference's floats, from random bytes,
 * with infinite scales and NaN. */
static bool rows_good(const struct gg_kern *kern, const struct gg_kern *ref,
                      int dtype, size_t n, size_t first, size_t k)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(dtype);
    const struct gg_kern_gemm *g = &kern->gemm[GG_GEMM_EXACT];
    const size_t skew = 3, len = first + k,
                 stride = len / dt->block_len * dt->block_size + skew;
    const size_t n_panels = (n + g->mr - 1) / g->mr;
    unsigned char *w = must_alloc(malloc(n * stride));
    float *panels = must_alloc(aligned_new((n_panels * g->mr * k + 16) * 4));
    void *buf = must_alloc(aligned_new(g->buf_size));
    float *row = make_floats(len);
    bool good = true;
    for (size_t i = 0; i < n * stride; i++)
        w[i] = (unsigned char)rnd_below(256);
    panels[n_panels * g->mr * k] = guard;
    const struct gg_kern_gemm_rows rows = { dtype, w, stride, first };
    g->pack_rows(kern, g, &rows, n, k, panels, buf);
    for (size_t i = 0; i < n_panels * g->mr; i++) {
        const float *panel = panels + i / g->mr * g->mr * k + i % g->mr;
        if (i < n)
            ref->codec[dtype].decode(w + i * stride, row, len);
        else
            memset(row, 0, len * sizeof *row);
        for (size_t p = 0; p < k; p++)
            good =
                good && (!memcmp(&panel[p * g->mr], &row[first + p], 4) ||
                         (isnan(panel[p * g->mr]) && isnan(row[first + p])));
    }
    good = good && panels[n_panels * g->mr * k] == guard;
    free(w);
    aligned_free(panels);
    aligned_free(buf);
    free(row);
    return good;
}

static void check_rows(const char *level, const struct gg_kern *kern,
                       const struct gg_kern *ref, int dtype)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(dtype);
    const size_t block = dt->block_len;
    if (!kern->codec[dtype].decode || dt->row_header)
        return;
    ok(rows_good(kern, ref, dtype, 70, 0, 768) &&
           rows_good(kern, ref, dtype, 33, 256, 512) &&
           rows_good(kern, ref, dtype, 16, block * 2, 1280 - block) &&
           rows_good(kern, ref, dtype, 15, block, block),
       "%s: panels of %s are the reference's", level, dt->name);
}

/* ---- whole products ---- */

struct product {
    struct gg_cpu_gemm_args args;
    float *decoded; /* [m][k] */
    unsigned char *w;
    float *x, *y;
    size_t y_floats;
    struct gg_barrier barrier;
    void *work;
};

static void run_product(void *user, unsigned ith, unsigned nth)
{
    struct product *p = user;
    gg_cpu_gemm_run(&p->args, ith, nth, p->work, &p->barrier);
}

static bool product_init(struct product *p, const struct gg_kern *kern,
                         int dtype, size_t m, size_t n, size_t k, bool exact)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(dtype);
    const struct gg_codec_kern *codec = &kern->codec[dtype];
    if (!codec->decode || k % dt->block_len || dt->row_header)
        return false;
    const size_t row = k / dt->block_len * dt->block_size, skew = 5;
    *p = (struct product){ 0 };
    p->args = (struct gg_cpu_gemm_args){
        .kern = kern,
        .dtype_index = dtype,
        .w_stride = row + skew, /* rows begin at any address */
        .x_stride = (k + 3) * sizeof(float),
        .y_stride = (m + 5) * sizeof(float),
        .m = (int64_t)m,
        .n = (int64_t)n,
        .k = (int64_t)k,
    };
    p->w = must_alloc(malloc(m * p->args.w_stride + 1));
    p->decoded = make_floats(m * k);
    p->x = make_floats(n * (k + 3));
    p->y_floats = n * (m + 5);
    p->y = make_floats(p->y_floats);
    fill_floats(p->decoded, m * k, exact);
    fill_floats(p->x, n * (k + 3), exact);
    for (size_t i = 0; i < m; i++) {
        unsigned char *w = p->w + 1 + i * p->args.w_stride;
        if (codec->encode && !(codec->flags & GG_CODEC_NEEDS_WEIGHT))
            codec->encode(p->decoded + i * k, w, 1, k, NULL);
        else if (exact)
            return false;
        else
            for (size_t b = 0; b < row; b++) /* scales in F16, near 0.05 */
                w[b] = (unsigned char)(0x28 + rnd_below(8));
        codec->decode(w, p->decoded + i * k, k);
    }
    p->args.w = p->w + 1;
    p->args.x = p->x;
    p->args.y = p->y;
    return true;
}

static void product_fini(struct product *p)
{
    free(p->w);
    free(p->decoded);
    free(p->x);
    free(p->y);
}

static void product_run(struct product *p, struct gguf_pool *pool)
{
    const unsigned nth = gguf_pool_n_threads(pool);
    for (size_t i = 0; i < p->y_floats; i++)
        p->y[i] = guard;
    const size_t size = gg_cpu_gemm_work_size(&p->args, nth);
    unsigned char *work = must_alloc(malloc(size + 2));
    p->work = work + 1;
    memset(work, 0x77, size + 2);
    if (gg_barrier_init(&p->barrier, nth, 0, NULL)) {
        printf("Bail out! no barrier\n");
        exit(1);
    }
    gguf_pool_run(pool, (struct gguf_pool_callback){ run_product, p });
    gg_barrier_fini(&p->barrier);
    if (work[0] != 0x77 || work[size + 1] != 0x77) {
        printf("Bail out! wrote outside of work\n");
        exit(1);
    }
    free(work);
}

/* Compare every element with double precision. Memory between columns is not
 * written. */
static bool product_good(const struct product *p, bool exact)
{
    const struct gg_cpu_gemm_args *a = &p->args;
    const size_t m = (size_t)a->m, k = (size_t)a->k;
    for (size_t j = 0; j < (size_t)a->n; j++)
        for (size_t i = 0; i < m + 5; i++) {
            const float got = p->y[j * (m + 5) + i];
            double want = 0, size = 0;
            for (size_t q = 0; i < m && q < k; q++) {
                const double t = (double)p->decoded[i * k + q] *
                                 (double)p->x[j * (k + 3) + q];
                want += t;
                size += fabs(t);
            }
            if (i >= m)
                want = (double)guard;
            if (exact ? (double)got != want
                      : !(fabs((double)got - want) <=
                          (double)k * FLT_EPSILON * size)) {
                printf("# y[%zu][%zu] = %a, not %a\n", j, i, (double)got,
                       want);
                return false;
            }
        }
    return true;
}

static const size_t shapes[][3] = {
    /* m, n, k */
    { 1, 1, 256 },   { 1, 5, 256 },    { 33, 1, 512 },  { 40, 3, 1280 },
    { 31, 4, 256 },  { 32, 12, 768 },  { 65, 13, 512 }, { 129, 29, 1536 },
    { 7, 50, 256 },  { 200, 24, 256 }, { 3, 0, 256 },   { 0, 9, 256 },
    { 9, 7, 0 },     { 5, 2, 0 },      { 64, 100, 32 }, { 50, 17, 64 },
    { 20, 11, 96 },  { 37, 3, 160 },   { 19, 26, 1 },   { 21, 6, 53 },
    { 90, 2, 1029 }, { 70, 9, 1029 },
};
#define N_SHAPES (sizeof shapes / sizeof shapes[0])

static void check_products(const char *level, const struct gg_kern *kern,
                           int dtype, struct gguf_pool *const pool[4])
{
    enum { SLOW = 1 << 20 }; /* multiply-adds: two of the shapes */
    static unsigned n_slow;
    unsigned n = 0, n_exact = 0;
    bool bound = true, exact_good = true, same = true;
    for (size_t s = 0; s < N_SHAPES; s++)
        for (int exact = 0; exact < 2; exact++) {
            struct product p = { 0 };
            if (shapes[s][0] * shapes[s][1] * shapes[s][2] > SLOW &&
                !test_in_sample(n_slow++))
                continue;
            /* only types of floats store small integers exactly */
            if (exact && gg_dtype_by_index(dtype)->block_len > 1)
                continue;
            if (product_init(&p, kern, dtype, shapes[s][0], shapes[s][1],
                             shapes[s][2], exact)) {
                product_run(&p, pool[0]);
                if (exact)
                    exact_good = product_good(&p, true) && exact_good;
                else
                    bound = product_good(&p, false) && bound;
                n++;
                n_exact += exact;
                float *first = make_floats(p.y_floats);
                memcpy(first, p.y, p.y_floats * sizeof *first);
                for (unsigned t = 1; t < 4; t++) {
                    product_run(&p, pool[t]);
                    same = same &&
                           !memcmp(first, p.y, p.y_floats * sizeof *first);
                }
                free(first);
            }
            product_fini(&p);
        }
    const char *type = gg_dtype_by_index(dtype)->name;
    if (!n)
        return;
    ok(bound, "%s: %u products with %s within the bound", level, n - n_exact,
       type);
    if (n_exact)
        ok(exact_good, "%s: %u exact products with %s are equal", level,
           n_exact, type);
    ok(same, "%s: %s: same bits with 1 to 4 threads", level, type);
}

/* More columns than are packed at once; k is long enough for two passes. */
static void check_passes(const char *level, const struct gg_kern *kern,
                         struct gguf_pool *const pool[4])
{
    struct product p;
    product_init(&p, kern, GG_DT_F32, 3, 130, 65536, true);
    product_run(&p, pool[1]);
    ok(product_good(&p, true), "%s: two passes over the columns", level);
    product_fini(&p);
}

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
    struct gguf_pool *pool[4];
    for (unsigned t = 0; t < 4; t++) {
        struct gguf_pool_params params = GGUF_INIT(struct gguf_pool_params);
        params.n_threads = t + 1;
        if (gguf_pool_create(&pool[t], &params, NULL)) {
            printf("Bail out! no threads\n");
            return 1;
        }
    }
    struct test_level level[8];
    const unsigned n = test_levels(level);
    static struct gg_kern ref;
    gg_kern_init(&ref, 0);
    gg_codec_kern_set_native_order(ref.codec);
    for (unsigned i = 0; i < n; i++) {
        struct gg_kern kern;
        gg_kern_init(&kern, level[i].mask);
        gg_codec_kern_set_native_order(kern.codec);
        check_pack(level[i].name, &kern.gemm[GG_GEMM_EXACT]);
        check_tile(level[i].name, &kern.gemm[GG_GEMM_EXACT]);
        for (int t = 0; t < GG_N_DTYPES; t++)
            check_rows(level[i].name, &kern, &ref, t);
        for (int t = 0; t < GG_N_DTYPES; t++)
            check_products(level[i].name, &kern, t, pool);
        check_passes(level[i].name, &kern, pool);
    }
    for (unsigned t = 0; t < 4; t++)
        gguf_pool_destroy(pool[t]);
    return done_testing();
}
