/* SPDX-License-Identifier: MIT */
/* collect_node.c - sum the inputs of matrices while a session computes
 *
 * A callback of the scheduler asks for each product of a weight. After the
 * product was computed, its input is still in memory, and is read. One
 * sequence is computed at a time: the columns of an input are the tokens of
 * one chunk. Nodes that nobody reads are not computed: a pass ends before the
 * last product whose input is read, unless a later node writes memory for the
 * next pass. */
#include "config.h"
#include "eval/collect_int.h"

#include "base/str.h"
#include "gguf/op.h"
#include "kern/cpu_features.h"
#include "kern/stat.h"
#include "run/session_int.h"
#include "sched/sched_int.h"

#include <stdlib.h>
#include <string.h>

struct weight {
    const struct gguf_tensor *t;
    struct gg_collect_entry *entry; /* NULL: not found yet */
    bool wanted;
};

struct gg_collect_watch {
    struct gguf_collect *c;
    struct gguf_session *s;
    struct gguf_pool *pool;
    struct gg_stat_kern kern;
    struct gguf_session_graph_callback on_graph; /* callback of the session */
    struct weight *weight;                       /* sorted by address */
    size_t n_weights;
    const struct gguf_graph *graph;
    size_t at, end; /* node that is asked for, and first node not to compute */
    uint8_t *copy[2]; /* copies of tensors that are not in host memory */
    size_t copy_size[2];
    struct gguf_error err; /* error of the callback */
};

/* ---- weights ---- */

static int by_address(const void *a, const void *b)
{
    const struct weight *x = a, *y = b;
    const uintptr_t p = (uintptr_t)x->t, q = (uintptr_t)y->t;
    return (p > q) - (p < q);
}

static void list_scope(struct gg_collect_watch *w, const struct gg_weights *of)
{
    for (unsigned i = 0; i < GG_N_WEIGHTS; i++)
        if (of->w[i])
            w->weight[w->n_weights++] =
                (struct weight){ of->w[i], NULL,
                                 gg_collect_is_wanted(w->c, of->w[i]->name) };
}

static enum gguf_status list_weights(struct gg_collect_watch *w,
                                     struct gguf_error *err)
{
    const struct gguf_model *m = w->s->model;
    const uint64_t most = ((uint64_t)m->hp.n_layer_all + 1) * GG_N_WEIGHTS;
    w->weight = gg_mem_alloc_zero(w->c->allocator, most, sizeof *w->weight);
    if (!w->weight)
        return gg_error_set_nomem(err, (size_t)most * sizeof *w->weight);
    list_scope(w, &m->top);
    for (uint32_t il = 0; il < m->hp.n_layer_all; il++)
        list_scope(w, &m->layer[il]);
    qsort(w->weight, w->n_weights, sizeof *w->weight, by_address);
    return GGUF_OK;
}

static const struct gguf_tensor *root_of(const struct gguf_tensor *t)
{
    return t->view_src ? t->view_src : t;
}

/* The weight that is matrix t of a product, or that has t as a part; NULL: not
 * wanted, or t is a part of its columns. */
static struct weight *weight_of(const struct gg_collect_watch *w,
                                const struct gguf_tensor *t)
{
    const struct weight key = { .t = root_of(t) };
    if (t->ne[0] != key.t->ne[0])
        return NULL;
    struct weight *of =
        bsearch(&key, w->weight, w->n_weights, sizeof key, by_address);
    return of && of->wanted ? of : NULL;
}

/* The weight of a product; NULL: t is another operation. */
static struct weight *weight_of_product(const struct gg_collect_watch *w,
                                        const struct gguf_tensor *t)
{
    return t->op == GGUF_OP_MATMUL || t->op == GGUF_OP_MATMUL_ID
               ? weight_of(w, t->src[0])
               : NULL;
}

