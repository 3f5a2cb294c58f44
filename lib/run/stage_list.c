/* SPDX-License-Identifier: MIT */
/* stage_list.c - find the stages of a graph: products with the same input */
#include "config.h"
#include "run/stage_list.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "gguf/backend.h"

#include <string.h>

/* ---- products ---- */

static bool is_weight(const struct gguf_tensor *t)
{
    return !t->op && t->buffer &&
           gguf_buffer_usage(t->buffer) == GGUF_USAGE_WEIGHTS;
}

static const struct gguf_tensor *root_of(const struct gguf_tensor *t)
{
    return t->view_src ? t->view_src : t;
}

/* Is t a weight, or some of its rows or matrices? */
static bool is_part_of_weight(const struct gguf_tensor *t)
{
    const struct gguf_tensor *root = root_of(t);
    return is_weight(root) && t->dtype == root->dtype &&
           t->ne[0] == root->ne[0] && t->nb[0] == root->nb[0] &&
           t->nb[1] == root->nb[1] && t->view_off % (uint64_t)t->nb[1] == 0;
}

static bool is_product(const struct gguf_tensor *t)
{
    return (t->op == GGUF_OP_MATMUL || t->op == GGUF_OP_MATMUL_ID) &&
           is_part_of_weight(t->src[0]);
}

/* Do two products read the same rows? */
static bool has_same_input(const struct gguf_tensor *a,
                           const struct gguf_tensor *b)
{
    const struct gguf_tensor *x = a->src[1], *y = b->src[1];
    if (a->op != b->op || root_of(x) != root_of(y) ||
        x->view_off != y->view_off || memcmp(x->ne, y->ne, sizeof x->ne) ||
        memcmp(x->nb, y->nb, sizeof x->nb))
        return false;
    return a->op != GGUF_OP_MATMUL_ID || a->src[2] == b->src[2];
}

/* Add the first product of a new stage and all products with its input. taken:
 * products that belong to a stage. */
static void add_stage(struct gg_stage_list *l, const struct gguf_graph *g,
                      size_t first, bool *taken)
{
    const struct gguf_tensor *t = g->nodes[first];
    struct gg_stages_stage *s = &l->stage[l->n_stages++];
    struct gg_stages_product *p = &l->product[l->n_products];
    *s = (struct gg_stages_stage){ .product = p,
                                   .has_ids = t->op == GGUF_OP_MATMUL_ID,
                                   .node = first };
    for (size_t i = first; i < g->n_nodes; i++) {
        if (taken[i] || !is_product(g->nodes[i]) ||
            !has_same_input(t, g->nodes[i]))
            continue;
        taken[i] = true;
        l->n_products++;
        p[s->n_products++] = (struct gg_stages_product){
            .weight = root_of(g->nodes[i]->src[0]),
            .node = i,
            .factor = 1,
        };
    }
}

/* ---- residuals ---- */

/* Does node i read or write the memory of a node? i is not a view. */
static bool uses_node(const struct gguf_graph *g, size_t i, size_t node)
{
    const struct gguf_tensor *t = g->nodes[i], *root = g->nodes[node];
    for (unsigned k = 0; k < t->n_src; k++)
        if (t->src[k] && root_of(t->src[k]) == root)
            return true;
    return root_of(t) == root;
}

/* The only node after a node that uses its memory; SIZE_MAX: none, or there
 * are several. */
static size_t find_user(const struct gguf_graph *g, size_t node)
{
    size_t found = SIZE_MAX;
    for (size_t i = node + 1; i < g->n_nodes; i++) {
        if (gguf_op_is_view(g->nodes[i]->op) || !uses_node(g, i, node))
            continue;
        if (found != SIZE_MAX)
            return SIZE_MAX;
        found = i;
    }
    return found;
}

/* Is t the result of a node before node `before`, or a view of it? */
static bool is_result_before(const struct gguf_graph *g,
                             const struct gguf_tensor *t, size_t before)
{
    const int32_t place = gg_graph_find(g, root_of(t));
    return place >= 0 && (size_t)place < before;
}

