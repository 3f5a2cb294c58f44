/* ffn.c - feed-forward parts: what each token does alone */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

/* ---- activations ---- */

typedef tensor *act_fn(struct gguf_ctx *c, tensor *x);
typedef tensor *gated_fn(struct gguf_ctx *c, tensor *gate, tensor *up);

static tensor *oai(struct gguf_ctx *c, tensor *gate, tensor *up)
{
    return gguf_op_swiglu_oai(c, gate, up, 1.702f, 7);
}

static const struct {
    act_fn *alone;
    gated_fn *gated;
} acts[GG_N_ACTS] = {
    [GG_ACT_SILU] = { gguf_op_silu, gguf_op_swiglu },
    [GG_ACT_GELU] = { gguf_op_gelu, gguf_op_geglu },
    [GG_ACT_RELU] = { gguf_op_relu, gguf_op_reglu },
    [GG_ACT_RELU_SQR] = { gguf_op_relu_sqr, NULL },
    [GG_ACT_OAI] = { NULL, oai },
};

/* ---- dense ---- */

static tensor *gated(const struct gg_at *at, tensor *x)
{
    tensor *gate = gg_linear(at, GG_W_FFN_GATE, x);
    tensor *up = gg_linear(at, GG_W_FFN_UP, x);
    return gg_linear(at, GG_W_FFN_DOWN,
                     acts[at->arch->act].gated(at->c, gate, up));
}

static tensor *plain(const struct gg_at *at, tensor *x)
{
    tensor *up = gg_linear(at, GG_W_FFN_UP, x);
    return gg_linear(at, GG_W_FFN_DOWN, acts[at->arch->act].alone(at->c, up));
}

typedef tensor *ffn_fn(const struct gg_at *at, tensor *x);
static ffn_fn *const ffns[GG_N_FFNS] = {
    [GG_FFN_GATED] = gated,
    [GG_FFN_PLAIN] = plain,
};

tensor *gg_feed_forward(const struct gg_at *at, tensor *x)
{
    return ffns[at->layer->ffn](at, x);
}
