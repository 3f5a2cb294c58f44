/* SPDX-License-Identifier: MIT */
/* profile.h - the time of each operation
 *
 * A program sets a callback on a session (gguf_session_set_profile(),
 * session_timings.h) or on a scheduler (gguf_sched_set_profile(), sched.h). The
 * callback receives a record of each node that is computed: the node, its
 * backend, its time and its work. Without a callback nothing is measured.
 *
 *     static void add_time(void *user, const struct gguf_profile_node *n)
 *     {
 *         uint64_t *ns = user;
 *         ns[n->node->op] += n->end - n->begin;
 *     }
 *     ...
 *     uint64_t ns[GGUF_N_OPS] = { 0 };
 *     struct gguf_profile_callback profile = { add_time, ns };
 *     st = gguf_session_set_profile(session, profile, &err);
 *
 * The CPU backend measures each node without changing how it computes. The time
 * of a node is wall time on the first thread of the pool, from the end of the
 * node before to its own end. For a node that several threads share, it ends
 * when all of them are done: waiting for the last one is included. The times of
 * a graph's nodes add up to the time of the graph, except for waking the pool.
 * Nodes that are fused (computed together, some rows at a time: no_fuse in
 * cpu.h) divide their common time in proportion to the time that the first
 * thread spends on each.
 *
 * Other backends compute one node at a time while a profile is set. The time of
 * a node is then that of computing it and waiting for it: results stay the
 * same, but the total grows. A backend that measures by itself has the function
 * "set_profile" (gguf_backend_set_profile_fn) in its driver.
 */
#ifndef GGUF_PROFILE_H
#define GGUF_PROFILE_H

#include <gguf/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One computed node. Only the library makes it; later versions may add members
 * at its end. */
struct gguf_profile_node {
    /* The node: its operation, name, type, shape and sources. Valid during the
     * call. A node without a name belongs to the layer of the next node that
     * has one (gguf_layer_from_name()). */
    const struct gguf_tensor *node;

    /* Backend that computed the node. */
    const struct gguf_backend *backend;

    /* Start and end of the node, in nanoseconds of a monotonic clock. */
    uint64_t begin, end;

    /* Floating-point operations of matrix products, attention, convolutions and
     * recurrences, two for each multiplication with its addition. 0 for other
     * operations. */
    uint64_t flops;

    /* Bytes of the sources and the result, each counted once. A matrix whose
     * rows are looked up or stored counts with those rows; the experts of
     * GGUF_OP_MATMUL_ID count with one matrix for each id, at most all. */
    uint64_t bytes;

    unsigned n_threads; /* threads that share the node */
    unsigned n_fused;   /* nodes that are computed together; 1: not fused */
};

/* Receive the time of a node.
 *
 * Called by the thread that computes, in the order of the nodes, after the
 * graph or a part of it is computed. Views and other nodes without work are
 * left out, and so are all nodes of a part that fails. The function must not
 * call the session, the scheduler or the backend. */
typedef void gguf_profile_fn(void *user, const struct gguf_profile_node *n);

/* Consumer of times. Later versions add no members to this struct. */
struct gguf_profile_callback {
    gguf_profile_fn *fn; /* NULL: measure nothing */
    void *user;          /* passed to fn */
};

/* Type of the driver function "set_profile" (gguf_driver_find_function()):
 * report the nodes that backend computes from now on. Called while nothing
 * runs. */
typedef void gguf_backend_set_profile_fn(struct gguf_backend *backend,
                                         struct gguf_profile_callback profile);

#ifdef __cplusplus
}
#endif
#endif
