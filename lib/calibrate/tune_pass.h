/* SPDX-License-Identifier: MIT */
/* tune_pass.h - gradients of the divergence from an original model
 *
 * The divergence is KL(p || q): p are the predictions of the original, q those
 * of the quantized model. Its gradient by the logits of q is q - p. It is taken
 * back through the quantized model, and summed for the tensors of the pass.
 *
 *     gg_tune_pass_init(&t, &params, err);
 *     gg_tune_pass_check(&t, &batch, err);   can the model be derived?
 *     gg_tune_pass_run(&t, &batch, ...);     once or more
 *     gg_tune_pass_step(&t, rate);
 *     gg_tune_pass_fini(&t);
 *
 * Results do not depend on the number of threads. One thread at a time may use
 * the pass, its sessions and its tensors. */
#ifndef GG_CALIBRATE_TUNE_PASS_H
#define GG_CALIBRATE_TUNE_PASS_H

#include "calibrate/tune_tensor.h"

struct gg_tune_pass_params {
    /* Sessions of both models, on one backend each; kept. */
    struct gguf_session *original, *quantized;
    struct gg_tune_tensor *tensor; /* [n_tensors]; kept */
    size_t n_tensors;
    struct gguf_pool *pool; /* NULL: the calling thread */
    const struct gguf_allocator *allocator;
    size_t most_tokens; /* tokens of a batch, at most */
};

struct gg_tune_pass {
    struct gg_tune_pass_params p;
    struct gg_linalg la;
    struct gg_backward *backward;
    double *divergence; /* [most_tokens] of the batch */
    double weight;      /* factor of a token */
    const bool *used;   /* [tokens of the batch]; NULL: all */
    double sum;         /* sum of the weighted divergences of the batch */
};

/* GGUF_E_UNSUPPORTED, GGUF_E_NOMEM. gg_tune_pass_fini() must follow a failure,
 * too. */
enum gguf_status gg_tune_pass_init(struct gg_tune_pass *t,
                                   const struct gg_tune_pass_params *p,
                                   struct gguf_error *err);
void gg_tune_pass_fini(struct gg_tune_pass *t);

/* Can gradients be computed? Fails as gg_backward_check(). */
enum gguf_status gg_tune_pass_check(struct gg_tune_pass *t,
                                    const struct gguf_batch *batch,
                                    struct gguf_error *err);

/* Add the gradients of a batch to those of the tensors.
 *
 * batch    one sequence; all tokens are wanted
 * used     tokens that count; NULL: all
 * weight   factor of a token's divergence, such as 1 / number of tokens
 * sum      receives the weighted sum of the divergences
 *
 * Fails as gg_backward_run() and gguf_session_decode(). */
enum gguf_status gg_tune_pass_run(struct gg_tune_pass *t,
                                  const struct gguf_batch *batch,
                                  const bool *used, double weight, double *sum,
                                  struct gguf_error *err);

/* Make a step of all tensors. Returns false if a gradient was NaN or infinite,
 * or could not be computed: some tensors may have changed. */
bool gg_tune_pass_step(struct gg_tune_pass *t, double rate_blocks,
                       double rate_vectors);

#endif
