/* SPDX-License-Identifier: MIT */
/* op_view.c - reshapes, views, permutes: other looks at the same memory
 *
 * Builders compute the new shape and strides; the rules check them and set
 * the root.
 */
#include "config.h"
#include "graph/shape_rule.h"

static void set_root(struct gguf_tensor *t, uint64_t off)
{
    struct gguf_tensor *a = t->src[0];
    t->dtype = a->dtype;
    t->view_src = a->view_src ? a->view_src : a;
    t->view_off = a->view_off + off;
}

enum gguf_status gg_graph_shape_reshape(struct gguf_tensor *t,
                                        struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0];
    int64_t ne[GGUF_TENSOR_DIMS];
    uint64_t n = 1;
    bool over = false;
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++) {
        ne[d] = t->ne[d];
        over = over || ne[d] < 0 || gg_ckd_mul(&n, n, (uint64_t)ne[d]);
    }
    if (over || n != (uint64_t)gguf_tensor_n_elements(a))
        return gg_op_fail(t, err, GGUF_E_SHAPE,
                          "[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
                          "] has another number of elements",
                          ne[0], ne[1], ne[2], ne[3]);
    if (!gguf_tensor_is_contiguous(a))
        return gg_op_fail(t, err, GGUF_E_SHAPE, "it is not contiguous");
    GG_TRY(gg_tensor_set_shape(t, a->dtype, ne, err));
    set_root(t, 0);
    return GGUF_OK;
}

static struct gguf_tensor *build_reshape(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a, int64_t ne0,
                                         int64_t ne1, int64_t ne2, int64_t ne3)
{
    struct gg_tensor_storage proto = GG_TENSOR_STORAGE_INIT(
        proto, .op = GGUF_OP_RESHAPE, .ne = { ne0, ne1, ne2, ne3 });
    proto.src[0] = a;
    return gg_op_name_from_source(gg_op_build(ctx, &proto), a, "reshaped",
                                  NULL);
}

struct gguf_tensor *gguf_op_reshape_1d(struct gguf_ctx *ctx,
                                       struct gguf_tensor *a, int64_t ne0)
{
    return build_reshape(ctx, a, ne0, 1, 1, 1);
}

struct gguf_tensor *gguf_op_reshape_2d(struct gguf_ctx *ctx,
                                       struct gguf_tensor *a, int64_t ne0,
                                       int64_t ne1)
{
    return build_reshape(ctx, a, ne0, ne1, 1, 1);
}

struct gguf_tensor *gguf_op_reshape_3d(struct gguf_ctx *ctx,
                                       struct gguf_tensor *a, int64_t ne0,
                                       int64_t ne1, int64_t ne2)
{
    return build_reshape(ctx, a, ne0, ne1, ne2, 1);
}

struct gguf_tensor *gguf_op_reshape_4d(struct gguf_ctx *ctx,
                                       struct gguf_tensor *a, int64_t ne0,
                                       int64_t ne1, int64_t ne2, int64_t ne3)
{
    return build_reshape(ctx, a, ne0, ne1, ne2, ne3);
}

/* Bytes that the view spans, or true for overflow. */
static bool view_size(const struct gguf_tensor *t,
                      const struct gguf_dtype_info *info, uint64_t *size)
{
    uint64_t sum = info->block_size, part;
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++) {
        int64_t n = d ? t->ne[d] : t->ne[0] / (int64_t)info->block_len;
        if (!n) {
            *size = 0;
            return false;
        }
        if (gg_ckd_mul(&part, (uint64_t)(n - 1), (uint64_t)t->nb[d]) ||
            gg_ckd_add(&sum, sum, part))
            return true;
    }
    *size = sum;
    return gg_ckd_exceeds_cap(sum);
}

/* The builder left the offset in view_off, and -1 for strides that follow. */
enum gguf_status gg_graph_shape_view(struct gguf_tensor *t,
                                     struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0];
    const struct gguf_dtype_info *info = gguf_dtype_find(a->dtype);
    uint64_t off = t->view_off, size, next;
    if (info->row_header)
        return gg_op_fail(t, err, GGUF_E_TYPE,
                          "rows with headers cannot be viewed");
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++)
        if (t->ne[d] < 0)
            return gg_op_fail(t, err, GGUF_E_SHAPE,
                              "dimension %d of the view is %" PRId64, d,
                              t->ne[d]);
    GG_TRY(gguf_dtype_row_size(a->dtype, (uint64_t)t->ne[0], &next, err));
    t->nb[0] = info->block_size;
    for (int d = 1; d < GGUF_TENSOR_DIMS; d++) {
        bool follows = t->nb[d] == -1;
        if (follows)
            t->nb[d] = (int64_t)next;
        if (t->nb[d] < 0 || t->nb[d] % (int64_t)info->block_size)
            return gg_op_fail(t, err, GGUF_E_SHAPE,
                              "stride %d of the view is %" PRId64 " bytes", d,
                              t->nb[d]);
        if (gg_ckd_mul(&next, (uint64_t)t->nb[d], (uint64_t)t->ne[d]) ||
            gg_ckd_exceeds_cap(next))
            return gg_op_fail(t, err, GGUF_E_OVERFLOW, "the view overflows");
    }
    uint64_t all = gguf_tensor_size(a);
    if (view_size(t, info, &size) || off > all || size > all - off ||
        off % info->block_size)
        return gg_op_fail(t, err, GGUF_E_SHAPE,
                          "a view [%" PRId64 ", %" PRId64 ", %" PRId64
                          ", %" PRId64 "] at byte %" PRIu64
                          " does not lie in its %" PRIu64 " bytes",
                          t->ne[0], t->ne[1], t->ne[2], t->ne[3], off, all);
    set_root(t, off);
    return GGUF_OK;
}

