/* SPDX-License-Identifier: MIT */
/* fake_backend.h - a backend for tests, with memory of its own
 *
 * It computes what the CPU does, but its memory is closed to the process
 * except while it works or its tensors are set and read: any other access
 * raises a signal. It refuses operations by chance, counts what it is given
 * that lies elsewhere, and may work on a thread of its own, with events.
 */
#ifndef TESTS_GRAPH_FAKE_BACKEND_H
#define TESTS_GRAPH_FAKE_BACKEND_H

#include "backend/stream.h"
#include "tests/tap.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct gguf_tensor tensor;

static inline void must(enum gguf_status st, const struct gguf_error *err)
{
    if (st == GGUF_OK)
        return;
    printf("Bail out! %s\n", err->message);
    exit(1);
}

/* How many fake backends work at the same time. */
struct fake_backend_gauge {
    _Atomic int now, most;
};

struct fake_backend {
    struct gguf_buft buft;
    struct gguf_device device;
    struct gguf_backend backend;
    struct gguf_backend *cpu; /* does its work */
    bool refuses[GGUF_N_OPS];
    bool
        unlocked; /* set before use: memory is never closed, which is faster */
    uint64_t n_total; /* bytes of its memory, which it tells; 0: no limit, and
                         not told */
    uint64_t n_used;  /* bytes of its buffers */
    int n_shared;     /* buffers around host memory */
    const struct gguf_buft *shared_buft; /* type of buffers around host
                                          * memory, if not its own; or NULL */
    bool offloads;            /* wants what it supports, weights or not */
    uint32_t wide;            /* what its device says; 0: 1 */
    uint32_t wrong;           /* operation whose results it spoils, or 0 */
    struct gg_stream *stream; /* NULL: it works when it is called */
    int n_foreign;            /* nodes that it was given with far memory */
    int n_nodes;
    int n_sets;       /* how often tensors were set from outside */
    uint64_t n_bytes; /* by that */
    int slow;         /* microseconds that it sleeps per graph */
    struct fake_backend_gauge *gauge; /* or NULL */

    pthread_mutex_t mutex; /* of what follows */
    struct gguf_buffer *open[64];
    int n_open, n_inside;
};

/* allocator: of its stream and events. Destroyed with its backend. */
enum gguf_status fake_backend_init(struct fake_backend *is, const char *name,
                                   bool async,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_error *err);

/* Refuse about a quarter of all operations by chance, or none (seed 0). */
void fake_backend_refuse(struct fake_backend *is, uint64_t seed);

#endif
