/* SPDX-License-Identifier: MIT */
/* op_back.c - vector-Jacobian products: builders and rules */
#include "config.h"
#include "gguf/op.h"
#include "graph/shape_rule.h"

#include <inttypes.h>

/* --- functions of elements, norms ----------------------------------------- */

/* Result of op with the source of y, dy, and the parameters of y. */
static struct gguf_tensor *make_from_source(struct gguf_ctx *ctx,
                                            enum gguf_op op,
                                            const struct gguf_tensor *y,
                                            struct gguf_tensor *dy)
{
    struct gguf_unary_back_params p = { .op = y ? y->op : 0 };
    if (y)
        gg_op_params_get(y, p.param, sizeof p.param);
    return gg_op_make(ctx, op, &p, sizeof p,
                      SRC(y && y->n_src ? y->src[0] : NULL, dy));
}

struct gguf_tensor *gguf_op_unary_back(struct gguf_ctx *ctx,
                                       const struct gguf_tensor *y,
                                       struct gguf_tensor *dy)
{
    return make_from_source(ctx, GGUF_OP_UNARY_BACK, y, dy);
}

struct gguf_tensor *gguf_op_norm_back(struct gguf_ctx *ctx,
                                      const struct gguf_tensor *y,
                                      struct gguf_tensor *dy)
{
    return make_from_source(ctx, GGUF_OP_NORM_BACK, y, dy);
}

static enum gguf_status shape_of_both(struct gguf_tensor *t, bool is_known,
                                      struct gguf_error *err)
{
    const struct gguf_tensor *x = t->src[0], *dy = t->src[1];
    struct gguf_unary_back_params p;
    gg_op_params_get(t, &p, sizeof p);
    if (!is_known)
        return gg_op_fail(t, err, GGUF_E_INVALID, "not for results of %s",
                          gguf_op_name(p.op) ? gguf_op_name(p.op) : "?");
    if (!gg_graph_is_float(x) || !gg_graph_is_float(dy))
        FAIL_TYPE("the types must be floats");
    if (!gguf_tensor_same_shape(x, dy))
        FAIL_SHAPE("the shapes differ");
    return gg_tensor_set_shape(t, dy->dtype, dy->ne, err);
}

enum gguf_status gg_graph_shape_unary_back(struct gguf_tensor *t,
                                           struct gguf_error *err)
{
    struct gguf_unary_back_params p;
    gg_op_params_get(t, &p, sizeof p);
    return shape_of_both(t, p.op >= GGUF_OP_SCALE && p.op <= GGUF_OP_XIELU,
                         err);
}

enum gguf_status gg_graph_shape_norm_back(struct gguf_tensor *t,
                                          struct gguf_error *err)
{
    struct gguf_unary_back_params p;
    gg_op_params_get(t, &p, sizeof p);
    return shape_of_both(t,
                         p.op == GGUF_OP_NORM || p.op == GGUF_OP_RMS_NORM ||
                             p.op == GGUF_OP_L2_NORM,
                         err);
}

/* --- rotary embedding ----------------------------------------------------- */

struct gguf_tensor *gguf_op_rope_back(struct gguf_ctx *ctx,
                                      const struct gguf_tensor *y,
                                      struct gguf_tensor *dy)
{
    const bool is_rope = y && y->op == GGUF_OP_ROPE;
    struct gguf_rope rope = GGUF_ROPE_INIT;
    if (is_rope)
        gg_op_params_get(y, &rope, sizeof rope);
    return gg_op_make(
        ctx, GGUF_OP_ROPE_BACK, &rope, sizeof rope,
        SRC(dy, is_rope ? y->src[1] : NULL, is_rope ? y->src[2] : NULL));
}

/* --- repetitions, rows ---------------------------------------------------- */

struct gguf_tensor *gguf_op_repeat_back(struct gguf_ctx *ctx,
                                        struct gguf_tensor *a, int64_t ne0,
                                        int64_t ne1, int64_t ne2, int64_t ne3)
{
    struct gg_tensor_storage proto = GG_TENSOR_STORAGE_INIT(
        proto, .op = GGUF_OP_REPEAT_BACK, .ne = { ne0, ne1, ne2, ne3 });
    proto.src[0] = a;
    return gg_op_build(ctx, &proto);
}

/* The builder says the shape. */
enum gguf_status gg_graph_shape_repeat_back(struct gguf_tensor *t,
                                            struct gguf_error *err)
{
    int64_t ne[GGUF_TENSOR_DIMS];
    memcpy(ne, t->ne, sizeof ne);
    if (!gg_graph_is_float(t->src[0]))
        FAIL_TYPE("the type must be a float");
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++)
        if (ne[d] < 0)
            FAIL_SHAPE("dimension %d is %" PRId64, d, ne[d]);
    if (!gguf_tensor_can_repeat(t, t->src[0]))
        FAIL_SHAPE("it is no repetition of [%" PRId64 ", %" PRId64 ", %" PRId64
                   ", %" PRId64 "]",
                   ne[0], ne[1], ne[2], ne[3]);
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, ne, err);
}

