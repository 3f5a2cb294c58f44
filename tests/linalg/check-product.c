/* SPDX-License-Identifier: MIT */
/* check-product.c - dense products against sums in double precision */
#include "config.h"
#include "base/compiler.h"
#include "kern/cpu_features.h"
#include "linalg/linalg.h"
#include "tests/linalg/dense.h"

#include <float.h>

static struct gguf_pool *make_pool(unsigned n)
{
    struct gguf_pool_params params = GGUF_INIT(struct gguf_pool_params);
    struct gguf_pool *pool;
    params.n_threads = n;
    if (gguf_pool_create(&pool, &params, NULL))
        exit(99);
    return pool;
}

static double read_element(const struct gg_linalg_factor *f, size_t i,
                           size_t j)
{
    return (double)(f->transposed ? f->at[j * f->stride + i]
                                  : f->at[i * f->stride + j]);
}

/* Is each element of c within the bound for any order of additions, and each
 * element that is not computed still before? */
static bool is_product(const struct gg_linalg_product *p, const float *before)
{
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->c_stride; j++) {
            const double c = (double)p->c[i * p->c_stride + j];
            const double old = (double)before[i * p->c_stride + j];
            if (j >= p->n || (p->upper && j < i)) {
                if (c != old)
                    return false;
                continue;
            }
            double sum = 0, size = 0;
            for (size_t k = 0; k < p->k; k++) {
                const double x =
                    read_element(&p->a, i, k) * read_element(&p->b, k, j);
                sum += x;
                size += fabs(x);
            }
            if (p->store == GG_LINALG_SUBTRACT)
                sum = -sum;
            if (p->store != GG_LINALG_SET) {
                sum += old;
                size += fabs(old);
            }
            if (!(fabs(c - sum) <= ((double)p->k + 2) * FLT_EPSILON * size))
                return false;
        }
    return true;
}

static const size_t sizes[][3] = {
    /* m, n, k */
    { 1, 1, 1 },     { 3, 5, 0 },      { 12, 32, 7 },     { 13, 33, 511 },
    { 40, 17, 512 }, { 65, 130, 513 }, { 29, 300, 1100 }, { 400, 130, 40 },
};

static void check_shapes(struct gguf_pool *pool, uint32_t cpu)
{
    struct gg_linalg la;
    gg_linalg_init_cpu(&la, pool, NULL, cpu);
    for (size_t s = 0; s < GG_LEN(sizes); s++) {
        const size_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
        bool good = true;
        for (unsigned form = 0; form < 24; form++) {
            const bool at = form & 1, bt = form & 2, upper = form & 4;
            const size_t as = (at ? m : k) + 3, bs = (bt ? k : n) + 1;
            float *a = dense_random((at ? k : m) * as);
            float *b = dense_random((bt ? n : k) * bs);
            float *c = dense_random(m * (n + 2));
            float *before = dense_alloc(m * (n + 2), sizeof *before);
            memcpy(before, c, m * (n + 2) * sizeof *c);
            const struct gg_linalg_product p = {
                .a = { a, as, at },
                .b = { b, bs, bt },
                .c = c,
                .c_stride = n + 2,
                .m = m,
                .n = n,
                .k = k,
                .store = (enum gg_linalg_store)(form / 8),
                .upper = upper,
            };
            good &= gg_linalg_multiply(&la, &p, NULL) == GGUF_OK;
            good &= is_product(&p, before);
            free(a);
            free(b);
            free(c);
            free(before);
        }
        ok(good, "%zu x %zu x %zu: each form is the product, levels %#x", m, n,
           k, cpu);
    }
    gg_linalg_fini(&la);
}

/* Sums of products of columns, with a pool and the levels in cpu; the rows of
 * the sums in parts. */
static float *column_sums(const float *x, const float *y, size_t nx, size_t ny,
                          size_t n_rows, size_t part, struct gguf_pool *pool,
                          uint32_t cpu)
{
    struct gg_linalg la;
    float *sum = dense_alloc(nx * ny, sizeof *sum);
    bool good = true;
    gg_linalg_init_cpu(&la, pool, NULL, cpu);
    for (size_t i = 0; i < nx; i += part)
        good &= gg_linalg_add_products(&la, sum + i * ny, ny, x + i, nx,
                                       GG_MIN(part, nx - i), y, ny, ny, n_rows,
                                       false, NULL) == GGUF_OK;
    gg_linalg_fini(&la);
    if (!good)
        exit(99);
    return sum;
}

