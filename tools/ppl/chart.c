/* SPDX-License-Identifier: MIT */
/* chart.c - charts of figures along a text: perplexity, divergence, change */
#include "config.h"
#include "tools/ppl/report.h"
#include "tools/common/msg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define PM "\302\261" /* plus or minus */

static size_t count_curves(const struct ppl_report *r)
{
    return r->n + (r->base != NULL);
}

static double *alloc_doubles(size_t n)
{
    return msg_must(calloc(n + 1, sizeof(double)));
}

/* ---- perplexity after each chunk ---- */

enum { MOST_POINTS = 400 };

/* Points of a curve: perplexity after some chunks, and the ends of its error
 * band. */
struct running {
    double *x, *y, *low, *high;
    size_t n;
};

static void fill_curve(struct running *p, const struct ppl_report *r,
                       const struct ppl_curve *c)
{
    const size_t step = (r->n_chunks + MOST_POINTS - 1) / MOST_POINTS;
    struct ppl_mean all = { 0, 0, 0 };
    p->n = 0;
    for (size_t i = 0; i < r->n_chunks; i++) {
        all.n += c->chunk[i].n;
        all.sum += c->chunk[i].sum;
        all.sum_sq += c->chunk[i].sum_sq;
        if ((i + 1) % step && i + 1 < r->n_chunks)
            continue;
        const double ppl = exp(ppl_mean_value(&all));
        const double error = ppl * ppl_mean_error(&all);
        p->x[p->n] = (double)(r->run->e.first_chunk + i + 1);
        p->y[p->n] = ppl;
        p->low[p->n] = ppl - error;
        p->high[p->n++] = ppl + error;
    }
}

/* Opacity of an error band. Bands of many models overlap, so they are
 * fainter. */
static double choose_band_opacity(const struct ppl_report *r)
{
    return count_curves(r) < 3 ? 0.2 : 0.45 / (double)count_curves(r);
}

void ppl_chart_running(const struct ppl_report *r, struct svg_chart *c)
{
    const size_t room = MOST_POINTS + 1;
    struct running p = { alloc_doubles(room), alloc_doubles(room),
                         alloc_doubles(room), alloc_doubles(room), 0 };
    struct text desc = { NULL, 0, 0 };
    double low = INFINITY, high = -INFINITY;
    for (size_t k = 0; k < count_curves(r); k++) {
        fill_curve(&p, r, &r->curve[k]);
        /* the first tenth is noisy and would stretch the axis */
        for (size_t i = p.n / 10; i < p.n; i++) {
            low = fmin(low, p.low[i]);
            high = fmax(high, p.high[i]);
        }
        text_addf(&desc, "%s ends at %.4f " PM " %.4f. ", r->curve[k].label,
                  p.y[p.n - 1], p.high[p.n - 1] - p.y[p.n - 1]);
    }
    c->x = (struct svg_axis){ .label = "chunks evaluated" };
    c->y = (struct svg_axis){ .label = "perplexity" };
    svg_axis_fit(&c->x, (double)r->run->e.first_chunk + (r->n_chunks > 1),
                 (double)(r->run->e.first_chunk + r->n_chunks), 7, true);
    c->x.step = fmax(c->x.step, 1);
    svg_axis_fit(&c->y, low, high, 6, false);
    svg_begin(c, "Perplexity so far, " PM " one standard error",
              desc.s ? desc.s : "");
    for (size_t k = 0; k < count_curves(r); k++) {
        fill_curve(&p, r, &r->curve[k]);
        svg_band(c, r->curve[k].series, choose_band_opacity(r), p.x, p.low,
                 p.high, p.n);
    }
    for (size_t k = 0; k < count_curves(r); k++) {
        fill_curve(&p, r, &r->curve[k]);
        svg_line(c, r->curve[k].series, r->curve[k].label, p.x, p.y, p.n);
    }
    svg_end(c);
    text_fini(&desc);
    free(p.x);
    free(p.y);
    free(p.low);
    free(p.high);
}

/* ---- divergence by position ---- */

/* The range of the means of all models, with their errors. Returns false if no
 * mean is above 0. */
static bool find_position_range(const struct ppl_report *r, double *low,
                                double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t k = 0; k < r->n; k++)
        for (int i = 0; i < PPL_POSITIONS; i++) {
            const struct ppl_mean *m = &r->curve[k].position[i];
            const double v = ppl_mean_value(m), e = ppl_mean_error(m);
            if (!(v > 0))
                continue;
            *low = fmin(*low, v);
            *high = fmax(*high, isnan(e) ? v : v + e);
        }
    return *high > 0;
}

