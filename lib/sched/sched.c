/* sched.c - the scheduler: planning, placing, running */
#include "config.h"
#include "sched/sched.h"

#include <stdarg.h>
#include <stdio.h>

enum gguf_status gguf_sched_create(struct gguf_sched **out,
                                   const struct gguf_sched_params *params,
                                   struct gguf_error *err)
{
    const struct gguf_buft *bufts[GGUF_SCHED_MAX_BACKENDS];
    *out = NULL;
    unsigned n = params->n_backends;
    if (params->struct_size != sizeof *params || n < 1 ||
        n > GGUF_SCHED_MAX_BACKENDS ||
        !gguf_buft_is_host(gguf_backend_buft(params->backends[n - 1])))
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "a scheduler of %u backends: 1 to %d, the last one of "
                       "host memory",
                       n, GGUF_SCHED_MAX_BACKENDS);
    struct gguf_sched *s = gg_alloc_zero(params->allocator, 1, sizeof *s);
    if (!s)
        return gg_fail_nomem(err, sizeof *s);
    s->allocator = params->allocator;
    s->n_backends = (int)n;
    for (unsigned i = 0; i < n; i++) {
        s->backends[i] = params->backends[i];
        bufts[i] = gguf_backend_buft(params->backends[i]);
    }
    enum gguf_status st =
        gguf_galloc_create_n(&s->galloc, s->allocator, bufts, n, err);
    if (st != GGUF_OK)
        gguf_sched_destroy(s);
    else
        *out = s;
    return st;
}

/* Forget the last graph; buffers and pins stay. */
static void forget(struct gguf_sched *s)
{
    gguf_ctx_destroy(s->ctx);
    gg_free(s->allocator, s->backend_of);
    gg_free(s->allocator, s->shadows);
    gg_free(s->allocator, (void *)s->origin);
    gg_free(s->allocator, s->node_pool);
    gg_free(s->allocator, s->leaf_pool);
    gg_free(s->allocator, s->splits);
    s->ctx = NULL;
    s->backend_of = s->node_pool = s->leaf_pool = NULL;
    s->shadows = NULL;
    s->origin = NULL;
    s->splits = NULL;
    s->shadow = NULL;
    s->graph = NULL;
    s->planned = NULL;
    s->n_splits = s->n_copies = 0;
}

void gguf_sched_destroy(struct gguf_sched *s)
{
    if (!s)
        return;
    forget(s);
    gguf_galloc_destroy(s->galloc);
    gg_free(s->allocator, s->pins);
    gg_free(s->allocator, s);
}

void gguf_sched_reset(struct gguf_sched *s)
{
    forget(s);
    s->n_pins = 0;
}

enum gguf_status gguf_sched_pin(struct gguf_sched *s,
                                const struct gguf_tensor *t, unsigned i,
                                struct gguf_error *err)
{
    if (i >= (unsigned)s->n_backends)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "backend %u of %d", i, s->n_backends);
    for (size_t k = 0; k < s->n_pins; k++)
        if (s->pins[k].t == t) {
            s->pins[k].backend = (int)i;
            return GGUF_OK;
        }
    size_t old = s->n_pins * sizeof *s->pins;
    struct gg_pin *p =
        gg_realloc(s->allocator, s->pins, old, old + sizeof *p);
    if (!p)
        return gg_fail_nomem(err, old + sizeof *p);
    s->pins = p;
    s->pins[s->n_pins++] = (struct gg_pin){ t, (int)i };
    return GGUF_OK;
}

void gguf_sched_set_eval(struct gguf_sched *s, gguf_sched_eval_fn *fn,
                         void *user)
{
    s->eval = fn;
    s->eval_user = user;
}

bool gg_sched_is_placed(const struct gguf_sched *s, const struct gguf_tensor *t)
{
    return t->buffer ? !gg_galloc_owns(s->galloc, t->buffer) : t->data != NULL;
}

/* --- planning ------------------------------------------------------------- */

/* Nodes of the shadow graph: each node, and a copy of each of its sources. */
static size_t most_nodes(const struct gguf_graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        n++;
        for (int k = 0; k < GGUF_TENSOR_SRC; k++)
            n += g->nodes[i]->src[k] != NULL;
    }
    return GG_MAX(n, g->n_leaves);
}

static enum gguf_status get_memory(struct gguf_sched *s,
                                   const struct gguf_graph *g,
                                   struct gguf_error *err)
{
    const struct gguf_allocator *a = s->allocator;
    const size_t n = most_nodes(g) + 1;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.allocator = a;
    p.no_alloc = true;
    p.mem_size = n * gguf_tensor_overhead() + gguf_graph_overhead(n) + 4096;
    s->n_tensors = g->n_nodes + g->n_leaves;
    s->backend_of = gg_alloc_zero(a, s->n_tensors, sizeof *s->backend_of);
    s->shadows = gg_alloc_zero(a, g->n_nodes, sizeof *s->shadows);
    s->origin = gg_alloc_zero(a, n, sizeof *s->origin);
    s->node_pool = gg_alloc_zero(a, n, sizeof *s->node_pool);
    s->leaf_pool = gg_alloc_zero(a, g->n_leaves, sizeof *s->leaf_pool);
    s->splits = gg_alloc_zero(a, g->n_nodes + 1, sizeof *s->splits);
    if (!s->backend_of || !s->shadows || !s->origin || !s->node_pool ||
        !s->leaf_pool || !s->splits)
        return gg_fail_nomem(err, n * sizeof *s->origin);
    GG_TRY(gguf_ctx_create(&s->ctx, &p, err));
    s->shadow = gguf_graph_create(s->ctx, n);
    return gguf_ctx_status(s->ctx, err);
}

