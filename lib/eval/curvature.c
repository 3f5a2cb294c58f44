/* SPDX-License-Identifier: MIT */
/* curvature.c - sums of outer products of gradients: see curvature.h */
#include "config.h"
#include "eval/curvature.h"

#include "base/ckd.h"
#include "base/mem.h"
#include "base/params.h"
#include "linalg/linalg.h"
#include "run/backward.h"
#include "run/session_int.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = GG_CURVATURE_BLOCK,
    BLOCK_SIZE = BLOCK * BLOCK,
    MOST_STEPS = 512 /* columns that are added at a time: one chain */
};

struct matrix {
    const struct gguf_tensor *weight;
    char name[GGUF_TENSOR_NAME];
    size_t n; /* outputs */
    float *h; /* blocks of sums, then of means */
    uint64_t n_columns;
};

struct gg_curvature {
    const struct gguf_allocator *allocator;
    struct matrix *matrix;
    size_t n_matrices, cap;
    float *embedding; /* [n_embd][n_embd]; NULL: none */
    size_t n_embd;
    uint64_t n_rows; /* rows of the embedding that were looked up */

    /* for the time of the sums */
    struct gg_linalg la;
    struct gg_curvature_params p;
    const struct gguf_tensor *token_embd; /* NULL: not wanted */
    size_t batch;
};

/* ---- matrices ---- */

