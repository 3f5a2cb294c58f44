/* SPDX-License-Identifier: MIT */
/* graph_split.c - runs of nodes on one backend, and the copies that they need
 *
 * A backend gets one copy of each tensor that it does not reach, before the
 * first split that reads it; later splits read it there. Only when a node has
 * written into the original's memory since, which is a cache then, is it copied
 * again.
 */
#include "config.h"
#include "sched/sched_int.h"

static bool is_view(const struct gguf_tensor *t)
{
    return gg_op_row(t->op)->flags & GG_OP_VIEW;
}

struct cut {
    struct gguf_sched *s;
    struct gg_sched_lane *l; /* the one that is filled */
    const struct gguf_graph *g;
    size_t n;                    /* tensors: nodes, then leaves */
    struct gguf_tensor **copies; /* n for each backend: that it has now, or
                                    NULL */
    size_t *passing;             /* copies that a node will make stale */
    size_t n_passing;
    bool *written; /* roots that a node writes into; element n stands for all
                      roots outside of the graph */
};

/* A root's place among those that may be written into. */
static size_t find_root(const struct cut *c, size_t place)
{
    const int32_t root = gg_sched_root(c->g, place);
    return root < 0 ? c->n : (size_t)root;
}

/* The shadow or copy, for the tensor at a place, that backend b reads. */
static struct gguf_tensor **copy_slot(const struct cut *c, int b,
                                      int32_t place)
{
    return &c->copies[(size_t)b * c->n + (size_t)place];
}

static void append_copy(struct cut *c, struct gguf_tensor *t,
                        const struct gguf_tensor *origin, int pool)
{
    size_t i = c->l->shadow->n_nodes;
    gg_graph_append(c->l->shadow, t);
    if (gg_ctx_failed(c->l->ctx))
        return;
    c->l->origin[i] = origin;
    c->s->node_pool[i] = pool;
}

/* The shadow graph's tensor for t, at that place of the caller's graph. */
static struct gguf_tensor *find_shadow(const struct cut *c,
                                       struct gguf_tensor *t, int32_t place)
{
    return place >= 0 && place < (int32_t)c->g->n_nodes ? c->l->shadows[place]
                                                        : t;
}

static int find_home(const struct cut *c, int32_t place)
{
    const int32_t root =
        place < 0 ? place : gg_sched_root(c->g, (size_t)place);
    return root < 0 ? GG_SCHED_NONE : c->s->backend_of[root];
}

/* Memory for a copy in the other lanes: leaves, so that nothing else ever
 * lies there. */
static void add_slots(struct cut *c, const struct gguf_tensor *y, int b)
{
    struct gguf_sched *s = c->s;
    for (unsigned k = 1; k < s->n_lanes; k++) {
        struct gg_tensor_storage proto =
            GG_TENSOR_STORAGE_INIT(proto, .dtype = y->dtype);
        memcpy(proto.t.ne, y->ne, sizeof y->ne);
        memcpy(proto.t.nb, y->nb, sizeof y->nb);
        struct gguf_tensor *t = gg_ctx_add_tensor(c->l->ctx, &proto.t);
        if (!t)
            return;
        t->flags = GGUF_TENSOR_OUTPUT;
        s->leaf_pool[c->l->shadow->n_leaves] = b;
        gg_graph_append(c->l->shadow, t);
        s->slots[(k - 1) * s->max_copies + s->n_copies] = t;
    }
}

/* A copy of x, at place i, for backend b; the layout stays, gaps of a
 * view included. */
static struct gguf_tensor *add_copy(struct cut *c, struct gguf_tensor *x,
                                    int32_t i, int b)
{
    struct gguf_sched *s = c->s;
    const struct gguf_tensor *root = x->view_src ? x->view_src : x;
    const struct gg_sched_copy how = {
        .early = i >= (int32_t)c->g->n_nodes &&
                 !c->written[find_root(c, (size_t)i)] &&
                 x->flags & GGUF_TENSOR_INPUT,
        .home = gg_sched_is_placed(s, root) ? GG_SCHED_NONE : find_home(c, i),
    };
    struct gg_tensor_storage proto = GG_TENSOR_STORAGE_INIT(
        proto, .dtype = x->dtype, .op = GGUF_OP_DUP, .n_src = 1);
    proto.src[0] = find_shadow(c, x, i);
    memcpy(proto.t.ne, x->ne, sizeof x->ne);
    memcpy(proto.t.nb, x->nb, sizeof x->nb);
    memcpy(proto.name, x->name, sizeof proto.name);
    memcpy(proto.op_params, &how, sizeof how);
    struct gguf_tensor *y = gg_ctx_add_tensor(c->l->ctx, &proto.t);
    if (!y)
        return NULL;
    if (how.early || s->n_lanes > 1)
        y->flags |= GG_TENSOR_EARLY;
    if (s->n_lanes > 1)
        y->flags |= GGUF_TENSOR_OUTPUT;
    append_copy(c, y, NULL, b);
    if (c->l == s->lanes) {
        add_slots(c, y, b);
        s->n_copies++;
    }
    return y;
}

