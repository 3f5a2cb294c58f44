/* SPDX-License-Identifier: MIT */
/* loss.h - what encoding did to the numbers, chunk by chunk */
#ifndef GG_QUANT_LOSS_H
#define GG_QUANT_LOSS_H

#include "gguf/quant.h"

/* Sums over a chunk. Chunks are added in order, so that the result does not
 * depend on who did them. */
struct gg_loss {
    double n, err2, in2;     /* elements, squared differences, squares */
    double weight, weighted; /* sums of weights and of weight * difference^2 */
    double weighted_in;      /* sum of weight * square */
    double max, seconds;
};

/* Add n_rows rows of n elements: a was read, b is what is read back. weight[n]
 * may be NULL. What was not finite is left out; where only what is read back is
 * not, the differences and the largest are infinite, and it does not count as
 * an element. */
void gg_loss_add(struct gg_loss *l, const float *a, const float *b,
                 size_t n_rows, size_t n, const float *weight);

/* The sums of a tensor's chunks as figures. */
void gg_loss_finish(const struct gg_loss *chunks, size_t n,
                    struct gguf_quant_loss *out);

/* Processor time of this thread, seconds. */
double gg_loss_clock(void);

#endif
