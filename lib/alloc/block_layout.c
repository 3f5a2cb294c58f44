/* SPDX-License-Identifier: MIT */
/* block_layout.c - placing blocks with known lifetimes */
#include "config.h"
#include "alloc/block_layout.h"
#include "alloc/bestfit.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

enum {
    NONE = -1,
    MAX_ROUNDS = 200,     /* passes that place all blocks greedily */
    ROUND_BLOCKS = 20000, /* blocks placed in all rounds together, about */
};

/* --- in time's order ------------------------------------------------------ */

/* Sizes are summed up without overflow before anything is placed by size. */
static uint64_t pad_size(uint64_t size, uint64_t align)
{
    return (size + align - 1) & ~(align - 1);
}

/* Free block k, except for the part under the next block. */
static enum gguf_status end_block(struct gg_bestfit *fit,
                                  const struct gg_alloc_block *b, int32_t k,
                                  struct gguf_error *err)
{
    uint64_t kept = 0;
    if (b[k].next != GG_BLOCK_ANY)
        kept = pad_size(b[b[k].next].size, fit->align);
    return gg_bestfit_free(fit, b[k].off + kept,
                           pad_size(b[k].size, fit->align) - kept, err);
}

static enum gguf_status place_in_time_order(struct gg_alloc_block *b, size_t n,
                                            size_t n_steps, uint64_t align,
                                            bool at_end,
                                            const struct gguf_allocator *a,
                                            uint64_t *total,
                                            struct gguf_error *err)
{
    struct gg_bestfit fit;
    GG_TRY(gg_bestfit_init(&fit, a, align, err));
    fit.at_end = at_end;
    enum gguf_status st = GGUF_OK;
    /* blocks that end at a step, as lists */
    int32_t *ends = gg_mem_alloc(a, (n_steps + n) * sizeof *ends);
    int32_t *next = ends ? ends + n_steps : NULL;
    if (!ends)
        st = gg_error_set_nomem(err, (n_steps + n) * sizeof *ends);
    for (size_t s = 0; st == GGUF_OK && s < n_steps; s++)
        ends[s] = NONE;
    size_t i = 0;
    for (size_t s = 0; st == GGUF_OK && s < n_steps; s++) {
        for (; st == GGUF_OK && i < n && b[i].first == (int32_t)s; i++) {
            if (b[i].on == GG_BLOCK_ANY)
                st = gg_bestfit_alloc(&fit, b[i].size, &b[i].off, err);
            else
                b[i].off = b[b[i].on].off;
            next[i] = ends[b[i].last];
            ends[b[i].last] = (int32_t)i;
        }
        for (int32_t k = ends[s]; st == GGUF_OK && k != NONE; k = next[k])
            st = end_block(&fit, b, k, err);
    }
    *total = fit.high;
    gg_mem_free(a, ends);
    gg_bestfit_fini(&fit);
    return st;
}

/* --- in the order of size ------------------------------------------------- */

/* Placed blocks, to be asked which live at the same time as another: those
 * that begin within its life, by step, and those that live when it begins,
 * from a tree of intervals of steps in which each block hangs at the few nodes
 * that make up its life. */
struct item {
    int32_t block, next;
};

struct greedy {
    struct gg_alloc_block *b;
    size_t n_leaves; /* leaves of the tree: a power of two >= n_steps */
    int32_t *tree;   /* lists of items, root at 1 */
    struct item *items;
    size_t n_items, cap_items;
    int32_t *begins; /* first block of each step; blocks follow in order */
    bool *placed;
    int32_t *order;             /* blocks in the order of size */
    struct gg_alloc_span *near; /* placed blocks that live at the same time */
    size_t n_near;
    const struct gguf_allocator *a;
};

static enum gguf_status link_block(struct greedy *g, size_t node,
                                   int32_t block, struct gguf_error *err)
{
    if (g->n_items == g->cap_items) {
        void *grown = gg_mem_grow(g->a, g->items, &g->cap_items,
                                  sizeof *g->items, 1, err);
        if (!grown)
            return GGUF_E_NOMEM;
        g->items = grown;
    }
    g->items[g->n_items] = (struct item){ block, g->tree[node] };
    g->tree[node] = (int32_t)g->n_items++;
    return GGUF_OK;
}

static enum gguf_status insert_block(struct greedy *g, int32_t k,
                                     struct gguf_error *err)
{
    size_t lo = (size_t)g->b[k].first + g->n_leaves;
    size_t hi = (size_t)g->b[k].last + g->n_leaves + 1;
    for (; lo < hi; lo /= 2, hi /= 2) {
        if (lo & 1)
            GG_TRY(link_block(g, lo++, k, err));
        if (hi & 1)
            GG_TRY(link_block(g, --hi, k, err));
    }
    g->placed[k] = true;
    return GGUF_OK;
}

