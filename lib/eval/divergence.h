/* SPDX-License-Identifier: MIT */
/* divergence.h - rows of two models: what is known of each token */
#ifndef GG_EVAL_DIVERGENCE_H
#define GG_EVAL_DIVERGENCE_H

#include "gguf/kld.h"

/* Where rows of a base come from: its logits, or a file. Any thread. */
struct gg_divergence_base {
    const void *user;
    /* What row i needs to be known of first: returns the normalizer, ln sum
     * exp, that block is given. */
    double (*norm)(const void *user, size_t i);
    /* ln b of tokens first to first + n - 1, of which p takes those that are
     * wanted: at most GG_DIVERGENCE_BLOCK. */
    void (*block)(const void *user, size_t i, double norm, size_t first,
                  size_t n, double *p);
    double floor; /* terms of ln b up to it are left out of sums */
    /* Or, of a base that is a model or not known of every token, all of row i
     * in place of the two: the divergence of n logits with the normalizer nq,
     * and the likeliest tokens. NULL: the two. */
    double (*row)(const void *user, size_t i, const float *logits, double nq,
                  size_t n, size_t *top_base, size_t *top_model);
};
enum { GG_DIVERGENCE_BLOCK = 256 };

/* A base that is a model: n rows of n_vocab logits. */
struct gg_divergence_logits {
    const float *logits;
    size_t n_vocab;
};
void gg_divergence_set_logits(struct gg_divergence_base *rows,
                              const struct gg_divergence_logits *l);

/* ln sum exp of a row, in double; as the row's order is. */
double gg_divergence_norm(const float *row, size_t n);

/* kld and same_top of n tokens, from rows of logits and a base's; the rows are
 * dealt out to the pool's threads (NULL: this one). */
void gg_divergence_compare_rows(struct gguf_pool *pool,
                                const struct gg_divergence_base *base,
                                const float *logits, size_t n_vocab, size_t n,
                                struct gguf_kld_token *token);

#endif
