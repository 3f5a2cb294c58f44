/* SPDX-License-Identifier: MIT */
/* hash.h - inner loops of checksums
 *
 * EXACT (vec.h): the same sums at every level. No pointer needs alignment. Any
 * thread.
 */
#ifndef GG_KERN_HASH_H
#define GG_KERN_HASH_H

#include "base/sha256.h"
#include "base/xxh64.h"

#include <stdbool.h>

/* XXH3 with 128 bits. Its state is libxxhash's or, at a level, that of xxhash.h
 * compiled for the level; the two must not be mixed. */
struct gg_hash_xxh3 {
    void *(*create)(void); /* empty; NULL: no memory */
    void (*add)(void *state, const void *p, size_t n);
    /* writes the sum and frees state */
    void (*end)(void *state, unsigned char out[16]);
};

struct gg_hash_kern {
    /* two XXH64 of the same bytes at once; NULL: it would not be faster */
    gg_xxh64_two_fn *xxh64_two;
    struct gg_hash_xxh3 xxh3;
    gg_sha256_blocks_fn *sha256;
};

/* Fill k for the levels in cpu. sha: the processor has SHA-256 instructions
 * (kern/cpu_features.h). */
void gg_hash_kern_init(struct gg_hash_kern *k, uint32_t cpu, bool sha);

/* Computes both sums in one vector: two 64-bit multiplications a block instead
 * of eight for each sum. */
gg_xxh64_two_fn gg_hash_xxh64_two_avx512;

extern const struct gg_hash_xxh3 gg_hash_xxh3_256;

gg_sha256_blocks_fn gg_hash_sha256_shani, gg_hash_sha256_sha2;

#endif
