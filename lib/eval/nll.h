/* SPDX-License-Identifier: MIT */
/* nll.h - negative log-likelihoods of rows of logits */
#ifndef GG_EVAL_NLL_H
#define GG_EVAL_NLL_H

#include "gguf/pool.h"
#include "gguf/session.h"

/* nll[i] = ln(sum exp(row i)) - row i [token[i]], for rows of n_vocab floats;
 * natural logarithm, exponentials in f32, their sum and the rest in double.
 * Not finite if the row holds a NaN or +infinity. The rows are dealt out to
 * the pool's threads (NULL: this one). */
void gg_nll_rows(struct gguf_pool *pool, const float *logits, size_t n_vocab,
                 size_t n_rows, const gguf_token *token, double *nll);

/* GGUF_E_NONFINITE: say that the probability of a chunk's token is not a
 * number, and why if the model's weights show it. */
enum gguf_status gg_nll_report_nonfinite(const struct gguf_session *session,
                                         struct gguf_pool *pool, size_t chunk,
                                         uint32_t token,
                                         struct gguf_error *err);

#endif
