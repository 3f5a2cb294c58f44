/* bench-gemm.c - products beside the machine's multiply-add peak
 *
 *     bench-gemm [THREADS [ROUNDS]]
 *
 * For each level that the machine has, shape and type: runs of a register-only
 * multiply-add loop and of the product take turns on the same threads. A run's
 * time is the processor time of its threads divided by their number, so what
 * other programs take from the machine does not count, and the best of ROUNDS
 * is printed with the spread to the median.
 */
#include "config.h"
#include "base/barrier.h"
#include "base/compiler.h"
#include "cpu/gemm.h"
#include "gguf/cpu.h"
#include "gguf/pool.h"
#include "peak.h"
#include "tests/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_THREADS = 64, MAX_ROUNDS = 100 };

struct job {
    struct gg_cpu_gemm_args args;
    void *work;
    struct gg_barrier barrier;
    unsigned level;
    size_t peak_rounds; /* 0: the product */
    double seconds[MAX_THREADS];
};

static void run(void *user, unsigned ith, unsigned nth)
{
    struct job *job = user;
    const double t0 = scratch_cpu_time();
    if (job->peak_rounds)
        peak_run(job->level, job->peak_rounds);
    else
        gg_cpu_gemm_run(&job->args, ith, nth, job->work, &job->barrier);
    job->seconds[ith] = scratch_cpu_time() - t0;
}

static double run_seconds(struct job *job, struct gguf_pool *pool)
{
    gguf_pool_run(pool, run, job);
    double sum = 0;
    const unsigned nth = gguf_pool_n_threads(pool);
    for (unsigned i = 0; i < nth; i++)
        sum += job->seconds[i];
    return sum / nth;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Best and median of n times; sorts them. */
static void best_median(double *t, unsigned n, double *best, double *median)
{
    qsort(t, n, sizeof *t, ascending);
    *best = t[0];
    *median = t[n / 2];
}

static void bench(struct job *job, struct gguf_pool *pool, unsigned rounds,
                  enum gg_kern_precision precision, const char *level)
{
    double peak[MAX_ROUNDS], product[MAX_ROUNDS];
    const struct gg_cpu_gemm_args *a = &job->args;
    const double flops = 2.0 * (double)a->m * (double)a->n * (double)a->k;
    job->peak_rounds = 0;
    run_seconds(job, pool); /* touches the memory */
    for (unsigned r = 0; r < rounds; r++) {
        job->peak_rounds = 2000000;
        peak[r] = run_seconds(job, pool);
        job->peak_rounds = 0;
        product[r] = run_seconds(job, pool);
    }
    double pb, pm, b, m;
    const unsigned nth = gguf_pool_n_threads(pool);
    best_median(peak, rounds, &pb, &pm);
    best_median(product, rounds, &b, &m);
    const double peak_rate = 2000000 * nth * peak_flops(job->level) / pb;
    const double rate = flops / b;
    printf("%-7s %s %-5s %5d x %4d x %5d  %7.1f GFLOP/s %5.1f%% of %6.1f "
           "(median %4.1f%% slower, peak's %4.1f%%)\n",
           level, gguf_precision_name(precision),
           gg_dtype_by_index(a->dtype_index)->name, (int)a->m, (int)a->n,
           (int)a->k, rate * 1e-9, 100 * rate / peak_rate, peak_rate * 1e-9,
           100 * (m / b - 1), 100 * (pm / pb - 1));
    fflush(stdout);
}

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "bench-gemm: out of memory\n");
        exit(1);
    }
    return p;
}

