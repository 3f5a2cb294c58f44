/* SPDX-License-Identifier: MIT */
/* compute_matmul_id.c - products with a selected matrix for each column
 *
 * The columns of each selected matrix are multiplied as one product, read and
 * written in place; a few columns are gathered first. The columns of a product
 * depend on the ids alone, not on the team.
 *
 * If many matrices are selected, each thread computes whole matrices, so that
 * no thread waits. Matrices with so large a share of the columns that the
 * other threads would be done long before are computed by all threads
 * together. */
#include "config.h"
#include "cpu/matmul.h"
#include "cpu/compute_table.h"
#include "cpu/weight_cache.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum {
    ALIGN = 64,
    MOST_ALONE = 128, /* columns of a product that a thread computes alone */
    EACH_ALONE = 2    /* matrices that are named, for each thread, at least */
};

/* State that the threads share, at the start of work. */
struct shared {
    _Alignas(ALIGN) _Atomic int64_t next; /* matrix */
    int64_t n_named;                      /* matrices; -1: after an error */
};

/* Scratch: the columns sorted by matrix, with the addresses of their sources
 * and results; then the scratch of a product, once or for each thread. */
struct scratch {
    struct shared *shared;
    int64_t *first; /* [n_expert + 1]; begun anew each time */
    const float **x_at;
    float **y_at;
    void *product;
};

/* Scratch of a product: a few gathered columns, their results, and the scratch
 * of the kernel. */
struct product_work {
    float *x, *y;
    void *gemm;
};

static int64_t n_columns(const struct gguf_tensor *t)
{
    return t->ne[1] * t->ne[2];
}

static size_t split_work(const struct gguf_tensor *t, void *work,
                         struct scratch *s)
{
    const size_t n = (size_t)n_columns(t);
    const size_t n_first = (size_t)t->src[0]->ne[2] + 1;
    size_t used = 0;
    s->shared = gg_cpu_take_scratch(work, &used, sizeof *s->shared);
    s->first = gg_cpu_take_scratch(work, &used, n_first * sizeof *s->first);
    s->x_at = gg_cpu_take_scratch(work, &used, n * sizeof *s->x_at);
    s->y_at = gg_cpu_take_scratch(work, &used, n * sizeof *s->y_at);
    s->product = gg_cpu_take_scratch(work, &used, 0);
    return used;
}

static struct gg_cpu_gemm_args gemm_args(const struct gguf_tensor *t,
                                         const struct gg_kern *kern, int64_t n)
{
    const struct gguf_tensor *a = t->src[0];
    return (struct gg_cpu_gemm_args){
        .kern = kern,
        .form = gg_kern_gemm_form_of(kern, gg_dtype_index(a->dtype)),
        .dtype_index = gg_dtype_index(a->dtype),
        .w = a->data,
        .w_stride = (size_t)a->nb[1],
        .x_stride = (size_t)a->ne[0] * sizeof(float),
        .y_stride = (size_t)a->ne[1] * sizeof(float),
        .m = a->ne[1],
        .n = n,
        .k = a->ne[0],
    };
}

/* Bytes of scratch for products of up to n columns on nth threads. */
static size_t split_product(const struct gguf_tensor *t,
                            const struct gg_kern *kern, int64_t n,
                            unsigned nth, void *work, struct product_work *w)
{
    const struct gg_cpu_gemm_args g = gemm_args(t, kern, n);
    const size_t few = (size_t)gg_cpu_gemm_max_strided_cols(&g);
    size_t used = 0;
    w->x = gg_cpu_take_scratch(work, &used, few * (size_t)g.k * sizeof *w->x);
    w->y = gg_cpu_take_scratch(work, &used, few * (size_t)g.m * sizeof *w->y);
    w->gemm =
        gg_cpu_take_scratch(work, &used, gg_cpu_gemm_max_work_size(&g, nth));
    return used;
}

/* Does each thread compute whole matrices by itself, if n matrices are
 * selected? */
