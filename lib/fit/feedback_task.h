/* SPDX-License-Identifier: MIT */
/* feedback_task.h - the state of one thread that encodes rows with feedback
 *
 * A task is up to 64 rows: vectors of 16 lanes. Columns are done in panels of
 * 256. The feedback of all columns before a panel is a product, blocked for
 * the caches; a sub-block then adds that of the panel's earlier columns.
 */
#ifndef GG_FIT_FEEDBACK_TASK_H
#define GG_FIT_FEEDBACK_TASK_H

#include "base/compiler.h"
#include "fit/feedback.h"
#include "fit/feedback_kern.h"

enum {
    GG_FEEDBACK_VECTORS = 8,
    GG_FEEDBACK_ROWS = GG_FEEDBACK_VECTORS * GG_FEEDBACK_LANES,
    GG_FEEDBACK_PANEL = 256, /* columns, a multiple of every block's */
    GG_FEEDBACK_CHUNK = 128, /* earlier columns of a product at once */
    GG_FEEDBACK_PANEL_SIZE = GG_FEEDBACK_PANEL * GG_FEEDBACK_LANES /* floats */
};

/* Arguments of a call, shared by all threads. */
struct gg_feedback_job {
    const struct gg_feedback_kern *kern;
    const struct gg_feedback_rule *rule;
    const struct gg_form *form;
    const struct gg_feedback_metric *metric;
    const float *weight; /* [n] codewords: weights for their choice */
    const float *target; /* [n_rows][n] */
    uint8_t *bytes;
    size_t n_rows, row_size;
    size_t rows_per_task;
    enum gg_feedback_effort effort;
    struct gg_feedback_task *task; /* a task for each thread */
};

/* The sub-block that is rounded: what its elements are compared with. */
struct gg_feedback_view {
    const float *base, *target; /* [VECTORS][PANEL][16] of the panel, as in
                                 * struct gg_feedback_sub */
    const float *diag, *weight; /* [len] of the sub-block */
};

/* Scratch of a thread. */
struct gg_feedback_task {
    const struct gg_feedback_job *job;
    size_t first_row;
    unsigned n_rows, n_vectors;

    float *err;    /* [VECTORS][n][16] targets minus decoded elements */
    float *target; /* [VECTORS][PANEL][16] targets of a panel */
    float *base;   /* [VECTORS][PANEL][16] with feedback */
    float *chunk;  /* tiles of a chunk of G: [PANEL / 8][CHUNK][8] */
    float *inner;  /* tiles of the panel's own G: [PANEL / 8][PANEL][8] */
    float *sub_g;  /* [len][len], row j: G of columns i < j of a sub-block */
    float *work;   /* GG_FEEDBACK_WORK floats for the kernels */
    struct gg_feedback_view view;
    float *lanes; /* [2][MAX_SUB][16] rows that still climb */
    struct gg_feedback_codes *codes;
    struct gg_form_block *block; /* [ROWS] the same block of each row */
    struct gg_form_block *plain; /* [ROWS] that block of the plain encoder */
    struct gg_form_block *best;  /* [ROWS] the best of some attempts */
    float *best_err;             /* [VECTORS][PANEL][16] its part of err */
    float *plain_base;           /* [VECTORS][PANEL][16] base before it */
    /* descent alone */
    float *aim;    /* [VECTORS][PANEL][16] best elements of sub-blocks */
    float *delta;  /* [VECTORS][PANEL][16] changes of err in the panel */
    float *sub_s;  /* [len][len] moments of a sub-block */
    float *factor; /* [2][len] diag and weight of their factor */
    uint8_t *row;  /* [ROWS] new bytes */
    double cost[GG_FEEDBACK_ROWS];  /* errors of the block */
    double total[GG_FEEDBACK_ROWS]; /* errors of the new bytes */
};

/* A sub-block of all rows of a task. */
struct gg_feedback_place {
    size_t panel;     /* first column of the panel */
    unsigned column;  /* first column of the sub-block in the panel */
    unsigned index;   /* sub-block in the block */
    unsigned element; /* first element in the block */
};

/* Prepare a form for the kernels. */
void gg_feedback_rule_init(struct gg_feedback_rule *r,
                           const struct gg_form *f);

