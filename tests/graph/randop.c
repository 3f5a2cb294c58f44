/* SPDX-License-Identifier: MIT */
/* randop.c - random operations, see randop.h
 *
 * Operations whose builder takes one or two sources and nothing else are drawn
 * by the builder. Each other operation has a function make_NAME here.
 */
#include "config.h"
#include "tests/graph/randop.h"
#include "base/compiler.h"
#include "graph/op_table.h"
#include "tests/tap.h"

typedef struct gguf_tensor tensor;
typedef tensor *randop_fn(const struct randop *r);

/* elements of the largest tensor */
enum { MAX_ELEMENTS = 2000 };

/* --- what operations take ------------------------------------------------- */

/* Cut or repeat t's elements to this shape: the first, the last, or repeated
 * ones. Never a view of the cache, which may be written meanwhile. */
static tensor *take_shape(const struct randop *r, tensor *t, int64_t ne0,
                          int64_t ne1, int64_t ne2, int64_t ne3)
{
    const int64_t n = ne0 * ne1 * ne2 * ne3;
    int64_t have = gguf_tensor_n_elements(t);
    const bool last = rnd_below(2);
    tensor *x = t->view_src == r->cache ? gguf_op_dup(r->ctx, t)
                                        : gguf_op_cont(r->ctx, t);
    x = gguf_op_reshape_1d(r->ctx, x, have);
    if (have < n) {
        have *= (n + have - 1) / have;
        x = gguf_op_repeat(r->ctx, x, have, 1, 1, 1);
    }
    if (have > n)
        x = gguf_op_view_1d(r->ctx, x, n, last ? 4 * (uint64_t)(have - n) : 0);
    return gguf_op_reshape_4d(r->ctx, x, ne0, ne1, ne2, ne3);
}

#define A(ne0, ne1, ne2, ne3) take_shape(r, r->a, ne0, ne1, ne2, ne3)
#define B(ne0, ne1, ne2, ne3) take_shape(r, r->b, ne0, ne1, ne2, ne3)
/* a permutation of 0, 1, ... in each row */
#define IDS(n, m) gguf_op_argsort(r->ctx, B(n, m, 1, 1), rnd_below(2))
/* between 0 and 1 */
#define GATE(x) gguf_op_sigmoid(r->ctx, x)
/* b in a shape that can be added to a */
#define LIKE_A                                                                \
    (rnd_below(2) ? B(r->a->ne[0], 1, 1, 1)                                   \
                  : B(r->a->ne[0], r->a->ne[1], r->a->ne[2], r->a->ne[3]))
/* bounded, so that values do not grow without end */
#define SMALL(x) gguf_op_tanh(r->ctx, x)

#define ROW(id, ...)                                                          \
    static tensor *make_##id(const struct randop *r)                          \
    {                                                                         \
        return __VA_ARGS__;                                                   \
    }

/* --- copies, shapes, rows ------------------------------------------------- */

ROW(dup,
    gguf_op_cast(r->ctx,
                 gguf_op_cast(r->ctx, r->a,
                              rnd_below(2) ? GGUF_DTYPE_F16 : GGUF_DTYPE_BF16),
                 GGUF_DTYPE_F32))
ROW(cpy, gguf_op_cpy(r->ctx, A(8, 4, 1, 1),
                     gguf_op_view_2d(r->ctx, r->cache, 8, 4, 32, 64)))
ROW(reshape, A(4, 3, 5, 2))
ROW(view, gguf_op_view_2d(r->ctx, A(10, 6, 1, 1), 4, 5, 40, 20))
ROW(permute,
    gguf_op_cont(r->ctx, gguf_op_permute(r->ctx, A(4, 5, 3, 2), 2, 0, 3, 1)))
ROW(transpose, gguf_op_transpose(r->ctx, A(7, 5, 2, 1)))
ROW(get_rows, gguf_op_get_rows(r->ctx, A(6, 9, 1, 1),
                               gguf_op_reshape_1d(r->ctx, IDS(9, 2), 18)))
ROW(set_rows,
    gguf_op_set_rows(r->ctx, gguf_op_view_2d(r->ctx, r->cache, 8, 8, 32, 0),
                     A(8, 3, 1, 1), gguf_op_view_1d(r->ctx, IDS(8, 1), 3, 8)))