static enum gguf_status entry_of(struct gg_collect_watch *w, struct weight *of,
                                 struct gguf_error *err)
{
    const struct gguf_tensor *t = of->t;
    const uint64_t n_cols = (uint64_t)t->ne[0];
    const uint64_t n_mats = (uint64_t)(t->ne[2] * t->ne[3]);
    if (of->entry)
        return GGUF_OK;
    of->entry = gg_collect_find(w->c, gg_str_z(t->name));
    if (!of->entry)
        return gg_collect_add_entry(w->c, gg_str_z(t->name), n_cols, n_mats,
                                    &of->entry, err);
    if (of->entry->n_cols == n_cols && of->entry->n_mats == n_mats)
        return GGUF_OK;
    return gg_error_set(
        err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
        "'%s': %" PRIu64 " columns of %" PRIu64 " matrices, %" PRIu64
        " of %" PRIu64 " were collected before",
        of->entry->name, n_cols, n_mats, of->entry->n_cols, of->entry->n_mats);
}

/* ---- sums ---- */

/* Rows of an input, and the matrices with which they are multiplied. */
struct rows {
    gg_stat_squares_fn *squares;
    struct gg_collect_entry *e;
    double *sum; /* sums of the entry for this use */
    const struct gguf_tensor *x;
    const uint8_t *data; /* bytes of x */
    int64_t n_real;      /* tokens; other columns repeat the last one */
    /* matrix of row (i2, i3): first + i2 / (x2 / m2) + m2 * (i3 / (x3 / m3))
     */
    int64_t first, m2, m3;
    /* tokens are the second dimension; else the third, if it is longer than 1
     */
    bool by_matrix;
    /* selected experts of each token; NULL: no experts */
    const struct gguf_tensor *ids;
    const uint8_t *id_data;
};

/* Add n rows, nb bytes apart, to the sums of a matrix. */
static void add_rows(const struct rows *r, double *sum, const uint8_t *data,
                     int64_t n, int64_t nb, uint64_t begin, uint64_t end)
{
    const float *x = (const float *)(const void *)data;
    r->squares(sum + begin, x + begin, (size_t)nb, (size_t)n,
               (size_t)(end - begin));
}

static void add_products(const struct rows *r, uint64_t begin, uint64_t end)
{
    const struct gguf_tensor *x = r->x;
    const bool second = r->by_matrix || x->ne[2] * x->ne[3] == 1;
    for (int64_t i3 = 0; i3 < x->ne[3]; i3++)
        for (int64_t i2 = 0; i2 < x->ne[2]; i2++) {
            const int64_t mat = r->first + i2 / (x->ne[2] / r->m2) +
                                r->m2 * (i3 / (x->ne[3] / r->m3));
            const int64_t n = second           ? GG_MIN(x->ne[1], r->n_real)
                              : i2 < r->n_real ? x->ne[1]
                                               : 0;
            add_rows(r, r->sum + (uint64_t)mat * r->e->n_cols,
                     r->data + i2 * x->nb[2] + i3 * x->nb[3], n, x->nb[1],
                     begin, end);
            if (begin == 0)
                r->e->chunk_count[mat] += (uint64_t)n;
        }
}

static void add_chosen(const struct rows *r, uint64_t begin, uint64_t end)
{
    const struct gguf_tensor *x = r->x, *ids = r->ids;
    for (int64_t t = 0; t < ids->ne[1] && t < r->n_real; t++)
        for (int64_t u = 0; u < ids->ne[0]; u++) {
            int32_t mat;
            memcpy(&mat, r->id_data + u * ids->nb[0] + t * ids->nb[1],
                   sizeof mat);
            add_rows(r, r->sum + (uint64_t)mat * r->e->n_cols,
                     r->data + u % x->ne[1] * x->nb[1] + t * x->nb[2], 1, 0,
                     begin, end);
            if (begin == 0)
                r->e->chunk_count[mat]++;
        }
}

/* Each thread has its own columns, so that a column's sum is in the order of
 * tokens. The first thread counts rows. */
static void add_columns(void *user, unsigned ith, unsigned nth)
{
    const struct rows *r = user;
    const uint64_t n = r->e->n_cols;
    const uint64_t begin = n * ith / nth, end = n * (ith + 1) / nth;
    if (begin == end)
        return;
    if (r->ids)
        add_chosen(r, begin, end);
    else
        add_products(r, begin, end);
}

