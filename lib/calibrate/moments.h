/* SPDX-License-Identifier: MIT */
/* moments.h - second moments of the inputs of a stage
 *
 * A stage is the products of one layer that read the same input. Its moments
 * are sums over the tokens of a calibration text, for inputs X (tokens by n
 * columns) of the original model and Xq of the model whose earlier part is
 * quantized:
 *
 *     S = Xq'Xq              for the metric of errors
 *     C = (X - Xq)'Xq        for corrected targets
 *     D = (r - rq)'Xq / f    for products whose output, times f, is added to a
 *                            residual stream: r of the original model, rq
 *
 * (GPTAQ: arXiv 2504.02692; QEP: arXiv 2504.09629.) Tokens that are held out
 * (heldout.h) are in no sum; rows of some of them are kept to compare results.
 *
 * A product with experts has sums for each expert, of the rows that the
 * quantized model sends to it, and sums of all rows.
 *
 *     gg_moments_create(&m, &params, &err);
 *     for each batch
 *         gg_moments_add(m, la, &batch, &err);
 *     gg_moments_finish(m, la);
 *     ...
 *     gg_moments_destroy(m);
 *
 * One thread at a time may use a gg_moments. Results depend on the sizes of
 * batches, and not on the number of threads; for vector units see
 * linalg/linalg.h. */
#ifndef GG_CALIBRATE_MOMENTS_H
#define GG_CALIBRATE_MOMENTS_H

#include "calibrate/heldout.h"
#include "linalg/linalg.h"

#include <stdint.h>

/* A product of the stage. */
struct gg_moments_product {
    size_t n_rows;     /* rows of the matrix: elements of an output */
    bool has_residual; /* D is summed; not with experts */
    float factor;      /* f, the output's factor; not 0 */
};

struct gg_moments_params {
    size_t n; /* columns: elements of an input */
    struct gg_heldout heldout;
    const struct gg_moments_product *product; /* [n_products]; copied */
    size_t n_products;
    /* Experts whose sums are made. n_experts 0: a stage without experts. More
     * experts than memory has room for take several passes. */
    size_t first_expert, n_experts;
    size_t n_used;       /* experts of a token; 0 without experts */
    bool rows_by_expert; /* each expert of a token has an input of its own */
    const struct gguf_allocator *allocator; /* NULL: malloc */
    /* Compute only the rows of one part of each sum. The caller completes the
     * sums before gg_moments_finish(). n_parts 0: all rows. */
    size_t part, n_parts;
};

/* Activations of consecutive tokens. With rows_by_expert, an input is n_used
 * rows, one after the other. */
struct gg_moments_batch {
    size_t first_token, n_tokens;
    const float *x, *xq;        /* inputs; may be the same array */
    size_t x_stride, xq_stride; /* floats from row to row */
    /* Experts of each token: [n_tokens][n_used] at ids_stride, for the original
     * and the quantized model. NULL without experts. */
    const int32_t *ids, *ids_q;
    size_t ids_stride, ids_q_stride;
    /* [n_products] streams, rows of product[i].n_rows floats; an entry without
     * residual may be NULL. NULL: no product has one. */
    const float *const *r, *const *rq;
    size_t r_stride, rq_stride;
};

/* Sums over rows of inputs. */
struct gg_moments_sums {
    float *s;      /* n x n; only the elements on and above the diagonal */
    float *c;      /* n x n */
    size_t n_rows; /* rows that were added */
};

enum gg_moments_state {
    GG_MOMENTS_GOOD,
    GG_MOMENTS_EMPTY,     /* no rows */
    GG_MOMENTS_ZERO,      /* all inputs are 0 */
    GG_MOMENTS_NONFINITE, /* a sum is NaN or infinite */
    GG_MOMENTS_SINGULAR   /* not positive definite with any damping */
};

struct gg_moments {
    struct gg_moments_params p;
    struct gg_moments_product *product;
    /* Sums over all rows; means of a row, with s symmetric, after
     * gg_moments_finish(). */
    struct gg_moments_sums all;
    /* [n_experts] sums of experts, from first_expert on */
    struct gg_moments_sums *expert;
    float **d; /* [n_products] n_rows x n, sums or means as all; NULL: none */
    enum gg_moments_state state; /* state of all; set by gg_moments_finish() */
    bool differs;                /* an X is not Xq, or an r is not rq */

    /* Rows kept of tokens held out, rows_per_token for each. */
    size_t rows_per_token, n_kept;
    float *xq, *dx; /* [n_kept][n]: Xq, X - Xq */
    int32_t *ids;   /* [kept tokens][n_used]: experts of Xq */
    float **dr;     /* [n_products] kept tokens x n_rows: (r - rq) / f */

    float *diff, *gather; /* scratch: X - Xq of a batch, rows of an expert */
    size_t diff_room, gather_room; /* floats */
};

/* Create moments without rows.
 *
 * GGUF_OK          *out is created; destroy it with gg_moments_destroy().
 * GGUF_E_OVERFLOW  The sizes do not fit memory.
 * GGUF_E_NOMEM     Out of memory. */
enum gguf_status gg_moments_create(struct gg_moments **out,
                                   const struct gg_moments_params *params,
                                   struct gguf_error *err);
/* Free m. NULL is allowed. */
void gg_moments_destroy(struct gg_moments *m);

/* Add a batch. Tokens are added once each, in any order of batches that does
 * not change from run to run.
 *
 * GGUF_E_NOMEM  Out of memory. The sums are undefined. */
enum gguf_status gg_moments_add(struct gg_moments *m, struct gg_linalg *la,
                                const struct gg_moments_batch *b,
                                struct gguf_error *err);

/* First row of a part of a sum of n_rows rows; n_rows for part n_parts.
 *
 * upper   only elements on and above the diagonal count, as in S: parts have
 *         about the same number of them */
size_t gg_moments_first_row(const struct gg_moments_params *p, size_t n_rows,
                            bool upper, size_t part);

/* Turn sums into means and set m->state. Call it once, after the last batch. */
void gg_moments_finish(struct gg_moments *m, struct gg_linalg *la);

/* Means for an expert that few rows were sent to: shrunk towards those of all
 * rows.
 *
 *     S = (N S_e + k S_all) / (N + k)     C = N C_e / (N + k)     k = n / 4
 *
 * for N rows of the expert. The weight that minimizes the expected squared
 * error is k = tr(S)^2 / |S - S_all|^2 (Ledoit and Wolf, J. Multivariate
 * Analysis 88, 2004: of the variance of S_e and its distance to the target).
 * With an effective rank tr(S)^2 / |S|^2 of n / 16, and half of |S| between an
 * expert and its layer, it is n / 4. An expert without rows gets S_all, and no
 * correction.
 *
 * expert   number of the expert, among those of the parameters
 * s, c     n x n each; receive S and C */
void gg_moments_shrink(const struct gg_moments *m, struct gg_linalg *la,
                       size_t expert, float *s, float *c);

/* Mean of the diagonal of an n x n matrix. */
double gg_moments_mean_diagonal(const float *s, size_t n);

/* State of means of n_rows rows. */
enum gg_moments_state gg_moments_check(struct gg_linalg *la, const float *s,
                                       const float *c, size_t n,
                                       size_t n_rows);

#endif
