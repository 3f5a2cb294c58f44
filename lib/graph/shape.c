/* SPDX-License-Identifier: MIT */
/* shape.c - the rules of the operations' shapes, one for each kind
 *
 * A rule looks at sources and parameters and sets the result's type and shape.
 * Rules of views are in op_view.c.
 */
#include "config.h"
#include "graph/shape_rule.h"

static enum gguf_status shape_like(struct gguf_tensor *t,
                                   const struct gguf_tensor *s, uint32_t dtype,
                                   struct gguf_error *err)
{
    return gg_tensor_set_shape(t, dtype, s->ne, err);
}

enum gguf_status gg_graph_shape_none(struct gguf_tensor *t,
                                     struct gguf_error *err)
{
    return gg_op_fail(t, err, GGUF_E_INVALID, "no operation");
}

/* The builder says the type. */
enum gguf_status gg_graph_shape_dup(struct gguf_tensor *t,
                                    struct gguf_error *err)
{
    if (gguf_dtype_row_size(t->dtype, (uint64_t)t->src[0]->ne[0],
                            &(uint64_t){ 0 }, NULL) != GGUF_OK) {
        const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
        FAIL_SHAPE("rows do not fit into type %s", info ? info->name : "?");
    }
    return shape_like(t, t->src[0], t->dtype, err);
}

/* The result is src[i], as it is. */
static void result_is(struct gguf_tensor *t, int i)
{
    struct gguf_tensor *d = t->src[i];
    t->dtype = d->dtype;
    memcpy(t->ne, d->ne, sizeof t->ne);
    memcpy(t->nb, d->nb, sizeof t->nb);
    t->view_src = d->view_src ? d->view_src : d;
    t->view_off = d->view_off;
}

enum gguf_status gg_graph_shape_cpy(struct gguf_tensor *t,
                                    struct gguf_error *err)
{
    int64_t a = gguf_tensor_n_elements(t->src[0]);
    int64_t b = gguf_tensor_n_elements(t->src[1]);
    if (a != b)
        FAIL_SHAPE("%" PRId64 " and %" PRId64 " elements", a, b);
    result_is(t, 1);
    return GGUF_OK;
}

enum gguf_status gg_graph_shape_get_rows(struct gguf_tensor *t,
                                         struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0], *ids = t->src[1];
    if (ids->dtype != GGUF_DTYPE_I32)
        FAIL_TYPE("row numbers must be i32");
    if (ids->ne[1] != a->ne[2] || ids->ne[2] != a->ne[3] || ids->ne[3] != 1)
        FAIL_SHAPE("row numbers do not match the upper dimensions");
    int64_t ne[] = { a->ne[0], ids->ne[0], a->ne[2], a->ne[3] };
    uint32_t dtype =
        a->dtype == GGUF_DTYPE_I32 ? GGUF_DTYPE_I32 : GGUF_DTYPE_F32;
    return gg_tensor_set_shape(t, dtype, ne, err);
}

enum gguf_status gg_graph_shape_set_rows(struct gguf_tensor *t,
                                         struct gguf_error *err)
{
    const struct gguf_tensor *d = t->src[0], *s = t->src[1], *ids = t->src[2];
    if (ids->dtype != GGUF_DTYPE_I32 && ids->dtype != GGUF_DTYPE_I64)
        FAIL_TYPE("row numbers must be i32 or i64");
    if (s->dtype != GGUF_DTYPE_F32)
        FAIL_TYPE("the rows must be f32");
    if (s->ne[0] != d->ne[0] || s->ne[2] != d->ne[2] || s->ne[3] != d->ne[3])
        FAIL_SHAPE("the rows do not match the destination");
    if (ids->ne[0] != s->ne[1] || ids->ne[3] != 1 || !ids->ne[1] ||
        !ids->ne[2] || s->ne[2] % ids->ne[1] || s->ne[3] % ids->ne[2])
        FAIL_SHAPE("the row numbers do not match the rows");
    result_is(t, 0);
    return GGUF_OK;
}

