/* assign.c - which backend computes which node
 *
 *   1  what is certain: pins, memory that is there, weights, inputs
 *   2  spread from there to neighbours, down and up the list of nodes, first
 *      the preferred backends, then the last one
 *   3  move nodes to a better backend that reaches all they need; what has
 *      none gets the one that reaches most of its sources
 *   4  sources without a backend take that of a node that reads them, views
 *      that of their root
 */
#include "config.h"
#include "sched/sched.h"

static bool is_view(const struct gguf_tensor *t)
{
    return gg_op_row(t->op)->flags & GG_OP_VIEW;
}

static bool supports(const struct gguf_sched *s, int b,
                     const struct gguf_tensor *t)
{
    return gguf_backend_supports_op(s->backends[b], t);
}

int64_t gg_sched_index(const struct gguf_graph *g,
                       const struct gguf_tensor *t)
{
    uint32_t k = gg_graph_number(g, t);
    if (k == GG_GRAPH_NONE)
        return GG_SCHED_NONE;
    return (int64_t)(k & 1 ? g->n_nodes + k / 2 : k / 2);
}

static int backend_of(const struct gguf_sched *s, const struct gguf_graph *g,
                      const struct gguf_tensor *t)
{
    int64_t i = gg_sched_index(g, t);
    return i < 0 ? GG_SCHED_NONE : s->backend_of[i];
}

bool gg_sched_reaches(const struct gguf_sched *s, int backend,
                      const struct gguf_tensor *t, int home)
{
    const struct gguf_device *d = gguf_backend_device(s->backends[backend]);
    if (t->view_src)
        t = t->view_src;
    if (gg_sched_is_placed(s, t))
        return gguf_device_supports_buft(
            d, t->buffer ? gguf_buffer_buft(t->buffer) : gguf_host_buft());
    return home == GG_SCHED_NONE ||
           gguf_device_supports_buft(d, gguf_backend_buft(s->backends[home]));
}

/* A node that writes into memory of its root must run where that is. */
static bool may_run(const struct gguf_sched *s, const struct gguf_graph *g,
                    int b, const struct gguf_tensor *t)
{
    if (!supports(s, b, t))
        return false;
    if (!gg_sched_is_placed(s, t) && !t->view_src)
        return true;
    const struct gguf_tensor *root = t->view_src ? t->view_src : t;
    return gg_sched_reaches(s, b, root, backend_of(s, g, root));
}

/* --- 1: what is certain --------------------------------------------------- */

/* The first backend that can reach t's memory, and compute node n there. */
static int first_that_reaches(const struct gguf_sched *s,
                              const struct gguf_tensor *t,
                              const struct gguf_tensor *n)
{
    for (int b = 0; b < s->n_backends; b++)
        if (gg_sched_reaches(s, b, t, GG_SCHED_NONE) && supports(s, b, n))
            return b;
    return GG_SCHED_NONE;
}

static bool is_weight(const struct gguf_sched *s, const struct gguf_tensor *t)
{
    const struct gguf_tensor *root = t->view_src ? t->view_src : t;
    return gg_sched_is_placed(s, root) && root->buffer &&
           gguf_buffer_usage(root->buffer) == GGUF_USAGE_WEIGHTS;
}

static int from_weights(const struct gguf_sched *s,
                        const struct gguf_tensor *t)
{
    for (int i = 0; i < GGUF_TENSOR_SRC; i++) {
        if (!t->src[i] || !is_weight(s, t->src[i]))
            continue;
        int home = first_that_reaches(s, t->src[i], t);
        /* a better one may want it although it must copy the weights */
        for (int b = 0; b < home; b++)
            if (supports(s, b, t) &&
                gguf_device_offloads_op(gguf_backend_device(s->backends[b]),
                                        t))
                return b;
        if (home != GG_SCHED_NONE)
            return home;
    }
    return GG_SCHED_NONE;
}

static int certain(const struct gguf_sched *s, const struct gguf_tensor *t)
{
    int b = gg_sched_pinned(s, t);
    const struct gguf_tensor *root = t->view_src ? t->view_src : t;
    if (b != GG_SCHED_NONE)
        return b;
    if (gg_sched_is_placed(s, root))
        return first_that_reaches(s, root, t);
    if (t->flags & GGUF_TENSOR_INPUT)
        return s->n_backends - 1;
    return t->op == GGUF_OP_NONE ? GG_SCHED_NONE : from_weights(s, t);
}

/* --- 2: spreading --------------------------------------------------------- */

