/* SPDX-License-Identifier: MIT */
/* compute_attn.c - from the tensors of an attention node to cpu/attn.h */
#include "config.h"
#include "cpu/compute_table.h"

#include "cpu/attn.h"
#include "gguf/op.h"

#include <string.h>

static void args_init(struct gg_attn_args *a, const struct gguf_tensor *t,
                      const struct gg_kern *kern)
{
    const struct gguf_tensor *q = t->src[0], *k = t->src[1], *v = t->src[2];
    const struct gguf_tensor *mask = t->src[3], *sinks = t->src[4];
    struct gguf_attn_params p;
    memcpy(&p, t->op_params, sizeof p);
    *a = (struct gg_attn_args){
        .kern = kern,
        .ints = kern->precision != GG_PRECISION_EXACT &&
                q->ne[0] <= GG_ATTN_I16_MOST_STEPS,
        .q = q->data,
        .k = k->data,
        .v = v->data,
        .k_type = gg_dtype_index(k->dtype),
        .v_type = gg_dtype_index(v->dtype),
        .sinks = sinks ? sinks->data : NULL,
        .out = t->data,
        .d = q->ne[0],
        .dv = v->ne[0],
        .n_tok = q->ne[1],
        .n_kv = k->ne[1],
        .n_seq = q->ne[3],
        .n_head = q->ne[2],
        .n_head_kv = k->ne[2],
        .scale = p.scale,
        .max_bias = p.max_bias,
        .softcap = p.softcap,
    };
    for (int i = 0; i < 3; i++) {
        a->q_nb[i] = (size_t)q->nb[i + 1];
        a->k_nb[i] = (size_t)k->nb[i + 1];
        a->v_nb[i] = (size_t)v->nb[i + 1];
        a->out_nb[i] = (size_t)t->nb[i + 1];
    }
    if (mask) {
        a->mask = mask->data;
        a->mask_type = gg_dtype_index(mask->dtype);
        a->mask_nb[0] = (size_t)mask->nb[1];
        if (mask->ne[2] == q->ne[2] && mask->ne[2] > 1)
            a->mask_nb[1] = (size_t)mask->nb[2];
        else if (mask->ne[2] > 1)
            a->mask_kv_nb = (size_t)mask->nb[2];
        a->mask_nb[2] = mask->ne[3] == 1 ? 0 : (size_t)mask->nb[3];
    }
}

static void compute_attention(struct gguf_tensor *t,
                              const struct gg_cpu_task *task)
{
    struct gg_attn_args a;
    args_init(&a, t, task->kern);
    gg_attn_run(&a, task->ith, task->work, task->barrier);
}

static size_t attention_work(const struct gguf_tensor *t, unsigned nth,
                             const struct gg_kern *kern)
{
    struct gg_attn_args a;
    args_init(&a, t, kern);
    return gg_attn_work_size(&a, nth);
}

/* f32 rows at addresses that are multiples of 4. */
static bool is_f32(const struct gguf_tensor *t)
{
    return t->dtype == GGUF_DTYPE_F32 && gguf_tensor_has_contiguous_rows(t) &&
           (t->nb[1] | t->nb[2] | t->nb[3]) % 4 == 0;
}

/* Rows of a type that decodes from any block on. */
static bool decodes_anywhere(const struct gguf_tensor *t,
                             const struct gg_kern *kern)
{
    const int i = gg_dtype_index(t->dtype);
    return i >= 0 && kern->codec[i].decode &&
           gg_dtype_by_index(i)->row_header == 0 &&
           gguf_tensor_has_contiguous_rows(t);
}

static bool attention_supports(const struct gguf_tensor *t,
                               const struct gg_kern *kern)
{
    const struct gguf_tensor *mask = t->src[3], *sinks = t->src[4];
    return is_f32(t) && is_f32(t->src[0]) &&
           decodes_anywhere(t->src[1], kern) &&
           decodes_anywhere(t->src[2], kern) &&
           (!sinks || gguf_tensor_has_contiguous_rows(sinks)) &&
           (!mask || ((mask->dtype == GGUF_DTYPE_F32 ||
                       mask->dtype == GGUF_DTYPE_F16) &&
                      decodes_anywhere(mask, kern)));
}

GG_CPU_OP(attention, compute_attention, attention_work, attention_supports,
          false);
