/* SPDX-License-Identifier: MIT */
/* feedback_guard.c - comparison of new rows with those of the plain encoder
 *
 * The error of a row is a sum of squares over columns, so its partial sums
 * only grow: the comparison ends as soon as that of the plain row has passed
 * the error of the new one. It begins with the last columns, where the errors
 * of all others come together. For moments of low rank, a few of them are
 * enough.
 */
#include "config.h"
#include "fit/feedback_task.h"

#include <math.h>
#include <string.h>

enum {
    W = GG_FEEDBACK_LANES,
    PANEL_SIZE = GG_FEEDBACK_PANEL_SIZE,
    STEP = 16 /* columns of a partial sum */
};

/* Errors of the plain rows, in t->err. */
static void load_errors(struct gg_feedback_task *t)
{
    const struct gg_feedback_job *job = t->job;
    const struct gg_form *f = job->form;
    const size_t n = job->metric->n;
    float x[GG_FORM_MAX_LEN];
    for (unsigned r = 0; r < t->n_vectors * W; r++)
        for (size_t j = 0; j < n; j += f->block_len) {
            float *err = t->err + (r / W * n + j) * W + r % W;
            const size_t row = t->first_row + r;
            for (unsigned e = 0; r >= t->n_rows && e < f->block_len; e++)
                err[e * W] = 0;
            if (r >= t->n_rows)
                continue;
            f->unpack(t->block, job->bytes + row * job->row_size +
                                    j / f->block_len * f->block_size);
            gg_form_values(f, t->block, x);
            for (unsigned e = 0; e < f->block_len; e++)
                err[e * W] = job->target[row * n + j + e] - x[e];
        }
}

/* Add the errors of a panel's columns to the sums. */
static void add_panel(struct gg_feedback_task *t, size_t panel,
                      unsigned n_columns, double sum[GG_FEEDBACK_ROWS])
{
    const struct gg_feedback_job *job = t->job;
    float cost[W];
    for (unsigned j = 0; j < n_columns; j += STEP) {
        gg_feedback_add_inner(t, panel, j, STEP);
        gg_feedback_load_sub(t, panel + j, STEP);
        for (unsigned v = 0; v < t->n_vectors; v++) {
            const struct gg_feedback_sub sub = {
                .len = STEP,
                .base = t->base + v * PANEL_SIZE + j * W,
                .target = t->err + (v * job->metric->n + panel + j) * W,
                .g = t->sub_g,
                .diag = job->metric->d + panel + j
            };
            job->kern->cost(&sub, cost);
            for (unsigned l = 0; l < W; l++)
                sum[v * W + l] += cost[l];
        }
    }
}

/* Is every row's sum above its error, or the row lost anyway? */
static bool are_all_better(const struct gg_feedback_task *t,
                           const double sum[GG_FEEDBACK_ROWS])
{
    for (unsigned r = 0; r < t->n_rows; r++)
        if (t->total[r] >= sum[r])
            return false;
    return true;
}

void gg_feedback_guard(struct gg_feedback_task *t,
                       bool is_better[GG_FEEDBACK_ROWS])
{
    const size_t n = t->job->metric->n;
    double sum[GG_FEEDBACK_ROWS] = { 0 };
    load_errors(t);
    for (size_t end = n; end > 0 && !are_all_better(t, sum);) {
        const size_t panel = (end - 1) / GG_FEEDBACK_PANEL * GG_FEEDBACK_PANEL;
        const unsigned n_columns = (unsigned)(end - panel);
        for (unsigned v = 0; v < t->n_vectors; v++)
            memcpy(t->base + v * PANEL_SIZE, t->err + (v * n + panel) * W,
                   n_columns * W * sizeof(float));
        gg_feedback_open_panel(t, panel, n_columns);
        add_panel(t, panel, n_columns, sum);
        end = panel;
    }
    for (unsigned r = 0; r < t->n_rows; r++)
        is_better[r] = t->total[r] < sum[r];
}