/* ---- bytes in host memory ---- */

/* Bytes of t in host memory: where they lie, or copied to copy[i]. */
static enum gguf_status host_bytes(struct gg_collect_watch *w,
                                   const struct gguf_tensor *t, unsigned i,
                                   const uint8_t **out, struct gguf_error *err)
{
    const uint64_t size = gguf_tensor_size(t);
    *out = t->data;
    if (!t->buffer || gguf_buft_is_host(gguf_buffer_buft(t->buffer)))
        return GGUF_OK;
    if (w->copy_size[i] < size) {
        gg_mem_free(w->c->allocator, w->copy[i]);
        w->copy_size[i] = 0;
        w->copy[i] = gg_mem_alloc(w->c->allocator, (size_t)size);
        if (!w->copy[i])
            return gg_error_set_nomem(err, (size_t)size);
        w->copy_size[i] = (size_t)size;
    }
    *out = w->copy[i];
    return gguf_tensor_get(t, w->copy[i], 0, size, err);
}

static enum gguf_status take_inputs(struct gg_collect_watch *w,
                                    const struct gguf_tensor *node,
                                    struct weight *of, struct gguf_error *err)
{
    const struct gguf_tensor *m = node->src[0], *root = root_of(m);
    /* m is a part of the matrices */
    const bool parts = root->ne[2] * root->ne[3] > 1;
    struct rows r = {
        .squares = w->kern.squares,
        .x = node->src[1],
        .n_real = w->s->ubatch.shape.n_real,
        .first = parts ? (int64_t)(m->view_off / (uint64_t)root->nb[2]) : 0,
        .m2 = parts ? m->ne[2] : 1,
        .m3 = parts ? m->ne[3] : 1,
        .by_matrix = m->ne[2] > 1,
    };
    GG_TRY(entry_of(w, of, err));
    r.e = of->entry;
    if ((uint64_t)(r.first + r.m2 * r.m3) > r.e->n_mats)
        return GGUF_OK; /* not divided into whole matrices */
    GG_TRY(host_bytes(w, r.x, 0, &r.data, err));
    if (node->op == GGUF_OP_MATMUL_ID) {
        r.ids = node->src[2];
        GG_TRY(host_bytes(w, r.ids, 1, &r.id_data, err));
    }
    r.sum = gg_collect_next_sums(w->c, r.e, err);
    if (!r.sum)
        return GGUF_E_NOMEM;
    gguf_pool_run(w->pool, (struct gguf_pool_callback){ add_columns, &r });
    return GGUF_OK;
}

/* ---- nodes to compute ---- */

/* Does the node write memory that outlives the pass? */
static bool is_kept(const struct gguf_tensor *t)
{
    return t->view_src && !gguf_op_is_view(t->op) && !t->view_src->op;
}

/* Are states after the last norm read? */
static bool reads_states(const struct gg_collect_watch *w)
{
    const struct gguf_tensor *m = w->s->model->top.w[GG_W_OUTPUT];
    return w->c->output && m && gg_model_has_logits(w->s->model) &&
           weight_of(w, m);
}

/* First node from which on nobody reads a result. */
static size_t find_end(const struct gg_collect_watch *w,
                       const struct gguf_graph *g)
{
    size_t i = g->n_nodes;
    if (reads_states(w))
        return i;
    while (i && !weight_of_product(w, g->nodes[i - 1]) &&
           !is_kept(g->nodes[i - 1]))
        i--;
    return i && weight_of_product(w, g->nodes[i - 1]) ? i - 1 : i;
}

/* Also asked for the last product, which is not computed: its input is. */
static enum gg_sched_answer ask_node(void *user, const struct gguf_tensor *t)
{
    struct gg_collect_watch *w = user;
    while (w->at < w->graph->n_nodes && w->graph->nodes[w->at] != t)
        w->at++;
    if (w->at >= w->end)
        return GG_SCHED_END;
    return weight_of_product(w, t) ? GG_SCHED_WANT : GG_SCHED_SKIP;
}