static void add_neighbour(struct greedy *g, int32_t k)
{
    g->near[g->n_near++] = (struct gg_alloc_span){ g->b[k].off, g->b[k].size };
}

static void find_neighbours(struct greedy *g, const struct gg_alloc_block *b)
{
    g->n_near = 0;
    for (size_t node = (size_t)b->first + g->n_leaves; node; node /= 2)
        for (int32_t i = g->tree[node]; i != NONE; i = g->items[i].next)
            add_neighbour(g, g->items[i].block);
    for (int32_t k = g->begins[b->first + 1]; k < g->begins[b->last + 1]; k++)
        if (g->placed[k])
            add_neighbour(g, k);
}

static int compare_offsets(const void *x, const void *y)
{
    const struct gg_alloc_span *a = x, *b = y;
    return (a->off > b->off) - (a->off < b->off);
}

/* The smallest gap that holds size bytes, or the end of all. */
static uint64_t find_gap(struct greedy *g, uint64_t size)
{
    uint64_t end = 0, best = 0, best_size = UINT64_MAX;
    qsort(g->near, g->n_near, sizeof *g->near, compare_offsets);
    for (size_t i = 0; i < g->n_near; i++) {
        const struct gg_alloc_span *s = &g->near[i];
        if (s->off > end && s->off - end >= size && s->off - end < best_size) {
            best = end;
            best_size = s->off - end;
        }
        end = GG_MAX(end, s->off + s->size);
    }
    return best_size == UINT64_MAX ? end : best;
}

/* The largest first, of equals the earlier. */
static bool is_smaller(const void *blocks, int32_t i, int32_t k)
{
    const struct gg_alloc_block *b = blocks;
    return b[i].size < b[k].size;
}

/* Place all in the given order, as long as the total stays below limit.
 * *worst: the place in the order of the block that ends highest. */
static enum gguf_status place_greedily(struct greedy *g, size_t n,
                                       uint64_t align, uint64_t limit,
                                       uint64_t *total, size_t *worst,
                                       struct gguf_error *err)
{
    *total = *worst = g->n_items = 0;
    for (size_t i = 0; i < 2 * g->n_leaves; i++)
        g->tree[i] = NONE;
    memset(g->placed, 0, n * sizeof *g->placed);
    for (size_t i = 0; i < n; i++) {
        struct gg_alloc_block *b = &g->b[g->order[i]];
        uint64_t size = pad_size(b->size, align);
        if (!size)
            continue;
        find_neighbours(g, b);
        for (size_t k = 0; k < g->n_near; k++)
            g->near[k].size = pad_size(g->near[k].size, align);
        b->off = find_gap(g, size);
        if (b->off + size > *total) {
            *total = b->off + size;
            *worst = i;
        }
        if (*total >= limit)
            return GGUF_OK; /* no better */
        GG_TRY(insert_block(g, g->order[i], err));
    }
    return GGUF_OK;
}

/* Another order for round r: the block that ended highest comes first, or in
 * every second round two change places, drawn by a linear congruential
 * generator (Knuth's MMIX), so that the same graph is always laid out alike. */
static void reorder_blocks(int32_t *order, size_t n, size_t r, size_t worst,
                           uint64_t *random)
{
    if (r % 2) {
        *random = *random * UINT64_C(6364136223846793005) +
                  UINT64_C(1442695040888963407);
        size_t x = (size_t)(*random >> 48) % n;
        size_t y = (size_t)(*random >> 32) % 0x10000 % n;
        int32_t k = order[x];
        order[x] = order[y];
        order[y] = k;
    } else {
        int32_t k = order[worst];
        memmove(order + 1, order, worst * sizeof *order);
        order[0] = k;
    }
}

/* Place the blocks in other orders, until the total reaches bound or the
 * rounds are used up. best has a solution of *total already; a better one
 * replaces it. */
static enum gguf_status try_orders(struct greedy *g, size_t n, uint64_t align,
                                   uint64_t bound, struct gg_alloc_block *best,
                                   uint64_t *total, struct gguf_error *err)
{
    size_t n_rounds = GG_MAX(1, GG_MIN(MAX_ROUNDS, ROUND_BLOCKS / n)), worst;
    uint64_t random = 1;
    for (size_t r = 0; r < n_rounds && bound < *total; r++) {
        uint64_t t;
        GG_TRY(place_greedily(g, n, align, *total, &t, &worst, err));
        if (t < *total) {
            memcpy(best, g->b, n * sizeof *best);
            *total = t;
        }
        reorder_blocks(g->order, n, r, worst, &random);
    }
    return GGUF_OK;
}

