/* SPDX-License-Identifier: MIT */
/* check-gradient.c - gradients of each operation against central differences
 *
 * Each case is a small graph of F32 leaves and one operation, or a few. The
 * number whose gradient is computed is the sum of seed times result. It is
 * differentiated numerically by an evaluator in double precision that knows the
 * operations' definitions (double_eval.h). */
#include "config.h"
#include "tests/cpu/ops.h"
#include "tests/graph/double_eval.h"
#include "gguf/gradient.h"
#include "graph/gradient_int.h"

#include <stdarg.h>
#include <stdlib.h>

enum { MOST = 6 };

static bool seen[GGUF_N_OPS]; /* operations with a case */

/* --- comparison ----------------------------------------------------------- */

static double weighted_sum(struct gguf_graph *forward, const tensor *y,
                           const tensor *seed)
{
    double sum = 0;
    if (!deval_run(forward))
        return NAN;
    for (int64_t i = 0; i < gguf_tensor_n_elements(y); i++)
        sum += linear(seed, i) * *deval_at(y, i);
    return sum;
}

/* Derivative of the sum by element i of x. */
static double difference_at(struct gguf_graph *forward, const tensor *y,
                            const tensor *seed, const tensor *x, int64_t i)
{
    const double h = 1e-5;
    double *at = deval_at(x, i), old = *at, up, down;
    *at = old + h;
    up = weighted_sum(forward, y, seed);
    *at = old - h;
    down = weighted_sum(forward, y, seed);
    *at = old;
    return (up - down) / (2 * h);
}

/* Compare a gradient, at all elements or at some of many. Errors count relative
 * to the largest element. */
static bool compare_gradient(struct gguf_graph *forward, const tensor *y,
                             const tensor *seed, const tensor *x,
                             const tensor *dx)
{
    const int64_t n = gguf_tensor_n_elements(x), some = 150;
    double worst = 0, most = 1e-3;
    for (int64_t k = 0; k < GG_MIN(n, some); k++) {
        const int64_t i = n <= some ? k : (int64_t)rnd_below((uint64_t)n);
        const double d = difference_at(forward, y, seed, x, i);
        const double e = fabs(d - linear(dx, i));
        most = fmax(most, fabs(d));
        worst = e <= worst ? worst : e; /* NaN counts */
    }
    if (!(worst <= 2e-5 * most))
        printf("# gradient of %s: off by %g, elements up to %g\n", x->name,
               worst, most);
    return worst <= 2e-5 * most;
}

/* Compute with 1 and 3 threads. */
static bool compute_graph(struct gguf_graph *g, tensor *const *dx, size_t n)
{
    struct gguf_error err;
    bool same = true;
    float *first[MOST] = { NULL };
    for (int k = 0; k < 3; k += 2) {
        if (gguf_backend_compute(ops_backends[k], g, &err) != GGUF_OK) {
            printf("# %s\n", err.message);
            same = false;
            break;
        }
        for (size_t i = 0; i < n; i++) {
            const size_t size = dx[i] ? (size_t)gguf_tensor_size(dx[i]) : 0;
            if (k) {
                same = same && !memcmp(first[i], dx[i]->data, size);
            } else {
                first[i] = malloc(size + 1);
                memcpy(first[i], dx[i]->data, size);
            }
        }
    }
    for (size_t i = 0; i < n; i++)
        free(first[i]);
    return same;
}

