/* SPDX-License-Identifier: MIT */
/* graph_layout.c - lifetimes, reuse, in-place take-over */
#include "config.h"
#include "alloc/graph_layout.h"
#include "alloc/block_layout.h"

#include <stdalign.h>
#include <string.h>
#include <xxhash.h>

/* Tensors are numbered nodes first, then leaves. */
enum { OUTSIDE = -1 };

struct life {
    int32_t root;       /* place of its root, its own if not a view;
                           OUTSIDE: not in the graph */
    int32_t n_children; /* readers still to come */
    int32_t n_views;    /* views of it that have readers to come */
    int32_t block;      /* that it holds, or OUTSIDE: none yet, no more */
    bool keep;          /* an input or output, or the root of one: never
                           freed, so that a graph can be computed again */
    bool had;           /* a block */
};

/* Use of a block that a smaller tensor could take over. */
enum take {
    TAKE_ALL,    /* it is kept whole */
    TAKE_PART,   /* the rest is free: another block, with one possible place */
    TAKE_NOTHING /* it is not taken over */
};

/* Step 0 is before the graph, step i + 1 is node i, the last is after it. */
struct work {
    struct gg_alloc_layout *l;
    const struct gg_alloc_layout_in *in;
    struct life *lives;
    struct gg_alloc_block
        *blocks;                 /* blocks in the order of their first step */
    struct gg_alloc_block *some; /* room for those of one pool */
    int32_t *pools;              /* pool of each block */
    int32_t *block_of;           /* block of each tensor; OUTSIDE: none */
    size_t n_blocks;
    enum take take;
    bool smaller; /* something smaller than a block wanted it */
};

static int pool_of(const struct gg_alloc_layout_in *in, size_t i)
{
    const struct gguf_graph *g = in->graph;
    if (i < g->n_nodes)
        return in->node_pool ? in->node_pool[i] : 0;
    return in->leaf_pool ? in->leaf_pool[i - g->n_nodes] : 0;
}

static bool needs_block(const struct gg_alloc_layout_in *in,
                        const struct gguf_tensor *t)
{
    return !t->view_src && in->ours(in->user, t);
}

/* --- in place ------------------------------------------------------------- */

static const struct gguf_tensor *root_of(const struct gguf_tensor *t)
{
    return t->view_src ? t->view_src : t;
}

/* Can t overwrite root? All sources of t in that memory must have the layout
 * of t and begin where root begins. */
static bool can_overwrite(const struct gguf_tensor *t,
                          const struct gguf_tensor *root)
{
    for (int s = 0, n_src = gg_op_n_src(t); s < n_src; s++)
        if (t->src[s] && root_of(t->src[s]) == root &&
            (!gguf_tensor_same_layout(t, t->src[s]) ||
             (t->src[s]->view_src && t->src[s]->view_off)))
            return false;
    return true;
}

/* --- comparing structures ------------------------------------------------- */

uint64_t gg_alloc_layout_hash(const struct gg_alloc_layout_in *in)
{
    const struct gguf_graph *g = in->graph;
    uint64_t h = 0;
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++) {
        const struct gguf_tensor *t = gg_graph_at(g, i);
        uint32_t v[4 + GG_GRAPH_EDGES], found[GG_GRAPH_EDGES];
        const uint32_t *edges = gg_graph_edges(g, i, found);
        size_t n = 4, n_edges = t->view_src != NULL;
        v[0] = t->op;
        v[1] = t->flags;
        v[2] = (uint32_t)pool_of(in, i);
        v[3] = (uint32_t)needs_block(in, t) << 16 | (uint32_t)n_edges << 15;
        for (int s = 0, n_src = gg_op_n_src(t); s < n_src; s++)
            if (t->src[s]) {
                v[3] |= UINT32_C(1) << s;
                n_edges++;
            }
        for (size_t e = 0; e < n_edges; e++)
            v[n++] = edges[e];
        h = XXH3_64bits_withSeed(v, n * sizeof *v, h);
    }
    return h;
}

bool gg_alloc_layout_fits(const struct gg_alloc_layout *l,
                          const struct gg_alloc_layout_in *in)
{
    const struct gguf_graph *g = in->graph;
    if (!l->is_made || l->hash != in->hash || l->n_nodes != g->n_nodes ||
        l->n_leaves != g->n_leaves)
        return false;
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++) {
        const struct gg_alloc_place *p = &l->places[i];
        const struct gguf_tensor *t = gg_graph_at(g, i);
        if (p->pool < 0)
            continue;
        if (in->size(in->user, (unsigned)p->pool, t) > p->size)
            return false;
        const struct gguf_tensor *s =
            p->inplace < 0 ? NULL : t->src[p->inplace];
        if (s && !can_overwrite(t, root_of(s)))
            return false;
    }
    return true;
}

