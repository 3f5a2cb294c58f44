/* op.h - operations: describing computation
 *
 * Each function makes the tensor that will hold a result, checks the shapes
 * and records sources and parameters. Nothing is computed before a backend
 * runs a graph (graph.h, backend.h). The result lies in ctx; its sources must
 * live as long as it does, in ctx or another context.
 *
 * Failure returns NULL and stays in ctx (tensor.h): GGUF_E_SHAPE and
 * GGUF_E_TYPE name the operation and the shapes, GGUF_E_FULL the context.
 * A NULL source gives NULL; sources that are documented as optional may be
 * NULL. Shapes are written [ne0, ne1, ...], fastest dimension first, missing
 * ones 1. Results are contiguous and f32 unless said otherwise.
 *
 * "b broadcasts to a": each dimension of b divides that of a; index i of a
 * meets index i mod ne of b.
 *
 * Which types a backend computes is asked with gguf_backend_supports_op().
 * Since: 0.1, all of them.
 */
#ifndef GGUF_OP_H
#define GGUF_OP_H

#include <gguf/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tensor->op. Values never change once released. */
enum gguf_op {
    GGUF_OP_NONE = 0,
    /* copies */
    GGUF_OP_DUP,
    GGUF_OP_CPY,
    /* shapes: no work, the memory is the source's */
    GGUF_OP_RESHAPE,
    GGUF_OP_VIEW,
    GGUF_OP_PERMUTE,
    GGUF_OP_TRANSPOSE,
    /* rows */
    GGUF_OP_GET_ROWS,
    GGUF_OP_SET_ROWS,
    /* two sources, elementwise */
    GGUF_OP_ADD,
    GGUF_OP_SUB,
    GGUF_OP_MUL,
    GGUF_OP_DIV,
    /* one source, elementwise */
    GGUF_OP_SCALE,
    GGUF_OP_SILU,
    GGUF_OP_GELU,
    GGUF_OP_GELU_ERF,
    GGUF_OP_GELU_QUICK,
    GGUF_OP_RELU,
    GGUF_OP_SIGMOID,
    GGUF_OP_TANH,
    GGUF_OP_RELU_SQR,
    GGUF_OP_LEAKY_RELU,
    GGUF_OP_ELU,
    GGUF_OP_SOFTPLUS,
    GGUF_OP_NEG,
    GGUF_OP_ABS,
    GGUF_OP_SQR,
    GGUF_OP_SQRT,
    GGUF_OP_EXP,
    GGUF_OP_LOG,
    GGUF_OP_SIN,
    GGUF_OP_COS,
    GGUF_OP_CLAMP,
    /* gated */
    GGUF_OP_SWIGLU,
    GGUF_OP_GEGLU,
    GGUF_OP_REGLU,
    /* put together */
    GGUF_OP_CONCAT,
    GGUF_OP_REPEAT,
    GGUF_OP_PAD,
    GGUF_OP_ROLL,
    /* reductions */
    GGUF_OP_SUM,
    GGUF_OP_SUM_ROWS,
    GGUF_OP_MEAN,
    GGUF_OP_ARGMAX,
    GGUF_OP_ARGSORT,
    GGUF_OP_CUMSUM,
    /* rows */
    GGUF_OP_NORM,
    GGUF_OP_RMS_NORM,
    GGUF_OP_L2_NORM,
    GGUF_OP_SOFT_MAX,
    GGUF_OP_ROPE,
    /* products */
    GGUF_OP_MATMUL,
    GGUF_OP_MATMUL_ID,
    GGUF_OP_ATTENTION,

    GGUF_N_OPS
};

/* "rms_norm" and so on; NULL for an unknown number. Static. Any thread. */
GGUF_API const char *gguf_op_name(uint32_t op);

/* --- copies --------------------------------------------------------------- */

