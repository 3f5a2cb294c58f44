/* SPDX-License-Identifier: MIT */
/* mem.c - allocation through the program's allocator, and arenas */
#include "config.h"
#include "base/mem.h"
#include "base/compiler.h"
#include "base/os/os.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Does the program's structure have all members that are used here? */
static bool is_complete(const struct gguf_allocator *a)
{
    return a->struct_size >=
               offsetof(struct gguf_allocator, user) + sizeof a->user &&
           a->alloc && a->free;
}

void *gg_mem_alloc(const struct gguf_allocator *a, size_t size)
{
    size = size ? size : 1;
    if (size > PTRDIFF_MAX || (a && !is_complete(a)))
        return NULL;
    return a ? a->alloc(a->user, size) : malloc(size);
}

void *gg_mem_alloc_zero(const struct gguf_allocator *a, uint64_t n,
                        size_t size)
{
    size_t bytes;
    if (gg_ckd_array(&bytes, n, size))
        return NULL;
    if (!a)
        return calloc(bytes ? bytes : 1, 1);
    void *p = gg_mem_alloc(a, bytes);
    if (p)
        memset(p, 0, bytes);
    return p;
}

/* Resize ptr from old to size bytes. NULL: out of memory; ptr stays. */
static void *resize_block(const struct gguf_allocator *a, void *ptr,
                          size_t old, size_t size)
{
    if (size > PTRDIFF_MAX)
        return NULL;
    if (!a)
        return realloc(ptr, size ? size : 1);
    void *p = gg_mem_alloc(a, size);
    if (!p)
        return NULL;
    if (ptr) {
        memcpy(p, ptr, GG_MIN(old, size));
        gg_mem_free(a, ptr);
    }
    return p;
}

void *gg_mem_grow(const struct gguf_allocator *a, void *ptr, size_t *room,
                  size_t item_size, size_t least, struct gguf_error *err)
{
    size_t want = GG_MAX(*room <= SIZE_MAX / 2 ? 2 * *room : SIZE_MAX, least);
    size_t size = SIZE_MAX;
    void *p = NULL;
    if (!gg_ckd_array(&size, want, item_size))
        p = resize_block(a, ptr, *room * item_size, size);
    if (!p) {
        gg_error_set_nomem(err, size);
        return NULL;
    }
    *room = want;
    return p;
}

void *gg_mem_renew(const struct gguf_allocator *a, void *ptr, size_t *room,
                   size_t item_size, size_t n, struct gguf_error *err)
{
    size_t size = SIZE_MAX;
    void *p;
    if (n <= *room && ptr)
        return ptr;
    gg_mem_free(a, ptr);
    *room = 0;
    p = gg_mem_alloc_zero(a, n, item_size);
    if (p) {
        *room = n;
        return p;
    }
    (void)gg_ckd_array(&size, n, item_size);
    gg_error_set_nomem(err, size);
    return NULL;
}

void gg_mem_free(const struct gguf_allocator *a, void *ptr)
{
    if (!ptr)
        return;
    if (a)
        a->free(a->user, ptr);
    else
        free(ptr);
}

size_t gg_mem_aligned_size(size_t size, size_t align)
{
    return size + GG_MAX(align, alignof(void *)) + sizeof(void *);
}

/* The pointer to free is stored right before the aligned block. */
void *gg_mem_alloc_aligned(const struct gguf_allocator *a, size_t size,
                           size_t align)
{
    align = GG_MAX(align, alignof(void *));
    if (size > PTRDIFF_MAX - align - sizeof(void *))
        return NULL;
    char *raw = gg_mem_alloc(a, gg_mem_aligned_size(size, align));
    if (!raw)
        return NULL;
    uintptr_t at = (uintptr_t)(raw + sizeof(void *));
    size_t skip = (size_t)(-at & (align - 1));
    char *p = raw + sizeof(void *) + skip;
    memcpy(p - sizeof(void *), &raw, sizeof raw);
    return p;
}

void *gg_mem_alloc_huge(const struct gguf_allocator *a, size_t size,
                        size_t align)
{
    const size_t huge = gg_os_huge_page_size();
    if (huge && !a && size >= huge / 2 && size <= PTRDIFF_MAX - huge) {
        if (size % huge && (size >= 2 * huge || size % huge >= huge / 2))
            size += huge - size % huge;
        void *p = gg_mem_alloc_aligned(a, size, GG_MAX(huge, align));
        if (p)
            gg_os_memory_use_huge(p, size & ~(huge - 1));
        return p;
    }
    return gg_mem_alloc_aligned(a, size, align);
}

void gg_mem_free_aligned(const struct gguf_allocator *a, void *ptr)
{
    if (!ptr)
        return;
    void *raw;
    memcpy(&raw, (char *)ptr - sizeof(void *), sizeof raw);
    gg_mem_free(a, raw);
}

struct gg_mem_arena_chunk {
    struct gg_mem_arena_chunk *next;
    alignas(max_align_t) char data[];
};

enum { ARENA_CHUNK = 1 << 16 };

void gg_mem_arena_init(struct gg_mem_arena *arena,
                       const struct gguf_allocator *a)
{
    *arena = (struct gg_mem_arena){ .allocator = a };
}

void gg_mem_arena_fini(struct gg_mem_arena *arena)
{
    struct gg_mem_arena_chunk *c = arena->head, *next;
    for (; c; c = next) {
        next = c->next;
        gg_mem_free(arena->allocator, c);
    }
    gg_mem_arena_init(arena, arena->allocator);
}

void *gg_mem_arena_alloc(struct gg_mem_arena *arena, size_t size)
{
    const size_t mask = alignof(max_align_t) - 1;
    if (size > PTRDIFF_MAX - mask - sizeof(struct gg_mem_arena_chunk))
        return NULL;
    size = (size + mask) & ~mask;
    if (!arena->head || arena->size - arena->used < size) {
        size_t room = GG_MAX(size, (size_t)ARENA_CHUNK);
        struct gg_mem_arena_chunk *c =
            gg_mem_alloc(arena->allocator, sizeof *c + room);
        if (!c)
            return NULL;
        c->next = arena->head;
        arena->head = c;
        arena->size = room;
        arena->used = 0;
    }
    void *p = arena->head->data + arena->used;
    arena->used += size;
    return p;
}

char *gg_mem_arena_strndup(struct gg_mem_arena *arena, const char *data,
                           size_t n)
{
    if (n == SIZE_MAX)
        return NULL;
    char *p = gg_mem_arena_alloc(arena, n + 1);
    if (p) {
        if (n)
            memcpy(p, data, n);
        p[n] = '\0';
    }
    return p;
}