/* --- laying out ----------------------------------------------------------- */

static void count_readers(struct work *w)
{
    const struct gguf_graph *g = w->in->graph;
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++) {
        const struct gguf_tensor *t = gg_graph_at(g, i);
        uint32_t found[GG_GRAPH_EDGES];
        const uint32_t *edge = gg_graph_edges(g, i, found);
        int32_t root = t->view_src ? gg_graph_place(g, *edge++) : (int32_t)i;
        w->lives[i].root = root;
        if (t->view_src && root >= 0)
            w->lives[root].n_views++;
        if (t->flags & (GGUF_TENSOR_INPUT | GGUF_TENSOR_OUTPUT))
            w->lives[root >= 0 ? (size_t)root : i].keep = true;
        for (int s = 0, n_src = gg_op_n_src(t); s < n_src; s++) {
            int32_t k = t->src[s] ? gg_graph_place(g, *edge++) : OUTSIDE;
            if (k >= 0)
                w->lives[k].n_children++;
        }
    }
}

static void take_block(struct work *w, size_t i, int32_t step)
{
    const struct gguf_tensor *t = gg_graph_at(w->in->graph, i);
    if (w->lives[i].had || !needs_block(w->in, t))
        return;
    int32_t k = (int32_t)w->n_blocks++, pool = pool_of(w->in, i);
    w->lives[i].had = true;
    w->lives[i].block = w->block_of[i] = k;
    w->pools[k] = pool;
    w->blocks[k] = (struct gg_alloc_block){
        .size = w->in->size(w->in->user, (unsigned)pool, t),
        .first = step,
        .last = (int32_t)w->in->graph->n_nodes + 1,
        .on = GG_BLOCK_ANY,
        .next = GG_BLOCK_ANY,
    };
}

/* Add a block of size bytes on block k, for the steps after node i. */
static int32_t shrink_block(struct work *w, int32_t k, size_t i, uint64_t size)
{
    const int32_t n = (int32_t)w->n_blocks++;
    w->pools[n] = w->pools[k];
    w->blocks[n] = (struct gg_alloc_block){
        .size = size,
        .first = (int32_t)i + 2,
        .last = w->blocks[k].last,
        .on = k,
        .next = GG_BLOCK_ANY,
    };
    w->blocks[k].last = (int32_t)i + 1;
    w->blocks[k].next = n;
    return n;
}

/* How often t reads p. */
static int32_t n_reads(const struct gguf_tensor *t,
                       const struct gguf_tensor *p)
{
    int32_t n = 0;
    for (int s = 0, n_src = gg_op_n_src(t); s < n_src; s++)
        n += t->src[s] == p;
    return n;
}

/* Find the places of node i's sources; OUTSIDE for a source that is NULL.
 * Returns the number of sources that the node can have. */
static int find_sources(const struct work *w, size_t i,
                        int32_t places[GGUF_TENSOR_SRC])
{
    const struct gguf_graph *g = w->in->graph;
    const struct gguf_tensor *t = g->nodes[i];
    uint32_t found[GG_GRAPH_EDGES];
    const uint32_t *edge = gg_graph_edges(g, i, found) + (t->view_src != NULL);
    const int n_src = gg_op_n_src(t);
    for (int s = 0; s < n_src; s++)
        places[s] = t->src[s] ? gg_graph_place(g, *edge++) : OUTSIDE;
    return n_src;
}

/* Is t, whose sources are at places, the last reader of root (at k), directly
 * and through views? */
static bool is_last_reader(const struct work *w, const struct gguf_tensor *t,
                           const int32_t *places,
                           const struct gguf_tensor *root, int32_t k)
{
    int32_t n_views = 0;
    for (int s = 0, n_src = gg_op_n_src(t); s < n_src; s++) {
        const struct gguf_tensor *p = t->src[s];
        bool seen = false;
        if (!p || p->view_src != root)
            continue;
        for (int j = 0; j < s; j++)
            seen = seen || t->src[j] == p;
        if (places[s] < 0 || w->lives[places[s]].n_children != n_reads(t, p))
            return false;
        n_views += !seen;
    }
    return w->lives[k].n_views == n_views &&
           w->lives[k].n_children == n_reads(t, root);
}

/* Let node i, whose sources are at places, take over the block of one of them,
 * if it can. */
