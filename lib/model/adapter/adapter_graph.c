/* SPDX-License-Identifier: MIT */
/* adapter_graph.c - terms that adapters add to products and to rows that are
 * looked up
 *
 * If nothing is added, the graph is the one without adapters.
 */
#include "config.h"
#include "model/adapter/adapter_int.h"
#include "model/build_int.h"

#include <stdlib.h>

typedef struct gguf_tensor tensor;

int gg_adapter_compare(const void *x, const void *y)
{
    const struct gg_adapter_pair *a = x, *b = y;
    const uintptr_t p = (uintptr_t)a->weight, q = (uintptr_t)b->weight;
    return p != q ? (p > q) - (p < q) : a->of_output - b->of_output;
}

/* The place of a weight's pair, or n_pairs. */
static size_t find_pair(const struct gguf_adapter *a,
                        const struct gguf_tensor *weight, bool of_output)
{
    const struct gg_adapter_pair key = { .weight = weight,
                                         .of_output = of_output };
    const struct gg_adapter_pair *p = NULL;
    if (a->n_pairs) /* a control vector has no pairs */
        p = bsearch(&key, a->pair, a->n_pairs, sizeof *a->pair,
                    gg_adapter_compare);
    return p ? (size_t)(p - a->pair) : a->n_pairs;
}

/* Find the next pair of a weight whose scale is not 0, from use *i on. Moves *i
 * behind it. NULL: none. product: for a product with the weight; false: for
 * rows that are looked up. */
static const struct gg_adapter_pair *
find_next_pair(const struct gg_model_at *at, const tensor *weight,
               bool product, size_t *i, float *scale)
{
    const struct gg_model_adapters *added = at->added;
    size_t before = 0;
    for (size_t k = 0; added && weight && k < added->n; k++) {
        const struct gguf_adapter *a = added->use[k].adapter;
        size_t no = find_pair(a, weight, product);
        if (product && no == a->n_pairs)
            no = find_pair(a, weight, false);
        if (k >= *i && no < a->n_pairs) {
            *i = k + 1;
            *scale = added->use[k].scale * a->pair[no].factor;
            if (added->seen)
                added->seen[before + no] |= GG_ADAPTER_PART_USED;
            if (*scale != 0)
                return &a->pair[no];
        }
        before += gg_adapter_n_parts(a);
    }
    return NULL;
}

tensor *gg_model_add_lora(const struct gg_model_at *at, tensor *weight,
                          tensor *x, tensor *ids, tensor *y)
{
    struct gguf_ctx *c = at->c;
    const struct gg_adapter_pair *p;
    float scale = 0;
    for (size_t i = 0; (p = find_next_pair(at, weight, true, &i, &scale));) {
        tensor *h = ids ? gguf_op_matmul_id(c, p->a, x, ids)
                        : gguf_op_matmul(c, p->a, x);
        h = gguf_op_scale(c, h, scale);
        h = ids ? gguf_op_matmul_id(c, p->b, h, ids)
                : gguf_op_matmul(c, p->b, h);
        y = gguf_op_add(c, y, h);
    }
    return y;
}

tensor *gg_model_add_lora_rows(const struct gg_model_at *at, tensor *weight,
                               tensor *ids, tensor *y)
{
    struct gguf_ctx *c = at->c;
    const struct gg_adapter_pair *p;
    float scale = 0;
    for (size_t i = 0; (p = find_next_pair(at, weight, false, &i, &scale));) {
        tensor *back = gguf_op_cont(c, gguf_op_transpose(c, p->a));
        tensor *h = gguf_op_scale(c, gguf_op_get_rows(c, p->b, ids), scale);
        y = gguf_op_add(c, y, gguf_op_matmul(c, back, h));
    }
    return y;
}

tensor *gg_model_add_control_vector(const struct gg_model_at *at, tensor *x)
{
    const struct gg_model_adapters *added = at->added;
    const size_t il = gg_model_stored_layer(at->m, at->il);
    size_t before = 0;
    for (size_t k = 0; x && added && k < added->n; k++) {
        const struct gguf_adapter *a = added->use[k].adapter;
        tensor *d = il < a->n_directions ? a->direction[il] : NULL;
        if (d && added->seen)
            added->seen[before + a->n_pairs + il] |= GG_ADAPTER_PART_USED;
        if (d && added->use[k].scale != 0)
            x = gguf_op_add(at->c, x,
                            gguf_op_scale(at->c, d, added->use[k].scale));
        before += gg_adapter_n_parts(a);
    }
    return x;
}

/* A node reads t. */
static void note_adapted_weight(const struct gg_model_adapters *added,
                                const tensor *t)
{
    size_t before = 0;
    for (size_t k = 0; k < added->n; k++) {
        const struct gguf_adapter *a = added->use[k].adapter;
        for (int output = 0; output < 2; output++) {
            const size_t no = find_pair(a, t, output);
            if (no < a->n_pairs)
                added->seen[before + no] |= GG_ADAPTER_WEIGHT_USED;
        }
        before += gg_adapter_n_parts(a);
    }
}

void gg_model_note_adapters(const struct gg_model_adapters *added,
                            const struct gguf_graph *graph)
{
    const size_t n = added->n ? gguf_graph_n_nodes(graph) : 0;
    for (size_t i = 0; i < n; i++) {
        const tensor *t = gguf_graph_node(graph, i);
        for (unsigned k = 0; k < GGUF_TENSOR_SRC; k++)
            if (t->src[k])
                note_adapted_weight(added, t->src[k]->view_src
                                               ? t->src[k]->view_src
                                               : t->src[k]);
    }
}

size_t gg_model_n_adapter_nodes(const struct gguf_model *m,
                                const struct gg_model_adapters *added)
{
    /* a weight may be multiplied and looked up: with views, 4 and 6 */
    const size_t per_pair = 10, uses = gg_model_n_uses(m);
    size_t n = 0;
    for (size_t i = 0; i < added->n; i++)
        n += (added->use[i].adapter->n_pairs * per_pair +
              added->use[i].adapter->n_directions * 2) *
             uses;
    return n;
}
