/* SPDX-License-Identifier: MIT */
/* weight_noise.c - add the effect of a random error of a weight to a result
 *
 * Threads share out rows of the weight. Each row's noise depends on its number
 * alone, and sums of rows are stored and added in order. */
#include "config.h"
#include "eval/weight_noise.h"

#include "base/ckd.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "gguf/backend.h"
#include "gguf/op.h"

#include <math.h>
#include <string.h>

enum {
    ROWS = 8,        /* rows of a piece: the inputs are read once for them */
    TABLE_ROWS = 256 /* rows of a piece of a table */
};

/* ---- the error of a row ---- */

/* Mix the bits of x (SplitMix64: Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t mix_bits(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t gg_weight_noise_seed(const char *name, bool table)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return h + table;
}

static float rms_of(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return isfinite(sum) ? (float)sqrt(sum / (double)n) : 0;
}

void gg_weight_noise_row(const struct gg_weight_noise *w, uint64_t r, float *e)
{
    const uint64_t n = w->n_cols;
    gg_data_read(&w->rows, r * n, n, e);
    for (uint64_t j = 0; j < n; j += GG_WEIGHT_NOISE_RUN) {
        const uint64_t some = GG_MIN(n - j, (uint64_t)GG_WEIGHT_NOISE_RUN);
        const float rms = rms_of(e + j, (size_t)some);
        const uint64_t bits = mix_bits(mix_bits(w->seed ^ r) ^ j);
        for (uint64_t i = 0; i < some; i++)
            e[j + i] = bits >> i & 1 ? rms : -rms;
    }
}

/* ---- products ---- */

/* An input and its result. */
struct column {
    const float *x;
    float *y;
};

struct product {
    const struct gg_weight_noise *w;
    struct column *col; /* [n], sorted by matrix */
    size_t *first;      /* [n_mats + 1], first column of each matrix */
    size_t n, n_mats;
    uint64_t *row;   /* [n_mats], row of the weight where a matrix begins */
    uint64_t m;      /* rows of a matrix of the product */
    double *squares; /* [n_mats][n_cols], sums of squares of the inputs */
    double *power;   /* [n_mats][pieces] */
    size_t n_pieces; /* pieces of a matrix */
    float *buffer;   /* [threads][ROWS][n_cols] */
};

static const struct gguf_tensor *root_of(const struct gguf_tensor *t)
{
    return t->view_src ? t->view_src : t;
}

static bool is_weight(const struct gguf_tensor *t)
{
    return t->buffer && gguf_buffer_usage(t->buffer) == GGUF_USAGE_WEIGHTS;
}

const struct gguf_tensor *gg_weight_noise_find(const struct gguf_tensor *node)
{
    const bool product =
        node->op == GGUF_OP_MATMUL || node->op == GGUF_OP_MATMUL_ID;
    if ((!product && node->op != GGUF_OP_GET_ROWS) ||
        node->dtype != GGUF_DTYPE_F32 || node->nb[0] != sizeof(float))
        return NULL;
    const struct gguf_tensor *part = node->src[0], *t = root_of(part);
    const struct gguf_tensor *x = node->src[1];
    if (!is_weight(t) || t->ne[1] < 2 || part->ne[0] != t->ne[0] ||
        part->nb[1] != t->nb[1] || part->nb[0] != t->nb[0])
        return NULL;
    if (product && (x->dtype != GGUF_DTYPE_F32 || x->nb[0] != sizeof(float)))
        return NULL;
    if (!product &&
        (x->dtype != GGUF_DTYPE_I32 ||
         node->ne[2] * node->ne[3] * part->ne[2] * part->ne[3] > 1))
        return NULL;
    return t;
}

static float *row_of(const struct gguf_tensor *t, int64_t i1, int64_t i2,
                     int64_t i3)
{
    uint8_t *p =
        (uint8_t *)t->data + i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3];
    return (float *)(void *)p;
}

/* Column and matrix number i of a product. */
static struct column column_at(const struct gguf_tensor *node, size_t i,
                               size_t *mat)
{
    const struct gguf_tensor *x = node->src[1], *a = node->src[0];
    const int64_t k = (int64_t)i;
    const int64_t i1 = k % node->ne[1], i2 = k / node->ne[1] % node->ne[2];
    const int64_t i3 = k / node->ne[1] / node->ne[2];
    struct column c = { .y = row_of(node, i1, i2, i3) };
    if (node->op == GGUF_OP_MATMUL_ID) {
        const struct gguf_tensor *ids = node->src[2];
        int32_t id;
        memcpy(&id,
               (const uint8_t *)ids->data + i1 * ids->nb[0] + i2 * ids->nb[1],
               sizeof id);
        *mat = (size_t)id;
        c.x = row_of(x, i1 % x->ne[1], i2, 0);
        return c;
    }
    *mat = (size_t)(i2 / (x->ne[2] / a->ne[2]) +
                    a->ne[2] * (i3 / (x->ne[3] / a->ne[3])));
    c.x = row_of(x, i1, i2, i3);
    return c;
}

