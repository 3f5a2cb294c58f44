/* SPDX-License-Identifier: MIT */
/* refbert.h - encoders of BERT's kin in double precision, written from the
 * papers: BERT (arXiv 1810.04805), Nomic Embed (arXiv 2402.01613, with experts
 * 2502.07972), jina-embeddings-v3 (arXiv 2409.10173), NeoBERT (arXiv
 * 2502.19587), EuroBERT (arXiv 2503.05500), jina-bert-v2 with ALiBi both ways
 * (Press et al., arXiv 2108.12409); and decoders that are made alike
 */
#ifndef TESTS_FAMILY_REFBERT_H
#define TESTS_FAMILY_REFBERT_H

#include "tests/family/skeleton.h"

/* States [n][n_embd] of a model, as its keys and tensors say, for the check
 * "double" of check-variants (variant.h). The architecture says how positions
 * turn and which biases count. */
void refbert_run(const struct skeleton *m, const gguf_token *tok, int n,
                 double *states);

#endif
