/* SPDX-License-Identifier: MIT */
/* layer_parts.c - small functions that all builders of a layer use
 *
 * Builders of operations accept NULL after a failure, so nothing is checked
 * here.
 */
#include "config.h"
#include "model/build_int.h"

#include <inttypes.h>
#include <string.h>

typedef struct gguf_tensor tensor;

enum gg_weight gg_model_rope_factors(const struct gguf_model *m, int64_t n_ctx)
{
    const struct gg_hparams *hp = &m->hp;
    const int64_t before =
        hp->has[GG_HP_n_ctx_orig] ? hp->n_ctx_orig : hp->n_ctx_train;
    return m->top.w[GG_W_ROPE_FREQS] ? GG_W_ROPE_FREQS
           : n_ctx > before          ? GG_W_ROPE_LONG
                                     : GG_W_ROPE_SHORT;
}

bool gg_model_is_long_context(const struct gguf_model *m, int64_t n_ctx)
{
    return m->top.w[GG_W_ROPE_LONG] &&
           gg_model_rope_factors(m, n_ctx) == GG_W_ROPE_LONG;
}

tensor *gg_weight_at(const struct gg_model_at *at, enum gg_weight id)
{
    const struct gg_weights *of =
        gg_weights[id].scope == GG_MODEL ? &at->m->top : at->weights;
    return of->w[id];
}

tensor *gg_model_view_heads(const struct gg_model_at *at, tensor *x,
                            int64_t first, int64_t d, int64_t h, int64_t step)
{
    if (!x)
        return NULL;
    const int64_t es = x->nb[0];
    return gguf_op_view_3d(at->c, x, d, h, at->p->n_tok * at->p->n_seq,
                           step * es, x->nb[1], (uint64_t)(first * es));
}

/* Scale beside a matrix, with n numbers; NULL: none. */
static tensor *find_weight_scale(const struct gg_model_at *at,
                                 enum gg_weight id, int64_t *n)
{
    const struct gg_weights *of =
        gg_weights[id].scope == GG_MODEL ? &at->m->top : at->weights;
    *n = of->scale[id] ? gguf_tensor_n_elements(of->scale[id]) : 0;
    return of->scale[id];
}

tensor *gg_model_apply_weight_scale(const struct gg_model_at *at,
                                    enum gg_weight id, tensor *y)
{
    int64_t n;
    tensor *scale = find_weight_scale(at, id, &n);
    if (!scale)
        return y;
    return gguf_op_mul(at->c, y, gguf_op_reshape_3d(at->c, scale, 1, 1, n));
}

/* ---- names of activations ---- */

tensor *gg_model_name_activation(const struct gg_model_at *at,
                                 const char *what, tensor *x)
{
    if (!x || x->name[0])
        return x;
    return gguf_tensor_set_namef(x, "blk.%" PRIu32 ".%s", at->il, what);
}

tensor *gg_model_name_after_weight(const tensor *weight, tensor *y)
{
    static const char end[] = ".weight";
    const size_t n = weight ? strlen(weight->name) : 0;
    char name[GGUF_TENSOR_NAME];
    if (!y || y->name[0] || n < sizeof end ||
        strcmp(weight->name + n - (sizeof end - 1), end) != 0)
        return y;
    memcpy(name, weight->name, n - (sizeof end - 1));
    name[n - (sizeof end - 1)] = '\0';
    return gguf_tensor_set_name(y, name);
}

/* ---- products, norms ---- */

tensor *gg_model_linear(const struct gg_model_at *at, enum gg_weight id,
                        tensor *x)
{
    tensor *b = gg_weight_at(at, gg_weight_bias(id));
    tensor *y = gguf_op_matmul(at->c, gg_weight_at(at, id), x);
    y = gg_model_apply_weight_scale(at, id, y);
    y = gg_model_add_lora(at, gg_weight_at(at, id), x, NULL, y);
    if (at->arch->finish_product.fn)
        y = at->arch->finish_product.fn(at, id, x, y);
    y = b ? gguf_op_add(at->c, y, b) : y;
    /* with a third dimension tokens need not be the last one */
    return y && y->ne[2] * y->ne[3] == 1
               ? gg_model_name_after_weight(gg_weight_at(at, id), y)
               : y;
}

