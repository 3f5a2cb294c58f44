/* SPDX-License-Identifier: MIT */
/* bench-codec.c - rates of encoders and decoders, beside the rate of memcpy
 *
 *   bench-codec [PART [ROUNDS]]
 *
 * Measures each type whose name contains PART (default: all) at each level
 * with a kernel of its own, on one thread and on two. Prints million elements
 * per second, and for decoders the bytes read and written as percent of those
 * that memcpy moves. memcpy and decoding run in turns. Rows have 4096
 * elements, in more memory than caches hold; slow encoders get less, so that a
 * run takes some hundredths of a second. The time is the processor time of the
 * threads divided by their number, so that other programs do not count. The
 * best of ROUNDS (5) is printed.
 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "gguf/pool.h"
#include "kern/kern.h"
#include "tests/bench/row.h"
#include "tests/scratch.h"

#include <stdbool.h>
#include <time.h>

enum {
    ROW = 4096,  /* elements */
    ROWS = 2048, /* 32 MiB of floats */
    SLICE = 4,   /* rows of a call: a job encodes this number at once */
    MAX_THREADS = 2,
    MAX_ROUNDS = 100
};
#define RUN_SECONDS 0.03

enum what { COPY, ENCODE, WEIGHTED, DECODE };

struct job {
    enum what what;
    const struct gg_codec_kern *codec;
    size_t row_size, n_rows;
    float *x, *y, *weight;
    uint8_t *q;
    double seconds[MAX_THREADS];
};

static void run_job(void *user, unsigned ith, unsigned nth)
{
    struct job *j = user;
    size_t first = j->n_rows * ith / nth, end = j->n_rows * (ith + 1) / nth;
    const double t0 = scratch_cpu_time();
    for (size_t r = first, n; r < end; r += n) {
        float *x = j->x + r * ROW, *y = j->y + r * ROW;
        uint8_t *q = j->q + r * j->row_size;
        n = GG_MIN((size_t)SLICE, end - r);
        if (j->what == COPY)
            memcpy(y, x, n * ROW * sizeof *x);
        else if (j->what != DECODE)
            j->codec->encode(x, q, n, ROW,
                             j->what == WEIGHTED ? j->weight : NULL);
        for (size_t k = 0; j->what == DECODE && k < n; k++)
            j->codec->decode(q + k * j->row_size, y + k * ROW, ROW);
    }
    j->seconds[ith] = scratch_cpu_time() - t0;
}

/* Elements per second. */
static double measure_rate(struct job *j, struct gguf_pool *pool,
                           enum what what)
{
    double sum = 0;
    unsigned nth = gguf_pool_n_threads(pool);
    j->what = what;
    gguf_pool_run(pool, (struct gguf_pool_callback){ run_job, j });
    for (unsigned i = 0; i < nth; i++)
        sum += j->seconds[i];
    return (double)j->n_rows * ROW * nth / GG_MAX(sum, 1e-9);
}

/* Choose the number of rows that take RUN_SECONDS, from the rate of a few. */
static void choose_rows(struct job *j, struct gguf_pool *pool, enum what what)
{
    j->n_rows = 8;
    double rows = measure_rate(j, pool, what) * RUN_SECONDS / ROW;
    j->n_rows = rows < 8 ? 8 : rows > ROWS ? ROWS : (size_t)rows;
}

static void show_encode(struct job *j, const struct bench_row *like,
                        struct gguf_pool *pool, unsigned rounds,
                        enum what what)
{
    const uint32_t flags = j->codec->flags;
    double t[MAX_ROUNDS];
    struct bench_row r = *like;
    if (!j->codec->encode ||
        (what == WEIGHTED ? !(flags & GG_CODEC_WEIGHT)
                          : flags & GG_CODEC_NEEDS_WEIGHT))
        return;
    choose_rows(j, pool, what);
    for (unsigned i = 0; i < rounds; i++)
        t[i] = 1 / measure_rate(j, pool, what);
    r.table = "encoders";
    r.shape = what == WEIGHTED ? "with importance" : "";
    r.value = 1e-6 / bench_best(t, rounds, &r.spread);
    bench_row(&r);
}

