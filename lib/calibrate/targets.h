/* SPDX-License-Identifier: MIT */
/* targets.h - corrected targets of a stage's matrices, and the metric of errors
 *
 * With the means S, C, D of moments.h and d the mean of S's diagonal:
 *
 *     target    T = W + a (W C + D) (S + .1 d I)^-1
 *     metric    S + .01 d I = R R', R upper triangular
 *
 * T minimizes, for strength a = 1, the mean square of X W' + (r - rq) / f - Xq
 * T' with a ridge of .1 d on T - W. A smaller a trusts the tokens less (QEP,
 * arXiv 2504.09629). The metric is what error feedback needs (fit/feedback.h).
 *
 * Single precision is enough for both: tests/linalg/check-factor. */
#ifndef GG_CALIBRATE_TARGETS_H
#define GG_CALIBRATE_TARGETS_H

#include "calibrate/moments.h"

struct gg_targets_params {
    /* Rows of all matrices for which targets will be computed. From 2 n on, C
     * (S + .1 d I)^-1 is computed once. */
    size_t n_rows;
    bool keep_s; /* keep S + .01 d I for coordinate descent */
};

struct gg_targets {
    size_t n;
    enum gg_moments_state state; /* not GOOD: nothing else is valid */
    bool has_correction;         /* false: T is W */
    float *g;      /* [n][n], row i: R[i][j] / R[j][j] for j > i */
    float *d;      /* [n], R[j][j]^2 */
    float *s;      /* [n][n], S + .01 d I; NULL: not kept */
    float damping; /* part of the mean diagonal that was added for the metric:
                    * .01, or more if the factorization needed it */

    float *ridge; /* [n][n], R of S + .1 d I. NULL: not needed any more */
    float *c;     /* [n][n], C, or C (S + .1 d I)^-1 if is_solved */
    bool is_solved;
    struct gg_targets_params p;
    const struct gguf_allocator *allocator; /* the moments' */
};

/* Compute the metric of a stage, or of one expert.
 *
 * out      Receives the targets. NULL after a failure.
 * m        Moments after gg_moments_finish(). Their sums of all rows become the
 *          targets' if expert is SIZE_MAX: m->all.s and m->all.c are then NULL.
 * expert   Number of the expert among the moments' own; SIZE_MAX: all rows.
 *
 * Moments without rows, all zero, not finite or not positive definite are not a
 * failure: *out has their state.
 *
 * GGUF_OK       *out is created; destroy it with gg_targets_destroy().
 * GGUF_E_NOMEM  Out of memory. */
enum gguf_status gg_targets_create(struct gg_targets **out,
                                   struct gg_linalg *la, struct gg_moments *m,
                                   size_t expert,
                                   const struct gg_targets_params *params,
                                   struct gguf_error *err);
/* Free t. NULL is allowed. */
void gg_targets_destroy(struct gg_targets *t);

/* Compute corrections of rows: k = (w C + d) (S + .1 mean I)^-1.
 *
 * w   n_rows x n, rows of W
 * d   n_rows x n, the same rows of D; NULL: none
 * k   n_rows x n; receives the corrections, to be added times the strength;
 *     0 without has_correction. May not overlap w and d.
 *
 * A row's correction does not depend on the other rows.
 *
 * GGUF_E_NOMEM  Out of memory. */
enum gguf_status gg_targets_correct(const struct gg_targets *t,
                                    struct gg_linalg *la, const float *w,
                                    const float *d, size_t n_rows, float *k,
                                    struct gguf_error *err);

/* Text about a state, for a reader: "its inputs are all zero". NULL: GOOD. */
const char *gg_targets_note(enum gg_moments_state state);

#endif