struct gguf_tensor *gguf_op_get_rows_back(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a,
                                          struct gguf_tensor *ids,
                                          int64_t n_rows)
{
    struct gg_tensor_storage proto = GG_TENSOR_STORAGE_INIT(
        proto, .op = GGUF_OP_GET_ROWS_BACK, .ne = { 0, n_rows, 0, 0 });
    proto.src[0] = a;
    proto.src[1] = ids;
    return gg_op_build(ctx, &proto);
}

/* The builder says the number of rows. */
enum gguf_status gg_graph_shape_get_rows_back(struct gguf_tensor *t,
                                              struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0], *ids = t->src[1];
    if (!gg_graph_is_float(a))
        FAIL_TYPE("the type must be a float");
    if (ids->dtype != GGUF_DTYPE_I32)
        FAIL_TYPE("row numbers must be i32");
    if (ids->ne[0] != a->ne[1] || ids->ne[1] != a->ne[2] ||
        ids->ne[2] != a->ne[3] || ids->ne[3] != 1)
        FAIL_SHAPE("row numbers do not match the rows");
    if (t->ne[1] < 0)
        FAIL_SHAPE("%" PRId64 " rows", t->ne[1]);
    int64_t ne[] = { a->ne[0], t->ne[1], a->ne[2], a->ne[3] };
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, ne, err);
}

/* --- views ---------------------------------------------------------------- */

/* Write a byte distance in a as a sum of its strides, the largest first.
 * n[d] receives the number of steps along dimension d. Returns false if a rest
 * is left. */
static bool split_distance(const struct gguf_tensor *a, int64_t bytes,
                           int64_t n[GGUF_TENSOR_DIMS])
{
    bool done[GGUF_TENSOR_DIMS] = { false };
    for (int k = 0; k < GGUF_TENSOR_DIMS; k++) {
        int best = -1;
        for (int d = 0; d < GGUF_TENSOR_DIMS; d++)
            if (!done[d] && (best < 0 || a->nb[d] > a->nb[best] ||
                             (a->nb[d] == a->nb[best] && a->ne[d] > 1)))
                best = d;
        done[best] = true;
        n[best] = 0;
        if (a->ne[best] > 1 && a->nb[best] > 0) {
            n[best] = bytes / a->nb[best];
            bytes %= a->nb[best];
        }
    }
    return bytes == 0;
}

/* Find the elements of a, counted in memory order of a contiguous tensor of its
 * shape, that view y of a shows. Returns false if its strides are not those of
 * a. */
static bool find_elements(const struct gguf_tensor *y,
                          const struct gguf_tensor *a,
                          struct gguf_view_back_params *p)
{
    int64_t n[GGUF_TENSOR_DIMS], last[GGUF_TENSOR_DIMS], size = 1;
    int64_t step[GGUF_TENSOR_DIMS];
    for (int d = 0; d < GGUF_TENSOR_DIMS; size *= a->ne[d++])
        step[d] = size;
    if (!split_distance(a, (int64_t)(y->view_off - a->view_off), last))
        return false;
    p->off = 0;
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++)
        p->off += last[d] * step[d];
    for (int k = 0; k < GGUF_TENSOR_DIMS; k++) {
        p->step[k] = 0;
        if (y->ne[k] <= 1)
            continue;
        if (!split_distance(a, y->nb[k], n))
            return false;
        for (int d = 0; d < GGUF_TENSOR_DIMS; d++) {
            p->step[k] += n[d] * step[d];
            last[d] += n[d] * (y->ne[k] - 1);
        }
    }
    /* a view of a contiguous tensor may run over the end of a row */
    if (gguf_tensor_is_contiguous(a))
        return true;
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++)
        if (last[d] >= a->ne[d])
            return false;
    return true;
}

struct gguf_tensor *gguf_op_view_back(struct gguf_ctx *ctx,
                                      const struct gguf_tensor *y,
                                      struct gguf_tensor *dy)
{
    struct gguf_view_back_params p = { .off = -1 };
    struct gg_tensor_storage proto =
        GG_TENSOR_STORAGE_INIT(proto, .op = GGUF_OP_VIEW_BACK);
    const bool is_view = y && dy && y->op == GGUF_OP_VIEW;
    if (is_view) {
        const struct gguf_tensor *a = y->src[0];
        memcpy(proto.t.ne, a->ne, sizeof a->ne);
        if (!gguf_tensor_same_shape(y, dy) ||
            (!gguf_tensor_is_empty(y) && !find_elements(y, a, &p)))
            p.off = -1;
        else if (gguf_tensor_is_empty(y))
            p.off = 0;
    }
    memcpy(proto.op_params, &p, sizeof p);
    proto.src[0] = is_view || !dy ? dy : NULL;
    return gg_op_build(ctx, &proto);
}

/* The builder sets the shape. Offset -1: the view does not fit. */
enum gguf_status gg_graph_shape_view_back(struct gguf_tensor *t,
                                          struct gguf_error *err)
{
    struct gguf_view_back_params p;
    int64_t ne[GGUF_TENSOR_DIMS];
    memcpy(ne, t->ne, sizeof ne);
    gg_op_params_get(t, &p, sizeof p);
    if (!gg_graph_is_float(t->src[0]))
        FAIL_TYPE("the type must be a float");
    if (p.off < 0)
        FAIL_SHAPE("it does not match the view, or the view does not match "
                   "its source");
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, ne, err);
}
