/* SPDX-License-Identifier: MIT */
/* refenc.h - T5 in double precision, written from the paper */
#ifndef TESTS_FAMILY_REFENC_H
#define TESTS_FAMILY_REFENC_H

#include "tests/family/skeleton.h"

/* Evaluate T5 (Raffel et al., arXiv 1910.10683) by the keys and tensors of a
 * model: the encoder's states [n][n_embd] of a text of n tokens, and, if the
 * model has a decoder, logits [m][n_vocab] of a second text. */
void refenc_t5_run(const struct skeleton *of, const gguf_token *text, int n,
                   const gguf_token *to, int m, double *states,
                   double *logits);

#endif
