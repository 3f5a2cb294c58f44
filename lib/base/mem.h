/* SPDX-License-Identifier: MIT */
/* mem.h - allocation through the program's allocator, and arenas */
#ifndef GG_BASE_MEM_H
#define GG_BASE_MEM_H

#include "base/ckd.h"
#include "base/error.h"
#include "gguf/memory.h"

/* Allocate size bytes from a, or from malloc() if a is NULL. Size 0 gives a
 * pointer that can be freed. NULL: out of memory. */
void *gg_mem_alloc(const struct gguf_allocator *a, size_t size);

/* Allocate n * size zeroed bytes. NULL: out of memory, or the product
 * overflows. */
void *gg_mem_alloc_zero(const struct gguf_allocator *a, uint64_t n,
                        size_t size);

/* Grow an array to twice its items, or to least items if that is more.
 *
 * ptr         The array. NULL if *room is 0.
 * room        Number of items it has room for; receives the new number.
 * item_size   Bytes of an item.
 *
 * Returns the array. NULL: out of memory; err is set, ptr and *room stay. */
void *gg_mem_grow(const struct gguf_allocator *a, void *ptr, size_t *room,
                  size_t item_size, size_t least, struct gguf_error *err);

/* Make sure that an array has room for n items. Its contents may be lost: an
 * array that is too small is replaced by a new one of n zeroed items.
 *
 * ptr         The array. NULL if *room is 0.
 * room        Number of items it has room for; receives the new number.
 * item_size   Bytes of an item.
 *
 * Returns the array. NULL: out of memory; err is set, ptr is freed and *room is
 * 0. */
void *gg_mem_renew(const struct gguf_allocator *a, void *ptr, size_t *room,
                   size_t item_size, size_t n, struct gguf_error *err);

/* Free memory of gg_mem_alloc() and the like. NULL is allowed. */
void gg_mem_free(const struct gguf_allocator *a, void *ptr);

/* Allocate size bytes at a multiple of align, a power of two. Free them with
 * gg_mem_free_aligned(). NULL: out of memory. */
void *gg_mem_alloc_aligned(const struct gguf_allocator *a, size_t size,
                           size_t align);
/* Bytes that gg_mem_alloc_aligned() takes from the allocator. */
size_t gg_mem_aligned_size(size_t size, size_t align);
/* Allocate size bytes at a multiple of align, in huge pages if possible. For
 * blocks that are filled from their first byte on.
 *
 * Blocks of malloc() from 1 MiB on get huge pages if the system has them. The
 * last page is huge if half of it is used or others come before it. The first
 * touch of a page of 4 KiB takes about 2 us, of one of 2 MiB about 100 us
 * (Linux 6.18, a virtual Zen).
 *
 * Free them with gg_mem_free_aligned(). NULL: out of memory. */
void *gg_mem_alloc_huge(const struct gguf_allocator *a, size_t size,
                        size_t align);
/* Free aligned memory. NULL is allowed. */
void gg_mem_free_aligned(const struct gguf_allocator *a, void *ptr);

/* Arena: many small allocations that are freed together. One thread at a time
 * may use it. */
struct gg_mem_arena {
    const struct gguf_allocator *allocator; /* must outlive the arena */
    struct gg_mem_arena_chunk *head;        /* newest chunk */
    size_t used, size; /* bytes used and bytes in all of the newest chunk */
};

/* Initialize an empty arena. */
void gg_mem_arena_init(struct gg_mem_arena *arena,
                       const struct gguf_allocator *a);
/* Free all memory of the arena. */
void gg_mem_arena_fini(struct gg_mem_arena *arena);
/* Allocate size bytes, aligned for every C type, not zeroed. NULL: out of
 * memory. */
void *gg_mem_arena_alloc(struct gg_mem_arena *arena, size_t size);
/* Copy n bytes and a NUL after them. NULL: out of memory. */
char *gg_mem_arena_strndup(struct gg_mem_arena *arena, const char *data,
                           size_t n);

#endif
