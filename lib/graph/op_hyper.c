/* SPDX-License-Identifier: MIT */
/* op_hyper.c - how streams meet: builder and rule */
#include "config.h"
#include "gguf/op.h"
#include "graph/shape_rule.h"

#include <inttypes.h>

struct gguf_tensor *gguf_op_hyper(struct gguf_ctx *ctx, struct gguf_tensor *z,
                                  struct gguf_tensor *base,
                                  struct gguf_tensor *scale, int32_t n,
                                  int32_t n_iter, float eps)
{
    const struct gguf_hyper_params p = { n, n_iter, eps };
    return gg_op_make(ctx, GGUF_OP_HYPER, &p, sizeof p, SRC(z, base, scale));
}

/* A row of n elements, as operations read it in place. */
static bool is_row(const struct gguf_tensor *t, int64_t n)
{
    return t->ne[0] == n && gguf_tensor_n_elements(t) == n &&
           gguf_tensor_is_contiguous(t);
}

enum gguf_status gg_graph_shape_hyper(struct gguf_tensor *t,
                                      struct gguf_error *err)
{
    const struct gguf_tensor *z = t->src[0];
    struct gguf_hyper_params p;
    gg_op_params_get(t, &p, sizeof p);
    if (p.n < 1 || p.n > GGUF_HYPER_MAX || p.n_iter < 0 || !(p.eps >= 0))
        return gg_op_fail(t, err, GGUF_E_INVALID,
                          "%" PRId32 " streams, %" PRId32
                          " iterations, epsilon %g",
                          p.n, p.n_iter, (double)p.eps);
    const bool all = z->ne[0] == (2 + (int64_t)p.n) * p.n;
    if (t->src[1]->dtype != GGUF_DTYPE_F32 ||
        t->src[2]->dtype != GGUF_DTYPE_F32 || !gg_graph_is_float(z))
        FAIL_TYPE("base and scale must be f32, and z floats");
    if (!all && z->ne[0] != p.n)
        FAIL_SHAPE("rows of z must have %" PRId32 " or %" PRId64 " elements",
                   p.n, (2 + (int64_t)p.n) * p.n);
    if (!is_row(t->src[1], z->ne[0]) || !is_row(t->src[2], all ? 3 : 1))
        FAIL_SHAPE("base must have %" PRId64 " elements, scale %d", z->ne[0],
                   all ? 3 : 1);
    return gg_tensor_set_shape(t, z->dtype, z->ne, err);
}
