/* SPDX-License-Identifier: MIT */
/* head.c - logits of states: the output matrix, scales, a cap, and tokens that
 * are never to come
 */
#include "config.h"
#include "model/build_int.h"

#include "base/compiler.h"

#include <float.h>

typedef struct gguf_tensor tensor;

/* Logits that stay within a cap, softly. */
static tensor *cap_logits(const struct gg_model_at *at, tensor *y)
{
    const struct gg_hparams *hp = &at->m->hp;
    float cap = at->arch->cap == 2 ? 30 : 0;
    if (at->arch->cap && hp->has[GG_HP_logit_cap])
        cap = hp->logit_cap;
    if (cap == 0)
        return y;
    y = gguf_op_tanh(at->c, gguf_op_scale(at->c, y, 1 / cap));
    return gguf_op_scale(at->c, y, cap);
}

/* Logits of tokens that are never to come become the least float. */
static tensor *mask_logits(const struct gg_model_at *at, tensor *y)
{
    struct gguf_ctx *c = at->c;
    if (!y || !at->arch->struck.end)
        return y;
    const int64_t n = y->ne[0],
                  cuts[] = { 0, GG_MIN(at->arch->struck.first, n),
                             GG_MIN(at->arch->struck.end, n), n };
    tensor *all = NULL;
    for (int i = 0; i < 3; i++) {
        if (cuts[i] == cuts[i + 1])
            continue;
        tensor *part =
            gguf_op_view_2d(c, y, cuts[i + 1] - cuts[i], y->ne[1], y->nb[1],
                            (uint64_t)(cuts[i] * y->nb[0]));
        part = gguf_op_cont(c, part);
        if (i == 1)
            part = gguf_op_clamp(c, part, -FLT_MAX, -FLT_MAX);
        all = all ? gguf_op_concat(c, all, part, 0) : part;
    }
    return all;
}

tensor *gg_build_logits(const struct gguf_model *m,
                        const struct gg_model_added *added,
                        struct gguf_ctx *ctx, tensor *states)
{
    const struct gg_model_at at = {
        .m = m, .c = ctx, .arch = m->arch, .added = added
    };
    const float scale = m->hp.logit_scale;
    tensor *y = gg_model_linear(&at, GG_W_OUTPUT, states);
    if (m->arch->logit_scale == GG_LOGIT_SCALE_WIDTH)
        y = gg_model_scaled(&at, y, 256.0f / (float)m->hp.n_embd);
    if (m->arch->logit_scale == GG_LOGIT_SCALE_TIMES)
        y = gg_model_scaled(&at, y, scale);
    if ((m->arch->logit_scale == GG_LOGIT_SCALE_OVER ||
         m->arch->logit_scale == GG_LOGIT_SCALE_OVER_OR_WIDTH) &&
        scale != 0)
        y = gg_model_scaled(&at, y, 1 / scale);
    return mask_logits(&at, cap_logits(&at, y));
}
