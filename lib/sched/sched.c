/* sched.c - the scheduler: planning and placing */
#include "config.h"
#include "sched/sched.h"

#include <xxhash.h>

/* --- create, destroy ------------------------------------------------------ */

static bool shares(const struct gguf_sched *s, int a, int b)
{
    return gguf_backend_supports_buft(s->backends[b],
                                      gguf_backend_buft(s->backends[a]));
}

static void find_apart(struct gguf_sched *s)
{
    const uint32_t both = GGUF_DEVICE_ASYNC | GGUF_DEVICE_EVENTS;
    for (int a = 0; a < s->n_backends; a++) {
        struct gguf_device *d = gguf_backend_device(s->backends[a]);
        s->apart[a] = (gguf_device_caps(d) & both) == both;
        for (int b = 0; b < s->n_backends; b++)
            s->apart[a] = s->apart[a] && (a == b || !shares(s, a, b));
    }
}

static enum gguf_status make_events(struct gguf_sched *s,
                                    struct gguf_error *err)
{
    for (int b = 0; b < s->n_backends; b++) {
        struct gguf_device *d = gguf_backend_device(s->backends[b]);
        if (!(gguf_device_caps(d) & GGUF_DEVICE_EVENTS))
            continue;
        GG_TRY(gguf_event_create(&s->done[b], d, s->allocator, err));
        for (unsigned i = 0; s->n_lanes > 1 && i < s->n_lanes; i++)
            GG_TRY(gguf_event_create(&s->lanes[i].used[b], d, s->allocator,
                                     err));
    }
    return GGUF_OK;
}

enum gguf_status gguf_sched_create(struct gguf_sched **out,
                                   const struct gguf_sched_params *params,
                                   struct gguf_error *err)
{
    const struct gguf_buft *bufts[GGUF_SCHED_MAX_BACKENDS];
    *out = NULL;
    unsigned n = params->n_backends;
    if (params->struct_size != sizeof *params || n < 1 ||
        n > GGUF_SCHED_MAX_BACKENDS || params->n_copies < 1 ||
        params->n_copies > GGUF_SCHED_MAX_COPIES ||
        !gguf_buft_is_host(gguf_backend_buft(params->backends[n - 1])))
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "a scheduler of %u backends, %u copies: 1 to %d, the "
                       "last one of host memory, and 1 to %d",
                       n, params->n_copies, GGUF_SCHED_MAX_BACKENDS,
                       GGUF_SCHED_MAX_COPIES);
    struct gguf_sched *s = gg_alloc_zero(params->allocator, 1, sizeof *s);
    if (!s)
        return gg_fail_nomem(err, sizeof *s);
    s->allocator = params->allocator;
    s->n_backends = (int)n;
    s->n_lanes = params->n_copies;
    for (unsigned i = 0; i < n; i++) {
        s->backends[i] = params->backends[i];
        bufts[i] = params->measure ? gg_measure_buft()
                                   : gguf_backend_buft(params->backends[i]);
    }
    find_apart(s);
    enum gguf_status st = GGUF_OK;
    s->borrows = params->memory_of != NULL;
    if (s->borrows)
        s->galloc = params->memory_of->galloc;
    else
        st = gguf_galloc_create_n(&s->galloc, s->allocator, bufts, n, err);
    if (st == GGUF_OK)
        st = make_events(s, err);
    if (st != GGUF_OK)
        gguf_sched_destroy(s);
    else
        *out = s;
    return st;
}

static void drop_plans(struct gg_lane *l, size_t n_splits)
{
    for (size_t i = 0; i < n_splits && l->splits; i++) {
        gguf_plan_destroy(l->splits[i].plan);
        l->splits[i].plan = NULL;
    }
}

/* Forget the last graph; buffers and pins stay. */
static void forget(struct gguf_sched *s)
{
    const struct gguf_allocator *a = s->allocator;
    gguf_sched_sync(s, NULL);
    for (unsigned i = 0; i < s->n_lanes; i++) {
        struct gg_lane *l = &s->lanes[i];
        drop_plans(l, s->n_splits);
        gguf_ctx_destroy(l->ctx);
        gg_free(a, l->shadows);
        gg_free(a, (void *)l->origin);
        gg_free(a, l->splits);
        l->ctx = NULL;
        l->shadow = NULL;
        l->shadows = NULL;
        l->origin = NULL;
        l->splits = NULL;
    }
    gg_free(a, s->backend_of);
    gg_free(a, s->slots);
    gg_free(a, s->node_pool);
    gg_free(a, s->leaf_pool);
    s->backend_of = s->node_pool = s->leaf_pool = NULL;
    s->slots = NULL;
    s->graph = NULL;
    s->planned = NULL;
    s->n_splits = s->n_copies = 0;
}

