/* SPDX-License-Identifier: MIT */
/* hash_set.c - a set of texts that keeps their hashes only */
#include "config.h"
#include "base/hash_set.h"
#include "base/mem.h"
#include "base/os/os.h"

#include <xxhash.h>

uint64_t gg_hash_set_seed(const void *salt)
{
    uint64_t seed = 0;
    if (gg_os_random(&seed, sizeof seed) == 0)
        return seed;
    return gg_os_clock_ns() * UINT64_C(0x9E3779B97F4A7C15) ^
           (uint64_t)(uintptr_t)salt;
}

enum gguf_status gg_hash_set_init(struct gg_hash_set *h,
                                  const struct gguf_allocator *a, uint64_t n,
                                  struct gguf_error *err)
{
    uint64_t n_slots = 16;
    while (n_slots / 2 < n && n_slots < UINT64_C(1) << 60)
        n_slots *= 2;
    *h = (struct gg_hash_set){ .allocator = a, .mask = n_slots - 1 };
    h->seed = gg_hash_set_seed(h);
    h->slot = gg_mem_alloc_zero(a, n_slots, sizeof *h->slot);
    return h->slot
               ? GGUF_OK
               : gg_error_set_nomem(err, (size_t)n_slots * sizeof *h->slot);
}

void gg_hash_set_fini(struct gg_hash_set *h)
{
    gg_mem_free(h->allocator, h->slot);
    h->slot = NULL;
}

/* Find the slot of text, or the free slot for it. *hash receives its hash. */
static uint64_t *probe_slots(const struct gg_hash_set *h, struct gguf_str text,
                             uint64_t *hash)
{
    *hash = XXH3_64bits_withSeed(text.data, text.size, h->seed);
    *hash += *hash == 0;
    uint64_t i = *hash & h->mask;
    while (h->slot[i] && h->slot[i] != *hash)
        i = (i + 1) & h->mask;
    return &h->slot[i];
}

bool gg_hash_set_add(struct gg_hash_set *h, struct gguf_str text)
{
    uint64_t hash, *slot = probe_slots(h, text, &hash);
    bool was_there = *slot != 0;
    *slot = hash;
    return was_there;
}

bool gg_hash_set_has(const struct gg_hash_set *h, struct gguf_str text)
{
    uint64_t hash;
    return *probe_slots(h, text, &hash) != 0;
}
