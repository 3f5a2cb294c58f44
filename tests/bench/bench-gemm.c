/* SPDX-License-Identifier: MIT */
/* bench-gemm.c - rates of matrix products, as a part of the machine's peak
 *
 *   bench-gemm [THREADS [ROUNDS [PART]]]
 *
 * Measures each shape and type (with PART in its name) in each precision, at
 * each level of the machine. The product runs in turns, on the same threads,
 * with a loop of multiply-adds in registers, of floats or of the same
 * integers. With few columns it runs in turns with memcpy instead, and the
 * bytes of weights read per second are printed. The time is the processor time
 * of the threads divided by their number, so that other programs do not count.
 * The best of ROUNDS is printed, with the spread to the median.
 */
#include "config.h"
#include "base/barrier.h"
#include "base/compiler.h"
#include "cpu/matmul.h"
#include "gguf/cpu.h"
#include "gguf/pool.h"
#include "tests/bench/peak.h"
#include "tests/bench/row.h"
#include "tests/scratch.h"

#include <time.h>

enum {
    MAX_THREADS = 64,
    MAX_ROUNDS = 100,
    PEAK_ROUNDS = 1000000,
    NARROW = 8,          /* up to that number of columns, time is spent on
                          * reading weights */
    COPY_SIZE = 64 << 20 /* bytes: more than caches hold */
};

enum what { PRODUCT, PEAK, COPY };

struct job {
    struct gg_cpu_gemm_args args;
    void *work;
    struct gg_barrier barrier;
    unsigned level, width; /* width: bytes of the multiplied integers; 0:
                            * floats */
    enum what what;
    unsigned char *from, *to; /* COPY_SIZE bytes each */
    double seconds[MAX_THREADS];
};

static void run_job(void *user, unsigned ith, unsigned nth)
{
    struct job *job = user;
    const double t0 = scratch_cpu_time();
    const size_t part = COPY_SIZE / nth;
    if (job->what == COPY)
        memcpy(job->to + ith * part, job->from + ith * part, part);
    else if (job->what == PEAK && job->width)
        peak_run_ints(job->level, job->width, PEAK_ROUNDS);
    else if (job->what == PEAK)
        peak_run(job->level, PEAK_ROUNDS);
    else
        gg_cpu_gemm_run(&job->args, ith, nth, job->work, &job->barrier);
    job->seconds[ith] = scratch_cpu_time() - t0;
}

static double run_seconds(struct job *job, struct gguf_pool *pool,
                          enum what what)
{
    job->what = what;
    gguf_pool_run(pool, (struct gguf_pool_callback){ run_job, job });
    double sum = 0;
    const unsigned nth = gguf_pool_n_threads(pool);
    for (unsigned i = 0; i < nth; i++)
        sum += job->seconds[i];
    return sum / nth;
}

/* Rate of the peak beside a product: operations or bytes per second. */
static double peak_rate(const struct job *job, unsigned nth)
{
    if (job->args.n <= NARROW)
        return COPY_SIZE;
    return PEAK_ROUNDS * (double)nth *
           (job->width ? peak_ints(job->level, job->width)
                       : peak_flops(job->level));
}

static void bench_product(struct job *job, struct gguf_pool *pool,
                          unsigned rounds, enum gg_kern_precision precision,
                          const char *level)
{
    double other[MAX_ROUNDS], product[MAX_ROUNDS], ignored;
    const struct gg_cpu_gemm_args *a = &job->args;
    const bool narrow = a->n <= NARROW;
    const double work = narrow
                            ? (double)a->m * (double)a->w_stride
                            : 2.0 * (double)a->m * (double)a->n * (double)a->k;
    const unsigned nth = gguf_pool_n_threads(pool);
    char shape[64];
    job->width = a->kern->gemm[a->form].ints.width;
    run_seconds(job, pool, PRODUCT); /* touches the memory */
    if (narrow)
        run_seconds(job, pool, COPY);
    for (unsigned r = 0; r < rounds; r++) {
        other[r] = run_seconds(job, pool, narrow ? COPY : PEAK);
        product[r] = run_seconds(job, pool, PRODUCT);
    }
    snprintf(shape, sizeof shape, "%d x %d x %d", (int)a->m, (int)a->n,
             (int)a->k);
    struct bench_row r = { .table = narrow ? "narrow products" : "products",
                           .what = gg_dtype_by_index(a->dtype_index)->name,
                           .shape = shape,
                           .level = level,
                           .precision = gguf_precision_name(precision),
                           .threads = nth,
                           .unit = narrow ? "GB/s" : "GFLOP/s" };
    const double rate = work / bench_best(product, rounds, &r.spread);
    const double most =
        peak_rate(job, nth) / bench_best(other, rounds, &ignored);
    r.value = 1e-9 * rate;
    r.part = rate / most;
    r.of = narrow       ? "memcpy"
           : job->width ? "integer peak"
                        : "multiply-add peak";
    bench_row(&r);
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
    /* another precision has printed it */
    for (unsigned p = 0; p < precision; p++) {
        kern.precision = (enum gg_kern_precision)p;
        if (gg_kern_gemm_form_of(&kern, dtype) == a->form)
            return;
    }
    a->w_stride = (size_t)a->k / dt->block_len * dt->block_size;
    a->x_stride = (size_t)a->k * sizeof(float);
    a->y_stride = (size_t)a->m * sizeof(float);
    const size_t w_size = (size_t)a->m * a->w_stride;
    const size_t nx = (size_t)(a->k * a->n);
    unsigned char *w = bench_must(malloc(w_size));
    float *x = bench_must(malloc(nx * sizeof *x));
    a->y = bench_must(malloc((size_t)(a->m * a->n) * sizeof(float)));
    job->work = bench_must(
        malloc(gg_cpu_gemm_work_size(a, gguf_pool_n_threads(pool)) + 1));
    for (size_t i = 0; i < w_size; i++) /* scales in F16 near 0.05 */
        w[i] = (unsigned char)(0x28 + (i * 2654435761u >> 29));
    for (size_t i = 0; i < nx; i++)
        x[i] = (float)(i % 17) - 8;
    a->w = w;
    a->x = x;
    bench_product(job, pool, rounds, precision, level);
    free(w);
    free(x);
    free(a->y);
    free(job->work);
}

