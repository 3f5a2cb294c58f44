/* SPDX-License-Identifier: MIT */
/* loss.h - encoding errors, summed chunk by chunk */
#ifndef GG_QUANT_LOSS_H
#define GG_QUANT_LOSS_H

#include "gguf/quant.h"

/* Sums over a chunk. Chunks are added in order, so that the result does not
 * depend on the threads. */
struct gg_loss {
    double n, err2, in2; /* number of elements, sum of squared errors, sum
                          * of squares */
    double weight,
        weighted;       /* sum of weights, sum of weight * squared error */
    double weighted_in; /* sum of weight * square */
    double max, seconds;
};

/* Add n_rows rows of n elements: a was read, b is the decoded result. weight[n]
 * may be NULL. An element that is not finite in a is left out. If it is not
 * finite in b only, it does not count as an element, and the sum of errors and
 * the largest error become infinite. */
void gg_loss_add(struct gg_loss *l, const float *a, const float *b,
                 size_t n_rows, size_t n, const float *weight);

/* Compute the figures of a tensor from its chunks. */
void gg_loss_finish(const struct gg_loss *chunks, size_t n,
                    struct gguf_quant_loss *out);

/* Processor time of this thread in seconds. */
double gg_loss_clock(void);

#endif