static void show_decode(struct job *j, const struct bench_row *like,
                        struct gguf_pool *pool, unsigned rounds)
{
    double copy[MAX_ROUNDS], t[MAX_ROUNDS], ignored;
    struct bench_row r = *like;
    j->n_rows = ROWS;
    for (unsigned i = 0; i < rounds; i++) {
        copy[i] = 1 / measure_rate(j, pool, COPY);
        t[i] = 1 / measure_rate(j, pool, DECODE);
    }
    const double best = 1 / bench_best(t, rounds, &r.spread);
    /* bytes of an element, copied and decoded */
    const double moved = 4 + (double)j->row_size / ROW;
    r.table = "decoders";
    r.value = 1e-6 * best;
    r.part = best * moved * bench_best(copy, rounds, &ignored) /
             (2 * sizeof(float));
    r.of = "memcpy";
    bench_row(&r);
}

/* Print the lines of a type at a level. */
static void show_type(struct job *j, int type, const char *level,
                      struct gguf_pool **pool, unsigned n_pools,
                      unsigned rounds)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    struct bench_row r = { .what = t->name,
                           .level = level,
                           .unit = "M elements/s" };
    j->row_size = t->row_header + ROW / t->block_len * t->block_size;
    for (unsigned p = 0; p < n_pools; p++) {
        r.threads = p + 1;
        show_encode(j, &r, pool[p], rounds, ENCODE);
        show_encode(j, &r, pool[p], rounds, WEIGHTED);
        /* scales in F16 near 0.05, no subnormal number */
        for (size_t i = 0; i < ROWS * j->row_size; i++)
            j->q[i] = (uint8_t)(0x28 + ((uint32_t)i * 2654435761u >> 29));
        show_decode(j, &r, pool[p], rounds);
    }
}

/* Rows with a bell-shaped distribution, like weights: sums of four bytes. */
static void make_rows(struct job *j)
{
    uint64_t s = 1;
    for (size_t i = 0; i < (size_t)ROWS * ROW; i++) {
        s = s * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint32_t v = (uint32_t)(s >> 32);
        int sum =
            (int)((v & 255) + (v >> 8 & 255) + (v >> 16 & 255) + (v >> 24)) -
            510;
        j->x[i] = (float)sum * 0x1p-13f + (float)(v & 1023) * 0x1p-26f;
        j->y[i] = 0;
    }
    for (int i = 0; i < ROW; i++)
        j->weight[i] = 0.1f + (float)(i % 37);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;
    struct gguf_pool *pool[MAX_THREADS];
    unsigned n_pools = GG_MIN(gguf_cpu_count(), (unsigned)MAX_THREADS);
    static struct gg_kern kern[8];
    const char *name[8] = { "c" };
    unsigned n_levels = 1;
    uint32_t cpu = gg_kern_cpu_detect(), mask = 0;
    size_t n = (size_t)ROWS * ROW;
    struct job j = { .x = bench_must(malloc(n * sizeof(float))),
                     .y = bench_must(malloc(n * sizeof(float))),
                     .weight = bench_must(malloc(ROW * sizeof(float))),
                     .q = bench_must(malloc(8 * n)) };
    make_rows(&j);
    memset(j.q, 0, 8 * n);
    for (unsigned p = 0; p < n_pools; p++) {
        struct gguf_pool_params params = GGUF_INIT(struct gguf_pool_params);
        params.n_threads = p + 1;
        if (gguf_pool_create(&pool[p], &params, NULL) != GGUF_OK)
            return 1;
    }
    gg_kern_init(&kern[0], 0);
    for (unsigned l = 0; l < gg_kern_cpu_n_levels; l++)
        if (cpu & gg_kern_cpu_levels[l].bit) {
            mask |= gg_kern_cpu_levels[l].bit;
            gg_kern_init(&kern[n_levels], mask);
            name[n_levels++] = gg_kern_cpu_levels[l].name;
        }
    rounds = GG_MAX(1, GG_MIN(rounds, (unsigned)MAX_ROUNDS));
    for (int t = 0; t < GG_N_DTYPES; t++)
        for (unsigned l = 0; l < n_levels; l++) {
            const struct gg_codec_kern *k = &kern[l].codec[t];
            const struct gg_codec_kern *was = l ? &kern[l - 1].codec[t] : NULL;
            if (!k->decode || !strstr(gg_dtype_by_index(t)->name, part) ||
                (was && k->decode == was->decode && k->encode == was->encode))
                continue;
            j.codec = k;
            show_type(&j, t, name[l], pool, n_pools, rounds);
        }
    for (unsigned p = 0; p < n_pools; p++)
        gguf_pool_destroy(pool[p]);
    free(j.x);
    free(j.y);
    free(j.weight);
    free(j.q);
    return 0;
}
