/* SPDX-License-Identifier: MIT */
/* two_sided.h - encoding rows of a matrix so that later columns and later rows
 * make up for errors
 *
 * The error of a matrix is tr(H E S E'), where E are targets minus decoded
 * elements, S the second moments of its inputs and H the curvature by its
 * outputs (eval/curvature.h), in diagonal blocks of 64 outputs. Within a block,
 * with H + .05 d I = P P', d the mean of the diagonal, P upper triangular, and
 * F[i][j] = P[i][j] / P[j][j], it is
 *
 *     sum over rows j of P[j][j]^2 u' S u     u = e[j] + sum over i < j of
 *                                                 F[i][j] e[i]
 *
 * So the rows of a block are encoded from 0 on, row j with the target plus the
 * sum over i < j, each with error feedback along its columns (fit/feedback.h).
 * (YAQA: Tseng et al., arXiv 2505.22988, section 3.) The same row of all blocks
 * is encoded together. */
#ifndef GG_CALIBRATE_TWO_SIDED_H
#define GG_CALIBRATE_TWO_SIDED_H

#include "fit/feedback.h"

enum { GG_TWO_SIDED_BLOCK = 64 };

/* Encode rows of a matrix.
 *
 * f         form of the type
 * m         metric of the columns, as for gg_feedback_encode()
 * h         [n_rows / 64, rounded up][64][64] blocks of the curvature of these
 *           rows; elements beyond n_rows are not read
 * target    [n_rows][m->n] wanted elements; row 0 begins a block
 * n_rows    number of rows; 0: nothing to do
 * bytes     n_rows rows of blocks. On entry those of the plain encoder. On
 *           return the new ones
 * effort, pool, a
 *           as for gg_feedback_encode(). More scratch: 64 blocks of targets
 *
 * A block whose curvature is 0, not finite or not positive definite has no
 * feedback among its rows. Any division into calls at multiples of 64 rows, and
 * any number of threads, gives the same bytes.
 *
 * GGUF_E_NOMEM: out of memory; bytes are undefined. Fails otherwise as
 * gg_feedback_encode() does. */
enum gguf_status
gg_two_sided_encode(const struct gg_form *f,
                    const struct gg_feedback_metric *m, const float *h,
                    const float *target, size_t n_rows, void *bytes,
                    enum gg_feedback_effort effort, struct gguf_pool *pool,
                    const struct gguf_allocator *a, struct gguf_error *err);

/* Damping of a block of n rows, .05 of its mean diagonal. */
double gg_two_sided_damping(const float *h, size_t n);

/* Factor a block of n <= 64 rows: f receives F, [n][n], zero on and below the
 * diagonal; d receives P[j][j]^2. false: the block has no feedback, F is 0 and
 * d is 1. h has rows of 64 elements. */
bool gg_two_sided_factor(const float *h, size_t n, float *f, float *d);

#endif
