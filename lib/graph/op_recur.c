/* SPDX-License-Identifier: MIT */
/* op_recur.c - recurrences over tokens: builders and rules
 *
 * A node is one row of f32: the tokens' results, then the states after the
 * last. Builders give views of the two.
 */
#include "config.h"
#include "graph/shape_rule.h"

/* --- rules ---------------------------------------------------------------- */

static enum gguf_status all_floats(const struct gguf_tensor *t, unsigned n,
                                   struct gguf_error *err)
{
    for (unsigned i = 0; i < n; i++)
        if (!gg_graph_is_float(t->src[i]))
            FAIL_TYPE("source %u must be a float", i);
    return GGUF_OK;
}

/* A source of that shape, or a failure that says which one it is. */
static enum gguf_status expect_shape(const struct gguf_tensor *t, unsigned i,
                                     int64_t n0, int64_t n1, int64_t n2,
                                     int64_t n3, struct gguf_error *err)
{
    const int64_t *ne = t->src[i]->ne;
    if (ne[0] != n0 || ne[1] != n1 || ne[2] != n2 || ne[3] != n3)
        FAIL_SHAPE("source %u should be [%" PRId64 ", %" PRId64 ", %" PRId64
                   ", %" PRId64 "]",
                   i, n0, n1, n2, n3);
    return GGUF_OK;
}

/* The row that holds results of y's shape and states. */
static enum gguf_status row_of(struct gguf_tensor *t,
                               const struct gguf_tensor *y, int64_t s0,
                               int64_t s1, int64_t s2, int64_t s3,
                               struct gguf_error *err)
{
    struct gguf_tensor parts[2];
    GG_TRY(gg_tensor_set_shape(&parts[0], GGUF_DTYPE_F32, y->ne, err));
    GG_TRY(gg_tensor_set_shape(&parts[1], GGUF_DTYPE_F32,
                               (int64_t[]){ s0, s1, s2, s3 }, err));
    /* below 2^61 each */
    const int64_t n =
        gguf_tensor_n_elements(&parts[0]) + gguf_tensor_n_elements(&parts[1]);
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, (int64_t[]){ n, 1, 1, 1 },
                               err);
}

enum gguf_status gg_graph_shape_ssm_conv(struct gguf_tensor *t,
                                         struct gguf_error *err)
{
    const struct gguf_tensor *x = t->src[0], *k = t->src[1];
    GG_TRY(all_floats(t, 2, err));
    if (k->ne[0] < 1 || k->ne[1] != x->ne[1] || k->ne[2] != 1 ||
        k->ne[3] != 1 || x->ne[3] != 1)
        FAIL_SHAPE("the channels do not match");
    if (x->ne[0] < k->ne[0] - 1)
        FAIL_SHAPE("a kernel of %" PRId64 " needs %" PRId64
                   " elements before the first token",
                   k->ne[0], k->ne[0] - 1);
    int64_t ne[] = { x->ne[1], x->ne[0] - (k->ne[0] - 1), x->ne[2], 1 };
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, ne, err);
}

enum gguf_status gg_graph_shape_ssm_scan(struct gguf_tensor *t,
                                         struct gguf_error *err)
{
    const struct gguf_tensor *s = t->src[0], *x = t->src[1], *a = t->src[3];
    const struct gguf_tensor *b = t->src[4], *ids = t->src[6];
    const int64_t d = s->ne[0], heads = x->ne[1], tok = x->ne[2];
    const int64_t seqs = x->ne[3];
    GG_TRY(all_floats(t, 6, err));
    if (ids->dtype != GGUF_DTYPE_I32)
        FAIL_TYPE("numbers of states must be i32");
    GG_TRY(expect_shape(t, 0, d, x->ne[0], heads, s->ne[3], err));
    GG_TRY(expect_shape(t, 2, heads, tok, seqs, 1, err));
    GG_TRY(expect_shape(t, 3, a->ne[0] == 1 ? 1 : d, heads, 1, 1, err));
    GG_TRY(expect_shape(t, 4, d, b->ne[1], tok, seqs, err));
    GG_TRY(expect_shape(t, 5, d, b->ne[1], tok, seqs, err));
    GG_TRY(expect_shape(t, 6, seqs, 1, 1, 1, err));
    if (!b->ne[1] || heads % b->ne[1])
        FAIL_SHAPE("%" PRId64 " heads in %" PRId64 " groups", heads, b->ne[1]);
    return row_of(t, x, d, x->ne[0], heads, seqs, err);
}