enum gguf_status gg_graph_shape_binary(struct gguf_tensor *t,
                                       struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    if (!gg_graph_is_float(a) || !gg_graph_is_float(b))
        FAIL_TYPE("the types must be floats");
    if (!gguf_tensor_can_repeat(b, a))
        FAIL_SHAPE("the second does not broadcast to the first");
    return shape_like(t, a, a->dtype, err);
}

enum gguf_status gg_graph_shape_unary(struct gguf_tensor *t,
                                      struct gguf_error *err)
{
    if (!gg_graph_is_float(t->src[0]))
        FAIL_TYPE("the type must be a float");
    return shape_like(t, t->src[0], t->src[0]->dtype, err);
}

enum gguf_status gg_graph_shape_gated(struct gguf_tensor *t,
                                      struct gguf_error *err)
{
    if (!gg_graph_is_float(t->src[0]) || !gg_graph_is_float(t->src[1]))
        FAIL_TYPE("the types must be floats");
    if (!gguf_tensor_same_shape(t->src[0], t->src[1]))
        FAIL_SHAPE("the shapes differ");
    return shape_like(t, t->src[0], t->src[0]->dtype, err);
}

/* op_params: the dimension. */
enum gguf_status gg_graph_shape_concat(struct gguf_tensor *t,
                                       struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    int64_t ne[GGUF_TENSOR_DIMS];
    int32_t dim = t->op_params[0];
    if (dim < 0 || dim >= GGUF_TENSOR_DIMS)
        FAIL_SHAPE("dimension %" PRId32, dim);
    if (a->dtype != b->dtype)
        FAIL_TYPE("the types differ");
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++) {
        if (d != dim && a->ne[d] != b->ne[d])
            FAIL_SHAPE("dimension %d differs", d);
        ne[d] = a->ne[d];
    }
    if (b->ne[dim] > INT64_MAX - a->ne[dim])
        FAIL_SHAPE("dimension %" PRId32 " overflows", dim);
    ne[dim] += b->ne[dim];
    return gg_tensor_set_shape(t, a->dtype, ne, err);
}

/* The builder says the shape. */
enum gguf_status gg_graph_shape_repeat(struct gguf_tensor *t,
                                       struct gguf_error *err)
{
    int64_t ne[GGUF_TENSOR_DIMS];
    memcpy(ne, t->ne, sizeof ne);
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++)
        if (ne[d] < 0)
            FAIL_SHAPE("dimension %d is %" PRId64, d, ne[d]);
    if (!gguf_tensor_can_repeat(t->src[0], t))
        FAIL_SHAPE("it does not repeat to [%" PRId64 ", %" PRId64 ", %" PRId64
                   ", %" PRId64 "]",
                   ne[0], ne[1], ne[2], ne[3]);
    return gg_tensor_set_shape(t, t->src[0]->dtype, ne, err);
}

static bool is_single(const struct gguf_tensor *t)
{
    return gguf_dtype_find(t->dtype)->block_len == 1;
}

/* op_params: elements to add in each dimension. */
enum gguf_status gg_graph_shape_pad(struct gguf_tensor *t,
                                    struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0];
    int64_t ne[GGUF_TENSOR_DIMS];
    if (!is_single(a))
        FAIL_TYPE("blocks cannot be padded");
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++) {
        if (t->op_params[d] < 0 || a->ne[d] > INT64_MAX - t->op_params[d])
            FAIL_SHAPE("%" PRId32 " more in dimension %d", t->op_params[d], d);
        ne[d] = a->ne[d] + t->op_params[d];
    }
    return gg_tensor_set_shape(t, a->dtype, ne, err);
}

enum gguf_status gg_graph_shape_roll(struct gguf_tensor *t,
                                     struct gguf_error *err)
{
    if (!is_single(t->src[0]))
        FAIL_TYPE("blocks cannot be rolled");
    return shape_like(t, t->src[0], t->src[0]->dtype, err);
}

enum gguf_status gg_graph_shape_sum(struct gguf_tensor *t,
                                    struct gguf_error *err)
{
    if (!gg_graph_is_float(t->src[0]))
        FAIL_TYPE("the type must be a float");
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, (int64_t[]){ 1, 1, 1, 1 },
                               err);
}