/* Columns of [n_rows][n] rows as vectors: out[v][j] for columns from `from`
 * on, n_columns of them. Lanes without a row are 0. */
void gg_feedback_load(const struct gg_feedback_task *t, const float *rows,
                      size_t from, unsigned n_columns, float *out);

/* Add the feedback of columns before a panel to t->base, and make t->inner. */
void gg_feedback_open_panel(struct gg_feedback_task *t, size_t panel,
                            unsigned n_columns);

/* Set t->base to S err for the columns of a panel, and t->inner to the panel's
 * own moments, all of them. */
void gg_feedback_open_moments(struct gg_feedback_task *t, size_t panel,
                              unsigned n_columns);

/* Add products with t->inner: acc[j] += sum over i < n of err[i] * inner[i][j]
 * for columns first .. end - 1, multiples of 8.
 *
 * acc   [VECTORS][PANEL][16]
 * err   columns 0 .. n - 1 of vectors that are `stride` floats apart */
void gg_feedback_multiply_inner(const struct gg_feedback_task *t, float *acc,
                                const float *err, size_t stride, unsigned n,
                                unsigned first, unsigned end);

/* Add the feedback of the panel's columns before `column` to n columns from
 * it on. */
void gg_feedback_add_inner(struct gg_feedback_task *t, size_t panel,
                           unsigned column, unsigned n);

/* Make t->sub_g and t->view for n columns from `first` on. */
void gg_feedback_load_sub(struct gg_feedback_task *t, size_t first,
                          unsigned n);

/* Sub-block of vector v. */
struct gg_feedback_sub gg_feedback_sub_of(const struct gg_feedback_task *t,
                                          const struct gg_feedback_place *p,
                                          unsigned v);

/* Search codes of scales and minima of a sub-block, in t->block. */
void gg_feedback_climb(struct gg_feedback_task *t,
                       const struct gg_feedback_place *p);

/* Copy codes of a rounded sub-block, in t->codes, into the blocks of vector v.
 *
 * take   lanes to copy */
void gg_feedback_store(struct gg_feedback_task *t,
                       const struct gg_feedback_place *p, unsigned v,
                       const bool take[GG_FEEDBACK_LANES]);

/* Attempt with the codes in the blocks of vector v. */
void gg_feedback_own_try(const struct gg_feedback_task *t,
                         const struct gg_feedback_place *p, unsigned v,
                         struct gg_feedback_try *try);

/* Read block `at` bytes into each row of rows into t->block. Lanes without a
 * row receive a copy of the first one. */
void gg_feedback_unpack(struct gg_feedback_task *t, const uint8_t *rows,
                        size_t at);

/* Write t->block to t->row, `at` bytes into each row. */
void gg_feedback_pack(struct gg_feedback_task *t, size_t at);

/* Round the sub-blocks of a block of all rows, from the scales in t->block on:
 * columns of the panel from `column` on. Writes t->block, t->cost and t->err,
 * and adds feedback to t->base. */
void gg_feedback_round_block(struct gg_feedback_task *t, size_t panel,
                             unsigned column);

/* gg_feedback_round_block() with several scales; the best one is kept. */
void gg_feedback_try_scales(struct gg_feedback_task *t, size_t panel,
                            unsigned column);

/* Encode the rows of a task: t->row and t->total. */
void gg_feedback_pass(struct gg_feedback_task *t);

/* Improve t->row by coordinate descent; t->total becomes smaller or stays. */
void gg_feedback_descend(struct gg_feedback_task *t);

/* Fit the scale d, and dmin, of a panel's block to t->base = S err. Adapts
 * t->block, t->err, t->base and t->total. Uses t->aim, t->delta, t->best_err
 * and t->plain_base. Returns whether a row changes. */
bool gg_feedback_refit(struct gg_feedback_task *t, size_t panel);

/* Find the rows whose t->total is below the error of the plain bytes. Uses
 * t->err. */
void gg_feedback_guard(struct gg_feedback_task *t,
                       bool is_better[GG_FEEDBACK_ROWS]);

/* Lane l of an attempt with codes of row's block. */
void gg_feedback_set_try(const struct gg_form *f, struct gg_feedback_try *try,
                         unsigned l, const struct gg_form_block *b,
                         int32_t scale, int32_t min);

#endif
