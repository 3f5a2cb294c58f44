/* SPDX-License-Identifier: MIT */
/* fake_backend.h - a backend for tests, with memory of its own
 *
 * It computes with the CPU's kernels. Its memory is closed to the process
 * except while it computes, or while its tensors are set or read: any other
 * access raises a signal. It refuses random operations, counts nodes with
 * tensors in foreign memory, and may compute on a thread of its own, with
 * events.
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

/* Number of fake backends that work at the same time: now, and at most. */
struct fake_backend_gauge {
    _Atomic int now, most;
};

struct fake_backend {
    struct gguf_buft buft;
    struct gguf_device device;
    struct gguf_backend backend;
    struct gguf_backend *cpu; /* computes for it */
    bool refuses[GGUF_N_OPS];
    bool
        unlocked; /* set before use: memory is never closed, which is faster */
    uint64_t n_total; /* bytes of its memory that it reports; 0: no limit, and
                       * it reports none */
    uint64_t n_used;  /* bytes of its buffers */
    int n_shared;     /* buffers around host memory */
    const struct gguf_buft *shared_buft; /* type of buffers around host memory;
                                          * NULL: its own */
    bool offloads;  /* prefers every operation that it supports,
                               * wherever the weights lie */
    uint32_t wide;  /* result of gguf_device_min_invariant_batch(); 0: 1 */
    uint32_t wrong; /* operation with wrong results; 0: none */
    struct gg_stream
        *stream;   /* its queue; NULL: it computes when it is called */
    int n_foreign; /* nodes with tensors in foreign memory */
    int n_nodes;
    int n_sets;       /* calls that set a tensor from outside */
    uint64_t n_bytes; /* bytes set by these calls */
    int slow;         /* microseconds that it sleeps per graph */
    struct fake_backend_gauge *gauge; /* NULL: not counted */

    pthread_mutex_t mutex; /* protects the members below */
    struct gguf_buffer *open[64];
    int n_open, n_inside;
};

/* Create the backend. async: computes on a thread of its own. allocator: of
 * its queue and events. Destroy it with gguf_backend_destroy(&is->backend). */
enum gguf_status fake_backend_init(struct fake_backend *is, const char *name,
                                   bool async,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_error *err);

/* Refuse a random quarter of all operations; seed 0: none. */
void fake_backend_refuse(struct fake_backend *is, uint64_t seed);

#endif
