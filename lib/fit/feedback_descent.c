/* SPDX-License-Identifier: MIT */
/* feedback_descent.c - coordinate descent over sub-blocks
 *
 * While all other elements stay, e' S e is a parabola in the elements of a
 * sub-block. Its least value is at the elements q + M^-1 g, where q are the
 * present ones, M are the sub-block's moments, and g = S e. The sub-block is
 * rounded to these elements with feedback by M's factor, and with a search of
 * its scale, as in the first pass. Then single elements move. What does not
 * lower the error is undone.
 */
#include "config.h"
#include "fit/feedback_task.h"

#include <math.h>
#include <string.h>

enum { W = GG_FEEDBACK_LANES, PANEL_SIZE = GG_FEEDBACK_PANEL_SIZE };
enum { PASSES = 3 };

/* Factor M = R R', R upper, from the last column on (Golub and Van Loan,
 * Matrix Computations, 4.2.9): t->sub_s, t->sub_g and t->view. False: M is
 * singular. */
static bool factor_moments(struct gg_feedback_task *t, size_t first)
{
    const struct gg_feedback_metric *m = t->job->metric;
    const unsigned n = t->job->form->sub_len;
    float *diag = t->factor;
    for (unsigned j = n; j-- > 0;) {
        const float *s = m->s + (first + j) * m->n + first;
        double d = s[j];
        memcpy(t->sub_s + j * n, s, n * sizeof *s);
        for (unsigned k = j + 1; k < n; k++)
            d -= (double)t->sub_g[k * n + j] * t->sub_g[k * n + j] * diag[k];
        diag[j] = (float)d;
        if (!(diag[j] > 0) || !isfinite(diag[j]))
            return false;
        for (unsigned i = 0; i < j; i++) {
            double x = s[i];
            for (unsigned k = j + 1; k < n; k++)
                x -= (double)t->sub_g[k * n + i] * t->sub_g[k * n + j] *
                     diag[k];
            t->sub_g[j * n + i] = (float)(x / d);
        }
    }
    return true;
}

/* Weights of a group's elements, as in the first pass. */
static void set_weights(struct gg_feedback_task *t)
{
    const unsigned n = t->job->form->sub_len, group = t->job->form->group;
    const float *diag = t->factor;
    float *weight = t->factor + GG_FEEDBACK_MAX_SUB;
    for (unsigned i = 0; i < n; i++) {
        float sum = diag[i];
        for (unsigned k = i + 1; k < n && k / group == i / group; k++)
            sum += diag[k] * (t->sub_g[k * n + i] * t->sub_g[k * n + i]);
        weight[i] = sum;
    }
    t->view.weight = weight;
}

/* Present elements of a sub-block: value[len][16] of vector v. */
static void load_values(const struct gg_feedback_task *t,
                        const struct gg_feedback_place *p, unsigned v,
                        float *value)
{
    const struct gg_form *f = t->job->form;
    for (unsigned l = 0; l < W; l++) {
        const struct gg_form_block *b = &t->block[v * W + l];
        const float scale = gg_form_scale(f, b, p->index);
        const float min = gg_form_min(f, b, p->index);
        for (unsigned j = 0; j < f->sub_len; j++) {
            const unsigned e = p->element + j;
            float level = gg_form_level(f, b, e);
            if (f->shift_len)
                level += f->shift[b->shift[e / f->shift_len]];
            value[j * W + l] = scale * level - min;
        }
    }
}

/* Set t->aim of a vector, and the error that it could save. */
static void find_aim(struct gg_feedback_task *t,
                     const struct gg_feedback_place *p, unsigned v,
                     float cost[W])
{
    const struct gg_feedback_sub sub = gg_feedback_sub_of(t, p, v);
    const size_t at = (size_t)v * PANEL_SIZE + p->column * W;
    const float *err =
        t->err + (v * t->job->metric->n + p->panel + p->column) * W;
    t->job->kern->solve(&sub, t->base + at, t->aim + at, cost);
    for (unsigned k = 0; k < sub.len * W; k++)
        t->aim[at + k] += t->target[at + k] - err[k];
}

/* Round a vector to its aim with the scales of the search. A lane whose error
 * does not fall gets its former block back. */
static void round_to_aim(struct gg_feedback_task *t,
                         const struct gg_feedback_place *p, unsigned v,
                         const float cost[W])
{
    const struct gg_feedback_job *job = t->job;
    const struct gg_feedback_sub sub = gg_feedback_sub_of(t, p, v);
    struct gg_feedback_try try;
    bool take[W];
    gg_feedback_own_try(t, p, v, &try);
    job->kern->round[job->rule->kind](job->rule, &sub, &try, t->lanes,
                                      t->codes, t->work);
    for (unsigned l = 0; l < W; l++) {
        take[l] = t->codes->cost[l] < cost[l] * (1 - 1e-5f);
        if (!take[l])
            t->block[v * W + l] = t->plain[v * W + l];
    }
    gg_feedback_store(t, p, v, take);
}