static bool see_node(void *user, struct gguf_tensor *t)
{
    struct gg_collect_watch *w = user;
    struct weight *of = weight_of_product(w, t);
    return of && take_inputs(w, t, of, &w->err) != GGUF_OK;
}

static bool on_graph(void *user, struct gguf_graph *graph,
                     struct gguf_sched *sched)
{
    struct gg_collect_watch *w = user;
    if (w->on_graph.fn && w->on_graph.fn(w->on_graph.user, graph, sched))
        return true;
    gg_collect_begin_pass(w->c);
    w->graph = graph;
    w->at = 0;
    w->end = find_end(w, graph);
    const struct gg_sched_watch watch = { ask_node, see_node, w };
    return gg_sched_set_watch(sched, watch, &w->err) != GGUF_OK;
}

/* ---- the whole ---- */

enum gguf_status gg_collect_watch(struct gg_collect_watch **out,
                                  struct gguf_collect *c,
                                  struct gguf_session *s,
                                  struct gguf_pool *pool,
                                  struct gguf_error *err)
{
    struct gg_collect_watch *w = gg_mem_alloc_zero(c->allocator, 1, sizeof *w);
    *out = w;
    if (!w)
        return gg_error_set_nomem(err, sizeof *w);
    w->c = c;
    w->s = s;
    w->pool = pool;
    gg_stat_kern_init(&w->kern, gg_kern_cpu_detect());
    w->on_graph = s->on_graph;
    gguf_error_clear(&w->err);
    s->on_graph = (struct gguf_session_graph_callback){ on_graph, w };
    return list_weights(w, err);
}

void gg_collect_watch_set_target(struct gg_collect_watch *w,
                                 struct gguf_collect *c)
{
    w->c = c;
    for (size_t i = 0; i < w->n_weights; i++)
        w->weight[i].entry = NULL;
}

enum gguf_status gg_collect_unwatch(struct gg_collect_watch *w,
                                    struct gguf_error *err)
{
    if (!w)
        return GGUF_OK;
    const struct gguf_error why = w->err;
    w->s->on_graph = w->on_graph;
    const struct gg_sched_watch none = { NULL, NULL, NULL };
    enum gguf_status st = gg_sched_set_watch(w->s->sched, none, err);
    if (why.status != GGUF_OK) {
        st = why.status;
        if (err)
            *err = why;
    }
    gg_mem_free(w->c->allocator, w->weight);
    gg_mem_free(w->c->allocator, w->copy[0]);
    gg_mem_free(w->c->allocator, w->copy[1]);
    gg_mem_free(w->c->allocator, w);
    return st;
}

enum gguf_status gg_collect_states(struct gg_collect_watch *w,
                                   const float *states, size_t n,
                                   struct gguf_error *err)
{
    const struct gguf_tensor *m = w->s->model->top.w[GG_W_OUTPUT];
    const int64_t n_embd = w->s->model->hp.n_embd;
    struct weight *of = m && m->ne[0] == n_embd ? weight_of(w, m) : NULL;
    if (!of)
        return GGUF_OK;
    struct gguf_tensor x = {
        .ne = { n_embd, (int64_t)n, 1, 1 },
        .nb = { 4, 4 * n_embd, 4 * n_embd * (int64_t)n,
                4 * n_embd * (int64_t)n },
    };
    struct rows r = { .squares = w->kern.squares,
                      .x = &x,
                      .data = (const uint8_t *)states,
                      .n_real = (int64_t)n,
                      .m2 = 1,
                      .m3 = 1 };
    GG_TRY(entry_of(w, of, err));
    r.e = of->entry;
    /* no pass uses the entry */
    r.e->n_used = 0;
    r.sum = gg_collect_next_sums(w->c, r.e, err);
    gguf_pool_run(w->pool, (struct gguf_pool_callback){ add_columns, &r });
    return GGUF_OK;
}
