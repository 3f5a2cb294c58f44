/* bind.c - memory for tensors: all of a context, and graphs */
#include "config.h"
#include "alloc/layout.h"
#include "alloc/linear.h"
#include "backend/backend.h"

#include <string.h>

/* --- all tensors of a context --------------------------------------------- */

/* Tensors from *t on that fit into one buffer of buft; *t becomes the first
 * that does not, or NULL. Places them if b is not NULL. *used: the bytes, not 0
 * if there is one, since a tensor without elements has an address, too. */
static enum gguf_status pack(struct gguf_ctx *ctx,
                             const struct gguf_buft *buft,
                             struct gguf_buffer *b, struct gguf_tensor **t,
                             uint64_t *used, struct gguf_error *err)
{
    struct gg_linear l = { buft->alignment, 0 };
    bool some = false;
    for (; *t; *t = gguf_ctx_next(ctx, *t)) {
        struct gguf_tensor *x = *t;
        uint64_t size = gguf_buft_tensor_size(buft, x), off;
        char name[160];
        if (x->data || x->buffer || x->view_src)
            continue;
        if (size > buft->max_size)
            return gg_fail(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                           "%s needs %" PRIu64 " bytes: the limit of a '%s' "
                           "buffer is %zu",
                           gguf_tensor_format(x, name, sizeof name), size,
                           buft->name, buft->max_size);
        struct gg_linear before = l;
        if (!gg_linear_alloc(&l, size, &off))
            return gg_fail(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                           "the tensors of a context overflow");
        if (l.used > buft->max_size) {
            l = before;
            break;
        }
        if (b)
            GG_TRY(gguf_buffer_place(b, x, off, err));
        some = true;
    }
    *used = some ? GG_MAX(l.used, (uint64_t)buft->alignment) : 0;
    return GGUF_OK;
}

static void unplace(struct gguf_ctx *ctx, const struct gguf_buffer *b)
{
    for (struct gguf_tensor *t = gguf_ctx_first(ctx); t;
         t = gguf_ctx_next(ctx, t))
        if (b && t->buffer == b) {
            t->buffer = NULL;
            t->data = NULL;
        }
}

static enum gguf_status bind_views(struct gguf_ctx *ctx,
                                   struct gguf_error *err)
{
    for (struct gguf_tensor *t = gguf_ctx_first(ctx); t;
         t = gguf_ctx_next(ctx, t))
        if (t->view_src && !t->data &&
            (t->view_src->data || t->view_src->buffer))
            GG_TRY(gguf_tensor_bind_view(t, err));
    return GGUF_OK;
}

enum gguf_status gguf_ctx_alloc_tensors(struct gguf_ctx *ctx,
                                        const struct gguf_buft *buft,
                                        const struct gguf_allocator *allocator,
                                        struct gguf_buffer **out,
                                        struct gguf_error *err)
{
    struct gguf_buffer **parts = NULL;
    size_t n = 0, cap = 0;
    *out = NULL;
    enum gguf_status st = gguf_ctx_status(ctx, err);
    struct gguf_tensor *at = st == GGUF_OK ? gguf_ctx_first(ctx) : NULL;
    do {
        struct gguf_tensor *end = at, *begin = at;
        uint64_t size = 0;
        if (st == GGUF_OK)
            st = pack(ctx, buft, NULL, &end, &size, err);
        if (st == GGUF_OK && n == cap) {
            struct gguf_buffer **p =
                gg_grow(allocator, parts, &cap, sizeof *p, 4, err);
            if (p)
                parts = p;
            else
                st = GGUF_E_NOMEM;
        }
        if (st == GGUF_OK)
            st = gguf_buffer_create(&parts[n], buft, (size_t)size, allocator,
                                    err);
        if (st == GGUF_OK)
            st = pack(ctx, buft, parts[n++], &begin, &size, err);
        at = end;
    } while (st == GGUF_OK && at);

    if (st == GGUF_OK)
        st = bind_views(ctx, err);
    if (st == GGUF_OK && n > 1)
        st = gg_buffer_join(out, parts, n, allocator, err);
    else if (st == GGUF_OK)
        *out = parts[0];
    for (size_t i = 0; st != GGUF_OK && i < n; i++) {
        unplace(ctx, parts[i]);
        gguf_buffer_destroy(parts[i]);
    }
    gg_free(allocator, parts);
    return st;
}

/* --- graphs --------------------------------------------------------------- */

struct gguf_galloc {
    const struct gguf_allocator *allocator;
    unsigned n, n_plans, n_moves;
    const struct gguf_buft **bufts;
    struct gguf_buffer **buffers; /* the objects stay for good, so that their
                                     address tells which tensors are ours */
    uint64_t *align;
    struct gg_layout layout;
    int *node_pool, *leaf_pool; /* of the last reserve_n, or NULL */
    size_t n_node_pool, n_leaf_pool;
};