void gguf_sched_destroy(struct gguf_sched *s)
{
    if (!s)
        return;
    forget(s);
    for (int b = 0; b < s->n_backends; b++) {
        gguf_event_destroy(s->done[b]);
        for (unsigned i = 0; i < s->n_lanes; i++)
            gguf_event_destroy(s->lanes[i].used[b]);
    }
    if (!s->borrows)
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

int gg_sched_pinned(const struct gguf_sched *s, const struct gguf_tensor *t)
{
    for (size_t i = 0; i < s->n_pins; i++)
        if (s->pins[i].t == t)
            return s->pins[i].backend;
    return GG_SCHED_NONE;
}

/* --- whether a graph is like the last one --------------------------------- */

/* What assignments and splits depend on, of one tensor. */
struct traits {
    int64_t ne[GGUF_TENSOR_DIMS], nb[GGUF_TENSOR_DIMS];
    uint64_t view_off, where;
    uint32_t op, dtype, flags, usage;
    int32_t params[GGUF_TENSOR_PARAMS / sizeof(int32_t)];
    int32_t src[GGUF_TENSOR_SRC], root, pin;
};

static struct gguf_tensor *tensor_at(const struct gguf_graph *g, size_t i)
{
    return i < g->n_nodes ? g->nodes[i] : g->leaves[i - g->n_nodes];
}

static int32_t number(const struct gguf_graph *g, const struct gguf_tensor *t)
{
    return t ? (int32_t)gg_sched_index(g, t) : GG_SCHED_NONE - 1;
}

static void traits_of(const struct gguf_sched *s, const struct gguf_graph *g,
                      const struct gguf_tensor *t, struct traits *x)
{
    memset(x, 0, sizeof *x); /* padding too */
    memcpy(x->ne, t->ne, sizeof x->ne);
    memcpy(x->nb, t->nb, sizeof x->nb);
    memcpy(x->params, t->op_params, sizeof x->params);
    x->op = t->op;
    x->dtype = t->dtype;
    x->flags = t->flags;
    x->view_off = t->view_off;
    x->pin = gg_sched_pinned(s, t);
    x->root = number(g, t->view_src);
    for (int i = 0; i < GGUF_TENSOR_SRC; i++)
        x->src[i] = number(g, t->src[i]);
    const struct gguf_tensor *r = t->view_src ? t->view_src : t;
    if (!gg_sched_is_placed(s, r))
        return;
    x->where = (uintptr_t)gguf_host_buft();
    if (r->buffer) {
        x->where = (uintptr_t)gguf_buffer_buft(r->buffer);
        x->usage = (uint32_t)gguf_buffer_usage(r->buffer);
    }
}

static uint64_t structure_of(const struct gguf_sched *s,
                             const struct gguf_graph *g)
{
    uint64_t h = g->n_nodes;
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++) {
        struct traits x;
        traits_of(s, g, tensor_at(g, i), &x);
        h = XXH3_64bits_withSeed(&x, sizeof x, h);
    }
    return h;
}

/* Which tensors these are, and where those lie that were placed. */
static uint64_t tensors_of(const struct gguf_sched *s,
                           const struct gguf_graph *g)
{
    uint64_t h = 0;
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++) {
        const struct gguf_tensor *t = tensor_at(g, i);
        const void *v[3] = { t, NULL, NULL };
        if (gg_sched_is_placed(s, t)) {
            v[1] = t->data;
            v[2] = t->buffer;
        }
        h = XXH3_64bits_withSeed(v, sizeof v, h);
    }
    return h;
}

/* --- planning ------------------------------------------------------------- */

/* At most so many copies: of each source that its reader does not reach. */
static size_t most_copies(const struct gguf_sched *s,
                          const struct gguf_graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < GGUF_TENSOR_SRC; k++) {
            const struct gguf_tensor *x = g->nodes[i]->src[k];
            if (!x)
                continue;
            int64_t home = gg_sched_index(g, x->view_src ? x->view_src : x);
            n += !gg_sched_reaches(s, s->backend_of[i], x,
                                   home < 0 ? GG_SCHED_NONE
                                            : s->backend_of[home]);
        }
    return n;
}

static enum gguf_status get_lane(struct gguf_sched *s, struct gg_lane *l,
                                 const struct gguf_graph *g, size_t n_copies,
                                 size_t n_slots, struct gguf_error *err)
{
    const struct gguf_allocator *a = s->allocator;
    const size_t n = g->n_nodes + n_copies;
    const size_t n_splits = gg_sched_is_plain(s) ? 1 : g->n_nodes + 1;
    const size_t capacity = GG_MAX(n, g->n_leaves + n_slots) + 1;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.allocator = a;
    p.no_alloc = true;
    p.mem_size = (n + n_slots) * gguf_tensor_overhead() +
                 gguf_graph_overhead(capacity) + 4096;
    l->splits = gg_alloc_zero(a, n_splits, sizeof *l->splits);
    if (!l->splits)
        return gg_fail_nomem(err, n_splits * sizeof *l->splits);
    if (gg_sched_is_plain(s))
        return GGUF_OK;
    l->shadows = gg_alloc_zero(a, g->n_nodes, sizeof *l->shadows);
    l->origin = gg_alloc_zero(a, n, sizeof *l->origin);
    if (!l->shadows || !l->origin)
        return gg_fail_nomem(err, n * sizeof *l->origin);
    GG_TRY(gguf_ctx_create(&l->ctx, &p, err));
    l->shadow = gguf_graph_create(l->ctx, capacity);
    return gguf_ctx_status(l->ctx, err);
}