/* Sort the columns by matrix; those of a matrix keep their order. */
static void sort_columns(struct product *p, const struct gguf_tensor *node)
{
    size_t mat, sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        (void)column_at(node, i, &mat);
        p->first[mat + 1]++;
    }
    for (size_t k = 0; k <= p->n_mats; k++)
        sum = p->first[k] += sum;
    for (size_t i = p->n; i-- > 0;) {
        const struct column c = column_at(node, i, &mat);
        p->col[--p->first[mat + 1]] = c;
    }
    /* first[k + 1] is now where matrix k begins */
    memmove(p->first, p->first + 1, p->n_mats * sizeof *p->first);
    p->first[p->n_mats] = p->n;
}

static void find_matrices(struct product *p, const struct gguf_tensor *node)
{
    const struct gguf_tensor *a = node->src[0], *t = root_of(a);
    const uint64_t row = (uint64_t)t->nb[1];
    for (size_t k = 0; k < p->n_mats; k++) {
        const uint64_t i2 = k % (uint64_t)a->ne[2],
                       i3 = k / (uint64_t)a->ne[2];
        p->row[k] = ((a == t ? 0 : a->view_off) + i2 * (uint64_t)a->nb[2] +
                     i3 * (uint64_t)a->nb[3]) /
                    row;
    }
}

static void add_squares(void *user, unsigned ith, unsigned nth)
{
    const struct product *p = user;
    const uint64_t n = p->w->n_cols;
    const uint64_t begin = n * ith / nth, end = n * (ith + 1) / nth;
    for (size_t k = 0; k < p->n_mats; k++)
        for (size_t c = p->first[k]; c < p->first[k + 1]; c++)
            for (uint64_t j = begin; j < end; j++)
                p->squares[k * n + j] +=
                    (double)p->col[c].x[j] * (double)p->col[c].x[j];
}

/* Add the noise of some rows of matrix k to their elements of all results. */
static void add_piece(const struct product *p, size_t k, size_t piece,
                      float *e)
{
    const struct gg_weight_noise *w = p->w;
    const uint64_t n = w->n_cols, at = piece * ROWS;
    const uint64_t some = GG_MIN(p->m - at, (uint64_t)ROWS);
    const float sigma = (float)w->sigma;
    double power = 0;
    for (uint64_t r = 0; r < some; r++) {
        gg_weight_noise_row(w, p->row[k] + at + r, e + r * n);
        for (uint64_t j = 0; j < n; j++)
            power += p->squares[k * n + j] * (double)e[r * n + j] *
                     (double)e[r * n + j];
    }
    p->power[k * p->n_pieces + piece] = power;
    for (size_t c = p->first[k]; c < p->first[k + 1]; c++)
        for (uint64_t r = 0; r < some; r++)
            p->col[c].y[at + r] +=
                sigma * w->dot(e + r * n, p->col[c].x, (size_t)n);
}

static void add_pieces(void *user, unsigned ith, unsigned nth)
{
    const struct product *p = user;
    float *e = p->buffer + (size_t)ith * ROWS * p->w->n_cols;
    for (size_t i = ith; i < p->n_mats * p->n_pieces; i += nth) {
        const size_t k = i / p->n_pieces;
        if (p->first[k] < p->first[k + 1])
            add_piece(p, k, i % p->n_pieces, e);
    }
}

static void free_product(struct product *p)
{
    const struct gguf_allocator *a = p->w->allocator;
    gg_mem_free(a, p->col);
    gg_mem_free(a, p->first);
    gg_mem_free(a, p->row);
    gg_mem_free(a, p->squares);
    gg_mem_free(a, p->power);
    gg_mem_free(a, p->buffer);
}

static enum gguf_status make_product(struct product *p,
                                     const struct gguf_tensor *node,
                                     struct gguf_error *err)
{
    const struct gguf_allocator *a = p->w->allocator;
    const struct gguf_tensor *part = node->src[0];
    const unsigned nth = gguf_pool_n_threads(p->w->pool);
    p->n_mats = (size_t)(part->ne[2] * part->ne[3]);
    p->m = (uint64_t)part->ne[1];
    p->n = (size_t)(node->ne[1] * node->ne[2] * node->ne[3]);
    p->n_pieces = (size_t)((p->m + ROWS - 1) / ROWS);
    p->col = gg_mem_alloc_zero(a, p->n, sizeof *p->col);
    p->first = gg_mem_alloc_zero(a, p->n_mats + 2, sizeof *p->first);
    p->row = gg_mem_alloc_zero(a, p->n_mats, sizeof *p->row);
    p->squares =
        gg_mem_alloc_zero(a, p->n_mats * p->w->n_cols, sizeof *p->squares);
    p->power = gg_mem_alloc_zero(a, (uint64_t)p->n_mats * p->n_pieces,
                                 sizeof *p->power);
    p->buffer = gg_mem_alloc_zero(a, (uint64_t)nth * ROWS * p->w->n_cols,
                                  sizeof *p->buffer);
    return p->col && p->first && p->row && p->squares && p->power && p->buffer
               ? GGUF_OK
               : gg_error_set_nomem(err, p->n_mats * p->w->n_cols *
                                             sizeof *p->squares);
}

