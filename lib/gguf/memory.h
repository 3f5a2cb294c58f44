/* SPDX-License-Identifier: MIT */
/* memory.h - where the library takes its memory from
 *
 * Params structs hold a pointer to an allocator; NULL means malloc and free.
 */
#ifndef GGUF_MEMORY_H
#define GGUF_MEMORY_H

#include <gguf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed by what is created with it: must outlive that object. Both
 * functions are required, and may be called from any thread that uses the
 * object. An allocator that lacks one, or whose size does not cover them, gives
 * no memory: what needs some is GGUF_E_NOMEM. A
 * larger one, of a newer program, is fine: what it has more is not called. */
struct gguf_allocator {
    size_t struct_size;
    /* size > 0 bytes aligned for any C type, or NULL. */
    void *(*alloc)(void *user, size_t size);
    /* ptr came from alloc; never NULL. */
    void (*free)(void *user, void *ptr);
    void *user;
};
#define GGUF_ALLOCATOR_INIT(alloc, free, user)                                \
    {                                                                         \
        sizeof(struct gguf_allocator), alloc, free, user                      \
    }

/* Text with a length: may hold NUL bytes, need not be UTF-8, has no
 * terminator. data is borrowed from the object that handed it out. A value:
 * it never grows. */
struct gguf_str {
    const char *data;
    size_t size; /* bytes */
};

#ifdef __cplusplus
}
#endif
#endif
