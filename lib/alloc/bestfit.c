/* SPDX-License-Identifier: MIT */
/* bestfit.c - sorted list of free spans */
#include "config.h"
#include "alloc/bestfit.h"

#include <assert.h>
#include <string.h>

enum { FIRST_SPANS = 64 };

enum gguf_status gg_bestfit_init(struct gg_bestfit *b,
                                 const struct gguf_allocator *a,
                                 uint64_t align, struct gguf_error *err)
{
    *b = (struct gg_bestfit){ .allocator = a, .align = align };
    b->spans =
        gg_mem_grow(a, NULL, &b->cap, sizeof *b->spans, FIRST_SPANS, err);
    if (!b->spans)
        return GGUF_E_NOMEM;
    b->n = 1;
    b->spans[0] = (struct gg_alloc_span){ 0, INT64_MAX & ~(align - 1) };
    return GGUF_OK;
}

void gg_bestfit_fini(struct gg_bestfit *b)
{
    gg_mem_free(b->allocator, b->spans);
    b->spans = NULL;
    b->n = b->cap = 0;
}

enum gguf_status gg_bestfit_alloc(struct gg_bestfit *b, uint64_t size,
                                  uint64_t *off, struct gguf_error *err)
{
    size_t best = b->n - 1;
    if (gg_ckd_align(&size, size, b->align) || size > b->spans[best].size)
        return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                            "the memory of a graph overflows");
    for (size_t i = 0; i + 1 < b->n; i++)
        if (b->spans[i].size >= size &&
            (best == b->n - 1 || b->spans[i].size < b->spans[best].size))
            best = i;
    struct gg_alloc_span *s = &b->spans[best];
    s->size -= size;
    *off = s->off;
    if (b->at_end && best < b->n - 1)
        *off += s->size;
    else
        s->off += size;
    b->high = GG_MAX(b->high, *off + size);
    if (!s->size) {
        b->n--;
        memmove(s, s + 1, (b->n - best) * sizeof *s);
    }
    return GGUF_OK;
}

enum gguf_status gg_bestfit_free(struct gg_bestfit *b, uint64_t off,
                                 uint64_t size, struct gguf_error *err)
{
    size = (size + b->align - 1) & ~(b->align - 1);
    if (!size)
        return GGUF_OK;
    size_t at = 0; /* the first span after it; the last one always is */
    while (b->spans[at].off < off)
        at++;
    struct gg_alloc_span *next = &b->spans[at];
    assert(off + size <= next->off);
    bool joins_next = off + size == next->off;
    if (at && next[-1].off + next[-1].size == off) {
        next[-1].size += size;
        if (joins_next) {
            next[-1].size += next->size;
            b->n--;
            memmove(next, next + 1, (b->n - at) * sizeof *next);
        }
        return GGUF_OK;
    }
    if (joins_next) {
        next->off = off;
        next->size += size;
        return GGUF_OK;
    }
    if (b->n == b->cap) {
        void *grown = gg_mem_grow(b->allocator, b->spans, &b->cap,
                                  sizeof *b->spans, FIRST_SPANS, err);
        if (!grown)
            return GGUF_E_NOMEM;
        b->spans = grown;
    }
    memmove(&b->spans[at + 1], &b->spans[at], (b->n - at) * sizeof *b->spans);
    b->n++;
    b->spans[at] = (struct gg_alloc_span){ off, size };
    return GGUF_OK;
}
