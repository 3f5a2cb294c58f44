/* randop.c - operations by chance: one row each, see randop.h */
#include "config.h"
#include "tests/graph/randop.h"
#include "base/compiler.h"
#include "tests/tap.h"

typedef struct gguf_tensor tensor;
typedef tensor *randop_fn(const struct randop *r);

/* Larger ones are cut. */
enum { MAX_ELEMENTS = 2000 };

/* --- what operations take ------------------------------------------------- */

/* t's elements, as many as are wanted: the first or the last ones, or again
 * and again; never memory of the cache, which may be written meanwhile. */
static tensor *shaped(const struct randop *r, tensor *t, int64_t ne0,
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

#define A(ne0, ne1, ne2, ne3) shaped(r, r->a, ne0, ne1, ne2, ne3)
#define B(ne0, ne1, ne2, ne3) shaped(r, r->b, ne0, ne1, ne2, ne3)
/* numbers from 0 on in some order, in each row */
#define IDS(n, m) gguf_op_argsort(r->ctx, B(n, m, 1, 1), rnd_below(2))
/* between 0 and 1 */
#define GATE(x) gguf_op_sigmoid(r->ctx, x)
/* b as something that can be added to a */
#define LIKE_A                                                                \
    (rnd_below(2) ? B(r->a->ne[0], 1, 1, 1)                                   \
                  : B(r->a->ne[0], r->a->ne[1], r->a->ne[2], r->a->ne[3]))
/* not so large that it grows without end */
#define SMALL(x) gguf_op_tanh(r->ctx, x)

#define ROW(id, ...)                                                          \
    static tensor *make_##id(const struct randop *r)                          \
    {                                                                         \
        return __VA_ARGS__;                                                   \
    }
#define UNARY(id) ROW(id, gguf_op_##id(r->ctx, r->a))
#define OF_SMALL(id) ROW(id, gguf_op_##id(r->ctx, SMALL(r->a)))
#define GATED(id)                                                             \
    ROW(id, gguf_op_##id(r->ctx, A(16, 3, 2, 1), B(16, 3, 2, 1)))

/* --- copies, shapes, rows ------------------------------------------------- */

ROW(dup, gguf_op_cast(r->ctx,
                      gguf_op_cast(r->ctx, r->a,
                                   rnd_below(2) ? GGUF_DTYPE_F16
                                                : GGUF_DTYPE_BF16),
                      GGUF_DTYPE_F32))
ROW(cpy, gguf_op_cpy(r->ctx, A(8, 4, 1, 1),
                     gguf_op_view_2d(r->ctx, r->cache, 8, 4, 32, 64)))
ROW(reshape, A(4, 3, 5, 2))
ROW(view, gguf_op_view_2d(r->ctx, A(10, 6, 1, 1), 4, 5, 40, 20))
ROW(permute, gguf_op_cont(r->ctx,
                          gguf_op_permute(r->ctx, A(4, 5, 3, 2), 2, 0, 3, 1)))
ROW(transpose, gguf_op_transpose(r->ctx, A(7, 5, 2, 1)))
ROW(get_rows, gguf_op_get_rows(r->ctx, A(6, 9, 1, 1),
                               gguf_op_reshape_1d(r->ctx, IDS(9, 2), 18)))
ROW(set_rows,
    gguf_op_set_rows(r->ctx,
                     gguf_op_view_2d(r->ctx, r->cache, 8, 8, 32, 0),
                     A(8, 3, 1, 1),
                     gguf_op_view_1d(r->ctx, IDS(8, 1), 3, 8)))

/* --- elementwise ---------------------------------------------------------- */

ROW(add, gguf_op_add(r->ctx, r->a, LIKE_A))
ROW(sub, gguf_op_sub(r->ctx, r->a, LIKE_A))
ROW(mul, gguf_op_mul(r->ctx, r->a, SMALL(LIKE_A)))
ROW(div, gguf_op_div(r->ctx, r->a, gguf_op_exp(r->ctx, SMALL(LIKE_A))))
ROW(scale, gguf_op_scale(r->ctx, r->a, rnd_f32()))
UNARY(silu)
UNARY(gelu)
UNARY(gelu_erf)
UNARY(gelu_quick)
UNARY(relu)
UNARY(sigmoid)
UNARY(tanh)
OF_SMALL(relu_sqr)
ROW(leaky_relu, gguf_op_leaky_relu(r->ctx, r->a, 0.1f))
UNARY(elu)
UNARY(softplus)
UNARY(neg)
UNARY(abs)
OF_SMALL(sqr)
ROW(sqrt, gguf_op_sqrt(r->ctx, gguf_op_abs(r->ctx, r->a)))
OF_SMALL(exp)
ROW(log, gguf_op_log(r->ctx, gguf_op_exp(r->ctx, SMALL(r->a))))
UNARY(sin)
UNARY(cos)
ROW(clamp, gguf_op_clamp(r->ctx, r->a, -0.5f, 0.25f))
ROW(xielu, gguf_op_xielu(r->ctx, SMALL(r->a), 0.8f, 0.8f, 0.5f, -1e-6f))
GATED(swiglu)
GATED(geglu)
GATED(geglu_erf)
GATED(geglu_quick)
GATED(reglu)
ROW(swiglu_oai,
    gguf_op_swiglu_oai(r->ctx, A(9, 5, 1, 1), B(9, 5, 1, 1), 1.702f, 7))

/* --- joins, reductions, norms --------------------------------------------- */

ROW(concat, rnd_below(2)
                ? gguf_op_concat(r->ctx, A(5, 3, 2, 1), B(5, 4, 2, 1), 1)
                : gguf_op_concat(r->ctx, A(5, 3, 2, 1), B(2, 3, 2, 1), 0))
ROW(repeat, gguf_op_repeat(r->ctx, A(5, 3, 1, 1), 10, 3, 2, 2))
ROW(pad, gguf_op_pad(r->ctx, A(6, 3, 2, 1), 2, 0, 1, 1))
ROW(roll, gguf_op_roll(r->ctx, A(6, 3, 2, 2), -2, 1, 1, 0))
UNARY(sum)
UNARY(sum_rows)
UNARY(mean)
ROW(argmax, gguf_op_get_rows(r->ctx, A(5, 8, 1, 1),
                             gguf_op_argmax(r->ctx, B(8, 4, 1, 1))))
ROW(argsort, gguf_op_get_rows(r->ctx, A(5, 8, 1, 1),
                              gguf_op_view_1d(r->ctx, IDS(8, 1), 6, 4)))
OF_SMALL(cumsum)
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
    tensor *mask = rnd_below(2) ? B(8, 3, 1, 1) : NULL;
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

ROW(matmul, gguf_op_matmul(r->ctx, SMALL(A(24, 10, 1, 1)), B(24, 7, 2, 1)))
ROW(matmul_id,
    gguf_op_matmul_id(r->ctx, SMALL(A(8, 6, 4, 1)), B(8, 1, 3, 1),
                      gguf_op_top_k(r->ctx, B(4, 3, 1, 1), 2)))
ROW(out_prod, gguf_op_out_prod(r->ctx, SMALL(A(6, 4, 1, 1)), B(5, 4, 2, 1)))
ROW(attention,
    gguf_op_attention_sinks(r->ctx, A(8, 3, 4, 1), B(8, 5, 2, 1),
                            A(8, 5, 2, 1),
                            rnd_below(2) ? B(5, 3, 1, 1) : NULL,
                            rnd_below(2) ? A(4, 1, 1, 1) : NULL, 0.3f, 0, 0))

/* --- convolution, recurrences --------------------------------------------- */

static const struct gguf_window window = {
    { 3, 2 }, { 2, 1 }, { 1, 0 }, { 1, 1 }
};

ROW(im2col, gguf_op_im2col_1d(r->ctx, A(12, 3, 2, 1), 3, 2, 1, 1,
                              GGUF_DTYPE_F32))
ROW(conv, gguf_op_conv_2d(r->ctx, SMALL(A(3, 2, 3, 4)), B(7, 6, 3, 1),
                          &window))
ROW(conv_transpose,
    gguf_op_conv_transpose_2d(r->ctx, SMALL(A(3, 2, 4, 3)), B(5, 4, 3, 1),
                              &window))
ROW(pool, gguf_op_pool_2d(r->ctx, A(8, 6, 2, 1),
                          (enum gguf_pool_kind)rnd_below(3), &window))
ROW(timestep_embedding,
    gguf_op_timestep_embedding(r->ctx, A(6, 1, 1, 1), 9, 1000))
ROW(ssm_conv, gguf_op_ssm_conv(r->ctx, A(9, 5, 1, 1), B(4, 5, 1, 1)))
ROW(ssm_scan,
    gguf_op_ssm_scan(r->ctx, A(4, 3, 2, 2), SMALL(B(3, 2, 5, 1)),
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

/* Contiguous in, contiguous out: twice its source. */
static enum gguf_status twice(tensor *t, unsigned ith, unsigned nth, void *user)
{
    const int64_t n = gguf_tensor_n_elements(t);
    (void)user;
    for (int64_t i = n * ith / nth; i < n * (ith + 1) / nth; i++)
        ((float *)t->data)[i] = 2 * ((const float *)t->src[0]->data)[i];
    return GGUF_OK;
}

static const struct gguf_custom custom = { twice, NULL, 0, 0 };

ROW(custom, gguf_op_map_1(r->ctx, SMALL(A(11, 3, 1, 1)), &custom))

/* --- the table ------------------------------------------------------------ */

static randop_fn *const makers[GGUF_N_OPS] = {
    [GGUF_OP_DUP] = make_dup,
    [GGUF_OP_CPY] = make_cpy,
    [GGUF_OP_RESHAPE] = make_reshape,
    [GGUF_OP_VIEW] = make_view,
    [GGUF_OP_PERMUTE] = make_permute,
    [GGUF_OP_TRANSPOSE] = make_transpose,
    [GGUF_OP_GET_ROWS] = make_get_rows,
    [GGUF_OP_SET_ROWS] = make_set_rows,
    [GGUF_OP_ADD] = make_add,
    [GGUF_OP_SUB] = make_sub,
    [GGUF_OP_MUL] = make_mul,
    [GGUF_OP_DIV] = make_div,
    [GGUF_OP_SCALE] = make_scale,
    [GGUF_OP_SILU] = make_silu,
    [GGUF_OP_GELU] = make_gelu,
    [GGUF_OP_GELU_ERF] = make_gelu_erf,
    [GGUF_OP_GELU_QUICK] = make_gelu_quick,
    [GGUF_OP_RELU] = make_relu,
    [GGUF_OP_SIGMOID] = make_sigmoid,
    [GGUF_OP_TANH] = make_tanh,
    [GGUF_OP_RELU_SQR] = make_relu_sqr,
    [GGUF_OP_LEAKY_RELU] = make_leaky_relu,
    [GGUF_OP_ELU] = make_elu,
    [GGUF_OP_SOFTPLUS] = make_softplus,
    [GGUF_OP_NEG] = make_neg,
    [GGUF_OP_ABS] = make_abs,
    [GGUF_OP_SQR] = make_sqr,
    [GGUF_OP_SQRT] = make_sqrt,
    [GGUF_OP_EXP] = make_exp,
    [GGUF_OP_LOG] = make_log,
    [GGUF_OP_SIN] = make_sin,
    [GGUF_OP_COS] = make_cos,
    [GGUF_OP_CLAMP] = make_clamp,
    [GGUF_OP_XIELU] = make_xielu,
    [GGUF_OP_SWIGLU] = make_swiglu,
    [GGUF_OP_GEGLU] = make_geglu,
    [GGUF_OP_GEGLU_ERF] = make_geglu_erf,
    [GGUF_OP_GEGLU_QUICK] = make_geglu_quick,
    [GGUF_OP_REGLU] = make_reglu,
    [GGUF_OP_SWIGLU_OAI] = make_swiglu_oai,
    [GGUF_OP_CONCAT] = make_concat,
    [GGUF_OP_REPEAT] = make_repeat,
    [GGUF_OP_PAD] = make_pad,
    [GGUF_OP_ROLL] = make_roll,
    [GGUF_OP_SUM] = make_sum,
    [GGUF_OP_SUM_ROWS] = make_sum_rows,
    [GGUF_OP_MEAN] = make_mean,
    [GGUF_OP_ARGMAX] = make_argmax,
    [GGUF_OP_ARGSORT] = make_argsort,
    [GGUF_OP_CUMSUM] = make_cumsum,
    [GGUF_OP_NORM] = make_norm,
    [GGUF_OP_RMS_NORM] = make_rms_norm,
    [GGUF_OP_L2_NORM] = make_l2_norm,
    [GGUF_OP_GROUP_NORM] = make_group_norm,
    [GGUF_OP_DIAG_MASK_INF] = make_diag_mask_inf,
    [GGUF_OP_DIAG_MASK_ZERO] = make_diag_mask_zero,
    [GGUF_OP_SOFT_MAX] = make_soft_max,
    [GGUF_OP_ROPE] = make_rope,
    [GGUF_OP_MATMUL] = make_matmul,
    [GGUF_OP_MATMUL_ID] = make_matmul_id,
    [GGUF_OP_OUT_PROD] = make_out_prod,
    [GGUF_OP_ATTENTION] = make_attention,
    [GGUF_OP_IM2COL] = make_im2col,
    [GGUF_OP_CONV] = make_conv,
    [GGUF_OP_CONV_TRANSPOSE] = make_conv_transpose,
    [GGUF_OP_POOL] = make_pool,
    [GGUF_OP_TIMESTEP_EMBEDDING] = make_timestep_embedding,
    [GGUF_OP_SSM_CONV] = make_ssm_conv,
    [GGUF_OP_SSM_SCAN] = make_ssm_scan,
    [GGUF_OP_RWKV_WKV6] = make_rwkv_wkv6,
    [GGUF_OP_RWKV_WKV7] = make_rwkv_wkv7,
    [GGUF_OP_GATED_LINEAR_ATTN] = make_gated_linear_attn,
    [GGUF_OP_GATED_DELTA] = make_gated_delta,
    [GGUF_OP_CUSTOM] = make_custom,
};

static tensor *make(const struct randop *from, uint32_t op)
{
    struct randop r = *from;
    if (op >= GGUF_N_OPS || !makers[op])
        return NULL;
    if (r.a->view_src == r.cache)
        r.a = gguf_op_dup(r.ctx, r.a);
    if (gguf_tensor_n_elements(r.a) > MAX_ELEMENTS)
        r.a = shaped(&r, r.a, 40, 10, 1, 1);
    return makers[op](&r);
}

tensor *randop_make(const struct randop *r, uint32_t op)
{
    tap_rng = r->seed | 1;
    return make(r, op);
}

tensor *randop_any(const struct randop *r)
{
    tap_rng = r->seed | 1;
    return make(r, 1 + (uint32_t)rnd_below(GGUF_N_OPS - 1));
}