static enum gguf_status plan(struct gguf_sched *s, const struct gguf_graph *g,
                             struct gguf_error *err)
{
    forget(s);
    enum gguf_status st = get_memory(s, g, err);
    if (st == GGUF_OK)
        st = gg_sched_assign(s, g, err);
    if (st == GGUF_OK)
        st = gg_sched_split(s, g, err);
    if (st != GGUF_OK)
        forget(s);
    else
        s->planned = g;
    return st;
}

enum gguf_status gguf_sched_reserve(struct gguf_sched *s,
                                    const struct gguf_graph *graph,
                                    struct gguf_error *err)
{
    GG_TRY(plan(s, graph, err));
    return gguf_galloc_reserve_n(s->galloc, s->shadow, s->node_pool,
                                 s->leaf_pool, err);
}

enum gguf_status gguf_sched_alloc(struct gguf_sched *s,
                                  struct gguf_graph *graph,
                                  struct gguf_error *err)
{
    GG_TRY(plan(s, graph, err));
    GG_TRY(gg_galloc_alloc_n(s->galloc, s->shadow, s->node_pool, s->leaf_pool,
                             err));
    for (size_t i = 0; i < graph->n_nodes; i++) {
        graph->nodes[i]->data = s->shadows[i]->data;
        graph->nodes[i]->buffer = s->shadows[i]->buffer;
        graph->nodes[i]->extra = s->shadows[i]->extra;
    }
    s->graph = graph;
    return GGUF_OK;
}

/* --- running -------------------------------------------------------------- */

/* Nodes begin to end - 1 of the shadow graph on a backend. */
static enum gguf_status run_nodes(struct gguf_sched *s, int backend,
                                  size_t begin, size_t end,
                                  struct gguf_error *err)
{
    struct gguf_graph part = { .ctx = s->ctx,
                               .capacity = end - begin,
                               .n_nodes = end - begin,
                               .nodes = s->shadow->nodes + begin };
    if (begin == end)
        return GGUF_OK;
    GG_TRY(gguf_backend_compute(s->backends[backend], &part, err));
    return gguf_backend_sync(s->backends[backend], err);
}

static struct gguf_tensor *callers(const struct gguf_sched *s, size_t i)
{
    return (struct gguf_tensor *)s->origin[i];
}

/* Up to each node that the callback wants, then the callback. */
static enum gguf_status run_asking(struct gguf_sched *s,
                                   const struct gg_split *split,
                                   struct gguf_error *err)
{
    for (size_t i = split->copies_end; i < split->end;) {
        size_t end = i;
        bool wanted = false;
        while (end < split->end && !wanted)
            wanted = s->eval(s->eval_user, callers(s, end++), false) != 0;
        GG_TRY(run_nodes(s, split->backend, i, end, err));
        if (wanted && !s->eval(s->eval_user, callers(s, end - 1), true))
            return gg_fail(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                           "stopped by the evaluation callback");
        i = end;
    }
    return GGUF_OK;
}

static enum gguf_status run_split(struct gguf_sched *s,
                                  const struct gg_split *split,
                                  struct gguf_error *err)
{
    for (size_t i = split->begin; i < split->copies_end; i++) {
        struct gguf_tensor *t = s->shadow->nodes[i];
        if (!s->origin[i])
            GG_TRY(gguf_tensor_copy(t->src[0], t, err));
    }
    if (s->eval)
        return run_asking(s, split, err);
    return run_nodes(s, split->backend, split->copies_end, split->end, err);
}

enum gguf_status gguf_sched_compute(struct gguf_sched *s,
                                    struct gguf_graph *graph,
                                    struct gguf_error *err)
{
    if (s->graph != graph)
        GG_TRY(gguf_sched_alloc(s, graph, err));
    for (size_t i = 0; i < s->n_splits; i++)
        GG_TRY(run_split(s, &s->splits[i], err));
    return GGUF_OK;
}

/* --- asking --------------------------------------------------------------- */

size_t gguf_sched_n_splits(const struct gguf_sched *s)
{
    return s->n_splits;
}

size_t gguf_sched_n_copies(const struct gguf_sched *s)
{
    return s->n_copies;
}

int gguf_sched_backend_of(const struct gguf_sched *s,
                          const struct gguf_tensor *t)
{
    int64_t i = s->planned ? gg_sched_index(s->planned, t) : GG_SCHED_NONE;
    return i < 0 ? GG_SCHED_NONE : s->backend_of[i];
}

size_t gguf_sched_size(const struct gguf_sched *s, unsigned i)
{
    return gguf_galloc_size(s->galloc, i);
}

static bool put(gguf_write_fn *write, void *user, const char *fmt, ...)
    GG_PRINTF(3, 4);
static bool put(gguf_write_fn *write, void *user, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return n >= 0 &&
           !write(user, text, GG_MIN((size_t)n, sizeof text - 1));
}

enum gguf_status gguf_sched_dump(const struct gguf_sched *s,
                                 gguf_write_fn *write, void *user,
                                 struct gguf_error *err)
{
    bool on = true;
    for (size_t k = 0; on && k < s->n_splits; k++) {
        const struct gg_split *p = &s->splits[k];
        on = put(write, user, "split %zu: %s, %zu nodes\n", k,
                 gguf_backend_name(s->backends[p->backend]),
                 p->end - p->copies_end);
        for (size_t i = p->begin; on && i < p->end; i++) {
            const struct gguf_tensor *t = s->shadow->nodes[i];
            char name[160];
            on = put(write, user, "  %s %s\n",
                     s->origin[i] ? gguf_op_name(t->op) : "copy",
                     gguf_tensor_format(t, name, sizeof name));
        }
    }
    if (!on)
        return gg_fail(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                       "the dump of a schedule was stopped");
    return GGUF_OK;
}
