/* SPDX-License-Identifier: MIT */
/* sched_dump.c - assignments and places as text */
#include "config.h"
#include "base/params.h"
#include "graph/graph_dump.h"
#include "sched/sched_int.h"

/* "matmul 'name' F32 [4]", "copy F32 [4]" */
static void put_node(struct gg_graph_out *o, const struct gg_sched_lane *l,
                     size_t i)
{
    const struct gguf_tensor *t = l->shadow->nodes[i];
    const struct gguf_tensor *origin = gg_sched_origin(l, i);
    char name[160];
    gg_graph_out_put(
        o, "%s %s", origin ? gguf_op_name(t->op) : "copy",
        gguf_tensor_format(origin ? origin : t, name, sizeof name));
}

/* Names are the caller's tensors'. */
static enum gguf_status check_graph(const struct gguf_sched *s,
                                    struct gguf_error *err)
{
    if (!s->planned || gg_sched_graph(s))
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "the graph of a schedule has changed since");
}

enum gguf_status gguf_sched_dump(const struct gguf_sched *s,
                                 struct gguf_write_callback write,
                                 struct gguf_error *err)
{
    const struct gg_sched_lane *l = &s->lanes[0];
    struct gg_graph_out o = { write, false };
    GG_TRY(gg_params_need(write.fn, "write", err));
    GG_TRY(check_graph(s, err));
    for (size_t k = 0; !o.stopped && k < s->n_splits; k++) {
        const struct gg_sched_split *p = &l->splits[k];
        gg_graph_out_put(&o, "split %zu: %s, %zu nodes\n", k,
                         gguf_backend_name(s->backends[p->backend]),
                         p->end - p->copies_end);
        for (size_t i = p->begin; !o.stopped && i < p->end; i++) {
            gg_graph_out_put(&o, "  ");
            put_node(&o, l, i);
            gg_graph_out_put(&o, "\n");
        }
    }
    return gg_graph_out_finish(&o, "a schedule", err);
}

static void put_buffer(struct gg_graph_out *o, const struct gguf_sched *s,
                       unsigned b)
{
    const unsigned first = gg_galloc_first_same_buft(s->galloc, b);
    gg_graph_out_put(o, "buffer %u: %s, ", b,
                     gguf_backend_name(s->backends[b]));
    if (first == b)
        gg_graph_out_put(o, "%zu bytes\n",
                         gguf_galloc_buffer_size(s->galloc, b));
    else
        gg_graph_out_put(o, "the same as %u\n", first);
}

static void put_place(struct gg_graph_out *o, const struct gguf_sched *s,
                      const struct gguf_tensor *t)
{
    const struct gguf_tensor *root = t->view_src ? t->view_src : t;
    const int k =
        root->buffer ? gg_galloc_find_buffer(s->galloc, root->buffer) : -1;
    const char *view = t->view_src ? ", a view" : "";
    if (k < 0 || !root->data) {
        gg_graph_out_put(o, ": %s%s\n", root->data ? "elsewhere" : "no memory",
                         view);
        return;
    }
    const uint64_t at =
        (uint64_t)((const char *)t->data -
                   (const char *)gguf_buffer_base(root->buffer));
    gg_graph_out_put(o, ": buffer %d, bytes %" PRIu64 " to %" PRIu64 "%s\n", k,
                     at, at + gguf_tensor_size(t), view);
}

enum gguf_status gguf_sched_dump_plan(const struct gguf_sched *s,
                                      struct gguf_write_callback write,
                                      struct gguf_error *err)
{
    const struct gg_sched_lane *l = &s->lanes[0];
    struct gg_graph_out o = { write, false };
    GG_TRY(gg_params_need(write.fn, "write", err));
    GG_TRY(check_graph(s, err));
    for (int b = 0; b < s->n_backends; b++)
        put_buffer(&o, s, (unsigned)b);
    for (size_t i = 0; s->graph && i < s->graph->n_leaves; i++) {
        char name[160];
        gg_graph_out_put(
            &o, "leaf %zu: %s", i,
            gguf_tensor_format(s->graph->leaves[i], name, sizeof name));
        put_place(&o, s, s->graph->leaves[i]);
    }
    for (size_t i = 0; s->graph && i < l->shadow->n_nodes; i++) {
        gg_graph_out_put(&o, "node %zu: ", i);
        put_node(&o, l, i);
        put_place(&o, s, l->shadow->nodes[i]);
    }
    return gg_graph_out_finish(&o, "a schedule", err);
}
