/* SPDX-License-Identifier: MIT */
/* vec.h - kernels on rows of f32: elementwise maths and reductions
 *
 * n counts floats and may be 0. No pointer needs alignment. y may be the same
 * row as an input (in place) but must not overlap one in part. NaN and
 * infinity go through as in IEEE arithmetic. Any thread.
 *
 * Contracts (tests/kern): EXACT: the same bits as the C reference at every
 * level; ULP(n): within n units in the last place of the true value; SUM: the
 * error bound of any order of summation. Reductions but dot and exp_mul add up
 * in double. At one level the result of a row is a function of the row alone.
 */
#ifndef GG_KERN_VEC_H
#define GG_KERN_VEC_H

#include <stddef.h>
#include <stdint.h>

/* y = a + b, a * b. EXACT. */
typedef void gg_vec_binary_fn(float *y, const float *a, const float *b,
                              size_t n);

/* y = x * scale + bias, rounded twice. EXACT. */
typedef void gg_vec_scale_fn(float *y, const float *x, size_t n, float scale,
                             float bias);

/* Unary functions of rows.
 *
 * silu       y = x / (1 + exp(-x)), ULP(4); -0 where exp overflows, which is
 *            below -88.72 and for -infinity
 * softplus   y = ln(1 + exp(x)), ULP(4)
 * tanh       y = tanh(x), ULP(4) */
typedef void gg_vec_unary_fn(float *y, const float *x, size_t n);

/* y = silu(gate) * up, the product of the rounded silu. */
typedef void gg_vec_glu_fn(float *y, const float *gate, const float *up,
                           size_t n);

/* Largest element, -infinity for n = 0; NaN elements may be ignored. */
typedef float gg_vec_max_fn(const float *x, size_t n);

/* Sum of the elements. SUM with double's epsilon. */
typedef double gg_vec_sum_fn(const float *x, size_t n);

/* sum of x * y. SUM. */
typedef float gg_vec_dot_fn(const float *x, const float *y, size_t n);

/* y = exp(x - max), with gradual underflow. Each is ULP(2) of exp of the
 * rounded difference. Returns their sum. y NULL: only the sum. */
typedef double gg_vec_exp_sum_fn(float *y, const float *x, size_t n,
                                 float max);

/* y = exp(x - max) * f: exp as in gg_vec_exp_sum_fn, then the product is
 * rounded. Returns the sum of exp in f32, added lane by lane in order of x. n
 * is at most 128. */
typedef float gg_vec_exp_mul_fn(float *y, const float *x, const float *f,
                                size_t n, float max);

/* y = x * scale + slope * mask, with both products rounded. EXACT. mask NULL: y
 * = x * scale. Returns the largest y; NaN elements may be ignored. */
typedef float gg_vec_scores_fn(float *y, const float *x, const float *mask,
                               size_t n, float scale, float slope);

/* y = exp(s - max s) / sum of exp, where s are the scores of gg_vec_scores_fn.
 * A row of -infinity gives zeros. ULP(4) of the true quotient of the scores. */
typedef void gg_vec_soft_max_fn(float *y, const float *x, const float *mask,
                                size_t n, float scale, float slope);

/* y = x * (1 / sqrt(mean of squares + eps)) * weight. n > 0. weight NULL: no
 * weight. */
typedef void gg_vec_rms_norm_fn(float *y, const float *x, const float *weight,
                                size_t n, float eps);

/* Rotate n_pairs pairs (a, b) by the angles whose cosine and sine are given:
 * (a*c - b*s, a*s + b*c), products rounded. Pair i is x[2i], x[2i + 1]
 * (rope_norm) or x[i], x[n_pairs + i] (rope_neox). In place or apart. EXACT. */
typedef void gg_vec_rope_fn(float *y, const float *x, const float *cosine,
                            const float *sine, size_t n_pairs);

/* y[i] = sum over j of w[j * w_stride + i] x[j * x_stride + i], for n_taps > 0
 * values of j in order. Each product and sum is rounded. y overlaps neither
 * input. EXACT. */
typedef void gg_vec_taps_fn(float *y, const float *x, size_t x_stride,
                            const float *w, size_t w_stride, size_t n_taps,
                            size_t n);

/* Gated delta rule (gguf/op_recur.h): n_rows values of one head over n_tok
 * tokens in order.
 *
 * Terms that all values share are computed once by the caller: gk = g k and gq
 * = g q, elementwise, with q times 1 / sqrt(n), and kq, the product of k and q.
 * Value i has a state s of n numbers, which each token updates:
 *
 *     e = beta (v[i] - sum of s gk)
 *     y[i] = sum of s gq + e kq
 *     s = g s + e k
 *
 * Products are rounded as floats (FMA or not), sums may have any order. A value
 * does not depend on its neighbours, nor on how tokens are divided among calls.
 * Without tokens s is not written. SUM. */
struct gg_vec_delta {
    size_t n, n_rows, n_tok;
    const float *from;            /* [n_rows][n]: s before; or s itself */
    float *s;                     /* [n_rows][n], after the last token */
    const float *g, *k, *gk, *gq; /* [n_tok][n] */
    const float *beta, *kq;       /* [n_tok] */
    const float *v;               /* [n_tok][v_stride], n_rows of each */
    float *y;                     /* [n_tok][y_stride], likewise */
    size_t v_stride, y_stride;
};
typedef void gg_vec_delta_fn(const struct gg_vec_delta *p);

