/* SPDX-License-Identifier: MIT */
/* graph_cuts.c - cuts of a graph between its layers */
#include "config.h"
#include "run/graph_cuts.h"

#include "base/mem.h"
#include "gguf/backend.h"
#include "gguf/file.h"

#include <string.h>

/* Facts about a tensor that is not a view. */
struct gg_graph_cuts_root {
    size_t first, last; /* first and last node that write or read it */
    int64_t layer;      /* layer of a weight; -1: no weight, or in no layer */
    bool used;
};

enum gguf_status gg_graph_cuts_init(struct gg_graph_cuts *c, uint32_t n_layers,
                                    const struct gguf_allocator *a,
                                    struct gguf_error *err)
{
    *c = (struct gg_graph_cuts){ .allocator = a, .n_layers = n_layers };
    c->end = gg_mem_alloc_zero(a, n_layers, sizeof *c->end);
    return c->end ? GGUF_OK
                  : gg_error_set_nomem(err, n_layers * sizeof *c->end);
}

void gg_graph_cuts_fini(struct gg_graph_cuts *c)
{
    gg_mem_free(c->allocator, c->end);
    gg_mem_free(c->allocator, c->root);
    gg_mem_free(c->allocator, c->live);
    gg_mem_free(c->allocator, c->open);
}

static enum gguf_status make_room(struct gg_graph_cuts *c, size_t n,
                                  struct gguf_error *err)
{
    if (n > c->cap) {
        gg_mem_free(c->allocator, c->root);
        gg_mem_free(c->allocator, c->live);
        gg_mem_free(c->allocator, c->open);
        c->cap = 0;
        c->root = gg_mem_alloc_zero(c->allocator, n, sizeof *c->root);
        c->live = gg_mem_alloc_zero(c->allocator, n + 1, sizeof *c->live);
        c->open = gg_mem_alloc_zero(c->allocator, n + 1, sizeof *c->open);
        if (!c->root || !c->live || !c->open)
            return gg_error_set_nomem(err, n * sizeof *c->root);
        c->cap = n;
    }
    memset(c->root, 0, n * sizeof *c->root);
    memset(c->live, 0, (n + 1) * sizeof *c->live);
    memset(c->open, 0, (n + 1) * sizeof *c->open);
    return GGUF_OK;
}

/* Place of a tensor; for a view, place of the tensor that it views. */
static size_t root_of(const struct gguf_graph *g, size_t place)
{
    uint32_t found[GG_GRAPH_EDGES];
    return gg_graph_at(g, place)->view_src
               ? (size_t)gg_graph_place(g, *gg_graph_edges(g, place, found))
               : place;
}

static void note_use(struct gg_graph_cuts *c, size_t place, size_t node)
{
    struct gg_graph_cuts_root *r = &c->root[place];
    r->first = r->used ? GG_MIN(r->first, node) : node;
    r->last = node;
    r->used = true;
}

static void note_uses(struct gg_graph_cuts *c, const struct gguf_graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        uint32_t found[GG_GRAPH_EDGES];
        const uint32_t *edge = gg_graph_edges(g, i, found);
        const struct gguf_tensor *t = g->nodes[i];
        if (gguf_op_is_view(t->op))
            continue; /* a view reads nothing */
        edge += t->view_src ? 1 : 0;
        note_use(c, root_of(g, i), i);
        for (unsigned k = 0; k < GGUF_TENSOR_SRC; k++)
            if (t->src[k])
                note_use(c, root_of(g, (size_t)gg_graph_place(g, *edge++)), i);
    }
    if (g->n_nodes) /* the result of the graph */
        note_use(c, root_of(g, g->n_nodes - 1), g->n_nodes);
}

/* Forbid cuts between node first and node last. */
static void close_span(uint32_t *open, size_t first, size_t last)
{
    if (first < last) {
        open[first + 1]++;
        open[last + 1]--;
    }
}

static bool is_weight(const struct gguf_tensor *t)
{
    return t->buffer && gguf_buffer_usage(t->buffer) == GGUF_USAGE_WEIGHTS;
}