/* A contiguous copy of a, of a's type. */
GGUF_API struct gguf_tensor *gguf_op_dup(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a);
/* a itself where it is contiguous already, else as dup. */
GGUF_API struct gguf_tensor *gguf_op_cont(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a);
/* As dup, converted to another type. Elements keep their value where the type
 * has it, else round to nearest even (f16, bf16) or are encoded as
 * quantization does without importance data. */
GGUF_API struct gguf_tensor *gguf_op_cast(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a,
                                          uint32_t dtype);
/* Copy a into b: same number of elements, any shapes (in element order), any
 * strides, types as for cast; a and b must not overlap. The result is b again
 * (a view of it): take it into the graph, since what reads b must come behind
 * it. */
GGUF_API struct gguf_tensor *gguf_op_cpy(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a,
                                         struct gguf_tensor *b);

/* --- shapes --------------------------------------------------------------- */

/* a's elements in another shape of as many elements. a must be contiguous;
 * of a quantized type the new ne0 is a multiple of the block. */
GGUF_API struct gguf_tensor *gguf_op_reshape_1d(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a,
                                                int64_t ne0);
GGUF_API struct gguf_tensor *gguf_op_reshape_2d(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a,
                                                int64_t ne0, int64_t ne1);
GGUF_API struct gguf_tensor *gguf_op_reshape_3d(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a,
                                                int64_t ne0, int64_t ne1,
                                                int64_t ne2);
GGUF_API struct gguf_tensor *gguf_op_reshape_4d(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a,
                                                int64_t ne0, int64_t ne1,
                                                int64_t ne2, int64_t ne3);

/* A window into a: shape, byte strides nb1.. of the upper dimensions (those
 * above the last given follow from it), off bytes behind a's first element.
 * The window must lie inside a's bytes. Views of views refer to the root. */
GGUF_API struct gguf_tensor *gguf_op_view_1d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             int64_t ne0, uint64_t off);
GGUF_API struct gguf_tensor *gguf_op_view_2d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             int64_t ne0, int64_t ne1,
                                             int64_t nb1, uint64_t off);
GGUF_API struct gguf_tensor *
gguf_op_view_3d(struct gguf_ctx *ctx, struct gguf_tensor *a, int64_t ne0,
                int64_t ne1, int64_t ne2, int64_t nb1, int64_t nb2,
                uint64_t off);
GGUF_API struct gguf_tensor *
gguf_op_view_4d(struct gguf_ctx *ctx, struct gguf_tensor *a, int64_t ne0,
                int64_t ne1, int64_t ne2, int64_t ne3, int64_t nb1,
                int64_t nb2, int64_t nb3, uint64_t off);

/* Dimension i of a becomes dimension axis_i of the result; the axes are 0 to
 * 3 in some order. permute(a, 0, 2, 1, 3): [d, head, tok] to [d, tok, head]. */
GGUF_API struct gguf_tensor *gguf_op_permute(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             unsigned axis0, unsigned axis1,
                                             unsigned axis2, unsigned axis3);
/* permute(a, 1, 0, 2, 3). */
GGUF_API struct gguf_tensor *gguf_op_transpose(struct gguf_ctx *ctx,
                                               struct gguf_tensor *a);

/* --- rows ----------------------------------------------------------------- */

/* Rows of a by number. a [n, m, b2, b3] of any type that decodes, ids i32
 * [r, b2, b3] -> [n, r, b2, b3]; i32 if a is i32. A number that is not in
 * [0, m) fails the computation with GGUF_E_INVALID. */
GGUF_API struct gguf_tensor *gguf_op_get_rows(struct gguf_ctx *ctx,
                                              struct gguf_tensor *a,
                                              struct gguf_tensor *ids);
/* Store rows: src f32 [n, r, b2, b3] into rows ids (i32 or i64 [r, c2, c3],
 * broadcast over b2, b3) of dst [n, m, b2, b3], any type that encodes. The
 * result is dst again, as with cpy. If a row is named twice the last one is
 * kept. A number out of range fails the computation as with get_rows. */