static void bench_shape(struct job *job, struct gguf_pool *pool,
                        unsigned rounds, int dtype,
                        enum gg_kern_precision precision, const char *level)
{
    struct gg_cpu_gemm_args *a = &job->args;
    const struct gguf_dtype_info *dt = gg_dtype_by_index(dtype);
    struct gg_kern kern = *a->kern;
    if (!a->kern->codec[dtype].decode || a->k % dt->block_len)
        return;
    a->dtype_index = dtype;
    kern.precision = precision;
    a->form = gg_kern_gemm_form_of(&kern, dtype);
    for (unsigned p = 0; p < precision; p++) { /* said already */
        kern.precision = (enum gg_kern_precision)p;
        if (gg_kern_gemm_form_of(&kern, dtype) == a->form)
            return;
    }
    a->w_stride = (size_t)a->k / dt->block_len * dt->block_size;
    a->x_stride = (size_t)a->k * sizeof(float);
    a->y_stride = (size_t)a->m * sizeof(float);
    const size_t w_size = (size_t)a->m * a->w_stride;
    const size_t nx = (size_t)(a->k * a->n);
    unsigned char *w = must(malloc(w_size));
    float *x = must(malloc(nx * sizeof *x));
    a->y = must(malloc((size_t)(a->m * a->n) * sizeof(float)));
    job->work =
        must(malloc(gg_cpu_gemm_work_size(a, gguf_pool_n_threads(pool)) + 1));
    for (size_t i = 0; i < w_size; i++) /* halves near 0.05 */
        w[i] = (unsigned char)(0x28 + (i * 2654435761u >> 29));
    for (size_t i = 0; i < nx; i++)
        x[i] = (float)(i % 17) - 8;
    a->w = w;
    a->x = x;
    bench(job, pool, rounds, precision, level);
    free(w);
    free(x);
    free(a->y);
    free(job->work);
}

int main(int argc, char **argv)
{
    static const int shapes[][3] = {
        /* m, n, k */
        { 2048, 512, 2048 }, { 5632, 512, 2048 }, { 2048, 512, 5632 },
        { 256, 512, 2048 },  { 4096, 64, 4096 },  { 4096, 16, 4096 },
        { 4096, 8, 4096 },   { 4096, 4, 4096 },   { 4096, 2, 4096 },
        { 4096, 1, 4096 },
    };
    static const int types[] = { GG_DT_F32,     GG_DT_F16,   GG_DT_Q8_0,
                                 GG_DT_Q4_0,    GG_DT_Q4_K,  GG_DT_Q6_K,
                                 GG_DT_Q5_K,    GG_DT_Q2_K,  GG_DT_Q3_K,
                                 GG_DT_IQ2_XXS, GG_DT_IQ3_S, GG_DT_IQ4_XS,
                                 GG_DT_MXFP4 };
    struct gguf_pool_params params = GGUF_POOL_PARAMS_INIT;
    params.n_threads = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 7;
    rounds = GG_MAX(1, GG_MIN(rounds, (unsigned)MAX_ROUNDS));
    struct gguf_pool *pool;
    struct gguf_error err;
    static struct job job;
    struct gg_kern kern;
    if (gguf_pool_create(&pool, &params, &err) ||
        gguf_pool_n_threads(pool) > MAX_THREADS ||
        gg_barrier_init(&job.barrier, gguf_pool_n_threads(pool),
                        gg_barrier_spin(gguf_pool_n_threads(pool)), &err)) {
        fprintf(stderr, "bench-gemm: cannot start the threads\n");
        return 1;
    }
    printf("%u threads, best of %u\n", gguf_pool_n_threads(pool), rounds);
    const uint32_t cpu = gg_kern_cpu_detect();
    uint32_t mask = 0;
    for (unsigned l = 0; l <= gg_kern_cpu_n_levels; l++) {
        if (l && !(cpu & gg_kern_cpu_levels[l - 1].bit))
            continue;
        mask |= l ? gg_kern_cpu_levels[l - 1].bit : 0;
        gg_kern_init(&kern, mask);
        job.args.kern = &kern;
        job.level = l;
        for (size_t s = 0; s < GG_LEN(shapes); s++)
            for (size_t t = 0; t < GG_LEN(types); t++) {
                if (l == 0 && (s || t)) /* C is slow: one line */
                    continue;
                job.args.m = shapes[s][0];
                job.args.n = shapes[s][1];
                job.args.k = shapes[s][2];
                for (unsigned p = 0; p < GG_N_PRECISIONS; p++)
                    bench_shape(&job, pool, rounds, types[t],
                                (enum gg_kern_precision)p,
                                l ? gg_kern_cpu_levels[l - 1].name : "c");
            }
    }
    gg_barrier_fini(&job.barrier);
    gguf_pool_destroy(pool);
    return 0;
}
