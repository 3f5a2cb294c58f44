/* SPDX-License-Identifier: MIT */
/* backend.c - computing graphs: checks, and defaults of optional functions */
#include "config.h"
#include "backend/backend_int.h"
#include "graph/cgraph.h"

void gguf_backend_destroy(struct gguf_backend *b)
{
    if (!b)
        return;
    const bool made = b->made;
    const struct gguf_allocator *a = b->allocator;
    struct gguf_driver *driver = b->own_driver;
    gguf_event_destroy(b->mark);
    if (b->iface->destroy)
        b->iface->destroy(b);
    if (made)
        gg_mem_free(a, b);
    gguf_driver_destroy(driver);
}

const char *gguf_backend_name(const struct gguf_backend *b)
{
    return b->name;
}

uint64_t gguf_backend_id(const struct gguf_backend *b)
{
    return b->id;
}

struct gguf_device *gguf_backend_device(const struct gguf_backend *b)
{
    return b->device;
}

const struct gguf_buft *gguf_backend_buft(const struct gguf_backend *b)
{
    return b->device->buft;
}

bool gguf_backend_supports_op(const struct gguf_backend *b,
                              const struct gguf_tensor *t)
{
    return gguf_device_supports_op(b->device, t);
}

bool gguf_backend_supports_buft(const struct gguf_backend *b,
                                const struct gguf_buft *buft)
{
    return gguf_device_supports_buft(b->device, buft);
}

enum gguf_status gg_backend_check(const struct gguf_backend *b,
                                  const struct gguf_graph *graph,
                                  struct gguf_error *err)
{
    size_t n = gguf_graph_n_nodes(graph);
    for (size_t i = 0; i < n; i++) {
        const struct gguf_tensor *t = gguf_graph_node(graph, i);
        if (t->op >= GGUF_N_OPS)
            return gg_error_set(err, GGUF_E_OP, GGUF_NO_OFFSET,
                                "operation %" PRIu32 " is unknown", t->op);
        GG_TRY(gg_backend_tensor_check_data(t, err));
        if (gguf_op_is_view(t->op))
            continue;
        for (int s = 0; s < GGUF_TENSOR_SRC; s++)
            if (t->src[s])
                GG_TRY(gg_backend_tensor_check_data(t->src[s], err));
        if (!gguf_device_supports_op(b->device, t)) {
            char name[160];
            return gg_op_fail(t, err, GGUF_E_OP,
                              "%s cannot compute node %zu, %s", b->name, i,
                              gguf_tensor_format(t, name, sizeof name));
        }
    }
    return GGUF_OK;
}

enum gguf_status gguf_backend_compute_async(struct gguf_backend *b,
                                            struct gguf_graph *graph,
                                            struct gguf_error *err)
{
    GG_TRY(gg_backend_check(b, graph, err));
    return b->iface->compute(b, graph, err);
}

enum gguf_status gguf_backend_compute(struct gguf_backend *b,
                                      struct gguf_graph *graph,
                                      struct gguf_error *err)
{
    GG_TRY(gguf_backend_compute_async(b, graph, err));
    return gguf_backend_sync(b, err);
}

enum gguf_status gguf_backend_sync(struct gguf_backend *b,
                                   struct gguf_error *err)
{
    return b->iface->sync ? b->iface->sync(b, err) : GGUF_OK;
}

struct gguf_plan {
    struct gguf_backend *backend;
    struct gguf_graph *graph;
    uint64_t generation; /* generation of graph that the plan was made for */
    void *priv;
    const struct gguf_allocator *measure; /* only said to this one, or NULL */
    size_t size;                          /* bytes, then */
};

enum gguf_status gguf_plan_create(struct gguf_plan **out,
                                  struct gguf_backend *b,
                                  struct gguf_graph *graph,
                                  struct gguf_error *err)
{
    *out = NULL;
    GG_TRY(gg_backend_check(b, graph, err));
    struct gguf_plan *p = gg_mem_alloc(b->allocator, sizeof *p);
    if (!p)
        return gg_error_set_nomem(err, sizeof *p);
    *p = (struct gguf_plan){ .backend = b,
                             .graph = graph,
                             .generation = graph->generation };
    enum gguf_status st = GGUF_OK;
    if (b->iface->plan_create)
        st = b->iface->plan_create(b, graph, &p->priv, err);
    if (st != GGUF_OK)
        gg_mem_free(b->allocator, p);
    else
        *out = p;
    return st;
}