/* --- elementwise ---------------------------------------------------------- */

ROW(div, gguf_op_div(r->ctx, r->a, gguf_op_exp(r->ctx, SMALL(LIKE_A))))
ROW(scale, gguf_op_scale(r->ctx, r->a, rnd_f32()))
ROW(leaky_relu, gguf_op_leaky_relu(r->ctx, r->a, 0.1f))
ROW(sqrt, gguf_op_sqrt(r->ctx, gguf_op_abs(r->ctx, r->a)))
ROW(log, gguf_op_log(r->ctx, gguf_op_exp(r->ctx, SMALL(r->a))))
ROW(clamp, gguf_op_clamp(r->ctx, r->a, -0.5f, 0.25f))
ROW(xielu, gguf_op_xielu(r->ctx, SMALL(r->a), 0.8f, 0.8f, 0.5f, -1e-6f))
ROW(swiglu_oai,
    gguf_op_swiglu_oai(r->ctx, A(9, 5, 1, 1), B(9, 5, 1, 1), 1.702f, 7))

/* --- joins, reductions, norms --------------------------------------------- */

static tensor *make_concat(const struct randop *r)
{
    switch (rnd_below(3)) {
    case 0: return gguf_op_concat(r->ctx, A(5, 3, 2, 1), B(5, 4, 2, 1), 1);
    case 1: return gguf_op_concat(r->ctx, A(5, 3, 2, 1), B(2, 3, 2, 1), 0);
    default:
        return gguf_op_concat(r->ctx, A(5, 3, 2, 1), B(5, 3, 2, 1),
                              (unsigned)rnd_below(4));
    }
}

ROW(repeat, gguf_op_repeat(r->ctx, A(5, 3, 1, 1), 10, 3, 2, 2))
ROW(pad, gguf_op_pad(r->ctx, A(6, 3, 2, 1), 2, 0, 1, 1))
ROW(roll, gguf_op_roll(r->ctx, A(6, 3, 2, 2), -2, 1, 1, 0))
ROW(argmax, gguf_op_get_rows(r->ctx, A(5, 8, 1, 1),
                             gguf_op_argmax(r->ctx, B(8, 4, 1, 1))))
ROW(argsort, gguf_op_get_rows(r->ctx, A(5, 8, 1, 1),
                              gguf_op_view_1d(r->ctx, IDS(8, 1), 6, 4)))
ROW(norm, gguf_op_norm(r->ctx, r->a, 1e-3f))
ROW(rms_norm, gguf_op_rms_norm(r->ctx, r->a, 1e-3f))
ROW(l2_norm, gguf_op_l2_norm(r->ctx, r->a, 1e-3f))
ROW(group_norm, gguf_op_group_norm(r->ctx, A(4, 3, 6, 2), 3, 1e-3f))
ROW(diag_mask_inf,
    gguf_op_soft_max(r->ctx, gguf_op_diag_mask_inf(r->ctx, A(9, 5, 2, 1), 3),
                     NULL, 1, 0))
ROW(diag_mask_zero, gguf_op_diag_mask_zero(r->ctx, A(9, 5, 2, 1), 3))
static tensor *make_soft_max(const struct randop *r)
{
    tensor *mask = rnd_below(2) ? B(8, 3, 1 + (int64_t)rnd_below(2), 1) : NULL;
    tensor *sinks = rnd_below(2) ? B(2, 1, 1, 1) : NULL;
    return gguf_op_soft_max_sinks(r->ctx, A(8, 3, 2, 1), mask, sinks, 0.5f,
                                  mask ? 8 : 0);
}

static tensor *make_rope(const struct randop *r)
{
    struct gguf_rope p = GGUF_ROPE_INIT;
    p.n_dims = 6;
    p.kind = rnd_below(2) ? GGUF_ROPE_NEOX : GGUF_ROPE_NORM;
    tensor *factors = rnd_below(2) ? GATE(B(3, 1, 1, 1)) : NULL;
    return gguf_op_rope(r->ctx, A(8, 2, 5, 1), IDS(5, 1), factors, &p);
}