static bool uses_thread_each(int64_t n, unsigned nth)
{
    return nth > 1 && n >= EACH_ALONE * (int64_t)nth;
}

static int64_t max_columns_thread_each(const struct gguf_tensor *t)
{
    return GG_MIN(n_columns(t), (int64_t)MOST_ALONE);
}

static bool matmul_id_product(const struct gguf_tensor *t,
                              const struct gg_kern *kern,
                              struct gg_cpu_gemm_args *a)
{
    *a = gemm_args(t, kern, n_columns(t));
    return t->src[0]->ne[3] == 1;
}

static size_t matmul_id_work(const struct gguf_tensor *t, unsigned nth,
                             const struct gg_kern *kern)
{
    struct scratch s;
    struct product_work w;
    const size_t team = split_product(t, kern, n_columns(t), nth, NULL, &w);
    size_t alone = 0;
    if (uses_thread_each(t->src[0]->ne[2], nth))
        alone = nth * split_product(t, kern, max_columns_thread_each(t), 1,
                                    NULL, &w);
    return split_work(t, NULL, &s) + GG_MAX(team, alone);
}

/* Columns of matrix e, once all are sorted. */
struct columns {
    int64_t begin, n;
};
static struct columns columns_of(const struct scratch *s, int64_t e)
{
    const int64_t begin = e ? s->first[e - 1] : 0;
    return (struct columns){ begin, s->first[e] - begin };
}

/* Column c is number i. */
static void put_column(struct gguf_tensor *t, struct scratch *s, int64_t i,
                       int64_t c)
{
    const struct gguf_tensor *b = t->src[1];
    const int64_t u = c % t->ne[1], tok = c / t->ne[1];
    s->x_at[i] = gg_row_at(b, u % b->ne[1], tok, 0);
    s->y_at[i] = gg_row_at(t, u, tok, 0);
}

/* Columns by matrix, each list in order; false: a number out of range. */
static bool sort_columns(struct gguf_tensor *t, struct scratch *s,
                         const struct gg_cpu_task *task)
{
    const struct gguf_tensor *ids = t->src[2];
    const int64_t n_expert = t->src[0]->ne[2], n = n_columns(t);
    memset(s->first, 0, ((size_t)n_expert + 1) * sizeof *s->first);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t c = 0; c < n; c++) {
            int32_t e;
            memcpy(&e,
                   (const char *)ids->data + c % t->ne[1] * ids->nb[0] +
                       c / t->ne[1] * ids->nb[1],
                   sizeof e);
            if (e < 0 || e >= n_expert) {
                gg_cpu_fail(task, GGUF_E_INVALID,
                            "matmul_id: matrix %" PRId32 " of %" PRId64, e,
                            n_expert);
                return false;
            }
            if (!pass)
                s->first[e + 1]++;
            else
                put_column(t, s, s->first[e]++, c);
        }
        for (int64_t e = 0; !pass && e < n_expert; e++)
            s->first[e + 1] += s->first[e];
    }
    /* first[e] is now the end of e's list */
    s->shared->n_named = 0;
    for (int64_t e = 0; e < n_expert; e++)
        s->shared->n_named += columns_of(s, e).n > 0;
    return true;
}

/* The threads that compute a product: the team, or one alone. */
struct team {
    unsigned ith, nth;
    struct gg_barrier *barrier; /* NULL: one */
};

static void sync_team(const struct team *team)
{
    if (team->barrier)
        gg_barrier_wait(team->barrier);
}

/* Gather a few columns. If a batch of many tokens has fewer columns than a
 * wide product needs, columns of zeros are added: so last bits do not depend
 * on the number of other tokens that chose the matrix. */