static const int shapes[][3] = {
    /* m, n, k */
    { 2048, 512, 2048 }, { 5632, 512, 2048 }, { 2048, 512, 5632 },
    { 256, 512, 2048 },  { 4096, 64, 4096 },  { 4096, 16, 4096 },
    { 16384, 8, 4096 },  { 16384, 4, 4096 },  { 16384, 2, 4096 },
    { 16384, 1, 4096 },
};
/* Types from N_WIDE on are measured with few columns only. */
static const int types[] = {
    GG_DT_F32,     GG_DT_F16,    GG_DT_Q8_0,  GG_DT_Q4_0,   GG_DT_Q4_K,
    GG_DT_Q6_K,    GG_DT_Q5_K,   GG_DT_Q2_K,  GG_DT_Q3_K,   GG_DT_IQ2_XXS,
    GG_DT_IQ3_S,   GG_DT_IQ4_XS, GG_DT_MXFP4, GG_DT_Q5_1,   GG_DT_TQ2_0,
    GG_DT_Q4_1,    GG_DT_Q5_0,   GG_DT_Q6_0,  GG_DT_Q8_1,   GG_DT_Q8_K,
    GG_DT_IQ4_NL,  GG_DT_IQ1_S,  GG_DT_IQ1_M, GG_DT_IQ2_XS, GG_DT_IQ2_S,
    GG_DT_IQ3_XXS, GG_DT_TQ1_0,  GG_DT_Q1_0,  GG_DT_Q2_0,
};
enum { N_WIDE = 15 };

/* Measure all shapes for types with part in their names, at a level; 0: C. */
static void bench_level(struct job *job, struct gguf_pool *pool,
                        unsigned rounds, unsigned level, const char *part)
{
    const char *name = level ? gg_kern_cpu_levels[level - 1].name : "c";
    job->level = level;
    for (size_t s = 0; s < GG_LEN(shapes); s++)
        for (size_t t = 0; t < GG_LEN(types); t++) {
            job->args.m = shapes[s][0];
            job->args.n = shapes[s][1];
            job->args.k = shapes[s][2];
            if (level == 0 && (s || t)) /* C is slow: measure one line */
                continue;
            if (t >= N_WIDE && job->args.n > NARROW)
                continue;
            if (!strstr(gg_dtype_by_index(types[t])->name, part))
                continue;
            for (unsigned p = 0; p < GG_N_PRECISIONS; p++)
                bench_shape(job, pool, rounds, types[t],
                            (enum gg_kern_precision)p, name);
        }
}

int main(int argc, char **argv)
{
    struct gguf_pool_params params = GGUF_INIT(struct gguf_pool_params);
    params.n_threads = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 5;
    const char *part = argc > 3 ? argv[3] : "";
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
    job.from = bench_must(calloc(COPY_SIZE, 1));
    job.to = bench_must(calloc(COPY_SIZE, 1));
    const uint32_t cpu = gg_kern_cpu_request(gg_kern_cpu_detect());
    uint32_t mask = 0;
    for (unsigned l = 0; l <= gg_kern_cpu_n_levels; l++) {
        if (l && !(cpu & gg_kern_cpu_levels[l - 1].bit))
            continue;
        mask |= l ? gg_kern_cpu_levels[l - 1].bit : 0;
        gg_kern_init(&kern, mask);
        job.args.kern = &kern;
        bench_level(&job, pool, rounds, l, part);
    }
    free(job.from);
    free(job.to);
    gg_barrier_fini(&job.barrier);
    gguf_pool_destroy(pool);
    return 0;
}