/* Sources q, k, v, some more like them, and in the end the state. n_like of
 * them, from the first, have v's shape. */
static enum gguf_status linear_attn(struct gguf_tensor *t, unsigned n_src,
                                    const unsigned *like, unsigned n_like,
                                    struct gguf_error *err)
{
    const struct gguf_tensor *v = t->src[2];
    const int64_t s = v->ne[0];
    GG_TRY(all_floats(t, n_src, err));
    for (unsigned i = 0; i < n_like; i++)
        GG_TRY(expect_shape(t, like[i], s, v->ne[1], v->ne[2], v->ne[3], err));
    GG_TRY(expect_shape(t, n_src - 1, s, s, v->ne[1], v->ne[3], err));
    return row_of(t, v, s, s, v->ne[1], v->ne[3], err);
}

enum gguf_status gg_graph_shape_wkv6(struct gguf_tensor *t,
                                     struct gguf_error *err)
{
    const struct gguf_tensor *v = t->src[2];
    GG_TRY(expect_shape(t, 3, v->ne[0], v->ne[1], 1, 1, err));
    return linear_attn(t, 6, (const unsigned[]){ 0, 1, 4 }, 3, err);
}

enum gguf_status gg_graph_shape_wkv7(struct gguf_tensor *t,
                                     struct gguf_error *err)
{
    return linear_attn(t, 7, (const unsigned[]){ 0, 1, 3, 4, 5 }, 5, err);
}

enum gguf_status gg_graph_shape_gla(struct gguf_tensor *t,
                                    struct gguf_error *err)
{
    return linear_attn(t, 5, (const unsigned[]){ 0, 1, 3 }, 3, err);
}

enum gguf_status gg_graph_shape_delta(struct gguf_tensor *t,
                                      struct gguf_error *err)
{
    const struct gguf_tensor *q = t->src[0], *v = t->src[2], *g = t->src[3];
    const int64_t s = v->ne[0], heads = v->ne[1];
    if (!q->ne[1] || heads % q->ne[1])
        FAIL_SHAPE("%" PRId64 " heads over %" PRId64, heads, q->ne[1]);
    GG_TRY(expect_shape(t, 0, s, q->ne[1], v->ne[2], v->ne[3], err));
    GG_TRY(expect_shape(t, 1, s, q->ne[1], v->ne[2], v->ne[3], err));
    GG_TRY(expect_shape(t, 3, g->ne[0] == 1 ? 1 : s, heads, v->ne[2], v->ne[3],
                        err));
    GG_TRY(expect_shape(t, 4, 1, heads, v->ne[2], v->ne[3], err));
    return linear_attn(t, 6, NULL, 0, err);
}

/* --- builders ------------------------------------------------------------- */

/* ne elements of node t from number at on. */
static struct gguf_tensor *view_part(struct gguf_ctx *ctx,
                                     struct gguf_tensor *t,
                                     const int64_t ne[GGUF_TENSOR_DIMS],
                                     int64_t at)
{
    const int64_t nb1 = ne[0] * (int64_t)sizeof(float);
    return gguf_op_view_4d(ctx, t, ne[0], ne[1], ne[2], ne[3], nb1,
                           nb1 * ne[1], nb1 * ne[1] * ne[2],
                           (uint64_t)at * sizeof(float));
}

