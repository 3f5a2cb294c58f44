/* SPDX-License-Identifier: MIT */
/* resident.c - memory management for files that are read by a function */
#include "config.h"
#include "base/resident.h"
#include "base/ckd.h"
#include "base/compiler.h"
#include "base/os/os.h"

/* Block size: a number of pages, one page in small files. */
enum { BLOCK = 256 << 10, SMALL_FILE = 64 << 20, MOST_IDLE = 16 << 20 };
#define NONE UINT32_MAX

struct gg_resident_block {
    uint32_t uses;
    bool there;            /* its bytes are in memory */
    uint32_t newer, older; /* neighbours in the list of idle blocks */
};

enum gguf_status gg_resident_init(struct gg_resident *w,
                                  const struct gg_mapfile *map,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err)
{
    const uint64_t page = gg_os_page_size();
    const uint64_t size = map->size < SMALL_FILE ? page : GG_MAX(page, BLOCK);
    const uint64_t n = map->size / size + 1;
    *w = (struct gg_resident){
        .map = map,
        .allocator = allocator,
        .block_size = size,
        .newest = NONE,
        .oldest = NONE,
        .most_idle =
            (uint32_t)(GG_MIN(map->size / 16, (uint64_t)MOST_IDLE) / size)
    };
    if (n < NONE)
        w->block = gg_mem_alloc_zero(allocator, n, sizeof *w->block);
    if (!w->block)
        return gg_error_set_nomem(err, SIZE_MAX);
    pthread_mutex_init(&w->lock, NULL);
    return GGUF_OK;
}

void gg_resident_fini(struct gg_resident *w)
{
    if (!w->block)
        return;
    pthread_mutex_destroy(&w->lock);
    gg_mem_free(w->allocator, w->block);
    *w = (struct gg_resident){ .map = NULL };
}

/* ---- idle blocks ---- */

static void leave_idle(struct gg_resident *w, uint32_t i)
{
    struct gg_resident_block *b = &w->block[i];
    *(b->newer == NONE ? &w->newest : &w->block[b->newer].older) = b->older;
    *(b->older == NONE ? &w->oldest : &w->block[b->older].newer) = b->newer;
    w->n_idle--;
}

static void enter_idle(struct gg_resident *w, uint32_t i)
{
    struct gg_resident_block *b = &w->block[i];
    b->newer = NONE;
    b->older = w->newest;
    *(w->newest == NONE ? &w->oldest : &w->block[w->newest].newer) = i;
    w->newest = i;
    w->n_idle++;
}

static void drop_some(struct gg_resident *w)
{
    while (w->n_idle > w->most_idle) {
        const uint32_t i = w->oldest;
        const uint64_t at = i * w->block_size;
        leave_idle(w, i);
        w->block[i].there = false;
        gg_mapfile_drop(w->map, at, GG_MIN(at + w->block_size, w->map->size));
    }
}

/* ---- held blocks ---- */

static void hold_block(struct gg_resident *w, uint32_t i)
{
    struct gg_resident_block *b = &w->block[i];
    if (!b->uses++ && b->there)
        leave_idle(w, i);
}

static void release_block(struct gg_resident *w, uint32_t i)
{
    struct gg_resident_block *b = &w->block[i];
    if (!--b->uses && b->there)
        enter_idle(w, i);
}

void gg_resident_pin(struct gg_resident *w, uint64_t upto)
{
    for (uint64_t i = 0; i * w->block_size < upto; i++) {
        w->block[i].uses = 1;
        w->block[i].there = (i + 1) * w->block_size <= upto;
    }
}

/* Fetch the missing ones of blocks [from, to), run by run. */
static enum gguf_status fetch_blocks(struct gg_resident *w, uint32_t from,
                                     uint32_t to, struct gguf_error *err)
{
    for (uint32_t i = from, end; i < to; i = end) {
        end = i + 1;
        if (w->block[i].there)
            continue;
        while (end < to && !w->block[end].there)
            end++;
        GG_TRY(gg_mapfile_fetch(w->map, i * w->block_size,
                                GG_MIN(end * w->block_size, w->map->size),
                                err));
        for (uint32_t k = i; k < end; k++)
            w->block[k].there = true;
    }
    return GGUF_OK;
}

enum gguf_status gg_resident_hold(struct gg_resident *w, uint64_t off,
                                  uint64_t size, struct gguf_error *err)
{
    if (!size)
        return GGUF_OK;
    const uint32_t from = (uint32_t)(off / w->block_size);
    const uint32_t to = (uint32_t)((off + size - 1) / w->block_size) + 1;
    pthread_mutex_lock(&w->lock);
    for (uint32_t i = from; i < to; i++)
        hold_block(w, i);
    const enum gguf_status st = fetch_blocks(w, from, to, err);
    for (uint32_t i = from; i < to && st != GGUF_OK; i++)
        release_block(w, i);
    w->most_idle = GG_MAX(w->most_idle, to - from);
    drop_some(w);
    pthread_mutex_unlock(&w->lock);
    return st;
}

void gg_resident_release(struct gg_resident *w, uint64_t off, uint64_t size)
{
    if (!size)
        return;
    const uint32_t to = (uint32_t)((off + size - 1) / w->block_size) + 1;
    pthread_mutex_lock(&w->lock);
    for (uint32_t i = (uint32_t)(off / w->block_size); i < to; i++)
        release_block(w, i);
    drop_some(w);
    pthread_mutex_unlock(&w->lock);
}
