/* SPDX-License-Identifier: MIT */
/* sha256.h - SHA-256 (FIPS 180-4) */
#ifndef GG_BASE_SHA256_H
#define GG_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* Add k blocks of 64 bytes at p to the eight words of a hash (section
 * 6.2.2). */
typedef void gg_sha256_blocks_fn(uint32_t hash[8], const uint8_t *p, size_t k);
gg_sha256_blocks_fn
    gg_sha256_blocks; /* reference of the kernels (kern/hash.h) */

/* Constants of section 4.2.2. */
extern const uint32_t gg_sha256_k[64];

/* A running hash. */
struct gg_sha256 {
    gg_sha256_blocks_fn *blocks; /* kernel */
    uint32_t h[8];               /* hash of the complete blocks */
    uint64_t n;                  /* bytes so far */
    uint8_t block[64];           /* last n mod 64 bytes */
};

/* Begin a hash that uses the kernel blocks. */
void gg_sha256_init(struct gg_sha256 *s, gg_sha256_blocks_fn *blocks);
/* Add n bytes. */
void gg_sha256_add(struct gg_sha256 *s, const void *p, size_t n);
/* Finish the hash. s cannot be used afterwards. */
void gg_sha256_end(struct gg_sha256 *s, uint8_t out[32]);

#endif