static bool has_shape(const struct gguf_tensor *a, const struct gguf_tensor *b)
{
    return !memcmp(a->ne, b->ne, sizeof a->ne);
}

/* Follow a product through biases and scales to the addition of a result that
 * is computed before node `before`. */
static void find_residual(const struct gguf_graph *g,
                          struct gg_stages_product *p, size_t before)
{
    float factor = 1;
    for (size_t at = p->node, next; (next = find_user(g, at)) != SIZE_MAX;
         at = next) {
        const struct gguf_tensor *t = g->nodes[next];
        if (t->op == GGUF_OP_SCALE) {
            float f;
            memcpy(&f, t->op_params, sizeof f);
            factor *= f;
            continue;
        }
        if (t->op != GGUF_OP_ADD)
            return;
        const unsigned k = root_of(t->src[0]) == g->nodes[at] ? 1 : 0;
        const struct gguf_tensor *other = t->src[k];
        if (!has_shape(t, t->src[1 - k]) || root_of(other) == g->nodes[at])
            return;
        if (is_weight(root_of(other)))
            continue;
        if (is_result_before(g, other, before) && has_shape(t, other)) {
            p->residual = other;
            p->factor = factor;
        }
        return;
    }
}

/* ---- the list ---- */

static enum gguf_status allocate_list(struct gg_stage_list *l, size_t n,
                                      bool **taken, size_t n_nodes,
                                      struct gguf_error *err)
{
    l->stage = gg_mem_alloc_zero(l->allocator, n, sizeof *l->stage);
    l->product = gg_mem_alloc_zero(l->allocator, n, sizeof *l->product);
    *taken = gg_mem_alloc_zero(l->allocator, n_nodes, sizeof **taken);
    return l->stage && l->product && *taken
               ? GGUF_OK
               : gg_error_set_nomem(err, n * sizeof *l->product + n_nodes);
}

enum gguf_status gg_stage_list_init(struct gg_stage_list *l,
                                    const struct gguf_graph *g,
                                    const struct gguf_allocator *a,
                                    struct gguf_error *err)
{
    bool *taken;
    size_t n = 0;
    *l = (struct gg_stage_list){ .allocator = a };
    for (size_t i = 0; i < g->n_nodes; i++)
        n += is_product(g->nodes[i]);
    const enum gguf_status st = allocate_list(l, n, &taken, g->n_nodes, err);
    for (size_t i = 0; st == GGUF_OK && i < g->n_nodes; i++)
        if (!taken[i] && is_product(g->nodes[i]))
            add_stage(l, g, i, taken);
    for (size_t i = 0; i < l->n_stages; i++)
        for (size_t k = 0; k < l->stage[i].n_products; k++)
            find_residual(g, &l->stage[i].product[k], l->stage[i].node);
    gg_mem_free(a, taken);
    return st;
}

void gg_stage_list_fini(struct gg_stage_list *l)
{
    gg_mem_free(l->allocator, l->stage);
    gg_mem_free(l->allocator, l->product);
}

/* ---- cuts ---- */

/* The cut for a stage: the last part of the graph without products, attention
 * or the like that has one, from node begin on; there the cut that carries the
 * least. 0: none. */
static size_t find_cut(const struct gg_graph_cuts *c,
                       const struct gguf_graph *g, size_t begin, size_t end)
{
    size_t best = 0;
    for (size_t at = end; at >= begin && at > 0; at--) {
        if (!c->open[at] && (!best || c->live[at] < c->live[best]))
            best = at;
        if (best && gg_graph_flops(g->nodes[at - 1]))
            break;
    }
    return best;
}

void gg_stage_list_find_cuts(struct gg_stage_list *l,
                             const struct gg_graph_cuts *c,
                             const struct gguf_graph *g)
{
    size_t before = 0;
    for (size_t i = 0; i < l->n_stages; i++) {
        const size_t at = find_cut(c, g, before + 1, l->stage[i].node);
        l->stage[i].cut = at ? at : before;
        before = l->stage[i].cut;
    }
}
