/* SPDX-License-Identifier: MIT */
/* memory.h - allocators, and text with a length
 *
 * The library uses malloc() and free() unless a program gives it an allocator:
 * constructors and parameter structures take a pointer to a struct
 * gguf_allocator, which may be NULL.
 *
 *     struct gguf_allocator mine = GGUF_INIT(struct gguf_allocator);
 *     struct gguf_file_params params = GGUF_INIT(struct gguf_file_params);
 *     mine.alloc = my_alloc;
 *     mine.free = my_free;
 *     mine.user = &my_state;
 *     params.allocator = &mine;
 */
#ifndef GGUF_MEMORY_H
#define GGUF_MEMORY_H

#include <gguf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions that allocate and free the library's memory.
 *
 * An object keeps the pointer to its allocator, so the allocator must outlive
 * the object. Its functions are called from every thread that uses the object.
 *
 * An allocator without one of the functions, or with a struct_size that does
 * not cover all members below, allocates nothing: every call that needs memory
 * returns GGUF_E_NOMEM. A larger struct_size is accepted; the members that the
 * library does not know are ignored. */
struct gguf_allocator {
    size_t struct_size; /* size of this structure in bytes */

    /* Allocate size bytes, aligned for every C type. size is at least 1.
     * Returns NULL if the memory cannot be had. Required. */
    void *(*alloc)(void *user, size_t size);

    /* Free memory that alloc() returned. ptr is not NULL. Required. */
    void (*free)(void *user, void *ptr);

    void *user; /* first argument of both functions */
};
#define GGUF_ALLOCATOR_INIT GGUF_INIT(struct gguf_allocator)

/* Text with a length.
 *
 * The text may hold NUL bytes, need not be UTF-8 and has no terminator. Its
 * bytes belong to the object that returned it. Later versions add no members to
 * this struct. */
struct gguf_str {
    const char *data; /* first byte; may be NULL if size is 0 */
    size_t size;      /* length in bytes */
};

#ifdef __cplusplus
}
#endif
#endif
