/* SPDX-License-Identifier: MIT */
/* output_head.c - logits of states: the output matrix, scales, a cap, and
 * tokens that are never to come
 */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

/* Logits that stay within a cap, softly. */
static tensor *cap_logits(const struct gg_model_at *at, tensor *y)
{
    const float cap = at->m->hp.logit_softcap;
    if (cap == 0)
        return y;
    y = gguf_op_tanh(at->c, gguf_op_scale(at->c, y, 1 / cap));
    return gguf_op_scale(at->c, y, cap);
}

static float logit_scale(const struct gg_hparams *hp)
{
    return hp->logit_scale;
}

const struct gg_arch_factor gg_arch_logits_times = {
    .text = "times logit_scale", .of_model = logit_scale, .key = true
};

tensor *gg_build_logits(const struct gguf_model *m,
                        const struct gg_model_adapters *added,
                        struct gguf_ctx *ctx, tensor *states)
{
    const struct gg_model_at at = {
        .m = m, .c = ctx, .arch = m->arch, .added = added
    };
    const struct gg_arch_factor *scale = m->arch->logit_scale;
    tensor *y = gg_model_linear(&at, GG_W_OUTPUT, states);
    if (scale)
        y = gg_model_apply_scale(&at, y, scale->of_model(&m->hp));
    y = cap_logits(&at, y);
    return m->arch->mask_logits ? m->arch->mask_logits(&at, y) : y;
}