static bool take_source_block(struct work *w, size_t i, const int32_t *places)
{
    const struct gguf_tensor *t = w->in->graph->nodes[i];
    unsigned slots = gg_op_row(t->op)->inplace;
    for (int s = 0; slots >> s; s++) {
        if (!(slots >> s & 1) || places[s] < 0)
            continue;
        const struct gguf_tensor *root = root_of(t->src[s]);
        int32_t owner = w->lives[places[s]].root;
        int32_t k = owner < 0 ? OUTSIDE : w->lives[owner].block;
        if (k < 0 || w->lives[owner].keep || !can_overwrite(t, root) ||
            !is_last_reader(w, t, places, root, owner) ||
            w->pools[k] != pool_of(w->in, i))
            continue;
        const uint64_t align = w->in->align[w->pools[k]];
        const uint64_t size =
            w->in->size(w->in->user, (unsigned)w->pools[k], t);
        const bool smaller = size + align <= w->blocks[k].size;
        w->smaller = w->smaller || smaller;
        if (size > w->blocks[k].size || (smaller && w->take == TAKE_NOTHING))
            continue;
        if (smaller && w->take == TAKE_PART)
            k = shrink_block(w, k, i, size);
        w->lives[owner].block = OUTSIDE;
        w->lives[i].block = w->block_of[i] = k;
        w->lives[i].had = true;
        w->l->places[i].inplace = s;
        return true;
    }
    return false;
}

/* Tensor k may have lost its last reader, at that step. */
static void release_block(struct work *w, int32_t k, int32_t step)
{
    struct life *life = &w->lives[k];
    if (life->block < 0 || life->keep || life->n_children || life->n_views)
        return;
    w->blocks[life->block].last = step;
    life->block = OUTSIDE;
}

static void release_sources(struct work *w, size_t i, const int32_t *places,
                            int n_src)
{
    for (int s = 0; s < n_src; s++) {
        int32_t k = places[s];
        if (k < 0 || --w->lives[k].n_children)
            continue;
        if (w->lives[k].root != k) {
            k = w->lives[k].root;
            if (k < 0)
                continue;
            w->lives[k].n_views--;
        }
        release_block(w, k, (int32_t)i + 1);
    }
}

static void walk_graph(struct work *w)
{
    const struct gguf_graph *g = w->in->graph;
    const size_t n = g->n_nodes + g->n_leaves;
    memset(w->lives, 0, n * sizeof *w->lives);
    w->n_blocks = 0;
    for (size_t i = 0; i < n; i++) {
        w->lives[i].block = w->block_of[i] = OUTSIDE;
        w->l->places[i] = (struct gg_alloc_place){ .inplace = -1 };
    }
    count_readers(w);
    /* tensors that are written before the graph runs need memory from its
     * start */
    for (size_t i = 0; i < g->n_leaves; i++)
        take_block(w, g->n_nodes + i, 0);
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op == GGUF_OP_NONE ||
            g->nodes[i]->flags & (GGUF_TENSOR_INPUT | GG_TENSOR_EARLY))
            take_block(w, i, 0);
    for (size_t i = 0; i < g->n_nodes; i++) {
        int32_t places[GGUF_TENSOR_SRC];
        const int n_src = find_sources(w, i, places);
        if (!w->lives[i].had && needs_block(w->in, g->nodes[i]) &&
            !take_source_block(w, i, places))
            take_block(w, i, (int32_t)i + 1);
        release_sources(w, i, places, n_src);
    }
}

/* Copy block k as block n of its pool. The block that it lies on was copied
 * before. */
static void gather_block(struct work *w, size_t k, size_t n)
{
    struct gg_alloc_block *b = &w->some[n];
    *b = w->blocks[k];
    w->blocks[k].off = n;
    if (b->on == GG_BLOCK_ANY)
        return;
    b->on = (int32_t)w->blocks[b->on].off;
    w->some[b->on].next = (int32_t)n;
}

/* Give each pool's blocks offsets: gathered, placed, put back. */
static enum gguf_status place_pools(struct work *w, struct gguf_error *err)
{
    const struct gguf_graph *g = w->in->graph;
    const struct gguf_allocator *a = w->l->allocator;
    enum gguf_status st = GGUF_OK;
    for (unsigned pool = 0; st == GGUF_OK && pool < w->in->n_pools; pool++) {
        size_t n = 0;
        for (size_t k = 0; k < w->n_blocks; k++)
            if (w->pools[k] == (int32_t)pool)
                gather_block(w, k, n++);
        st = gg_alloc_blocks_place(w->some, n, g->n_nodes + 2,
                                   w->in->align[pool], a, &w->l->total[pool],
                                   err);
        n = 0;
        for (size_t k = 0; k < w->n_blocks; k++)
            if (w->pools[k] == (int32_t)pool)
                w->blocks[k].off = w->some[n++].off;
    }
    for (size_t i = 0; st == GGUF_OK && i < g->n_nodes + g->n_leaves; i++) {
        struct gg_alloc_place *p = &w->l->places[i];
        int32_t k = w->block_of[i];
        p->pool = k < 0 ? -1 : w->pools[k];
        if (k >= 0) {
            p->off = w->blocks[k].off;
            p->size = w->blocks[k].size;
        }
    }
    return st;
}