/* --- products ------------------------------------------------------------- */

ROW(matmul, gguf_op_matmul(r->ctx, SMALL(A(24, 10, 1, 1)),
                           rnd_below(2) ? B(24, 7, 2, 1) : B(24, 10, 1, 1)))
ROW(matmul_id, gguf_op_matmul_id(r->ctx, SMALL(A(8, 6, 4, 1)), B(8, 1, 3, 1),
                                 gguf_op_top_k(r->ctx, B(4, 3, 1, 1), 2)))
ROW(out_prod, gguf_op_out_prod(r->ctx, SMALL(A(6, 4, 1, 1)),
                               rnd_below(2) ? B(5, 4, 2, 1) : B(6, 4, 1, 1)))
static tensor *attention_mask(const struct randop *r)
{
    static const int64_t heads[] = { 0, 1, 2, 4 };
    const int64_t n = heads[rnd_below(4)];
    return n ? B(5, 3, n, 1) : NULL;
}
static tensor *make_attention(const struct randop *r)
{
    if (rnd_below(3) == 0)
        return gguf_op_attention(r->ctx, A(8, 5, 2, 1), B(8, 5, 2, 1),
                                 A(8, 5, 2, 1), NULL, 0.3f, 0, 0);
    return gguf_op_attention_sinks(
        r->ctx, A(8, 3, 4, 1), B(8, 5, 2, 1), A(8, 5, 2, 1), attention_mask(r),
        rnd_below(2) ? A(4, 1, 1, 1) : NULL, 0.3f, 0, 0);
}

ROW(index_top, gguf_op_index_top(r->ctx, A(8, 3, 4, 1), B(8, 9, 1, 1),
                                 A(4, 3, 1, 1), B(9, 3, 1, 1), 4))
ROW(index_blocks, gguf_op_index_blocks(r->ctx, A(8, 3, 2, 1), B(8, 9, 1, 1),
                                       IDS(9, 1), B(9, 3, 1, 1), 2, 3, 1))
ROW(index_pooled, gguf_op_index_pooled(r->ctx, A(8, 3, 2, 1), B(8, 4, 1, 1),
                                       IDS(9, 1), B(9, 3, 1, 1), 2, 3))

ROW(hyper, gguf_op_hyper(r->ctx, SMALL(A(24, 3, 2, 1)), B(24, 1, 1, 1),
                         B(3, 1, 1, 1), 4, 3, 1e-3f))

/* --- convolution, recurrences --------------------------------------------- */

static const struct gguf_window window = {
    { 3, 2 }, { 2, 1 }, { 1, 0 }, { 1, 1 }
};

ROW(im2col,
    gguf_op_im2col_1d(r->ctx, A(12, 3, 2, 1), 3, 2, 1, 1, GGUF_DTYPE_F32))
ROW(conv,
    gguf_op_conv_2d(r->ctx, SMALL(A(3, 2, 3, 4)), B(7, 6, 3, 1), &window))
ROW(conv_transpose, gguf_op_conv_transpose_2d(r->ctx, SMALL(A(3, 2, 4, 3)),
                                              B(5, 4, 3, 1), &window))
ROW(pool, gguf_op_pool_2d(r->ctx, A(8, 6, 2, 1),
                          (enum gguf_pool_kind)rnd_below(3), &window))
ROW(timestep_embedding,
    gguf_op_timestep_embedding(r->ctx, A(6, 1, 1, 1), 9, 1000))
ROW(ssm_conv, gguf_op_ssm_conv(r->ctx, A(9, 5, 1, 1), B(4, 5, 1, 1)))
ROW(ssm_scan, gguf_op_ssm_scan(r->ctx, A(4, 3, 2, 2), SMALL(B(3, 2, 5, 1)),
                               SMALL(A(2, 5, 1, 1)),
                               gguf_op_neg(r->ctx, GATE(B(1, 2, 1, 1))),
                               SMALL(A(4, 1, 5, 1)), SMALL(B(4, 1, 5, 1)),
                               gguf_op_view_1d(r->ctx, IDS(2, 1), 1, 0), NULL))
