/* SPDX-License-Identifier: MIT */
/* gate.c - gates of what attention took: made of what it read, for each element
 * or for each head
 */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

tensor *gg_model_gate_heads(const struct gg_model_at *at, tensor *taken,
                            tensor *gate)
{
    struct gguf_ctx *c = at->c;
    const int64_t h = at->layer->n_head, d = at->layer->dim_v;
    if (!taken || !gate || gate->ne[0] == taken->ne[0])
        return gguf_op_mul(c, taken, gate);
    const int64_t n = taken->ne[1];
    gate = gguf_op_reshape_3d(c, gate, 1, h, n);
    taken = gguf_op_mul(c, gguf_op_reshape_3d(c, taken, d, h, n), gate);
    return gguf_op_reshape_2d(c, taken, d * h, n);
}
