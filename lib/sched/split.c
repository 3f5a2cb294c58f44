/* split.c - runs of nodes on one backend, and the copies that they need */
#include "config.h"
#include "sched/sched.h"

struct cut {
    struct gguf_sched *s;
    const struct gguf_graph *g;
    struct gguf_tensor **copies; /* of each tensor for this split, or NULL */
    size_t *copied;              /* which entries are set */
    size_t n_copied;
};

static void append(struct gguf_sched *s, struct gguf_tensor *t,
                   const struct gguf_tensor *origin, int pool)
{
    size_t i = s->shadow->n_nodes;
    gg_graph_append(s->shadow, t);
    if (gg_ctx_failed(s->ctx))
        return;
    s->origin[i] = origin;
    s->node_pool[i] = pool;
}

/* What stands for t in the shadow graph. */
static struct gguf_tensor *stand_in(const struct cut *c,
                                    struct gguf_tensor *t)
{
    int64_t i = gg_sched_index(c->g, t);
    return i >= 0 && i < (int64_t)c->g->n_nodes ? c->s->shadows[i] : t;
}

static int home_of(const struct cut *c, const struct gguf_tensor *t)
{
    int64_t i = gg_sched_index(c->g, t->view_src ? t->view_src : t);
    return i < 0 ? GG_SCHED_NONE : c->s->backend_of[i];
}

/* Make the copies that node t needs on backend b. */
static void copy_sources(struct cut *c, const struct gguf_tensor *t, int b)
{
    struct gguf_sched *s = c->s;
    for (int k = 0; k < GGUF_TENSOR_SRC; k++) {
        struct gguf_tensor *x = t->src[k];
        if (!x || gg_sched_reaches(s, b, x, home_of(c, x)))
            continue;
        int64_t i = gg_sched_index(c->g, x);
        if (i < 0 || c->copies[i])
            continue;
        /* the layout stays, gaps of a view included */
        struct gguf_tensor proto = { .dtype = x->dtype,
                                     .op = GGUF_OP_DUP,
                                     .src = { stand_in(c, x) } };
        memcpy(proto.ne, x->ne, sizeof proto.ne);
        memcpy(proto.nb, x->nb, sizeof proto.nb);
        memcpy(proto.name, x->name, sizeof proto.name);
        struct gguf_tensor *y = gg_ctx_tensor(s->ctx, &proto);
        if (!y)
            return;
        append(s, y, NULL, b);
        s->n_copies++;
        c->copies[i] = y;
        c->copied[c->n_copied++] = (size_t)i;
    }
}

/* The shadow of node number i. */
static void add_shadow(struct cut *c, size_t i)
{
    struct gguf_sched *s = c->s;
    const struct gguf_tensor *t = c->g->nodes[i];
    struct gguf_tensor proto = *t;
    bool view = gg_op_row(t->op)->flags & GG_OP_VIEW;
    for (int k = 0; k < GGUF_TENSOR_SRC; k++) {
        int64_t j = t->src[k] ? gg_sched_index(c->g, t->src[k]) : -1;
        if (!t->src[k])
            continue;
        proto.src[k] = !view && j >= 0 && c->copies[j]
                           ? c->copies[j]
                           : stand_in(c, t->src[k]);
    }
    if (t->view_src)
        proto.view_src = stand_in(c, t->view_src);
    if (t->view_src || !gg_sched_is_placed(s, t)) {
        proto.data = NULL;
        proto.buffer = NULL;
    }
    struct gguf_tensor *y = gg_ctx_tensor(s->ctx, &proto);
    if (!y)
        return;
    s->shadows[i] = y;
    append(s, y, t, s->backend_of[i]);
}

static void begin_split(struct cut *c, int backend)
{
    struct gguf_sched *s = c->s;
    while (c->n_copied)
        c->copies[c->copied[--c->n_copied]] = NULL;
    size_t at = s->shadow->n_nodes;
    s->splits[s->n_splits++] = (struct gg_split){ backend, at, at, at };
}

/* Nodes from begin on that stay in one split: its end. */
static size_t split_end(const struct cut *c, size_t begin, int *backend)
{
    size_t i = begin;
    *backend = GG_SCHED_NONE;
    for (; i < c->g->n_nodes; i++) {
        if (gg_op_row(c->g->nodes[i]->op)->flags & GG_OP_VIEW)
            continue;
        int b = c->s->backend_of[i];
        if (*backend == GG_SCHED_NONE)
            *backend = b;
        else if (b != *backend)
            break;
    }
    return i;
}

static void cut_all(struct cut *c)
{
    struct gguf_sched *s = c->s;
    const struct gguf_graph *g = c->g;
    for (size_t i = 0; i < g->n_leaves; i++) {
        gg_graph_append(s->shadow, g->leaves[i]);
        s->leaf_pool[i] = s->backend_of[g->n_nodes + i];
    }
    for (size_t begin = 0, end; begin < g->n_nodes; begin = end) {
        int b;
        end = split_end(c, begin, &b);
        /* Copies are made before the split's first node. What the split itself
         * makes is reachable for it; views of what was there before are not,
         * and stand before the copies. */
        begin_split(c, b == GG_SCHED_NONE ? s->n_backends - 1 : b);
        struct gg_split *split = &s->splits[s->n_splits - 1];
        for (size_t i = begin; i < end; i++)
            if (gg_op_row(g->nodes[i]->op)->flags & GG_OP_VIEW &&
                stand_in(c, g->nodes[i]->src[0]))
                add_shadow(c, i);
        for (size_t i = begin; i < end && !gg_ctx_failed(s->ctx); i++)
            if (!(gg_op_row(g->nodes[i]->op)->flags & GG_OP_VIEW))
                copy_sources(c, g->nodes[i], b);
        split->copies_end = s->shadow->n_nodes;
        for (size_t i = begin; i < end && !gg_ctx_failed(s->ctx); i++)
            if (!s->shadows[i])
                add_shadow(c, i);
        split->end = s->shadow->n_nodes;
    }
}

enum gguf_status gg_sched_split(struct gguf_sched *s,
                                const struct gguf_graph *g,
                                struct gguf_error *err)
{
    const size_t n = g->n_nodes + g->n_leaves;
    struct cut c = { .s = s, .g = g };
    c.copies = gg_alloc_zero(s->allocator, n, sizeof *c.copies);
    c.copied = gg_alloc_zero(s->allocator, n, sizeof *c.copied);
    enum gguf_status st = GGUF_OK;
    s->n_splits = s->n_copies = 0;
    if (!c.copies || !c.copied) {
        st = gg_fail_nomem(err, n * sizeof *c.copies);
    } else {
        cut_all(&c);
        st = gguf_ctx_status(s->ctx, err);
    }
    gg_free(s->allocator, c.copied);
    gg_free(s->allocator, c.copies);
    return st;
}
