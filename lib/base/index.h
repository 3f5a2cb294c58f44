/* SPDX-License-Identifier: MIT */
/* index.h - hash table from names to numbers (XXH3 with a seed)
 *
 * The table holds pairs of hash and id by open addressing; names stay with
 * their owner. The seed is random, so that a crafted file cannot make look-ups
 * quadratic; no output depends on it. Look-ups may run concurrently, insertion
 * may not.
 */
#ifndef GG_BASE_INDEX_H
#define GG_BASE_INDEX_H

#include "base/error.h"
#include "gguf/memory.h"

#define GG_INDEX_NONE UINT32_MAX

/* Return the name of entry id of the list that is indexed. */
typedef struct gguf_str gg_index_name_fn(const void *user, uint32_t id);

struct gg_index {
    const struct gguf_allocator *allocator;
    gg_index_name_fn *name; /* returns names of entries */
    const void *user;       /* first argument of name */
    uint64_t seed;          /* seed of the hashes */
    uint32_t *slots;        /* pairs: upper bits of the hash, id */
    uint32_t n_slots;       /* number of pairs, a power of two */
    uint32_t n_used;        /* number of names */
};

/* Create an empty index with room for n_expected names. It grows beyond.
 * GGUF_E_NOMEM. */
enum gguf_status gg_index_init(struct gg_index *ix,
                               const struct gguf_allocator *a,
                               uint32_t n_expected, gg_index_name_fn *name,
                               const void *user, struct gguf_error *err);
/* Free the index. A zeroed struct is allowed. */
void gg_index_fini(struct gg_index *ix);

/* Remove all names. The same number of names can then be added without
 * allocation. */
void gg_index_clear(struct gg_index *ix);

/* Add id. *other becomes GG_INDEX_NONE. If another id has the same name, that
 * id goes to *other and nothing is added. GGUF_E_NOMEM. */
enum gguf_status gg_index_add(struct gg_index *ix, uint32_t id,
                              uint32_t *other, struct gguf_error *err);

/* Id of name, or GG_INDEX_NONE. */
uint32_t gg_index_find(const struct gg_index *ix, struct gguf_str name);

#endif