/* Check the gradients of y by n tensors, leaves. Then reset the context. */
static void check_gradients(ctx_t *c, tensor *y, size_t n,
                            tensor *const *wanted, const char *name)
{
    struct gguf_gradients_params p = GGUF_GRADIENTS_PARAMS_INIT;
    struct gguf_graph *g = gguf_graph_create(c, 400);
    struct gguf_graph *forward = gguf_graph_create(c, 100);
    struct gguf_error err = { 0 };
    tensor *dx[MOST] = { NULL };
    tensor *seed = y ? source(c, GGUF_DTYPE_F32, PLAIN, y->ne[0], y->ne[1],
                              y->ne[2], y->ne[3])
                     : NULL;
    bool good = gguf_graph_finish(c, forward, y, &err) == GGUF_OK &&
                gguf_graph_finish(c, g, y, &err) == GGUF_OK;
    p.n_results = 1, p.results = &y, p.seeds = &seed;
    p.n_wanted = n, p.wanted = wanted;
    good = good && gguf_gradients_build(c, g, &p, dx, &err) == GGUF_OK;
    for (size_t i = 0; good && i < n; i++)
        good = dx[i] && gguf_tensor_same_shape(dx[i], wanted[i]) &&
               gguf_tensor_is_contiguous(dx[i]) &&
               dx[i]->dtype == GGUF_DTYPE_F32;
    if (!good)
        printf("# %s\n", err.message);
    good = good && compute_graph(g, dx, n) && deval_begin(forward);
    for (size_t i = 0; good && i < n; i++)
        good = compare_gradient(forward, y, seed, wanted[i], dx[i]);
    if (forward && good) {
        for (size_t i = 0; i < gguf_graph_n_nodes(forward); i++)
            seen[gguf_graph_node(forward, i)->op] = true;
        deval_end(forward);
    }
    ok(good, "%s", name);
    gguf_ctx_reset(c);
}

#define CHECK(name, y, ...)                                                   \
    check_gradients(c, y, GG_LEN(((tensor *[]){ __VA_ARGS__ })),              \
                    (tensor *[]){ __VA_ARGS__ }, name)

/* --- sources -------------------------------------------------------------- */

/* Leaf with values in [low, high), none of them near 0, where functions have
 * corners. */
static tensor *leaf_in(ctx_t *c, double low, double high, int64_t n0,
                       int64_t n1, int64_t n2, int64_t n3)
{
    tensor *t = between(c, PLAIN, n0, n1, n2, n3, low, high);
    float *x = t->data;
    for (int64_t i = 0; i < gguf_tensor_n_elements(t); i++)
        x[i] += fabsf(x[i]) < 1e-2f ? 0.02f : 0;
    return gguf_tensor_set_name(t, "x");
}

#define LEAF(...) leaf_in(c, -2, 2, __VA_ARGS__)

static tensor *make_ids(ctx_t *c, int64_t below, int64_t n0, int64_t n1,
                        int64_t n2)
{
    tensor *t = gguf_tensor_create_3d(c, GGUF_DTYPE_I32, n0, n1, n2);
    set_ids(t, below);
    return t;
}

/* --- functions of elements ------------------------------------------------ */

static void check_unary(ctx_t *c)
{
    static struct gguf_tensor *(*const fn[])(struct gguf_ctx *, tensor *) = {
        gguf_op_silu,       gguf_op_gelu,   gguf_op_gelu_erf,
        gguf_op_gelu_quick, gguf_op_relu,   gguf_op_sigmoid,
        gguf_op_tanh,       gguf_op_elu,    gguf_op_relu_sqr,
        gguf_op_softplus,   gguf_op_neg,    gguf_op_abs,
        gguf_op_sqr,        gguf_op_exp,    gguf_op_sin,
        gguf_op_cos,        gguf_op_cumsum, gguf_op_sum,
        gguf_op_sum_rows,   gguf_op_mean,   gguf_op_dup,
    };
    for (size_t i = 0; i < GG_LEN(fn); i++) {
        tensor *x = LEAF(17, 5, 2, 1), *y = fn[i](c, x);
        CHECK(gguf_op_name(y->op), y, x);
    }
    tensor *x = leaf_in(c, 0.5, 2, 9, 3, 1, 1);
    CHECK("sqrt", gguf_op_sqrt(c, x), x);
    x = leaf_in(c, 0.5, 2, 9, 3, 1, 1);
    CHECK("log", gguf_op_log(c, x), x);
    x = LEAF(9, 3, 1, 1);
    CHECK("scale", gguf_op_scale(c, x, -1.5f), x);
    x = LEAF(9, 3, 1, 1);
    CHECK("leaky_relu", gguf_op_leaky_relu(c, x, 0.1f), x);
    x = LEAF(19, 3, 1, 1);
    CHECK("clamp", gguf_op_clamp(c, x, -0.9f, 1.1f), x);
    x = LEAF(19, 3, 1, 1);
    CHECK("xielu", gguf_op_xielu(c, x, 0.8f, 0.7f, 0.5f, -1e-6f), x);
    x = LEAF(9, 6, 2, 1);
    CHECK("diag_mask_zero", gguf_op_diag_mask_zero(c, x, 2), x);
    x = LEAF(9, 6, 2, 1);
    CHECK("diag_mask_inf, then soft_max",
          gguf_op_soft_max(c, gguf_op_diag_mask_inf(c, x, 2), NULL, 1.5f, 0),
          x);
}

