/* layout.c - lifetimes, reuse, in-place take-over */
#include "config.h"
#include "alloc/layout.h"
#include "alloc/bestfit.h"

#include <string.h>
#include <xxhash.h>

/* Tensors are numbered nodes first, then leaves. */
enum { OUTSIDE = -1 };

struct life {
    int32_t n_children; /* readers still to come */
    int32_t n_views;    /* views of it that have readers to come */
    bool keep;          /* an output, or an output's root: never freed */
    bool live;          /* has a block */
};

struct work {
    struct gg_layout *l;
    const struct gg_layout_in *in;
    struct life *lives;
    struct gg_bestfit *pools;
};

static int32_t index_of(const struct gguf_graph *g,
                        const struct gguf_tensor *t)
{
    uint32_t k = gg_graph_number(g, t);
    if (k == GG_GRAPH_NONE)
        return OUTSIDE;
    return (int32_t)(k & 1 ? g->n_nodes + k / 2 : k / 2);
}

static struct gguf_tensor *tensor_at(const struct gguf_graph *g, size_t i)
{
    return i < g->n_nodes ? g->nodes[i] : g->leaves[i - g->n_nodes];
}

static int pool_of(const struct gg_layout_in *in, size_t i)
{
    const struct gguf_graph *g = in->graph;
    if (i < g->n_nodes)
        return in->node_pool ? in->node_pool[i] : 0;
    return in->leaf_pool ? in->leaf_pool[i - g->n_nodes] : 0;
}

static bool laid_out(const struct gg_layout_in *in,
                     const struct gguf_tensor *t)
{
    return !t->view_src && in->ours(in->user, t);
}

/* --- comparing structures ------------------------------------------------- */

static uint64_t structure(const struct gg_layout_in *in)
{
    const struct gguf_graph *g = in->graph;
    uint64_t h = 0;
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++) {
        const struct gguf_tensor *t = tensor_at(g, i);
        int32_t v[5 + GGUF_TENSOR_SRC];
        size_t n = 0;
        v[n++] = (int32_t)t->op;
        v[n++] = (int32_t)t->flags;
        v[n++] = pool_of(in, i);
        v[n++] = laid_out(in, t);
        v[n++] = t->view_src ? index_of(g, t->view_src) : INT32_MAX;
        for (int s = 0; s < GGUF_TENSOR_SRC; s++)
            if (t->src[s])
                v[n++] = index_of(g, t->src[s]);
        h = XXH3_64bits_withSeed(v, n * sizeof *v, h);
    }
    return h;
}

bool gg_layout_fits(const struct gg_layout *l, const struct gg_layout_in *in)
{
    const struct gguf_graph *g = in->graph;
    if (!l->places || l->n_nodes != g->n_nodes || l->n_leaves != g->n_leaves ||
        l->hash != structure(in))
        return false;
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++) {
        const struct gg_place *p = &l->places[i];
        const struct gguf_tensor *t = tensor_at(g, i);
        if (p->pool < 0)
            continue;
        if (in->size(in->user, (unsigned)p->pool, t) > p->size)
            return false;
        const struct gguf_tensor *s =
            p->inplace < 0 ? NULL : t->src[p->inplace];
        if (s && (!gguf_tensor_same_layout(t, s) ||
                  (s->view_src && s->view_off)))
            return false;
    }
    return true;
}

/* --- laying out ----------------------------------------------------------- */

static void count_readers(struct work *w)
{
    const struct gguf_graph *g = w->in->graph;
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++) {
        const struct gguf_tensor *t = tensor_at(g, i);
        int32_t root = t->view_src ? index_of(g, t->view_src) : OUTSIDE;
        if (root >= 0)
            w->lives[root].n_views++;
        if (t->flags & GGUF_TENSOR_OUTPUT)
            w->lives[root >= 0 ? (size_t)root : i].keep = true;
        for (int s = 0; s < GGUF_TENSOR_SRC; s++) {
            int32_t k = t->src[s] ? index_of(g, t->src[s]) : OUTSIDE;
            if (k >= 0)
                w->lives[k].n_children++;
        }
    }
}

static enum gguf_status take_block(struct work *w, size_t i,
                                   struct gguf_error *err)
{
    const struct gguf_tensor *t = tensor_at(w->in->graph, i);
    struct gg_place *p = &w->l->places[i];
    if (w->lives[i].live || !laid_out(w->in, t))
        return GGUF_OK;
    p->pool = pool_of(w->in, i);
    p->size = w->in->size(w->in->user, (unsigned)p->pool, t);
    w->lives[i].live = true;
    return gg_bestfit_alloc(&w->pools[p->pool], p->size, &p->off, err);
}

