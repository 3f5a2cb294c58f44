/* SPDX-License-Identifier: MIT */
/* index.h - from name to number, on seeded XXH3
 *
 * Open addressing over (hash, id) pairs; the names stay where they are. The
 * seed is random, so that a crafted file cannot make look-ups quadratic; no
 * output depends on it. Look-ups may run concurrently, insertion may not.
 */
#ifndef GG_BASE_INDEX_H
#define GG_BASE_INDEX_H

#include "base/error.h"
#include "gguf/memory.h"

#define GG_INDEX_NONE UINT32_MAX

/* Name number id of the thing that is indexed. */
typedef struct gguf_str gg_index_name_fn(const void *user, uint32_t id);

struct gg_index {
    const struct gguf_allocator *allocator;
    gg_index_name_fn *name;
    const void *user;
    uint64_t seed;
    uint32_t *slots;  /* pairs: upper hash bits, id */
    uint32_t n_slots; /* power of two */
    uint32_t n_used;
};

/* Room for n_expected names; grows beyond. GGUF_E_NOMEM. */
enum gguf_status gg_index_init(struct gg_index *ix,
                               const struct gguf_allocator *a,
                               uint32_t n_expected, gg_index_name_fn *name,
                               const void *user, struct gguf_error *err);
void gg_index_fini(struct gg_index *ix);

/* Take every name out. As many as there were then fit without allocation. */
void gg_index_clear(struct gg_index *ix);

/* Add id. If its name is there already, *other is the id that has it and
 * nothing is added; else *other is GG_INDEX_NONE. GGUF_E_NOMEM. */
enum gguf_status gg_index_add(struct gg_index *ix, uint32_t id,
                              uint32_t *other, struct gguf_error *err);

/* The id of name, or GG_INDEX_NONE. */
uint32_t gg_index_find(const struct gg_index *ix, struct gguf_str name);

#endif