enum gguf_status gguf_galloc_create_n(struct gguf_galloc **out,
                                      const struct gguf_allocator *allocator,
                                      const struct gguf_buft *const *bufts,
                                      unsigned n_bufts,
                                      struct gguf_error *err)
{
    *out = NULL;
    if (!n_bufts)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "a graph allocator needs a buffer type");
    struct gguf_galloc *ga = gg_alloc(allocator, sizeof *ga);
    if (!ga)
        return gg_fail_nomem(err, sizeof *ga);
    *ga = (struct gguf_galloc){ .allocator = allocator, .n = n_bufts };
    ga->bufts = gg_alloc_zero(allocator, n_bufts, sizeof *ga->bufts);
    ga->buffers = gg_alloc_zero(allocator, n_bufts, sizeof *ga->buffers);
    ga->align = gg_alloc_zero(allocator, n_bufts, sizeof *ga->align);
    enum gguf_status st = gg_layout_init(&ga->layout, allocator, n_bufts, err);
    if (st == GGUF_OK && (!ga->bufts || !ga->buffers || !ga->align))
        st = gg_fail_nomem(err, n_bufts * sizeof *ga->bufts);
    for (unsigned i = 0; st == GGUF_OK && i < n_bufts; i++) {
        ga->bufts[i] = bufts[i];
        ga->align[i] = bufts[i]->alignment;
        st = gguf_buffer_create(&ga->buffers[i], bufts[i], 0, allocator, err);
        if (st == GGUF_OK)
            gguf_buffer_set_usage(ga->buffers[i], GGUF_USAGE_COMPUTE);
    }
    if (st != GGUF_OK)
        gguf_galloc_destroy(ga);
    else
        *out = ga;
    return st;
}

enum gguf_status gguf_galloc_create(struct gguf_galloc **out,
                                    const struct gguf_allocator *allocator,
                                    const struct gguf_buft *buft,
                                    struct gguf_error *err)
{
    return gguf_galloc_create_n(out, allocator, &buft, 1, err);
}

void gguf_galloc_destroy(struct gguf_galloc *ga)
{
    if (!ga)
        return;
    for (unsigned i = 0; ga->buffers && i < ga->n; i++)
        gguf_buffer_destroy(ga->buffers[i]);
    gg_layout_fini(&ga->layout);
    gg_free(ga->allocator, ga->node_pool);
    gg_free(ga->allocator, ga->leaf_pool);
    gg_free(ga->allocator, ga->align);
    gg_free(ga->allocator, ga->buffers);
    gg_free(ga->allocator, (void *)ga->bufts);
    gg_free(ga->allocator, ga);
}

static uint64_t pool_size(void *user, unsigned pool,
                          const struct gguf_tensor *t)
{
    const struct gguf_galloc *ga = user;
    return gguf_buft_tensor_size(ga->bufts[pool], t);
}

int gg_galloc_number(const struct gguf_galloc *ga,
                     const struct gguf_buffer *b)
{
    for (unsigned i = 0; i < ga->n; i++)
        if (b == ga->buffers[i])
            return (int)i;
    return -1;
}

bool gg_galloc_owns(const struct gguf_galloc *ga, const struct gguf_buffer *b)
{
    return gg_galloc_number(ga, b) >= 0;
}

static bool is_ours(void *user, const struct gguf_tensor *t)
{
    return t->buffer ? gg_galloc_owns(user, t->buffer) : !t->data;
}

static struct gg_layout_in layout_in(struct gguf_galloc *ga,
                                     const struct gguf_graph *graph)
{
    bool same = gguf_graph_n_nodes(graph) == ga->n_node_pool &&
                gguf_graph_n_leaves(graph) == ga->n_leaf_pool;
    return (struct gg_layout_in){ .graph = graph,
                                  .n_pools = ga->n,
                                  .align = ga->align,
                                  .node_pool = same ? ga->node_pool : NULL,
                                  .leaf_pool = same ? ga->leaf_pool : NULL,
                                  .size = pool_size,
                                  .ours = is_ours,
                                  .user = ga };
}

static enum gguf_status plan(struct gguf_galloc *ga,
                             const struct gguf_graph *graph,
                             struct gguf_error *err)
{
    struct gg_layout_in in = layout_in(ga, graph);
    GG_TRY(gg_layout_make(&ga->layout, &in, err));
    ga->n_plans++;
    for (unsigned i = 0; i < ga->n; i++) {
        /* a tensor without elements has an address too */
        uint64_t need = GG_MAX(ga->layout.total[i], ga->align[i]);
        if (need > SIZE_MAX)
            return gg_fail(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                           "a graph needs %" PRIu64 " bytes", need);
        if (need <= ga->buffers[i]->size)
            continue;
        ga->n_moves++;
        GG_TRY(gg_buffer_resize(ga->buffers[i], (size_t)need, err));
    }
    return GGUF_OK;
}

