/* SPDX-License-Identifier: MIT */
/* hash_set.h - a set of texts, by their hashes alone
 *
 * For asking whether a text is among many, where the answer may be wrong once
 * in 10^9 files: 8 bytes a slot and no comparison of texts, several times as
 * fast as an index (index.h), whose every look-up goes to three places in
 * memory. The seed is random, so that nobody can make a file with collisions.
 */
#ifndef GG_BASE_HASH_SET_H
#define GG_BASE_HASH_SET_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

struct gg_hash_set {
    const struct gguf_allocator *allocator;
    uint64_t *slot; /* open addressing; 0: free */
    uint64_t mask, seed;
};

/* A number that others cannot know; salt: something that differs between
 * calls, for systems without a source of randomness. */
uint64_t gg_hash_set_seed(const void *salt);

/* Room for n texts, no more. GGUF_E_NOMEM. */
enum gguf_status gg_hash_set_init(struct gg_hash_set *h,
                                  const struct gguf_allocator *a, uint64_t n,
                                  struct gguf_error *err);
/* Fine on a zeroed struct. */
void gg_hash_set_fini(struct gg_hash_set *h);

/* Put text in: was it there? */
bool gg_hash_set_add(struct gg_hash_set *h, struct gguf_str text);
bool gg_hash_set_has(const struct gg_hash_set *h, struct gguf_str text);

#endif
