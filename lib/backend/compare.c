/* SPDX-License-Identifier: MIT */
/* compare.c - two backends node by node, and how far two results differ */
#include "config.h"
#include "backend/backend_int.h"
#include "base/params.h"
#include "gguf/compare.h"
#include "graph/cgraph.h"
#include "kern/codec.h"

#include <math.h>

/* --- two results ---------------------------------------------------------- */

/* Rows of a tensor as doubles. */
struct rows {
    const struct gguf_tensor *t;
    gg_kern_decode_fn *decode; /* NULL: integers */
    void *bytes;               /* encoded elements of a row */
    float *floats;
    size_t size; /* bytes of a row */
};

static double integer_at(const struct rows *r, size_t i)
{
    switch (r->size / (size_t)r->t->ne[0]) {
    case 1: return ((const int8_t *)r->bytes)[i];
    case 2: return ((const int16_t *)r->bytes)[i];
    case 4: return ((const int32_t *)r->bytes)[i];
    default: return (double)((const int64_t *)r->bytes)[i];
    }
}

static double value_at(const struct rows *r, size_t i)
{
    return r->decode ? (double)r->floats[i] : integer_at(r, i);
}

static bool is_integer(uint32_t dtype)
{
    return dtype == GGUF_DTYPE_I8 || dtype == GGUF_DTYPE_I16 ||
           dtype == GGUF_DTYPE_I32 || dtype == GGUF_DTYPE_I64;
}

static enum gguf_status rows_init(struct rows *r, const struct gguf_tensor *t,
                                  const struct gg_codec_kern *codec,
                                  const struct gguf_allocator *a,
                                  struct gguf_error *err)
{
    const int d = gg_dtype_index(t->dtype);
    char name[160];
    *r = (struct rows){ .t = t };
    r->decode = is_integer(t->dtype) || d < 0 ? NULL : codec[d].decode;
    if ((!r->decode && !is_integer(t->dtype)) ||
        !gguf_tensor_has_contiguous_rows(t))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "cannot compare %s",
                            gguf_tensor_format(t, name, sizeof name));
    uint64_t size;
    GG_TRY(gguf_dtype_row_size(t->dtype, (uint64_t)t->ne[0], &size, err));
    r->size = (size_t)size;
    r->bytes = gg_mem_alloc(a, r->size);
    r->floats = gg_mem_alloc_zero(a, (uint64_t)t->ne[0], sizeof *r->floats);
    return r->bytes && r->floats ? GGUF_OK : gg_error_set_nomem(err, r->size);
}

static void rows_fini(struct rows *r, const struct gguf_allocator *a)
{
    gg_mem_free(a, r->bytes);
    gg_mem_free(a, r->floats);
}

static enum gguf_status rows_get(struct rows *r, int64_t row,
                                 struct gguf_error *err)
{
    const struct gguf_tensor *t = r->t;
    const int64_t i1 = row % t->ne[1], i2 = row / t->ne[1] % t->ne[2];
    const int64_t i3 = row / t->ne[1] / t->ne[2];
    GG_TRY(gguf_tensor_get(
        t, r->bytes, (uint64_t)(i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3]),
        r->size, err));
    if (r->decode)
        r->decode(r->bytes, r->floats, (size_t)t->ne[0]);
    return GGUF_OK;
}

struct sums {
    double diff, size;
};

static void add_row(const struct rows *a, const struct rows *b,
                    struct gguf_difference *d, struct sums *s)
{
    for (size_t i = 0; i < (size_t)a->t->ne[0]; i++) {
        const double x = value_at(a, i), y = value_at(b, i);
        if (isfinite(x))
            s->size += x * x;
        if (x == y || (isnan(x) && isnan(y)))
            continue;
        const double diff =
            isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
        d->n_differ++;
        d->max_abs = fmax(d->max_abs, diff);
        s->diff += diff * diff;
    }
}

static enum gguf_status sum_differences(const struct gguf_tensor *a,
                                        const struct gguf_tensor *b,
                                        const struct gguf_allocator *allocator,
                                        struct gguf_difference *d,
                                        struct gguf_error *err)
{
    struct gg_codec_kern codec[GG_N_DTYPES];
    struct sums s = { 0, 0 };
    gg_codec_kern_init(codec, 0);
    gg_codec_kern_set_native_order(codec);
    struct rows ra, rb = { .t = NULL };
    enum gguf_status st = rows_init(&ra, a, codec, allocator, err);
    if (st == GGUF_OK)
        st = rows_init(&rb, b, codec, allocator, err);
    for (int64_t i = 0; st == GGUF_OK && i < gguf_tensor_n_rows(a); i++) {
        st = rows_get(&ra, i, err);
        if (st == GGUF_OK)
            st = rows_get(&rb, i, err);
        if (st == GGUF_OK)
            add_row(&ra, &rb, d, &s);
    }
    rows_fini(&ra, allocator);
    rows_fini(&rb, allocator);
    if (d->n_differ) /* 0 / 0 where a is nothing but NaN */
        d->error = s.size > 0 ? sqrt(s.diff / s.size) : INFINITY;
    return st;
}

