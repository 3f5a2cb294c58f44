/* SPDX-License-Identifier: MIT */
/* attn.h - attention without the matrix of weights in memory
 *
 * For each sequence, head h and token t
 *
 *     s[i] = scale * sum over p of q[t][p] * k[i][p]
 *     s[i] = softcap * tanh(s[i] / softcap)        if softcap is not 0
 *     s[i] = s[i] + slope(h) * mask[h][t][i]       if there is a mask
 *     out[t] = sum over i of exp(s[i]) * v[i] / sum over i of exp(s[i])
 *
 * and with attention sinks the last sum has one more term, exp(sinks[h]). Head
 * h reads the keys and values of head h / (n_head / n_head_kv).
 *
 * Keys are processed in blocks of fixed length with a running maximum (online
 * softmax: Milakov and Gimelshein 2018; Dao et al. 2022). Blocks whose mask is
 * closed for all tokens of a task are skipped. Sums are f32, except that of
 * exp, which is double. Their order depends on the shapes and on the level of
 * the kernels alone: neither the number of threads nor other tokens change the
 * bits of a token's result.
 */
#ifndef GG_CPU_ATTN_H
#define GG_CPU_ATTN_H

#include "kern/kern.h"

#include <stdbool.h>

struct gg_barrier; /* base/barrier.h */

/* Arguments. Rows are contiguous, strides are bytes. q and out are f32, their
 * strides multiples of 4. k and v have any type with a decode kernel and
 * without a row header. */
struct gg_attn_args {
    const struct gg_kern *kern;
    bool
        ints; /* both products use integers (kern/attn_i16.h), which requires d
                  of at most GG_ATTN_I16_MOST_STEPS; false: exact */
    const void *q, *k, *v; /* rows of d, d and dv elements */
    size_t q_nb[3];        /* strides of token, head, sequence */
    size_t k_nb[3];        /* strides of position, head, sequence */
    size_t v_nb[3];        /* strides of position, head, sequence */
    int k_type, v_type;    /* GG_DT_... */
    const void *mask;      /* rows of n_kv elements; NULL: no mask */
    size_t mask_nb[3];     /* strides of token, head, sequence; 0: one mask for
                              all */
    size_t mask_kv_nb;     /* stride of key head; 0: one mask for all */
    int mask_type;         /* GG_DT_F32 or GG_DT_F16 */
    const float *sinks;    /* n_head attention sinks; NULL: no sinks */
    float *out;            /* rows of dv elements; overlaps no input */
    size_t out_nb[3];      /* strides of head, token, sequence */
    int64_t d;             /* elements of a row of q and k */
    int64_t dv;            /* elements of a row of v and out */
    int64_t n_tok, n_kv, n_seq;
    int64_t n_head;    /* heads of queries, a multiple of n_head_kv */
    int64_t n_head_kv; /* heads of keys and values */
    float scale, max_bias, softcap; /* gguf_op_attention() */
};

/* Bytes of scratch for nth threads. */
size_t gg_attn_work_size(const struct gg_attn_args *a, unsigned nth);

/* Compute the share of one thread.
 *
 * ith       Index of the thread.
 * work      gg_attn_work_size() bytes for all threads; the contents are
 *           ignored and lost.
 * barrier   Barrier of all threads. NULL: there is one thread.
 *
 * Returns when this thread has no more to do. Others may still write out and
 * read work: a barrier must follow before either is used. */
void gg_attn_run(const struct gg_attn_args *a, unsigned ith, void *work,
                 struct gg_barrier *barrier);

/* ALiBi slope of a head (Press et al. 2022, section 3, and their code). 1 if
 * max_bias is 0. Otherwise, with n the largest power of two up to n_head,
 * 2^(-max_bias (h + 1) / n) for head h below n; heads from n on have the odd
 * steps of the sequence for 2n. */
float gg_attn_slope(float max_bias, int64_t head, int64_t n_head);

#endif