static void check_binary(ctx_t *c)
{
    static struct gguf_tensor *(*const fn[])(
        struct gguf_ctx *, tensor *, tensor *) = { gguf_op_add, gguf_op_sub,
                                                   gguf_op_mul, gguf_op_div };
    static const int64_t b[][4] = { { 12, 6, 4, 2 },
                                    { 12, 1, 1, 1 },
                                    { 1, 6, 4, 2 },
                                    { 1, 1, 1, 1 },
                                    { 4, 3, 2, 1 } };
    for (size_t i = 0; i < GG_LEN(fn); i++)
        for (size_t k = 0; k < GG_LEN(b); k++) {
            tensor *x = LEAF(12, 6, 4, 2);
            tensor *y = leaf_in(c, 0.5, 2, b[k][0], b[k][1], b[k][2], b[k][3]);
            tensor *z = fn[i](c, x, y);
            CHECK(gguf_op_name(z->op), z, x, y);
        }
    tensor *x = LEAF(7, 3, 1, 1);
    CHECK("a square: both sources are one", gguf_op_mul(c, x, x), x);
    static struct gguf_tensor *(*const gate[])(
        struct gguf_ctx *, tensor *,
        tensor *) = { gguf_op_swiglu, gguf_op_geglu, gguf_op_geglu_erf,
                      gguf_op_geglu_quick, gguf_op_reglu };
    for (size_t i = 0; i < GG_LEN(gate); i++) {
        tensor *u = LEAF(13, 4, 1, 2), *v = LEAF(13, 4, 1, 2);
        tensor *z = gate[i](c, u, v);
        CHECK(gguf_op_name(z->op), z, u, v);
    }
    tensor *u = LEAF(40, 4, 1, 1), *v = LEAF(40, 4, 1, 1);
    CHECK("swiglu_oai", gguf_op_swiglu_oai(c, u, v, 1.702f, 1.25f), u, v);
}

/* --- shapes --------------------------------------------------------------- */

static void check_views(ctx_t *c)
{
    tensor *x = LEAF(10, 6, 3, 2);
    CHECK("reshape", gguf_op_sqr(c, gguf_op_reshape_3d(c, x, 5, 12, 6)), x);
    x = LEAF(10, 6, 3, 2);
    CHECK("permute", gguf_op_permute(c, x, 2, 0, 3, 1), x);
    x = LEAF(10, 6, 3, 2);
    CHECK("transpose", gguf_op_sqr(c, gguf_op_transpose(c, x)), x);
    x = LEAF(10, 6, 3, 2);
    CHECK("view of a part",
          gguf_op_view_4d(c, x, 4, 5, 2, 2, 40, 240, 720, 44), x);
    x = LEAF(30, 1, 1, 1);
    CHECK("view that shows elements twice",
          gguf_op_sqr(c, gguf_op_view_2d(c, x, 6, 7, 12, 8)), x);
    x = LEAF(5, 4, 3, 1);
    tensor *y = gguf_op_permute(c, x, 0, 2, 1, 3);
    CHECK("view of a permuted tensor",
          gguf_op_sqr(c, gguf_op_view_3d(c, y, 3, 2, 3, y->nb[1], y->nb[2],
                                         (uint64_t)(4 + y->nb[2]))),
          x);
    x = LEAF(5, 4, 3, 1);
    y = gguf_op_transpose(c, x);
    CHECK("view of a transposed tensor: a column of each slice",
          gguf_op_view_2d(c, y, 1, 3, y->nb[2], (uint64_t)(2 * y->nb[1])), x);
    x = LEAF(9, 2, 1, 1);
    y = gguf_op_view_1d(c, x, 0, 0);
    CHECK(
        "an empty view",
        gguf_op_sum(c, gguf_op_concat(c, y, gguf_op_reshape_1d(c, x, 18), 0)),
        x);
    for (unsigned d = 0; d < 4; d++) {
        int64_t ne[4] = { 3, 4, 2, 2 };
        tensor *u = LEAF(3, 4, 2, 2), *v;
        ne[d] = 5;
        v = LEAF(ne[0], ne[1], ne[2], ne[3]);
        CHECK("concat", gguf_op_concat(c, u, v, d), u, v);
    }
    x = LEAF(3, 2, 1, 2);
    CHECK("repeat", gguf_op_repeat(c, x, 6, 4, 3, 2), x);
    x = LEAF(3, 2, 1, 2);
    CHECK("pad", gguf_op_pad(c, x, 1, 2, 0, 1), x);
    x = LEAF(5, 4, 3, 2);
    CHECK("roll", gguf_op_roll(c, x, -2, 1, 4, 0), x);
}

