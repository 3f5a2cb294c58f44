/* SPDX-License-Identifier: MIT */
/* refenc.h - T5 in double precision, written from the paper */
#ifndef TESTS_FAMILY_REFENC_H
#define TESTS_FAMILY_REFENC_H

#include "tests/family/skeleton.h"

/* T5 (Raffel et al., arXiv 1910.10683) as the keys and tensors of a model say.
 * Of texts of n and m tokens: states of the encoder [n][n_embd], and logits of
 * the decoder [m][n_vocab], if it has one. */
void refenc_t5_run(const struct skeleton *of, const gguf_token *text, int n,
                   const gguf_token *to, int m, double *states,
                   double *logits);

#endif
