/* SPDX-License-Identifier: MIT */
/* per_layer.c - an additional input of each layer: a narrower embedding of the
 * token and a projection of the residual stream (Gemma 3n and Gemma 4)
 */
#include "config.h"
#include "model/build_int.h"

#include <math.h>

typedef struct gguf_tensor tensor;

tensor *gg_model_build_layer_inputs(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    const int64_t width = hp->n_per_layer, n_layer = hp->n_layer;
    if (!width || !x)
        return NULL;
    const int64_t n_tok = x->ne[1];
    tensor *own =
        gg_model_look_up_rows(at, GG_W_PER_LAYER_EMBD, at->p->tokens);
    own = gguf_op_scale(c, own, sqrtf((float)width));
    own = gguf_op_reshape_3d(c, own, width, n_layer, n_tok);
    tensor *part = gg_model_linear(at, GG_W_PER_LAYER_PROJ, x);
    part = gguf_op_scale(c, part, 1 / sqrtf((float)hp->n_embd));
    part = gguf_op_reshape_3d(c, part, width, n_layer, n_tok);
    part = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_PER_LAYER_NORM, part);
    return gguf_op_scale(c, gguf_op_add(c, part, own), sqrtf(0.5f));
}

tensor *gg_model_project_layer_input(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    tensor *all = at->across->inputs;
    if (!all)
        return NULL;
    tensor *own = gguf_op_view_2d(c, all, all->ne[0], all->ne[2], all->nb[2],
                                  (uint64_t)(at->il * all->nb[1]));
    own = gg_model_take_output_rows(at, gguf_op_cont(c, own));
    tensor *y = gguf_op_geglu(c, gg_model_linear(at, GG_W_INP_GATE, x), own);
    return gg_model_apply_norm(at, GG_NORM_RMS, GG_W_INP_NORM,
                               gg_model_linear(at, GG_W_INP_PROJ, y));
}