static void check_rows(ctx_t *c)
{
    tensor *x = LEAF(6, 5, 3, 2), *ids = make_ids(c, 5, 9, 3, 2);
    CHECK("get_rows, some of them twice", gguf_op_get_rows(c, x, ids), x);
    x = LEAF(6, 4, 1, 1);
    tensor *to = LEAF(6, 9, 1, 1);
    ids = make_ids(c, 9, 4, 1, 1);
    for (int i = 0; i < 4; i++)
        ((int32_t *)ids->data)[i] = (int32_t[]){ 7, 0, 3, 8 }[i];
    CHECK("set_rows",
          gguf_op_sqr(c, gguf_op_set_rows(c, gguf_op_dup(c, to), x, ids)), x,
          to);
    x = LEAF(6, 4, 1, 1);
    to = LEAF(8, 3, 1, 1);
    CHECK("cpy", gguf_op_sqr(c, gguf_op_cpy(c, x, gguf_op_dup(c, to))), x);
    for (int kind = 0; kind < 3; kind++) {
        x = LEAF(33, 3, 2, 1);
        tensor *y = kind == 0   ? gguf_op_norm(c, x, 1e-2f)
                    : kind == 1 ? gguf_op_rms_norm(c, x, 1e-2f)
                                : gguf_op_l2_norm(c, x, 1e-3f);
        CHECK(gguf_op_name(y->op), y, x);
    }
    x = leaf_in(c, -1, 1, 4, 3, 1, 1);
    CHECK("l2_norm of rows shorter than eps", gguf_op_l2_norm(c, x, 5), x);
    for (int kind = 0; kind < 2; kind++)
        for (int ff = 0; ff < 2; ff++) {
            struct gguf_rope r = GGUF_ROPE_INIT;
            r.n_dims = 8;
            r.kind = kind;
            r.attn_factor = 1.25f;
            x = LEAF(12, 2, 5, 2);
            CHECK(kind ? "rope, neox" : "rope, norm",
                  gguf_op_rope(c, x, make_ids(c, 50, 5, 1, 1),
                               ff ? leaf_in(c, 0.5, 2, 4, 1, 1, 1) : NULL, &r),
                  x);
        }
}

/* --- products ------------------------------------------------------------- */

static void check_products(ctx_t *c)
{
    static const int64_t slices[][4] = {
        { 1, 1, 1, 1 }, { 2, 1, 4, 3 }, { 2, 3, 2, 3 }, { 1, 2, 5, 4 }
    };
    for (size_t i = 0; i < GG_LEN(slices); i++) {
        const int64_t *s = slices[i];
        tensor *a = LEAF(7, 5, s[0], s[1]), *b = LEAF(7, 3, s[2], s[3]);
        CHECK("matmul", gguf_op_matmul(c, a, b), a, b);
        a = LEAF(6, 4, s[0], s[1]);
        b = LEAF(5, 4, s[2], s[3]);
        CHECK("out_prod", gguf_op_out_prod(c, a, b), a, b);
    }
    for (int64_t n_b = 1; n_b <= 4; n_b *= 2) {
        tensor *a = LEAF(7, 5, 6, 1), *b = LEAF(7, n_b, 3, 1);
        CHECK("matmul_id", gguf_op_matmul_id(c, a, b, make_ids(c, 6, 4, 3, 1)),
              b);
    }
}