static void check_same_bits(struct gguf_pool *pool)
{
    enum { NX = 203, NY = 170, ROWS = 700 };
    float *x = dense_random(NX * ROWS), *y = dense_random(NY * ROWS);
    const uint32_t cpu = gg_kern_cpu_detect();
    const size_t size = NX * NY * sizeof *x;
    float *one = column_sums(x, y, NX, NY, ROWS, NX, NULL, cpu);
    float *three = column_sums(x, y, NX, NY, ROWS, NX, pool, cpu);
    float *parts = column_sums(x, y, NX, NY, ROWS, 7, pool, cpu);
    ok(!memcmp(one, three, size), "three threads give the bits of one");
    ok(!memcmp(one, parts, size), "parts of the rows give the same bits");
    if (cpu & GG_CPU_256 && cpu != GG_CPU_256) {
        float *half = column_sums(x, y, NX, NY, ROWS, NX, NULL, GG_CPU_256);
        ok(!memcmp(one, half, size),
           "256 bits give the bits of the highest level");
        free(half);
    } else
        skip("no level above 256 bits");
    free(one);
    free(three);
    free(parts);
    free(x);
    free(y);
}

/* Sums of small integers are exact: a lost or doubled row would show. */
static void check_exact(void)
{
    enum { N = 70, ROWS = 1500 };
    float *x = dense_alloc(N * ROWS, sizeof *x);
    bool good = true, symmetric = true;
    for (size_t i = 0; i < N * ROWS; i++)
        x[i] = (float)rnd_below(9) - 4;
    float *sum = column_sums(x, x, N, N, ROWS, N, NULL, gg_kern_cpu_detect());
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            long long exact = 0;
            for (size_t t = 0; t < ROWS; t++)
                exact += (long long)x[t * N + i] * (long long)x[t * N + j];
            good &= (long long)sum[i * N + j] == exact;
            symmetric &= sum[i * N + j] == sum[j * N + i];
        }
    ok(good, "sums of integers are exact");
    ok(symmetric, "sums of a matrix with itself are symmetric");
    free(x);
    free(sum);
}

/* Sums over many rows in calls of 512, as of calibration: is single precision
 * enough? Errors relative to the columns' norms. Measured: 4e-7; the rounding
 * of 64 calls, and of chains of 512 steps, grows with the square root. */
static void check_many_rows(void)
{
    enum { N = 24, CALL = 512, CALLS = 64 };
    struct gg_linalg la;
    float *x = dense_random(N * CALL * CALLS), *s = dense_alloc(N * N, 4);
    double *want = dense_alloc(N * N, sizeof *want), worst = 0;
    bool done = true;
    gg_linalg_init(&la, NULL, NULL);
    for (size_t i = 0; i < N * CALL * CALLS; i++)
        x[i] += 0.5f * (float)(i % N); /* means that are not 0 */
    for (size_t call = 0; call < CALLS; call++) {
        const float *rows = x + call * CALL * N;
        done &= !gg_linalg_add_products(&la, s, N, rows, N, N, rows, N, N,
                                        CALL, true, NULL);
    }
    for (size_t t = 0; t < CALL * CALLS; t++)
        for (size_t i = 0; i < N; i++)
            for (size_t j = i; j < N; j++)
                want[i * N + j] += (double)x[t * N + i] * (double)x[t * N + j];
    for (size_t i = 0; i < N; i++)
        for (size_t j = i; j < N; j++)
            worst = fmax(worst, fabs((double)s[i * N + j] - want[i * N + j]) /
                                    sqrt(want[i * N + i] * want[j * N + j]));
    ok(done && worst <= 5e-6, "sums over %d rows are within %.2g",
       CALL * CALLS, worst);
    gg_linalg_fini(&la);
    free(x);
    free(s);
    free(want);
}

static void check_mirror(struct gguf_pool *pool)
{
    enum { N = 101 };
    struct gg_linalg la;
    bool good = true;
    float *s = dense_random(N * N), *old = dense_alloc(N * N, sizeof *old);
    memcpy(old, s, N * N * sizeof *s);
    gg_linalg_init(&la, pool, NULL);
    gg_linalg_mirror(&la, s, N);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++)
            good &= s[i * N + j] == old[i <= j ? i * N + j : j * N + i];
    ok(good, "elements below the diagonal are copies of those above");
    gg_linalg_fini(&la);
    free(s);
    free(old);
}

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
    struct gguf_pool *pool = make_pool(3);
    check_shapes(pool, gg_kern_cpu_detect());
    check_shapes(NULL, 0);
    check_same_bits(pool);
    check_exact();
    check_many_rows();
    check_mirror(pool);
    gguf_pool_destroy(pool);
    return done_testing();
}
