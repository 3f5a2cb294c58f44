/* SPDX-License-Identifier: MIT */
/* bench-feedback.c - seconds of encoding with error feedback
 *
 *   bench-feedback [ROUNDS [PART]]
 *
 * Measures types (with PART in their name) of 4096 columns, Q4_K of 512, too,
 * with each effort, on one thread, and the product that feeds errors back at
 * each level of the machine. The part of the peak is that of the feedback's
 * multiply-adds alone, n / 2 for each weight, so that the search of scales
 * counts as lost time.
 *
 * The moments are rho^|i - j|, whose factors are known: R[i][j] / R[j][j] is
 * rho^(j - i), and R[j][j]^2 is 1 - rho^2, in the last column 1. */
#include "config.h"
#include "base/compiler.h"
#include "fit/feedback.h"
#include "fit/feedback_kern.h"
#include "kern/kern.h"
#include "tests/bench/peak.h"
#include "tests/bench/row.h"
#include "tests/scratch.h"

#include <math.h>

enum { N_ROWS = 256, MAX_ROUNDS = 100, PEAK_ROUNDS = 1000000 };
#define RHO 0.9

static const char *const effort_names[] = { "fixed scales", "searched scales",
                                            "one descent", "descent" };

static double peak_rate(unsigned level)
{
    const double t0 = scratch_cpu_time();
    peak_run(level, PEAK_ROUNDS);
    return PEAK_ROUNDS * peak_flops(level) / (scratch_cpu_time() - t0);
}

static void make_metric(struct gg_feedback_metric *m, size_t n)
{
    float *g = bench_must(malloc(n * n * sizeof *g));
    float *s = bench_must(malloc(n * n * sizeof *s));
    float *d = bench_must(malloc(n * sizeof *d));
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            const double distance = fabs((double)i - (double)j);
            g[i * n + j] = s[i * n + j] = (float)pow(RHO, distance);
        }
    for (size_t j = 0; j < n; j++)
        d[j] = (float)(j + 1 < n ? 1 - RHO * RHO : 1);
    *m = (struct gg_feedback_metric){ n, g, d, s };
}

static void show_type(const struct gg_form *f, unsigned level,
                      const char *level_name,
                      const struct gg_feedback_metric *m, const float *target,
                      unsigned rounds)
{
    static struct gg_codec_kern codec[GG_N_DTYPES];
    const size_t size = m->n / f->block_len * f->block_size * N_ROWS;
    const double weights = (double)m->n * N_ROWS;
    uint8_t *plain = bench_must(malloc(size)), *row = bench_must(malloc(size));
    char shape[64];
    float *weight = bench_must(malloc(m->n * sizeof *weight));
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    for (size_t j = 0; j < m->n; j++)
        weight[j] = 1;
    codec[f->dtype].encode(
        target, plain, N_ROWS, m->n,
        codec[f->dtype].flags & GG_CODEC_NEEDS_WEIGHT ? weight : NULL);
    for (int e = GG_FEEDBACK_FIXED; e <= GG_FEEDBACK_DESCENT; e++) {
        double time[MAX_ROUNDS], peak = 0;
        struct bench_row r = { .table = "error feedback",
                               .what = gg_dtype_by_index(f->dtype)->name,
                               .shape = shape,
                               .level = level_name,
                               .threads = 1,
                               .unit = "s/M weights",
                               .of = "multiply-add peak" };
        snprintf(shape, sizeof shape, "%d columns, %s", (int)m->n,
                 effort_names[e]);
        for (unsigned i = 0; i < rounds; i++) {
            memcpy(row, plain, size);
            peak = GG_MAX(peak, peak_rate(level));
            const double t0 = scratch_cpu_time();
            if (gg_feedback_encode(f, m, target, N_ROWS, row, e, NULL, NULL,
                                   NULL) != GGUF_OK)
                exit(1);
            time[i] = scratch_cpu_time() - t0;
        }
        const double best = bench_best(time, rounds, &r.spread);
        r.value = best / weights * 1e6;
        r.part = weights * (double)m->n / best / peak;
        bench_row(&r);
    }
    free(plain);
    free(row);
    free(weight);
}

