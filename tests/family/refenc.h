/* SPDX-License-Identifier: MIT */
/* refenc.h - T5 in double precision, written from the paper */
#ifndef TESTS_FAMILY_REFENC_H
#define TESTS_FAMILY_REFENC_H

#include "tests/model/gen.h"

/* T5 (Raffel et al., arXiv 1910.10683). */
struct refenc_t5 {
    int n_vocab, n_embd, n_ff, n_head, n_head_kv, d; /* d: of a head */
    int n_enc, n_dec; /* layers; n_dec 0: an encoder alone */
    int n_buckets;
    int gated;   /* GEGLU, else ReLU */
    int rel_all; /* every layer has numbers of its own, else the first */
    int tied;    /* no output matrix */
    int no_key;  /* decoder_block_count is not in the file */
};
void refenc_t5_model(struct gen *g, const struct refenc_t5 *s);
/* Of texts of n and m tokens: states of the encoder [n][n_embd], and logits of
 * the decoder [m][n_vocab], if it has one. */
void refenc_t5_run(const struct gen *g, const struct refenc_t5 *s,
                   const gguf_token *text, int n, const gguf_token *to, int m,
                   double *states, double *logits);

#endif
