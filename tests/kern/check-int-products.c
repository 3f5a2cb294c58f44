/* SPDX-License-Identifier: MIT */
/* check-int-products.c - whole products on integers
 *
 * A product equals that of the decoded weights up to the rounding of
 * activations, at most half a step (for BF16, of weights and activations). Its
 * bits do not depend on the number of threads.
 */
#include "config.h"
#include "base/barrier.h"
#include "base/compiler.h"
#include "cpu/matmul.h"
#include "dtype/block.h"
#include "gguf/pool.h"
#include "tests/kern/activations.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

struct product {
    struct gg_cpu_gemm_args args;
    struct gg_barrier barrier;
    void *work;
};

static void run_product(void *user, unsigned ith, unsigned nth)
{
    struct product *p = user;
    gg_cpu_gemm_run(&p->args, ith, nth, p->work, &p->barrier);
}

static void multiply_all(struct product *p, struct gguf_pool *pool)
{
    const unsigned nth = gguf_pool_n_threads(pool);
    p->work =
        activations_must(malloc(gg_cpu_gemm_work_size(&p->args, nth) + 1));
    if (gg_barrier_init(&p->barrier, nth, 0, NULL)) {
        printf("Bail out! no barrier\n");
        exit(1);
    }
    gguf_pool_run(pool, (struct gguf_pool_callback){ run_product, p });
    gg_barrier_fini(&p->barrier);
    free(p->work);
}

/* Compare each element: half a step for each activation, plus the F32 sums. */
static bool product_good(const struct product *p, const float *decoded,
                         bool integers)
{
    const struct gg_cpu_gemm_args *a = &p->args;
    const struct gg_kern_gemm *g = &a->kern->gemm[a->form];
    const size_t m = (size_t)a->m, n = (size_t)a->n, k = (size_t)a->k;
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++) {
            const float *w = decoded + i * k, *x = a->x + j * k;
            double want = 0, size = 0, lost = 0;
            const bool narrow = g->ints.width == 1;
            const size_t steps = narrow ? 32 : ACTS_STEPS;
            for (size_t b = 0; b < k; b += steps) {
                double max = 0, sum = 0, all = 0;
                for (size_t q = b; q < GG_MIN(k, b + steps); q++) {
                    want += (double)w[q] * (double)x[q];
                    size += fabs((double)w[q] * (double)x[q]);
                    all += fabs((double)w[q]);
                    max = fmax(max, fabs((double)x[q]));
                    sum += fabs((double)x[q]);
                }
                if (narrow)
                    lost += all * 0.51 * max / 127;
                else if (g->ints.width && !integers)
                    lost +=
                        all * 0.51 *
                        fmax(max / 32767, 1.01 * sum / (double)g->ints.most);
            }
            if (a->form == GG_GEMM_BF16) /* weights and activations are rounded
                                          * to 8 bits */
                lost = size * 0x1.02p-8;
            /* minima are subtracted, so the bound is a few times the sum */
            if (fabs((double)a->y[j * m + i] - want) >
                lost + 64 * (double)k * FLT_EPSILON * size) {
                printf("# y[%zu][%zu] = %a, not %a\n", j, i,
                       (double)a->y[j * m + i], want);
                return false;
            }
        }
    return true;
}