/* Let node i take over the block of one of its sources, if it can. */
static bool take_over(struct work *w, size_t i)
{
    const struct gguf_graph *g = w->in->graph;
    const struct gguf_tensor *t = g->nodes[i];
    unsigned slots = gg_op_row(t->op)->inplace;
    for (int s = 0; slots >> s; s++) {
        const struct gguf_tensor *p = t->src[s];
        if (!(slots >> s & 1) || !p || !gguf_tensor_same_layout(t, p))
            continue;
        int32_t parent = index_of(g, p), owner = parent;
        if (parent < 0 || w->lives[parent].n_children != 1)
            continue;
        int32_t n_views = 0;
        if (p->view_src) {
            owner = index_of(g, p->view_src);
            if (owner < 0 || p->view_off || w->lives[owner].n_children)
                continue;
            n_views = 1;
        }
        struct gg_place *from = &w->l->places[owner];
        if (!w->lives[owner].live || w->lives[owner].keep ||
            w->lives[owner].n_views != n_views ||
            from->pool != pool_of(w->in, i) ||
            w->in->size(w->in->user, (unsigned)from->pool, t) > from->size)
            continue;
        w->l->places[i] = (struct gg_place){ from->off, from->size,
                                             from->pool, s };
        w->lives[owner].live = false;
        w->lives[i].live = true;
        return true;
    }
    return false;
}

/* Tensor k may have lost its last reader. */
static enum gguf_status release(struct work *w, int32_t k,
                                struct gguf_error *err)
{
    struct life *life = &w->lives[k];
    if (!life->live || life->keep || life->n_children || life->n_views)
        return GGUF_OK;
    const struct gg_place *p = &w->l->places[k];
    life->live = false;
    return gg_bestfit_free(&w->pools[p->pool], p->off, p->size, err);
}

static enum gguf_status done_with_sources(struct work *w, size_t i,
                                          struct gguf_error *err)
{
    const struct gguf_graph *g = w->in->graph;
    const struct gguf_tensor *t = g->nodes[i];
    for (int s = 0; s < GGUF_TENSOR_SRC; s++) {
        int32_t k = t->src[s] ? index_of(g, t->src[s]) : OUTSIDE;
        if (k < 0 || --w->lives[k].n_children)
            continue;
        const struct gguf_tensor *root = t->src[s]->view_src;
        if (root) {
            k = index_of(g, root);
            if (k < 0)
                continue;
            w->lives[k].n_views--;
        }
        GG_TRY(release(w, k, err));
    }
    return GGUF_OK;
}

static enum gguf_status walk(struct work *w, struct gguf_error *err)
{
    const struct gguf_graph *g = w->in->graph;
    count_readers(w);
    /* what is written before the graph runs is there from its start */
    for (size_t i = 0; i < g->n_leaves; i++)
        GG_TRY(take_block(w, g->n_nodes + i, err));
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op == GGUF_OP_NONE ||
            g->nodes[i]->flags & GGUF_TENSOR_INPUT)
            GG_TRY(take_block(w, i, err));
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (!w->lives[i].live && laid_out(w->in, g->nodes[i]) &&
            !take_over(w, i))
            GG_TRY(take_block(w, i, err));
        GG_TRY(done_with_sources(w, i, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_layout_init(struct gg_layout *l,
                                const struct gguf_allocator *a,
                                unsigned n_pools, struct gguf_error *err)
{
    *l = (struct gg_layout){ .allocator = a, .n_pools = n_pools };
    l->total = gg_alloc_zero(a, n_pools, sizeof *l->total);
    return l->total ? GGUF_OK : gg_fail_nomem(err, n_pools * sizeof *l->total);
}

static void clear(struct gg_layout *l)
{
    gg_free(l->allocator, l->places);
    l->places = NULL;
    l->n_nodes = l->n_leaves = 0;
    memset(l->total, 0, l->n_pools * sizeof *l->total);
}

void gg_layout_fini(struct gg_layout *l)
{
    if (!l->total)
        return;
    clear(l);
    gg_free(l->allocator, l->total);
    l->total = NULL;
}

enum gguf_status gg_layout_make(struct gg_layout *l,
                                const struct gg_layout_in *in,
                                struct gguf_error *err)
{
    const struct gguf_graph *g = in->graph;
    size_t n = g->n_nodes + g->n_leaves;
    clear(l);
    struct work w = { .l = l, .in = in };
    l->places = gg_alloc_zero(l->allocator, n, sizeof *l->places);
    w.lives = gg_alloc_zero(l->allocator, n, sizeof *w.lives);
    w.pools = gg_alloc_zero(l->allocator, in->n_pools, sizeof *w.pools);
    enum gguf_status st = GGUF_OK;
    if (!l->places || !w.lives || !w.pools)
        st = gg_fail_nomem(err, n * sizeof *l->places);
    for (size_t i = 0; st == GGUF_OK && i < n; i++)
        l->places[i] = (struct gg_place){ .pool = -1, .inplace = -1 };
    for (unsigned i = 0; st == GGUF_OK && i < in->n_pools; i++)
        st = gg_bestfit_init(&w.pools[i], l->allocator, in->align[i], err);
    if (st == GGUF_OK)
        st = walk(&w, err);
    for (unsigned i = 0; st == GGUF_OK && i < in->n_pools; i++)
        l->total[i] = w.pools[i].high;
    for (unsigned i = 0; w.pools && i < in->n_pools; i++)
        gg_bestfit_fini(&w.pools[i]);
    gg_free(l->allocator, w.pools);
    gg_free(l->allocator, w.lives);
    if (st != GGUF_OK) {
        clear(l);
        return st;
    }
    l->n_nodes = g->n_nodes;
    l->n_leaves = g->n_leaves;
    l->hash = structure(in);
    return GGUF_OK;
}