/* The product alone, with its tile and errors in the nearest cache. */
static void show_product(unsigned level, uint32_t cpu, const char *name,
                         unsigned rounds)
{
    enum { N = 128, TIMES = 20000, W = GG_FEEDBACK_LANES };
    static float acc[2 * GG_FEEDBACK_TILE * W], err[2 * N * W];
    static float tile[N * GG_FEEDBACK_TILE];
    struct gg_feedback_kern kern;
    double time[MAX_ROUNDS], peak = 0;
    struct bench_row r = { .table = "error feedback",
                           .what = "product",
                           .level = name,
                           .threads = 1,
                           .unit = "GFLOP/s",
                           .of = "multiply-add peak" };
    gg_feedback_kern_init(&kern, cpu);
    for (unsigned i = 0; i < rounds; i++) {
        peak = GG_MAX(peak, peak_rate(level));
        const double t0 = scratch_cpu_time();
        for (unsigned k = 0; k < TIMES; k++)
            kern.product(acc, GG_FEEDBACK_TILE * W, err, N * W, 2, tile, N);
        time[i] = scratch_cpu_time() - t0;
    }
    const double rate = 2.0 * 2 * N * W * GG_FEEDBACK_TILE * TIMES /
                        bench_best(time, rounds, &r.spread);
    r.value = 1e-9 * rate;
    r.part = rate / peak;
    bench_row(&r);
}

/* About normal numbers: sums of four. */
static float *make_target(size_t n)
{
    float *x = bench_must(malloc(n * sizeof *x));
    uint64_t s = 1;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < 4; k++) {
            s = s * UINT64_C(6364136223846793005) + 1442695040888963407;
            sum += (double)(s >> 40) * 0x1p-24 - 0.5;
        }
        x[i] = (float)(0.03 * sum);
    }
    return x;
}

int main(int argc, char **argv)
{
    static const int types[] = { GG_DT_Q4_K,    GG_DT_Q2_K,    GG_DT_Q6_K,
                                 GG_DT_Q4_0,    GG_DT_Q4_1,    GG_DT_IQ4_XS,
                                 GG_DT_IQ3_S,   GG_DT_IQ3_XXS, GG_DT_IQ2_S,
                                 GG_DT_IQ2_XXS, GG_DT_IQ1_S,   GG_DT_TQ2_0,
                                 GG_DT_NVFP4 };
    static const size_t columns[] = { 4096, 512 };
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 3;
    const char *part = argc > 2 ? argv[2] : "";
    const uint32_t cpu = gg_kern_cpu_detect();
    uint32_t mask = 0;
    unsigned level = 0;
    rounds = GG_MAX(1, GG_MIN(rounds, (unsigned)MAX_ROUNDS));
    for (unsigned l = 0; l <= gg_kern_cpu_n_levels; l++) {
        if (l && !(cpu & gg_kern_cpu_levels[l - 1].bit))
            continue;
        mask |= l ? gg_kern_cpu_levels[l - 1].bit : 0;
        if (!gg_kern_cpu_level_has_floats(l))
            continue; /* the kernels of the level below */
        level = l;
        show_product(l, mask, l ? gg_kern_cpu_levels[l - 1].name : "c",
                     rounds);
    }
    for (size_t c = 0; c < GG_LEN(columns); c++) {
        struct gg_feedback_metric m;
        make_metric(&m, columns[c]);
        float *target = make_target(N_ROWS * columns[c]);
        for (size_t t = 0; t < (c ? 1 : GG_LEN(types)); t++)
            if (strstr(gg_dtype_by_index(types[t])->name, part))
                show_type(gg_form_of(types[t]), level,
                          level ? gg_kern_cpu_levels[level - 1].name : "c", &m,
                          target, rounds);
        free(target);
        free((float *)m.g);
        free((float *)m.d);
        free((float *)m.s);
    }
    return 0;
}
