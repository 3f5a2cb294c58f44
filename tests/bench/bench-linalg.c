/* SPDX-License-Identifier: MIT */
/* bench-linalg.c - rates of calibration's linear algebra, as a part of the
 * machine's peak
 *
 *   bench-linalg [ROUNDS]
 *
 * Measures sums of products of 512 rows, the factorization of their sum, and
 * solves of 512 rows, for each instruction level with tiles of its own, on one
 * thread, in turns with a loop of multiply-adds in registers. */
#include "config.h"
#include "base/compiler.h"
#include "kern/cpu_features.h"
#include "linalg/linalg.h"
#include "tests/bench/peak.h"
#include "tests/bench/row.h"
#include "tests/scratch.h"

enum { N_ROWS = 512, MAX_ROUNDS = 100, PEAK_ROUNDS = 1000000 };

struct bench {
    struct gg_linalg la;
    unsigned level;
    size_t n;
    float *x, *rows, *s, *r; /* N_ROWS x n twice, n x n twice */
};

static void fail_on(enum gguf_status st)
{
    if (st) {
        fprintf(stderr, "bench-linalg: status %d\n", (int)st);
        exit(1);
    }
}

/* Sums of products, upper half. */
static void sum_products(struct bench *b)
{
    fail_on(gg_linalg_add_products(&b->la, b->s, b->n, b->x, b->n, b->n, b->x,
                                   b->n, b->n, N_ROWS, true, NULL));
}

static void factor_sums(struct bench *b)
{
    fail_on(gg_linalg_factor_upper(&b->la, b->r, b->n, NULL, NULL));
}

static void solve_rows(struct bench *b)
{
    fail_on(gg_linalg_solve_rows(&b->la, b->r, b->n, b->rows, N_ROWS, NULL));
}

/* Damped sums, to be factored. */
static void copy_sums(struct bench *b)
{
    memcpy(b->r, b->s, b->n * b->n * sizeof *b->r);
    for (size_t i = 0; i < b->n; i++)
        b->r[i * b->n + i] += 0.01f * N_ROWS;
    memcpy(b->rows, b->x, N_ROWS * b->n * sizeof *b->x);
}

static const struct {
    const char *name;
    void (*run)(struct bench *b);
    double flops[3]; /* factors of n, n^2, n^3 */
} parts[] = {
    { "sums of products", sum_products, { 0, N_ROWS, 0 } },
    { "factorization", factor_sums, { 0, 0, 1.0 / 3 } },
    { "solve", solve_rows, { 0, 2.0 * N_ROWS, 0 } },
};

static void bench_size(struct bench *b, unsigned rounds, const char *level)
{
    double time[GG_LEN(parts)][MAX_ROUNDS], peak[MAX_ROUNDS], ignored;
    const double n = (double)b->n;
    b->x = bench_must(malloc(N_ROWS * b->n * sizeof *b->x));
    b->rows = bench_must(malloc(N_ROWS * b->n * sizeof *b->rows));
    b->s = bench_must(calloc(b->n * b->n, sizeof *b->s));
    b->r = bench_must(malloc(b->n * b->n * sizeof *b->r));
    for (size_t i = 0; i < N_ROWS * b->n; i++)
        b->x[i] = (float)(i * 7919 % 1009) * 0x1p-9f - 1.0f;
    sum_products(b); /* touches the memory */
    for (unsigned r = 0; r < rounds; r++) {
        double t0 = scratch_cpu_time();
        peak_run(b->level, PEAK_ROUNDS);
        peak[r] = scratch_cpu_time() - t0;
        copy_sums(b);
        for (size_t i = 0; i < GG_LEN(parts); i++) {
            t0 = scratch_cpu_time();
            parts[i].run(b);
            time[i][r] = scratch_cpu_time() - t0;
        }
    }
    const double most = PEAK_ROUNDS * peak_flops(b->level) /
                        bench_best(peak, rounds, &ignored);
    char shape[64];
    snprintf(shape, sizeof shape, "%d columns", (int)b->n);
    for (size_t i = 0; i < GG_LEN(parts); i++) {
        struct bench_row row = { .table = "linear algebra",
                                 .what = parts[i].name,
                                 .shape = shape,
                                 .level = level,
                                 .precision = "exact",
                                 .threads = 1,
                                 .unit = "GFLOP/s",
                                 .of = "multiply-add peak" };
        const double *f = parts[i].flops;
        const double rate = ((f[2] * n + f[1]) * n + f[0]) * n /
                            bench_best(time[i], rounds, &row.spread);
        row.value = 1e-9 * rate;
        row.part = rate / most;
        bench_row(&row);
    }
    free(b->x);
    free(b->rows);
    free(b->s);
    free(b->r);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = { 1024, 2048, 5632 };
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 3;
    const uint32_t cpu = gg_kern_cpu_detect();
    uint32_t mask = 0;
    rounds = GG_MAX(1, GG_MIN(rounds, (unsigned)MAX_ROUNDS));
    for (unsigned l = 0; l <= gg_kern_cpu_n_levels; l++) {
        if (l && !(cpu & gg_kern_cpu_levels[l - 1].bit))
            continue;
        mask |= l ? gg_kern_cpu_levels[l - 1].bit : 0;
        if (!gg_kern_cpu_level_has_floats(l))
            continue; /* the tiles of the level below */
        for (size_t i = 0; i < (l ? GG_LEN(sizes) : 1); i++) {
            struct bench b = { .level = l, .n = sizes[i] };
            gg_linalg_init_cpu(&b.la, NULL, NULL, mask);
            bench_size(&b, rounds, l ? gg_kern_cpu_levels[l - 1].name : "c");
            gg_linalg_fini(&b.la);
        }
    }
    return 0;
}