/* Select rows ids [n_used, N] of rows [n, matrices]: [n, n_used, N]. */
static tensor *chosen_rows(const struct gg_model_at *at, tensor *rows,
                           tensor *ids)
{
    struct gguf_ctx *c = at->c;
    if (!ids)
        return NULL;
    const int64_t used = ids->ne[0], n_tok = ids->ne[1];
    ids = gguf_op_reshape_1d(c, gguf_op_cont(c, ids), used * n_tok);
    return gguf_op_reshape_3d(c, gguf_op_get_rows(c, rows, ids), rows->ne[0],
                              used, n_tok);
}

tensor *gg_model_linear_id(const struct gg_model_at *at, enum gg_weight id,
                           tensor *x, tensor *ids)
{
    struct gguf_ctx *c = at->c;
    int64_t n;
    tensor *b = gg_weight_at(at, gg_weight_bias(id));
    tensor *scale = find_weight_scale(at, id, &n);
    tensor *y = gguf_op_matmul_id(c, gg_weight_at(at, id), x, ids);
    if (scale && n > 1) {
        scale = gguf_op_reshape_2d(c, scale, 1, n);
        y = gguf_op_mul(c, y, chosen_rows(at, scale, ids));
    } else {
        y = gg_model_apply_weight_scale(at, id, y);
    }
    y = gg_model_add_lora(at, gg_weight_at(at, id), x, ids, y);
    return gg_model_name_after_weight(
        gg_weight_at(at, id),
        b ? gguf_op_add(c, y, chosen_rows(at, b, ids)) : y);
}

tensor *gg_model_look_up_rows(const struct gg_model_at *at, enum gg_weight id,
                              tensor *ids)
{
    tensor *w = gg_weight_at(at, id);
    tensor *y =
        gg_model_apply_weight_scale(at, id, gguf_op_get_rows(at->c, w, ids));
    return gg_model_name_after_weight(w,
                                      gg_model_add_lora_rows(at, w, ids, y));
}

tensor *gg_model_apply_norm(const struct gg_model_at *at, unsigned kind,
                            enum gg_weight id, tensor *x)
{
    return gg_model_apply_norm_with_eps(at, kind, id, at->m->hp.eps, x);
}

tensor *gg_model_apply_norm_with_eps(const struct gg_model_at *at,
                                     unsigned kind, enum gg_weight id,
                                     float eps, tensor *x)
{
    const bool rms = kind == GG_NORM_RMS;
    tensor *w = gg_weight_at(at, id);
    tensor *b = gg_weight_at(at, gg_weight_bias(id));
    x = rms ? gguf_op_rms_norm(at->c, x, eps) : gguf_op_norm(at->c, x, eps);
    if (w)
        x = gguf_op_mul(at->c, x, w);
    return gg_model_name_after_weight(w, b ? gguf_op_add(at->c, x, b) : x);
}

/* Normalise each of equal slices of x [n_embd, N], then multiply all by weight
 * id. */
static tensor *norm_groups(const struct gg_model_at *at, enum gg_weight id,
                           tensor *x)
{
    if (!x)
        return NULL;
    const int64_t n = x->ne[0], n_tok = x->ne[1],
                  groups = at->m->hp.n_norm_groups;
    x = gguf_op_reshape_3d(at->c, x, n / groups, groups, n_tok);
    x = gg_model_apply_norm(at, at->m->hp.norm, GG_W_NONE, x);
    x = gguf_op_mul(at->c, gguf_op_reshape_2d(at->c, x, n, n_tok),
                    gg_weight_at(at, id));
    return gg_model_name_after_weight(gg_weight_at(at, id), x);
}

tensor *gg_model_apply_norm_if(const struct gg_model_at *at, unsigned id,
                               tensor *x)
{
    const unsigned instead = gg_weights[id].instead;
    if (id == GG_W_NONE)
        return x;
    if (!gg_weight_at(at, (enum gg_weight)id) && instead != GG_W_NONE)
        id = instead; /* the file has the weight under this name */
    return at->m->hp.n_norm_groups > 1
               ? norm_groups(at, (enum gg_weight)id, x)
               : gg_model_apply_norm(at, at->m->hp.norm, (enum gg_weight)id,
                                     x);
}

tensor *gg_model_apply_scale(const struct gg_model_at *at, tensor *x,
                             float scale)
{
    return scale == 0 || scale == 1 ? x : gguf_op_scale(at->c, x, scale);
}

tensor *gg_model_scale_queries(const struct gg_model_at *at, tensor *x)
{
    return at->layer->has_temperature
               ? gguf_op_mul(at->c, x, at->p->temperature)
               : x;
}
