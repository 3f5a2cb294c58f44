/* SPDX-License-Identifier: MIT */
/* xxh64.h - XXH64 with seed 0, as its specification defines it (xxHash's
 * doc/xxhash_spec.md, version 0.1.1)
 *
 * One of our own beside libxxhash's, whose state is closed: here two sums that
 * see the same bytes can go through one loop.
 */
#ifndef GG_BASE_XXH64_H
#define GG_BASE_XXH64_H

#include <stddef.h>
#include <stdint.h>

struct gg_xxh64 {
    uint64_t lane[4];
    uint64_t n;        /* bytes so far, of which n mod 32 */
    uint8_t block[32]; /* wait here */
};

void gg_xxh64_init(struct gg_xxh64 *s);
void gg_xxh64_add(struct gg_xxh64 *s, const void *p, size_t n);
/* The sum in canonical (big-endian) order. */
void gg_xxh64_end(const struct gg_xxh64 *s, uint8_t out[8]);

/* The same n bytes more to a and b. two takes blocks of 32 bytes, k of them at
 * p into the lanes a and at q into the lanes b: a kernel (kern/hash.h). */
typedef void gg_xxh64_two_fn(uint64_t a[4], const uint8_t *p, uint64_t b[4],
                             const uint8_t *q, size_t k);
void gg_xxh64_add_two(struct gg_xxh64 *a, struct gg_xxh64 *b, const void *p,
                      size_t n, gg_xxh64_two_fn *two);
/* The reference of the kernels. */
gg_xxh64_two_fn gg_xxh64_two;

#endif
