/* SPDX-License-Identifier: MIT */
/* sha256.c - SHA-256 (FIPS 180-4, sections 4.1.2, 4.2.2, 5.1.1, 5.3.3, 6.2) */
#include "config.h"
#include "base/sha256.h"
#include "base/compiler.h"

#include <string.h>

/* The first 32 bits of the fractions of the cube roots of the first 64 primes
 * (section 4.2.2). */
const uint32_t gg_sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static uint32_t load32be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static void store32be(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Round t. Instead of moving the eight variables by one place, the next round
 * passes them in another order. */
#define ROUND(a, b, c, d, e, f, g, h, t)                                      \
    do {                                                                      \
        h += (rotate_right(e, 6) ^ rotate_right(e, 11) ^                      \
              rotate_right(e, 25)) +                                          \
             (g ^ (e & (f ^ g))) + gg_sha256_k[t] + w[t];                     \
        d += h;                                                               \
        h += (rotate_right(a, 2) ^ rotate_right(a, 13) ^                      \
              rotate_right(a, 22)) +                                          \
             ((a & b) | (c & (a | b)));                                       \
    } while (0)

/* One block of 64 bytes (section 6.2.2). */
static void add_block(uint32_t hash[8], const uint8_t *p)
{
    uint32_t w[64];
    for (int t = 0; t < 16; t++)
        w[t] = load32be(p + 4 * t);
    for (int t = 16; t < 64; t++) {
        const uint32_t x = w[t - 15], y = w[t - 2];
        w[t] = (rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10) +
               w[t - 7] + (rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3) +
               w[t - 16];
    }
    uint32_t a = hash[0], b = hash[1], c = hash[2], d = hash[3];
    uint32_t e = hash[4], f = hash[5], g = hash[6], h = hash[7];
    for (int t = 0; t < 64; t += 8) {
        ROUND(a, b, c, d, e, f, g, h, t);
        ROUND(h, a, b, c, d, e, f, g, t + 1);
        ROUND(g, h, a, b, c, d, e, f, t + 2);
        ROUND(f, g, h, a, b, c, d, e, t + 3);
        ROUND(e, f, g, h, a, b, c, d, t + 4);
        ROUND(d, e, f, g, h, a, b, c, t + 5);
        ROUND(c, d, e, f, g, h, a, b, t + 6);
        ROUND(b, c, d, e, f, g, h, a, t + 7);
    }
    const uint32_t sum[8] = { a, b, c, d, e, f, g, h };
    for (int i = 0; i < 8; i++)
        hash[i] += sum[i];
}

void gg_sha256_blocks(uint32_t hash[8], const uint8_t *p, size_t k)
{
    for (; k; k--, p += 64)
        add_block(hash, p);
}

void gg_sha256_init(struct gg_sha256 *s, gg_sha256_blocks_fn *blocks)
{
    /* Square roots of the first 8 primes (section 5.3.3). */
    static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                       0xa54ff53a, 0x510e527f, 0x9b05688c,
                                       0x1f83d9ab, 0x5be0cd19 };
    s->blocks = blocks;
    memcpy(s->h, first, sizeof first);
    s->n = 0;
}

void gg_sha256_add(struct gg_sha256 *s, const void *data, size_t n)
{
    const uint8_t *p = data;
    const size_t held = s->n % 64;
    s->n += n;
    if (held) {
        const size_t take = GG_MIN(n, 64 - held);
        memcpy(s->block + held, p, take);
        if (held + take < 64)
            return;
        s->blocks(s->h, s->block, 1);
        p += take;
        n -= take;
    }
    s->blocks(s->h, p, n / 64);
    if (n % 64)
        memcpy(s->block, p + n / 64 * 64, n % 64);
}

void gg_sha256_end(struct gg_sha256 *s, uint8_t out[32])
{
    static const uint8_t pad[64] = { 0x80 };
    uint8_t bits[8];
    store32be(bits, (uint32_t)(s->n >> 29));
    store32be(bits + 4, (uint32_t)(s->n << 3));
    gg_sha256_add(s, pad, (size_t)(64 - (s->n + 8) % 64));
    gg_sha256_add(s, bits, 8);
    for (int i = 0; i < 8; i++)
        store32be(out + 4 * i, s->h[i]);
}
