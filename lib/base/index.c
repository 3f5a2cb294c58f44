/* SPDX-License-Identifier: MIT */
/* index.c - hash table from names to numbers (XXH3 with a seed) */
#include "config.h"
#include "base/index.h"
#include "base/hash_set.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>
#include <xxhash.h>

static enum gguf_status slots_alloc(struct gg_index *ix, uint32_t n_slots,
                                    struct gguf_error *err)
{
    uint32_t *slots = gg_mem_alloc_zero(ix->allocator, n_slots, 8);
    if (!slots)
        return gg_error_set_nomem(err, (size_t)n_slots * 8);
    for (uint32_t i = 0; i < n_slots; i++)
        slots[2 * i + 1] = GG_INDEX_NONE;
    ix->slots = slots;
    ix->n_slots = n_slots;
    return GGUF_OK;
}

enum gguf_status gg_index_init(struct gg_index *ix,
                               const struct gguf_allocator *a,
                               uint32_t n_expected, gg_index_name_fn *name,
                               const void *user, struct gguf_error *err)
{
    *ix = (struct gg_index){ .allocator = a, .name = name, .user = user };
    ix->seed = gg_hash_set_seed(ix);
    uint32_t n_slots = 16;
    while (n_slots / 2 < n_expected && n_slots < UINT32_C(1) << 30)
        n_slots *= 2;
    return slots_alloc(ix, n_slots, err);
}

void gg_index_fini(struct gg_index *ix)
{
    gg_mem_free(ix->allocator, ix->slots);
    ix->slots = NULL;
    ix->n_slots = ix->n_used = 0;
}

void gg_index_clear(struct gg_index *ix)
{
    for (uint32_t i = 0; i < ix->n_slots; i++)
        ix->slots[2 * i + 1] = GG_INDEX_NONE;
    ix->n_used = 0;
}

/* Find the slot of name, or the free slot for it. The table is at most half
 * full, so the search ends. */
static uint32_t probe_slots(const struct gg_index *ix, struct gguf_str name,
                            uint64_t hash)
{
    uint32_t mask = ix->n_slots - 1;
    uint32_t tag = (uint32_t)(hash >> 32);
    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        uint32_t id = ix->slots[2 * i + 1];
        if (id == GG_INDEX_NONE)
            return i;
        if (ix->slots[2 * i] == tag && gg_str_eq(ix->name(ix->user, id), name))
            return i;
    }
}

static uint64_t hash_of(const struct gg_index *ix, struct gguf_str name)
{
    return XXH3_64bits_withSeed(name.data, name.size, ix->seed);
}

static enum gguf_status grow_slots(struct gg_index *ix, struct gguf_error *err)
{
    uint32_t *old = ix->slots, n_old = ix->n_slots;
    if (n_old >= UINT32_C(1) << 31)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "too many names for an index");
    GG_TRY(slots_alloc(ix, n_old * 2, err));
    for (uint32_t i = 0; i < n_old; i++) {
        uint32_t id = old[2 * i + 1];
        if (id == GG_INDEX_NONE)
            continue;
        struct gguf_str name = ix->name(ix->user, id);
        uint64_t hash = hash_of(ix, name);
        uint32_t at = probe_slots(ix, name, hash);
        ix->slots[2 * at] = (uint32_t)(hash >> 32);
        ix->slots[2 * at + 1] = id;
    }
    gg_mem_free(ix->allocator, old);
    return GGUF_OK;
}

enum gguf_status gg_index_add(struct gg_index *ix, uint32_t id,
                              uint32_t *other, struct gguf_error *err)
{
    if (ix->n_used >= ix->n_slots / 2)
        GG_TRY(grow_slots(ix, err));
    struct gguf_str name = ix->name(ix->user, id);
    uint64_t hash = hash_of(ix, name);
    uint32_t at = probe_slots(ix, name, hash);
    *other = ix->slots[2 * at + 1];
    if (*other == GG_INDEX_NONE) {
        ix->slots[2 * at] = (uint32_t)(hash >> 32);
        ix->slots[2 * at + 1] = id;
        ix->n_used++;
    }
    return GGUF_OK;
}

uint32_t gg_index_find(const struct gg_index *ix, struct gguf_str name)
{
    if (!ix->slots)
        return GG_INDEX_NONE;
    return ix->slots[2 * probe_slots(ix, name, hash_of(ix, name)) + 1];
}