static size_t count_blocks(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

static enum gguf_status grow_list(struct gg_curvature *c,
                                  struct gguf_error *err)
{
    const size_t cap = c->cap ? 2 * c->cap : 64;
    struct matrix *list = gg_mem_alloc_zero(c->allocator, cap, sizeof *list);
    if (!list)
        return gg_error_set_nomem(err, cap * sizeof *list);
    if (c->n_matrices)
        memcpy(list, c->matrix, c->n_matrices * sizeof *list);
    gg_mem_free(c->allocator, c->matrix);
    c->matrix = list;
    c->cap = cap;
    return GGUF_OK;
}

/* Find or add the matrix of a weight. */
static enum gguf_status find_matrix(struct gg_curvature *c,
                                    const struct gguf_tensor *w,
                                    struct matrix **out,
                                    struct gguf_error *err)
{
    for (size_t i = c->n_matrices; i-- > 0;)
        if (c->matrix[i].weight == w) {
            *out = &c->matrix[i];
            return GGUF_OK;
        }
    if (c->n_matrices == c->cap)
        GG_TRY(grow_list(c, err));
    struct matrix *m = &c->matrix[c->n_matrices];
    const size_t n = (size_t)w->ne[1];
    m->h = gg_mem_alloc_zero(c->allocator, count_blocks(n),
                             BLOCK_SIZE * sizeof *m->h);
    if (!m->h)
        return gg_error_set_nomem(err,
                                  count_blocks(n) * BLOCK_SIZE * sizeof *m->h);
    m->weight = w;
    m->n = n;
    m->n_columns = 0;
    memcpy(m->name, w->name, sizeof m->name);
    c->n_matrices++;
    *out = m;
    return GGUF_OK;
}

static const struct matrix *find_name(const struct gg_curvature *c,
                                      const char *name)
{
    for (size_t i = 0; i < c->n_matrices; i++)
        if (!strcmp(c->matrix[i].name, name))
            return &c->matrix[i];
    return NULL;
}

/* ---- sums ---- */

/* Add columns of gradients to the blocks of a matrix. */
static enum gguf_status add_columns(struct gg_curvature *c, struct matrix *m,
                                    const struct gg_backward_gradient *g,
                                    size_t first, size_t n_columns,
                                    struct gguf_error *err)
{
    const float *x = g->g + first * g->n;
    for (size_t row = 0, n; row < g->n; row += n) {
        const size_t at = g->first_row + row; /* output of the matrix */
        const size_t in = at % BLOCK;
        n = GG_MIN(BLOCK - in, g->n - row);
        GG_TRY(gg_linalg_add_products(
            &c->la, m->h + at / BLOCK * BLOCK_SIZE + in * BLOCK + in, BLOCK,
            x + row, g->n, n, x + row, g->n, n, n_columns, true, err));
    }
    return GGUF_OK;
}

static enum gguf_status add_embedding(struct gg_curvature *c,
                                      const struct gg_backward_gradient *g,
                                      size_t first, size_t n_rows,
                                      struct gguf_error *err)
{
    const float *x = g->g + first * g->n;
    return gg_linalg_add_products(&c->la, c->embedding, c->n_embd, x, g->n,
                                  g->n, x, g->n, g->n, n_rows, true, err);
}

static enum gguf_status take_gradient(void *user,
                                      const struct gg_backward_gradient *g,
                                      struct gguf_error *err)
{
    struct gg_curvature *c = user;
    struct matrix *m = NULL;
    if (g->is_lookup && (g->weight != c->token_embd || g->n != c->n_embd))
        return GGUF_OK;
    if (!g->is_lookup)
        GG_TRY(find_matrix(c, g->weight, &m, err));
    for (size_t at = 0, n; at < g->n_columns; at += n) {
        n = GG_MIN((size_t)MOST_STEPS, g->n_columns - at);
        GG_TRY(m ? add_columns(c, m, g, at, n, err)
                 : add_embedding(c, g, at, n, err));
    }
    /* several views of a matrix count its columns once */
    if (m && g->first_row == 0)
        m->n_columns += g->n_columns;
    else if (!m)
        c->n_rows += g->n_columns;
    return GGUF_OK;
}

/* ---- drawn tokens ---- */

/* Number from 0 to 1 for a counter (splitmix64: Steele, Lea and Flood,
 * OOPSLA 2014). */
static double draw_number(uint64_t seed, uint64_t counter)
{
    uint64_t z = seed + (counter + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

struct rows {
    const struct gg_curvature *c;
    const float *logits;
    float *seed;
    size_t first, n, n_vocab;
};

/* Draw a token from softmax(x), and set y to softmax(x) less 1 at the token:
 * the gradient of -log p(token). */
static void draw_row(const float *x, float *y, size_t n, double u)
{
    double max = -INFINITY, sum = 0, at = 0;
    size_t token = SIZE_MAX;
    for (size_t i = 0; i < n; i++)
        max = fmax(max, (double)x[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i] - max);
    for (size_t i = 0; i < n; i++) {
        const double p = exp((double)x[i] - max);
        at += p;
        if (token == SIZE_MAX && at > u * sum)
            token = i;
        y[i] = (float)(p / sum);
    }
    if (token != SIZE_MAX) /* else NaN */
        y[token] -= 1;
}

static void draw_share(void *user, unsigned ith, unsigned nth)
{
    const struct rows *r = user;
    const struct gg_curvature *c = r->c;
    for (size_t i = ith; i < r->n; i += nth)
        draw_row(
            r->logits + i * r->n_vocab, r->seed + i * r->n_vocab, r->n_vocab,
            draw_number(c->p.seed, (uint64_t)c->batch << 32 | (r->first + i)));
}

static enum gguf_status take_logits(void *user, size_t first, size_t n,
                                    size_t n_vocab, const float *logits,
                                    float *seed, struct gguf_error *err)
{
    struct gg_curvature *c = user;
    struct rows rows = { c, logits, seed, first, n, n_vocab };
    (void)err;
    gguf_pool_run(c->p.pool, (struct gguf_pool_callback){ draw_share, &rows });
    return GGUF_OK;
}

/* ---- batches ---- */

static enum gguf_status run_batches(struct gg_curvature *c,
                                    struct gg_backward *b, const bool *all,
                                    uint64_t total, struct gguf_error *err)
{
    const struct gg_backward_calls calls = { take_logits, take_gradient, c };
    uint64_t done = 0;
    for (c->batch = 0; c->batch < c->p.n_batches; c->batch++) {
        struct gguf_batch batch = c->p.batches[c->batch];
        batch.want = all;
        GG_TRY(gg_backward_run(b, &batch, &calls, err));
        done += batch.n;
        if (c->p.progress.fn &&
            c->p.progress.fn(c->p.progress.user, done, total))
            return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                                "cancelled");
    }
    return GGUF_OK;
}

static enum gguf_status run_all(struct gg_curvature *c, struct gguf_error *err)
{
    struct gg_backward *b = NULL;
    bool *all = NULL;
    uint64_t total = 0;
    size_t most = 0;
    for (size_t i = 0; i < c->p.n_batches; i++) {
        total += c->p.batches[i].n;
        most = GG_MAX(most, c->p.batches[i].n);
    }
    enum gguf_status st = gg_backward_create(&b, c->p.session, err);
    if (st == GGUF_OK) {
        all = gg_mem_alloc(c->allocator, most + 1);
        st = all ? GGUF_OK : gg_error_set_nomem(err, most + 1);
    }
    if (st == GGUF_OK) {
        struct gguf_batch first = c->p.batches[0];
        memset(all, true, most);
        first.want = all;
        st = gg_backward_check(b, &first, err);
    }
    if (st == GGUF_OK)
        st = run_batches(c, b, all, total, err);
    gg_backward_destroy(b);
    gg_mem_free(c->allocator, all);
    return st;
}

/* ---- means ---- */

/* Divide a square matrix by n, and copy the elements above its diagonal to
 * those below. Returns false if an element is not finite. */
static bool finish_square(float *h, size_t size, double n)
{
    bool finite = true;
    for (size_t i = 0; i < size; i++)
        for (size_t j = i; j < size; j++) {
            const float x = (float)((double)h[i * size + j] / n);
            finite = finite && isfinite(x);
            h[i * size + j] = h[j * size + i] = x;
        }
    return finite;
}

static enum gguf_status finish_means(struct gg_curvature *c,
                                     struct gguf_error *err)
{
    for (size_t i = 0; i < c->n_matrices; i++) {
        struct matrix *m = &c->matrix[i];
        bool finite = true;
        for (size_t k = 0; k < count_blocks(m->n); k++)
            finite =
                finish_square(m->h + k * BLOCK_SIZE, BLOCK,
                              (double)GG_MAX(m->n_columns, (uint64_t)1)) &&
                finite;
        if (!finite)
            return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                                "tensor '%s': gradients are not finite",
                                m->name);
    }
    if (c->embedding && c->n_rows &&
        !finish_square(c->embedding, c->n_embd, (double)c->n_rows))
        return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                            "gradients of the token embedding are not finite");
    return GGUF_OK;
}

