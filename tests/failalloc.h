/* SPDX-License-Identifier: MIT */
/* failalloc.h - an allocator that fails at one call, or from one call on
 *
 *     struct failalloc fa;
 *     for (unsigned n = 0; ; n++) {
 *         const struct gguf_allocator *a = failalloc_init(&fa, n);
 *         status = thing(a);
 *         ok(fa.live == 0, ...);
 *         if (fa.calls <= n)
 *             break;          nothing failed: every call was tried
 *     }
 *
 * failalloc_from() makes one that fails at every call from the n-th on. Both
 * count calls and bytes.
 */
#ifndef TESTS_FAILALLOC_H
#define TESTS_FAILALLOC_H

#include "gguf/memory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct failalloc {
    struct gguf_allocator a;
    unsigned fail_at; /* index of the first call that fails */
    unsigned last;    /* index of the last call that fails */
    unsigned calls;
    int live;         /* blocks that are not freed */
    size_t now, most; /* bytes in these blocks: now, and at most */
};

/* A block's size is stored before it. */
enum { FAILALLOC_HEAD = 64 };

static inline void *failalloc_alloc(void *user, size_t size)
{
    struct failalloc *f = user;
    unsigned call = f->calls++;
    if (call >= f->fail_at && call <= f->last)
        return NULL;
    char *p = malloc(FAILALLOC_HEAD + size);
    if (!p)
        return NULL;
    memcpy(p, &size, sizeof size);
    f->live++;
    f->now += size;
    f->most = f->now > f->most ? f->now : f->most;
    return p + FAILALLOC_HEAD;
}

static inline void failalloc_free(void *user, void *p)
{
    struct failalloc *f = user;
    char *head = (char *)p - FAILALLOC_HEAD;
    size_t size;
    memcpy(&size, head, sizeof size);
    f->live--;
    f->now -= size;
    free(head);
}

static inline const struct gguf_allocator *failalloc_init(struct failalloc *f,
                                                          unsigned fail_at)
{
    *f = (struct failalloc){
        .a = { .struct_size = sizeof(struct gguf_allocator),
               .alloc = failalloc_alloc,
               .free = failalloc_free,
               .user = f },
        .fail_at = fail_at,
        .last = fail_at,
    };
    return &f->a;
}

static inline const struct gguf_allocator *failalloc_from(struct failalloc *f,
                                                          unsigned fail_at)
{
    (void)failalloc_init(f, fail_at);
    f->last = UINT_MAX;
    return &f->a;
}

#endif
