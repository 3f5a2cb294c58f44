/* SPDX-License-Identifier: MIT */
/* mem.h - calls of the caller's allocator, and arenas for small lifetimes */
#ifndef GG_BASE_MEM_H
#define GG_BASE_MEM_H

#include "base/ckd.h"
#include "base/error.h"
#include "gguf/memory.h"

/* size bytes from a (NULL: malloc), or NULL. Size 0 gives a pointer that can
 * be freed. */
void *gg_mem_alloc(const struct gguf_allocator *a, size_t size);

/* n * size zeroed bytes, or NULL; also when the product overflows. */
void *gg_mem_alloc_zero(const struct gguf_allocator *a, uint64_t n,
                        size_t size);

/* The array ptr of *room items (0: ptr may be NULL) of item_size bytes, grown
 * to twice as many items, or to least of them if that is more: sets *room.
 * NULL, with GGUF_E_NOMEM in err, leaves both. */
void *gg_mem_grow(const struct gguf_allocator *a, void *ptr, size_t *room,
                  size_t item_size, size_t least, struct gguf_error *err);

/* The array ptr of *room items, or one of n zeroed items in its place if that
 * is more: what ptr had is gone then, and *room is n. NULL, with GGUF_E_NOMEM
 * in err and *room 0, where there is no memory. */
void *gg_mem_renew(const struct gguf_allocator *a, void *ptr, size_t *room,
                   size_t item_size, size_t n, struct gguf_error *err);

/* NULL is fine. */
void gg_mem_free(const struct gguf_allocator *a, void *ptr);

/* As above, aligned to align (a power of two). Freed by
 * gg_mem_free_aligned only. */
void *gg_mem_alloc_aligned(const struct gguf_allocator *a, size_t size,
                           size_t align);
/* So many bytes of the allocator that takes. */
size_t gg_mem_aligned_size(size_t size, size_t align);
/* The same, for a block that will be filled from its begin on: where malloc
 * gives it and the system has huge pages, it gets huge pages from 1 MiB on;
 * the last page is huge if half of it is used or others come before it. The
 * first touch of a page of 4 KiB costs about 2 us, of one of 2 MiB about 100
 * (Linux 6.18, a virtual Zen). Freed by gg_mem_free_aligned. */
void *gg_mem_alloc_huge(const struct gguf_allocator *a, size_t size,
                        size_t align);
void gg_mem_free_aligned(const struct gguf_allocator *a, void *ptr);

/* Bump arena: many small things that die together. Not for threads. */
struct gg_mem_arena {
    const struct gguf_allocator *allocator; /* kept */
    struct gg_mem_arena_chunk *head;
    size_t used, size; /* of the head chunk, bytes */
};

void gg_mem_arena_init(struct gg_mem_arena *arena,
                       const struct gguf_allocator *a);
void gg_mem_arena_fini(struct gg_mem_arena *arena);
/* size bytes aligned for any C type and not zeroed, or NULL. */
void *gg_mem_arena_alloc(struct gg_mem_arena *arena, size_t size);
/* A copy of n bytes with a NUL after it, or NULL. */
char *gg_mem_arena_strndup(struct gg_mem_arena *arena, const char *data,
                           size_t n);

#endif