enum gguf_status gguf_tensor_compare(const struct gguf_tensor *a,
                                     const struct gguf_tensor *b,
                                     const struct gguf_allocator *allocator,
                                     struct gguf_difference *out,
                                     struct gguf_error *err)
{
    struct gguf_difference d = GGUF_DIFFERENCE_INIT;
    d.n = (uint64_t)gguf_tensor_n_elements(a);
    GG_TRY(gg_params_give(out, &d, sizeof d, "gguf_difference", err));
    if (!gguf_tensor_same_shape(a, b)) {
        char x[160], y[160];
        return gg_error_set(err, GGUF_E_SHAPE, GGUF_NO_OFFSET,
                            "cannot compare %s with %s",
                            gguf_tensor_format(a, x, sizeof x),
                            gguf_tensor_format(b, y, sizeof y));
    }
    if (gguf_tensor_is_empty(a))
        return GGUF_OK;
    enum gguf_status st = sum_differences(a, b, allocator, &d, err);
    (void)gg_params_give(out, &d, sizeof d, "gguf_difference", NULL);
    return st;
}

/* --- two backends --------------------------------------------------------- */

/* One side: a backend and its clone. */
struct side {
    struct gguf_backend *backend;
    struct gguf_clone *clone;
};

static enum gguf_status compute_node(const struct side *s, size_t i,
                                     struct gguf_error *err)
{
    struct gguf_graph *g = gguf_clone_graph(s->clone);
    struct gguf_graph one = {
        .ctx = g->ctx, .capacity = 1, .n_nodes = 1, .nodes = g->nodes + i
    };
    return gguf_backend_compute(s->backend, &one, err);
}

static enum gguf_status compare_node(const struct side *a,
                                     const struct side *b, size_t i,
                                     const struct gguf_tensor *node,
                                     const struct gguf_compare_params *p,
                                     struct gguf_compare_counts *n,
                                     struct gguf_error *err)
{
    struct gguf_tensor *x = gguf_clone_graph(a->clone)->nodes[i];
    struct gguf_tensor *y = gguf_clone_graph(b->clone)->nodes[i];
    const bool by_a = gguf_backend_supports_op(a->backend, x);
    const bool by_b = gguf_backend_supports_op(b->backend, y);
    char name[160];
    if (!by_a && !by_b)
        return gg_op_fail(
            node, err, GGUF_E_OP, "neither %s nor %s can compute node %zu, %s",
            gguf_backend_name(a->backend), gguf_backend_name(b->backend), i,
            gguf_tensor_format(node, name, sizeof name));
    if (by_a)
        GG_TRY(compute_node(a, i, err));
    if (by_b)
        GG_TRY(compute_node(b, i, err));
    if (by_a && by_b) {
        n->n_both++;
        if (p->node.fn && p->node.fn(p->node.user, i, node, x, y))
            return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                                "stopped by the callback at node %zu", i);
    } else {
        n->n_only_a += by_a;
        n->n_only_b += by_b;
    }
    if (!by_a)
        return gguf_tensor_copy(y, x, err);
    return by_b && p->chained ? GGUF_OK : gguf_tensor_copy(x, y, err);
}

static enum gguf_status compare_all(const struct side *a, const struct side *b,
                                    const struct gguf_graph *g,
                                    const struct gguf_compare_params *p,
                                    struct gguf_compare_counts *n,
                                    struct gguf_error *err)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct gguf_tensor *t = g->nodes[i];
        if (gguf_op_is_view(t->op))
            continue;
        GG_TRY(compare_node(a, b, i, t, p, n, err));
    }
    return GGUF_OK;
}

enum gguf_status gguf_compare_backends(
    struct gguf_backend *a, struct gguf_backend *b,
    const struct gguf_graph *graph, const struct gguf_compare_params *params,
    struct gguf_compare_counts *counts, struct gguf_error *err)
{
    struct gguf_compare_params own = GGUF_COMPARE_PARAMS_INIT;
    struct gguf_clone_params p = GGUF_CLONE_PARAMS_INIT;
    struct gguf_compare_counts n = GGUF_COMPARE_COUNTS_INIT;
    struct side x = { a, NULL }, y = { b, NULL };
    GG_TRY(
        gg_params_take(&own, sizeof own, params, "gguf_compare_params", err));
    if (counts)
        GG_TRY(
            gg_params_give(counts, &n, sizeof n, "gguf_compare_counts", err));
    p.allocator = own.allocator;
    p.reuse = true;
    enum gguf_status st = gguf_clone_create(&x.clone, a, graph, &p, err);
    if (st == GGUF_OK)
        st = gguf_clone_create(&y.clone, b, graph, &p, err);
    if (st == GGUF_OK)
        st = compare_all(&x, &y, graph, &own, &n, err);
    gguf_clone_destroy(x.clone);
    gguf_clone_destroy(y.clone);
    if (counts)
        (void)gg_params_give(counts, &n, sizeof n, "gguf_compare_counts",
                             NULL);
    return st;
}
