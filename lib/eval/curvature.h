/* SPDX-License-Identifier: MIT */
/* curvature.h - output-side curvature of a model's matrices
 *
 * For small changes of its weights, the divergence of a model from itself is
 * half a quadratic form in the Fisher information. For a change E of a matrix,
 * whose inputs have the second moments S = E[x x'], it is nearly
 *
 *     KL per token = 1/2 tr(H E S E')      H = E[g g']
 *
 * where g is the gradient of -log p(y) by the matrix's output, for tokens y
 * drawn from the model's own distribution p (Martens and Grosse, arXiv
 * 1503.05671; for quantization: Tseng et al., YAQA, arXiv 2505.22988). H is
 * kept in diagonal blocks of GG_CURVATURE_BLOCK outputs. Its trace divided by
 * the number of outputs is the matrix's sensitivity: the divergence of noise of
 * variance v at each output is 1/2 tr(H) v.
 *
 * For the token embedding the rows that are looked up take the place of
 * outputs: the divergence of an error e of a row is 1/2 e' M e, M = E[g g'].
 *
 *     gg_curvature_create(&c, &params, &err);
 *     h = gg_curvature_blocks(c, "blk.0.attn_q.weight", &n_outputs);
 *     gg_curvature_destroy(c);
 *
 * Results do not depend on the number of threads; for vector units see
 * linalg/linalg.h. One thread at a time may create the object. */
#ifndef GG_EVAL_CURVATURE_H
#define GG_EVAL_CURVATURE_H

#include "gguf/progress.h"
#include "gguf/session.h"

enum { GG_CURVATURE_BLOCK = 64 };

struct gg_curvature_params {
    struct gguf_session *session; /* its sequences are cleared */
    /* [n_batches] one sequence each, at most a micro-batch of tokens. Outputs
     * of all tokens are used, whatever the batch wants. */
    const struct gguf_batch *batches;
    size_t n_batches;       /* 1 or more */
    struct gguf_pool *pool; /* threads of the sums; NULL: the calling thread */
    uint64_t seed;          /* seed of the drawn tokens */
    bool has_embedding;     /* sum the metric of the token embedding */
    struct gguf_progress_callback progress; /* done and all tokens; fn NULL:
                                               none */
    const struct gguf_allocator *allocator; /* NULL: malloc */
};

struct gg_curvature;

/* Compute the curvature of all matrices.
 *
 * GGUF_OK             *out is created.
 * GGUF_E_UNSUPPORTED  An operation of the model has no gradient, which the
 *                     message names; or as gg_backward_create() fails.
 * GGUF_E_NONFINITE    A gradient is NaN or infinite; the message names the
 *                     matrix.
 * GGUF_E_CANCELLED    progress returned true.
 * GGUF_E_NOMEM        Out of memory.
 *
 * Fails otherwise as gguf_session_decode() does. */
enum gguf_status gg_curvature_create(struct gg_curvature **out,
                                     const struct gg_curvature_params *params,
                                     struct gguf_error *err);
/* Free the object. NULL is allowed. */
void gg_curvature_destroy(struct gg_curvature *c);

/* Diagonal blocks of H for a matrix: [n_outputs / 64, rounded up] symmetric
 * matrices [64][64], whose rows and columns beyond n_outputs are 0. Each is the
 * mean over all columns of the product: tokens, or for experts tokens times the
 * chosen experts, all experts together. NULL: no product with it was computed.
 * The name is that of the tensor. */
const float *gg_curvature_blocks(const struct gg_curvature *c,
                                 const char *name, size_t *n_outputs);

/* tr(H) / n_outputs. Negative: no product with it was computed. */
double gg_curvature_sensitivity(const struct gg_curvature *c,
                                const char *name);

/* Metric of the token embedding, [n][n] symmetric, a mean over tokens. NULL:
 * not summed, or no token was looked up. */
const float *gg_curvature_embedding(const struct gg_curvature *c, size_t *n);

/* Number of matrices, and name of matrix i. */
size_t gg_curvature_count(const struct gg_curvature *c);
const char *gg_curvature_name(const struct gg_curvature *c, size_t i);

#endif
