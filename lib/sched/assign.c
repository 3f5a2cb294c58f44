/* SPDX-License-Identifier: MIT */
/* assign.c - assigning a backend to each node
 *
 *   1  fixed: pins, memory that exists already, weights, inputs
 *   2  spread from there to neighbours, down and up the list of nodes: first
 *      the preferred backends, then the last one
 *   3  improve: a node moves to a better backend that reaches all it needs; a
 *      node without a backend gets the one that reaches most of its sources
 *   4  sources without a backend get that of a node that reads them, views
 *      that of their root
 */
#include "config.h"
#include "sched/sched_int.h"

static bool is_view(const struct gguf_tensor *t)
{
    return gg_op_row(t->op)->flags & GG_OP_VIEW;
}

/* Each backend is asked once about each node: number i. */
static bool supports_node(const struct gguf_sched *s,
                          const struct gguf_graph *g, int b, size_t i)
{
    struct gg_sched_answers *a = &s->answers[i];
    const uint16_t bit = (uint16_t)(1u << b);
    if (!(a->asked & bit)) {
        a->asked |= bit;
        if (gguf_backend_supports_op(s->backends[b], g->nodes[i]))
            a->yes |= bit;
    }
    return a->yes & bit;
}

int gg_sched_sources(const struct gguf_graph *g, size_t place,
                     int32_t sources[GGUF_TENSOR_SRC])
{
    const struct gguf_tensor *t = gg_graph_at(g, place);
    uint32_t found[GG_GRAPH_EDGES];
    const uint32_t *edge =
        gg_graph_edges(g, place, found) + (t->view_src != NULL);
    const int n_src = gg_op_n_src(t);
    for (int i = 0; i < n_src; i++)
        sources[i] = t->src[i] ? gg_graph_place(g, *edge++) : GG_SCHED_NONE;
    return n_src;
}

/* Backend in whose memory the root of the tensor at a place lies or will lie.
 * GG_SCHED_NONE: not known. */
static int find_home(const struct gguf_sched *s, const struct gguf_graph *g,
                     int32_t place)
{
    const int32_t root = place < 0 ? place : gg_sched_root(g, (size_t)place);
    return root < 0 ? GG_SCHED_NONE : s->backend_of[root];
}

bool gg_sched_reaches(const struct gguf_sched *s, int backend,
                      const struct gguf_tensor *t, int home)
{
    if (t->view_src)
        t = t->view_src;
    if (!gg_sched_is_placed(s, t))
        return home == GG_SCHED_NONE || s->reaches[backend][home];
    return gguf_backend_supports_buft(s->backends[backend],
                                      t->buffer ? gguf_buffer_buft(t->buffer)
                                                : gguf_host_buft());
}

/* Node i on backend b. A node that writes into memory of its root must run
 * where that is. */
static bool can_run_node(const struct gguf_sched *s,
                         const struct gguf_graph *g, int b, size_t i)
{
    const struct gguf_tensor *t = g->nodes[i];
    if (!supports_node(s, g, b, i))
        return false;
    if (!t->view_src && !gg_sched_is_placed(s, t))
        return true;
    return gg_sched_reaches(s, b, t, find_home(s, g, (int32_t)i));
}

/* --- 1: fixed
 * -------------------------------------------------------------- */

/* The first backend that can reach t's memory, and compute node i there (or
 * the tensor is not a node). */
static int find_reaching_backend(const struct gguf_sched *s,
                                 const struct gguf_graph *g,
                                 const struct gguf_tensor *t, size_t i)
{
    for (int b = 0; b < s->n_backends; b++)
        if (gg_sched_reaches(s, b, t, GG_SCHED_NONE) &&
            (i >= g->n_nodes || supports_node(s, g, b, i)))
            return b;
    return GG_SCHED_NONE;
}

static bool is_weight(const struct gguf_sched *s, const struct gguf_tensor *t)
{
    const struct gguf_tensor *root = t->view_src ? t->view_src : t;
    return gg_sched_is_placed(s, root) && root->buffer &&
           gguf_buffer_usage(root->buffer) == GGUF_USAGE_WEIGHTS;
}