static void check_products(const char *level, const struct gg_kern *kern,
                           int dtype, int form, struct gguf_pool *const pool[])
{
    static const size_t shapes[][3] = {
        { 1, 4, 256 },    { 33, 5, 512 },  { 70, 25, 1280 },
        { 129, 13, 768 }, { 7, 50, 2304 },
    };
    enum { QUICK = 2 };
    static unsigned n_slow;
    const struct gguf_dtype_info *dt = gg_dtype_by_index(dtype);
    bool good = true, same = true, apart = true;
    for (size_t s = 0; s < 2 * GG_LEN(shapes); s++) {
        const size_t *d = shapes[s / 2], m = d[0], n = d[1];
        if (s / 2 >= QUICK && !test_in_sample(n_slow++))
            continue;
        const size_t k =
            dt->block_len < ACTS_STEPS ? d[2] - dt->block_len : d[2];
        const size_t size = k / dt->block_len * dt->block_size;
        unsigned char *w = activations_must(malloc(m * size));
        float *decoded = activations_must(malloc(m * k * sizeof *decoded));
        float *x = activations_must(malloc(n * k * sizeof *x));
        float *y = activations_must(malloc(2 * n * m * sizeof *y)),
              *first = y + n * m;
        for (size_t i = 0; i < m * size; i++) /* scales in F16, near 0.05 */
            w[i] = (unsigned char)(0x28 + rnd_below(8));
        for (size_t i = 0; i < m; i++)
            kern->codec[dtype].decode(w + i * size, decoded + i * k, k);
        activations_fill(x, n * k, s & 1 ? ACTS_INTEGERS : ACTS_NORMAL);
        struct product p = { .args = { .kern = kern,
                                       .form = (enum gg_kern_gemm_form)form,
                                       .dtype_index = dtype,
                                       .w = w,
                                       .w_stride = size,
                                       .x = x,
                                       .x_stride = k * sizeof *x,
                                       .y = y,
                                       .y_stride = m * sizeof *y,
                                       .m = (int64_t)m,
                                       .n = (int64_t)n,
                                       .k = (int64_t)k } };
        multiply_all(&p, pool[0]);
        good = good && product_good(&p, decoded, s & 1);
        memcpy(first, y, n * m * sizeof *y);
        multiply_all(&p, pool[1]);
        same = same && !memcmp(first, y, n * m * sizeof *y);
        /* the smallest number of columns that is rounded */
        p.args.n = GG_MAX(1, (int64_t)kern->gemm[form].narrow);
        multiply_all(&p, pool[0]);
        apart = apart && !memcmp(first, y, (size_t)p.args.n * m * sizeof *y);
        free(w);
        free(decoded);
        free(x);
        free(y);
    }
    ok(good, "%s: products with %s: exact but for rounding", level, dt->name);
    ok(same && apart,
       "%s: %s: same bits with 1 and 3 threads, one column (of pairs of BF16 "
       "4) or more",
       level, dt->name);
}