enum gguf_status gg_graph_shape_sum_rows(struct gguf_tensor *t,
                                         struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0];
    if (!gg_graph_is_float(a))
        FAIL_TYPE("the type must be a float");
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32,
                               (int64_t[]){ 1, a->ne[1], a->ne[2], a->ne[3] },
                               err);
}

enum gguf_status gg_graph_shape_argmax(struct gguf_tensor *t,
                                       struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0];
    if (!gg_graph_is_float(a))
        FAIL_TYPE("the type must be a float");
    if (!a->ne[0])
        FAIL_SHAPE("rows of nothing have no largest element");
    return gg_tensor_set_shape(t, GGUF_DTYPE_I32,
                               (int64_t[]){ a->ne[1], a->ne[2], a->ne[3], 1 },
                               err);
}

enum gguf_status gg_graph_shape_argsort(struct gguf_tensor *t,
                                        struct gguf_error *err)
{
    if (!gg_graph_is_float(t->src[0]))
        FAIL_TYPE("the type must be a float");
    if (t->src[0]->ne[0] > INT32_MAX)
        FAIL_SHAPE("numbers of a row must fit 32 bits");
    return shape_like(t, t->src[0], GGUF_DTYPE_I32, err);
}

enum gguf_status gg_graph_shape_group_norm(struct gguf_tensor *t,
                                           struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0];
    struct gguf_group_norm_params p;
    gg_op_params_get(t, &p, sizeof p);
    if (p.n_groups < 1 || a->ne[2] % p.n_groups)
        FAIL_SHAPE("%" PRId64 " channels in %" PRId32 " groups", a->ne[2],
                   p.n_groups);
    return gg_graph_shape_unary(t, err);
}

/* op_params: n_past. */
enum gguf_status gg_graph_shape_diag_mask(struct gguf_tensor *t,
                                          struct gguf_error *err)
{
    if (t->op_params[0] < 0)
        return gg_op_fail(t, err, GGUF_E_INVALID, "%" PRId32 " are past",
                          t->op_params[0]);
    return gg_graph_shape_unary(t, err);
}

/* A mask for rows of n over m positions, h heads and s sequences. */
static enum gguf_status mask_fits(const struct gguf_tensor *t,
                                  const struct gguf_tensor *mask, int64_t n,
                                  int64_t m, int64_t h, int64_t s,
                                  struct gguf_error *err)
{
    if (!mask)
        return GGUF_OK;
    if (mask->dtype != GGUF_DTYPE_F32 && mask->dtype != GGUF_DTYPE_F16)
        FAIL_TYPE("the mask must be f32 or f16");
    if (!mask->ne[2] || !mask->ne[3] || mask->ne[0] != n || mask->ne[1] < m ||
        h % mask->ne[2] || s % mask->ne[3])
        FAIL_SHAPE("the mask must be [%" PRId64 ", >= %" PRId64
                   "] and broadcast",
                   n, m);
    return GGUF_OK;
}

/* Sinks of h heads. */
static enum gguf_status sinks_fit(const struct gguf_tensor *t,
                                  const struct gguf_tensor *sinks, int64_t h,
                                  struct gguf_error *err)
{
    if (!sinks)
        return GGUF_OK;
    if (sinks->dtype != GGUF_DTYPE_F32)
        FAIL_TYPE("sinks must be f32");
    if (sinks->ne[0] != h || gguf_tensor_n_rows(sinks) != 1)
        FAIL_SHAPE("%" PRId64 " sinks for %" PRId64 " heads", sinks->ne[0], h);
    return GGUF_OK;
}

enum gguf_status gg_graph_shape_soft_max(struct gguf_tensor *t,
                                         struct gguf_error *err)
{
    const struct gguf_tensor *x = t->src[0];
    struct gguf_soft_max_params p;
    gg_op_params_get(t, &p, sizeof p);
    if (!gg_graph_is_float(x))
        FAIL_TYPE("the type must be a float");
    if (p.max_bias > 0 && !t->src[1])
        FAIL_SHAPE("a slope needs a mask");
    GG_TRY(
        mask_fits(t, t->src[1], x->ne[0], x->ne[1], x->ne[2], x->ne[3], err));
    GG_TRY(sinks_fit(t, t->src[2], x->ne[2], err));
    return shape_like(t, x, x->dtype, err);
}