static void spread(struct gguf_sched *s, const struct gguf_graph *g, bool down,
                   bool with_last)
{
    int cur = GG_SCHED_NONE;
    for (size_t k = 0; k < g->n_nodes; k++) {
        size_t i = down ? k : g->n_nodes - 1 - k;
        const struct gguf_tensor *t = g->nodes[i];
        int *b = &s->backend_of[i];
        if (is_view(t))
            continue;
        if (*b != GG_SCHED_NONE)
            cur = *b == s->n_backends - 1 && !with_last ? GG_SCHED_NONE : *b;
        else if (cur != GG_SCHED_NONE && may_run(s, g, cur, t))
            *b = cur;
    }
}

/* --- 3: improving --------------------------------------------------------- */

static int n_reached(const struct gguf_sched *s, const struct gguf_graph *g,
                     int b, const struct gguf_tensor *t, int *n_src)
{
    int n = 0;
    *n_src = 0;
    for (int i = 0; i < GGUF_TENSOR_SRC; i++) {
        if (!t->src[i])
            continue;
        ++*n_src;
        const struct gguf_tensor *r = t->src[i]->view_src;
        n += gg_sched_reaches(s, b, t->src[i],
                              backend_of(s, g, r ? r : t->src[i]));
    }
    return n;
}

static void improve(struct gguf_sched *s, const struct gguf_graph *g, size_t i)
{
    const struct gguf_tensor *t = g->nodes[i];
    int *b = &s->backend_of[i], n_src, most = -1;
    if (*b == GG_SCHED_NONE) {
        for (int k = 0; k < s->n_backends; k++) {
            int n = may_run(s, g, k, t) ? n_reached(s, g, k, t, &n_src) : -1;
            if (n > most) {
                most = n;
                *b = k;
            }
        }
        return;
    }
    /* only where nothing has to be copied in or out for it */
    for (int k = 0; k < *b && gg_sched_pinned(s, t) == GG_SCHED_NONE; k++)
        if (gguf_backend_buft(s->backends[k]) ==
                gguf_backend_buft(s->backends[*b]) &&
            may_run(s, g, k, t) && n_reached(s, g, k, t, &n_src) == n_src) {
            *b = k;
            return;
        }
}

/* --- 4: the rest ---------------------------------------------------------- */

static void settle_source(struct gguf_sched *s, const struct gguf_graph *g,
                          const struct gguf_tensor *t, int reader)
{
    int64_t i = gg_sched_index(g, t);
    if (i >= 0 && s->backend_of[i] == GG_SCHED_NONE)
        s->backend_of[i] = reader;
}

/* Views are where their root is, whoever made them. */
static void settle_views(struct gguf_sched *s, const struct gguf_graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct gguf_tensor *t = g->nodes[i];
        if (!is_view(t) || !t->view_src)
            continue;
        int b = backend_of(s, g, t->view_src);
        s->backend_of[i] = b == GG_SCHED_NONE ? s->n_backends - 1 : b;
    }
}

enum gguf_status gg_sched_assign(struct gguf_sched *s,
                                 const struct gguf_graph *g,
                                 struct gguf_error *err)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        s->backend_of[i] =
            is_view(g->nodes[i]) ? GG_SCHED_NONE : certain(s, g->nodes[i]);
    for (size_t i = 0; i < g->n_leaves; i++)
        s->backend_of[g->n_nodes + i] = certain(s, g->leaves[i]);
    for (int with_last = 0; with_last < 2; with_last++) {
        spread(s, g, true, with_last);
        spread(s, g, false, with_last);
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct gguf_tensor *t = g->nodes[i];
        if (is_view(t))
            continue;
        improve(s, g, i);
        int b = s->backend_of[i];
        char name[160];
        if (b == GG_SCHED_NONE || !may_run(s, g, b, t))
            return gg_op_fail(t, err, GGUF_E_OP,
                              "%s compute node %zu, %s",
                              b == GG_SCHED_NONE
                                  ? "no backend can"
                                  : "the backend that it is pinned to, or that "
                                    "has its memory, cannot",
                              i, gguf_tensor_format(t, name, sizeof name));
        for (int k = 0; k < GGUF_TENSOR_SRC; k++) {
            const struct gguf_tensor *x = t->src[k];
            if (x)
                settle_source(s, g, x->view_src ? x->view_src : x, b);
        }
    }
    for (size_t i = 0; i < g->n_leaves; i++)
        settle_source(s, g, g->leaves[i], s->n_backends - 1);
    settle_views(s, g);
    return GGUF_OK;
}