static bool same_bits(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

/* A few columns, multiplied straight from the blocks, have the bits that they
 * have among many columns, multiplied by panels. The row of the type says the
 * largest number. Blocks have random bytes. */
static void check_few(const char *level, const struct gg_kern *kern, int dtype,
                      int form, struct gguf_pool *const pool[])
{
    static const size_t shapes[][2] = {
        { 16, 256 }, { 48, 512 }, { 1, 768 }, { 70, 1280 }, { 129, 4608 },
    };
    enum { MANY = 17, QUICK = 3 };
    static unsigned n_slow;
    const struct gguf_dtype_info *dt = gg_dtype_by_index(dtype);
    const unsigned most = kern->gemm[form].few[dtype].most;
    bool good = true, limited = most > 0 && most <= GG_GEMM_FEW;
    for (size_t s = 0; s < 2 * GG_LEN(shapes); s++) {
        const size_t m = shapes[s / 2][0], full = shapes[s / 2][1];
        if (s / 2 >= QUICK && !test_in_sample(n_slow++))
            continue;
        const size_t k =
            s & 1 && dt->block_len < ACTS_STEPS ? full - dt->block_len : full;
        const size_t size = k / dt->block_len * dt->block_size, skew = 5;
        unsigned char *w = activations_must(malloc(m * (size + skew)));
        float *x = activations_must(malloc(MANY * k * sizeof *x));
        float *y = activations_must(malloc(2 * MANY * m * sizeof *y));
        for (size_t i = 0; i < m * (size + skew); i++)
            w[i] = (unsigned char)rnd_below(s & 1 ? 256 : 0x60);
        activations_fill(x, MANY * k, s % 3 ? ACTS_NORMAL : ACTS_EQUAL);
        if (s == 5)
            activations_fill(x + 3 * k, k, ACTS_NOT_FINITE);
        struct product p = { .args = { .kern = kern,
                                       .form = (enum gg_kern_gemm_form)form,
                                       .dtype_index = dtype,
                                       .w = w,
                                       .w_stride = size + skew,
                                       .x = x,
                                       .x_stride = k * sizeof *x,
                                       .y = y,
                                       .y_stride = m * sizeof *y,
                                       .m = (int64_t)m,
                                       .n = MANY,
                                       .k = (int64_t)k } };
        multiply_all(&p, pool[0]);
        p.args.y = y + MANY * m;
        for (size_t n = 1; n <= GG_GEMM_FEW + 1; n++) {
            memset(p.args.y, 0x5a, MANY * m * sizeof *y);
            p.args.n = (int64_t)n;
            multiply_all(&p, pool[n % 2]);
            limited = limited && !gg_cpu_gemm_count_panels(
                                     &p.args, &(size_t){ 0 }) == (n <= most);
            good = good && same_bits(y, p.args.y, n * m) &&
                   (((unsigned char *)(p.args.y + n * m))[0] == 0x5a);
        }
        free(w);
        free(x);
        free(y);
    }
    ok(good, "%s: %s: few columns are as they are among many", level,
       dt->name);
    ok(limited, "%s: %s: up to %u columns take no panels", level, dt->name,
       most);
}

/* Offset of the scale in F16 in blocks of each type. MXFP4 has an exponent. */
static const struct halves {
    int dtype;
    size_t d, dmin;
} halves[] = {
#define D(TYPE, NAME, SCALE, MIN)                                             \
    { GG_DT_##TYPE, offsetof(struct gg_block_##NAME, SCALE),                  \
      offsetof(struct gg_block_##NAME, MIN) },
    D(Q4_0, q4_0, d, d) D(Q8_0, q8_0, d, d) D(IQ4_NL, iq4_nl, d, d)
        D(IQ4_XS, iq4_xs, d, d) D(Q2_K, q2_k, d, dmin) D(Q3_K, q3_k, d, d) D(
            Q4_K, q4_k, d, dmin) D(Q5_K, q5_k, d, dmin) D(Q6_K, q6_k, d, d)
            D(Q4_1, q4_1, d, m) D(Q5_0, q5_0, d, d) D(Q5_1, q5_1, d,
                                                      m) D(TQ2_0, tq2_0, d, d)
                D(MXFP4, mxfp4, e, e) D(TQ1_0, tq1_0, d, d) D(Q1_0, q1_0, d, d)
                    D(Q2_0, q2_0, d, d) D(Q6_0, q6_0, d, d) D(Q8_1, q8_1, d, d)
                        D(IQ1_S, iq1_s, d, d) D(IQ2_XXS, iq2_xxs, d, d)
                            D(IQ2_XS, iq2_xs, d, d) D(IQ2_S, iq2_s, d, d)
                                D(IQ3_XXS, iq3_xxs, d, d) D(IQ3_S, iq3_s, d, d)
#undef D
};

/* Fill n bytes of blocks with the largest and smallest integers. */
static void fill_extremes(unsigned char *w, size_t n, int dtype)
{
    static const unsigned char extreme[] = { 0, 0xff, 0x80, 0x7f };
    const size_t size = gg_dtype_by_index(dtype)->block_size;
    for (size_t b = 0; b + size <= n; b += size) {
        const unsigned char all = extreme[rnd_below(4)];
        for (size_t i = 0; i < size; i++)
            w[b + i] = rnd_below(20) ? all : extreme[rnd_below(4)];
        for (size_t h = 0; h < GG_LEN(halves); h++)
            if (halves[h].dtype == dtype) {
                memcpy(w + b + halves[h].dmin, "\x66\x2e", 2);
                memcpy(w + b + halves[h].d, "\x11\x2f", 2);
            }
        if (dtype == GG_DT_Q8_K) /* scale 1, and half of the nibbles */
            memcpy(w + b, "\0\0\x80\x3f", 4);
        if (dtype == GG_DT_IQ1_M)
            w[b + size - 1] = (unsigned char)(0x20 | (w[b + size - 1] & 15));
    }
}

/* Fill columns with the largest activations: of one sign, of the other, of
 * both. */
static void fill_largest(float *x, size_t n_cols, size_t k)
{
    for (size_t j = 0; j < n_cols; j++)
        for (size_t i = 0; i < k; i++) {
            const size_t minus[] = { 0, 1, i / 16 % 2, rnd_below(2) };
            x[j * k + i] = minus[j % 4] ? -2.5f : 2.5f;
        }
}

/* The largest possible sums of a few columns have the bits that they have
 * among many columns. */
static void check_extremes(const struct acts_form *f,
                           struct gguf_pool *const pool[])
{
    enum { M = 48, K = 1024, MANY = 17 };
    const struct gguf_dtype_info *dt = gg_dtype_by_index(f->dtype);
    const size_t size = K / dt->block_len * dt->block_size;
    unsigned char *w = activations_must(malloc(M * size));
    float *x = activations_must(malloc((size_t)MANY * K * sizeof *x));
    float *y = activations_must(malloc((size_t)2 * MANY * M * sizeof *y));
    bool good = true;
    fill_extremes(w, M * size, f->dtype);
    fill_largest(x, MANY, K);
    struct product p = { .args = { .kern = f->kern,
                                   .form = (enum gg_kern_gemm_form)f->form,
                                   .dtype_index = f->dtype,
                                   .w = w,
                                   .w_stride = size,
                                   .x = x,
                                   .x_stride = K * sizeof *x,
                                   .y = y,
                                   .y_stride = M * sizeof *y,
                                   .m = M,
                                   .n = MANY,
                                   .k = K } };
    multiply_all(&p, pool[0]);
    for (size_t i = 0; i < (size_t)MANY * M; i++)
        good = good && isfinite(y[i]);
    p.args.y = y + MANY * M;
    for (p.args.n = 1; p.args.n <= GG_GEMM_FEW; p.args.n++) {
        multiply_all(&p, pool[1]);
        good = good && !memcmp(y, p.args.y, (size_t)p.args.n * M * sizeof *y);
    }
    free(w);
    free(x);
    free(y);
    ok(good, "%s: %s: few columns with the largest integers", f->level,
       dt->name);
}

static void check_type(const struct acts_form *f, void *user)
{
    const struct gg_kern_gemm *g = &f->kern->gemm[f->form];
    static uint32_t modelled; /* forms; check-amx.c has all types */
    if (f->level == tile_model_name()) {
        if (modelled >> f->form & 1)
            return;
        modelled |= UINT32_C(1) << f->form;
    }
    check_products(f->level, f->kern, f->dtype, f->form, user);
    if (g->few && g->few[f->dtype].run) {
        check_few(f->level, f->kern, f->dtype, f->form, user);
        check_extremes(f, user);
    }
}

int main(int argc, char **argv)
{
    struct gguf_pool *pool[2];
    rnd_seed(argc, argv);
    for (unsigned t = 0; t < 2; t++) {
        struct gguf_pool_params params = GGUF_INIT(struct gguf_pool_params);
        params.n_threads = 1 + 2 * t;
        if (gguf_pool_create(&pool[t], &params, NULL)) {
            printf("Bail out! no threads\n");
            return 1;
        }
    }
    acts_each_form(check_type, pool);
    for (unsigned t = 0; t < 2; t++)
        gguf_pool_destroy(pool[t]);
    return done_testing();
}
