/* SPDX-License-Identifier: MIT */
/* sched.h - one graph, several backends
 *
 * Backends stand in order of preference, one that computes in host memory
 * last. Each node of a graph gets a backend, depending on where its weights
 * lie, what the backends can compute and which backends its neighbours have.
 * The graph is cut into splits, runs of nodes on one backend; what a split
 * needs from memory that its backend cannot reach is copied to it first, once
 * for all of its splits.
 *
 *     gguf_sched_alloc(s, graph, &err);
 *     gguf_tensor_set(input, ...);
 *     gguf_sched_compute(s, graph, &err);
 *     gguf_tensor_get(output, ...);
 *
 * With n_copies > 1 and backends that are asynchronous, have events and memory
 * of their own, computations of one graph overlap: while one backend works on
 * its splits of the first, another does its own of the second.
 *
 *     gguf_tensor_set(input, first...);
 *     gguf_sched_compute_async(s, graph, &err);
 *     gguf_backend_get_async(last, output, first_result, ...);
 *     gguf_tensor_set(input, second...);       inputs have been copied
 *     gguf_sched_compute_async(s, graph, &err);
 *     gguf_backend_get_async(last, output, second_result, ...);
 *     gguf_sched_sync(s, &err);
 *
 * The graph and its tensors are not changed, except that tensors get memory.
 * One thread at a time.
 */
#ifndef GGUF_SCHED_H
#define GGUF_SCHED_H

#include <gguf/backend.h>
#include <gguf/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUF_SCHED_MAX_BACKENDS 16
#define GGUF_SCHED_MAX_COPIES   8

struct gguf_sched;

struct gguf_sched_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    struct gguf_backend *const *backends;   /* kept: must outlive the
                                             * scheduler */
    unsigned n_backends;                    /* 1 to 16 */
    unsigned n_copies; /* copies of a split's inputs, each with memory of its
                          own: how many computations may be under way; 1 to
                          8 */
    struct gguf_sched *memory_of; /* NULL, or a scheduler of the same backends
                          whose memory this one uses too: the results of one
                          are lost when the other allocates or computes. It
                          must outlive this one, and neither may be called
                          while the other computes */
    bool measure;    /* allocate nothing: only to reserve and ask for sizes */
    bool no_offload; /* operations stay where their weights lie: a preferred
                      * backend gets none whose weights it would have to copy,
                      * even if it wants it (gguf_device_offloads_op) */
};
#define GGUF_SCHED_PARAMS_INIT                                                \
    {                                                                         \
        sizeof(struct gguf_sched_params), NULL, NULL, 0, 1, NULL, false,      \
            false                                                             \
    }

/* GGUF_E_INVALID (no backends, too many, one of them is NULL, the last does not
 * compute in host memory, number of copies), GGUF_E_NOMEM, GGUF_E_IO.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_create(struct gguf_sched **out,
                  const struct gguf_sched_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Waits for what is under way. Tensors that it placed lose their memory. NULL
 * is fine. Since: 0.1 */
GGUF_API void gguf_sched_destroy(struct gguf_sched *s);

/* Assign, split and plan graph, the worst case that will come, and allocate;
 * tensors are not placed. GGUF_E_OP (a node that no backend can compute, with
 * its shapes), GGUF_E_NOMEM, GGUF_E_LIMIT. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_reserve(struct gguf_sched *s, const struct gguf_graph *graph,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* The same and place the tensors: set inputs after it. Waits for what is under
 * way. A graph like the last one (same operations, shapes, sources, flags,
 * memory; its tensors may be others) is not assigned and planned again: that
 * costs a walk over its nodes. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_alloc(struct gguf_sched *s, struct gguf_graph *graph,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Compute graph, which must be the one of the last alloc with unchanged nodes
 * and memory (else it is allocated first, and inputs in the scheduler's memory
 * are not set); complete when it returns. Failures of copies and backends;
 * GGUF_E_CANCELLED (callback). Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_compute(struct gguf_sched *s, struct gguf_graph *graph,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Only start it. When it returns, inputs (leaves with GGUF_TENSOR_INPUT) that
 * lie with the last backend may be set again. Results are there after a sync,
 * and for later work on the backend that computes them. With an evaluation
 * callback it is complete when it returns. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_compute_async(struct gguf_sched *s, struct gguf_graph *graph,
                         struct gguf_error *err) GGUF_MUST_CHECK;
/* Wait for all backends; returns the first failure. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_sync(struct gguf_sched *s, struct gguf_error *err) GGUF_MUST_CHECK;

/* Wait, and forget the pins and the last graph; buffers stay. Returns the first
 * failure of what was waited for: all is forgotten then, too. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_reset(struct gguf_sched *s, struct gguf_error *err) GGUF_MUST_CHECK;

/* Pin t: compute it on backend i, in later graphs too, until a reset. Another
 * tensor that comes to lie at its address is not pinned. Sets t->pin.
 * GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_pin(struct gguf_sched *s, struct gguf_tensor *t, unsigned i,
               struct gguf_error *err) GGUF_MUST_CHECK;

/* Called for each node with done false: returns whether the caller wants to
 * see it. Called again with done true when a wanted node is computed: 0 stops
 * the computation. */
typedef int gguf_sched_eval_fn(void *user, struct gguf_tensor *t, bool done);
/* Wait, and set the callback; fn NULL: none. Returns the first failure of what
 * was waited for: fn is set then, too. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_set_eval(struct gguf_sched *s, gguf_sched_eval_fn *fn, void *user,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Wait, and set the callback that receives the time of each node from now on
 * (profile.h); fn NULL: none. It is set on the backends, which only one
 * scheduler with a profile may use at a time. With an evaluation callback,
 * nodes of backends that do not measure by themselves are left out. Returns the
 * first failure of what was waited for: fn is set then, too. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_set_profile(struct gguf_sched *s, gguf_profile_fn *fn, void *user,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* The backends, in order of preference; NULL if i is out of range.
 * Since: 0.1 */
GGUF_API unsigned gguf_sched_n_backends(const struct gguf_sched *s);
GGUF_API struct gguf_backend *gguf_sched_backend(const struct gguf_sched *s,
                                                 unsigned i);
/* Number of splits after the last reserve or alloc. The functions below know
 * the tensors of its graph as long as that is not changed. Since: 0.1 */
GGUF_API size_t gguf_sched_n_splits(const struct gguf_sched *s);
GGUF_API size_t gguf_sched_n_copies(const struct gguf_sched *s);
/* How many times graphs were assigned so far. Since: 0.1 */
GGUF_API unsigned gguf_sched_n_plans(const struct gguf_sched *s);
/* Backend number of a tensor of that graph, or -1. Since: 0.1 */
GGUF_API int gguf_sched_find_backend(const struct gguf_sched *s,
                                     const struct gguf_tensor *t);
/* Bytes of the compute buffer of backend i. Backends of one type of buffer
 * share it: 0 for all but the first. Since: 0.1 */
GGUF_API size_t gguf_sched_buffer_size(const struct gguf_sched *s, unsigned i);
/* Splits, their copies and nodes, a line each. write is required.
 * GGUF_E_CANCELLED if write stopped, GGUF_E_INVALID if the graph has changed
 * or write is NULL. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_dump(const struct gguf_sched *s, gguf_write_fn *write, void *user,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Where the tensors of the last alloc lie: each backend's buffer, then each
 * leaf, node and copy with its bytes in one of them. write is required. Fails
 * as above. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_dump_plan(const struct gguf_sched *s, gguf_write_fn *write,
                     void *user, struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