static void gather_columns(struct gg_cpu_gemm_args *g,
                           const struct gguf_tensor *t,
                           const struct team *team,
                           const struct product_work *w)
{
    const int64_t wide = g->kern->gemm[g->form].narrow, n = g->n;
    const size_t k = (size_t)g->k;
    if (t->ne[2] >= wide && n < wide)
        g->n = wide;
    for (int64_t i = team->ith; i < g->n; i += team->nth) {
        if (i < n)
            memcpy(w->x + (size_t)i * k, g->x_at[i], k * sizeof *w->x);
        else
            memset(w->x + (size_t)i * k, 0, k * sizeof *w->x);
    }
    g->x = w->x;
    g->y = w->y;
    g->x_at = NULL;
    g->y_at = NULL;
}

/* Matrix e by its columns. */
static void multiply_matrix(const struct gguf_tensor *t,
                            const struct gg_cpu_task *task,
                            const struct scratch *s, int64_t e,
                            const struct team *team,
                            const struct product_work *w)
{
    const struct columns c = columns_of(s, e);
    struct gg_cpu_gemm_args g = gemm_args(t, task->kern, c.n);
    const bool few = c.n <= gg_cpu_gemm_max_strided_cols(&g);
    g.w = gg_row_at(t->src[0], 0, e, 0);
    g.kept = gg_cpu_panels_matrix(task->panels, e);
    g.x_at = s->x_at + c.begin;
    g.y_at = s->y_at + c.begin;
    if (few) {
        gather_columns(&g, t, team, w);
        sync_team(team);
    }
    gg_cpu_gemm_run(&g, team->ith, team->nth, w->gemm, team->barrier);
    sync_team(team);
    for (int64_t i = team->ith; few && i < c.n; i += team->nth)
        memcpy(s->y_at[c.begin + i], w->y + i * g.m,
               (size_t)g.m * sizeof *w->y);
}

/* Those that the team computes together: with more columns than most. */
static void multiply_together(const struct gguf_tensor *t,
                              const struct gg_cpu_task *task,
                              const struct scratch *s, int64_t most)
{
    const struct team team = { task->ith, task->nth,
                               task->nth > 1 ? task->barrier : NULL };
    struct product_work w;
    split_product(t, task->kern, n_columns(t), task->nth, s->product, &w);
    for (int64_t e = 0; e < t->src[0]->ne[2]; e++)
        if (columns_of(s, e).n > most)
            multiply_matrix(t, task, s, e, &team, &w);
    sync_team(&team);
}

/* Multiply the matrices with up to most columns, each by the next free
 * thread. */
static void multiply_thread_each(const struct gguf_tensor *t,
                                 const struct gg_cpu_task *task,
                                 const struct scratch *s, int64_t most)
{
    const struct team team = { 0, 1, NULL };
    struct product_work w;
    const size_t size = split_product(t, task->kern, most, 1, NULL, &w);
    split_product(t, task->kern, most, 1,
                  (char *)s->product + task->ith * size, &w);
    /* relaxed: a claim orders nothing but itself */
    for (int64_t e; (e = atomic_fetch_add_explicit(&s->shared->next, 1,
                                                   memory_order_relaxed)) <
                    t->src[0]->ne[2];) {
        const int64_t n = columns_of(s, e).n;
        if (n && n <= most)
            multiply_matrix(t, task, s, e, &team, &w);
    }
}

static void matmul_id(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    struct scratch s;
    if (gguf_tensor_is_empty(t))
        return;
    split_work(t, task->work, &s);
    if (task->ith == 0) {
        atomic_store_explicit(&s.shared->next, 0, memory_order_relaxed);
        if (!sort_columns(t, &s, task))
            s.shared->n_named = -1; /* seen by all after the barrier */
    }
    if (task->nth > 1)
        gg_barrier_wait(task->barrier);
    if (s.shared->n_named < 0)
        return;
    const bool alone = uses_thread_each(s.shared->n_named, task->nth);
    multiply_together(t, task, &s, alone ? max_columns_thread_each(t) : 0);
    if (alone)
        multiply_thread_each(t, task, &s, max_columns_thread_each(t));
}

GG_CPU_PRODUCT(matmul_id, matmul_id, matmul_id_work, gg_cpu_matmul_supports,
               matmul_id_product);
