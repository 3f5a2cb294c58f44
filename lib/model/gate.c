/* SPDX-License-Identifier: MIT */
/* gate.c - gates of what attention took: made of what it read, for each element
 * or for each head
 */
#include "config.h"
#include "model/build_int.h"

#include <inttypes.h>

typedef struct gguf_tensor tensor;

static const uint16_t ids[GG_N_GATES] = {
    [GG_GATE_SIGMOID] = GG_W_ATTN_GATE,
    [GG_GATE_SOFTPLUS] = GG_W_ATTN_GATE_ANY,
    [GG_GATE_HEAD] = GG_W_ATTN_GATE_HEAD,
};

/* Rows of the matrix, which may be of two widths. */
enum gguf_status gg_model_check_gate(const struct gguf_model *m, uint32_t il,
                                     struct gguf_error *err)
{
    char name[GG_WEIGHT_NAME];
    const struct gg_model_layer *l = &m->hp.layer[il];
    size_t i;
    if (m->arch->gate != GG_GATE_SOFTPLUS ||
        !gg_source_find(&m->src, gg_weight_name(GG_W_ATTN_GATE_ANY, il, name),
                        &i))
        return GGUF_OK;
    const struct gguf_tensor_info *t = gg_source_tensor(&m->src, i).info;
    const int64_t n = l->n_head, wide = n * l->dim_v;
    if (t->ne[1] == n || t->ne[1] == wide)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_TENSOR, t->info_off,
                        "tensor '%s' has %" PRId64 " rows, must have %" PRId64
                        " or %" PRId64,
                        name, t->ne[1], n, wide);
}

tensor *gg_model_gated(const struct gg_model_at *at, tensor *x, tensor *taken)
{
    struct gguf_ctx *c = at->c;
    const enum gg_weight id = (enum gg_weight)ids[at->arch->gate];
    const int64_t h = at->layer->n_head, d = at->layer->dim_v;
    if (!taken || id == GG_W_NONE || !gg_weight_at(at, id))
        return taken;
    tensor *gate = gg_model_linear(at, id, x);
    gate = at->arch->gate == GG_GATE_SOFTPLUS ? gguf_op_softplus(c, gate)
                                              : gguf_op_sigmoid(c, gate);
    if (!gate || gate->ne[0] == taken->ne[0])
        return gguf_op_mul(c, taken, gate);
    const int64_t n = taken->ne[1];
    gate = gguf_op_reshape_3d(c, gate, 1, h, n);
    taken = gguf_op_mul(c, gguf_op_reshape_3d(c, taken, d, h, n), gate);
    return gguf_op_reshape_2d(c, taken, d * h, n);
}