struct gguf_tensor *gguf_op_view_4d(struct gguf_ctx *ctx,
                                    struct gguf_tensor *a, int64_t ne0,
                                    int64_t ne1, int64_t ne2, int64_t ne3,
                                    int64_t nb1, int64_t nb2, int64_t nb3,
                                    uint64_t off)
{
    struct gg_tensor_storage proto = GG_TENSOR_STORAGE_INIT(
        proto, .op = GGUF_OP_VIEW, .ne = { ne0, ne1, ne2, ne3 },
        .nb = { 0, nb1, nb2, nb3 }, .view_off = off);
    proto.src[0] = a;
    return gg_op_name_from_source(gg_op_build(ctx, &proto), a, "view", NULL);
}

struct gguf_tensor *gguf_op_view_3d(struct gguf_ctx *ctx,
                                    struct gguf_tensor *a, int64_t ne0,
                                    int64_t ne1, int64_t ne2, int64_t nb1,
                                    int64_t nb2, uint64_t off)
{
    return gguf_op_view_4d(ctx, a, ne0, ne1, ne2, 1, nb1, nb2, -1, off);
}

struct gguf_tensor *gguf_op_view_2d(struct gguf_ctx *ctx,
                                    struct gguf_tensor *a, int64_t ne0,
                                    int64_t ne1, int64_t nb1, uint64_t off)
{
    return gguf_op_view_4d(ctx, a, ne0, ne1, 1, 1, nb1, -1, -1, off);
}

struct gguf_tensor *gguf_op_view_1d(struct gguf_ctx *ctx,
                                    struct gguf_tensor *a, int64_t ne0,
                                    uint64_t off)
{
    return gguf_op_view_4d(ctx, a, ne0, 1, 1, 1, -1, -1, -1, off);
}

/* op_params: the four axes. */
enum gguf_status gg_graph_shape_permute(struct gguf_tensor *t,
                                        struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0];
    unsigned seen = 0;
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++)
        seen |= t->op_params[d] >= 0 && t->op_params[d] < GGUF_TENSOR_DIMS
                    ? 1u << t->op_params[d]
                    : 0;
    if (seen != 15)
        return gg_op_fail(t, err, GGUF_E_SHAPE,
                          "%" PRId32 ", %" PRId32 ", %" PRId32 ", %" PRId32
                          " are not 0 to 3 in some order",
                          t->op_params[0], t->op_params[1], t->op_params[2],
                          t->op_params[3]);
    if (t->op_params[0] != 0 && gguf_dtype_find(a->dtype)->block_len != 1)
        return gg_op_fail(t, err, GGUF_E_TYPE,
                          "the elements of a row of blocks cannot be spread");
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++) {
        t->ne[t->op_params[d]] = a->ne[d];
        t->nb[t->op_params[d]] = a->nb[d];
    }
    set_root(t, 0);
    return GGUF_OK;
}

/* Axes that do not fit an int32_t are refused by the rule. */
static int32_t checked_axis(unsigned i)
{
    return i < GGUF_TENSOR_DIMS ? (int32_t)i : -1;
}

struct gguf_tensor *gguf_op_permute(struct gguf_ctx *ctx,
                                    struct gguf_tensor *a, unsigned axis0,
                                    unsigned axis1, unsigned axis2,
                                    unsigned axis3)
{
    const int32_t axes[] = { checked_axis(axis0), checked_axis(axis1),
                             checked_axis(axis2), checked_axis(axis3) };
    return gg_op_name_from_source(
        gg_op_make(ctx, GGUF_OP_PERMUTE, axes, sizeof axes, SRC(a)), a,
        "permuted", NULL);
}

struct gguf_tensor *gguf_op_transpose(struct gguf_ctx *ctx,
                                      struct gguf_tensor *a)
{
    const int32_t axes[] = { 1, 0, 2, 3 };
    return gg_op_name_from_source(
        gg_op_make(ctx, GGUF_OP_TRANSPOSE, axes, sizeof axes, SRC(a)), a,
        "transposed", NULL);
}
