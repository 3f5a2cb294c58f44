/* SPDX-License-Identifier: MIT */
/* backend.h - backends: computing graphs on a device
 *
 * A backend is a stream of work on a device: graphs and transfers run in the
 * order in which they are started.
 *
 *     struct gguf_cpu_params p = GGUF_CPU_PARAMS_INIT;
 *     struct gguf_backend *cpu;
 *     struct gguf_galloc *mem;
 *     st = gguf_cpu_backend_create(&cpu, &p, &err);           cpu.h
 *     st = gguf_galloc_create(&mem, NULL, gguf_backend_buft(cpu), &err);
 *     st = gguf_galloc_alloc(mem, graph, &err);
 *     st = gguf_tensor_set(x, values, 0, gguf_tensor_size(x), &err);
 *     st = gguf_backend_compute(cpu, graph, &err);
 *     st = gguf_tensor_get(y, result, 0, gguf_tensor_size(y), &err);
 *
 * Destroy in this order: plans; graph allocators and buffers; events; backends;
 * drivers or the registry.
 *
 * Asynchronous work. On a device with GGUF_DEVICE_CAP_ASYNC, functions whose
 * names end in _async return when the work is queued. The graph, the tensors,
 * their memory and the program's bytes must stay until a sync. If queued work
 * fails, the rest of the queue is dropped, and the next sync returns the
 * failure. On other devices the same functions do the work before they return.
 *
 * Threads: a backend, its plans and the graphs that it computes belong to one
 * thread at a time. Events may be used from any thread.
 */
#ifndef GGUF_BACKEND_H
#define GGUF_BACKEND_H

#include <gguf/device.h>
#include <gguf/galloc.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_event;
struct gguf_plan;

/* --- backends ------------------------------------------------------------- */

/* Wait for the work of a backend and free it. NULL is ignored. Since: 0.1 */
GGUF_API void gguf_backend_destroy(struct gguf_backend *backend);

/* Name of a backend for people, such as the name of its device. It lives as
 * long as the backend. Since: 0.1 */
GGUF_API const char *gguf_backend_name(const struct gguf_backend *backend);

/* Number that identifies the implementation: equal for all backends of one kind
 * of driver, in every process, whatever the backends are called. Since: 0.1 */
GGUF_API uint64_t gguf_backend_id(const struct gguf_backend *backend);

/* Device of a backend. Since: 0.1 */
GGUF_API struct gguf_device *
gguf_backend_device(const struct gguf_backend *backend);

/* Buffer type in which the backend's device prefers to compute. Since: 0.1 */
GGUF_API const struct gguf_buft *
gguf_backend_buft(const struct gguf_backend *backend);

/* True if the backend's device can compute t (gguf_device_supports_op()).
 * Since: 0.1 */
GGUF_API bool gguf_backend_supports_op(const struct gguf_backend *backend,
                                       const struct gguf_tensor *t);

/* True if the backend's device reads and writes buffers of that type
 * (gguf_device_supports_buft()). Since: 0.1 */
GGUF_API bool gguf_backend_supports_buft(const struct gguf_backend *backend,
                                         const struct gguf_buft *buft);

/* --- computing ------------------------------------------------------------ */

/* Compute every node of a graph, in order, and wait.
 *
 * backend   The backend. Work that was started on it before is complete, too,
 *           when the function returns.
 * graph     A graph whose tensors all have memory that the backend reaches.
 *
 * After a failure the results are undefined.
 *
 * GGUF_OK            Every node is computed.
 * GGUF_E_OP          The backend cannot compute a node. Nothing was computed.
 * GGUF_E_INVALID     A tensor has no memory (nothing was computed), or an index
 *                    in the data is out of range.
 * GGUF_E_CANCELLED   An abort callback stopped the computation.
 * GGUF_E_NOMEM       Not enough memory for scratch.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_compute(struct gguf_backend *backend, struct gguf_graph *graph,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Start to compute a graph.
 *
 * backend   The backend.
 * graph     A graph whose tensors all have memory that the backend reaches. It
 *           must stay as it is until gguf_backend_sync().
 *
 * GGUF_OK          The work is queued, or done. gguf_backend_sync() returns
 *                  failures of the computation.
 * GGUF_E_OP        The backend cannot compute a node. Nothing is queued.
 * GGUF_E_INVALID   A tensor has no memory. Nothing is queued.
 *
 * A synchronous backend returns the failures of gguf_backend_compute().
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_compute_async(struct gguf_backend *backend,
                           struct gguf_graph *graph,
                           struct gguf_error *err) GGUF_MUST_CHECK;

/* Wait until all work that was started on a backend is done. Returns GGUF_OK,
 * or the first failure of that work. Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_sync(struct gguf_backend *backend,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* --- transfers ------------------------------------------------------------ */