GGUF_API struct gguf_tensor *gguf_op_set_rows(struct gguf_ctx *ctx,
                                              struct gguf_tensor *dst,
                                              struct gguf_tensor *src,
                                              struct gguf_tensor *ids);

/* --- elementwise ---------------------------------------------------------- */

/* a of any shape, b broadcasts to a; the result has a's shape and type. */
GGUF_API struct gguf_tensor *gguf_op_add(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a,
                                         struct gguf_tensor *b);
GGUF_API struct gguf_tensor *gguf_op_sub(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a,
                                         struct gguf_tensor *b);
GGUF_API struct gguf_tensor *gguf_op_mul(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a,
                                         struct gguf_tensor *b);
GGUF_API struct gguf_tensor *gguf_op_div(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a,
                                         struct gguf_tensor *b);
/* a * s, one rounding. */
GGUF_API struct gguf_tensor *gguf_op_scale(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a, float s);

/* One source; the result has its shape and type.
 *   silu        x / (1 + exp(-x))
 *   gelu        x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
 *   gelu_erf    x/2 (1 + erf(x / sqrt 2))
 *   gelu_quick  x / (1 + exp(-1.702 x))
 *   relu        max(x, 0)
 *   sigmoid     1 / (1 + exp(-x))
 *   relu_sqr    max(x, 0)^2
 *   leaky_relu  x for x > 0, else slope x
 *   elu         x for x > 0, else exp(x) - 1
 *   softplus    ln(1 + exp(x))
 *   sqr         x^2
 *   clamp       min(max(x, low), high), low <= high
 *   others      as the functions of their names in math.h
 * gelu forms: Hendrycks and Gimpel, arXiv 1606.08415. */
