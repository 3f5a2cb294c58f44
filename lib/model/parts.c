/* parts.c - what every builder of a layer is made of
 *
 * All builders of operations take NULL after a failure, so nothing is checked
 * here.
 */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

tensor *gg_weight_at(const struct gg_model_at *at, enum gg_weight id)
{
    const struct gg_weights *of =
        gg_weights[id].scope == GG_MODEL ? &at->m->top : at->weights;
    return of->w[id];
}

tensor *gg_model_linear(const struct gg_model_at *at, enum gg_weight id,
                        tensor *x)
{
    tensor *b = gg_weight_at(at, gg_weight_bias(id));
    tensor *y = gguf_op_matmul(at->c, gg_weight_at(at, id), x);
    return b ? gguf_op_add(at->c, y, b) : y;
}

tensor *gg_model_linear_id(const struct gg_model_at *at, enum gg_weight id,
                           tensor *x, tensor *ids)
{
    struct gguf_ctx *c = at->c;
    tensor *b = gg_weight_at(at, gg_weight_bias(id));
    tensor *y = gguf_op_matmul_id(c, gg_weight_at(at, id), x, ids);
    if (!b || !y)
        return y;
    ids = gguf_op_reshape_1d(c, gguf_op_cont(c, ids), y->ne[1] * y->ne[2]);
    b = gguf_op_reshape_3d(c, gguf_op_get_rows(c, b, ids), y->ne[0], y->ne[1],
                           y->ne[2]);
    return gguf_op_add(c, y, b);
}

tensor *gg_model_normed(const struct gg_model_at *at, unsigned kind,
                        enum gg_weight id, tensor *x)
{
    const float eps = at->m->hp.eps;
    const bool rms = kind == GG_NORM_RMS ||
                     (kind == GG_NORM_EITHER && at->m->hp.norm_rms_eps > 0);
    tensor *w = gg_weight_at(at, id);
    tensor *b = gg_weight_at(at, gg_weight_bias(id));
    x = rms ? gguf_op_rms_norm(at->c, x, eps) : gguf_op_norm(at->c, x, eps);
    if (w)
        x = gguf_op_mul(at->c, x, w);
    return b ? gguf_op_add(at->c, x, b) : x;
}

tensor *gg_model_norm_if(const struct gg_model_at *at, unsigned id, tensor *x)
{
    const unsigned instead = gg_weights[id].instead;
    if (id == GG_W_NONE)
        return x;
    if (!gg_weight_at(at, (enum gg_weight)id) && instead != GG_W_NONE)
        id = instead; /* the file has it under that name */
    return gg_model_normed(at, at->arch->norm, (enum gg_weight)id, x);
}

tensor *gg_model_scaled(const struct gg_model_at *at, tensor *x, float scale)
{
    return scale == 0 || scale == 1 ? x : gguf_op_scale(at->c, x, scale);
}

tensor *gg_model_tempered(const struct gg_model_at *at, tensor *x)
{
    return at->layer->tempers ? gguf_op_mul(at->c, x, at->p->temper) : x;
}
