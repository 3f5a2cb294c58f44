/* SPDX-License-Identifier: MIT */
/* two_sided.c - feedback among rows: see two_sided.h */
#include "config.h"
#include "calibrate/two_sided.h"

#include "base/ckd.h"
#include "base/error.h"
#include "base/mem.h"
#include "kern/codec.h"
#include "kern/cpu_features.h"
#include "linalg/triangle.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = GG_TWO_SIDED_BLOCK,
    BLOCK_SIZE = BLOCK * BLOCK,
    GROUP = 64 /* blocks that are encoded together */
};

/* Damping, a part of the mean diagonal. */
#define DAMPING 0.05

double gg_two_sided_damping(const float *h, size_t n)
{
    double sum = 0;
    for (size_t j = 0; j < n; j++)
        sum += (double)h[j * BLOCK + j];
    return DAMPING * sum / (double)n;
}

bool gg_two_sided_factor(const float *h, size_t n, float *f, float *d)
{
    double p[BLOCK_SIZE], mean = 0;
    memset(f, 0, n * n * sizeof *f);
    for (size_t j = 0; j < n; j++) {
        d[j] = 1;
        mean += (double)h[j * BLOCK + j] / (double)n;
    }
    if (!(mean > 0) || !isfinite(mean))
        return false;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            p[i * n + j] =
                (double)h[i * BLOCK + j] / mean + (i == j ? DAMPING : 0);
    if (gg_linalg_factor_block(p, n) != n)
        return false;
    for (size_t j = 0; j < n; j++) {
        d[j] = (float)(p[j * n + j] * p[j * n + j] * mean);
        for (size_t i = 0; i < j; i++)
            f[i * n + j] = (float)(p[i * n + j] / p[j * n + j]);
    }
    return true;
}

/* A group of blocks. Row b of target and bytes belongs to block b. */
struct group {
    const struct gg_form *form;
    const struct gg_feedback_metric *m;
    gg_kern_decode_fn *decode;
    size_t row_size;          /* bytes of a row */
    size_t n_rows;            /* rows of the group */
    const float *target;      /* [n_rows][n] */
    unsigned char *bytes;     /* n_rows rows */
    float *error;             /* [n_rows][n] target minus decoded elements */
    float *f;                 /* [blocks][BLOCK_SIZE] */
    float *row_target;        /* [blocks][n] */
    unsigned char *row_bytes; /* [blocks][row_size] */
    size_t row;               /* row of each block that is encoded */
};

static size_t count_blocks(size_t n_rows)
{
    return (n_rows + BLOCK - 1) / BLOCK;
}

/* Rows in block b of a group. */
static size_t block_rows(const struct group *g, size_t b)
{
    return GG_MIN((size_t)BLOCK, g->n_rows - b * BLOCK);
}

/* Blocks that have a row number g->row: all, or all but the last. */
static size_t count_rows(const struct group *g)
{
    const size_t n = count_blocks(g->n_rows);
    return n - (block_rows(g, n - 1) > g->row ? 0 : 1);
}

/* Targets of a row of each block: its own, plus the weighted errors of rows
 * before it in the block, in their order. */
static void target_share(void *user, unsigned ith, unsigned nth)
{
    const struct group *g = user;
    const size_t n = g->m->n;
    for (size_t b = ith; b < count_rows(g); b += nth) {
        const size_t first = b * BLOCK, rows = block_rows(g, b);
        const float *f = g->f + b * BLOCK_SIZE;
        float *t = g->row_target + b * n;
        memcpy(t, g->target + (first + g->row) * n, n * sizeof *t);
        for (size_t i = 0; i < g->row; i++) {
            const float by = f[i * rows + g->row];
            const float *e = g->error + (first + i) * n;
            for (size_t c = 0; by != 0 && c < n; c++)
                t[c] += by * e[c];
        }
        memcpy(g->row_bytes + b * g->row_size,
               g->bytes + (first + g->row) * g->row_size, g->row_size);
    }
}

