/* SPDX-License-Identifier: MIT */
/* recurrence.c - functions of mixers with a state: the states of the pass's
 * sequences, real tokens, the convolution
 *
 * Of the n_tok tokens of a sequence only the first n_real change the state. The
 * others are padding: they repeat the last real token and get its results.
 */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

/* ---- memory ---- */

tensor *gg_model_view_states(const struct gg_model_at *at, tensor *all,
                             unsigned n_dims)
{
    const struct gg_model_pass *p = at->p;
    if (!all)
        return NULL;
    const uint64_t off = (uint64_t)(p->first_stream * all->nb[n_dims - 1]);
    if (n_dims == 3)
        return gguf_op_view_3d(at->c, all, all->ne[0], all->ne[1], p->n_seq,
                               all->nb[1], all->nb[2], off);
    return gguf_op_view_4d(at->c, all, all->ne[0], all->ne[1], all->ne[2],
                           p->n_seq, all->nb[1], all->nb[2], all->nb[3], off);
}

void gg_model_store_state(const struct gg_model_at *at, tensor *now,
                          tensor *memory)
{
    gguf_graph_add(at->p->graph, gguf_op_cpy(at->c, now, memory));
}

/* ---- real tokens ---- */

tensor *gg_model_view_real_tokens(const struct gg_model_at *at, tensor *x,
                                  int64_t first, int64_t n)
{
    const struct gg_model_pass *p = at->p;
    if (!x)
        return NULL;
    return gguf_op_view_3d(at->c, x, n, p->n_real, p->n_seq, x->nb[1],
                           p->n_tok * x->nb[1], (uint64_t)(first * x->nb[0]));
}

tensor *gg_model_view_real_heads(const struct gg_model_at *at, tensor *x,
                                 int64_t first, int64_t d, int64_t n)
{
    if (!x)
        return NULL;
    return gguf_op_view_4d(at->c, x, d, n, x->ne[1], x->ne[2], d * x->nb[0],
                           x->nb[1], x->nb[2], (uint64_t)(first * x->nb[0]));
}

tensor *gg_model_repeat_last_token(const struct gg_model_at *at, tensor *x)
{
    const struct gg_model_pass *p = at->p;
    if (!x)
        return NULL;
    const int64_t n = x->ne[0];
    if (p->n_real < p->n_tok) {
        tensor *last =
            gguf_op_view_3d(at->c, x, n, 1, p->n_seq, x->nb[1], x->nb[2],
                            (uint64_t)((p->n_real - 1) * x->nb[1]));
        last = gguf_op_repeat(at->c, gguf_op_cont(at->c, last), n,
                              p->n_tok - p->n_real, p->n_seq, 1);
        x = gguf_op_concat(at->c, x, last, 1);
    }
    return gguf_op_reshape_2d(at->c, x, n, p->n_tok * p->n_seq);
}

/* ---- the convolution ---- */

tensor *gg_model_apply_conv(const struct gg_model_at *at, enum gg_weight id,
                            tensor *x, tensor *before)
{
    struct gguf_ctx *c = at->c;
    tensor *kernel = gg_weight_at(at, id);
    tensor *bias = gg_weight_at(at, gg_weight_bias(id));
    const int64_t n = kernel->ne[0] - 1;
    if (kernel->ne[2] > 1) /* one row per channel (Kimi) */
        kernel = gguf_op_reshape_2d(c, kernel, n + 1, kernel->ne[2]);
    tensor *all = n ? gguf_op_concat(c, before, x, 1) : x;
    tensor *y = gguf_op_ssm_conv(c, gguf_op_transpose(c, all), kernel);
    if (n && all) {
        tensor *last = gguf_op_view_3d(c, all, all->ne[0], n, all->ne[2],
                                       all->nb[1], all->nb[2],
                                       (uint64_t)(at->p->n_real * all->nb[1]));
        gg_model_store_state(at, last, before);
    }
    return bias ? gguf_op_add(c, y, bias) : y;
}