/* Move single elements of a vector. */
static void move_elements(struct gg_feedback_task *t,
                          const struct gg_feedback_place *p, unsigned v,
                          float *value)
{
    static const bool all[W] = {
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
    };
    const struct gg_feedback_job *job = t->job;
    const struct gg_feedback_descent d = {
        .len = job->form->sub_len,
        .s = t->sub_s,
        .aim = t->aim + (size_t)v * PANEL_SIZE + p->column * W
    };
    struct gg_feedback_try try;
    if (!job->kern->descend[job->rule->kind])
        return;
    gg_feedback_own_try(t, p, v, &try);
    job->kern->descend[job->rule->kind](job->rule, &d, &try, value, t->codes,
                                        t->work);
    gg_feedback_store(t, p, v, all);
}

/* Take the new elements of a vector if they lower the error by more than its
 * rounding. Is there a change in a row? */
static bool take_values(struct gg_feedback_task *t,
                        const struct gg_feedback_place *p, unsigned v,
                        const float cost[W], const float *value)
{
    const struct gg_feedback_job *job = t->job;
    const unsigned n = job->form->sub_len;
    const size_t at = (size_t)v * PANEL_SIZE + p->column * W;
    float *err = t->err + (v * job->metric->n + p->panel + p->column) * W;
    struct gg_feedback_sub sub = gg_feedback_sub_of(t, p, v);
    float left[W];
    bool changes = false;
    for (unsigned k = 0; k < n * W; k++)
        t->lanes[k] = t->aim[at + k] - value[k];
    sub.base = sub.target = t->lanes;
    job->kern->cost(&sub, left);
    for (unsigned l = 0; l < W; l++) {
        const unsigned r = v * W + l;
        const bool is_better = left[l] < cost[l] * (1 - 1e-5f);
        if (is_better)
            t->total[r] += (double)left[l] - cost[l];
        else
            t->block[r] = t->plain[r];
        changes = changes || (is_better && r < t->n_rows);
        for (unsigned j = 0; j < n; j++) {
            const float e = t->target[at + j * W + l] - value[j * W + l];
            float *to = &err[j * W + l], *delta = &t->delta[at + j * W + l];
            *delta = is_better ? e - *to : 0;
            *to = is_better ? e : *to;
        }
    }
    return changes;
}

static bool descend_sub(struct gg_feedback_task *t,
                        const struct gg_feedback_place *p)
{
    const unsigned n = t->job->form->sub_len;
    float cost[GG_FEEDBACK_VECTORS][W];
    float *value = t->lanes + GG_FEEDBACK_MAX_SUB * W;
    bool changes = false;
    gg_feedback_multiply_inner(t, t->base, t->delta, PANEL_SIZE, p->column,
                               p->column, p->column + n);
    for (unsigned v = 0; v < t->n_vectors; v++)
        memset(t->delta + (size_t)v * PANEL_SIZE + p->column * W, 0,
               n * W * sizeof *t->delta);
    if (!factor_moments(t, p->panel + p->column))
        return false;
    t->view.base = t->view.target = t->aim;
    t->view.diag = t->factor;
    if (t->job->rule->kind == GG_FEEDBACK_WORDS)
        set_weights(t);
    for (unsigned v = 0; v < t->n_vectors; v++)
        find_aim(t, p, v, cost[v]);
    memcpy(t->plain, t->block, t->n_vectors * W * sizeof *t->block);
    gg_feedback_climb(t, p);
    for (unsigned v = 0; v < t->n_vectors; v++) {
        round_to_aim(t, p, v, cost[v]);
        load_values(t, p, v, value);
        move_elements(t, p, v, value);
        if (take_values(t, p, v, cost[v], value))
            changes = true;
    }
    return changes;
}

/* Improve the blocks of a panel. Is there a change? */
static bool descend_panel(struct gg_feedback_task *t, size_t panel,
                          unsigned n_columns)
{
    const struct gg_feedback_job *job = t->job;
    const struct gg_form *f = job->form;
    bool changes = false;
    gg_feedback_load(t, job->target + t->first_row * job->metric->n, panel,
                     n_columns, t->target);
    gg_feedback_open_moments(t, panel, n_columns);
    for (unsigned column = 0; column < n_columns; column += f->block_len) {
        const size_t at = (panel + column) / f->block_len * f->block_size;
        gg_feedback_unpack(t, t->row, at);
        if (f->has_d && gg_feedback_refit(t, panel))
            changes = true;
        for (unsigned s = 0; s < gg_form_n_subs(f); s++) {
            const struct gg_feedback_place p = { panel,
                                                 column + s * f->sub_len, s,
                                                 s * f->sub_len };
            if (descend_sub(t, &p))
                changes = true;
        }
        gg_feedback_pack(t, at);
    }
    return changes;
}

void gg_feedback_descend(struct gg_feedback_task *t)
{
    const size_t n = t->job->metric->n;
    const unsigned passes =
        t->job->effort == GG_FEEDBACK_ONE_DESCENT ? 1 : PASSES;
    bool changes = true;
    for (unsigned pass = 0; pass < passes && changes; pass++) {
        changes = false;
        for (size_t panel = 0; panel < n; panel += GG_FEEDBACK_PANEL)
            if (descend_panel(
                    t, panel,
                    (unsigned)GG_MIN((size_t)GG_FEEDBACK_PANEL, n - panel)))
                changes = true;
    }
}
