/* SPDX-License-Identifier: MIT */
/* sched.h - the scheduler: one graph on several backends
 *
 * A scheduler has backends in the order of preference, and assigns each node of
 * a graph to one of them: by the memory of the node's weights, by the
 * operations that the backends support, and by the backends of neighbouring
 * nodes. It cuts the graph into splits, runs of nodes on one backend. Tensors
 * that a split reads and its backend does not reach are copied to the backend
 * before the split, once for all splits of that backend.
 *
 *     1  gguf_sched_create()
 *     2  gguf_sched_reserve()     optional: with the largest graph
 *     3  gguf_sched_alloc()       gives memory to the tensors of a graph
 *     4  gguf_tensor_set()        inputs
 *     5  gguf_sched_compute()
 *     6  gguf_tensor_get()        outputs; then 3 again
 *     7  gguf_sched_destroy()
 *
 * Pipelining. With n_copies above 1, and asynchronous backends that have events
 * and memory of their own, computations of one graph overlap: while one backend
 * works on its splits of the second computation, another works on its splits of
 * the first.
 *
 *     st = gguf_tensor_set(input, first...);
 *     st = gguf_sched_compute_async(s, graph, &err);
 *     st = gguf_backend_get_async(last, output, first_result, ...);
 *     st = gguf_tensor_set(input, second...);     allowed: it was copied
 *     st = gguf_sched_compute_async(s, graph, &err);
 *     st = gguf_backend_get_async(last, output, second_result, ...);
 *     st = gguf_sched_sync(s, &err);
 *
 * The scheduler changes nothing in the graph and its tensors but their memory.
 *
 * Threads: one at a time.
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

    /* Source of host memory. NULL: malloc. It must outlive the scheduler. */
    const struct gguf_allocator *allocator;

    /* n_backends backends in the order of preference. They must outlive the
     * scheduler; the array need not. The last one must compute in host memory
     * and takes the nodes that no other backend takes. */
    struct gguf_backend *const *backends;

    /* Number of backends, 1 to GGUF_SCHED_MAX_BACKENDS. */
    unsigned n_backends;

    /* Number of computations that may overlap: copies of the splits' inputs,
     * each with memory of its own. At most GGUF_SCHED_MAX_COPIES. 0: 1. */
    unsigned n_copies;

    /* Scheduler of the same backends whose memory this one shares: computing or
     * allocating with one makes the results of the other undefined. It must
     * outlive this one, and neither may be called while the other computes.
     * NULL: memory of its own. */
    struct gguf_sched *memory_of;

    /* Allocate no memory for tensors: for a program that only wants
     * gguf_sched_reserve() and gguf_sched_buffer_size(). */
    bool measure;

    /* Keep operations where their weights lie. If false, a preferred backend
     * gets an operation that it wants (gguf_device_offloads_op()) although the
     * weights have to be copied to it. */
    bool no_offload;
};
#define GGUF_SCHED_PARAMS_INIT GGUF_INIT(struct gguf_sched_params)

/* Create a scheduler.
 *
 * out      Receives the scheduler. NULL after a failure.
 * params   Backends and how to use them.
 *
 * Free *out with gguf_sched_destroy().
 *
 * GGUF_OK          *out is ready.
 * GGUF_E_INVALID   The list has no backend or too many, one is NULL, the last
 *                  does not compute in host memory, or n_copies is too large.
 * GGUF_E_NOMEM     Not enough memory for the scheduler.
 * GGUF_E_IO        The system could not make an event.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_create(struct gguf_sched **out,
                  const struct gguf_sched_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Wait for the work of a scheduler and free it. Tensors that it placed must not
 * be used any more. NULL is ignored. Since: 0.1 */
GGUF_API void gguf_sched_destroy(struct gguf_sched *s);

/* --- memory --------------------------------------------------------------- */

/* Assign, split and plan a graph, and allocate memory for it. Its tensors are
 * not placed.
 *
 * graph   The largest graph that will come, or one of its shape.
 *
 * GGUF_OK          Every buffer is large enough.
 * GGUF_E_OP        No backend can compute a node; the message has its shapes.
 * GGUF_E_NOMEM     A device or the process has too little memory.
 * GGUF_E_LIMIT     A buffer would be larger than its type allows.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_reserve(struct gguf_sched *s, const struct gguf_graph *graph,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Assign, split and plan a graph, and give memory to its tensors. Waits for
 * computations that were started before.
 *
 * graph   The graph. The data of its tensors is undefined afterwards: set the
 *         inputs.
 *
 * A graph that is like the last one (same operations, shapes, sources, flags
 * and memory, though of other tensors) is not assigned and planned again: that
 * takes one pass over its nodes.
 *
 * GGUF_OK          Every tensor has memory.
 * GGUF_E_OP        No backend can compute a node; the message has its shapes.
 * GGUF_E_NOMEM     A device or the process has too little memory.
 * GGUF_E_LIMIT     A buffer would be larger than its type allows.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_alloc(struct gguf_sched *s, struct gguf_graph *graph,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* --- computing ------------------------------------------------------------ */