enum gguf_status gg_alloc_layout_init(struct gg_alloc_layout *l,
                                      const struct gguf_allocator *a,
                                      unsigned n_pools, struct gguf_error *err)
{
    *l = (struct gg_alloc_layout){ .allocator = a, .n_pools = n_pools };
    l->total = gg_mem_alloc_zero(a, n_pools, sizeof *l->total);
    return l->total ? GGUF_OK
                    : gg_error_set_nomem(err, n_pools * sizeof *l->total);
}

static void clear_layout(struct gg_alloc_layout *l)
{
    l->is_made = false;
    l->n_nodes = l->n_leaves = 0;
    memset(l->total, 0, l->n_pools * sizeof *l->total);
}

void gg_alloc_layout_fini(struct gg_alloc_layout *l)
{
    if (!l->total)
        return;
    gg_mem_free(l->allocator, l->places);
    gg_mem_free(l->allocator, l->total);
    *l = (struct gg_alloc_layout){ .allocator = l->allocator };
}

/* The arrays of w for n tensors in one block, which is returned, or NULL. */
static void *alloc_arrays(struct work *w, size_t n)
{
    const size_t each = sizeof *w->lives + sizeof *w->blocks +
                        sizeof *w->some + sizeof *w->pools +
                        sizeof *w->block_of;
    size_t size;
    char *p = gg_ckd_array(&size, n, each)
                  ? NULL
                  : gg_mem_alloc_huge(w->l->allocator, size,
                                      alignof(struct gg_alloc_block));
    if (!p)
        return NULL;
    w->blocks = (struct gg_alloc_block *)p;
    w->some = w->blocks + n;
    w->lives = (struct life *)(w->some + n);
    w->pools = (int32_t *)(w->lives + n);
    w->block_of = w->pools + n;
    return p;
}

static enum gguf_status lay_out(struct work *w, enum take take, uint64_t *sum,
                                struct gguf_error *err)
{
    w->take = take;
    walk_graph(w);
    GG_TRY(place_pools(w, err));
    *sum = 0;
    for (unsigned pool = 0; pool < w->in->n_pools; pool++)
        *sum += w->l->total[pool];
    return GGUF_OK;
}

/* Where it makes a difference, in all ways: the one with the lowest sum. */
static enum gguf_status lay_out_best(struct work *w, struct gguf_error *err)
{
    enum take best = TAKE_ALL, last = TAKE_ALL;
    uint64_t least, sum;
    GG_TRY(lay_out(w, TAKE_ALL, &least, err));
    if (!w->smaller)
        return GGUF_OK;
    for (; last < TAKE_NOTHING; last++) {
        GG_TRY(lay_out(w, last + 1, &sum, err));
        if (sum <= least) {
            least = sum;
            best = last + 1;
        }
    }
    return best == last ? GGUF_OK : lay_out(w, best, &sum, err);
}

static enum gguf_status make_room(struct gg_alloc_layout *l, size_t n,
                                  struct gguf_error *err)
{
    l->places = gg_mem_renew(l->allocator, l->places, &l->cap,
                             sizeof *l->places, n, err);
    return l->places ? GGUF_OK : GGUF_E_NOMEM;
}

enum gguf_status gg_alloc_layout_make(struct gg_alloc_layout *l,
                                      const struct gg_alloc_layout_in *in,
                                      struct gguf_error *err)
{
    const struct gguf_graph *g = in->graph;
    const size_t n = g->n_nodes + g->n_leaves;
    clear_layout(l);
    struct work w = { .l = l, .in = in };
    GG_TRY(make_room(l, n, err));
    void *arrays = alloc_arrays(&w, n);
    enum gguf_status st = arrays
                              ? lay_out_best(&w, err)
                              : gg_error_set_nomem(err, n * sizeof *w.lives);
    gg_mem_free_aligned(l->allocator, arrays);
    if (st != GGUF_OK) {
        clear_layout(l);
        return st;
    }
    l->n_nodes = g->n_nodes;
    l->n_leaves = g->n_leaves;
    l->hash = in->hash;
    l->is_made = true;
    return GGUF_OK;
}
