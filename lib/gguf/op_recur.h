/* SPDX-License-Identifier: MIT */
/* op_recur.h - state-space models and linear attention: recurrences over
 * tokens
 *
 * Conventions: op.h. All sources are of float types, any strides; sums are
 * taken in f32. A recurrence reads the state before its first token and gives
 * the results of its tokens and, in *new_state (may be NULL), the state after
 * the last: both views of one node, contiguous f32. state is not changed:
 * *new_state may be copied over it (gguf_op_cpy) in the same graph. In the
 * formulas S is the state of one head of one sequence, exp and products are
 * taken element by element, and t counts tokens.
 */
#ifndef GGUF_OP_RECUR_H
#define GGUF_OP_RECUR_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- state spaces (Mamba) ------------------------------------------------- */

/* A causal convolution of each channel with its own kernel: x [n_conv - 1 +
 * n_tok, n, n_seq], which begins with the last n_conv - 1 elements of what
 * came before; kernel [n_conv, n] -> [n, n_tok, n_seq]:
 *   y[i, t] = sum over k of kernel[k, i] x[t + k, i]
 * Fastest where x is a view in which a token's elements lie side by side, as
 * gguf_op_transpose makes it of [n, n_conv - 1 + n_tok, n_seq]. */
GGUF_API struct gguf_tensor *gguf_op_ssm_conv(struct gguf_ctx *ctx,
                                              struct gguf_tensor *x,
                                              struct gguf_tensor *kernel);

/* Selective scan (Gu and Dao, arXiv 2312.00752; with one a for each head Dao
 * and Gu, arXiv 2405.21060). For head h, group g = h / (n_head / n_group):
 *
 *   d = softplus(dt[h, t])
 *   S[n, p] = S[n, p] exp(d a[n, h]) + d b[n, g, t] x[p, h, t]
 *   y[p, h, t] = sum over n of c[n, g, t] S[n, p]
 *
 *   state  [d_state, head_dim, n_head, n], n >= 1 states
 *   x      [head_dim, n_head, n_tok, n_seq]
 *   dt     [n_head, n_tok, n_seq]
 *   a      [d_state, n_head] (Mamba-1), or [1, n_head] (Mamba-2); not above 0
 *   b, c   [d_state, n_group, n_tok, n_seq], n_head a multiple of n_group
 *   ids    i32 [n_seq]: which state each sequence begins with; a number that
 *          is not in [0, n) fails the computation
 * -> y of x's shape; *new_state [d_state, head_dim, n_head, n_seq]. */
GGUF_API struct gguf_tensor *
gguf_op_ssm_scan(struct gguf_ctx *ctx, struct gguf_tensor *state,
                 struct gguf_tensor *x, struct gguf_tensor *dt,
                 struct gguf_tensor *a, struct gguf_tensor *b,
                 struct gguf_tensor *c, struct gguf_tensor *ids,
                 struct gguf_tensor **new_state);

/* --- linear attention ----------------------------------------------------- */

/* Heads have s elements: q, r, k, v and all others, unless noted, are [s,
 * n_head, n_tok, n_seq], state [s, s, n_head, n_seq] -> y as v, *new_state as
 * state. i and j count elements of a head. */

/* RWKV-6 (Peng et al., arXiv 2404.05892), u [s, n_head] and w, the decay
 * itself, in (0, 1). S[j, i] is of v's j and k's i:
 *   y[j]    = sum over i of r[i] (u[i] k[i] v[j] + S[j, i])
 *   S[j, i] = w[i] S[j, i] + k[i] v[j] */
GGUF_API struct gguf_tensor *
gguf_op_rwkv_wkv6(struct gguf_ctx *ctx, struct gguf_tensor *r,
                  struct gguf_tensor *k, struct gguf_tensor *v,
                  struct gguf_tensor *u, struct gguf_tensor *w,
                  struct gguf_tensor *state, struct gguf_tensor **new_state);

/* RWKV-7 (Peng et al., arXiv 2503.14456), w the decay itself. S[j, i] is of
 * k's j and v's i:
 *   e[i]    = sum over j of S[j, i] a[j]
 *   S[j, i] = w[j] S[j, i] + k[j] v[i] + b[j] e[i]
 *   y[i]    = sum over j of S[j, i] r[j] */
GGUF_API struct gguf_tensor *
gguf_op_rwkv_wkv7(struct gguf_ctx *ctx, struct gguf_tensor *r,
                  struct gguf_tensor *k, struct gguf_tensor *v,
                  struct gguf_tensor *w, struct gguf_tensor *a,
                  struct gguf_tensor *b, struct gguf_tensor *state,
                  struct gguf_tensor **new_state);

/* Gated linear attention (Yang et al., arXiv 2312.06635), g the gate itself.
 * S[j, i] is of v's j and k's i:
 *   S[j, i] = g[i] S[j, i] + k[i] v[j]
 *   y[j]    = scale * sum over i of q[i] S[j, i] */
GGUF_API struct gguf_tensor *
gguf_op_gated_linear_attn(struct gguf_ctx *ctx, struct gguf_tensor *q,
                          struct gguf_tensor *k, struct gguf_tensor *v,
                          struct gguf_tensor *g, struct gguf_tensor *state,
                          float scale, struct gguf_tensor **new_state);

/* Gated delta rule (Yang et al., arXiv 2412.06464; with a gate for each
 * element of k Kimi Linear, arXiv 2510.26692). g, the gate's logarithm,
 * [1 or s, n_head, n_tok, n_seq], beta [1, n_head, n_tok, n_seq]; q and k may
 * have fewer heads, n_head a multiple of them: head h reads h mod theirs.
 * S[j, i] is of k's j and v's i:
 *   S[j, i] = exp(g[j]) S[j, i]          (g[0] if it is one number)
 *   e[i]    = beta (v[i] - sum over j of S[j, i] k[j])
 *   S[j, i] = S[j, i] + k[j] e[i]
 *   y[i]    = sum over j of S[j, i] q[j] / sqrt(s) */
GGUF_API struct gguf_tensor *
gguf_op_gated_delta(struct gguf_ctx *ctx, struct gguf_tensor *q,
                    struct gguf_tensor *k, struct gguf_tensor *v,
                    struct gguf_tensor *g, struct gguf_tensor *beta,
                    struct gguf_tensor *state, struct gguf_tensor **new_state);

#ifdef __cplusplus
}
#endif
#endif
