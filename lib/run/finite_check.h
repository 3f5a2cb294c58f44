/* SPDX-License-Identifier: MIT */
/* finite_check.h - find results of operations that are not finite
 *
 * With the check on, the result of each operation is examined after it is
 * computed. The first element that is NaN or infinite stops the computation.
 * Minus infinity from a mask is allowed. */
#ifndef GG_RUN_FINITE_CHECK_H
#define GG_RUN_FINITE_CHECK_H

#include "gguf/session_check.h"
#include "sched/sched_int.h"

struct gg_finite_check {
    bool on;
    /* result that was found; op NULL: nothing */
    struct gguf_session_fault fault;
    void *copy; /* scratch for a result that is not in host memory */
    size_t copy_size;

    /* the graph that is being computed */
    struct gguf_session *s;
    const struct gguf_graph *graph;
    struct gg_sched_watch
        watch; /* the scheduler's own watch; ask NULL: none */
    enum gg_sched_answer answer; /* its answer about the current node */
    struct gguf_error err; /* reason for stopping; status 0: not stopped */
};

/* Compute a graph by calling compute, with the scheduler's callback replaced
 * by one that checks. */
typedef enum gguf_status gg_finite_check_compute_fn(struct gguf_session *s,
                                                    void *user,
                                                    struct gguf_error *err);
enum gguf_status gg_finite_check_compute(struct gguf_session *s,
                                         struct gguf_sched *sched,
                                         const struct gguf_graph *graph,
                                         gg_finite_check_compute_fn *compute,
                                         void *user, struct gguf_error *err);
void gg_finite_check_fini(struct gg_finite_check *l,
                          const struct gguf_allocator *a);

/* Number N of the layer "blk.N." to which node i of a graph belongs, by its
 * name or by that of the next node with a name; -1: no layer. */
int32_t gg_finite_check_layer(const struct gguf_graph *graph, size_t i);

/* Bytes of t in host memory: where they lie, or copied to *copy, which has
 * *size bytes and grows. GGUF_E_NOMEM. Also fails as reading from a device
 * does. */
enum gguf_status gg_finite_check_host_bytes(const struct gguf_tensor *t,
                                            const struct gguf_allocator *a,
                                            void **copy, size_t *size,
                                            const void **out,
                                            struct gguf_error *err);

#endif
