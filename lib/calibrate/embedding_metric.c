/* SPDX-License-Identifier: MIT */
/* embedding_metric.c - metric of the token embedding, without gradients */
#include "config.h"
#include "calibrate/embedding_metric.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "model/model_int.h"

#include <math.h>

enum { ROWS = GG_LINALG_STEPS /* rows of a matrix at a time */ };

/* Matrices that multiply a normalized vector of the residual stream. A layer
 * without the second normalization has parallel branches: the first serves
 * both. */
static const struct {
    enum gg_weight norm, or_norm, matrix;
} parts[] = {
    { GG_W_ATTN_NORM, GG_W_ATTN_NORM, GG_W_ATTN_Q },
    { GG_W_ATTN_NORM, GG_W_ATTN_NORM, GG_W_ATTN_K },
    { GG_W_ATTN_NORM, GG_W_ATTN_NORM, GG_W_ATTN_V },
    { GG_W_ATTN_NORM, GG_W_ATTN_NORM, GG_W_ATTN_QKV },
    { GG_W_FFN_NORM, GG_W_ATTN_NORM, GG_W_FFN_GATE },
    { GG_W_FFN_NORM, GG_W_ATTN_NORM, GG_W_FFN_UP },
    { GG_W_FFN_NORM, GG_W_ATTN_NORM, GG_W_GATE_EXPS },
    { GG_W_FFN_NORM, GG_W_ATTN_NORM, GG_W_UP_EXPS },
    { GG_W_FFN_NORM, GG_W_ATTN_NORM, GG_W_GATE_UP_EXPS },
};

/* Sum at work. */
struct metric {
    const struct gg_codec_kern *codec;
    struct gg_linalg *la;
    size_t n;
    float *sum;  /* [n][n], upper half */
    float *gain; /* [n] weights of a normalization */
    float *w;    /* [ROWS][n] */
};

static bool is_usable(const struct metric *m, const struct gguf_tensor *t)
{
    return t && t->ne[0] == (int64_t)m->n &&
           m->codec[gg_dtype_index(t->dtype)].decode;
}

/* Add rows times the gains and a factor. */
static enum gguf_status add_matrix(struct metric *m,
                                   const struct gguf_tensor *t, float factor,
                                   struct gguf_error *err)
{
    gg_kern_decode_fn *decode = m->codec[gg_dtype_index(t->dtype)].decode;
    const size_t n = m->n, n_rows = (size_t)gguf_tensor_n_rows(t);
    for (size_t first = 0; first < n_rows; first += ROWS) {
        const size_t rows = GG_MIN(n_rows - first, (size_t)ROWS);
        for (size_t i = 0; i < rows; i++) {
            float *w = m->w + i * n;
            decode((const unsigned char *)t->data +
                       (first + i) * (size_t)t->nb[1],
                   w, n);
            for (size_t j = 0; j < n; j++)
                w[j] *= m->gain[j] * factor;
        }
        GG_TRY(gg_linalg_add_products(m->la, m->sum, n, m->w, n, n, m->w, n, n,
                                      rows, true, err));
    }
    return GGUF_OK;
}

/* Weights of a normalization; without any, 1. */
static void set_gain(struct metric *m, const struct gguf_tensor *norm)
{
    if (is_usable(m, norm)) {
        m->codec[gg_dtype_index(norm->dtype)].decode(norm->data, m->gain,
                                                     m->n);
        return;
    }
    for (size_t j = 0; j < m->n; j++)
        m->gain[j] = 1;
}

/* Part of the experts that a token uses, as a factor of rows. */
static float expert_factor(const struct gguf_model *model,
                           const struct gguf_tensor *t)
{
    const float used = (float)model->hp.layer->n_expert_used,
                all = (float)t->ne[2];
    return t->ne[2] > 1 && used < all ? sqrtf(used / all) : 1;
}

static enum gguf_status add_layer(struct metric *m,
                                  const struct gguf_model *model, bool *has,
                                  struct gguf_error *err)
{
    const struct gg_weights *layer = model->layer;
    for (size_t i = 0; i < GG_LEN(parts); i++) {
        const struct gguf_tensor *t = layer->w[parts[i].matrix];
        const struct gguf_tensor *norm = layer->w[parts[i].norm];
        if (!is_usable(m, t) || layer->scale[parts[i].matrix])
            continue;
        set_gain(m, norm ? norm : layer->w[parts[i].or_norm]);
        GG_TRY(add_matrix(m, t, expert_factor(model, t), err));
        *has = true;
    }
    return GGUF_OK;
}

enum gguf_status gg_embedding_metric(const struct gguf_model *model,
                                     const struct gg_codec_kern *codec,
                                     struct gg_linalg *la, float **out,
                                     size_t *n, struct gguf_error *err)
{
    const struct gguf_tensor *table = model->top.w[GG_W_TOKEN_EMBD];
    const struct gguf_allocator *a = la->allocator;
    struct metric m = { .codec = codec, .la = la };
    enum gguf_status st = GGUF_OK;
    bool has = false;
    *out = NULL;
    *n = m.n = table ? (size_t)table->ne[0] : 0;
    if (!table || !model->layer || !model->hp.n_layer_all)
        return GGUF_OK;
    m.sum = gg_mem_alloc_zero(a, m.n, m.n * sizeof *m.sum);
    m.gain = gg_mem_alloc_zero(a, m.n, sizeof *m.gain);
    m.w = gg_mem_alloc_zero(a, ROWS, m.n * sizeof *m.w);
    if (!m.sum || !m.gain || !m.w)
        st = gg_error_set_nomem(err, (m.n + ROWS) * m.n * sizeof *m.sum);
    else
        st = add_layer(&m, model, &has, err);
    gg_mem_free(a, m.gain);
    gg_mem_free(a, m.w);
    if (st || !has) {
        gg_mem_free(a, m.sum);
        return st;
    }
    gg_linalg_mirror(la, m.sum, m.n);
    *out = m.sum;
    return GGUF_OK;
}
