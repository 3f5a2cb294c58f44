/* op.c - builders: each fills parameters and sources; the row does the rest */
#include "config.h"
#include "graph/optab.h"

#define SRC(...) GG_LEN(((struct gguf_tensor *[]){ __VA_ARGS__ })),           \
                 (struct gguf_tensor *[]){ __VA_ARGS__ }

/* Builders without parameters. */
#define UNARY(name, OP)                                                       \
    struct gguf_tensor *gguf_op_##name(struct gguf_ctx *ctx,                  \
                                       struct gguf_tensor *a)                 \
    {                                                                         \
        return gg_op_make(ctx, GGUF_OP_##OP, NULL, 0, SRC(a));                \
    }
#define BINARY(name, OP)                                                      \
    struct gguf_tensor *gguf_op_##name(                                       \
        struct gguf_ctx *ctx, struct gguf_tensor *a, struct gguf_tensor *b)   \
    {                                                                         \
        return gg_op_make(ctx, GGUF_OP_##OP, NULL, 0, SRC(a, b));             \
    }

UNARY(silu, SILU)
UNARY(gelu, GELU)
UNARY(gelu_erf, GELU_ERF)
UNARY(gelu_quick, GELU_QUICK)
UNARY(relu, RELU)
UNARY(sigmoid, SIGMOID)
UNARY(tanh, TANH)
BINARY(add, ADD)
BINARY(sub, SUB)
BINARY(mul, MUL)
BINARY(div, DIV)
BINARY(swiglu, SWIGLU)
BINARY(geglu, GEGLU)
BINARY(reglu, REGLU)
BINARY(cpy, CPY)
BINARY(get_rows, GET_ROWS)
BINARY(matmul, MATMUL)

struct gguf_tensor *gguf_op_cast(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                 uint32_t dtype)
{
    struct gguf_tensor proto = { .op = GGUF_OP_DUP,
                                 .dtype = dtype,
                                 .src = { a } };
    return gg_op_build(ctx, &proto);
}

struct gguf_tensor *gguf_op_dup(struct gguf_ctx *ctx, struct gguf_tensor *a)
{
    return gguf_op_cast(ctx, a, a ? a->dtype : 0);
}

struct gguf_tensor *gguf_op_cont(struct gguf_ctx *ctx, struct gguf_tensor *a)
{
    if (a && !gg_ctx_failed(ctx) && gguf_tensor_is_contiguous(a))
        return a;
    return gguf_op_dup(ctx, a);
}

struct gguf_tensor *gguf_op_set_rows(struct gguf_ctx *ctx,
                                     struct gguf_tensor *dst,
                                     struct gguf_tensor *src,
                                     struct gguf_tensor *ids)
{
    return gg_op_make(ctx, GGUF_OP_SET_ROWS, NULL, 0, SRC(dst, src, ids));
}

struct gguf_tensor *gguf_op_scale(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                  float s)
{
    return gg_op_make(ctx, GGUF_OP_SCALE, &s, sizeof s, SRC(a));
}

static struct gguf_tensor *norm(struct gguf_ctx *ctx, enum gguf_op op,
                                struct gguf_tensor *a, float eps)
{
    if (!(eps >= 0)) {
        gg_fail(gg_ctx_err(ctx), GGUF_E_INVALID, GGUF_NO_OFFSET,
                "%s: eps is %g", gguf_op_name(op), (double)eps);
        return NULL;
    }
    return gg_op_make(ctx, op, &eps, sizeof eps, SRC(a));
}

struct gguf_tensor *gguf_op_norm(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                 float eps)
{
    return norm(ctx, GGUF_OP_NORM, a, eps);
}

struct gguf_tensor *gguf_op_rms_norm(struct gguf_ctx *ctx,
                                     struct gguf_tensor *a, float eps)
{
    return norm(ctx, GGUF_OP_RMS_NORM, a, eps);
}

struct gguf_tensor *gguf_op_soft_max(struct gguf_ctx *ctx,
                                     struct gguf_tensor *x,
                                     struct gguf_tensor *mask, float scale,
                                     float max_bias)
{
    struct gguf_soft_max_params p = { scale, max_bias };
    return gg_op_make(ctx, GGUF_OP_SOFT_MAX, &p, sizeof p, SRC(x, mask));
}

struct gguf_tensor *gguf_op_rope(struct gguf_ctx *ctx, struct gguf_tensor *x,
                                 struct gguf_tensor *pos,
                                 struct gguf_tensor *freq_factors,
                                 const struct gguf_rope *rope)
{
    return gg_op_make(ctx, GGUF_OP_ROPE, rope, sizeof *rope,
                      SRC(x, pos, freq_factors));
}

struct gguf_tensor *gguf_op_attention(struct gguf_ctx *ctx,
                                      struct gguf_tensor *q,
                                      struct gguf_tensor *k,
                                      struct gguf_tensor *v,
                                      struct gguf_tensor *mask, float scale,
                                      float max_bias, float softcap)
{
    struct gguf_attn_params p = { scale, max_bias, softcap };
    return gg_op_make(ctx, GGUF_OP_ATTENTION, &p, sizeof p,
                      SRC(q, k, v, mask));
}
