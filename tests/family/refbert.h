/* SPDX-License-Identifier: MIT */
/* refbert.h - encoders of BERT's kin in double precision, written from the
 * papers: BERT (arXiv 1810.04805), Nomic Embed (arXiv 2402.01613, with experts
 * 2502.07972), jina-embeddings-v3 (arXiv 2409.10173), NeoBERT (arXiv
 * 2502.19587), EuroBERT (arXiv 2503.05500); and decoders that are made alike
 */
#ifndef TESTS_FAMILY_REFBERT_H
#define TESTS_FAMILY_REFBERT_H

#include "tests/model/gen.h"

enum refbert_ffn { REFBERT_PLAIN, REFBERT_GATED, REFBERT_HALVES };
enum refbert_rope { REFBERT_STILL, REFBERT_PAIRS, REFBERT_NEOX };

struct refbert {
    const char *arch;
    int pre;          /* RMS norms before parts and a last one; else layer
                          * norms after them, and after the embeddings */
    const char *last; /* its name */
    int positions;    /* learned ones */
    enum refbert_rope rope;
    enum refbert_ffn ffn; /* GELU without a gate; SiLU with one, of its own or
                           * the first half of ffn_up */
    int n_embd, n_ff, n_head, n_head_kv, n_layer;
    int rot;   /* elements that turn; 0: all, and no key */
    int fused; /* q, k and v in one */
    int qkv_bias, out_bias;
    int ffn_bias;  /* 1: used, 2: there, and not used */
    int types;     /* of tokens; 0: no tensor */
    int causal;    /* 0: false; 1: true; 2: there is no key */
    int head_norm; /* layer norms of queries and keys, a weight a head; 2: and
                    * a bias (Chameleon, arXiv 2405.09818) */
    int swin;      /* pre: norms are of the parts' results */
    int every, experts, used; /* layers il % every == 1 have experts */
    float eps, base;          /* base 0: no key */
};

void refbert_model(struct gen *g, const struct refbert *s, int n_vocab);
/* States [n][n_embd]. */
void refbert_run(const struct gen *g, const struct refbert *s,
                 const gguf_token *tok, int n, double *states);

#endif
