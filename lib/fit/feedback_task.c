/* SPDX-License-Identifier: MIT */
/* feedback_task.c - one pass of feedback over the rows of a task */
#include "config.h"
#include "fit/feedback_task.h"

#include <string.h>

enum { W = GG_FEEDBACK_LANES, PANEL_SIZE = GG_FEEDBACK_PANEL_SIZE };

/* Round a sub-block with the codes of scales and minima in the rows' blocks. */
static void round_sub(struct gg_feedback_task *t,
                      const struct gg_feedback_place *p)
{
    static const bool all[W] = {
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
    };
    const struct gg_feedback_job *job = t->job;
    for (unsigned v = 0; v < t->n_vectors; v++) {
        const struct gg_feedback_sub sub = gg_feedback_sub_of(t, p, v);
        struct gg_feedback_try try;
        gg_feedback_own_try(t, p, v, &try);
        float *err = t->err + (v * job->metric->n + p->panel + p->column) * W;
        job->kern->round[job->rule->kind](job->rule, &sub, &try, err, t->codes,
                                          t->work);
        gg_feedback_store(t, p, v, all);
        for (unsigned l = 0; l < W; l++)
            t->cost[v * W + l] += t->codes->cost[l];
    }
}

void gg_feedback_round_block(struct gg_feedback_task *t, size_t panel,
                             unsigned column)
{
    const struct gg_form *f = t->job->form;
    memset(t->cost, 0, sizeof t->cost);
    for (unsigned s = 0; s < gg_form_n_subs(f); s++) {
        const struct gg_feedback_place p = { panel, column + s * f->sub_len, s,
                                             s * f->sub_len };
        gg_feedback_add_inner(t, panel, p.column, f->sub_len);
        gg_feedback_load_sub(t, panel + p.column, f->sub_len);
        if (t->job->effort != GG_FEEDBACK_FIXED)
            gg_feedback_climb(t, &p);
        round_sub(t, &p);
    }
}

/* Encode a block of all rows: columns of the panel from `column` on. */
static void encode_block(struct gg_feedback_task *t, size_t panel,
                         unsigned column)
{
    const struct gg_feedback_job *job = t->job;
    const struct gg_form *f = job->form;
    const size_t at = (panel + column) / f->block_len * f->block_size;
    gg_feedback_unpack(t, job->bytes + t->first_row * job->row_size, at);
    if (job->effort == GG_FEEDBACK_FIXED)
        gg_feedback_round_block(t, panel, column);
    else
        gg_feedback_try_scales(t, panel, column);
    for (unsigned r = 0; r < t->n_vectors * W; r++)
        t->total[r] += t->cost[r];
    gg_feedback_pack(t, at);
}

void gg_feedback_pass(struct gg_feedback_task *t)
{
    const struct gg_feedback_job *job = t->job;
    const size_t n = job->metric->n;
    memset(t->total, 0, sizeof t->total);
    for (size_t panel = 0; panel < n; panel += GG_FEEDBACK_PANEL) {
        const unsigned n_columns =
            (unsigned)GG_MIN((size_t)GG_FEEDBACK_PANEL, n - panel);
        gg_feedback_load(t, job->target + t->first_row * n, panel, n_columns,
                         t->target);
        memcpy(t->base, t->target,
               t->n_vectors * (size_t)PANEL_SIZE * sizeof *t->base);
        gg_feedback_open_panel(t, panel, n_columns);
        for (unsigned j = 0; j < n_columns; j += job->form->block_len)
            encode_block(t, panel, j);
    }
}
