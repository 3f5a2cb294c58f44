/* SPDX-License-Identifier: MIT */
/* divergence.c - divergence of rows of logits from those of a base
 *
 * All is in double precision, in the order of the vocabulary: the result of a
 * row depends on nothing else. exp() of the C library is exact to a unit in
 * the last place of a double; logits have 24 bits. */
#include "config.h"
#include "eval/divergence.h"

#include "base/compiler.h"

#include <math.h>

double gg_divergence_norm(const float *row, size_t n)
{
    float max = -INFINITY;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        max = row[i] > max ? row[i] : max;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)row[i] - (double)max);
    return (double)max + log(sum);
}

/* ---- likeliest tokens ---- */

/* The largest number seen, the first of equals. */
struct top {
    double value;
    size_t at;
};

static void offer_top(struct top *t, double v, size_t at)
{
    if (v > t->value)
        *t = (struct top){ v, at };
}

/* ---- a model as base ---- */

/* With w(i) = exp(b(i) - max) of the base's logits b, S their sum, nb = max +
 * ln S their normalizer, and q the other logits, the divergence is
 *
 *     sum of w(i) (b(i) - q(i)) / S - nb + nq
 *
 * This takes one exp for each logit, not one for S and one for p(i), and is
 * exactly 0 for equal rows. The difference at the base's likeliest token is
 * subtracted from the sum and from the normalizers. */
static double logits_row(const void *user, size_t i, const float *logits,
                         double nq, size_t n, size_t *top_base,
                         size_t *top_model)
{
    const struct gg_divergence_logits *l = user;
    const float *row = l->logits + i * l->n_vocab;
    struct top tq = { -(double)INFINITY, 0 }, tb = tq;
    double w_sum = 0, sum = 0;
    for (size_t k = 0; k < n; k++) {
        offer_top(&tb, (double)row[k], k);
        offer_top(&tq, (double)logits[k], k);
    }
    const double off = tb.value - (double)logits[tb.at];
    for (size_t k = 0; k < n; k++) {
        const double b = (double)row[k], w = exp(b - tb.value);
        w_sum += w;
        sum += w > 0 ? w * (b - (double)logits[k] - off) : 0;
    }
    *top_base = tb.at;
    *top_model = tq.at;
    return sum / w_sum + (off - (tb.value + log(w_sum) - nq));
}

void gg_divergence_set_logits(struct gg_divergence_base *rows,
                              const struct gg_divergence_logits *l)
{
    *rows = (struct gg_divergence_base){ .user = l, .row = logits_row };
}

/* ---- rows ---- */

static void compare_row(const struct gg_divergence_base *base, size_t row,
                        const float *logits, size_t n_vocab,
                        struct gguf_kld_token *token)
{
    const double nq = gg_divergence_norm(logits, n_vocab);
    if (base->row) {
        size_t top_base, top_model;
        token->kld = base->row(base->user, row, logits, nq, n_vocab, &top_base,
                               &top_model);
        token->same_top = top_base == top_model;
        return;
    }
    const double nb = base->norm(base->user, row);
    struct top tq = { -(double)INFINITY, 0 }, tb = tq;
    double b[GG_DIVERGENCE_BLOCK], sum = 0;
    for (size_t at = 0, n; at < n_vocab; at += n) {
        n = GG_MIN((size_t)GG_DIVERGENCE_BLOCK, n_vocab - at);
        base->block(base->user, row, nb, at, n, b);
        for (size_t i = 0; i < n; i++) {
            const double q = (double)logits[at + i] - nq;
            offer_top(&tq, q, at + i);
            offer_top(&tb, b[i], at + i);
            const double p = b[i] > base->floor ? exp(b[i]) : 0;
            sum += p > 0 ? p * (b[i] - q) : 0;
        }
    }
    token->kld = sum;
    token->same_top = tq.at == tb.at;
}

struct job {
    const struct gg_divergence_base *base;
    const float *logits;
    size_t n_vocab, n;
    struct gguf_kld_token *token;
};

static void compare_rows(void *user, unsigned ith, unsigned nth)
{
    const struct job *j = user;
    const size_t end = j->n * (ith + 1) / nth;
    for (size_t i = j->n * ith / nth; i < end; i++)
        compare_row(j->base, i, j->logits + i * j->n_vocab, j->n_vocab,
                    &j->token[i]);
}

void gg_divergence_compare_rows(struct gguf_pool *pool,
                                const struct gg_divergence_base *base,
                                const float *logits, size_t n_vocab, size_t n,
                                struct gguf_kld_token *token)
{
    struct job j = { base, logits, n_vocab, n, token };
    gguf_pool_run(pool, (struct gguf_pool_callback){ compare_rows, &j });
}
