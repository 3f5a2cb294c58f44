/* SPDX-License-Identifier: MIT */
/* bestfit.h - a dynamic allocator of offsets, without memory of its own
 *
 * Keeps the free spans of an endless range, sorted, none touching another. A
 * request gets the smallest span that is large enough; the last one, which has
 * no end, only if no other is. The highest offset ever reached is the size of
 * the buffer to allocate in the end.
 */
#ifndef GG_ALLOC_BESTFIT_H
#define GG_ALLOC_BESTFIT_H

#include "base/error.h"
#include "base/mem.h"

#include <stdbool.h>

struct gg_alloc_span {
    uint64_t off, size;
};

struct gg_bestfit {
    const struct gguf_allocator *allocator;
    struct gg_alloc_span *spans;
    size_t n, cap;
    uint64_t align; /* of offsets and sizes; a power of two */
    uint64_t high;  /* bytes */
    bool at_end;    /* of a span rather than at its begin, but for the last */
};

/* GGUF_E_NOMEM. */
enum gguf_status gg_bestfit_init(struct gg_bestfit *b,
                                 const struct gguf_allocator *a,
                                 uint64_t align, struct gguf_error *err);
void gg_bestfit_fini(struct gg_bestfit *b);

/* size bytes, rounded up to align, at *off. Size 0 takes none.
 * GGUF_E_OVERFLOW. */
enum gguf_status gg_bestfit_alloc(struct gg_bestfit *b, uint64_t size,
                                  uint64_t *off, struct gguf_error *err);

/* off and size as in the call of alloc. GGUF_E_NOMEM (list of spans). */
enum gguf_status gg_bestfit_free(struct gg_bestfit *b, uint64_t off,
                                 uint64_t size, struct gguf_error *err);

#endif
