/* SPDX-License-Identifier: MIT */
/* bench-attn.c - rate of attention, as a part of the machine's multiply-add
 * peak
 *
 *   bench-attn [PART [ROUNDS]]
 *
 * Measures rows whose name contains PART (default: all). 512 tokens, the last
 * ones of a context, attend to all keys before them or to those of a window.
 * Only products that the mask leaves open count as work: products that blocks
 * compute beyond them are lost. Attention and multiply-adds in registers run
 * in turns on one thread. The best processor time of ROUNDS (5) is printed.
 */
#include "config.h"
#include "base/compiler.h"
#include "cpu/attn.h"
#include "tests/bench/peak.h"
#include "tests/bench/row.h"
#include "tests/scratch.h"

#include <math.h>
#include <stdint.h>

enum { N_TOK = 512, MAX_ROUNDS = 100 };

static const struct shape {
    const char *name;
    int64_t d, dv, n_head, n_head_kv, n_kv;
    int64_t window; /* sliding window in tokens; 0: none */
    int type;       /* type of keys and values */
    float softcap;
} shapes[] = {
    { "heads of 64", 64, 64, 12, 4, 512, 0, GG_DT_F32, 0 },
    { "heads of 64", 64, 64, 12, 4, 4096, 0, GG_DT_F32, 0 },
    { "heads of 64, no groups", 64, 64, 8, 8, 4096, 0, GG_DT_F32, 0 },
    { "heads of 64, F16", 64, 64, 12, 4, 4096, 0, GG_DT_F16, 0 },
    { "heads of 64, Q8_0", 64, 64, 12, 4, 4096, 0, GG_DT_Q8_0, 0 },
    { "heads of 64, Q4_0", 64, 64, 12, 4, 4096, 0, GG_DT_Q4_0, 0 },
    { "heads of 64, capped", 64, 64, 12, 4, 4096, 0, GG_DT_F32, 50 },
    { "heads of 64, window", 64, 64, 12, 4, 4096, 1024, GG_DT_F32, 0 },
    { "heads of 128", 128, 128, 8, 2, 4096, 0, GG_DT_F32, 0 },
    { "heads of 128", 128, 128, 8, 2, 512, 0, GG_DT_F32, 0 },
    { "heads of 256", 256, 256, 4, 2, 4096, 0, GG_DT_F32, 0 },
    { "latent", 576, 512, 16, 1, 4096, 0, GG_DT_F32, 0 },
    { "latent, F16", 576, 512, 16, 1, 4096, 0, GG_DT_F16, 0 },
};

static float *random_floats(int64_t n)
{
    float *x = bench_must(malloc((size_t)n * sizeof *x));
    uint32_t s = 1;
    for (int64_t i = 0; i < n; i++) {
        s = s * 1664525 + 1013904223;
        x[i] = (float)(int32_t)s * 0x1p-31f;
    }
    return x;
}

/* Make rows of n floats and encode them. */
static void *encoded_rows(const struct gg_kern *kern, int type, int64_t n,
                          int64_t n_rows, size_t *row_size)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    float *x = random_floats(n * n_rows);
    *row_size = (size_t)n / t->block_len * t->block_size;
    if (type == GG_DT_F32)
        return x;
    void *q = bench_must(malloc(*row_size * (size_t)n_rows));
    kern->codec[type].encode(x, q, (size_t)n_rows, (size_t)n, NULL);
    return q;
}

/* Make the mask. *open: number of open pairs of token and key. */
static float *make_mask(const struct shape *s, double *open)
{
    float *mask = bench_must(malloc((size_t)(N_TOK * s->n_kv) * sizeof *mask));
    *open = 0;
    for (int64_t t = 0; t < N_TOK; t++)
        for (int64_t i = 0; i < s->n_kv; i++) {
            const int64_t at = s->n_kv - N_TOK + t;
            const bool see = i <= at && (!s->window || i > at - s->window);
            mask[t * s->n_kv + i] = see ? 0 : -INFINITY;
            *open += see;
        }
    return mask;
}

/* Lay out as in a session: heads of a token side by side in queries and
 * results, heads of a position in keys and values. */