/* Make the copies that node n needs on backend b. */
static void copy_sources(struct cut *c, size_t n, int b)
{
    int32_t sources[GGUF_TENSOR_SRC];
    const int n_src = gg_sched_sources(c->g, n, sources);
    for (int k = 0; k < n_src; k++) {
        struct gguf_tensor *x = c->g->nodes[n]->src[k];
        const int32_t i = sources[k];
        if (i < 0 || *copy_slot(c, b, i) ||
            gg_sched_reaches(c->s, b, x, find_home(c, i)))
            continue;
        struct gguf_tensor **y = copy_slot(c, b, i);
        *y = add_copy(c, x, i, b);
        if (!*y)
            return;
        if (c->written[find_root(c, (size_t)i)])
            c->passing[c->n_passing++] = (size_t)(y - c->copies);
    }
}

/* A node writes into that root: later readers need a new copy. */
static void drop_copies(struct cut *c, size_t root)
{
    for (size_t k = 0; k < c->n_passing;) {
        if (find_root(c, c->passing[k] % c->n) != root) {
            k++;
            continue;
        }
        c->copies[c->passing[k]] = NULL;
        c->passing[k] = c->passing[--c->n_passing];
    }
}

/* Does t write into the memory of its root? */
static bool writes_root(const struct gguf_tensor *t)
{
    return t->view_src && !is_view(t);
}

/* The shadow of node number i in a split of backend b. */
static void add_shadow(struct cut *c, size_t i, int b)
{
    struct gguf_sched *s = c->s;
    const struct gguf_tensor *t = c->g->nodes[i];
    int32_t sources[GGUF_TENSOR_SRC];
    struct gguf_tensor *y = gg_ctx_add_tensor(c->l->ctx, t);
    if (!y)
        return;
    const int n_src = gg_sched_sources(c->g, i, sources);
    for (int k = 0; k < n_src; k++) {
        struct gguf_tensor *copy =
            is_view(t) || sources[k] < 0 ? NULL : *copy_slot(c, b, sources[k]);
        if (t->src[k])
            gg_tensor_storage(y)->src[k] =
                copy ? copy : find_shadow(c, t->src[k], sources[k]);
    }
    if (t->view_src)
        y->view_src = find_shadow(c, t->view_src, gg_sched_root(c->g, i));
    if (t->view_src || !gg_sched_is_placed(s, t)) {
        y->data = NULL;
        y->buffer = NULL;
    }
    c->l->shadows[i] = y;
    append_copy(c, y, t, s->backend_of[i]);
    if (writes_root(t))
        drop_copies(c, find_root(c, i));
}

static struct gg_sched_split *begin_split(struct cut *c, size_t k, int backend)
{
    size_t at = c->l->shadow->n_nodes;
    c->l->splits[k] = (struct gg_sched_split){
        .backend = backend, .begin = at, .copies_end = at, .end = at
    };
    return &c->l->splits[k];
}

/* Nodes from begin on that stay in one split: its end. */
static size_t find_split_end(const struct gguf_sched *s,
                             const struct gguf_graph *g, size_t begin,
                             int *backend)
{
    size_t i = begin;
    *backend = GG_SCHED_NONE;
    for (; i < g->n_nodes; i++) {
        if (is_view(g->nodes[i]))
            continue;
        int b = s->backend_of[i];
        if (*backend == GG_SCHED_NONE)
            *backend = b;
        else if (b != *backend)
            break;
    }
    return i;
}

size_t gg_sched_count_splits(const struct gguf_sched *s,
                             const struct gguf_graph *g)
{
    size_t n = 0;
    int b;
    for (size_t begin = 0; begin < g->n_nodes; n++)
        begin = find_split_end(s, g, begin, &b);
    return n;
}

