/* SPDX-License-Identifier: MIT */
/* op_recur.h - state-space models and linear attention: recurrences over tokens
 *
 * A recurrence reads the state before its first token. It returns the results
 * of its tokens and, through new_state, the state after its last token: two
 * views of one node, contiguous and f32. The given state is not changed. To
 * carry a state from batch to batch, copy *new_state over it in the same graph:
 *
 *     y = gguf_op_gated_delta(ctx, q, k, v, g, beta, state, &new_state);
 *     gguf_graph_add(graph, gguf_op_cpy(ctx, new_state, state));
 *
 * In the formulas, S is the state of one head of one sequence, t counts tokens,
 * and exp and products are elementwise. All sources are floats of any strides;
 * sums are taken in f32. op.h explains the notation and the failures that all
 * builders have.
 */
#ifndef GGUF_OP_RECUR_H
#define GGUF_OP_RECUR_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- state-space models (Mamba) ------------------------------------------- */

/* Causal convolution of each channel with a kernel of its own:
 *
 *     y[i, t] = sum over k of kernel[k, i] * x[t + k, i]
 *
 *   x        [n_conv - 1 + n_tok, n, n_seq]: the last n_conv - 1 elements
 *            before the batch, then those of the batch
 *   kernel   [n_conv, n]
 *   ->       [n, n_tok, n_seq]
 *
 * It is fastest if x is a view whose tokens have adjacent elements, such as
 * gguf_op_transpose() of [n, n_conv - 1 + n_tok, n_seq]. */
GGUF_API struct gguf_tensor *gguf_op_ssm_conv(struct gguf_ctx *ctx,
                                              struct gguf_tensor *x,
                                              struct gguf_tensor *kernel);

/* Selective scan (Mamba-1: Gu and Dao, arXiv 2312.00752; Mamba-2, with one a
 * for each head: Dao and Gu, arXiv 2405.21060). For head h of group
 * g = h / (n_head / n_group):
 *
 *     d          = softplus(dt[h, t])
 *     S[n, p]    = S[n, p] * exp(d * a[n, h]) + d * b[n, g, t] * x[p, h, t]
 *     y[p, h, t] = sum over n of c[n, g, t] * S[n, p]
 *
 *   state       [d_state, head_dim, n_head, n_states], n_states >= 1
 *   x           [head_dim, n_head, n_tok, n_seq]
 *   dt          [n_head, n_tok, n_seq]
 *   a           [d_state, n_head] (Mamba-1) or [1, n_head] (Mamba-2), <= 0
 *   b, c        [d_state, n_group, n_tok, n_seq]; n_group divides n_head
 *   ids         i32 [n_seq]: index of each sequence's first state
 *   new_state   receives [d_state, head_dim, n_head, n_seq]. NULL: not
 *               needed
 *   ->          shape of x
 *
 * An index of a state that is out of range makes the computation fail with
 * GGUF_E_INVALID. */
GGUF_API struct gguf_tensor *
gguf_op_ssm_scan(struct gguf_ctx *ctx, struct gguf_tensor *state,
                 struct gguf_tensor *x, struct gguf_tensor *dt,
                 struct gguf_tensor *a, struct gguf_tensor *b,
                 struct gguf_tensor *c, struct gguf_tensor *ids,
                 struct gguf_tensor **new_state);

/* --- linear attention ----------------------------------------------------- */

/* Heads have s elements, counted by i and j. */

/* RWKV-6 (Peng et al., arXiv 2404.05892). S[j, i] belongs to element j of v and
 * element i of k:
 *
 *     y[j]    = sum over i of r[i] * (u[i] * k[i] * v[j] + S[j, i])
 *     S[j, i] = w[i] * S[j, i] + k[i] * v[j]
 *
 *   r, k, v     [s, n_head, n_tok, n_seq]
 *   u           [s, n_head], bonus of the present token
 *   w           [s, n_head, n_tok, n_seq], decay, in (0, 1)
 *   state       [s, s, n_head, n_seq]
 *   new_state   receives the shape of state. NULL: not needed
 *   ->          shape of v */
