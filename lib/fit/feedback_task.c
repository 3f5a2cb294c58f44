/* SPDX-License-Identifier: MIT */
/* feedback_task.c - one pass of feedback over the rows of a task */
#include "config.h"
#include "fit/feedback_task.h"

#include <string.h>

enum { W = GG_FEEDBACK_LANES, PANEL_SIZE = GG_FEEDBACK_PANEL_SIZE };

struct gg_feedback_sub gg_feedback_sub_of(const struct gg_feedback_task *t,
                                          const struct gg_feedback_place *p,
                                          unsigned v)
{
    const struct gg_feedback_job *job = t->job;
    const size_t at = (size_t)v * PANEL_SIZE + p->column * W;
    const size_t column = p->panel + p->column;
    return (struct gg_feedback_sub){ .len = job->form->sub_len,
                                     .base = t->base + at,
                                     .target = t->target + at,
                                     .g = t->sub_g,
                                     .diag = job->metric->d + column,
                                     .weight = job->weight
                                                   ? job->weight + column
                                                   : NULL };
}

/* Copy codes of a rounded sub-block into the blocks of its 16 rows. */
static void store_levels(struct gg_feedback_task *t,
                         const struct gg_feedback_place *p, unsigned v)
{
    const struct gg_form *f = t->job->form;
    for (unsigned l = 0; l < W; l++) {
        uint16_t *code = t->block[v * W + l].code + p->element;
        for (unsigned j = 0; j < f->sub_len; j++)
            code[j] = (uint16_t)((unsigned)t->codes->code[j][l] + f->code_lo);
    }
}

static void store_words(struct gg_feedback_task *t,
                        const struct gg_feedback_place *p, unsigned v)
{
    const struct gg_form *f = t->job->form;
    const struct gg_feedback_codes *c = t->codes;
    for (unsigned l = 0; l < W; l++) {
        struct gg_form_block *b = &t->block[v * W + l];
        for (unsigned j = 0; j < f->sub_len; j += f->group) {
            const unsigned group = (p->element + j) / f->group;
            b->code[group] = (uint16_t)c->code[j][l];
            if (f->shift_len == f->group)
                b->shift[group] = (uint8_t)c->shift[j][l];
        }
        for (unsigned j = 0; f->has_signs && j < f->sub_len; j += 8) {
            unsigned sign = 0;
            for (unsigned i = 0; i < 8; i++)
                sign |= (c->sign[j + i][l] < 0 ? 1u : 0u) << i;
            b->sign[(p->element + j) / 8] = (uint8_t)sign;
        }
    }
}

/* Round a sub-block with the codes of scales and minima in the rows' blocks. */
static void round_sub(struct gg_feedback_task *t,
                      const struct gg_feedback_place *p)
{
    const struct gg_feedback_job *job = t->job;
    const struct gg_form *f = job->form;
    for (unsigned v = 0; v < t->n_vectors; v++) {
        const struct gg_feedback_sub sub = gg_feedback_sub_of(t, p, v);
        struct gg_feedback_try try;
        for (unsigned l = 0; l < W; l++) {
            const struct gg_form_block *b = &t->block[v * W + l];
            gg_feedback_set_try(f, &try, l, b, b->scale[p->index],
                                f->has_min ? b->min[p->index]
                                           : b->shift[p->index]);
        }
        float *err = t->err + (v * job->metric->n + p->panel + p->column) * W;
        job->kern->round[job->rule->kind](job->rule, &sub, &try, err, t->codes,
                                          t->work);
        if (f->n_levels)
            store_levels(t, p, v);
        else
            store_words(t, p, v);
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
    for (unsigned r = 0; r < t->n_vectors * W; r++)
        if (r < t->n_rows)
            f->unpack(&t->block[r],
                      job->bytes + (t->first_row + r) * job->row_size + at);
        else
            t->block[r] = t->block[0];
    if (job->effort == GG_FEEDBACK_FIXED)
        gg_feedback_round_block(t, panel, column);
    else
        gg_feedback_try_scales(t, panel, column);
    for (unsigned r = 0; r < t->n_vectors * W; r++)
        t->total[r] += t->cost[r];
    for (unsigned r = 0; r < t->n_rows; r++)
        f->pack(t->row + r * job->row_size + at, &t->block[r]);
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
