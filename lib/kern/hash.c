/* SPDX-License-Identifier: MIT */
/* hash.c - filling the family of checksums */
#include "config.h"
#include "kern/hash.h"
#include "kern/cpu_features.h"

#include <string.h>
#include <xxhash.h>

static void *create_xxh3(void)
{
    XXH3_state_t *x = XXH3_createState();
    if (x)
        (void)XXH3_128bits_reset(x); /* fails for NULL only */
    return x;
}

static void add_xxh3(void *state, const void *p, size_t n)
{
    (void)XXH3_128bits_update(state, p, n);
}

static void end_xxh3(void *state, unsigned char out[16])
{
    XXH128_canonical_t c;
    XXH128_canonicalFromHash(&c, XXH3_128bits_digest(state));
    memcpy(out, c.digest, sizeof c.digest);
    (void)XXH3_freeState(state);
}

void gg_hash_kern_init(struct gg_hash_kern *k, uint32_t cpu, bool sha)
{
    *k = (struct gg_hash_kern){ .xxh3 = { create_xxh3, add_xxh3, end_xxh3 },
                                .sha256 = gg_sha256_blocks };
    (void)cpu;
    (void)sha;
#if HAVE_KERN_256
    if (cpu & GG_CPU_256)
        k->xxh3 = gg_hash_xxh3_256;
#endif
#if HAVE_X86_AVX512
    if (cpu & GG_CPU_AVX512)
        k->xxh64_two = gg_hash_xxh64_two_avx512;
#endif
#if HAVE_X86_SHANI
    if (sha)
        k->sha256 = gg_hash_sha256_shani;
#elif HAVE_ARM_SHA2
    if (sha)
        k->sha256 = gg_hash_sha256_sha2;
#endif
}
