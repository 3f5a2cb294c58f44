/* SPDX-License-Identifier: MIT */
/* stream.h - a queue of calls with a thread that runs them
 *
 * The asynchronous part of a backend in host memory: everything that its tables
 * need but compute. One thread at a time queues calls; they run one after
 * another. After a call has failed the rest of the queue is dropped, except for
 * events: they are still reached, so that no thread waits forever.
 */
#ifndef GG_BACKEND_STREAM_H
#define GG_BACKEND_STREAM_H

#include "backend/backend_int.h"

struct gg_stream;

enum { GG_STREAM_ARG = 48 }; /* most bytes of a call's argument */

/* Call in the queue, with a copy of its argument. */
typedef enum gguf_status gg_backend_stream_fn(void *arg,
                                              struct gguf_error *err);

/* Create a queue and start its thread. GGUF_E_NOMEM; GGUF_E_IO if the thread
 * cannot be started. */
enum gguf_status gg_stream_create(struct gg_stream **out,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err);
/* Run all queued calls, then end the thread. NULL is ignored. */
void gg_stream_destroy(struct gg_stream *s);

/* Queue a call of fn with a copy of size bytes at arg. Waits if the queue is
 * full. This cannot deadlock: queued calls wait for earlier calls only. */
void gg_stream_push(struct gg_stream *s, gg_backend_stream_fn *fn,
                    const void *arg, size_t size);
/* Wait until all queued calls are done. Returns the first failure since the
 * last sync. */
enum gguf_status gg_stream_sync(struct gg_stream *s, struct gguf_error *err);

/* Queue a transfer: set_async, get_async and copy_async of struct
 * gguf_backend_iface. The data of both tensors of a copy must be accessible
 * from any thread. */
void gg_stream_set(struct gg_stream *s, struct gguf_tensor *t, const void *src,
                   uint64_t off, uint64_t size);
void gg_stream_get(struct gg_stream *s, const struct gguf_tensor *t, void *dst,
                   uint64_t off, uint64_t size);
void gg_stream_copy(struct gg_stream *s, const struct gguf_tensor *src,
                    struct gguf_tensor *dst);

/* Create an event of a device whose backends are streams. GGUF_E_NOMEM,
 * GGUF_E_IO. */
enum gguf_status gg_stream_event(struct gguf_device *d,
                                 struct gguf_event **out,
                                 const struct gguf_allocator *allocator,
                                 struct gguf_error *err);
/* Queue the point that e marks. */
void gg_stream_record(struct gg_stream *s, struct gguf_event *e);
/* Queue a wait for e. For an event of another kind of device the calling thread
 * waits. */
enum gguf_status gg_stream_wait(struct gg_stream *s, struct gguf_event *e,
                                struct gguf_error *err);

#endif