static int64_t layer_of(const struct gguf_tensor *t)
{
    const char *name = t->name;
    return is_weight(t) ? gguf_layer_from_name(
                              (struct gguf_str){ name, strlen(name) }, NULL)
                        : -1;
}

/* Count the bytes of results over each cut; forbid cuts between nodes that
 * read the same memory or, with layers, the same layer's weights. */
static void mark_cuts(struct gg_graph_cuts *c, const struct gguf_graph *g,
                      bool layers)
{
    for (size_t place = 0; place < g->n_nodes + g->n_leaves; place++) {
        struct gg_graph_cuts_root *r = &c->root[place];
        const struct gguf_tensor *t = gg_graph_at(g, place);
        r->layer = layer_of(t);
        if (!r->used || r->first == r->last)
            continue;
        if (place < g->n_nodes) {
            c->live[r->first + 1] += gguf_tensor_size(t);
            c->live[r->last + 1] -= gguf_tensor_size(t);
        } else if (is_weight(t) ? layers && r->layer >= 0
                                : !(t->flags & GGUF_TENSOR_INPUT)) {
            close_span(c->open, r->first, r->last);
        }
    }
    for (size_t i = 1; i <= g->n_nodes; i++) {
        c->live[i] += c->live[i - 1];
        c->open[i] += c->open[i - 1];
    }
}

/* Find the nodes between layers: all nodes that read weights of layers up to
 * il are before *begin, all that read weights of later layers are from *end
 * on. */
static void find_layer_nodes(const struct gg_graph_cuts *c,
                             const struct gguf_graph *g, uint32_t il,
                             size_t *begin, size_t *end)
{
    *begin = 0;
    *end = g->n_nodes;
    for (size_t place = g->n_nodes; place < g->n_nodes + g->n_leaves;
         place++) {
        const struct gg_graph_cuts_root *r = &c->root[place];
        if (!r->used || r->layer < 0)
            continue;
        if (r->layer > (int64_t)il)
            *end = GG_MIN(*end, r->first);
        else
            *begin = GG_MAX(*begin, r->last + 1);
    }
}

static enum gguf_status analyse_graph(struct gg_graph_cuts *c,
                                      const struct gguf_graph *g, bool layers,
                                      struct gguf_error *err)
{
    GG_TRY(make_room(c, g->n_nodes + g->n_leaves, err));
    note_uses(c, g);
    mark_cuts(c, g, layers);
    return GGUF_OK;
}

enum gguf_status gg_graph_cuts_measure(struct gg_graph_cuts *c,
                                       const struct gguf_graph *g,
                                       struct gguf_error *err)
{
    return analyse_graph(c, g, false, err);
}

enum gguf_status gg_graph_cuts_find(struct gg_graph_cuts *c,
                                    const struct gguf_graph *g,
                                    struct gguf_error *err)
{
    size_t before = 0;
    GG_TRY(analyse_graph(c, g, true, err));
    c->most = 0;
    for (uint32_t il = 0; il < c->n_layers; il++) {
        size_t begin, end, best = 0;
        find_layer_nodes(c, g, il, &begin, &end);
        for (size_t at = GG_MAX(begin, before + 1); at <= end; at++)
            if (!c->open[at] && (!best || c->live[at] < c->live[best]))
                best = at;
        if (il + 1 == c->n_layers)
            best = g->n_nodes;
        c->end[il] = best ? best : before;
        before = c->end[il];
        c->most = GG_MAX(c->most, c->live[before]);
    }
    return GGUF_OK;
}

struct gguf_tensor *gg_graph_cuts_next_carried(const struct gg_graph_cuts *c,
                                               const struct gguf_graph *g,
                                               uint32_t layer, size_t *i)
{
    return gg_graph_cuts_next_at(c, g, c->end[layer], i);
}

struct gguf_tensor *gg_graph_cuts_next_at(const struct gg_graph_cuts *c,
                                          const struct gguf_graph *g,
                                          size_t at, size_t *i)
{
    for (; *i < GG_MIN(at, g->n_nodes); ++*i) {
        const struct gg_graph_cuts_root *r = &c->root[*i];
        if (r->used && r->first < at && r->last >= at)
            return g->nodes[(*i)++];
    }
    return NULL;
}
