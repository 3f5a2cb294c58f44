/* SPDX-License-Identifier: MIT */
/* key_shift.c - keys that are kept, turned on to other positions
 *
 * A rotary embedding turns each pair of a key by an angle that is the position
 * times the pair's own, so that turning it by the angle of the difference is
 * turning it by that of the new position (Su et al., arXiv 2104.09864, 3.2.2).
 * Scores depend on distances only: what keys hold is as if tokens had come
 * there, but where positions enter otherwise.
 */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

static bool keeps_keys(const struct gguf_model *m, uint32_t il)
{
    return gg_model_layer_memory_kinds(m, il) & GG_MODEL_MEMORY_KV;
}

bool gg_model_rotates_cache(const struct gguf_model *m, uint32_t il)
{
    struct gg_model_key_sizes n = { 0 };
    if (!keeps_keys(m, il))
        return false;
    gg_model_layer_key_sizes(m, il, &n);
    return m->hp.layer[gg_model_stored_layer(m, il)].has_rope || n.index;
}

enum gguf_status gg_model_check_key_shift(const struct gguf_model *m,
                                          struct gguf_error *err)
{
    if (m->top.w[GG_W_POSITION] &&
        gg_model_all_memory_kinds(m) & GG_MODEL_MEMORY_KV)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "tokens cannot change positions: the cache "
                            "includes embeddings of positions");
    if (gg_model_all_memory_kinds(m) & GG_MODEL_MEMORY_COMPRESSED)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "tokens cannot change positions: keys are "
                            "compressed in blocks of positions");
    for (uint32_t il = 0; il < gg_model_n_unrolled_layers(m); il++) {
        const uint32_t of = gg_model_stored_layer(m, il);
        if (gg_model_rotates_cache(m, il) && m->hp.layer[of].has_rope &&
            m->arch->qk_norm.after_rope && m->layer[of].w[GG_W_ATTN_K_NORM])
            return gg_error_set(
                err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                "tokens cannot change positions: keys of layer "
                "%u have a norm with weights after the rotary "
                "embedding",
                of);
    }
    return GGUF_OK;
}

/* Rows of x, whose heads of d elements turn from element first on. */
static tensor *turn_heads(const struct gg_model_at *at, tensor *x, int64_t d,
                          int64_t first)
{
    if (!x)
        return NULL;
    const int64_t h = x->ne[0] / d, n = x->ne[1], es = x->nb[0];
    tensor *y = gguf_op_view_3d(at->c, x, d - first, h, n, d * es, x->nb[1],
                                (uint64_t)(first * es));
    y = gg_model_shift_rope(at, y);
    if (first)
        y = gguf_op_concat(
            at->c, gguf_op_view_3d(at->c, x, first, h, n, d * es, x->nb[1], 0),
            y, 0);
    return gguf_op_reshape_2d(at->c, y, d * h, n);
}

static tensor *turn_index(const struct gg_model_at *at, tensor *x)
{
    if (!x)
        return NULL;
    const int64_t d = x->ne[0], n = x->ne[1];
    struct gguf_rope rope = gg_model_indexer_rope(at);
    gg_model_clear_rope_scaling(&rope);
    x = gguf_op_reshape_3d(at->c, x, d, 1, n);
    x = gg_model_rotate_index(at, x, &rope);
    return gguf_op_reshape_2d(at->c, x, d, n);
}

void gg_build_key_shift(const struct gguf_model *m, struct gguf_ctx *c,
                        struct gguf_graph *g, uint32_t il,
                        const struct gg_model_key_shift *t)
{
    const struct gg_model_pass pass = { .model = m,
                                        .ctx = c,
                                        .graph = g,
                                        .n_ctx = t->n_ctx,
                                        .pos = t->by,
                                        .axes = t->by };
    const struct gg_model_at at = gg_model_at_layer(&pass, NULL, il);
    struct gg_model_key_sizes n = { 0 };
    gg_model_layer_key_sizes(m, il, &n);
    if (at.layer->has_rope) {
        tensor *x = gguf_op_get_rows(c, t->k, t->rows);
        x = turn_heads(&at, x, n.head, n.turned);
        gguf_graph_add(g, gguf_op_set_rows(c, t->k, x, t->rows));
    }
    if (n.index) {
        tensor *x = turn_index(&at, gguf_op_get_rows(c, t->index, t->rows));
        gguf_graph_add(g, gguf_op_set_rows(c, t->index, x, t->rows));
    }
}
