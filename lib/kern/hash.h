/* SPDX-License-Identifier: MIT */
/* hash.h - the inner loops of checksums
 *
 * EXACT (vec.h): the same sums at every level. No pointer needs alignment. Any
 * thread.
 */
#ifndef GG_KERN_HASH_H
#define GG_KERN_HASH_H

#include "base/sha256.h"
#include "base/xxh64.h"

#include <stdbool.h>

/* XXH3 of 128 bits: its state as libxxhash's or, at a level, as that of
 * xxhash.h compiled for it. They do not mix. */
struct gg_hash_xxh3 {
    void *(*create)(void); /* empty; NULL: no memory */
    void (*add)(void *state, const void *p, size_t n);
    void (*end)(void *state, unsigned char out[16]); /* also frees state */
};

struct gg_hash_kern {
    gg_xxh64_two_fn *xxh64_two; /* NULL: not faster than one after another */
    struct gg_hash_xxh3 xxh3;
    gg_sha256_blocks_fn *sha256;
};

/* For the levels in cpu, and with the instructions for SHA-256 or without
 * (kern/cpu_features.h). */
void gg_hash_kern_init(struct gg_hash_kern *k, uint32_t cpu, bool sha);

/* Both sums are in one vector: two multiplications of 64 bits a block, where
 * one after another takes eight each. */
gg_xxh64_two_fn gg_hash_xxh64_two_avx512;

extern const struct gg_hash_xxh3 gg_hash_xxh3_avx2;

gg_sha256_blocks_fn gg_hash_sha256_shani;

#endif