/* Start to copy bytes from the program's memory into a tensor, after the work
 * that was started on the backend before.
 *
 * backend   The backend.
 * t         A tensor in memory that the backend reaches.
 * src       size bytes, which must stay until gguf_backend_sync().
 * off       First byte to write, counted from the tensor's first element.
 * size      Bytes; off + size is at most gguf_tensor_size(t).
 *
 * GGUF_OK          The copy is queued, or done.
 * GGUF_E_INVALID   t has no memory, or the range is outside of it.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_set_async(struct gguf_backend *backend, struct gguf_tensor *t,
                       const void *src, uint64_t off, uint64_t size,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Start to copy bytes of a tensor to the program's memory, after the work that
 * was started on the backend before.
 *
 * backend   The backend.
 * t         A tensor in memory that the backend reaches.
 * dst       Receives size bytes. They are there after gguf_backend_sync().
 * off       First byte to read, counted from the tensor's first element.
 * size      Bytes; off + size is at most gguf_tensor_size(t).
 *
 * GGUF_OK          The copy is queued, or done.
 * GGUF_E_INVALID   t has no memory, or the range is outside of it.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_get_async(struct gguf_backend *backend,
                       const struct gguf_tensor *t, void *dst, uint64_t off,
                       uint64_t size, struct gguf_error *err) GGUF_MUST_CHECK;

/* Start to copy the data of a tensor from one backend's memory to another's, in
 * the order of both: after the work that was started on either before, and
 * before the work that is started on either later.
 *
 * from   Backend whose work made src.
 * to     Backend that uses dst next. It may be the same as from.
 * src    Tensor to read.
 * dst    Tensor to write, of the same layout.
 *
 * GGUF_OK          The copy is queued, or done.
 * GGUF_E_SHAPE     The types, dimensions or strides differ.
 * GGUF_E_INVALID   One of the tensors has no memory.
 * GGUF_E_NOMEM     Not enough memory for an event or for the way through host
 *                  memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_copy_async(struct gguf_backend *from, struct gguf_backend *to,
                        const struct gguf_tensor *src, struct gguf_tensor *dst,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* --- events --------------------------------------------------------------- */

/* An event marks a point in the work of a backend. It is past when the backend
 * has reached the point where the event was last recorded. An event that was
 * never recorded is past. */

/* Create an event.
 *
 * out         Receives the event. NULL after a failure.
 * device      Device of the backends that will record it.
 * allocator   Source of memory. NULL: malloc. It must outlive the event.
 *
 * Free *out with gguf_event_destroy().
 *
 * GGUF_OK              *out is ready.
 * GGUF_E_UNSUPPORTED   The device has no GGUF_DEVICE_CAP_EVENTS.
 * GGUF_E_NOMEM         Not enough memory for the event.
 * GGUF_E_IO            The system could not make an event.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_event_create(struct gguf_event **out, struct gguf_device *device,
                  const struct gguf_allocator *allocator,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Wait until an event is past and free it. NULL is ignored. Since: 0.1 */
GGUF_API void gguf_event_destroy(struct gguf_event *event);

/* Record an event after all work that was started on a backend so far.
 *
 * event     The event.
 * backend   A backend of the event's device.
 *
 * GGUF_OK          The event is recorded.
 * GGUF_E_INVALID   The backend belongs to another device.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_event_record(struct gguf_event *event, struct gguf_backend *backend,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Let a backend wait for an event: work that is started on the backend from now
 * on runs after the event, as it is recorded now, is past.
 *
 * event     The event.
 * backend   A backend of any device. If it is synchronous, the calling thread
 *           waits.
 *
 * Returns GGUF_OK, or a failure of the device. Since: 0.1 */
GGUF_API enum gguf_status
gguf_event_wait(struct gguf_event *event, struct gguf_backend *backend,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Let the calling thread wait until an event is past. Returns GGUF_OK, or a
 * failure to wait. Failures of the work before the event are returned by
 * gguf_backend_sync(). Since: 0.1 */
GGUF_API enum gguf_status
gguf_event_sync(struct gguf_event *event,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* --- plans ---------------------------------------------------------------- */

/* A plan is a graph that is prepared once and computed many times. */

/* Create a plan of a graph.
 *
 * out       Receives the plan. NULL after a failure.
 * backend   Backend to compute on. It must outlive the plan.
 * graph     Graph to compute. It must outlive the plan; neither the graph nor
 *           the addresses of its tensors' data may change.
 *
 * Free *out with gguf_plan_destroy().
 *
 * GGUF_OK          *out is ready.
 * GGUF_E_OP        The backend cannot compute a node.
 * GGUF_E_INVALID   A tensor has no memory.
 * GGUF_E_NOMEM     Not enough memory for the plan or for scratch.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_plan_create(struct gguf_plan **out, struct gguf_backend *backend,
                 struct gguf_graph *graph,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Compute the graph of a plan and wait.
 *
 * GGUF_OK            Every node is computed.
 * GGUF_E_INVALID     The graph has changed since the plan was made
 *                    (gguf_graph_generation()), or an index in the data is out
 *                    of range.
 * GGUF_E_CANCELLED   An abort callback stopped the computation.
 * GGUF_E_NOMEM       Not enough memory for scratch.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_plan_compute(struct gguf_plan *plan,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Start to compute the graph of a plan.
 *
 * GGUF_OK          The work is queued, or done. gguf_backend_sync() returns
 *                  failures of the computation.
 * GGUF_E_INVALID   The graph has changed since the plan was made
 *                  (gguf_graph_generation()).
 *
 * A synchronous backend returns the failures of gguf_plan_compute().
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_plan_compute_async(struct gguf_plan *plan,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Number of threads that compute node i of the graph. 0 if the node is a view,
 * the backend does not know, or i is out of range. Since: 0.1 */
GGUF_API unsigned gguf_plan_node_threads(const struct gguf_plan *plan,
                                         size_t i);

/* Largest number of threads that compute a node of the graph. 0 if the backend
 * does not know. Since: 0.1 */
GGUF_API unsigned gguf_plan_n_threads(const struct gguf_plan *plan);

/* Bytes of scratch memory that the computation uses besides the memory of
 * tensors. 0 if the backend does not know. Since: 0.1 */
GGUF_API size_t gguf_plan_work_size(const struct gguf_plan *plan);

/* Free a plan. No computation of it may be queued. NULL is ignored.
 * Since: 0.1 */
GGUF_API void gguf_plan_destroy(struct gguf_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