/* Store the new bytes of a row of each block, and its errors. */
static void store_share(void *user, unsigned ith, unsigned nth)
{
    const struct group *g = user;
    const size_t n = g->m->n;
    for (size_t b = ith; b < count_rows(g); b += nth) {
        const size_t row = b * BLOCK + g->row;
        const unsigned char *from = g->row_bytes + b * g->row_size;
        float *e = g->error + row * n;
        memcpy(g->bytes + row * g->row_size, from, g->row_size);
        g->decode(from, e, n);
        for (size_t c = 0; c < n; c++)
            e[c] = g->target[row * n + c] - e[c];
    }
}

static enum gguf_status encode_group(struct group *g,
                                     enum gg_feedback_effort effort,
                                     struct gguf_pool *pool,
                                     const struct gguf_allocator *a,
                                     struct gguf_error *err)
{
    const size_t most = GG_MIN((size_t)BLOCK, g->n_rows);
    for (g->row = 0; g->row < most; g->row++) {
        gguf_pool_run(pool, (struct gguf_pool_callback){ target_share, g });
        GG_TRY(gg_feedback_encode(g->form, g->m, g->row_target, count_rows(g),
                                  g->row_bytes, effort, pool, a, err));
        gguf_pool_run(pool, (struct gguf_pool_callback){ store_share, g });
    }
    return GGUF_OK;
}

static enum gguf_status alloc_group(struct group *g, size_t n_rows,
                                    const struct gguf_allocator *a,
                                    struct gguf_error *err)
{
    const size_t blocks = GG_MIN(count_blocks(n_rows), (size_t)GROUP);
    const size_t n = g->m->n, rows = GG_MIN(n_rows, blocks * BLOCK);
    g->error = gg_mem_alloc_zero(a, rows, n * sizeof(float));
    g->f = gg_mem_alloc_zero(a, blocks, BLOCK_SIZE * sizeof(float));
    g->row_target = gg_mem_alloc_zero(a, blocks, n * sizeof(float));
    g->row_bytes = gg_mem_alloc_zero(a, blocks, g->row_size);
    return g->error && g->f && g->row_target && g->row_bytes
               ? GGUF_OK
               : gg_error_set_nomem(err, rows * n * sizeof(float));
}

static void free_group(struct group *g, const struct gguf_allocator *a)
{
    gg_mem_free(a, g->error);
    gg_mem_free(a, g->f);
    gg_mem_free(a, g->row_target);
    gg_mem_free(a, g->row_bytes);
}

enum gguf_status
gg_two_sided_encode(const struct gg_form *f,
                    const struct gg_feedback_metric *m, const float *h,
                    const float *target, size_t n_rows, void *bytes,
                    enum gg_feedback_effort effort, struct gguf_pool *pool,
                    const struct gguf_allocator *a, struct gguf_error *err)
{
    struct gg_codec_kern codec[GG_N_DTYPES];
    struct group g = { .form = f, .m = m };
    if (!n_rows)
        return GGUF_OK;
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    g.decode = codec[f->dtype].decode;
    g.row_size = m->n / f->block_len * f->block_size;
    enum gguf_status st = alloc_group(&g, n_rows, a, err);
    for (size_t first = 0; st == GGUF_OK && first < n_rows;
         first += g.n_rows) {
        float d[BLOCK];
        g.n_rows = GG_MIN(n_rows - first, (size_t)GROUP * BLOCK);
        g.target = target + first * m->n;
        g.bytes = (unsigned char *)bytes + first * g.row_size;
        for (size_t b = 0; b < count_blocks(g.n_rows); b++)
            (void)gg_two_sided_factor(h + (first / BLOCK + b) * BLOCK_SIZE,
                                      block_rows(&g, b), g.f + b * BLOCK_SIZE,
                                      d);
        st = encode_group(&g, effort, pool, a, err);
    }
    free_group(&g, a);
    return st;
}