GGUF_API struct gguf_tensor *gguf_op_silu(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_gelu(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_gelu_erf(struct gguf_ctx *ctx,
                                              struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_gelu_quick(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_relu(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_sigmoid(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_tanh(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_relu_sqr(struct gguf_ctx *ctx,
                                              struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_elu(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_softplus(struct gguf_ctx *ctx,
                                              struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_neg(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_abs(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_sqr(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_sqrt(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_exp(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_log(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_sin(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_cos(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_leaky_relu(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a,
                                                float slope);
GGUF_API struct gguf_tensor *gguf_op_clamp(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a, float low,
                                           float high);

/* Gated: act(gate) * up, same shapes; act is silu, gelu (tanh form), relu.
 * Shazeer, arXiv 2002.05202. */
GGUF_API struct gguf_tensor *gguf_op_swiglu(struct gguf_ctx *ctx,
                                            struct gguf_tensor *gate,
                                            struct gguf_tensor *up);
GGUF_API struct gguf_tensor *gguf_op_geglu(struct gguf_ctx *ctx,
                                           struct gguf_tensor *gate,
                                           struct gguf_tensor *up);
GGUF_API struct gguf_tensor *gguf_op_reglu(struct gguf_ctx *ctx,
                                           struct gguf_tensor *gate,
                                           struct gguf_tensor *up);

/* --- put together -------------------------------------------------------- */

/* a, then b, along dimension dim (0 to 3); the other dimensions and the types
 * agree; blocks are not cut. The type is kept, any type does. */
GGUF_API struct gguf_tensor *gguf_op_concat(struct gguf_ctx *ctx,
                                            struct gguf_tensor *a,
                                            struct gguf_tensor *b,
                                            unsigned dim);
/* a over and over until it has the shape ne[4], which are multiples of its
 * own. Types as concat. */
GGUF_API struct gguf_tensor *gguf_op_repeat(struct gguf_ctx *ctx,
                                            struct gguf_tensor *a, int64_t ne0,
                                            int64_t ne1, int64_t ne2,
                                            int64_t ne3);
/* Zeros behind a: p[i] more elements in dimension i. Single elements only. */
GGUF_API struct gguf_tensor *gguf_op_pad(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a, int32_t p0,
                                         int32_t p1, int32_t p2, int32_t p3);
/* Element i of each dimension d goes to (i + s[d]) mod ne[d]; s may be
 * negative. Single elements only. */
GGUF_API struct gguf_tensor *gguf_op_roll(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a, int32_t s0,
                                          int32_t s1, int32_t s2, int32_t s3);

/* --- reductions ---------------------------------------------------------- */

/* Sums are taken in double, in order, and rounded once.
 *   sum       all elements                     -> f32 [1]
 *   sum_rows  of each row                      -> f32 [1, ne1, ne2, ne3]
 *   mean      of each row (NaN for none)       -> f32 [1, ne1, ne2, ne3]
 *   cumsum    of a row up to each element      -> a's shape and type
 *   argmax    the first largest of each row    -> i32 [ne1, ne2, ne3] */
GGUF_API struct gguf_tensor *gguf_op_sum(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_sum_rows(struct gguf_ctx *ctx,
                                              struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_mean(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_cumsum(struct gguf_ctx *ctx,
                                            struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_argmax(struct gguf_ctx *ctx,
                                            struct gguf_tensor *a);

/* Numbers of each row's elements in the order of their values: i32 in a's
 * shape. Equal values keep their order; NaN comes last. */
GGUF_API struct gguf_tensor *gguf_op_argsort(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             bool descending);
/* The first k of the descending order: a view i32 [k, ne1, ne2, ne3]. */
GGUF_API struct gguf_tensor *gguf_op_top_k(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a, int64_t k);

/* --- along rows ----------------------------------------------------------- */

/* Each row x of n elements:
 *   norm      (x - mean x) / sqrt(mean (x - mean x)^2 + eps)
 *   rms_norm  x / sqrt(mean x^2 + eps)
 *   l2_norm   x / max(sqrt(sum x^2), eps)
 * eps >= 0. Weights and biases are a mul and an add behind it. */
GGUF_API struct gguf_tensor *gguf_op_norm(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a, float eps);
GGUF_API struct gguf_tensor *gguf_op_rms_norm(struct gguf_ctx *ctx,
                                              struct gguf_tensor *a, float eps);
GGUF_API struct gguf_tensor *gguf_op_l2_norm(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a, float eps);

/* Each row of x [n, m, h, s]: softmax(x * scale + slope * mask). mask (may be
 * NULL) f32 or f16 [n, >= m, b2, b3], broadcast over h and s. slope is 1, or
 * with max_bias > 0 that of head h (Press et al., ALiBi, arXiv 2108.12409,
 * heads counted to the power of two as its authors do). */
GGUF_API struct gguf_tensor *gguf_op_soft_max(struct gguf_ctx *ctx,
                                              struct gguf_tensor *x,
                                              struct gguf_tensor *mask,
                                              float scale, float max_bias);

/* Which elements of a head rotate together. */
enum gguf_rope_kind {
    GGUF_ROPE_NORM = 0, /* 2i and 2i + 1 */
    GGUF_ROPE_NEOX = 1  /* i and i + n_dims / 2 */
};

/* Rotary embedding (Su et al., arXiv 2104.09864), with YaRN (Peng et al.,
 * arXiv 2309.00071). Pair i of a token at position p turns by the angle
 *
 *   theta_i  = p * freq_base^(-2i / n_dims) / freq_factor_i
 *   angle    = (1 - g) * freq_scale * theta_i + g * theta_i
 *   g        = ext_factor * (1 - ramp(i)), 0 if ext_factor is 0
 *   ramp(i)  = clamp((i - low) / max(0.001, high - low), 0, 1)
 *   low, high = floor, ceil of n_dims ln(n_ctx_orig / (beta 2 pi)) /
 *               (2 ln freq_base), beta = beta_fast, beta_slow, clamped to
 *               [0, n_dims - 1]
 *
 * and is scaled by attn_factor, with ext_factor != 0 times
 * 1 + 0.1 ln(1 / freq_scale). Elements from n_dims on are copied. */
struct gguf_rope {
    int32_t n_dims;     /* elements per head that rotate: even, <= d */
    int32_t kind;       /* GGUF_ROPE_... */
    int32_t n_ctx_orig; /* context the model was trained on; YaRN only */
    float freq_base;
    float freq_scale;   /* 1: as trained */
    float ext_factor;   /* 0: no YaRN */
    float attn_factor;
    float beta_fast, beta_slow;
    int32_t sections[4]; /* 0 */
};
#define GGUF_ROPE_INIT                                                        \
    { 0, GGUF_ROPE_NORM, 0, 10000.0f, 1.0f, 0.0f, 1.0f, 32.0f, 1.0f,          \
      { 0, 0, 0, 0 } }

/* x [d, n_head, n_tok, s], pos i32 [n_tok], freq_factors f32 [>= n_dims / 2]
 * or NULL (all 1) -> x's shape. rope is copied. */
GGUF_API struct gguf_tensor *gguf_op_rope(struct gguf_ctx *ctx,
                                          struct gguf_tensor *x,
                                          struct gguf_tensor *pos,
                                          struct gguf_tensor *freq_factors,
                                          const struct gguf_rope *rope);

/* --- products ------------------------------------------------------------- */

/* a [k, m, a2, a3] of any type that decodes, b f32 [k, n, b2, b3] ->
 * [m, n, b2, b3]: element (i, j) is the dot product of row i of a and row j of
 * b. b2 is a multiple of a2, b3 of a3: slice (i2, i3) of b meets slice
 * (i2 / (b2 / a2), i3 / (b3 / a3)) of a, as grouped heads do. Rows of both
 * are contiguous in memory, all else may be strided. */
GGUF_API struct gguf_tensor *gguf_op_matmul(struct gguf_ctx *ctx,
                                            struct gguf_tensor *a,
                                            struct gguf_tensor *b);

/* A matrix for each column, by number: a [k, m, n_expert], b f32 [k, n_b,
 * n_tok], ids i32 [n_used, n_tok] -> [m, n_used, n_tok]: column (u, t) is
 * matrix ids[u, t] times column (u mod n_b, t) of b; n_b divides n_used. A
 * number that is not in [0, n_expert) fails the computation. */
GGUF_API struct gguf_tensor *gguf_op_matmul_id(struct gguf_ctx *ctx,
                                               struct gguf_tensor *a,
                                               struct gguf_tensor *b,
                                               struct gguf_tensor *ids);

/* softmax(q k^T * scale + slope * mask) v for every head, without the matrix
 * of weights in memory.
 *   q     f32 [d, n_tok, n_head, n_seq]
 *   k     [d, n_kv, n_head_kv, n_seq], f32, f16 or another type that decodes
 *   v     [dv, n_kv, n_head_kv, n_seq], likewise
 *   mask  f32 or f16 [n_kv, >= n_tok, 1, n_seq or 1], or NULL: added
 * -> [dv, n_head, n_tok, n_seq]. n_head is a multiple of n_head_kv; head h
 * reads h / (n_head / n_head_kv). slope as with soft_max; softcap != 0
 * replaces the scaled product x by softcap * tanh(x / softcap) before the
 * mask. A row whose mask is -inf everywhere gives zeros. Rows of q, k, v are
 * contiguous in memory, all else may be strided. */
GGUF_API struct gguf_tensor *
gguf_op_attention(struct gguf_ctx *ctx, struct gguf_tensor *q,
                  struct gguf_tensor *k, struct gguf_tensor *v,
                  struct gguf_tensor *mask, float scale, float max_bias,
                  float softcap);

/* Parameters as the builders store them in op_params, for backends. */
struct gguf_attn_params {
    float scale, max_bias, softcap;
};
struct gguf_soft_max_params {
    float scale, max_bias;
};

#ifdef __cplusplus
}
#endif
#endif