static enum gguf_status remake_plan(struct gguf_plan *p,
                                    struct gguf_graph *graph,
                                    struct gguf_error *err)
{
    struct gguf_backend *b = p->backend;
    GG_TRY(gg_backend_check(b, graph, err));
    if (b->iface->plan_create)
        GG_TRY(b->iface->plan_remake(b, p->priv, graph, err));
    p->graph = graph;
    p->generation = graph->generation;
    return GGUF_OK;
}

enum gguf_status gg_backend_prepare_plan(struct gguf_plan **plan,
                                         struct gguf_backend *b,
                                         struct gguf_graph *graph,
                                         struct gguf_error *err)
{
    struct gguf_plan *p = *plan;
    if (p && p->backend == b &&
        (!b->iface->plan_create || b->iface->plan_remake)) {
        const enum gguf_status st = remake_plan(p, graph, err);
        if (st == GGUF_OK)
            return GGUF_OK;
        gguf_plan_destroy(p);
        *plan = NULL;
        return st;
    }
    gguf_plan_destroy(p);
    return gguf_plan_create(plan, b, graph, err);
}

enum gguf_status gg_backend_measure_plan(struct gguf_plan **plan,
                                         struct gguf_backend *b,
                                         const struct gguf_graph *graph,
                                         const struct gguf_allocator *a,
                                         struct gguf_error *err)
{
    struct gguf_plan *p = *plan;
    size_t size = 0, shared = 0;
    if (b->iface->plan_memory)
        b->iface->plan_memory(b, graph, &size, &shared);
    const bool stays = p && p->backend == b &&
                       (!b->iface->plan_create || b->iface->plan_remake);
    if (!stays) {
        gguf_plan_destroy(p);
        *plan = p = gg_mem_alloc(a, sizeof *p);
        if (!p)
            return gg_error_set_nomem(err, sizeof *p);
        *p = (struct gguf_plan){ .backend = b, .measure = a };
    }
    if (size > p->size) {
        gg_measure_sub(a, p->size); /* it is freed first */
        gg_measure_add(a, size);
        p->size = size;
    }
    gg_measure_scratch(a, b, shared);
    return GGUF_OK;
}

enum gguf_status gguf_plan_compute_async(struct gguf_plan *p,
                                         struct gguf_error *err)
{
    struct gguf_backend *b = p->backend;
    if (!p->generation || p->graph->generation != p->generation)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the graph of a plan of %s has changed since",
                            b->name);
    if (b->iface->plan_compute)
        return b->iface->plan_compute(b, p->priv, err);
    return b->iface->compute(b, p->graph, err);
}

enum gguf_status gguf_plan_compute(struct gguf_plan *p, struct gguf_error *err)
{
    GG_TRY(gguf_plan_compute_async(p, err));
    return gguf_backend_sync(p->backend, err);
}

unsigned gguf_plan_node_threads(const struct gguf_plan *p, size_t i)
{
    const struct gguf_backend_iface *iface = p->backend->iface;
    if (p->graph->generation != p->generation || i >= p->graph->n_nodes ||
        !iface->plan_threads)
        return 0;
    return iface->plan_threads(p->backend, p->priv, p->graph->nodes[i]);
}

unsigned gguf_plan_n_threads(const struct gguf_plan *p)
{
    unsigned n = 0;
    for (size_t i = 0; i < p->graph->n_nodes; i++)
        n = GG_MAX(n, gguf_plan_node_threads(p, i));
    return n;
}

size_t gguf_plan_work_size(const struct gguf_plan *p)
{
    const struct gguf_backend_iface *iface = p->backend->iface;
    return iface->plan_work_size ? iface->plan_work_size(p->backend, p->priv)
                                 : 0;
}

void gguf_plan_destroy(struct gguf_plan *p)
{
    if (!p)
        return;
    if (p->measure) {
        gg_measure_sub(p->measure, p->size);
        gg_mem_free(p->measure, p);
        return;
    }
    if (p->backend->iface->plan_destroy)
        p->backend->iface->plan_destroy(p->backend, p->priv);
    gg_mem_free(p->backend->allocator, p);
}