ROW(rwkv_wkv6,
    gguf_op_rwkv_wkv6(r->ctx, SMALL(A(4, 2, 3, 1)), SMALL(B(4, 2, 3, 1)),
                      A(4, 2, 3, 1), B(4, 2, 1, 1), GATE(A(4, 2, 3, 1)),
                      B(4, 4, 2, 1), NULL))
ROW(rwkv_wkv7,
    gguf_op_rwkv_wkv7(r->ctx, SMALL(A(4, 2, 3, 1)), SMALL(B(4, 2, 3, 1)),
                      SMALL(A(4, 2, 3, 1)), GATE(B(4, 2, 3, 1)),
                      SMALL(A(4, 2, 3, 1)), SMALL(B(4, 2, 3, 1)),
                      SMALL(A(4, 4, 2, 1)), NULL))

static tensor *make_gated_linear_attn(const struct randop *r)
{
    tensor *state;
    tensor *y = gguf_op_gated_linear_attn(
        r->ctx, SMALL(A(4, 2, 3, 1)), SMALL(B(4, 2, 3, 1)), A(4, 2, 3, 1),
        GATE(B(4, 2, 3, 1)), A(4, 4, 2, 1), 0.5f, &state);
    return rnd_below(2) ? y : state;
}

static tensor *make_gated_delta(const struct randop *r)
{
    tensor *state;
    tensor *y = gguf_op_gated_delta(
        r->ctx, SMALL(A(4, 1, 3, 1)), SMALL(B(4, 1, 3, 1)), A(4, 2, 3, 1),
        gguf_op_neg(r->ctx, GATE(B(1, 2, 3, 1))), GATE(A(1, 2, 3, 1)),
        SMALL(B(4, 4, 2, 1)), &state);
    return rnd_below(2) ? y : state;
}

/* Twice its source, contiguous to contiguous. */
static enum gguf_status double_values(tensor *t, unsigned ith, unsigned nth,
                                      void *user)
{
    const int64_t n = gguf_tensor_n_elements(t);
    (void)user;
    for (int64_t i = n * ith / nth; i < n * (ith + 1) / nth; i++)
        ((float *)t->data)[i] = 2 * ((const float *)t->src[0]->data)[i];
    return GGUF_OK;
}

static const struct gguf_custom custom = {
    .struct_size = sizeof custom, .compute = { double_values, NULL }
};

ROW(custom, gguf_op_map_1(r->ctx, SMALL(A(11, 3, 1, 1)), &custom))

/* --- vector-Jacobian products --------------------------------------------- */

/* Gradients of results that nothing else reads. */
ROW(unary_back,
    gguf_op_unary_back(r->ctx, gguf_op_silu(r->ctx, SMALL(A(9, 5, 1, 1))),
                       SMALL(B(9, 5, 1, 1))))
ROW(norm_back,
    gguf_op_norm_back(r->ctx,
                      rnd_below(2) ? gguf_op_norm(r->ctx, r->a, 1)
                                   : gguf_op_rms_norm(r->ctx, r->a, 1),
                      SMALL(B(r->a->ne[0], r->a->ne[1], r->a->ne[2],
                              r->a->ne[3]))))
ROW(rope_back, gguf_op_rope_back(r->ctx, make_rope(r), SMALL(A(8, 2, 5, 1))))
ROW(repeat_back,
    SMALL(gguf_op_repeat_back(r->ctx, A(10, 3, 2, 2), 5, 3, 1, 1)))
ROW(get_rows_back,
    gguf_op_get_rows_back(r->ctx, A(6, 18, 1, 1),
                          gguf_op_reshape_1d(r->ctx, IDS(9, 2), 18), 9))
ROW(view_back,
    gguf_op_view_back(r->ctx,
                      gguf_op_view_2d(r->ctx, A(10, 6, 1, 1), 4, 5, 40, 20),
                      B(4, 5, 1, 1)))

/* --- the tables ----------------------------------------------------------- */

typedef tensor *one_fn(struct gguf_ctx *ctx, tensor *a);
typedef tensor *two_fn(struct gguf_ctx *ctx, tensor *a, tensor *b);