static enum gguf_status place_in_size_order(struct gg_alloc_block *best,
                                            size_t n, size_t n_steps,
                                            uint64_t align, uint64_t bound,
                                            const struct gguf_allocator *a,
                                            uint64_t *total,
                                            struct gguf_error *err)
{
    struct greedy g = { .n_leaves = 1, .a = a, .cap_items = 4 * n + 16 };
    while (g.n_leaves < n_steps)
        g.n_leaves *= 2;
    g.b = gg_mem_alloc(a, n * sizeof *g.b);
    g.tree = gg_mem_alloc(a, 2 * g.n_leaves * sizeof *g.tree);
    g.items = gg_mem_alloc(a, g.cap_items * sizeof *g.items);
    g.begins = gg_mem_alloc(a, (n_steps + 2) * sizeof *g.begins);
    g.placed = gg_mem_alloc(a, n * sizeof *g.placed);
    g.order = gg_mem_alloc(a, 2 * n * sizeof *g.order);
    g.near = gg_mem_alloc(a, 2 * n * sizeof *g.near);
    enum gguf_status st = GGUF_OK;
    if (!g.b || !g.tree || !g.items || !g.begins || !g.placed || !g.order ||
        !g.near) {
        st = gg_error_set_nomem(err, n * sizeof *g.items);
    } else {
        memcpy(g.b, best, n * sizeof *g.b);
        size_t k = 0;
        for (size_t s = 0; s < n_steps + 2; s++) {
            while (k < n && g.b[k].first < (int32_t)s)
                k++;
            g.begins[s] = (int32_t)k;
        }
        gg_sort(g.order, g.order + n, n, is_smaller, g.b);
        st = try_orders(&g, n, align, bound, best, total, err);
    }
    gg_mem_free(a, g.near);
    gg_mem_free(a, g.order);
    gg_mem_free(a, g.placed);
    gg_mem_free(a, g.begins);
    gg_mem_free(a, g.items);
    gg_mem_free(a, g.tree);
    gg_mem_free(a, g.b);
    return st;
}

/* --- together ------------------------------------------------------------- */

/* The most that lives at one step. */
static enum gguf_status find_peak(const struct gg_alloc_block *b, size_t n,
                                  size_t n_steps, uint64_t align,
                                  const struct gguf_allocator *a,
                                  uint64_t *most, struct gguf_error *err)
{
    /* bytes of the blocks that end before each step; blocks come in the order
     * of their first step */
    uint64_t *ended = gg_mem_alloc_zero(a, n_steps + 1, sizeof *ended),
             now = 0;
    if (!ended)
        return gg_error_set_nomem(err, (n_steps + 1) * sizeof *ended);
    size_t i = 0;
    *most = 0;
    for (size_t k = 0; k < n; k++)
        ended[b[k].last + 1] += pad_size(b[k].size, align);
    for (size_t s = 0; s < n_steps; s++) {
        now -= ended[s];
        for (; i < n && b[i].first == (int32_t)s; i++)
            now += pad_size(b[i].size, align);
        *most = GG_MAX(*most, now);
    }
    gg_mem_free(a, ended);
    return GGUF_OK;
}

enum gguf_status gg_alloc_blocks_place(struct gg_alloc_block *blocks, size_t n,
                                       size_t n_steps, uint64_t align,
                                       const struct gguf_allocator *a,
                                       uint64_t *total, struct gguf_error *err)
{
    uint64_t bound = 0;
    *total = 0;
    if (!n)
        return GGUF_OK;
    GG_TRY(
        place_in_time_order(blocks, n, n_steps, align, false, a, total, err));
    GG_TRY(find_peak(blocks, n, n_steps, align, a, &bound, err));
    if (*total == bound)
        return GGUF_OK;
    for (size_t i = 0; i < n; i++) {
        const uint64_t before = *total;
        if (blocks[i].on == GG_BLOCK_ANY)
            continue;
        GG_TRY(place_in_time_order(blocks, n, n_steps, align, true, a, total,
                                   err));
        return *total <= before
                   ? GGUF_OK
                   : place_in_time_order(blocks, n, n_steps, align, false, a,
                                         total, err);
    }
    return place_in_size_order(blocks, n, n_steps, align, bound, a, total,
                               err);
}
