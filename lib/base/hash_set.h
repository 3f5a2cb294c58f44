/* SPDX-License-Identifier: MIT */
/* hash_set.h - a set of texts that keeps their hashes only
 *
 * A look-up may be wrong once in 10^9 files. In return a slot takes 8 bytes and
 * texts are not compared: several times as fast as an index (index.h), whose
 * look-ups touch three places in memory. The seed is random, so that a file
 * cannot be crafted with collisions.
 */
#ifndef GG_BASE_HASH_SET_H
#define GG_BASE_HASH_SET_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

struct gg_hash_set {
    const struct gguf_allocator *allocator;
    uint64_t *slot; /* hashes, by open addressing; 0: free */
    uint64_t mask;  /* number of slots less 1 */
    uint64_t seed;  /* seed of the hashes */
};

/* A number that others cannot guess. salt is an address that differs between
 * calls, for systems without a source of randomness. */
uint64_t gg_hash_set_seed(const void *salt);

/* Create a set with room for n texts, and no more. GGUF_E_NOMEM. */
enum gguf_status gg_hash_set_init(struct gg_hash_set *h,
                                  const struct gguf_allocator *a, uint64_t n,
                                  struct gguf_error *err);
/* Free the set. A zeroed struct is allowed. */
void gg_hash_set_fini(struct gg_hash_set *h);

/* Add text. Returns whether it was in the set before. */
bool gg_hash_set_add(struct gg_hash_set *h, struct gguf_str text);
/* Is text in the set? */
bool gg_hash_set_has(const struct gg_hash_set *h, struct gguf_str text);

#endif
