/* SPDX-License-Identifier: MIT */
/* xxh64.h - XXH64 with seed 0 (xxHash, doc/xxhash_spec.md, version 0.1.1)
 *
 * Besides libxxhash's function, whose state is opaque, we have one of our own:
 * it can add the same bytes to two hashes in one loop.
 */
#ifndef GG_BASE_XXH64_H
#define GG_BASE_XXH64_H

#include <stddef.h>
#include <stdint.h>

/* A running hash. */
struct gg_xxh64 {
    uint64_t lane[4];  /* accumulators of the complete blocks */
    uint64_t n;        /* bytes so far */
    uint8_t block[32]; /* last n mod 32 bytes */
};

void gg_xxh64_init(struct gg_xxh64 *s);
void gg_xxh64_add(struct gg_xxh64 *s, const void *p, size_t n);
/* Get the hash of the bytes so far, in canonical (big-endian) order. */
void gg_xxh64_end(const struct gg_xxh64 *s, uint8_t out[8]);

/* Kernel: add k blocks of 32 bytes at p to the lanes a, and k blocks at q to
 * the lanes b (kern/hash.h). */
typedef void gg_xxh64_two_fn(uint64_t a[4], const uint8_t *p, uint64_t b[4],
                             const uint8_t *q, size_t k);
/* Add the same n bytes to a and b, with the kernel two. */
void gg_xxh64_add_two(struct gg_xxh64 *a, struct gg_xxh64 *b, const void *p,
                      size_t n, gg_xxh64_two_fn *two);
/* Reference of the kernels. */
gg_xxh64_two_fn gg_xxh64_two;

#endif
