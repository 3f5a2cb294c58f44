/* SPDX-License-Identifier: MIT */
/* op.c - builders: each fills parameters and sources; the row does the rest */
#include "config.h"
#include "base/params.h"
#include "graph/shape_rule.h"

/* Builders without parameters, from the rows. */
#define BUILD_one(ID, NAME)                                                   \
    struct gguf_tensor *gguf_op_##NAME(struct gguf_ctx *ctx,                  \
                                       struct gguf_tensor *a)                 \
    {                                                                         \
        return gg_op_make(ctx, GGUF_OP_##ID, NULL, 0, SRC(a));                \
    }
#define BUILD_two(ID, NAME)                                                   \
    struct gguf_tensor *gguf_op_##NAME(                                       \
        struct gguf_ctx *ctx, struct gguf_tensor *a, struct gguf_tensor *b)   \
    {                                                                         \
        return gg_op_make(ctx, GGUF_OP_##ID, NULL, 0, SRC(a, b));             \
    }
#define BUILD_own(ID, NAME)
#define BUILD_none(ID, NAME)
#define X(ID, NAME, SRC, OPT, INPLACE, KIND, BUILD, SHAPE, COST)              \
    BUILD_##BUILD(ID, NAME)
GG_OP_LIST(X)
#undef X

static struct gguf_tensor *build_copy(struct gguf_ctx *ctx,
                                      struct gguf_tensor *a, uint32_t dtype,
                                      const char *what)
{
    struct gg_tensor_storage proto =
        GG_TENSOR_STORAGE_INIT(proto, .op = GGUF_OP_DUP, .dtype = dtype);
    proto.src[0] = a;
    return gg_op_name_from_source(gg_op_build(ctx, &proto), a, what, NULL);
}

struct gguf_tensor *gguf_op_cast(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                 uint32_t dtype)
{
    return build_copy(ctx, a, dtype, "copy");
}

struct gguf_tensor *gguf_op_dup(struct gguf_ctx *ctx, struct gguf_tensor *a)
{
    return build_copy(ctx, a, a ? a->dtype : 0, "copy");
}

struct gguf_tensor *gguf_op_cont(struct gguf_ctx *ctx, struct gguf_tensor *a)
{
    return build_copy(ctx, a, a ? a->dtype : 0, "cont");
}

struct gguf_tensor *gguf_op_cpy(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                struct gguf_tensor *b)
{
    struct gguf_tensor *t = gg_op_make(ctx, GGUF_OP_CPY, NULL, 0, SRC(a, b));
    if (!t || !a->name[0] || !b->name[0])
        return gg_op_name_from_source(t, b && b->name[0] ? b : a, "copy",
                                      NULL);
    return gg_op_name_from_source(t, b, "copy of ", a);
}

struct gguf_tensor *gguf_op_set_rows(struct gguf_ctx *ctx,
                                     struct gguf_tensor *dst,
                                     struct gguf_tensor *src,
                                     struct gguf_tensor *ids)
{
    return gg_op_name_from_source(
        gg_op_make(ctx, GGUF_OP_SET_ROWS, NULL, 0, SRC(dst, src, ids)), dst,
        "view", NULL);
}

struct gguf_tensor *gguf_op_scale(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                  float s)
{
    return gg_op_make(ctx, GGUF_OP_SCALE, &s, sizeof s, SRC(a));
}

struct gguf_tensor *gguf_op_leaky_relu(struct gguf_ctx *ctx,
                                       struct gguf_tensor *a, float slope)
{
    return gg_op_make(ctx, GGUF_OP_LEAKY_RELU, &slope, sizeof slope, SRC(a));
}

struct gguf_tensor *gguf_op_clamp(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                  float low, float high)
{
    if (!(low <= high)) {
        gg_error_set(gg_ctx_err(ctx), GGUF_E_INVALID, GGUF_NO_OFFSET,
                     "clamp: from %g to %g", (double)low, (double)high);
        return NULL;
    }
    return gg_op_make(ctx, GGUF_OP_CLAMP, (float[]){ low, high },
                      2 * sizeof low, SRC(a));
}

struct gguf_tensor *gguf_op_xielu(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                  float alpha_n, float alpha_p, float beta,
                                  float eps)
{
    return gg_op_make(ctx, GGUF_OP_XIELU,
                      (float[]){ alpha_n, alpha_p, beta, eps }, 4 * sizeof eps,
                      SRC(a));
}

struct gguf_tensor *gguf_op_swiglu_oai(struct gguf_ctx *ctx,
                                       struct gguf_tensor *a,
                                       struct gguf_tensor *b, float alpha,
                                       float limit)
{
    if (!(limit >= 0)) {
        gg_error_set(gg_ctx_err(ctx), GGUF_E_INVALID, GGUF_NO_OFFSET,
                     "swiglu_oai: the limit is %g", (double)limit);
        return NULL;
    }
    return gg_op_make(ctx, GGUF_OP_SWIGLU_OAI, (float[]){ alpha, limit },
                      2 * sizeof limit, SRC(a, b));
}

struct gguf_tensor *gguf_op_concat(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                   struct gguf_tensor *b, unsigned dim)
{
    int32_t d = dim < GGUF_TENSOR_DIMS ? (int32_t)dim : -1;
    return gg_op_make(ctx, GGUF_OP_CONCAT, &d, sizeof d, SRC(a, b));
}

struct gguf_tensor *gguf_op_repeat(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                   int64_t ne0, int64_t ne1, int64_t ne2,
                                   int64_t ne3)
{
    struct gg_tensor_storage proto = GG_TENSOR_STORAGE_INIT(
        proto, .op = GGUF_OP_REPEAT, .ne = { ne0, ne1, ne2, ne3 });
    proto.src[0] = a;
    return gg_op_build(ctx, &proto);
}

struct gguf_tensor *gguf_op_pad(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                int32_t p0, int32_t p1, int32_t p2, int32_t p3)
{
    return gg_op_make(ctx, GGUF_OP_PAD, (int32_t[]){ p0, p1, p2, p3 },
                      4 * sizeof p0, SRC(a));
}

struct gguf_tensor *gguf_op_roll(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                 int32_t s0, int32_t s1, int32_t s2,
                                 int32_t s3)
{
    return gg_op_make(ctx, GGUF_OP_ROLL, (int32_t[]){ s0, s1, s2, s3 },
                      4 * sizeof s0, SRC(a));
}

struct gguf_tensor *gguf_op_argsort(struct gguf_ctx *ctx,
                                    struct gguf_tensor *a, bool descending)
{
    int32_t down = descending;
    return gg_op_make(ctx, GGUF_OP_ARGSORT, &down, sizeof down, SRC(a));
}

struct gguf_tensor *gguf_op_top_k(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                  int64_t k)
{
    struct gguf_tensor *s = gguf_op_argsort(ctx, a, true);
    return s ? gguf_op_view_4d(ctx, s, k, s->ne[1], s->ne[2], s->ne[3],
                               s->nb[1], s->nb[2], s->nb[3], 0)
             : NULL;
}

static bool eps_is_good(struct gguf_ctx *ctx, enum gguf_op op, float eps)
{
    if (eps >= 0)
        return true;
    gg_error_set(gg_ctx_err(ctx), GGUF_E_INVALID, GGUF_NO_OFFSET,
                 "%s: eps is %g", gguf_op_name(op), (double)eps);
    return false;
}

static struct gguf_tensor *build_norm(struct gguf_ctx *ctx, enum gguf_op op,
                                      struct gguf_tensor *a, float eps)
{
    return eps_is_good(ctx, op, eps)
               ? gg_op_make(ctx, op, &eps, sizeof eps, SRC(a))
               : NULL;
}

struct gguf_tensor *gguf_op_norm(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                 float eps)
{
    return build_norm(ctx, GGUF_OP_NORM, a, eps);
}

struct gguf_tensor *gguf_op_rms_norm(struct gguf_ctx *ctx,
                                     struct gguf_tensor *a, float eps)
{
    return build_norm(ctx, GGUF_OP_RMS_NORM, a, eps);
}

struct gguf_tensor *gguf_op_l2_norm(struct gguf_ctx *ctx,
                                    struct gguf_tensor *a, float eps)
{
    return build_norm(ctx, GGUF_OP_L2_NORM, a, eps);
}

struct gguf_tensor *gguf_op_group_norm(struct gguf_ctx *ctx,
                                       struct gguf_tensor *a, int32_t n_groups,
                                       float eps)
{
    struct gguf_group_norm_params p = { eps, n_groups };
    return eps_is_good(ctx, GGUF_OP_GROUP_NORM, eps)
               ? gg_op_make(ctx, GGUF_OP_GROUP_NORM, &p, sizeof p, SRC(a))
               : NULL;
}

struct gguf_tensor *gguf_op_diag_mask_inf(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a,
                                          int32_t n_past)
{
    return gg_op_make(ctx, GGUF_OP_DIAG_MASK_INF, &n_past, sizeof n_past,
                      SRC(a));
}

struct gguf_tensor *gguf_op_diag_mask_zero(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a,
                                           int32_t n_past)
{
    return gg_op_make(ctx, GGUF_OP_DIAG_MASK_ZERO, &n_past, sizeof n_past,
                      SRC(a));
}

struct gguf_tensor *gguf_op_matmul_id(struct gguf_ctx *ctx,
                                      struct gguf_tensor *a,
                                      struct gguf_tensor *b,
                                      struct gguf_tensor *ids)
{
    return gg_op_make(ctx, GGUF_OP_MATMUL_ID, NULL, 0, SRC(a, b, ids));
}

struct gguf_tensor *gguf_op_soft_max_sinks(struct gguf_ctx *ctx,
                                           struct gguf_tensor *x,
                                           struct gguf_tensor *mask,
                                           struct gguf_tensor *sinks,
                                           float scale, float max_bias)
{
    struct gguf_soft_max_params p = { scale, max_bias };
    return gg_op_make(ctx, GGUF_OP_SOFT_MAX, &p, sizeof p,
                      SRC(x, mask, sinks));
}

struct gguf_tensor *gguf_op_soft_max(struct gguf_ctx *ctx,
                                     struct gguf_tensor *x,
                                     struct gguf_tensor *mask, float scale,
                                     float max_bias)
{
    return gguf_op_soft_max_sinks(ctx, x, mask, NULL, scale, max_bias);
}

static void set_default(float *x, float value)
{
    if (*x == 0)
        *x = value;
}

void gg_op_rope_set_defaults(struct gguf_rope *rope)
{
    set_default(&rope->freq_base, 10000);
    set_default(&rope->freq_scale, 1);
    set_default(&rope->attn_factor, 1);
    set_default(&rope->beta_fast, 32);
    set_default(&rope->beta_slow, 1);
}

struct gguf_tensor *gguf_op_rope(struct gguf_ctx *ctx, struct gguf_tensor *x,
                                 struct gguf_tensor *pos,
                                 struct gguf_tensor *freq_factors,
                                 const struct gguf_rope *rope)
{
    struct gguf_rope own = GGUF_ROPE_INIT;
    if (gg_params_take(&own, sizeof own, rope, "gguf_rope", gg_ctx_err(ctx)) !=
        GGUF_OK)
        return NULL;
    gg_op_rope_set_defaults(&own);
    return gg_op_make(ctx, GGUF_OP_ROPE, &own, sizeof own,
                      SRC(x, pos, freq_factors));
}

struct gguf_tensor *
gguf_op_attention_sinks(struct gguf_ctx *ctx, struct gguf_tensor *q,
                        struct gguf_tensor *k, struct gguf_tensor *v,
                        struct gguf_tensor *mask, struct gguf_tensor *sinks,
                        float scale, float max_bias, float softcap)
{
    struct gguf_attn_params p = { scale, max_bias, softcap };
    return gg_op_make(ctx, GGUF_OP_ATTENTION, &p, sizeof p,
                      SRC(q, k, v, mask, sinks));
}

struct gguf_tensor *gguf_op_attention(struct gguf_ctx *ctx,
                                      struct gguf_tensor *q,
                                      struct gguf_tensor *k,
                                      struct gguf_tensor *v,
                                      struct gguf_tensor *mask, float scale,
                                      float max_bias, float softcap)
{
    return gguf_op_attention_sinks(ctx, q, k, v, mask, NULL, scale, max_bias,
                                   softcap);
}