/* Compute a graph and wait.
 *
 * graph   The graph of the last gguf_sched_alloc(), with the same nodes and
 *         memory. Any other graph is allocated first, with undefined inputs.
 *
 * GGUF_OK            Every node is computed.
 * GGUF_E_CANCELLED   An evaluation or abort callback stopped the computation.
 *
 * Also the failures of gguf_sched_alloc(), of copies and of the backends
 * (gguf_backend_compute()).
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_compute(struct gguf_sched *s, struct gguf_graph *graph,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Start to compute a graph.
 *
 * graph   The graph of the last gguf_sched_alloc(), with the same nodes and
 *         memory. Any other graph is allocated first, with undefined inputs.
 *
 * When the function returns, inputs (leaves with GGUF_TENSOR_INPUT) in the
 * memory of the last backend may be set again. Results are ready after
 * gguf_sched_sync(), and for work that is started later on the backend that
 * computes them. With an evaluation callback the computation is complete when
 * the function returns.
 *
 * GGUF_OK            The work is started, or done.
 * GGUF_E_CANCELLED   An evaluation callback stopped the computation.
 *
 * Also the failures of gguf_sched_alloc(), of copies, and of
 * gguf_backend_compute_async().
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_compute_async(struct gguf_sched *s, struct gguf_graph *graph,
                         struct gguf_error *err) GGUF_MUST_CHECK;

/* Wait for all backends. Returns GGUF_OK, or the first failure of the work that
 * was started. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_sync(struct gguf_sched *s, struct gguf_error *err) GGUF_MUST_CHECK;

/* Wait for all backends, and forget the last graph and all pins. Buffers stay.
 * Returns GGUF_OK, or the first failure of the work that was started; graph and
 * pins are forgotten in any case. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_reset(struct gguf_sched *s, struct gguf_error *err) GGUF_MUST_CHECK;

/* Pin a tensor to a backend, in this graph and in later ones, until
 * gguf_sched_reset().
 *
 * t   The tensor. Another tensor that is made at its address later is not
 *     pinned.
 * i   Index of the backend.
 *
 * GGUF_OK          Backend i computes t.
 * GGUF_E_INVALID   i is out of range.
 * GGUF_E_NOMEM     Not enough memory for the pin.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_pin(struct gguf_sched *s, struct gguf_tensor *t, unsigned i,
               struct gguf_error *err) GGUF_MUST_CHECK;

/* --- looking at nodes ----------------------------------------------------- */

/* Evaluation callback: looks at the results of nodes while a graph is computed.
 * Neither function may call the scheduler or its backends. Later versions add
 * no members to this struct. */
struct gguf_sched_eval {
    /* Called for each node before it is computed. Returns true if the program
     * wants to look at its result. NULL: no evaluation callback. */
    bool (*wants)(void *user, const struct gguf_tensor *t);

    /* Called when a wanted node is computed; its data can be read. Returns true
     * to stop the computation with GGUF_E_CANCELLED. Required with wants. */
    bool (*see)(void *user, struct gguf_tensor *t);

    /* Passed to both. */
    void *user;
};

/* Wait for all backends, and set the evaluation callback of later computations.
 *
 * eval   The callback. With wants NULL: none, as at first.
 *
 * GGUF_OK          The callback is set.
 * GGUF_E_INVALID   eval has wants and not see. The callback is as it was.
 *
 * Otherwise the first failure of the work that was started before; the callback
 * is set.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_set_eval(struct gguf_sched *s, struct gguf_sched_eval eval,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Wait for all backends, and set the callback that receives the time of each
 * node from now on (profile.h).
 *
 * profile   The callback. With fn NULL: measure nothing.
 *
 * The callback is set on the backends as well: only one scheduler that uses a
 * backend may have a profile at a time. With an evaluation callback, nodes of
 * backends that do not measure by themselves are not reported.
 *
 * Returns GGUF_OK, or the first failure of the work that was started before;
 * the callback is set in any case. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_set_profile(struct gguf_sched *s,
                       struct gguf_profile_callback profile,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* --- queries -------------------------------------------------------------- */

/* Number of backends. Since: 0.1 */
GGUF_API unsigned gguf_sched_n_backends(const struct gguf_sched *s);

/* Backend i, in the order of preference. NULL if i is out of range.
 * Since: 0.1 */
GGUF_API struct gguf_backend *gguf_sched_backend(const struct gguf_sched *s,
                                                 unsigned i);

/* Number of splits of the last graph that was reserved or allocated.
 * Since: 0.1 */
GGUF_API size_t gguf_sched_n_splits(const struct gguf_sched *s);

/* Number of tensors that the last graph's splits copy between backends.
 * Since: 0.1 */
GGUF_API size_t gguf_sched_n_copies(const struct gguf_sched *s);

/* Number of graphs that were assigned so far: to find graphs that are assigned
 * again and again. Since: 0.1 */
GGUF_API unsigned gguf_sched_n_plans(const struct gguf_sched *s);

/* Index of the backend of a tensor of the last graph that was reserved or
 * allocated. -1 for a tensor that is not in it, and if the graph has changed
 * since. Since: 0.1 */
GGUF_API int32_t gguf_sched_find_backend(const struct gguf_sched *s,
                                         const struct gguf_tensor *t);

/* Bytes of backend i's buffer for results. Backends with the same buffer type
 * share one, which counts for the first of them: 0 for the others.
 * Since: 0.1 */
GGUF_API size_t gguf_sched_buffer_size(const struct gguf_sched *s, unsigned i);

/* Write the splits of the last graph as text, one line for each split, copy and
 * node.
 *
 * write   Receives the text.
 *
 * GGUF_OK            Everything was written.
 * GGUF_E_CANCELLED   write stopped the dump.
 * GGUF_E_INVALID     write has no function, or the graph has changed since.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_dump(const struct gguf_sched *s, struct gguf_write_callback write,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Write the memory of the last graph as text: one line for each backend's
 * buffer, then one for each leaf, node and copy with its bytes in a buffer.
 *
 * write   Receives the text.
 *
 * GGUF_OK            Everything was written.
 * GGUF_E_CANCELLED   write stopped the dump.
 * GGUF_E_INVALID     write has no function, or the graph has changed since.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_sched_dump_plan(const struct gguf_sched *s,
                     struct gguf_write_callback write,
                     struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
