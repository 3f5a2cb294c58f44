/* SPDX-License-Identifier: MIT */
/* ref.h - a forward pass of llama in double precision, written from the papers
 */
#ifndef TESTS_MODEL_REF_H
#define TESTS_MODEL_REF_H

#include "tests/model/gen.h"

/* Logits [n][n_vocab] of tokens at positions 0 to n - 1, by the model that
 * gen_model made of s. */
void ref_logits(const struct gen *g, const struct gen_spec *s,
                const gguf_token *token, int n, double *logits);

/* Keys and values to use instead of computed ones, such as those in a
 * session's cache: [n][n_head_kv * d] for each layer. */
struct ref_kept {
    const float *k[4], *v[4]; /* [layer] */
};
void ref_logits_of(const struct gen *g, const struct gen_spec *s,
                   const gguf_token *token, int n, const struct ref_kept *kept,
                   double *logits);

/* Callback for each vector of n numbers that a matrix multiplies: name of the
 * matrix, token, numbers. */
typedef void ref_seen_fn(void *user, const char *name, int token,
                         const double *x, int n);
void ref_logits_seen(const struct gen *g, const struct gen_spec *s,
                     const gguf_token *token, int n, double *logits,
                     ref_seen_fn *seen, void *user);

/* ---- what such passes are made of ---- */

/* Weights of this name; NULL: missing. Free them with free(). */
float *ref_weights(const struct gen *g, const char *fmt, ...)
    GGUF_PRINTF(2, 3);

/* n zeros. Free them with free(). */
double *ref_doubles(size_t n);

/* y = W x + b; W is [m][k], b may be NULL. */
void ref_linear(double *y, const float *w, const float *b, const double *x,
                int k, int m);

#endif
