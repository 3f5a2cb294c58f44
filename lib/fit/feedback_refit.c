/* SPDX-License-Identifier: MIT */
/* feedback_refit.c - the scales d and dmin of a block for the least error
 *
 * An element is d u + dmin v: u is a level times the value of the scale's
 * code, v is minus the value of the minimum's code. With d + x and dmin + y in
 * place of d and dmin, e' S e changes by
 *
 *     x^2 u'Su + 2 x y u'Sv + y^2 v'Sv - 2 x u'Se - 2 y v'Se
 *
 * The least value is where two linear equations hold. d and dmin are rounded
 * to F16, and taken if the error then falls.
 */
#include "config.h"
#include "dtype/f16.h"
#include "fit/feedback_task.h"

#include <math.h>
#include <string.h>

enum { W = GG_FEEDBACK_LANES, PANEL_SIZE = GG_FEEDBACK_PANEL_SIZE };

/* Sums over the elements of a row's block. */
struct sums {
    double uu, uv, vv; /* u'Su, u'Sv, v'Sv */
    double ue, ve;     /* u'Se, v'Se */
};

/* u of all rows to t->aim, v to t->delta. */
static void load_factors(struct gg_feedback_task *t)
{
    const struct gg_form *f = t->job->form;
    for (unsigned r = 0; r < t->n_vectors * W; r++) {
        struct gg_form_block b = t->block[r];
        float x[GG_FORM_MAX_LEN];
        float *u = t->aim + r / W * PANEL_SIZE + r % W;
        float *v = t->delta + r / W * PANEL_SIZE + r % W;
        b.d = 1;
        b.dmin = 0;
        gg_form_values(f, &b, x);
        for (unsigned j = 0; j < f->block_len; j++) {
            u[j * W] = x[j];
            v[j * W] = f->has_min ? -f->min_value(b.min[j / f->sub_len]) : 0;
        }
    }
}

static struct sums add_up(const struct gg_feedback_task *t, unsigned r)
{
    const size_t at = (size_t)(r / W) * PANEL_SIZE + r % W;
    const float *u = t->aim + at, *v = t->delta + at, *e = t->base + at;
    const float *su = t->best_err + at, *sv = t->plain_base + at;
    struct sums s = { 0 };
    for (unsigned j = 0; j < t->job->form->block_len; j++) {
        const unsigned k = j * W;
        s.uu += (double)u[k] * su[k];
        s.uv += (double)u[k] * sv[k];
        s.vv += (double)v[k] * sv[k];
        s.ue += (double)u[k] * e[k];
        s.ve += (double)v[k] * e[k];
    }
    return s;
}

static float round_f16(double x)
{
    return gg_dtype_f16_to_f32(gg_dtype_f32_to_f16((float)x));
}

/* Find d and dmin of a row. Returns the change of the error; 0: none. */
static double fit_scales(const struct sums *s, const struct gg_form *f,
                         float *d, float *dmin)
{
    const double det = s->uu * s->vv - s->uv * s->uv;
    double x = s->uu > 0 ? s->ue / s->uu : 0, y = 0;
    if (f->has_dmin && det > 1e-9 * s->uu * s->vv) {
        x = (s->ue * s->vv - s->ve * s->uv) / det;
        y = (s->uu * s->ve - s->uv * s->ue) / det;
    }
    const float new_d = round_f16(*d + x), new_dmin = round_f16(*dmin + y);
    if (!isfinite(new_d) || !isfinite(new_dmin) || new_d == 0 || new_dmin < 0)
        return 0;
    x = (double)new_d - *d;
    y = (double)new_dmin - *dmin;
    const double change = x * x * s->uu + 2 * x * y * s->uv + y * y * s->vv -
                          2 * (x * s->ue + y * s->ve);
    if (!(change < 0))
        return 0;
    *d = new_d;
    *dmin = new_dmin;
    return change;
}

/* Move a row's block to its new scales. x, y: changes of d and dmin. */
static void move_block(struct gg_feedback_task *t, size_t panel, unsigned r,
                       float x, float y)
{
    const struct gg_form *f = t->job->form;
    const size_t at = (size_t)(r / W) * PANEL_SIZE + r % W;
    float *err = t->err + (r / W * t->job->metric->n + panel) * W + r % W;
    float value[GG_FORM_MAX_LEN];
    gg_form_values(f, &t->block[r], value);
    for (unsigned j = 0; j < f->block_len; j++) {
        const size_t k = at + j * W;
        err[j * W] = t->target[k] - value[j];
        t->base[k] -= x * t->best_err[k] + y * t->plain_base[k];
    }
}

/* S times the columns of x, for a panel of n_columns. */
static void multiply_moments(struct gg_feedback_task *t, float *out,
                             const float *x, unsigned n_columns)
{
    memset(out, 0, t->n_vectors * (size_t)PANEL_SIZE * sizeof *out);
    gg_feedback_multiply_inner(t, out, x, PANEL_SIZE, n_columns, 0, n_columns);
}

bool gg_feedback_refit(struct gg_feedback_task *t, size_t panel)
{
    const struct gg_form *f = t->job->form;
    bool changes = false;
    load_factors(t);
    multiply_moments(t, t->best_err, t->aim, f->block_len);
    if (f->has_dmin)
        multiply_moments(t, t->plain_base, t->delta, f->block_len);
    else
        memset(t->plain_base, 0,
               t->n_vectors * (size_t)PANEL_SIZE * sizeof *t->plain_base);
    for (unsigned r = 0; r < t->n_rows; r++) {
        struct gg_form_block *b = &t->block[r];
        const struct sums s = add_up(t, r);
        const float d = b->d, dmin = b->dmin;
        const double change = fit_scales(&s, f, &b->d, &b->dmin);
        if (change < 0) {
            changes = true;
            t->total[r] += change;
            move_block(t, panel, r, b->d - d, b->dmin - dmin);
        }
    }
    return changes;
}