/* Is the source of view i in the shadow graph already? */
static bool has_source_shadow(const struct cut *c, size_t i)
{
    int32_t sources[GGUF_TENSOR_SRC];
    gg_sched_sources(c->g, i, sources);
    return find_shadow(c, c->g->nodes[i]->src[0], sources[0]) != NULL;
}

/* Nodes begin to end - 1 as a split. Copies are made before its first node.
 * Results of the split itself are reachable for it; views of earlier results
 * are not, and stand before the copies. */
static void add_split(struct cut *c, size_t k, size_t begin, size_t end, int b)
{
    const struct gguf_graph *g = c->g;
    struct gg_sched_split *split = begin_split(c, k, b);
    for (size_t i = begin; i < end; i++)
        if (is_view(g->nodes[i]) && has_source_shadow(c, i))
            add_shadow(c, i, b);
    for (size_t i = begin; i < end && !gg_ctx_failed(c->l->ctx); i++)
        if (!is_view(g->nodes[i]))
            copy_sources(c, i, b);
    split->copies_end = c->l->shadow->n_nodes;
    for (size_t i = begin; i < end && !gg_ctx_failed(c->l->ctx); i++)
        if (!c->l->shadows[i])
            add_shadow(c, i, b);
    split->end = c->l->shadow->n_nodes;
    const size_t n = split->end - split->copies_end;
    split->part = (struct gguf_graph){ .ctx = c->l->ctx,
                                       .generation = 1,
                                       .capacity = n,
                                       .n_nodes = n,
                                       .nodes = c->l->shadow->nodes +
                                                split->copies_end };
}

static void split_lane(struct cut *c)
{
    struct gguf_sched *s = c->s;
    const struct gguf_graph *g = c->g;
    size_t n_splits = 0;
    for (size_t i = 0; i < g->n_leaves; i++) {
        gg_graph_append(c->l->shadow, g->leaves[i]);
        s->leaf_pool[i] = s->backend_of[g->n_nodes + i];
    }
    for (size_t begin = 0, end; begin < g->n_nodes; begin = end) {
        int b;
        end = find_split_end(s, g, begin, &b);
        if (b == GG_SCHED_NONE) /* views alone */
            b = s->n_backends - 1;
        add_split(c, n_splits++, begin, end, b);
    }
    s->n_splits = n_splits;
}

static void find_written(struct cut *c)
{
    for (size_t i = 0; i < c->g->n_nodes; i++)
        if (writes_root(c->g->nodes[i]))
            c->written[find_root(c, i)] = true;
}

/* All of the caller's graph as one split of the only backend, in each lane. */
static void use_whole_graph(struct gguf_sched *s, const struct gguf_graph *g)
{
    s->n_splits = g->n_nodes > 0;
    for (unsigned k = 0; k < s->n_lanes; k++) {
        struct gg_sched_lane *l = &s->lanes[k];
        l->shadow = (struct gguf_graph *)(uintptr_t)g;
        l->splits[0] =
            (struct gg_sched_split){ .end = g->n_nodes, .part = *g };
    }
}

enum gguf_status gg_sched_split(struct gguf_sched *s,
                                const struct gguf_graph *g,
                                struct gguf_error *err)
{
    const size_t n = g->n_nodes + g->n_leaves;
    const size_t n_copies = n * (size_t)s->n_backends;
    enum gguf_status st = GGUF_OK;
    struct cut c = { .s = s, .g = g, .n = n };
    if (gg_sched_is_plain(s)) {
        use_whole_graph(s, g);
        return GGUF_OK;
    }
    s->n_splits = s->n_copies = 0;
    c.copies =
        gg_sched_array(s, GG_SCHED_CUT, n_copies, sizeof *c.copies, err);
    if (c.copies)
        c.passing = gg_sched_array(s, GG_SCHED_PASSING, s->max_copies,
                                   sizeof *c.passing, err);
    if (c.passing)
        c.written =
            gg_sched_array(s, GG_SCHED_WRITTEN, n + 1, sizeof *c.written, err);
    if (!c.written)
        return GGUF_E_NOMEM;
    find_written(&c);
    for (unsigned k = 0; st == GGUF_OK && k < s->n_lanes; k++) {
        c.l = &s->lanes[k];
        c.n_passing = 0;
        memset(c.copies, 0, n_copies * sizeof *c.copies);
        split_lane(&c);
        st = gguf_ctx_status(c.l->ctx, err);
    }
    return st;
}