/* Causal mask with distances, for h heads. */
static tensor *make_mask(ctx_t *c, int64_t n_kv, int64_t n_tok, int64_t h)
{
    tensor *m = gguf_tensor_create_3d(c, GGUF_DTYPE_F32, n_kv, n_tok, h);
    for (int64_t i = 0; i < gguf_tensor_n_elements(m); i++) {
        const int64_t key = i % n_kv, tok = i / n_kv % n_tok;
        ((float *)m->data)[i] = key > tok + n_kv - n_tok
                                    ? -INFINITY
                                    : -0.1f * (float)(tok + i / n_kv - key);
    }
    return m;
}

static void check_soft_max(ctx_t *c)
{
    tensor *x = LEAF(8, 4, 3, 2);
    CHECK("soft_max", gguf_op_soft_max(c, x, NULL, 0.7f, 0), x);
    x = LEAF(8, 4, 3, 2);
    CHECK("soft_max with a mask and slopes",
          gguf_op_soft_max(c, x, make_mask(c, 8, 5, 1), 0.7f, 8), x);
    x = LEAF(8, 4, 3, 2);
    CHECK("soft_max with a mask and sinks",
          gguf_op_soft_max_sinks(c, x, make_mask(c, 8, 4, 3), LEAF(3, 1, 1, 1),
                                 0.7f, 0),
          x);
}

static void check_attention(ctx_t *c)
{
    static const struct {
        int64_t n_tok, n_kv, n_head, n_head_kv, n_seq, mask_heads;
        bool sinks;
        float max_bias, cap;
        const char *name;
    } k[] = {
        { 5, 5, 2, 2, 1, 0, false, 0, 0, "attention" },
        { 4, 6, 4, 2, 2, 1, false, 0, 0, "attention of grouped queries" },
        { 4, 6, 4, 2, 1, 1, true, 0, 0, "attention with sinks" },
        { 4, 6, 6, 2, 1, 1, false, 8, 0, "attention with slopes" },
        { 4, 6, 4, 1, 1, 4, false, 0, 1.5f, "attention with a soft cap" },
        { 4, 6, 4, 2, 1, 2, true, 0, 1.5f,
          "attention with masks of heads of keys" },
    };
    for (size_t i = 0; i < GG_LEN(k); i++) {
        tensor *q = LEAF(8, k[i].n_tok, k[i].n_head, k[i].n_seq);
        tensor *key = LEAF(8, k[i].n_kv, k[i].n_head_kv, k[i].n_seq);
        tensor *v = LEAF(5, k[i].n_kv, k[i].n_head_kv, k[i].n_seq);
        tensor *m = k[i].mask_heads
                        ? make_mask(c, k[i].n_kv, k[i].n_tok, k[i].mask_heads)
                        : NULL;
        tensor *sinks = k[i].sinks ? LEAF(k[i].n_head, 1, 1, 1) : NULL;
        tensor *y = gguf_op_attention_sinks(c, q, key, v, m, sinks, 0.35f,
                                            k[i].max_bias, k[i].cap);
        CHECK(k[i].name, y, q, key, v);
    }
}

/* --- several nodes -------------------------------------------------------- */

