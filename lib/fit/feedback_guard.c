/* SPDX-License-Identifier: MIT */
/* feedback_guard.c - comparison of new rows with those of the plain encoder
 *
 * The error of a row is a sum of squares over columns, so its partial sums
 * only grow: the comparison ends as soon as that of the plain row has passed
 * the error of the new one.
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

/* Errors of the plain rows in a panel, as t->base and in t->err. */
static void load_errors(struct gg_feedback_task *t, size_t panel,
                        unsigned n_columns)
{
    const struct gg_feedback_job *job = t->job;
    const struct gg_form *f = job->form;
    const size_t n = job->metric->n;
    float x[GG_FORM_MAX_LEN];
    for (unsigned r = 0; r < t->n_rows; r++) {
        float *base = t->base + r / W * PANEL_SIZE + r % W;
        const float *target = job->target + (t->first_row + r) * n + panel;
        const uint8_t *row = job->bytes + (t->first_row + r) * job->row_size;
        for (unsigned j = 0; j < n_columns; j += f->block_len) {
            f->unpack(t->block,
                      row + (panel + j) / f->block_len * f->block_size);
            gg_form_values(f, t->block, x);
            for (unsigned e = 0; e < f->block_len; e++)
                base[(j + e) * W] = target[j + e] - x[e];
        }
    }
    for (unsigned v = 0; v < t->n_vectors; v++)
        memcpy(t->err + (v * n + panel) * W, t->base + v * PANEL_SIZE,
               n_columns * W * sizeof(float));
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
    memset(t->base, 0, t->n_vectors * (size_t)PANEL_SIZE * sizeof *t->base);
    for (size_t panel = 0; panel < n; panel += GG_FEEDBACK_PANEL) {
        const unsigned n_columns =
            (unsigned)GG_MIN((size_t)GG_FEEDBACK_PANEL, n - panel);
        load_errors(t, panel, n_columns);
        gg_feedback_open_panel(t, panel, n_columns);
        add_panel(t, panel, n_columns, sum);
        if (are_all_better(t, sum))
            break;
    }
    for (unsigned r = 0; r < t->n_rows; r++)
        is_better[r] = t->total[r] < sum[r];
}