/* Functions that make nodes, for operations with parameters. */
static const struct {
    randop_fn *own;
    one_fn *one;
    two_fn *two;
} makers[GGUF_N_OPS] = {
#define MAKE_none(NAME) NULL, NULL, NULL
#define MAKE_own(NAME)  make_##NAME, NULL, NULL
#define MAKE_one(NAME)  NULL, gguf_op_##NAME, NULL
#define MAKE_two(NAME)  NULL, NULL, gguf_op_##NAME
#define X(ID, NAME, SRC, OPT, INPLACE, KIND, BUILD, SHAPE, COST)              \
    [GGUF_OP_##ID] = { MAKE_##BUILD(NAME) },
    GG_OP_LIST(X)
#undef X
};

/* Builders that restrict the shape or the values of their sources, or do not
 * give F32. */
static const struct {
    enum gguf_op op;
    randop_fn *make;
} particular[] = {
    { GGUF_OP_ARGMAX, make_argmax },     { GGUF_OP_DIV, make_div },
    { GGUF_OP_GET_ROWS, make_get_rows }, { GGUF_OP_LOG, make_log },
    { GGUF_OP_MATMUL, make_matmul },     { GGUF_OP_OUT_PROD, make_out_prod },
    { GGUF_OP_SQRT, make_sqrt },         { GGUF_OP_SSM_CONV, make_ssm_conv },
};

/* Make a node from small numbers, so that no function of them is large.
 * Sometimes the sources are read again later, so that the result may not
 * overwrite them. */
static tensor *make_simple(const struct randop *r, uint32_t op)
{
    const bool any_b = gg_op_row(op)->shape == gg_graph_shape_binary;
    tensor *a = SMALL(r->a), *t;
    if (makers[op].one)
        t = makers[op].one(r->ctx, a);
    else if (any_b)
        t = makers[op].two(r->ctx, a, SMALL(LIKE_A));
    else
        t = makers[op].two(r->ctx, a,
                           SMALL(B(a->ne[0], a->ne[1], a->ne[2], a->ne[3])));
    return t && gguf_tensor_same_shape(t, a) && rnd_below(2)
               ? gguf_op_add(r->ctx, t, a)
               : t;
}

static tensor *make_op(const struct randop *r, uint32_t op)
{
    for (size_t i = 0; i < GG_LEN(particular); i++)
        if (particular[i].op == op)
            return particular[i].make(r);
    return makers[op].own ? makers[op].own(r) : make_simple(r, op);
}

/* Can one tensor be read in place of the other? */
static bool can_exchange(const tensor *a, const tensor *b)
{
    return a && b && a->dtype == b->dtype && gguf_tensor_same_layout(a, b);
}

bool randop_same_source(tensor *t, uint32_t op, struct gguf_ctx *copies)
{
    bool found = false;
    while (t && t->op != op)
        t = t->src[0];
    if (!t || gg_op_row(op)->flags & GG_OP_DEST)
        return false;
    for (int i = 1; i < GGUF_TENSOR_SRC; i++)
        for (int k = 0; k < i; k++)
            if (can_exchange(t->src[k], t->src[i])) {
                gg_tensor_storage(t)->src[i] =
                    copies ? gguf_op_dup(copies, t->src[k]) : t->src[k];
                found = true;
                break;
            }
    return found;
}

static tensor *make_node(const struct randop *from, uint32_t op)
{
    struct randop r = *from;
    if (op == GGUF_OP_NONE || op >= GGUF_N_OPS)
        return NULL;
    if (r.a->view_src == r.cache)
        r.a = gguf_op_dup(r.ctx, r.a);
    if (gguf_tensor_n_elements(r.a) > MAX_ELEMENTS)
        r.a = take_shape(&r, r.a, 40, 10, 1, 1);
    tensor *t = make_op(&r, op);
    if (rnd_below(4) == 0)
        (void)randop_same_source(t, op, NULL);
    return t;
}

tensor *randop_make(const struct randop *r, uint32_t op)
{
    tap_rng = r->seed | 1;
    return make_node(r, op);
}

tensor *randop_any(const struct randop *r)
{
    tap_rng = r->seed | 1;
    return make_node(r, 1 + (uint32_t)rnd_below(GGUF_N_OPS - 1));
}
