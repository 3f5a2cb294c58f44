/* SPDX-License-Identifier: MIT */
/* profile.h - how long each operation takes
 *
 * A program sets a callback, on a session (gguf_session_set_profile) or on a
 * scheduler (gguf_sched_set_profile, sched.h). The callback receives a record
 * of each node that is computed: the node, the backend, its time and its work.
 * Nothing is measured without one.
 *
 *     static void add(void *user, const struct gguf_profile_node *n)
 *     {
 *         uint64_t *ns = user;
 *         ns[n->node->op] += n->end - n->begin;
 *     }
 *     ...
 *     uint64_t ns[GGUF_N_OPS] = { 0 };
 *     st = gguf_session_set_profile(session, add, ns, &err);
 *
 * The CPU backend measures each node without changing how it computes. A node's
 * time is wall time on the first thread of the pool: from the end of the node
 * before it to its own end. For a node that several threads share it ends when
 * all of them are done, so it includes waiting for the last. The times of a
 * graph's nodes add up to the graph's time, except for waking the pool. Nodes
 * that are fused (computed together, some rows at a time: no_fuse in cpu.h)
 * divide their common time in proportion to the time that the first thread
 * spends on each.
 *
 * Other backends compute one node at a time while a profile is set, and a
 * node's time is that of computing it and waiting for it: results stay the
 * same, but the total grows. A backend that measures by itself has the function
 * "set_profile" (gguf_backend_set_profile_fn) in its driver.
 */
#ifndef GGUF_PROFILE_H
#define GGUF_PROFILE_H

#include <gguf/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_session; /* session.h */

/* One computed node. Made by the library: it may grow at its end. */
struct gguf_profile_node {
    const struct gguf_tensor *node; /* operation, name, type, shape, sources;
                                     * valid during the call. A node without a
                                     * name belongs to the layer of the next
                                     * node that has one (gguf_layer_from_name)
                                     * */
    const struct gguf_backend *backend;
    uint64_t begin, end; /* nanoseconds of a clock that only goes forward */
    uint64_t flops;      /* floating-point operations of matrix products,
                          * attention, convolutions and recurrences: two for
                          * each multiplication with its addition; 0 for other
                          * operations */
    uint64_t bytes;      /* bytes of the sources and the result, each counted
                          * once. Of a matrix whose rows are looked up or
                          * stored: those rows; of experts: at most as many as
                          * the ids can name */
    unsigned n_threads;  /* threads that share the node */
    unsigned n_fused;    /* nodes that are computed together; 1: it is alone */
};

/* Called by the thread that computes, after the graph or the part of it is
 * computed, in the order of the nodes. Nodes that need no work, such as views,
 * are left out; so is a part that fails. It must not call the session, the
 * scheduler or the backend. */
typedef void gguf_profile_fn(void *user, const struct gguf_profile_node *n);

/* The function "set_profile" of a driver (gguf_driver_find_function): report
 * the nodes that backend computes from now on; fn NULL: no more. Called while
 * nothing runs. */
typedef void gguf_backend_set_profile_fn(struct gguf_backend *backend,
                                         gguf_profile_fn *fn, void *user);

/* Report the time of each node that the session computes from now on
 * (profile.h): in passes through the layers, for logits and pooled vectors, and
 * for shifts of positions. fn NULL: measure nothing, as at first. Sessions that
 * share a backend must not both have a profile. Fails as work that is under way
 * does. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_set_profile(struct gguf_session *s, gguf_profile_fn *fn,
                         void *user, struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
