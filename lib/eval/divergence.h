/* SPDX-License-Identifier: MIT */
/* divergence.h - divergence of rows of logits from those of a base */
#ifndef GG_EVAL_DIVERGENCE_H
#define GG_EVAL_DIVERGENCE_H

#include "gguf/kld.h"

/* Source of a base's rows: logits in memory, or a file. Any thread may call
 * its functions. */
struct gg_divergence_base {
    const void *user;
    /* Normalizer of row i, ln sum exp, for block(). */
    double (*norm)(const void *user, size_t i);
    /* Write ln b of the tokens first to first + n - 1 of row i to p; n is at
     * most GG_DIVERGENCE_BLOCK. */
    void (*block)(const void *user, size_t i, double norm, size_t first,
                  size_t n, double *p);
    double floor; /* terms with ln b up to it are left out of sums */
    /* Alternative to norm() and block(), for a base that is a model or lacks
     * some tokens: the divergence of n logits with normalizer nq from row i,
     * and the likeliest tokens of both. NULL: none. */
    double (*row)(const void *user, size_t i, const float *logits, double nq,
                  size_t n, size_t *top_base, size_t *top_model);
};
enum { GG_DIVERGENCE_BLOCK = 256 };

/* Logits of a base that is a model: rows of n_vocab numbers. */
struct gg_divergence_logits {
    const float *logits;
    size_t n_vocab;
};
void gg_divergence_set_logits(struct gg_divergence_base *rows,
                              const struct gg_divergence_logits *l);

/* Normalizer of a row: ln sum exp in double precision, in the order of the
 * row. */
double gg_divergence_norm(const float *row, size_t n);

/* Compute kld and same_top of n tokens, from rows of logits and those of a
 * base. The rows are divided over the pool's threads; NULL: this thread. */
void gg_divergence_compare_rows(struct gguf_pool *pool,
                                const struct gg_divergence_base *base,
                                const float *logits, size_t n_vocab, size_t n,
                                struct gguf_kld_token *token);

#endif
