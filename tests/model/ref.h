/* ref.h - a forward pass in double precision, written from the papers */
#ifndef TESTS_MODEL_REF_H
#define TESTS_MODEL_REF_H

#include "tests/model/gen.h"

/* Logits [n][n_vocab] of tokens at positions 0 to n - 1 of the model that
 * gen_model made of s. */
void ref_logits(const struct gen *g, const struct gen_spec *s,
                const gguf_token *token, int n, double *logits);

#endif