/* ---- the object ---- */

static enum gguf_status begin_embedding(struct gg_curvature *c,
                                        struct gguf_error *err)
{
    const struct gguf_model *m = c->p.session->model;
    size_t size;
    c->token_embd = m->top.w[GG_W_TOKEN_EMBD];
    if (!c->token_embd)
        return GGUF_OK;
    c->n_embd = (size_t)c->token_embd->ne[0];
    if (gg_ckd_array(&size, c->n_embd, c->n_embd))
        return gg_error_set_nomem(err, SIZE_MAX);
    c->embedding = gg_mem_alloc_zero(c->allocator, size, sizeof(float));
    return c->embedding ? GGUF_OK
                        : gg_error_set_nomem(err, size * sizeof(float));
}

enum gguf_status gg_curvature_create(struct gg_curvature **out,
                                     const struct gg_curvature_params *params,
                                     struct gguf_error *err)
{
    *out = NULL;
    if (!params->n_batches)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "curvature: no batches");
    struct gg_curvature *c =
        gg_mem_alloc_zero(params->allocator, 1, sizeof *c);
    if (!c)
        return gg_error_set_nomem(err, sizeof *c);
    c->allocator = params->allocator;
    c->p = *params;
    gg_linalg_init(&c->la, params->pool, params->allocator);
    enum gguf_status st =
        params->has_embedding ? begin_embedding(c, err) : GGUF_OK;
    if (st == GGUF_OK)
        st = run_all(c, err);
    if (st == GGUF_OK)
        st = finish_means(c, err);
    gg_linalg_fini(&c->la);
    if (st == GGUF_OK)
        *out = c;
    else
        gg_curvature_destroy(c);
    return st;
}

void gg_curvature_destroy(struct gg_curvature *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_matrices; i++)
        gg_mem_free(c->allocator, c->matrix[i].h);
    gg_mem_free(c->allocator, c->matrix);
    gg_mem_free(c->allocator, c->embedding);
    gg_mem_free(c->allocator, c);
}

const float *gg_curvature_blocks(const struct gg_curvature *c,
                                 const char *name, size_t *n_outputs)
{
    const struct matrix *m = find_name(c, name);
    *n_outputs = m ? m->n : 0;
    return m ? m->h : NULL;
}

double gg_curvature_sensitivity(const struct gg_curvature *c, const char *name)
{
    const struct matrix *m = find_name(c, name);
    double sum = 0;
    for (size_t i = 0; m && i < m->n; i++)
        sum += (double)m->h[i / BLOCK * BLOCK_SIZE + i % BLOCK * (BLOCK + 1)];
    return m && m->n ? sum / (double)m->n : -1;
}

const float *gg_curvature_embedding(const struct gg_curvature *c, size_t *n)
{
    const bool has = c->embedding && c->n_rows;
    *n = has ? c->n_embd : 0;
    return has ? c->embedding : NULL;
}

size_t gg_curvature_count(const struct gg_curvature *c)
{
    return c->n_matrices;
}

const char *gg_curvature_name(const struct gg_curvature *c, size_t i)
{
    return c->matrix[i].name;
}
