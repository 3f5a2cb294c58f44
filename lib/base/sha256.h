/* sha256.h - SHA-256, as FIPS 180-4 defines it */
#ifndef GG_BASE_SHA256_H
#define GG_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct gg_sha256 {
    uint32_t h[8];
    uint64_t n;        /* bytes so far, of which n mod 64 */
    uint8_t block[64]; /* wait here */
};

void gg_sha256_init(struct gg_sha256 *s);
void gg_sha256_add(struct gg_sha256 *s, const void *p, size_t n);
/* s is used up. */
void gg_sha256_end(struct gg_sha256 *s, uint8_t out[32]);

#endif