static void args_init(struct gg_attn_args *a, const struct gg_kern *kern,
                      const struct shape *s, double *open)
{
    size_t k_size, v_size, q_size;
    *a = (struct gg_attn_args){ .kern = kern,
                                .k_type = s->type,
                                .v_type = s->type,
                                .mask_type = GG_DT_F32,
                                .d = s->d,
                                .dv = s->dv,
                                .n_tok = N_TOK,
                                .n_kv = s->n_kv,
                                .n_seq = 1,
                                .n_head = s->n_head,
                                .n_head_kv = s->n_head_kv,
                                .scale = 0.1f,
                                .softcap = s->softcap };
    a->q = encoded_rows(kern, GG_DT_F32, s->d, N_TOK * s->n_head, &q_size);
    a->k = encoded_rows(kern, s->type, s->d, s->n_kv * s->n_head_kv, &k_size);
    a->v = encoded_rows(kern, s->type, s->dv, s->n_kv * s->n_head_kv, &v_size);
    a->out = random_floats(s->dv * N_TOK * s->n_head);
    a->mask = make_mask(s, open);
    a->mask_nb[0] = (size_t)s->n_kv * sizeof(float);
    a->q_nb[0] = q_size * (size_t)s->n_head;
    a->q_nb[1] = q_size;
    a->k_nb[0] = k_size * (size_t)s->n_head_kv;
    a->k_nb[1] = k_size;
    a->v_nb[0] = v_size * (size_t)s->n_head_kv;
    a->v_nb[1] = v_size;
    a->out_nb[0] = (size_t)s->dv * sizeof(float);
    a->out_nb[1] = a->out_nb[0] * (size_t)s->n_head;
}

static void bench_shape(const struct gg_kern *kern, unsigned level, bool ints,
                        const struct shape *s, unsigned rounds)
{
    double attn[MAX_ROUNDS], peak[MAX_ROUNDS], open, t0, ignored;
    struct gg_attn_args a;
    args_init(&a, kern, s, &open);
    a.ints = ints;
    void *work = bench_must(malloc(gg_attn_work_size(&a, 1)));
    gg_attn_run(&a, 0, work, NULL);
    for (unsigned r = 0; r < rounds; r++) {
        t0 = scratch_cpu_time();
        peak_run(level, 1000000);
        peak[r] = scratch_cpu_time() - t0;
        t0 = scratch_cpu_time();
        gg_attn_run(&a, 0, work, NULL);
        attn[r] = scratch_cpu_time() - t0;
    }
    char shape[80];
    snprintf(shape, sizeof shape, "%d heads, %d of keys, %d x %d",
             (int)s->n_head, (int)s->n_head_kv, N_TOK, (int)s->n_kv);
    struct bench_row row = { .table = "attention",
                             .what = s->name,
                             .shape = shape,
                             .level = gg_kern_cpu_levels[level - 1].name,
                             .precision = ints ? "int16" : "exact",
                             .threads = 1,
                             .unit = "GFLOP/s",
                             .of = "multiply-add peak" };
    const double flops = 2 * open * (double)s->n_head * (double)(s->d + s->dv);
    row.value = 1e-9 * flops / bench_best(attn, rounds, &row.spread);
    row.part = 1e9 * row.value * bench_best(peak, rounds, &ignored) /
               (1e6 * peak_flops(level));
    bench_row(&row);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 5;
    static struct gg_kern kern;
    const uint32_t cpu = gg_kern_cpu_detect();
    uint32_t mask = 0;
    rounds = GG_MAX(1, GG_MIN(rounds, (unsigned)MAX_ROUNDS));
    for (unsigned l = 1; l <= gg_kern_cpu_n_levels; l++) {
        if (!(cpu & gg_kern_cpu_levels[l - 1].bit))
            continue;
        mask |= gg_kern_cpu_levels[l - 1].bit;
        const gg_kern_attn_i16_tile_fn *below = kern.attn_i16.tile;
        const bool exact = gg_kern_cpu_level_has_floats(l);
        gg_kern_init(&kern, mask);
        if (!exact && kern.attn_i16.tile == below)
            continue; /* the level has no kernels of its own for this */
        for (size_t i = 0; i < GG_LEN(shapes); i++)
            for (int ints = !exact; ints < 2; ints++)
                if (strstr(shapes[i].name, part))
                    bench_shape(&kern, l, ints, &shapes[i], rounds);
    }
    return 0;
}