/* Check the sections, and that a head has room for the pairs. */
static enum gguf_status rope_kind_fits(const struct gguf_tensor *t,
                                       const struct gguf_rope *r,
                                       struct gguf_error *err)
{
    int64_t sum = 0, room = t->src[0]->ne[0];
    if (r->kind < GGUF_ROPE_NORM || r->kind > GGUF_ROPE_VISION)
        return gg_op_fail(t, err, GGUF_E_INVALID,
                          "pairing %" PRId32 " is unknown", r->kind);
    if (r->kind == GGUF_ROPE_VISION)
        room /= 2;
    if (r->n_dims < 0 || r->n_dims % 2 || r->n_dims > room)
        FAIL_SHAPE("cannot rotate %" PRId32 " elements of a head", r->n_dims);
    if (r->kind < GGUF_ROPE_MROPE)
        return GGUF_OK;
    for (int i = 0; i < 4; i++)
        sum = r->sections[i] < 0 ? INT64_MIN / 2 : sum + r->sections[i];
    if (sum < 1 || sum > t->src[0]->ne[0])
        FAIL_SHAPE("sections of %" PRId32 ", %" PRId32 ", %" PRId32
                   ", %" PRId32 " pairs",
                   r->sections[0], r->sections[1], r->sections[2],
                   r->sections[3]);
    return GGUF_OK;
}

enum gguf_status gg_graph_shape_rope(struct gguf_tensor *t,
                                     struct gguf_error *err)
{
    const struct gguf_tensor *x = t->src[0], *pos = t->src[1];
    const struct gguf_tensor *ff = t->src[2];
    struct gguf_rope r;
    gg_op_params_get(t, &r, sizeof r);
    if (!gg_graph_is_float(x))
        FAIL_TYPE("the type must be a float");
    if (pos->dtype != GGUF_DTYPE_I32)
        FAIL_TYPE("positions must be i32");
    if (ff && ff->dtype != GGUF_DTYPE_F32)
        FAIL_TYPE("frequency factors must be f32");
    GG_TRY(rope_kind_fits(t, &r, err));
    const int64_t n_pos =
        r.kind < GGUF_ROPE_MROPE ? 1 : 4; /* positions of a token */
    if (pos->ne[0] % n_pos || pos->ne[0] / n_pos != x->ne[2] ||
        gguf_tensor_n_rows(pos) != 1)
        FAIL_SHAPE("%" PRId64 " positions for %" PRId64 " tokens", pos->ne[0],
                   x->ne[2]);
    const int64_t pairs = r.kind == GGUF_ROPE_VISION ? r.n_dims : r.n_dims / 2;
    if (ff && (ff->ne[0] < pairs || !gguf_tensor_is_contiguous(ff)))
        FAIL_SHAPE("%" PRId64 " frequency factors are needed", pairs);
    if (!(r.freq_base > 0) || (r.ext_factor != 0 && r.n_ctx_orig <= 0))
        return gg_op_fail(t, err, GGUF_E_INVALID,
                          "frequency base %g, original context %" PRId32,
                          (double)r.freq_base, r.n_ctx_orig);
    return shape_like(t, x, x->dtype, err);
}

/* Slices of a and b meet, as the header says of matmul. */
static bool slices_meet(const struct gguf_tensor *a,
                        const struct gguf_tensor *b)
{
    return a->ne[2] && a->ne[3] && b->ne[2] % a->ne[2] == 0 &&
           b->ne[3] % a->ne[3] == 0;
}

enum gguf_status gg_graph_shape_matmul(struct gguf_tensor *t,
                                       struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    if (!gg_graph_is_float(b))
        FAIL_TYPE("the second must be a float");
    if (a->ne[0] != b->ne[0])
        FAIL_SHAPE("rows of %" PRId64 " and %" PRId64 " elements", a->ne[0],
                   b->ne[0]);
    if (!slices_meet(a, b))
        FAIL_SHAPE("the upper dimensions do not broadcast");
    int64_t ne[] = { a->ne[1], b->ne[1], b->ne[2], b->ne[3] };
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, ne, err);
}

