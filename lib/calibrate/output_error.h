/* SPDX-License-Identifier: MIT */
/* output_error.h - error of a matrix's outputs on rows that were held out
 *
 * The output of the original matrix W for inputs X, plus the difference of the
 * residual streams that the output is added to, minus that of encoded rows Q
 * for the quantized model's inputs Xq:
 *
 *     X W' + (r - rq) / f - Xq Q' = (X - Xq) W' + (r - rq) / f + Xq (W - Q)'
 *
 * The first two terms are the base; only the last one depends on Q. Products
 * are single precision, their squares are summed in double precision, in a
 * fixed order. */
#ifndef GG_CALIBRATE_OUTPUT_ERROR_H
#define GG_CALIBRATE_OUTPUT_ERROR_H

#include "calibrate/moments.h"

/* Rows of inputs that are compared. */
struct gg_output_error_rows {
    size_t n, n_inputs;   /* columns; rows of inputs */
    const float *xq, *dx; /* [n_inputs][n]: Xq, X - Xq */
    const float *dr;      /* [n_inputs][dr_stride]: (r - rq) / f. NULL: none */
    size_t dr_stride;
    float *gathered; /* memory of xq and dx, or NULL */
    const struct gguf_allocator *allocator;
};

/* An expert with fewer rows of its own is compared on those of its layer. */
enum { GG_OUTPUT_ERROR_FEW_ROWS = 16 };

/* Select the rows that moments have kept for a product, or for one of its
 * experts. They may be none.
 *
 * expert   number of the expert among the moments' own. SIZE_MAX: all rows
 *
 * Free them with gg_output_error_rows_fini(), before m is destroyed.
 * GGUF_E_NOMEM. */
enum gguf_status gg_output_error_rows_init(struct gg_output_error_rows *r,
                                           const struct gg_moments *m,
                                           size_t product, size_t expert,
                                           struct gguf_error *err);
void gg_output_error_rows_fini(struct gg_output_error_rows *r);

/* Compute the base's first term for n_rows rows of W: base[i][t] of n_rows x
 * n_inputs. GGUF_E_NOMEM. */
enum gguf_status gg_output_error_base(const struct gg_output_error_rows *r,
                                      struct gg_linalg *la, const float *w,
                                      size_t n_rows, float *base,
                                      struct gguf_error *err);

/* Add the base's second term: row i is row row[i] of the matrix. */
void gg_output_error_add_residual(const struct gg_output_error_rows *r,
                                  const size_t *row, size_t n_rows,
                                  float *base);

/* Compute the sums of squared errors of n_rows rows.
 *
 * base    n_rows x n_inputs
 * e       n_rows x n: W - Q
 * out     scratch, n_rows x n_inputs
 * sum     [n_rows] receives the sums over the inputs
 *
 * curvature   blocks of two_sided.h for the rows, which begin a block: the sums
 *             of a block's rows then add up to its errors weighted by the
 *             damped curvature. NULL: errors count alike
 *
 * GGUF_E_NOMEM. */
enum gguf_status gg_output_error_sum(const struct gg_output_error_rows *r,
                                     struct gg_linalg *la, const float *base,
                                     const float *e, size_t n_rows,
                                     const float *curvature, float *out,
                                     double *sum, struct gguf_error *err);

#endif