static enum gguf_status keep_pools(struct gguf_galloc *ga, const int *node,
                                   size_t n_nodes, const int *leaf,
                                   size_t n_leaves, struct gguf_error *err)
{
    gg_free(ga->allocator, ga->node_pool);
    gg_free(ga->allocator, ga->leaf_pool);
    ga->node_pool = ga->leaf_pool = NULL;
    ga->n_node_pool = ga->n_leaf_pool = 0;
    if (!node && !leaf)
        return GGUF_OK;
    for (size_t i = 0; i < n_nodes + n_leaves; i++) {
        int k = i < n_nodes ? (node ? node[i] : 0)
                            : (leaf ? leaf[i - n_nodes] : 0);
        if (k < 0 || (unsigned)k >= ga->n)
            return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                           "buffer type %d of %u", k, ga->n);
    }
    ga->node_pool = gg_alloc_zero(ga->allocator, n_nodes, sizeof *node);
    ga->leaf_pool = gg_alloc_zero(ga->allocator, n_leaves, sizeof *leaf);
    if (!ga->node_pool || !ga->leaf_pool)
        return gg_fail_nomem(err, (n_nodes + n_leaves) * sizeof *node);
    if (node && n_nodes)
        memcpy(ga->node_pool, node, n_nodes * sizeof *node);
    if (leaf && n_leaves)
        memcpy(ga->leaf_pool, leaf, n_leaves * sizeof *leaf);
    ga->n_node_pool = n_nodes;
    ga->n_leaf_pool = n_leaves;
    return GGUF_OK;
}

enum gguf_status gguf_galloc_reserve_n(struct gguf_galloc *ga,
                                       const struct gguf_graph *graph,
                                       const int *node_buft,
                                       const int *leaf_buft,
                                       struct gguf_error *err)
{
    GG_TRY(keep_pools(ga, node_buft, gguf_graph_n_nodes(graph), leaf_buft,
                      gguf_graph_n_leaves(graph), err));
    return plan(ga, graph, err);
}

enum gguf_status gguf_galloc_reserve(struct gguf_galloc *ga,
                                     const struct gguf_graph *graph,
                                     struct gguf_error *err)
{
    return gguf_galloc_reserve_n(ga, graph, NULL, NULL, err);
}

static enum gguf_status place(struct gguf_galloc *ga, struct gguf_tensor *t,
                              const struct gg_place *p,
                              struct gguf_error *err)
{
    if (p->pool < 0)
        return GGUF_OK;
    t->data = NULL;
    t->buffer = NULL;
    return gguf_buffer_place(ga->buffers[p->pool], t, p->off, err);
}

enum gguf_status gguf_galloc_alloc(struct gguf_galloc *ga,
                                   struct gguf_graph *graph,
                                   struct gguf_error *err)
{
    struct gg_layout_in in = layout_in(ga, graph);
    bool fits = gg_layout_fits(&ga->layout, &in);
    for (unsigned i = 0; i < ga->n; i++) /* shorter after a failure */
        fits = fits && ga->layout.total[i] <= ga->buffers[i]->size &&
               ga->buffers[i]->size;
    if (!fits)
        GG_TRY(plan(ga, graph, err));
    for (unsigned i = 0; i < ga->n; i++)
        gguf_buffer_reset(ga->buffers[i]);
    const struct gg_place *p = ga->layout.places;
    size_t n = gguf_graph_n_nodes(graph), n_leaves = gguf_graph_n_leaves(graph);
    for (size_t i = 0; i < n_leaves; i++)
        GG_TRY(place(ga, gguf_graph_leaf(graph, i), &p[n + i], err));
    for (size_t i = 0; i < n; i++)
        GG_TRY(place(ga, gguf_graph_node(graph, i), &p[i], err));
    /* a view's root may be any tensor: views come last */
    for (size_t i = 0; i < n; i++) {
        struct gguf_tensor *t = gguf_graph_node(graph, i);
        if (t->view_src)
            GG_TRY(gguf_tensor_bind_view(t, err));
    }
    graph->placer = ga;
    return GGUF_OK;
}

enum gguf_status gg_galloc_alloc_n(struct gguf_galloc *ga,
                                   struct gguf_graph *graph,
                                   const int *node_buft, const int *leaf_buft,
                                   struct gguf_error *err)
{
    GG_TRY(keep_pools(ga, node_buft, gguf_graph_n_nodes(graph), leaf_buft,
                      gguf_graph_n_leaves(graph), err));
    return gguf_galloc_alloc(ga, graph, err);
}

size_t gguf_galloc_size(const struct gguf_galloc *ga, unsigned i)
{
    return i < ga->n ? ga->buffers[i]->size : 0;
}

unsigned gg_galloc_n_moves(const struct gguf_galloc *ga)
{
    return ga->n_moves;
}

unsigned gguf_galloc_n_plans(const struct gguf_galloc *ga)
{
    return ga->n_plans;
}
