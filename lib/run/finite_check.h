/* SPDX-License-Identifier: MIT */
/* finite_check.h - results of operations that are not finite
 *
 * A session that checks looks at the result of each operation, when it is
 * computed, and stops at the first element that is NaN or infinite. Minus
 * infinity is as it should be where a mask made it.
 */
#ifndef GG_RUN_FINITE_CHECK_H
#define GG_RUN_FINITE_CHECK_H

#include "gguf/session_check.h"

struct gg_finite_check {
    bool on;
    struct gguf_session_fault fault; /* op NULL: none */
    void *copy; /* of a result that does not lie in host memory */
    size_t copy_size;

    /* of the graph that is computed */
    struct gguf_session *s;
    const struct gguf_graph *graph;
    gguf_sched_eval_fn *eval; /* the callback that there is besides, or NULL */
    void *user;
    int wanted;            /* its answer for the node at hand */
    struct gguf_error err; /* why it was stopped; status 0: it was not */
};

/* Compute with the scheduler's callback exchanged for one that looks. */
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

/* The number N of layer "blk.N." that node i of a graph belongs to: of its name
 * or, where it has none, of the next one that has; -1: of none. */
int32_t gg_finite_check_layer(const struct gguf_graph *graph, size_t i);

/* Bytes of t on the host: where they are, or copied to *copy, which has *size
 * bytes and grows. GGUF_E_NOMEM, and as reading from a device fails. */
enum gguf_status gg_finite_check_host_bytes(const struct gguf_tensor *t,
                                            const struct gguf_allocator *a,
                                            void **copy, size_t *size,
                                            const void **out,
                                            struct gguf_error *err);

#endif