/* The results, as y is shaped, and the states, as s but for n of them. */
static struct gguf_tensor *split_result(struct gguf_ctx *ctx,
                                        struct gguf_tensor *t,
                                        const struct gguf_tensor *y,
                                        const struct gguf_tensor *s, int64_t n,
                                        struct gguf_tensor **new_state)
{
    if (new_state)
        *new_state = NULL;
    if (!t)
        return NULL;
    if (new_state)
        *new_state =
            view_part(ctx, t, (int64_t[]){ s->ne[0], s->ne[1], s->ne[2], n },
                      gguf_tensor_n_elements(y));
    return view_part(ctx, t, y->ne, 0);
}

struct gguf_tensor *
gguf_op_ssm_scan(struct gguf_ctx *ctx, struct gguf_tensor *state,
                 struct gguf_tensor *x, struct gguf_tensor *dt,
                 struct gguf_tensor *a, struct gguf_tensor *b,
                 struct gguf_tensor *c, struct gguf_tensor *ids,
                 struct gguf_tensor **new_state)
{
    struct gguf_tensor *t = gg_op_make(ctx, GGUF_OP_SSM_SCAN, NULL, 0,
                                       SRC(state, x, dt, a, b, c, ids));
    return split_result(ctx, t, x, state, x ? x->ne[3] : 0, new_state);
}

/* The parts of a linear attention. */
static struct gguf_tensor *build_attn(struct gguf_ctx *ctx,
                                      struct gguf_tensor *t,
                                      const struct gguf_tensor *v,
                                      const struct gguf_tensor *state,
                                      struct gguf_tensor **new_state)
{
    return split_result(ctx, t, v, state, v ? v->ne[3] : 0, new_state);
}

struct gguf_tensor *
gguf_op_rwkv_wkv6(struct gguf_ctx *ctx, struct gguf_tensor *r,
                  struct gguf_tensor *k, struct gguf_tensor *v,
                  struct gguf_tensor *u, struct gguf_tensor *w,
                  struct gguf_tensor *state, struct gguf_tensor **new_state)
{
    return build_attn(
        ctx,
        gg_op_make(ctx, GGUF_OP_RWKV_WKV6, NULL, 0, SRC(r, k, v, u, w, state)),
        v, state, new_state);
}

struct gguf_tensor *
gguf_op_rwkv_wkv7(struct gguf_ctx *ctx, struct gguf_tensor *r,
                  struct gguf_tensor *k, struct gguf_tensor *v,
                  struct gguf_tensor *w, struct gguf_tensor *a,
                  struct gguf_tensor *b, struct gguf_tensor *state,
                  struct gguf_tensor **new_state)
{
    return build_attn(ctx,
                      gg_op_make(ctx, GGUF_OP_RWKV_WKV7, NULL, 0,
                                 SRC(r, k, v, w, a, b, state)),
                      v, state, new_state);
}

struct gguf_tensor *
gguf_op_gated_linear_attn(struct gguf_ctx *ctx, struct gguf_tensor *q,
                          struct gguf_tensor *k, struct gguf_tensor *v,
                          struct gguf_tensor *g, struct gguf_tensor *state,
                          float scale, struct gguf_tensor **new_state)
{
    return build_attn(ctx,
                      gg_op_make(ctx, GGUF_OP_GATED_LINEAR_ATTN, &scale,
                                 sizeof scale, SRC(q, k, v, g, state)),
                      v, state, new_state);
}

struct gguf_tensor *
gguf_op_gated_delta(struct gguf_ctx *ctx, struct gguf_tensor *q,
                    struct gguf_tensor *k, struct gguf_tensor *v,
                    struct gguf_tensor *g, struct gguf_tensor *beta,
                    struct gguf_tensor *state, struct gguf_tensor **new_state)
{
    return build_attn(ctx,
                      gg_op_make(ctx, GGUF_OP_GATED_DELTA, NULL, 0,
                                 SRC(q, k, v, g, beta, state)),
                      v, state, new_state);
}
