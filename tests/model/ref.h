/* SPDX-License-Identifier: MIT */
/* ref.h - a forward pass in double precision, written from the papers */
#ifndef TESTS_MODEL_REF_H
#define TESTS_MODEL_REF_H

#include "tests/model/gen.h"

/* Logits [n][n_vocab] of tokens at positions 0 to n - 1 of the model that
 * gen_model made of s. */
void ref_logits(const struct gen *g, const struct gen_spec *s,
                const gguf_token *token, int n, double *logits);

/* The same with keys and values [n][n_head_kv * d] of each layer instead of
 * what its matrices give: those that a session kept. */
struct ref_kept {
    const float *k[4], *v[4]; /* of layers */
};
void ref_logits_of(const struct gen *g, const struct gen_spec *s,
                   const gguf_token *token, int n, const struct ref_kept *kept,
                   double *logits);

/* The same, and what each matrix multiplies: called with its name, the token
 * and n numbers. */
typedef void ref_seen_fn(void *user, const char *name, int token,
                         const double *x, int n);
void ref_logits_seen(const struct gen *g, const struct gen_spec *s,
                     const gguf_token *token, int n, double *logits,
                     ref_seen_fn *seen, void *user);

/* ---- what such passes are made of ---- */

/* Weights by name; NULL if the model has none of that name. free(). */
float *ref_weights(const struct gen *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* n zeros. free(). */
double *ref_doubles(size_t n);

/* y = W x + b, W [m][k]; b may be NULL. Frees neither. */
void ref_linear(double *y, const float *w, const float *b, const double *x,
                int k, int m);

#endif
