/* SPDX-License-Identifier: MIT */
/* xxh64.c - XXH64; names and steps are those of its specification */
#include "config.h"
#include "base/xxh64.h"
#include "base/bytes.h"
#include "base/compiler.h"

#include <string.h>

#define PRIME_1 UINT64_C(0x9E3779B185EBCA87)
#define PRIME_2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define PRIME_3 UINT64_C(0x165667B19E3779F9)
#define PRIME_4 UINT64_C(0x85EBCA77C2B2AE63)
#define PRIME_5 UINT64_C(0x27D4EB2F165667C5)

static uint64_t rotate_left(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static uint64_t one_round(uint64_t acc, uint64_t lane)
{
    return rotate_left(acc + lane * PRIME_2, 31) * PRIME_1;
}

/* Step 2: k blocks of 32 bytes. */
static void add_blocks(uint64_t lane[4], const uint8_t *p, size_t k)
{
    uint64_t a = lane[0], b = lane[1], c = lane[2], d = lane[3];
    for (; k; k--, p += 32) {
        a = one_round(a, gg_bytes_load64le(p));
        b = one_round(b, gg_bytes_load64le(p + 8));
        c = one_round(c, gg_bytes_load64le(p + 16));
        d = one_round(d, gg_bytes_load64le(p + 24));
    }
    lane[0] = a;
    lane[1] = b;
    lane[2] = c;
    lane[3] = d;
}

void gg_xxh64_two(uint64_t a[4], const uint8_t *p, uint64_t b[4],
                  const uint8_t *q, size_t k)
{
    add_blocks(a, p, k);
    add_blocks(b, q, k);
}

void gg_xxh64_init(struct gg_xxh64 *s)
{
    static const struct gg_xxh64 first = {
        /* step 1 */
        .lane = { PRIME_1 + PRIME_2, PRIME_2, 0, 0 - PRIME_1 }
    };
    *s = first;
}

/* Complete the pending block. Returns the number of bytes it took of n. */
static size_t fill_lanes(struct gg_xxh64 *s, const uint8_t *p, size_t n)
{
    const size_t held = s->n % 32;
    const size_t take = held ? GG_MIN(n, 32 - held) : 0;
    if (!take)
        return 0;
    memcpy(s->block + held, p, take);
    s->n += take;
    if (held + take == 32)
        add_blocks(s->lane, s->block, 1);
    return take;
}

void gg_xxh64_add(struct gg_xxh64 *s, const void *data, size_t n)
{
    const uint8_t *p = data;
    const size_t head = fill_lanes(s, p, n);
    p += head;
    n -= head;
    if (!n)
        return;
    add_blocks(s->lane, p, n / 32);
    s->n += n;
    memcpy(s->block, p + n / 32 * 32, n % 32);
}

void gg_xxh64_add_two(struct gg_xxh64 *a, struct gg_xxh64 *b, const void *data,
                      size_t n, gg_xxh64_two_fn *two)
{
    const uint8_t *p = data;
    const size_t i = fill_lanes(a, p, n), j = fill_lanes(b, p, n);
    const size_t k = (n - GG_MAX(i, j)) / 32;
    two(a->lane, p + i, b->lane, p + j, k);
    a->n += 32 * k;
    b->n += 32 * k;
    gg_xxh64_add(a, p + i + 32 * k, n - i - 32 * k);
    gg_xxh64_add(b, p + j + 32 * k, n - j - 32 * k);
}

void gg_xxh64_end(const struct gg_xxh64 *s, uint8_t out[8])
{
    const uint8_t *p = s->block, *end = p + s->n % 32;
    uint64_t acc = PRIME_5;
    if (s->n >= 32) { /* step 3 */
        acc = rotate_left(s->lane[0], 1) + rotate_left(s->lane[1], 7) +
              rotate_left(s->lane[2], 12) + rotate_left(s->lane[3], 18);
        for (int i = 0; i < 4; i++)
            acc = (acc ^ one_round(0, s->lane[i])) * PRIME_1 + PRIME_4;
    }
    acc += s->n;                 /* step 4 */
    for (; end - p >= 8; p += 8) /* step 5 */
        acc = rotate_left(acc ^ one_round(0, gg_bytes_load64le(p)), 27) *
                  PRIME_1 +
              PRIME_4;
    if (end - p >= 4) {
        acc = rotate_left(acc ^ gg_bytes_load32le(p) * PRIME_1, 23) * PRIME_2 +
              PRIME_3;
        p += 4;
    }
    for (; p < end; p++)
        acc = rotate_left(acc ^ *p * PRIME_5, 11) * PRIME_1;
    acc = (acc ^ acc >> 33) * PRIME_2; /* step 6 */
    acc = (acc ^ acc >> 29) * PRIME_3;
    acc ^= acc >> 32;
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(acc >> (56 - 8 * i));
}
