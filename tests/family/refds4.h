/* SPDX-License-Identifier: MIT */
/* refds4.h - DeepSeek-V4 in double precision, written from its definition: all
 * tokens at once, without a cache */
#ifndef TESTS_FAMILY_REFDS4_H
#define TESTS_FAMILY_REFDS4_H

#include "tests/model/gen.h"

enum { REFDS4_LAYERS = 4, REFDS4_VOCAB = 24 };

struct refds4 {
    int n_embd, n_head, d, rot, rank_q, n_layer, window;
    int ratio[REFDS4_LAYERS];
    int n_idx, d_idx, top;   /* indexer */
    int groups, out_rank;    /* output projection */
    int streams, iterations; /* hyper-connections */
    /* hashed: number of first layers whose experts a table chooses */
    int experts, used, n_ff, shared, hashed;
    /* weights of experts have a sum of 1 */
    int norm;
    /* factor of the experts' weights */
    double scale;
    float clamp[REFDS4_LAYERS], clamp_shared; /* -1: the key is not there */
    float eps, base, compress_base, hyper_eps;
    const char *scaling; /* NULL: none */
    float factor;
    int n_ctx_orig;
    int flat; /* the first matrix of the output projection has two dimensions */
    int drafts; /* 1: one more layer, for drafts; 2: only its key */
};

void refds4_model(struct gen *g, const struct refds4 *s);
/* Experts that the first layers' table chooses for each token,
 * [REFDS4_VOCAB][used]. */
const int32_t *refds4_table(const struct refds4 *s);
/* Logits [n][REFDS4_VOCAB] of tokens at positions 0, 1, ... */
void refds4_run(const struct gen *g, const struct refds4 *s,
                const gguf_token *tok, int n, double *logits);

#endif
