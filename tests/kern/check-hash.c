/* SPDX-License-Identifier: MIT */
/* check-hash.c - inner loops of checksums: the library's XXH64 against
 * libxxhash's, kernels of every level against the C reference
 *
 * A seed as argument gives other data.
 */
#include "config.h"
#include "base/compiler.h"
#include "kern/hash.h"
#include "tests/kern/kern.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <xxhash.h>

enum { MAX_N = 5000 };
static uint8_t text[MAX_N + 64];

static uint64_t hash_of(const struct gg_xxh64 *s)
{
    uint8_t out[8];
    uint64_t v = 0;
    gg_xxh64_end(s, out);
    for (int i = 0; i < 8; i++)
        v = v << 8 | out[i];
    return v;
}

/* A number of bytes between 1 and `most', at most left. */
static size_t some_bytes(size_t left, uint64_t most)
{
    const size_t k = (size_t)rnd_below(most);
    return GG_MIN(k, left);
}

/* Any length, any address, whole and in pieces. */
static void check_xxh64(void)
{
    unsigned wrong = 0;
    for (size_t n = 0; n < 300; n++) {
        const uint8_t *p = text + n % 13;
        struct gg_xxh64 s;
        gg_xxh64_init(&s);
        gg_xxh64_add(&s, p, n);
        wrong += hash_of(&s) != XXH64(p, n, 0);
        gg_xxh64_init(&s);
        for (size_t at = 0, k; at < n; at += k) {
            k = some_bytes(n - at, 80);
            gg_xxh64_add(&s, p + at, k);
        }
        wrong += hash_of(&s) != XXH64(p, n, 0);
    }
    ok(!wrong, "XXH64 of texts of 0 to 299 bytes");
}

/* Two sums over the same bytes that began at different ones. */
static void check_two(gg_xxh64_two_fn *two, const char *level)
{
    unsigned wrong = 0;
    for (int round = 0; round < 3000; round++) {
        const size_t first = (size_t)rnd_below(100);
        size_t at = first;
        struct gg_xxh64 a, b;
        gg_xxh64_init(&a);
        gg_xxh64_init(&b);
        gg_xxh64_add(&a, text, first);
        while (at < MAX_N) {
            const size_t k = some_bytes(MAX_N - at, round % 2 ? 90 : 4000);
            gg_xxh64_add_two(&a, &b, text + at, k, two);
            at += k;
        }
        wrong += hash_of(&a) != XXH64(text, MAX_N, 0) ||
                 hash_of(&b) != XXH64(text + first, MAX_N - first, 0);
    }
    ok(!wrong, "%s: two sums at once", level);
}

static void check_xxh3(const struct gg_hash_xxh3 *x, const char *level)
{
    unsigned wrong = 0;
    for (int round = 0; round < 1000; round++) {
        const size_t n = (size_t)rnd_below(MAX_N);
        void *s = x->create();
        XXH128_canonical_t want;
        unsigned char got[16];
        XXH128_canonicalFromHash(&want, XXH3_128bits(text, n));
        for (size_t at = 0, k; s && at < n; at += k) {
            k = some_bytes(n - at, 1500);
            x->add(s, text + at, k);
        }
        if (s)
            x->end(s, got);
        wrong += !s || memcmp(got, want.digest, sizeof got);
    }
    ok(!wrong, "%s: XXH3", level);
}

static void check_sha256(gg_sha256_blocks_fn *blocks, const char *level)
{
    static const uint8_t abc[64] = { [0] = 'a', 'b', 'c', 0x80, [63] = 24 };
    static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                       0xa54ff53a, 0x510e527f, 0x9b05688c,
                                       0x1f83d9ab, 0x5be0cd19 };
    /* FIPS 180-4's example: the padded block of "abc". */
    static const uint32_t want[8] = { 0xba7816bf, 0x8f01cfea, 0x414140de,
                                      0x5dae2223, 0xb00361a3, 0x96177a9c,
                                      0xb410ff61, 0xf20015ad };
    uint32_t h[8], ref[8];
    unsigned wrong = 0;
    memcpy(h, first, sizeof h);
    blocks(h, abc, 1);
    wrong += memcmp(h, want, sizeof h) != 0;
    for (size_t k = 0; k <= MAX_N / 64; k++) {
        for (int i = 0; i < 8; i++)
            ref[i] = h[i] = (uint32_t)rnd64();
        gg_sha256_blocks(ref, text + k % 17, k);
        blocks(h, text + k % 17, k);
        wrong += memcmp(h, ref, sizeof h) != 0;
    }
    ok(!wrong, "%s: SHA-256", level);
}

int main(int argc, char **argv)
{
    struct test_level level[8];
    const unsigned n = test_levels(level);
    rnd_seed(argc, argv);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)rnd64();
    check_xxh64();
    check_two(gg_xxh64_two, "reference");
    for (unsigned i = 0; i < n; i++) {
        struct gg_hash_kern k;
        gg_hash_kern_init(&k, level[i].mask, false);
        if (k.xxh64_two)
            check_two(k.xxh64_two, level[i].name);
        check_xxh3(&k.xxh3, level[i].name);
        ok(k.sha256 == gg_sha256_blocks,
           "%s: no instructions that are not "
           "asked for",
           level[i].name);
    }
    struct gg_hash_kern k;
    gg_hash_kern_init(&k, 0, gg_kern_cpu_has_sha());
    check_sha256(k.sha256, k.sha256 == gg_sha256_blocks ? "c" : "processor");
    return done_testing();
}
