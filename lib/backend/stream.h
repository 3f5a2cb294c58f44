/* SPDX-License-Identifier: MIT */
/* stream.h - a queue of work on a thread of its own
 *
 * All that the tables of an asynchronous backend in host memory need, except
 * compute. Calls are queued by one thread at a time and run one after the
 * other. When one fails, those after it are dropped, but events are still
 * reached, so that no thread waits forever.
 */
#ifndef GG_BACKEND_STREAM_H
#define GG_BACKEND_STREAM_H

#include "backend/backend_int.h"

struct gg_stream;

enum { GG_STREAM_ARG = 48 }; /* most bytes of a call's argument */

typedef enum gguf_status gg_backend_stream_fn(void *arg,
                                              struct gguf_error *err);

/* GGUF_E_NOMEM, GGUF_E_IO (no thread). */
enum gguf_status gg_stream_create(struct gg_stream **out,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err);
/* Waits for what is queued. NULL is fine. */
void gg_stream_destroy(struct gg_stream *s);

/* Queue fn with a copy of size bytes of arg. Waits if the queue is full, which
 * cannot deadlock: what is queued waits for earlier calls only. */
void gg_stream_push(struct gg_stream *s, gg_backend_stream_fn *fn,
                    const void *arg, size_t size);
/* Wait for everything: the first failure since the last sync. */
enum gguf_status gg_stream_sync(struct gg_stream *s, struct gguf_error *err);

/* Transfers in order, as the members of struct gguf_backend_iface. Both sides
 * of a copy are memory that any thread may set and get. */
void gg_stream_set(struct gg_stream *s, struct gguf_tensor *t, const void *src,
                   uint64_t off, uint64_t size);
void gg_stream_get(struct gg_stream *s, const struct gguf_tensor *t, void *dst,
                   uint64_t off, uint64_t size);
void gg_stream_copy(struct gg_stream *s, const struct gguf_tensor *src,
                    struct gguf_tensor *dst);

/* An event of a device whose backends are streams. GGUF_E_NOMEM, GGUF_E_IO. */
enum gguf_status gg_stream_event(struct gguf_device *d,
                                 struct gguf_event **out,
                                 const struct gguf_allocator *allocator,
                                 struct gguf_error *err);
void gg_stream_record(struct gg_stream *s, struct gguf_event *e);
/* e may be of any device; one that is not of a stream is waited for here. */
enum gguf_status gg_stream_wait(struct gg_stream *s, struct gguf_event *e,
                                struct gguf_error *err);

#endif