/* Layer of a mixture: norm, router, chosen experts, weights that add to 1. */
static void check_experts(ctx_t *c)
{
    tensor *x = LEAF(8, 3, 1, 1), *norm = LEAF(8, 1, 1, 1);
    tensor *router = LEAF(8, 5, 1, 1), *up = LEAF(8, 6, 5, 1);
    tensor *down = LEAF(6, 8, 5, 1);
    tensor *h = gguf_op_mul(c, gguf_op_rms_norm(c, x, 1e-3f), norm);
    tensor *p = gguf_op_soft_max(c, gguf_op_matmul(c, router, h), NULL, 1, 0);
    tensor *ids = gguf_op_top_k(c, p, 2);
    tensor *w = gguf_op_reshape_2d(
        c, gguf_op_get_rows(c, gguf_op_reshape_3d(c, p, 1, 5, 3), ids), 2, 3);
    w = gguf_op_div(c, w, gguf_op_sum_rows(c, w));
    tensor *y = gguf_op_silu(
        c, gguf_op_matmul_id(c, up, gguf_op_reshape_3d(c, h, 8, 1, 3), ids));
    y = gguf_op_matmul_id(c, down, y, ids);
    y = gguf_op_mul(c, y, gguf_op_reshape_3d(c, w, 1, 2, 3));
    y = gguf_op_add(c, gguf_op_view_2d(c, y, 8, 3, y->nb[2], 0),
                    gguf_op_view_2d(c, y, 8, 3, y->nb[2], (uint64_t)y->nb[1]));
    CHECK("a layer of experts", gguf_op_add(c, y, x), x, norm, router);
}

/* Keys go through a cache of halves, as in a session. The evaluator does not
 * round them, and values are halves anyway. */
static void check_cache(ctx_t *c)
{
    tensor *x = LEAF(8, 3, 1, 1), *wk = LEAF(8, 8, 1, 1);
    tensor *cache = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 8, 6);
    memset(cache->data, 0, (size_t)gguf_tensor_size(cache));
    tensor *ids = make_ids(c, 1, 3, 1, 1);
    for (int i = 0; i < 3; i++)
        ((int32_t *)ids->data)[i] = i + 1;
    tensor *k = gguf_op_set_rows(c, cache, gguf_op_matmul(c, wk, x), ids);
    k = gguf_op_view_4d(c, k, 4, 5, 2, 1, k->nb[1], 16, k->nb[3], 0);
    tensor *q =
        gguf_op_permute(c, gguf_op_reshape_3d(c, x, 4, 2, 3), 0, 2, 1, 3);
    tensor *y =
        gguf_op_attention(c, q, k, k, make_mask(c, 5, 3, 1), 0.5f, 0, 0);
    CHECK("attention over a cache", y, x, wk);
}

/* --- the interface -------------------------------------------------------- */

static void check_intermediate(ctx_t *c)
{
    struct gguf_gradients_params p = GGUF_GRADIENTS_PARAMS_INIT;
    struct gguf_graph *g = gguf_graph_create(c, 100);
    tensor *x = LEAF(4, 3, 1, 1), *w = LEAF(4, 2, 1, 1), *dx[3];
    tensor *y = gguf_op_matmul(c, w, x), *z = gguf_op_sqr(c, y);
    tensor *other = gguf_op_neg(c, x);
    tensor *seed = source(c, GGUF_DTYPE_F32, PLAIN, 2, 3, 1, 1);
    struct gguf_error err;
    gguf_graph_add(g, other);
    gguf_graph_add(g, z);
    p.n_results = 1, p.results = &z, p.seeds = &seed;
    p.n_wanted = 3, p.wanted = (tensor *[]){ y, other, z };
    bool good = gguf_gradients_build(c, g, &p, dx, &err) == GGUF_OK && dx[0] &&
                !dx[1] && dx[2] == seed && dx[0]->flags & GGUF_TENSOR_OUTPUT &&
                gguf_backend_compute(ops_backends[0], g, &err) == GGUF_OK;
    for (int64_t i = 0; good && i < 6; i++)
        good =
            fabs(linear(dx[0], i) - 2 * linear(y, i) * linear(seed, i)) < 1e-5;
    ok(good, "gradient of a result between: no gradient where none reaches");
    gguf_ctx_reset(c);
}

/* Does building fail with that status, and leave the graph as it was? */
static bool build_fails(ctx_t *c, struct gguf_graph *g,
                        const struct gguf_gradients_params *p,
                        enum gguf_status status, const char *text)
{
    tensor *dx[1] = { p->wanted[0] };
    struct gguf_error err = { 0 };
    const size_t n = gguf_graph_n_nodes(g);
    return gguf_gradients_build(c, g, p, dx, &err) == status && !dx[0] &&
           strstr(err.message, text) && gguf_graph_n_nodes(g) == n;
}