static void count_readers(struct gguf_sched *s, const struct gguf_graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        int32_t sources[GGUF_TENSOR_SRC];
        const int n_src = gg_sched_sources(g, i, sources);
        for (int k = 0; k < n_src; k++)
            if (sources[k] >= 0)
                s->n_readers[sources[k]]++;
    }
}

/* Is source k of t, at that place, a weight that other nodes read, too, and
 * smaller than another source? It goes where nodes are, not nodes where it is:
 * else factors that all layers share would draw a part of each layer to one
 * device. */
static bool is_shared_weight(const struct gguf_sched *s,
                             const struct gguf_tensor *t, int k, int32_t place)
{
    uint64_t most = 0;
    for (int i = 0, n_src = gg_op_n_src(t); i < n_src; i++)
        if (t->src[i] && !is_weight(s, t->src[i]))
            most = GG_MAX(most, gguf_tensor_size(t->src[i]));
    return place >= 0 && s->n_readers[place] > 1 &&
           gguf_tensor_size(t->src[k]) < most;
}

static int find_weight_backend(const struct gguf_sched *s,
                               const struct gguf_graph *g, size_t n)
{
    const struct gguf_tensor *t = g->nodes[n];
    int32_t sources[GGUF_TENSOR_SRC];
    const int n_src = gg_sched_sources(g, n, sources);
    for (int i = 0; i < n_src; i++) {
        if (!t->src[i] || !is_weight(s, t->src[i]) ||
            is_shared_weight(s, t, i, sources[i]))
            continue;
        int home = find_reaching_backend(s, g, t->src[i], n);
        /* a better one may want it although it must copy the weights */
        for (int b = 0; b < home && !s->no_offload; b++)
            if (supports_node(s, g, b, n) &&
                gguf_device_offloads_op(gguf_backend_device(s->backends[b]),
                                        t))
                return b;
        if (home != GG_SCHED_NONE)
            return home;
    }
    return GG_SCHED_NONE;
}

static int find_fixed_backend(const struct gguf_sched *s,
                              const struct gguf_graph *g, size_t i)
{
    const struct gguf_tensor *t = gg_graph_at(g, i);
    int b = gg_sched_find_pin(s, t);
    const struct gguf_tensor *root = t->view_src ? t->view_src : t;
    if (b != GG_SCHED_NONE)
        return b;
    if (gg_sched_is_placed(s, root))
        return find_reaching_backend(s, g, root, i);
    if (t->flags & GGUF_TENSOR_INPUT)
        return s->n_backends - 1;
    return t->op == GGUF_OP_NONE ? GG_SCHED_NONE
                                 : find_weight_backend(s, g, i);
}

/* --- 2: spreading --------------------------------------------------------- */

static void spread_backends(struct gguf_sched *s, const struct gguf_graph *g,
                            bool down, bool with_last)
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
        else if (cur != GG_SCHED_NONE && can_run_node(s, g, cur, i))
            *b = cur;
    }
}

/* --- 3: improving --------------------------------------------------------- */

/* Number of t's sources that b reaches; *n_src receives the number of all. */
static int count_reached_sources(const struct gguf_sched *s,
                                 const struct gguf_graph *g, int b,
                                 const struct gguf_tensor *t,
                                 const int32_t *sources, int *n_src)
{
    int n = 0;
    *n_src = 0;
    for (int i = 0, end = gg_op_n_src(t); i < end; i++) {
        if (!t->src[i])
            continue;
        ++*n_src;
        n += gg_sched_reaches(s, b, t->src[i], find_home(s, g, sources[i]));
    }
    return n;
}

