/* shape.c - which tensors a model has, and their shapes */
#include "config.h"
#include "model/shape.h"

#include "base/compiler.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>

#define P(part) GG_PART_##part
#define DIMS(...) DIMS_(__VA_ARGS__, NONE, NONE, )
#define DIMS_(a, b, c, ...) { GG_DIM_##a, GG_DIM_##b, GG_DIM_##c }

const struct gg_shape gg_shapes[GG_N_WEIGHTS] = {
#define X(ID, NAME, BLOCK, ROLE, INSTEAD, NEED, MAY, ...)                     \
    { NAME, BLOCK, GG_##ROLE, DIMS(__VA_ARGS__), GG_W_##INSTEAD, NEED, MAY },
    GG_SHAPE_LIST(X)
#undef X
};

const struct gg_shape *gg_shape_find(struct gguf_str name, bool block,
                                     uint32_t parts)
{
    for (size_t i = GG_W_NONE + 1; i < GG_LEN(gg_shapes); i++) {
        const struct gg_shape *s = &gg_shapes[i];
        if (s->block == block && ((s->need | s->may) & parts) &&
            gg_str_eqz(name, s->name))
            return s;
    }
    return NULL;
}

uint32_t gg_shape_parts(const struct gg_arch *arch,
                        const struct gg_hparams *hp,
                        const struct gg_layer_hp *l)
{
    const uint32_t dense = P(FFN) | P(FFN_UP) | P(FFN_GATE) | P(FFN_FUSED);
    const uint32_t experts =
        P(MOE) | P(MOE_BIAS) | P(SHARED) | P(SHARED_GATE);
    uint32_t parts = arch->parts;
    if (hp->rank_q && (parts & P(MLA)))
        parts |= P(MLA_Q);
    if (!l)
        return parts;
    if (!(parts & P(MOE)) || !hp->n_expert ||
        (uint32_t)(l - hp->layer) < hp->n_dense)
        return parts & ~experts;
    if (!hp->n_shared && !(parts & P(SHARED_GATE)))
        parts &= ~(uint32_t)P(SHARED);
    return parts & ~dense;
}

/* Elements of a dimension, or 0 if a key that it depends on is missing. */
static int64_t dim_of(const struct gg_hparams *hp, const struct gg_layer_hp *l,
                      enum gg_dim d)
{
    int64_t rot = hp->rope.n_dims, dim_k = hp->dim_k, dim_v = hp->dim_v;
    int64_t q = l->n_head * dim_k, k = l->n_head_kv * dim_k,
            v = l->n_head_kv * dim_v, nope = dim_k > rot ? dim_k - rot : 0;
    switch (d) {
    case GG_DIM_NONE: return 1;
    case GG_DIM_ANY: return 0;
    case GG_DIM_EMBD: return hp->n_embd;
    case GG_DIM_VOCAB: return hp->n_vocab;
    case GG_DIM_CTX: return hp->n_ctx_train;
    case GG_DIM_ROT: return rot / 2;
    case GG_DIM_HEAD: return dim_k;
    case GG_DIM_N_HEAD: return l->n_head;
    case GG_DIM_N_HEAD_KV: return l->n_head_kv;
    case GG_DIM_Q: return q;
    case GG_DIM_K: return k;
    case GG_DIM_V: return v;
    case GG_DIM_QKV: return q && k && v ? q + k + v : 0;
    case GG_DIM_HEADS_V: return l->n_head * dim_v;
    case GG_DIM_FF: return l->n_ff;
    case GG_DIM_FF2: return 2 * (int64_t)l->n_ff;
    case GG_DIM_EXPERTS: return hp->n_expert;
    case GG_DIM_EXPERT_FF: return hp->n_ff_expert;
    case GG_DIM_EXPERT_FF2: return 2 * (int64_t)hp->n_ff_expert;
    case GG_DIM_SHARED_FF: return hp->n_ff_shared;
    case GG_DIM_LORA_Q: return hp->rank_q;
    case GG_DIM_LORA_KV: return hp->rank_kv;
    case GG_DIM_LORA_KVR: return hp->rank_kv ? hp->rank_kv + rot : 0;
    case GG_DIM_HEAD_V: return dim_v;
    case GG_DIM_NOPE: return nope;
    case GG_DIM_NOPE_V: return nope && dim_v ? l->n_head * (nope + dim_v) : 0;
    }
    return 0;
}

void gg_shape_want(const struct gg_shape *shape, const struct gg_hparams *hp,
                   const struct gg_layer_hp *l, int64_t want[3])
{
    for (int i = 0; i < 3; i++)
        want[i] = dim_of(hp, l, (enum gg_dim)shape->ne[i]);
}

bool gg_shape_fits(const struct gguf_tensor_info *t, const int64_t want[3])
{
    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++) {
        int64_t n = i < 3 ? want[i] : 1;
        if (n && t->ne[i] != n)
            return false;
    }
    return true;
}

static size_t list(char *out, size_t size, const int64_t *ne, unsigned n)
{
    size_t used = 0;
    for (unsigned i = 0; i < n && used < size; i++) {
        int k = ne[i] ? snprintf(out + used, size - used, "%s%" PRId64,
                                 i ? ", " : "", ne[i])
                      : snprintf(out + used, size - used, "%s?",
                                 i ? ", " : "");
        used += k > 0 ? (size_t)k : 0;
    }
    return used;
}

const char *gg_shape_text(struct gg_shape_text *out,
                          const struct gguf_tensor_info *t,
                          const struct gg_shape *shape, const int64_t want[3])
{
    char has[128] = "", must[80] = "";
    unsigned n = 3;
    struct gg_esc e;
    while (n > 1 && shape->ne[n - 1] == GG_DIM_NONE)
        n--;
    list(has, sizeof has, t->ne, t->n_dims);
    list(must, sizeof must, want, n);
    snprintf(out->s, sizeof out->s,
             "tensor '%s' has shape [%s], must be [%s]", gg_esc(&e, t->name),
             has, must);
    return out->s;
}
