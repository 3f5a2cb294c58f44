/* SPDX-License-Identifier: MIT */
/* op_elem.h - elementwise functions and gates
 *
 * x and y are elements of a and b at the same index. op.h explains the notation
 * and the failures that all builders have.
 */
#ifndef GGUF_OP_ELEM_H
#define GGUF_OP_ELEM_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- arithmetic of two sources -------------------------------------------- */

/* Arithmetic of two tensors.
 *
 *   a   float, any shape
 *   b   float, broadcasts to a
 *   ->  shape and type of a */
GGUF_BUILDER_2(gguf_op_add); /* x + y */
GGUF_BUILDER_2(gguf_op_sub); /* x - y */
GGUF_BUILDER_2(gguf_op_mul); /* x * y */
GGUF_BUILDER_2(gguf_op_div); /* x / y */

/* --- gates ---------------------------------------------------------------- */

/* Gated linear units (Shazeer, arXiv 2002.05202).
 *
 *   a   float, the gate
 *   b   float, shape of a
 *   ->  shape and type of a */
GGUF_BUILDER_2(gguf_op_swiglu);      /* silu(x) * y */
GGUF_BUILDER_2(gguf_op_geglu);       /* gelu(x) * y */
GGUF_BUILDER_2(gguf_op_geglu_erf);   /* gelu_erf(x) * y */
GGUF_BUILDER_2(gguf_op_geglu_quick); /* gelu_quick(x) * y */
GGUF_BUILDER_2(gguf_op_reglu);       /* relu(x) * y */

/* Clamped gated unit of OpenAI's gpt-oss (torch/model.py, swiglu):
 *
 *     g / (1 + exp(-alpha * g)) * (u + 1)
 *     g = min(x, limit)    u = min(max(y, -limit), limit)
 *
 *   a       float, the gate
 *   b       float, shape of a
 *   alpha   factor in the sigmoid
 *   limit   bound of both, >= 0
 *   ->      shape and type of a */
GGUF_API struct gguf_tensor *gguf_op_swiglu_oai(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a,
                                                struct gguf_tensor *b,
                                                float alpha, float limit);

/* --- functions of one source ---------------------------------------------- */

/* Functions of one tensor. The three gelu forms are from Hendrycks and Gimpel,
 * arXiv 1606.08415.
 *
 *   a   float, any shape
 *   ->  shape and type of a */
GGUF_BUILDER_1(gguf_op_silu); /* x / (1 + exp(-x)) */
/* x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) */
GGUF_BUILDER_1(gguf_op_gelu);
GGUF_BUILDER_1(gguf_op_gelu_erf);   /* x/2 * (1 + erf(x / sqrt(2))) */
GGUF_BUILDER_1(gguf_op_gelu_quick); /* x / (1 + exp(-1.702 x)) */
GGUF_BUILDER_1(gguf_op_relu);       /* max(x, 0) */
GGUF_BUILDER_1(gguf_op_relu_sqr);   /* max(x, 0)^2 */
GGUF_BUILDER_1(gguf_op_sigmoid);    /* 1 / (1 + exp(-x)) */
GGUF_BUILDER_1(gguf_op_tanh);       /* tanh(x) */
GGUF_BUILDER_1(gguf_op_elu);        /* x for x > 0, else exp(x) - 1 */
GGUF_BUILDER_1(gguf_op_softplus);   /* ln(1 + exp(x)) */
GGUF_BUILDER_1(gguf_op_neg);        /* -x */
GGUF_BUILDER_1(gguf_op_abs);        /* |x| */
GGUF_BUILDER_1(gguf_op_sqr);        /* x^2 */
GGUF_BUILDER_1(gguf_op_sqrt);       /* sqrt(x); NaN below 0 */
GGUF_BUILDER_1(gguf_op_exp);        /* e^x */
GGUF_BUILDER_1(gguf_op_log);        /* natural logarithm of x */
GGUF_BUILDER_1(gguf_op_sin);        /* sine of x radians */
GGUF_BUILDER_1(gguf_op_cos);        /* cosine of x radians */

/* Multiply by a constant: s * x, rounded once.
 *
 *   a   float, any shape
 *   ->  shape and type of a */
GGUF_API struct gguf_tensor *gguf_op_scale(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a, float s);

/* Leaky ReLU: x for x > 0, else slope * x.
 *
 *   a   float, any shape
 *   ->  shape and type of a */
GGUF_API struct gguf_tensor *
gguf_op_leaky_relu(struct gguf_ctx *ctx, struct gguf_tensor *a, float slope);

/* Clamp: min(max(x, low), high).
 *
 *   a           float, any shape
 *   low, high   bounds, low <= high
 *   ->          shape and type of a */
GGUF_API struct gguf_tensor *gguf_op_clamp(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a, float low,
                                           float high);

/* xIELU (Huang and Schlag, arXiv 2411.13010), with p = softplus(alpha_p) and
 * n = beta + softplus(alpha_n):
 *
 *     p * x^2 + beta * x                                for x > 0
 *     n * (exp(min(x, eps)) - 1 - x) + beta * x         otherwise
 *
 *   a         float, any shape
 *   alpha_n   learned parameter of the negative side
 *   alpha_p   learned parameter of the positive side
 *   beta      slope at 0
 *   eps       small negative number; the models that use xIELU have -1e-6
 *   ->        shape and type of a */
GGUF_API struct gguf_tensor *gguf_op_xielu(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a,
                                           float alpha_n, float alpha_p,
                                           float beta, float eps);

#ifdef __cplusplus
}
#endif
#endif