static enum gguf_status get_memory(struct gguf_sched *s,
                                   const struct gguf_graph *g,
                                   struct gguf_error *err)
{
    const struct gguf_allocator *a = s->allocator;
    const size_t n_copies = most_copies(s, g);
    const size_t n_slots = (s->n_lanes - 1) * n_copies;
    const size_t n = g->n_nodes + n_copies, n_leaves = g->n_leaves + n_slots;
    s->max_copies = n_copies;
    s->node_pool = gg_alloc_zero(a, n, sizeof *s->node_pool);
    s->leaf_pool = gg_alloc_zero(a, n_leaves, sizeof *s->leaf_pool);
    s->slots = gg_alloc_zero(a, n_slots, sizeof *s->slots);
    if (!s->node_pool || !s->leaf_pool || !s->slots)
        return gg_fail_nomem(err, n * sizeof *s->node_pool);
    for (unsigned i = 0; i < s->n_lanes; i++)
        GG_TRY(get_lane(s, &s->lanes[i], g, n_copies, i ? 0 : n_slots, err));
    return GGUF_OK;
}

/* Shadows of another graph of the same structure. */
static void clear_lanes(struct gguf_sched *s, const struct gguf_graph *g)
{
    for (unsigned i = 0; i < s->n_lanes; i++) {
        struct gg_lane *l = &s->lanes[i];
        drop_plans(l, s->n_splits);
        if (gg_sched_is_plain(s))
            continue;
        const size_t capacity = gguf_graph_capacity(l->shadow);
        memset(l->shadows, 0, g->n_nodes * sizeof *l->shadows);
        gguf_ctx_reset(l->ctx);
        l->shadow = gguf_graph_create(l->ctx, capacity);
    }
}

static enum gguf_status assign(struct gguf_sched *s, const struct gguf_graph *g,
                               struct gguf_error *err)
{
    const size_t n = g->n_nodes + g->n_leaves;
    forget(s);
    s->backend_of = gg_alloc_zero(s->allocator, n, sizeof *s->backend_of);
    if (!s->backend_of)
        return gg_fail_nomem(err, n * sizeof *s->backend_of);
    GG_TRY(gg_sched_assign(s, g, err));
    s->n_plans++;
    return get_memory(s, g, err);
}

static enum gguf_status plan(struct gguf_sched *s, const struct gguf_graph *g,
                             struct gguf_error *err)
{
    const uint64_t structure = structure_of(s, g), tensors = tensors_of(s, g);
    const bool like = s->planned && structure == s->structure;
    const bool same = like && tensors == s->tensors &&
                      (g == s->planned || !gg_sched_is_plain(s));
    enum gguf_status st = GGUF_OK;
    gguf_sched_sync(s, NULL); /* its failure is not this graph's */
    if (!like)
        st = assign(s, g, err);
    else if (!same)
        clear_lanes(s, g);
    if (st == GGUF_OK && !same)
        st = gg_sched_split(s, g, err);
    if (st != GGUF_OK) {
        forget(s);
        return st;
    }
    s->planned = g;
    s->structure = structure;
    s->tensors = tensors;
    s->lane = 0;
    return GGUF_OK;
}

enum gguf_status gguf_sched_reserve(struct gguf_sched *s,
                                    const struct gguf_graph *graph,
                                    struct gguf_error *err)
{
    GG_TRY(plan(s, graph, err));
    s->graph = NULL;
    return gguf_galloc_reserve_n(s->galloc, s->lanes[0].shadow, s->node_pool,
                                 s->leaf_pool, err);
}

static void take_place(struct gguf_tensor *t, const struct gguf_tensor *from)
{
    t->data = from->data;
    t->buffer = from->buffer;
    t->extra = from->extra;
}

enum gguf_status gguf_sched_alloc(struct gguf_sched *s,
                                  struct gguf_graph *graph,
                                  struct gguf_error *err)
{
    const struct gg_lane *first = &s->lanes[0];
    GG_TRY(plan(s, graph, err));
    s->graph = NULL;
    GG_TRY(gg_galloc_alloc_n(s->galloc, first->shadow, s->node_pool,
                             s->leaf_pool, err));
    for (size_t i = 0; first->shadows && i < graph->n_nodes; i++)
        take_place(graph->nodes[i], first->shadows[i]);
    for (unsigned k = 1; first->shadows && k < s->n_lanes; k++) {
        struct gguf_graph *g = s->lanes[k].shadow;
        struct gguf_tensor **slot = s->slots + (k - 1) * s->max_copies;
        for (size_t i = 0; i < g->n_nodes; i++)
            take_place(g->nodes[i], s->lanes[k].origin[i]
                                        ? first->shadow->nodes[i]
                                        : *slot++);
    }
    s->graph = graph;
    s->n_moves = gg_galloc_n_moves(s->galloc);
    return GGUF_OK;
}

bool gg_sched_is_stale(const struct gguf_sched *s)
{
    return s->n_moves != gg_galloc_n_moves(s->galloc);
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

unsigned gguf_sched_n_plans(const struct gguf_sched *s)
{
    return s->n_plans;
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
