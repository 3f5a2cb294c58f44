/* SPDX-License-Identifier: MIT */
/* bestfit.h - a best-fit allocator of offsets
 *
 * Keeps a sorted list of the free spans of an endless range; neighbours are
 * joined. A request gets the smallest span that is large enough, and the last
 * span, which has no end, if no other fits. The highest offset ever reached is
 * the size of the buffer to allocate in the end.
 */
#ifndef GG_ALLOC_BESTFIT_H
#define GG_ALLOC_BESTFIT_H

#include "base/error.h"
#include "base/mem.h"

#include <stdbool.h>

/* Bytes off to off + size - 1. */
struct gg_alloc_span {
    uint64_t off, size;
};

struct gg_bestfit {
    const struct gguf_allocator *allocator;
    struct gg_alloc_span *spans; /* free spans, sorted by offset */
    size_t n, cap;               /* spans in use, and room for spans */
    uint64_t align; /* alignment of offsets and sizes, a power of two */
    uint64_t high;  /* end of the highest allocation so far, bytes */
    bool at_end; /* allocate at the end of a span, not at its start; the last
                       span has no end and is used from its start */
};

/* Start with one endless free span. GGUF_E_NOMEM. */
enum gguf_status gg_bestfit_init(struct gg_bestfit *b,
                                 const struct gguf_allocator *a,
                                 uint64_t align, struct gguf_error *err);
void gg_bestfit_fini(struct gg_bestfit *b);

/* Allocate size bytes, rounded up to align, at *off. Size 0 takes nothing.
 * GGUF_E_OVERFLOW if the range ends. */
enum gguf_status gg_bestfit_alloc(struct gg_bestfit *b, uint64_t size,
                                  uint64_t *off, struct gguf_error *err);

/* Free size bytes at off, the values of gg_bestfit_alloc(). GGUF_E_NOMEM if the
 * list of spans cannot grow. */
enum gguf_status gg_bestfit_free(struct gg_bestfit *b, uint64_t off,
                                 uint64_t size, struct gguf_error *err);

#endif