/* Selective scan (gguf/op_recur.h): n_rows rows of a state of n numbers each,
 * over n_tok tokens in order. Token t updates row r:
 *
 *     s[i] = s[i] decay + b[i] x
 *     y = sum of s[i] c[i]
 *
 * decay is exp(step a[i]), rounded; if a is NULL, it is decay[t] for all rows.
 * A row does not depend on other rows, nor on how tokens are divided among
 * calls. Without tokens s is not written. SUM. */
struct gg_vec_scan {
    size_t n, n_rows, n_tok;
    const float *from;     /* [n_rows][n]: s before; or s itself */
    float *s;              /* [n_rows][n], after the last token */
    const float *a;        /* [n_rows][a_stride], n of each, or NULL */
    const float *step, *x; /* [n_tok][stride], n_rows of each: the time step,
                            * and the input times it */
    const float *decay;    /* [n_tok], read in any case */
    const float *b, *c; /* [n_tok][b_stride], [n_tok][c_stride], n of each */
    float *y;           /* [n_tok][y_stride], n_rows of each */
    size_t a_stride, stride, b_stride, c_stride, y_stride;
};
typedef void gg_vec_scan_fn(const struct gg_vec_scan *p);

/* RWKV-7 (gguf/op_recur.h): n_rows values of one head over n_tok tokens.
 *
 * Terms that all values share are computed once by the caller: wr = w r,
 * elementwise, and kr and br, the products of k and of b with r. Value i has a
 * state s of n numbers, which each token updates:
 *
 *     e = sum of s a
 *     y[i] = sum of s wr + v[i] kr + e br
 *     s = w s + v[i] k + e b
 *
 * Independence of rows and calls as for gg_vec_delta. SUM. */
struct gg_vec_wkv7 {
    size_t n, n_rows, n_tok;
    const float *from;               /* [n_rows][n]: s before; or s itself */
    float *s;                        /* [n_rows][n], after the last token */
    const float *w, *k, *a, *b, *wr; /* [n_tok][n] */
    const float *kr, *br;            /* [n_tok] */
    const float *v;                  /* [n_tok][v_stride], n_rows of each */
    float *y;                        /* [n_tok][y_stride], n_rows of each */
    size_t v_stride, y_stride;
};
typedef void gg_vec_wkv7_fn(const struct gg_vec_wkv7 *p);

/* RWKV-6 and gated linear attention (gguf/op_recur.h): a head with n rows s of
 * n numbers, one row for each element of k, one number for each of v. Each
 * token computes
 *
 *     y = own v + sum over rows of r s
 *     s = w s + k v
 *
 * where own is the product of r, u and k. If own is NULL, y is the sum of r s
 * after the update. The result does not depend on how tokens are divided among
 * calls. Without tokens s is not written. SUM. */
struct gg_vec_wkv6 {
    size_t n, n_tok;
    const float *from;      /* [n][n]: s before; or s itself */
    float *s;               /* [n][n], after the last token */
    const float *r, *k, *w; /* [n_tok][n] */
    const float *own;       /* [n_tok], or NULL */
    const float *v;         /* [n_tok][v_stride], n of each */
    float *y;               /* [n_tok][y_stride], n of each */
    size_t v_stride, y_stride;
};
typedef void gg_vec_wkv6_fn(const struct gg_vec_wkv6 *p);

/* X(TYPE, NAME): the kernel NAME is a gg_vec_TYPE_fn, gg_vec_NAME_LEVEL at
 * every level. */
#define GG_VEC_LIST(X)                                                        \
    X(binary, add)                                                            \
    X(binary, mul)                                                            \
    X(scale, scale)                                                           \
    X(unary, silu)                                                            \
    X(glu, swiglu)                                                            \
    X(max, max)                                                               \
    X(sum, sum)                                                               \
    X(dot, dot)                                                               \
    X(exp_sum, exp_sum)                                                       \
    X(exp_mul, exp_mul)                                                       \
    X(scores, scores)                                                         \
    X(soft_max, soft_max)                                                     \
    X(rms_norm, rms_norm)                                                     \
    X(rope, rope_norm)                                                        \
    X(rope, rope_neox)                                                        \
    X(taps, taps)                                                             \
    X(delta, delta)                                                           \
    X(unary, softplus)                                                        \
    X(unary, tanh)                                                            \
    X(scan, scan)                                                             \
    X(wkv7, wkv7)                                                             \
    X(wkv6, wkv6)

struct gg_vec_kern {
#define X(TYPE, NAME) gg_vec_##TYPE##_fn *NAME;
    GG_VEC_LIST(X)
#undef X
};

#define X(TYPE, NAME)                                                         \
    gg_vec_##TYPE##_fn gg_vec_##NAME##_c, gg_vec_##NAME##_256,                \
        gg_vec_##NAME##_avx512;
GG_VEC_LIST(X)
#undef X

void gg_vec_kern_init(struct gg_vec_kern *k, uint32_t cpu);

#endif
