/* SPDX-License-Identifier: MIT */
/* nll.h - negative log-likelihoods of rows of logits */
#ifndef GG_EVAL_NLL_H
#define GG_EVAL_NLL_H

#include "gguf/pool.h"
#include "gguf/session.h"

/* Compute nll[i] = ln(sum exp(row i)) - row i [token[i]] for rows of n_vocab
 * floats. Exponentials are in f32, all else in double precision. The result is
 * not finite if the row has a NaN or +infinity. The rows are divided over the
 * pool's threads; NULL: this thread. */
void gg_nll_rows(struct gguf_pool *pool, const float *logits, size_t n_vocab,
                 size_t n_rows, const gguf_token *token, double *nll);

/* Return GGUF_E_NONFINITE with a message: the probability of a chunk's token
 * is not a number. If the model's weights show why, the message has the
 * weight. */
enum gguf_status gg_nll_report_nonfinite(const struct gguf_session *session,
                                         struct gguf_pool *pool, size_t chunk,
                                         uint32_t token,
                                         struct gguf_error *err);

#endif
