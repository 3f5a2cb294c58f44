/* sched.h - one graph, several backends
 *
 * Backends stand in order of preference, one that computes in host memory
 * last. For each graph every node gets a backend: where its weights lie, what
 * a backend can compute, and what neighbours do decide. The graph is cut into
 * splits, runs of nodes on one backend; what a split needs from memory that
 * its backend cannot reach is copied to it first.
 *
 *     gguf_sched_alloc(s, graph, &err);
 *     gguf_tensor_set(input, ...);
 *     gguf_sched_compute(s, graph, &err);
 *     gguf_tensor_get(output, ...);
 *
 * The graph and its tensors are not changed, except that tensors get memory.
 * One thread at a time.
 */
#ifndef GGUF_SCHED_H
#define GGUF_SCHED_H

#include <gguf/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUF_SCHED_MAX_BACKENDS 16

struct gguf_sched;

struct gguf_sched_params {
    size_t struct_size;
    const struct gguf_allocator *allocator;  /* NULL: malloc; kept */
    struct gguf_backend *const *backends;    /* must outlive the scheduler */
    unsigned n_backends;                     /* 1 to 16 */
};
#define GGUF_SCHED_PARAMS_INIT                                                \
    { sizeof(struct gguf_sched_params), NULL, NULL, 0 }

/* GGUF_E_INVALID (no backend, too many, the last is not one of host memory),
 * GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_create(struct gguf_sched **out,
                  const struct gguf_sched_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Tensors that it placed lose their memory. NULL is fine. Since: 0.1 */
GGUF_API void gguf_sched_destroy(struct gguf_sched *s);

/* Assign, split and plan graph, the worst case that will come, and allocate;
 * tensors are not placed. GGUF_E_OP (a node that no backend can compute, with
 * its shapes), GGUF_E_NOMEM, GGUF_E_LIMIT. Since: 0.1 */
GGUF_API enum gguf_status gguf_sched_reserve(struct gguf_sched *s,
                                             const struct gguf_graph *graph,
                                             struct gguf_error *err);

/* The same and place the tensors: set inputs after it. Since: 0.1 */
GGUF_API enum gguf_status gguf_sched_alloc(struct gguf_sched *s,
                                           struct gguf_graph *graph,
                                           struct gguf_error *err);

/* Compute graph, the one of the last alloc (else it is allocated first); done
 * when it returns. Failures of copies and backends; GGUF_E_CANCELLED
 * (callback). Since: 0.1 */
GGUF_API enum gguf_status gguf_sched_compute(struct gguf_sched *s,
                                             struct gguf_graph *graph,
                                             struct gguf_error *err);

/* Forget pins and what was allocated for; buffers stay. Since: 0.1 */
GGUF_API void gguf_sched_reset(struct gguf_sched *s);

/* Compute t on backend i, also in graphs to come, until a reset.
 * GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status gguf_sched_pin(struct gguf_sched *s,
                                         const struct gguf_tensor *t,
                                         unsigned i, struct gguf_error *err);

/* Asked for each node with done false: not 0 if it is wanted. A wanted node is
 * handed over with done true when it is computed: 0 stops the computation. */
typedef int gguf_sched_eval_fn(void *user, struct gguf_tensor *t, bool done);
/* fn NULL: none. Since: 0.1 */
GGUF_API void gguf_sched_set_eval(struct gguf_sched *s, gguf_sched_eval_fn *fn,
                                  void *user);

/* Of the last reserve or alloc. Since: 0.1 */
GGUF_API size_t gguf_sched_n_splits(const struct gguf_sched *s);
GGUF_API size_t gguf_sched_n_copies(const struct gguf_sched *s);
/* Backend number of a tensor of that graph, or -1. Since: 0.1 */
GGUF_API int gguf_sched_backend_of(const struct gguf_sched *s,
                                   const struct gguf_tensor *t);
/* Bytes of the compute buffer of backend i. Since: 0.1 */
GGUF_API size_t gguf_sched_size(const struct gguf_sched *s, unsigned i);
/* Splits, their copies and nodes, a line each. Since: 0.1 */
GGUF_API enum gguf_status gguf_sched_dump(const struct gguf_sched *s,
                                          gguf_write_fn *write, void *user,
                                          struct gguf_error *err);

#ifdef __cplusplus
}
#endif
#endif
