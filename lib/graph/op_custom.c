/* SPDX-License-Identifier: MIT */
/* op_custom.c - operations of the program's own: builders and rule */
#include "config.h"
#include "base/params.h"
#include "graph/shape_rule.h"

/* The builder says type and shape. */
enum gguf_status gg_graph_shape_custom(struct gguf_tensor *t,
                                       struct gguf_error *err)
{
    struct gguf_custom c;
    gg_op_params_get(t, &c, sizeof c);
    if (!c.compute.fn)
        return gg_op_fail(t, err, GGUF_E_INVALID, "no function");
    int64_t ne[GGUF_TENSOR_DIMS];
    memcpy(ne, t->ne, sizeof ne);
    return gg_tensor_set_shape(t, t->dtype, ne, err);
}

struct gguf_tensor *gguf_op_custom(struct gguf_ctx *ctx, uint32_t dtype,
                                   const int64_t *ne, unsigned n_src,
                                   struct gguf_tensor *const *src,
                                   const struct gguf_custom *custom)
{
    struct gg_tensor_storage proto =
        GG_TENSOR_STORAGE_INIT(proto, .op = GGUF_OP_CUSTOM, .dtype = dtype);
    struct gguf_custom own = GGUF_CUSTOM_INIT;
    if (gg_params_take(&own, sizeof own, custom, "gguf_custom",
                       gg_ctx_err(ctx)) != GGUF_OK)
        return NULL;
    if (n_src > GGUF_TENSOR_SRC) {
        gg_error_set(gg_ctx_err(ctx), GGUF_E_INVALID, GGUF_NO_OFFSET,
                     "custom: %u sources, %d are possible", n_src,
                     GGUF_TENSOR_SRC);
        return NULL;
    }
    if (gg_params_need(ne, "ne", gg_ctx_err(ctx)) != GGUF_OK)
        return NULL;
    for (unsigned i = 0; i < n_src; i++) {
        if (!src || !src[i]) {
            gg_error_set(gg_ctx_err(ctx), GGUF_E_INVALID, GGUF_NO_OFFSET,
                         "custom: source %u is NULL", i);
            return NULL;
        }
        proto.src[i] = src[i];
    }
    memcpy(proto.t.ne, ne, sizeof proto.t.ne);
    memcpy(proto.op_params, &own, sizeof own);
    return gg_op_build(ctx, &proto);
}

static struct gguf_tensor *build_map(struct gguf_ctx *ctx, unsigned n,
                                     struct gguf_tensor *const *src,
                                     const struct gguf_custom *custom)
{
    static const int64_t none[GGUF_TENSOR_DIMS];
    const struct gguf_tensor *a = src[0]; /* NULL: refused by custom */
    return gguf_op_custom(ctx, a ? a->dtype : 0, a ? a->ne : none, n, src,
                          custom);
}

struct gguf_tensor *gguf_op_map_1(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                  const struct gguf_custom *custom)
{
    return build_map(ctx, SRC(a), custom);
}

struct gguf_tensor *gguf_op_map_2(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                  struct gguf_tensor *b,
                                  const struct gguf_custom *custom)
{
    return build_map(ctx, SRC(a, b), custom);
}

struct gguf_tensor *gguf_op_map_3(struct gguf_ctx *ctx, struct gguf_tensor *a,
                                  struct gguf_tensor *b, struct gguf_tensor *c,
                                  const struct gguf_custom *custom)
{
    return build_map(ctx, SRC(a, b, c), custom);
}
