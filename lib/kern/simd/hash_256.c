/* SPDX-License-Identifier: MIT */
/* hash_256.c - XXH3 as xxhash.h implements it for 256 bits
 *
 * The system's library may be compiled for less (SSE2 takes 3.4 times as long),
 * and its functions that choose by processor are missing in some packages. */
#include "config.h"
#include "kern/hash.h"

#include <string.h>
#define XXH_INLINE_ALL /* all of it in this file, and static */
#include <xxhash.h>

static void *create_hash(void)
{
    XXH3_state_t *x = XXH3_createState();
    if (x)
        (void)XXH3_128bits_reset(x); /* fails for NULL only */
    return x;
}

static void add_bytes(void *state, const void *p, size_t n)
{
    (void)XXH3_128bits_update(state, p, n);
}

static void end_hash(void *state, unsigned char out[16])
{
    XXH128_canonical_t c;
    XXH128_canonicalFromHash(&c, XXH3_128bits_digest(state));
    memcpy(out, c.digest, sizeof c.digest);
    (void)XXH3_freeState(state);
}

const struct gg_hash_xxh3 gg_hash_xxh3_256 = { create_hash, add_bytes,
                                               end_hash };
