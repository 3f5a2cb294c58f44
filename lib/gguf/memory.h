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
 * functions may be called from any thread that uses the object. */
struct gguf_allocator {
    /* size > 0 bytes aligned for any C type, or NULL. */
    void *(*alloc)(void *user, size_t size);
    /* ptr came from alloc; never NULL. */
    void (*free)(void *user, void *ptr);
    void *user;
};

/* Text with a length: may hold NUL bytes, need not be UTF-8, has no
 * terminator. data is borrowed from the object that handed it out. */
struct gguf_str {
    const char *data;
    size_t size; /* bytes */
};

#ifdef __cplusplus
}
#endif
#endif
