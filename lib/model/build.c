/* build.c - the graph of a pass: layers in the order of an architecture's row
 */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

const struct gg_mixer_fn gg_mixers[GG_N_MIXERS] = {
    [GG_MIX_ATTENTION] = { gg_mix_attention, GG_W_ATTN_OUT },
};

static struct gg_at at_layer(const struct gg_pass *p, uint32_t il)
{
    const struct gguf_model *m = p->model;
    return (struct gg_at){ .p = p, .m = m, .c = p->ctx, .arch = m->arch,
                           .layer = &m->hp.layer[il],
                           .weights = &m->layer[il], .il = il };
}

/* ---- a layer ---- */

/* The result y of a part joins the stream x. */
static tensor *join(const struct gg_at *at, const struct gg_norms *norms,
                    tensor *x, tensor *y)
{
    const bool scaled = at->arch->residual_scale;
    y = gg_norm_if(at, norms->post, y);
    y = gg_scaled(at, y, scaled ? at->m->hp.residual_scale : 1);
    return gg_norm_if(at, norms->add, gguf_op_add(at->c, x, y));
}

/* Rows that are wanted of the last layer. */
static tensor *wanted(const struct gg_pass *p, tensor *x)
{
    return p->out_rows ? gguf_op_get_rows(p->ctx, x, p->out_rows) : x;
}

/* NULL: the last layer of a pass without outputs. */
static tensor *layer(const struct gg_at *at, tensor *x)
{
    const struct gg_arch *a = at->arch;
    const struct gg_mixer_fn *mixer = &gg_mixers[at->layer->mixer];
    tensor *y = mixer->mix(at, gg_norm_if(at, a->mix_norm.pre, x));
    if (at->il == at->m->hp.n_layer - 1) {
        if (!at->p->n_out)
            return NULL;
        y = wanted(at->p, y); /* from here on only those */
        x = wanted(at->p, x);
    }
    x = join(at, &a->mix_norm, x, gg_linear(at, mixer->out, y));
    y = gg_feed_forward(at, gg_norm_if(at, a->ffn_norm.pre, x));
    return join(at, &a->ffn_norm, x, y);
}

/* ---- a pass ---- */

static tensor *embeddings(const struct gg_at *at)
{
    return gguf_op_get_rows(at->c, gg_weight_at(at, GG_W_TOKEN_EMBD),
                            at->p->tokens);
}

tensor *gg_build_pass(const struct gg_pass *p)
{
    const struct gguf_model *m = p->model;
    struct gg_at at = at_layer(p, 0);
    tensor *x = embeddings(&at);
    for (uint32_t il = 0; il < m->hp.n_layer; il++) {
        at = at_layer(p, il);
        x = layer(&at, x);
    }
    if (!p->n_out)
        return NULL;
    x = gg_norm_if(&at, m->arch->final_norm, x);
    gguf_graph_add(p->graph, gguf_tensor_flag(x, GGUF_TENSOR_OUTPUT));
    return x;
}

tensor *gg_build_logits(const struct gguf_model *m, struct gguf_ctx *ctx,
                        tensor *states)
{
    const struct gg_at at = { .m = m, .c = ctx, .arch = m->arch };
    return gg_linear(&at, GG_W_OUTPUT, states);
}

size_t gg_build_n_nodes(const struct gguf_model *m)
{
    return 16 + (size_t)m->hp.n_layer * 48;
}
