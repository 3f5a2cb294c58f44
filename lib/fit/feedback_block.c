/* SPDX-License-Identifier: MIT */
/* feedback_block.c - blocks of the rows of a task, and vectors of them */
#include "config.h"
#include "fit/feedback_task.h"

enum { W = GG_FEEDBACK_LANES, PANEL_SIZE = GG_FEEDBACK_PANEL_SIZE };

struct gg_feedback_sub gg_feedback_sub_of(const struct gg_feedback_task *t,
                                          const struct gg_feedback_place *p,
                                          unsigned v)
{
    const size_t at = (size_t)v * PANEL_SIZE + p->column * W;
    return (struct gg_feedback_sub){ .len = t->job->form->sub_len,
                                     .base = t->view.base + at,
                                     .target = t->view.target + at,
                                     .g = t->sub_g,
                                     .diag = t->view.diag,
                                     .weight = t->view.weight };
}

/* Levels of a lane. */
static void store_levels(const struct gg_form *f,
                         const struct gg_feedback_codes *c, unsigned l,
                         const struct gg_feedback_place *p,
                         struct gg_form_block *b)
{
    for (unsigned j = 0; j < f->sub_len; j++)
        b->code[p->element + j] =
            (uint16_t)((unsigned)c->code[j][l] + f->code_lo);
}

/* Codewords, signs and shifts of a lane. */
static void store_words(const struct gg_form *f,
                        const struct gg_feedback_codes *c, unsigned l,
                        const struct gg_feedback_place *p,
                        struct gg_form_block *b)
{
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

void gg_feedback_store(struct gg_feedback_task *t,
                       const struct gg_feedback_place *p, unsigned v,
                       const bool take[GG_FEEDBACK_LANES])
{
    const struct gg_form *f = t->job->form;
    for (unsigned l = 0; l < W; l++) {
        struct gg_form_block *b = &t->block[v * W + l];
        if (take[l] && f->n_levels)
            store_levels(f, t->codes, l, p, b);
        else if (take[l])
            store_words(f, t->codes, l, p, b);
    }
}

void gg_feedback_set_try(const struct gg_form *f, struct gg_feedback_try *try,
                         unsigned l, const struct gg_form_block *b,
                         int32_t scale, int32_t min)
{
    try->scale[l] = b->d * f->scale_value(scale);
    try->min[l] = f->has_min ? b->dmin * f->min_value(min) : 0;
    try->shift[l] = f->shift_len ? f->shift[min & 1] : 0;
}

void gg_feedback_own_try(const struct gg_feedback_task *t,
                         const struct gg_feedback_place *p, unsigned v,
                         struct gg_feedback_try *try)
{
    const struct gg_form *f = t->job->form;
    for (unsigned l = 0; l < W; l++) {
        const struct gg_form_block *b = &t->block[v * W + l];
        gg_feedback_set_try(f, try, l, b, b->scale[p->index],
                            f->has_min ? b->min[p->index]
                                       : b->shift[p->index]);
    }
}

void gg_feedback_unpack(struct gg_feedback_task *t, const uint8_t *rows,
                        size_t at)
{
    const struct gg_feedback_job *job = t->job;
    for (unsigned r = 0; r < t->n_vectors * W; r++)
        if (r < t->n_rows)
            job->form->unpack(&t->block[r], rows + r * job->row_size + at);
        else
            t->block[r] = t->block[0];
}

void gg_feedback_pack(struct gg_feedback_task *t, size_t at)
{
    const struct gg_feedback_job *job = t->job;
    for (unsigned r = 0; r < t->n_rows; r++)
        job->form->pack(t->row + r * job->row_size + at, &t->block[r]);
}
