/* SPDX-License-Identifier: MIT */
/* pooling.c - one vector of a sequence: pooled states and the matrices after it
 *
 * A reranker's vector is the output of its classifier: a dense layer with an
 * activation, a norm, an output matrix, all optional (BERT's
 * pooler and classifier, Devlin et al., arXiv 1810.04805; ModernBERT's, Warner
 * et al., arXiv 2412.13663; Qwen3's, probabilities of "yes" and "no"). All
 * vectors then go through dense_2 and dense_3, if the file has them.
 */
#include "config.h"
#include "model/build_int.h"

#include "base/str.h"

#include <inttypes.h>

typedef struct gguf_tensor tensor;

static const struct gg_arch_rank *rank_of(const struct gg_arch *a)
{
    static const struct gg_arch_rank by_first = { .pools = GGUF_POOLING_CLS,
                                                  .act = gguf_op_tanh };
    return a->rank ? a->rank : &by_first;
}

static const char *const names[] = {
    [GGUF_POOLING_NONE] = "none", [GGUF_POOLING_MEAN] = "mean",
    [GGUF_POOLING_CLS] = "cls",   [GGUF_POOLING_LAST] = "last",
    [GGUF_POOLING_RANK] = "rank",
};

const char *gguf_pooling_name(enum gguf_pooling p)
{
    return p >= GGUF_POOLING_NONE && p <= GGUF_POOLING_RANK ? names[p] : "?";
}

enum gguf_pooling gg_model_resolve_pooling(const struct gguf_model *m,
                                           enum gguf_pooling kind)
{
    if (kind != GGUF_POOLING_MODEL)
        return kind;
    /* pooling_type starts with 0 for none */
    return (enum gguf_pooling)(GGUF_POOLING_NONE + m->hp.pooling);
}

enum gguf_pooling gg_model_token_pooling(const struct gguf_model *m,
                                         enum gguf_pooling kind)
{
    kind = gg_model_resolve_pooling(m, kind);
    return kind == GGUF_POOLING_RANK ? rank_of(m->arch)->pools : kind;
}

/* ---- the matrices ---- */

/* Matrices of a vector, in order. */
static const struct {
    enum gg_weight id;
    bool rank; /* only for RANK */
} heads[] = {
    { GG_W_CLS, true },
    { GG_W_CLS_OUT, true },
    { GG_W_DENSE_2, false },
    { GG_W_DENSE_3, false },
};

static bool head_counts(const struct gguf_model *m, enum gguf_pooling kind,
                        size_t i)
{
    return m->top.w[heads[i].id] &&
           (kind == GGUF_POOLING_RANK || !heads[i].rank);
}

bool gg_model_has_pooled_head(const struct gguf_model *m,
                              enum gguf_pooling kind)
{
    bool any = false;
    kind = gg_model_resolve_pooling(m, kind);
    for (size_t i = 0; i < GG_LEN(heads); i++)
        any = any || head_counts(m, kind, i);
    return any || (kind == GGUF_POOLING_RANK && rank_of(m->arch)->softmax);
}

static enum gguf_status refuse_width(const tensor *t, const char *what,
                                     int64_t has, int64_t must,
                                     struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                        "tensor '%s' %s %" PRId64 " numbers, must be %" PRId64,
                        t->name, what, has, must);
}

/* A matrix of vectors of width numbers, which becomes that of its results. */
static enum gguf_status check_matrix(const struct gguf_model *m,
                                     enum gg_weight id, int64_t *width,
                                     struct gguf_error *err)
{
    const tensor *w = m->top.w[id];
    const enum gg_weight bias = gg_weight_bias(id);
    const tensor *b = m->top.w[bias];
    if (w->ne[0] != *width)
        return refuse_width(w, "takes", w->ne[0], *width, err);
    *width = w->ne[1];
    return b && b->ne[0] != *width
               ? refuse_width(b, "has", b->ne[0], *width, err)
               : GGUF_OK;
}

enum gguf_status gg_model_check_pooled(const struct gguf_model *m,
                                       enum gguf_pooling kind,
                                       struct gguf_error *err)
{
    const tensor *norm = m->top.w[GG_W_CLS_NORM];
    int64_t width = m->hp.n_embd;
    kind = gg_model_resolve_pooling(m, kind);
    for (size_t i = 0; i < GG_LEN(heads); i++) {
        if (!head_counts(m, kind, i))
            continue;
        GG_TRY(check_matrix(m, heads[i].id, &width, err));
        if (heads[i].id == GG_W_CLS && norm && norm->ne[0] != width)
            return refuse_width(norm, "has", norm->ne[0], width, err);
    }
    if (kind == GGUF_POOLING_RANK && m->info.n_label &&
        m->info.n_label != width)
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "classifier.output_labels has %" PRIu32
                            " names, the classifier gives %" PRId64 " numbers",
                            m->info.n_label, width);
    return GGUF_OK;
}

/* ---- the graph ---- */

static tensor *rank_vector(const struct gg_model_at *at, tensor *x)
{
    const struct gg_arch_rank *rank = rank_of(at->arch);
    if (gg_weight_at(at, GG_W_CLS)) {
        x = rank->act(at->c, gg_model_linear(at, GG_W_CLS, x));
        if (gg_weight_at(at, GG_W_CLS_NORM))
            x = gg_model_apply_norm(at, GG_NORM_LAYER, GG_W_CLS_NORM, x);
    }
    if (gg_weight_at(at, GG_W_CLS_OUT))
        x = gg_model_linear(at, GG_W_CLS_OUT, x);
    return rank->softmax ? gguf_op_soft_max(at->c, x, NULL, 1, 0) : x;
}

tensor *gg_build_pooled(const struct gguf_model *m,
                        const struct gg_model_adapters *added,
                        struct gguf_ctx *ctx, enum gguf_pooling kind,
                        tensor *x)
{
    const struct gg_model_at at = {
        .m = m, .c = ctx, .arch = m->arch, .added = added
    };
    if (gg_model_resolve_pooling(m, kind) == GGUF_POOLING_RANK)
        x = rank_vector(&at, x);
    if (gg_weight_at(&at, GG_W_DENSE_2))
        x = gg_model_linear(&at, GG_W_DENSE_2, x);
    if (gg_weight_at(&at, GG_W_DENSE_3))
        x = gg_model_linear(&at, GG_W_DENSE_3, x);
    return x;
}