static void improve_node(struct gguf_sched *s, const struct gguf_graph *g,
                         size_t i, const int32_t *sources)
{
    const struct gguf_tensor *t = g->nodes[i];
    int *b = &s->backend_of[i], n_src, most = -1;
    if (*b == GG_SCHED_NONE) {
        for (int k = 0; k < s->n_backends; k++) {
            int n = can_run_node(s, g, k, i)
                        ? count_reached_sources(s, g, k, t, sources, &n_src)
                        : -1;
            if (n > most) {
                most = n;
                *b = k;
            }
        }
        return;
    }
    /* only where nothing has to be copied in or out for it */
    for (int k = 0; k < *b && gg_sched_find_pin(s, t) == GG_SCHED_NONE; k++)
        if (gguf_backend_buft(s->backends[k]) ==
                gguf_backend_buft(s->backends[*b]) &&
            can_run_node(s, g, k, i) &&
            count_reached_sources(s, g, k, t, sources, &n_src) == n_src) {
            *b = k;
            return;
        }
}

/* --- 4: the rest ---------------------------------------------------------- */

static void assign_sources(struct gguf_sched *s, const struct gguf_graph *g,
                           const int32_t *sources, int n_src, int reader)
{
    for (int k = 0; k < n_src; k++) {
        int32_t i = sources[k] < 0 ? GG_SCHED_NONE
                                   : gg_sched_root(g, (size_t)sources[k]);
        if (i >= 0 && s->backend_of[i] == GG_SCHED_NONE)
            s->backend_of[i] = reader;
    }
}

/* Views are where their root is, whatever made them. */
static void assign_views(struct gguf_sched *s, const struct gguf_graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct gguf_tensor *t = g->nodes[i];
        if (!is_view(t) || !t->view_src)
            continue;
        int b = find_home(s, g, (int32_t)i);
        s->backend_of[i] = b == GG_SCHED_NONE ? s->n_backends - 1 : b;
    }
}

/* Node i has a backend that can compute it. */
static enum gguf_status check_node(const struct gguf_sched *s,
                                   const struct gguf_graph *g, size_t i,
                                   struct gguf_error *err)
{
    const int b = s->backend_of[i];
    char name[160];
    if (b != GG_SCHED_NONE && can_run_node(s, g, b, i))
        return GGUF_OK;
    return gg_op_fail(g->nodes[i], err, GGUF_E_OP, "%s compute node %zu, %s",
                      b == GG_SCHED_NONE
                          ? "no backend can"
                          : "the backend that it is pinned to, or that has "
                            "its memory, cannot",
                      i, gguf_tensor_format(g->nodes[i], name, sizeof name));
}

/* To the only backend. */
static enum gguf_status assign_only_backend(struct gguf_sched *s,
                                            const struct gguf_graph *g,
                                            struct gguf_error *err)
{
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++)
        s->backend_of[i] = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (is_view(g->nodes[i]) || can_run_node(s, g, 0, i))
            continue;
        s->backend_of[i] = GG_SCHED_NONE;
        return check_node(s, g, i, err);
    }
    return GGUF_OK;
}

enum gguf_status gg_sched_assign(struct gguf_sched *s,
                                 const struct gguf_graph *g,
                                 struct gguf_error *err)
{
    if (gg_sched_is_plain(s))
        return assign_only_backend(s, g, err);
    count_readers(s, g);
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++)
        s->backend_of[i] = i < g->n_nodes && is_view(g->nodes[i])
                               ? GG_SCHED_NONE
                               : find_fixed_backend(s, g, i);
    for (int with_last = 0; with_last < 2; with_last++) {
        spread_backends(s, g, true, with_last);
        spread_backends(s, g, false, with_last);
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
        int32_t sources[GGUF_TENSOR_SRC];
        if (is_view(g->nodes[i]))
            continue;
        const int n_src = gg_sched_sources(g, i, sources);
        improve_node(s, g, i, sources);
        GG_TRY(check_node(s, g, i, err));
        assign_sources(s, g, sources, n_src, s->backend_of[i]);
    }
    for (size_t i = g->n_nodes; i < g->n_nodes + g->n_leaves; i++)
        if (s->backend_of[i] == GG_SCHED_NONE)
            s->backend_of[i] = s->n_backends - 1;
    assign_views(s, g);
    return GGUF_OK;
}
