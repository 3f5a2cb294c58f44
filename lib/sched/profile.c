/* SPDX-License-Identifier: MIT */
/* profile.c - the time of each node, by the backend or from outside */
#include "config.h"
#include "base/clock.h"
#include "graph/op_table.h"
#include "sched/sched_int.h"

/* The driver's function, or NULL. */
static gguf_backend_set_profile_fn *find_setter(struct gguf_backend *b)
{
    const struct gguf_driver *d = gguf_device_driver(gguf_backend_device(b));
    return d ? (gguf_backend_set_profile_fn *)gguf_driver_function(
                   d, "set_profile")
             : NULL;
}

enum gguf_status gguf_sched_set_profile(struct gguf_sched *s,
                                        gguf_profile_fn *fn, void *user,
                                        struct gguf_error *err)
{
    const enum gguf_status st = gguf_sched_sync(s, err);
    s->profile = fn;
    s->profile_user = user;
    s->measures = 0;
    for (int b = 0; b < s->n_backends; b++) {
        gguf_backend_set_profile_fn *set = find_setter(s->backends[b]);
        if (!set)
            continue;
        set(s->backends[b], fn, user);
        s->measures |= (uint16_t)(1u << b);
    }
    return st;
}

enum gguf_status gg_sched_compute_timed(struct gguf_sched *s, int b,
                                        const struct gguf_graph *part,
                                        struct gguf_error *err)
{
    struct gguf_graph one = *part;
    one.capacity = one.n_nodes = 1;
    for (size_t i = 0; i < part->n_nodes; i++) {
        struct gguf_tensor *t = part->nodes[i];
        one.nodes = part->nodes + i;
        if (gg_op_row(t->op)->flags & GG_OP_VIEW)
            continue;
        const uint64_t begin = gg_clock_ns();
        GG_TRY(gguf_backend_compute(s->backends[b], &one, err));
        const struct gguf_profile_node n = {
            .node = t,
            .backend = s->backends[b],
            .begin = begin,
            .end = gg_clock_ns(),
            .flops = gg_graph_flops(t),
            .bytes = gg_graph_bytes(t),
            .n_threads = 1,
            .n_fused = 1,
        };
        s->profile(s->profile_user, &n);
    }
    return GGUF_OK;
}