GGUF_API struct gguf_tensor *
gguf_op_rwkv_wkv6(struct gguf_ctx *ctx, struct gguf_tensor *r,
                  struct gguf_tensor *k, struct gguf_tensor *v,
                  struct gguf_tensor *u, struct gguf_tensor *w,
                  struct gguf_tensor *state, struct gguf_tensor **new_state);

/* RWKV-7 (Peng et al., arXiv 2503.14456). S[j, i] belongs to element j of k and
 * element i of v:
 *
 *     e[i]    = sum over j of S[j, i] * a[j]
 *     S[j, i] = w[j] * S[j, i] + k[j] * v[i] + b[j] * e[i]
 *     y[i]    = sum over j of S[j, i] * r[j]
 *
 *   r, k, v     [s, n_head, n_tok, n_seq]
 *   w           [s, n_head, n_tok, n_seq], decay, in (0, 1)
 *   a, b        [s, n_head, n_tok, n_seq]
 *   state       [s, s, n_head, n_seq]
 *   new_state   receives the shape of state. NULL: not needed
 *   ->          shape of v */
GGUF_API struct gguf_tensor *
gguf_op_rwkv_wkv7(struct gguf_ctx *ctx, struct gguf_tensor *r,
                  struct gguf_tensor *k, struct gguf_tensor *v,
                  struct gguf_tensor *w, struct gguf_tensor *a,
                  struct gguf_tensor *b, struct gguf_tensor *state,
                  struct gguf_tensor **new_state);

/* Gated linear attention (Yang et al., arXiv 2312.06635). S[j, i] belongs to
 * element j of v and element i of k:
 *
 *     S[j, i] = g[i] * S[j, i] + k[i] * v[j]
 *     y[j]    = scale * sum over i of q[i] * S[j, i]
 *
 *   q, k, v     [s, n_head, n_tok, n_seq]
 *   g           [s, n_head, n_tok, n_seq], gate, in (0, 1)
 *   state       [s, s, n_head, n_seq]
 *   scale       factor of the results
 *   new_state   receives the shape of state. NULL: not needed
 *   ->          shape of v */
GGUF_API struct gguf_tensor *
gguf_op_gated_linear_attn(struct gguf_ctx *ctx, struct gguf_tensor *q,
                          struct gguf_tensor *k, struct gguf_tensor *v,
                          struct gguf_tensor *g, struct gguf_tensor *state,
                          float scale, struct gguf_tensor **new_state);

/* Gated delta rule (Yang et al., arXiv 2412.06464; with a gate for each element
 * of k: Kimi Linear, arXiv 2510.26692). S[j, i] belongs to element j of k and
 * element i of v:
 *
 *     S[j, i] = exp(g[j]) * S[j, i]          g[0] if there is one gate
 *     e[i]    = beta * (v[i] - sum over j of S[j, i] * k[j])
 *     S[j, i] = S[j, i] + k[j] * e[i]
 *     y[i]    = sum over j of S[j, i] * q[j] / sqrt(s)
 *
 *   q, k        [s, n_qk, n_tok, n_seq]; n_qk divides n_head, and head h
 *               reads head h mod n_qk
 *   v           [s, n_head, n_tok, n_seq]
 *   g           [1 or s, n_head, n_tok, n_seq], logarithm of the gate
 *   beta        [1, n_head, n_tok, n_seq]
 *   state       [s, s, n_head, n_seq]
 *   new_state   receives the shape of state. NULL: not needed
 *   ->          shape of v */
GGUF_API struct gguf_tensor *
gguf_op_gated_delta(struct gguf_ctx *ctx, struct gguf_tensor *q,
                    struct gguf_tensor *k, struct gguf_tensor *v,
                    struct gguf_tensor *g, struct gguf_tensor *beta,
                    struct gguf_tensor *state, struct gguf_tensor **new_state);

#ifdef __cplusplus
}
#endif
#endif
