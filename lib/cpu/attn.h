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
 * where with sinks the last sum has one more term, exp(sinks[h]).
 * Head h reads the keys and values of head h / (n_head / n_head_kv). Keys are
 * taken in blocks of fixed length with a running maximum (Milakov and
 * Gimelshein 2018; Dao et al. 2022); a block that the mask closes to all
 * tokens at hand is passed over. Sums are taken in f32 (of exp: double), in an
 * order that depends on nothing but the shapes and the level of the kernels:
 * neither the number of threads nor other tokens change the bits of a token's
 * result.
 */
#ifndef GG_CPU_ATTN_H
#define GG_CPU_ATTN_H

#include "kern/kern.h"

#include <stdbool.h>

struct gg_barrier; /* base/barrier.h */

struct gg_attn_args {
    const struct gg_kern *kern;
    bool ints; /* both products are of integers (kern/attn_i16.h), and exact
                * otherwise; d is at most GG_ATTN_I16_MOST_STEPS then */
    /* Rows are contiguous; strides are bytes, in the order of the comment.
     * q and out are f32 with strides that are multiples of 4, k and v of any
     * type with a decode kernel and no row header. */
    const void *q, *k, *v;
    size_t q_nb[3];     /* token, head, sequence */
    size_t k_nb[3];     /* position, head, sequence */
    size_t v_nb[3];     /* position, head, sequence */
    int k_type, v_type; /* GG_DT_... */
    const void *mask;   /* rows of n_kv, or NULL */
    size_t mask_nb[3];  /* token, head, sequence (0: the same for all) */
    size_t mask_kv_nb;  /* head of keys, if masks differ by these */
    int mask_type;      /* GG_DT_F32 or GG_DT_F16 */
    const float *sinks; /* [n_head], or NULL */
    float *out;         /* rows of dv; overlaps no input */
    size_t out_nb[3];   /* head, token, sequence */
    int64_t d, dv;      /* elements of a row of q and k, of v and out */
    int64_t n_tok, n_kv, n_seq;
    int64_t n_head, n_head_kv; /* the first a multiple of the second */
    float scale, max_bias, softcap;
};

/* Bytes of scratch for nth threads. */
size_t gg_attn_work_size(const struct gg_attn_args *a, unsigned nth);

/* Member ith of the barrier's threads (NULL: of one), otherwise as
 * gg_cpu_gemm_run in cpu/matmul.h. */
void gg_attn_run(const struct gg_attn_args *a, unsigned ith, void *work,
                 struct gg_barrier *barrier);

/* Slope of head h for ALiBi: 1 if max_bias is 0; else, with n = n_head rounded
 * down to a power of two, 2^(-max_bias (h + 1) / n), and for the heads beyond
 * n the odd steps of the sequence for 2n (Press et al. 2022, section 3, and
 * their code). */
float gg_attn_slope(float max_bias, int64_t head, int64_t n_head);

#endif
