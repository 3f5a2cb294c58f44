/* SPDX-License-Identifier: MIT */
/* sensitivity.h - measure the effect of errors of each weight on predictions
 *
 * gguf_sensitivity_run() measures one number c for each weight tensor that a
 * model multiplies with or looks up rows in, and stores it in importance data
 * (imatrix.h). From it, gguf_quant_fit_size() (target.h) predicts the KL
 * divergence that a type of the tensor costs.
 *
 *     gguf_collect_result(c, &im, &err);                  (collect.h)
 *     gguf_sensitivity_run(im, session, tokens, n, NULL, &err);
 *     gguf_imatrix_save(im, "model.imatrix", GGUF_IMATRIX_GGUF, false, &err);
 *
 * Formula: for a small change d of a result of the model, the divergence of the
 * distributions of the next token is 1/2 d' H d, where H is the Fisher
 * information of the result. An error E of a weight changes the result of its
 * product by d = E x. If H is a multiple of the unit matrix, with trace c m for
 * m rows, the mean over inputs x is 1/2 c tr(E S E'), where S are the second
 * moments of x. imatrix.h has the formula with the diagonal of S.
 *
 * Measurement: the model computes some chunks of a text undisturbed. Then, for
 * each weight, the result of its product is disturbed by a pseudo-random error
 * of the weight, the nodes after it are computed again, and the divergence D of
 * the distributions is computed. c is 2 D / P, where P is the error's tr(E S
 * E'). No gradient is needed. The error resembles that of rounding: each
 * element has a random sign and, times a common factor, the RMS of the 32
 * weights of its row around it. So rows with large weights, which have larger
 * rounding errors, count more. The factor is chosen so that D is about 0.002
 * nats, where it is proportional to P: D is never further from it than by a
 * factor of 4, unless 12 tries are too few.
 *
 * Cost: n_tokens go through the layers from the weight's on, for each weight;
 * for n layers about n / 2 passes of the whole model for each matrix of a
 * layer. Memory: the results of one layer for each token, and final states and
 * activations of a chunk.
 *
 * Results depend on the model, text and parameters alone, not on threads; the
 * instruction set may change their last digits.
 *
 * Sources: the quadratic form is that of S. Amari, "Natural Gradient Works
 * Efficiently in Learning", Neural Computation 10(2), 1998; random signs
 * estimate a trace as in M. F. Hutchinson, Communications in Statistics 19(2),
 * 1990; sums over tensors as in the linearity theorem (target.h).
 */
#ifndef GGUF_SENSITIVITY_H
#define GGUF_SENSITIVITY_H

#include <gguf/imatrix.h>
#include <gguf/pool.h>
#include <gguf/progress.h>
#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of gguf_sensitivity_run(). */
struct gguf_sensitivity_params {
    size_t struct_size; /* set by GGUF_SENSITIVITY_PARAMS_INIT */
    uint32_t n_ctx;     /* tokens of a chunk; 0: 512 */

    /* Number of tokens to measure on, rounded up to whole chunks, which are
     * evenly spaced in the text; at most all. 0: 2048. */
    uint64_t n_tokens;

    struct gguf_pool *pool; /* threads for noise and divergences; NULL: the
                             * calling thread alone */
    struct gguf_progress_callback progress; /* unit: tokens times layers */

    /* Texts: measure only weights whose names contain one of them. */
    const char *const *include;
    size_t n_include; /* number of texts; 0: measure all weights */
};
#define GGUF_SENSITIVITY_PARAMS_INIT GGUF_INIT(struct gguf_sensitivity_params)

/* Measure the sensitivities of a model's weights and add them to importance
 * data.
 *
 * im        Receives a sensitivity for each weight.
 * session   Computes the chunks. It must have one backend, and its context and
 *           its micro-batches must have room for a chunk. It is cleared.
 * token     Tokens of the text, made with GGUF_TOKENIZE_ADD_SPECIAL.
 * n         Number of tokens.
 * params    Options. NULL: the defaults.
 *
 * Weights are skipped if a divergence is NaN or infinite with every error, or
 * if no product with them has a form that can be disturbed.
 *
 * GGUF_E_INVALID      The text has too few tokens for a chunk, n_ctx is less
 *                     than 4, or the session has no room for a chunk.
 * GGUF_E_UNSUPPORTED  The model encodes or has no logits; or the session has
 *                     more than one backend.
 * GGUF_E_NONFINITE    A result of the undisturbed model is NaN or infinite.
 * GGUF_E_NOTFOUND     No weight was measured.
 * GGUF_E_CANCELLED    The progress callback returned true.
 * GGUF_E_NOMEM        An allocation failed.
 * Other               The statuses of gguf_session_decode().
 *
 * Threads: one for session and im. Since: 0.1 */
GGUF_API enum gguf_status
gguf_sensitivity_run(struct gguf_imatrix *im, struct gguf_session *session,
                     const gguf_token *token, size_t n,
                     const struct gguf_sensitivity_params *params,
                     struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
