/* SPDX-License-Identifier: MIT */
/* op_index.c - which keys attention reads: builders and rules */
#include "config.h"
#include "gguf/op.h"
#include "graph/shape_rule.h"

#include <inttypes.h>

struct gguf_tensor *gguf_op_index_top(struct gguf_ctx *ctx,
                                      struct gguf_tensor *q,
                                      struct gguf_tensor *k,
                                      struct gguf_tensor *weight,
                                      struct gguf_tensor *mask, int64_t n_top)
{
    const struct gguf_index_params p = { .n_top = n_top };
    return gg_op_make(ctx, GGUF_OP_INDEX_TOP, &p, sizeof p,
                      SRC(q, k, weight, mask));
}

struct gguf_tensor *
gguf_op_index_blocks(struct gguf_ctx *ctx, struct gguf_tensor *q,
                     struct gguf_tensor *k, struct gguf_tensor *pos,
                     struct gguf_tensor *mask, int64_t n_top, int32_t block,
                     int32_t n_local)
{
    const struct gguf_index_params p = { n_top, block, n_local };
    return gg_op_make(ctx, GGUF_OP_INDEX_BLOCKS, &p, sizeof p,
                      SRC(q, k, pos, mask));
}

struct gguf_tensor *
gguf_op_index_pooled(struct gguf_ctx *ctx, struct gguf_tensor *q,
                     struct gguf_tensor *k, struct gguf_tensor *pos,
                     struct gguf_tensor *mask, int64_t n_top, int32_t block)
{
    const struct gguf_index_params p = { .n_top = n_top, .block = block };
    return gg_op_make(ctx, GGUF_OP_INDEX_POOLED, &p, sizeof p,
                      SRC(q, k, pos, mask));
}

/* Check the sources that all operations have: queries, one key for all heads
 * of them, and a mask for n_kv keys. */
static enum gguf_status common_fits(const struct gguf_tensor *t, int64_t n_kv,
                                    struct gguf_error *err)
{
    const struct gguf_tensor *q = t->src[0], *k = t->src[1];
    const struct gguf_tensor *mask = t->src[3];
    struct gguf_index_params p;
    gg_op_params_get(t, &p, sizeof p);
    if (q->dtype != GGUF_DTYPE_F32 || mask->dtype != GGUF_DTYPE_F32)
        FAIL_TYPE("q and the mask must be f32");
    if (q->ne[0] != k->ne[0] || k->ne[2] != 1 || k->ne[3] != q->ne[3])
        FAIL_SHAPE("keys do not match queries");
    if (k->ne[1] > INT32_MAX)
        FAIL_SHAPE("numbers of keys must fit 32 bits");
    if (mask->ne[0] != n_kv || mask->ne[1] < q->ne[1] || mask->ne[2] != 1 ||
        (mask->ne[3] != 1 && mask->ne[3] != q->ne[3]))
        FAIL_SHAPE("the mask must be [%" PRId64 ", >= %" PRId64 "]", n_kv,
                   q->ne[1]);
    if (p.n_top < 1)
        return gg_op_fail(t, err, GGUF_E_INVALID, "%" PRId64 " are chosen",
                          p.n_top);
    return GGUF_OK;
}

enum gguf_status gg_graph_shape_index_top(struct gguf_tensor *t,
                                          struct gguf_error *err)
{
    const struct gguf_tensor *q = t->src[0], *w = t->src[2];
    GG_TRY(common_fits(t, t->src[1]->ne[1], err));
    if (w->dtype != GGUF_DTYPE_F32)
        FAIL_TYPE("weights must be f32");
    if (w->ne[0] != q->ne[2] || w->ne[1] != q->ne[1] || w->ne[2] != 1 ||
        w->ne[3] != q->ne[3])
        FAIL_SHAPE("weights must be [%" PRId64 ", %" PRId64 ", 1, %" PRId64
                   "]",
                   q->ne[2], q->ne[1], q->ne[3]);
    return gg_tensor_set_shape(
        t, GGUF_DTYPE_F32,
        (int64_t[]){ t->src[1]->ne[1], q->ne[1], 1, q->ne[3] }, err);
}

/* Check positions of n_kv keys, and blocks. */
static enum gguf_status blocks_fit(const struct gguf_tensor *t, int64_t n_kv,
                                   struct gguf_error *err)
{
    const struct gguf_tensor *q = t->src[0], *pos = t->src[2];
    struct gguf_index_params p;
    gg_op_params_get(t, &p, sizeof p);
    if (pos->dtype != GGUF_DTYPE_I32)
        FAIL_TYPE("positions must be i32");
    if (pos->ne[0] != n_kv || pos->ne[1] != 1 || pos->ne[2] != 1 ||
        (pos->ne[3] != 1 && pos->ne[3] != q->ne[3]))
        FAIL_SHAPE("positions must be [%" PRId64 ", 1, 1, %" PRId64 "]", n_kv,
                   q->ne[3]);
    if (p.block < 1 || p.n_local < 0)
        return gg_op_fail(t, err, GGUF_E_INVALID,
                          "blocks of %" PRId32 ", %" PRId32 " local ones",
                          p.block, p.n_local);
    return GGUF_OK;
}

enum gguf_status gg_graph_shape_index_blocks(struct gguf_tensor *t,
                                             struct gguf_error *err)
{
    const struct gguf_tensor *q = t->src[0];
    const int64_t n_kv = t->src[1]->ne[1];
    GG_TRY(common_fits(t, n_kv, err));
    GG_TRY(blocks_fit(t, n_kv, err));
    return gg_tensor_set_shape(
        t, GGUF_DTYPE_F32, (int64_t[]){ n_kv, q->ne[1], q->ne[2], q->ne[3] },
        err);
}

enum gguf_status gg_graph_shape_index_pooled(struct gguf_tensor *t,
                                             struct gguf_error *err)
{
    const struct gguf_tensor *q = t->src[0];
    const int64_t n_kv = t->src[3]->ne[0];
    GG_TRY(common_fits(t, n_kv, err));
    GG_TRY(blocks_fit(t, n_kv, err));
    return gg_tensor_set_shape(
        t, GGUF_DTYPE_F32, (int64_t[]){ n_kv, q->ne[1], 1, q->ne[3] }, err);
}
