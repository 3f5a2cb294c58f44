/* SPDX-License-Identifier: MIT */
/* op_elem.h - operations element by element
 *
 * Conventions: op.h. x, y are elements of a and b.
 */
#ifndef GGUF_OP_ELEM_H
#define GGUF_OP_ELEM_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- two sources ---------------------------------------------------------- */

/* a of any shape, b broadcasts to a; the result has a's shape and type. */
GGUF_BUILDER_2(gguf_op_add); /* x + y */
GGUF_BUILDER_2(gguf_op_sub); /* x - y */
GGUF_BUILDER_2(gguf_op_mul); /* x y */
GGUF_BUILDER_2(gguf_op_div); /* x / y */

/* Gated (Shazeer, arXiv 2002.05202): a is the gate, b has its shape; the
 * result has a's shape and type. */
GGUF_BUILDER_2(gguf_op_swiglu);      /* silu(x) y */
GGUF_BUILDER_2(gguf_op_geglu);       /* gelu(x) y */
GGUF_BUILDER_2(gguf_op_geglu_erf);   /* gelu_erf(x) y */
GGUF_BUILDER_2(gguf_op_geglu_quick); /* gelu_quick(x) y */
GGUF_BUILDER_2(gguf_op_reglu);       /* relu(x) y */
/* Clamped, as in OpenAI's gpt-oss (its torch/model.py, swiglu):
 * g / (1 + exp(-alpha g)) * (u + 1), where g = min(x, limit) and
 * u = min(max(y, -limit), limit); limit >= 0. */
GGUF_API struct gguf_tensor *gguf_op_swiglu_oai(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a,
                                                struct gguf_tensor *b,
                                                float alpha, float limit);

/* --- one source ----------------------------------------------------------- */

/* The result has a's shape and type. The gelu forms are those of Hendrycks and
 * Gimpel, arXiv 1606.08415. */
GGUF_BUILDER_1(gguf_op_silu); /* x / (1 + exp(-x)) */
/* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
GGUF_BUILDER_1(gguf_op_gelu);
GGUF_BUILDER_1(gguf_op_gelu_erf);   /* x/2 (1 + erf(x / sqrt 2)) */
GGUF_BUILDER_1(gguf_op_gelu_quick); /* x / (1 + exp(-1.702 x)) */
GGUF_BUILDER_1(gguf_op_relu);       /* max(x, 0) */
GGUF_BUILDER_1(gguf_op_relu_sqr);   /* max(x, 0)^2 */
GGUF_BUILDER_1(gguf_op_sigmoid);    /* 1 / (1 + exp(-x)) */
GGUF_BUILDER_1(gguf_op_tanh);       /* tanh x */
GGUF_BUILDER_1(gguf_op_elu);        /* x for x > 0, else exp(x) - 1 */
GGUF_BUILDER_1(gguf_op_softplus);   /* ln(1 + exp(x)) */
GGUF_BUILDER_1(gguf_op_neg);        /* -x */
GGUF_BUILDER_1(gguf_op_abs);        /* |x| */
GGUF_BUILDER_1(gguf_op_sqr);        /* x^2 */
GGUF_BUILDER_1(gguf_op_sqrt);       /* NaN below 0 */
GGUF_BUILDER_1(gguf_op_exp);        /* e^x */
GGUF_BUILDER_1(gguf_op_log);        /* natural */
GGUF_BUILDER_1(gguf_op_sin);        /* of radians */
GGUF_BUILDER_1(gguf_op_cos);        /* likewise */

/* s x, one rounding. */
GGUF_API struct gguf_tensor *gguf_op_scale(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a, float s);
/* x for x > 0, else slope x. */
GGUF_API struct gguf_tensor *
gguf_op_leaky_relu(struct gguf_ctx *ctx, struct gguf_tensor *a, float slope);
/* min(max(x, low), high), low <= high. */
GGUF_API struct gguf_tensor *gguf_op_clamp(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a, float low,
                                           float high);
/* Huang and Schlag, arXiv 2411.13010, with p = softplus(alpha_p) and
 * n = beta + softplus(alpha_n) of the learned alphas:
 *   p x^2 + beta x                              for x > 0
 *   n (exp(min(x, eps)) - 1 - x) + beta x       else
 * eps is a small negative number, -1e-6 in the models that use it. */
GGUF_API struct gguf_tensor *gguf_op_xielu(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a,
                                           float alpha_n, float alpha_p,
                                           float beta, float eps);

#ifdef __cplusplus
}
#endif
#endif