static enum gguf_status add_to_product(const struct gg_weight_noise *w,
                                       const struct gguf_tensor *node,
                                       struct gg_weight_noise_sums *sums,
                                       struct gguf_error *err)
{
    struct product p = { .w = w };
    const enum gguf_status st = make_product(&p, node, err);
    if (st == GGUF_OK) {
        const double part = (double)p.m / (double)w->n_rows_mat;
        find_matrices(&p, node);
        sort_columns(&p, node);
        gguf_pool_run(w->pool, (struct gguf_pool_callback){ add_squares, &p });
        gguf_pool_run(w->pool, (struct gguf_pool_callback){ add_pieces, &p });
        for (size_t i = 0; i < p.n_mats * p.n_pieces; i++)
            sums->power += p.power[i];
        for (uint64_t i = 0; i < p.n_mats * w->n_cols; i++)
            sums->squares += part * p.squares[i];
        sums->n += part * (double)p.n;
    }
    free_product(&p);
    return st;
}

/* ---- tables ---- */

static enum gguf_status add_to_rows(const struct gg_weight_noise *w,
                                    const struct gguf_tensor *node,
                                    struct gguf_error *err)
{
    const struct gguf_tensor *a = node->src[0], *ids = node->src[1];
    const uint64_t base =
        a->view_src ? a->view_off / (uint64_t)a->view_src->nb[1] : 0;
    float *e = gg_mem_alloc_zero(w->allocator, w->n_cols, sizeof *e);
    if (!e)
        return gg_error_set_nomem(err, (size_t)w->n_cols * sizeof *e);
    for (int64_t i = 0; i < node->ne[1]; i++) {
        int32_t id;
        memcpy(&id, (const uint8_t *)ids->data + i * ids->nb[0], sizeof id);
        gg_weight_noise_row(w, base + (uint64_t)id, e);
        float *y = row_of(node, i, 0, 0);
        for (uint64_t j = 0; j < w->n_cols; j++)
            y[j] += (float)w->sigma * e[j];
    }
    gg_mem_free(w->allocator, e);
    return GGUF_OK;
}

struct table {
    const struct gg_weight_noise *w;
    double *power; /* [pieces] */
    float *buffer; /* [threads][n_cols] */
};

static void sum_table(void *user, unsigned ith, unsigned nth)
{
    const struct table *t = user;
    const uint64_t n = t->w->n_cols, rows = t->w->n_rows;
    float *x = t->buffer + ith * n;
    for (uint64_t piece = ith; piece * TABLE_ROWS < rows; piece += nth) {
        const uint64_t at = piece * TABLE_ROWS;
        for (uint64_t r = at; r < GG_MIN(rows, at + TABLE_ROWS); r++) {
            gg_weight_noise_row(t->w, r, x);
            for (uint64_t j = 0; j < n; j++)
                t->power[piece] += (double)x[j] * (double)x[j];
        }
    }
}

enum gguf_status gg_weight_noise_table_power(const struct gg_weight_noise *w,
                                             double *power,
                                             struct gguf_error *err)
{
    const uint64_t n = w->n_rows / TABLE_ROWS + 1;
    const unsigned nth = gguf_pool_n_threads(w->pool);
    struct table t = { w, gg_mem_alloc_zero(w->allocator, n, sizeof *t.power),
                       gg_mem_alloc_zero(w->allocator, nth * w->n_cols,
                                         sizeof *t.buffer) };
    enum gguf_status st = GGUF_OK;
    if (!t.power || !t.buffer)
        st = gg_error_set_nomem(err, (size_t)n * sizeof *t.power);
    else
        gguf_pool_run(w->pool, (struct gguf_pool_callback){ sum_table, &t });
    *power = 0;
    for (uint64_t i = 0; st == GGUF_OK && i < n; i++)
        *power += t.power[i] / (double)w->n_rows;
    gg_mem_free(w->allocator, t.power);
    gg_mem_free(w->allocator, t.buffer);
    return st;
}

enum gguf_status gg_weight_noise_add(const struct gg_weight_noise *w,
                                     const struct gguf_tensor *node,
                                     struct gg_weight_noise_sums *sums,
                                     struct gguf_error *err)
{
    return node->op == GGUF_OP_GET_ROWS ? add_to_rows(w, node, err)
                                        : add_to_product(w, node, sums, err);
}
