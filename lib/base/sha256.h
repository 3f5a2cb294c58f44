/* SPDX-License-Identifier: MIT */
/* sha256.h - SHA-256, as FIPS 180-4 defines it */
#ifndef GG_BASE_SHA256_H
#define GG_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* k blocks of 64 bytes into the eight words of a hash (section 6.2.2). */
typedef void gg_sha256_blocks_fn(uint32_t hash[8], const uint8_t *p, size_t k);
gg_sha256_blocks_fn
    gg_sha256_blocks; /* the reference of kernels: kern/hash.h */

/* The constants of section 4.2.2. */
extern const uint32_t gg_sha256_k[64];

struct gg_sha256 {
    gg_sha256_blocks_fn *blocks;
    uint32_t h[8];
    uint64_t n;        /* bytes so far, of which n mod 64 */
    uint8_t block[64]; /* wait here */
};

void gg_sha256_init(struct gg_sha256 *s, gg_sha256_blocks_fn *blocks);
void gg_sha256_add(struct gg_sha256 *s, const void *p, size_t n);
/* s is used up. */
void gg_sha256_end(struct gg_sha256 *s, uint8_t out[32]);

#endif