enum gguf_status gg_graph_shape_out_prod(struct gguf_tensor *t,
                                         struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    if (!gg_graph_is_float(a) || !gg_graph_is_float(b))
        FAIL_TYPE("the types must be floats");
    if (a->ne[1] != b->ne[1])
        FAIL_SHAPE("%" PRId64 " and %" PRId64 " vectors", a->ne[1], b->ne[1]);
    if (!slices_meet(a, b))
        FAIL_SHAPE("the upper dimensions do not broadcast");
    int64_t ne[] = { a->ne[0], b->ne[0], b->ne[2], b->ne[3] };
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, ne, err);
}

enum gguf_status gg_graph_shape_matmul_id(struct gguf_tensor *t,
                                          struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1], *ids = t->src[2];
    if (!gg_graph_is_float(b))
        FAIL_TYPE("the second must be a float");
    if (ids->dtype != GGUF_DTYPE_I32)
        FAIL_TYPE("matrix numbers must be i32");
    if (a->ne[0] != b->ne[0])
        FAIL_SHAPE("rows of %" PRId64 " and %" PRId64 " elements", a->ne[0],
                   b->ne[0]);
    if (a->ne[3] != 1 || b->ne[3] != 1 || ids->ne[2] != 1 || ids->ne[3] != 1 ||
        ids->ne[1] != b->ne[2] || !b->ne[1] || ids->ne[0] % b->ne[1])
        FAIL_SHAPE("the matrix numbers do not match");
    int64_t ne[] = { a->ne[1], ids->ne[0], ids->ne[1], 1 };
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, ne, err);
}

enum gguf_status gg_graph_shape_attention(struct gguf_tensor *t,
                                          struct gguf_error *err)
{
    const struct gguf_tensor *q = t->src[0], *k = t->src[1], *v = t->src[2];
    struct gguf_attn_params p;
    gg_op_params_get(t, &p, sizeof p);
    if (q->dtype != GGUF_DTYPE_F32)
        FAIL_TYPE("q must be f32");
    if (q->ne[0] != k->ne[0])
        FAIL_SHAPE("heads of %" PRId64 " and %" PRId64 " elements", q->ne[0],
                   k->ne[0]);
    if (k->ne[1] != v->ne[1] || k->ne[2] != v->ne[2] || k->ne[3] != v->ne[3])
        FAIL_SHAPE("k and v differ");
    if (!k->ne[2] || q->ne[2] % k->ne[2])
        FAIL_SHAPE("%" PRId64 " heads over %" PRId64, q->ne[2], k->ne[2]);
    if (q->ne[3] != k->ne[3])
        FAIL_SHAPE("%" PRId64 " and %" PRId64 " sequences", q->ne[3],
                   k->ne[3]);
    if (p.max_bias > 0 && !t->src[3])
        FAIL_SHAPE("a slope needs a mask");
    GG_TRY(
        mask_fits(t, t->src[3], k->ne[1], q->ne[1], q->ne[2], q->ne[3], err));
    if (t->src[3] && t->src[3]->ne[2] != 1 && t->src[3]->ne[2] != q->ne[2] &&
        t->src[3]->ne[2] != k->ne[2])
        FAIL_SHAPE("masks of %" PRId64 " heads for %" PRId64, t->src[3]->ne[2],
                   q->ne[2]);
    if (t->src[3] && t->src[3]->ne[3] != 1 && t->src[3]->ne[3] != q->ne[3])
        FAIL_SHAPE("masks of %" PRId64 " sequences for %" PRId64,
                   t->src[3]->ne[3], q->ne[3]);
    GG_TRY(sinks_fit(t, t->src[4], q->ne[2], err));
    int64_t ne[] = { v->ne[0], q->ne[2], q->ne[1], q->ne[3] };
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, ne, err);
}