void ppl_chart_position(const struct ppl_report *r, struct svg_chart *c)
{
    double x[PPL_POSITIONS], y[PPL_POSITIONS], a[PPL_POSITIONS],
        b[PPL_POSITIONS], low, high;
    const double width = (double)r->n_rows / PPL_POSITIONS;
    c->x = (struct svg_axis){ .label = "tokens before it in the chunk" };
    c->y = (struct svg_axis){ .label = "KL divergence (nats)" };
    svg_axis_fit(&c->x, r->first, (double)r->first + r->n_rows, 7, true);
    if (!find_position_range(r, &low, &high))
        svg_axis_fit(&c->y, 0, 1, 5, false);
    else if (high > 20 * low)
        svg_axis_fit_log(&c->y, low, high);
    else
        svg_axis_fit(&c->y, 0, high, 5, false);
    svg_begin(c, "KL divergence by position, " PM " one standard error",
              "Mean divergence of the models' predictions from the base's, "
              "against the number of tokens before it in the chunk.");
    for (size_t k = 0; k < r->n; k++) {
        size_t n = 0;
        for (int i = 0; i < PPL_POSITIONS; i++) {
            const struct ppl_mean *m = &r->curve[k].position[i];
            const double e = ppl_mean_error(m);
            if (!m->n)
                continue;
            x[n] = r->first + width * (i + 0.5);
            y[n] = ppl_mean_value(m);
            a[n] = y[n] - (isnan(e) ? 0 : e);
            b[n] = y[n] + (isnan(e) ? 0 : e);
            n++;
        }
        svg_band(c, r->curve[k].series, 0.2, x, a, b, n);
        svg_line(c, r->curve[k].series, r->curve[k].label, x, y, n);
    }
    svg_end(c);
}

/* ---- change of probability ---- */

/* Distance of the outermost bin with a token from the middle, over all models,
 * in bins. */
static int find_widest_change(const struct ppl_report *r)
{
    int most = 1;
    for (size_t k = 0; k < r->n; k++)
        for (int i = 0; i < PPL_CHANGES; i++) {
            const int far = i < PPL_CHANGES / 2 ? PPL_CHANGES / 2 - i
                                                : i - PPL_CHANGES / 2 + 1;
            if (r->curve[k].change[i] && far > most)
                most = far;
        }
    return most;
}

/* Number of narrow bins that make a drawn bin: 1, 2 or 5 times a power of ten,
 * chosen for about 50 drawn bins on each side of the middle. */
static int choose_bin_width(int reach)
{
    static const int m[] = { 1, 2, 5 };
    for (int unit = 1;; unit *= 10)
        for (int i = 0; i < 3; i++)
            if (reach <= 40 * m[i] * unit)
                return m[i] * unit;
}

void ppl_chart_change(const struct ppl_report *r, struct svg_chart *c)
{
    const int width = choose_bin_width(find_widest_change(r));
    const int side = (find_widest_change(r) + width - 1) / width, n = 2 * side;
    const double percent = 200.0 / PPL_CHANGES; /* width of a narrow bin */
    double *x = alloc_doubles((size_t)n + 1), *y = alloc_doubles((size_t)n);
    uint64_t total = 0;
    for (int i = 0; i < PPL_CHANGES; i++)
        total += r->curve[0].change[i];
    for (int i = 0; i <= n; i++)
        x[i] = (i - side) * width * percent;
    c->x = (struct svg_axis){
        .label = "change of the token's probability (percentage points)"
    };
    c->y = (struct svg_axis){ .label = "% of tokens" };
    svg_axis_fit(&c->x, x[0], x[n], 8, true);
    svg_axis_fit_log(&c->y, 60.0 / (double)(total ? total : 1), 100);
    svg_begin(c, "How probabilities of the text's tokens change",
              "Share of tokens against the change of their probability, on a "
              "logarithmic scale: narrow is good.");
    for (size_t k = 0; k < r->n; k++) {
        for (int i = 0; i < n; i++) {
            uint64_t sum = 0;
            for (int j = 0; j < width; j++) {
                const int at = PPL_CHANGES / 2 + (i - side) * width + j;
                sum +=
                    at >= 0 && at < PPL_CHANGES ? r->curve[k].change[at] : 0;
            }
            y[i] = 100.0 * (double)sum / (double)(total ? total : 1);
        }
        svg_steps(c, r->curve[k].series, r->curve[k].label, x, y, (size_t)n);
    }
    svg_end(c);
    free(x);
    free(y);
}