static void check_missing(ctx_t *c)
{
    struct gguf_gradients_params p = GGUF_GRADIENTS_PARAMS_INIT;
    struct gguf_graph *g = gguf_graph_create(c, 100);
    tensor *x = LEAF(4, 4, 6, 1), *bias = LEAF(4, 1, 1, 1);
    tensor *mid = gguf_op_group_norm(c, gguf_op_neg(c, x), 3, 1e-3f);
    tensor *y = gguf_op_add(c, mid, bias);
    tensor *seed = source(c, GGUF_DTYPE_F32, PLAIN, 4, 4, 6, 1);
    tensor *narrow = source(c, GGUF_DTYPE_F32, PLAIN, 4, 4, 1, 1);
    tensor *half = source(c, GGUF_DTYPE_F16, PLAIN, 4, 4, 6, 1);
    const struct gguf_tensor *missing = NULL;
    gguf_graph_add(g, y);
    p.n_results = 1, p.results = &y, p.seeds = &seed;
    p.n_wanted = 1, p.wanted = &x;
    ok(gguf_gradients_missing(g, &p, &missing, NULL) == GGUF_OK &&
           missing == mid &&
           build_fails(c, g, &p, GGUF_E_UNSUPPORTED, "group_norm"),
       "group_norm has no gradient: it is named");
    p.wanted = &bias;
    ok(gguf_gradients_missing(g, &p, &missing, NULL) == GGUF_OK && !missing,
       "an operation that is not on the way does not matter");
    p.seeds = &narrow;
    ok(build_fails(c, g, &p, GGUF_E_SHAPE, "seed 0"),
       "a seed of another shape");
    p.seeds = &half;
    ok(build_fails(c, g, &p, GGUF_E_TYPE, "seed 0"), "a seed of halves");
    p.seeds = &seed, p.wanted = &narrow;
    ok(build_fails(c, g, &p, GGUF_E_INVALID, "wanted tensor 0") &&
           gguf_gradients_missing(g, &p, &missing, NULL) == GGUF_E_INVALID,
       "a wanted tensor that is not in the graph");
    p.wanted = &x, p.results = &narrow;
    ok(build_fails(c, g, &p, GGUF_E_INVALID, "result 0"),
       "a result that is not in the graph");
    p.results = &y, p.wanted = &bias;
    struct gguf_graph *view = gguf_graph_view(c, g, 0, gguf_graph_n_nodes(g));
    p.wanted = &mid;
    ok(build_fails(c, view, &p, GGUF_E_INVALID, "view"), "a view of a graph");
    gguf_ctx_reset(c);
    /* the weights of experts */
    g = gguf_graph_create(c, 100);
    x = LEAF(4, 3, 2, 1);
    y = gguf_op_matmul_id(c, x, LEAF(4, 1, 3, 1), make_ids(c, 2, 1, 3, 1));
    gguf_graph_add(g, y);
    p.results = &y, p.wanted = &x;
    ok(gguf_gradients_missing(g, &p, &missing, NULL) == GGUF_OK &&
           missing == y,
       "matmul_id has no gradient of its matrices");
    gguf_ctx_reset(c);
}

static void check_all_seen(void)
{
    bool all = true;
    for (uint32_t op = 1; op < GGUF_N_OPS; op++)
        if (gg_gradient_row(op)->fn && !seen[op]) {
            printf("# %s has no case\n", gguf_op_name(op));
            all = false;
        }
    ok(all, "every operation with a gradient has a case");
}

int main(void)
{
    ops_begin();
    ctx_t *c = new_ctx();
    check_unary(c);
    check_binary(c);
    check_views(c);
    check_rows(c);
    check_products(c);
    check_soft_max(c);
    check_attention(c);
    check_experts(c);
    check_cache(c);
    check_intermediate(c);
    check_missing(c);
    check_all_seen();
    gguf_ctx_destroy(c);
    ops_end();
    return done_testing();
}
