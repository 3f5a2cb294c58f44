/* SPDX-License-Identifier: MIT */
/* refbert.h - encoders like BERT in double precision, written from the papers
 *
 * BERT (arXiv 1810.04805), Nomic Embed (arXiv 2402.01613, with experts
 * 2502.07972), jina-embeddings-v3 (arXiv 2409.10173), NeoBERT (arXiv
 * 2502.19587), EuroBERT (arXiv 2503.05500), jina-bert-v2 with ALiBi in both
 * directions (Press et al., arXiv 2108.12409); and decoders with the same
 * parts.
 */
#ifndef TESTS_FAMILY_REFBERT_H
#define TESTS_FAMILY_REFBERT_H

#include "tests/family/skeleton.h"

/* States [n][n_embd] of a model by its keys and tensors, for the check
 * "double" of check-variants (variant.h). The architecture decides on RoPE and
 * biases. */
void refbert_run(const struct skeleton *m, const gguf_token *tok, int n,
                 double *states);
/* States of tokens that have types. NULL: 0 for all. */
void refbert_run_types(const struct skeleton *m, const gguf_token *tok,
                       const uint32_t *types, int n, double *states);

#endif
