/* SPDX-License-Identifier: MIT */
/* chart_size.c - charts that compare models: figures against size, and
 * percentiles */
#include "config.h"
#include "tools/ppl/report.h"
#include "tools/common/msg.h"
#include "tools/common/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PM "\302\261" /* plus or minus */

/* ---- figures against size ---- */

struct point {
    const char *label;
    int series;
    double size; /* bytes */
    struct gguf_figure y;
};

static struct point *make_points(const struct ppl_report *r, size_t *n,
                                 bool divergence)
{
    struct point *p = msg_must(calloc(r->n + 1, sizeof *p));
    *n = 0;
    /* the base is a point of perplexity only; its error, which the text causes
     * in all models alike, is left out */
    if (r->base && r->side->base && r->side->base->info.weight_size &&
        !divergence)
        p[(*n)++] = (struct point){ r->base->label,
                                    SVG_BASE,
                                    (double)r->side->base->info.weight_size,
                                    { r->stats[0].ppl_base.value, 0 } };
    for (size_t i = 0; i < r->n; i++)
        p[(*n)++] = (struct point){
            r->curve[i].label, r->curve[i].series,
            (double)ppl_report_model(r, i)->info.weight_size,
            divergence ? r->stats[i].kld
                       : (struct gguf_figure){ r->stats[i].ppl.value,
                                               r->stats[i].difference.error }
        };
    return p;
}

/* Fit the axis of sizes, in a unit that gives short numbers. Returns the unit
 * in bytes. */
static double fit_size_axis(struct svg_axis *a, struct point *p, size_t n)
{
    static const char *const units[] = { "size (KiB)", "size (MiB)",
                                         "size (GiB)", "size (TiB)" };
    double low = INFINITY, high = 0, unit = 1024;
    int k = 0;
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, p[i].size);
        high = fmax(high, p[i].size);
    }
    for (; k < 3 && high >= 1024 * unit; k++)
        unit *= 1024;
    a->label = units[k];
    const double room = fmax(high - low, high * 0.1) * 0.08;
    svg_axis_fit(a, fmax(low - room, 0) / unit, (high + room) / unit, 6,
                 false);
    return unit;
}

/* The area of a dot and its error bar, which labels must not cover. */
static struct svg_box get_dot_box(const struct svg_chart *c,
                                  const struct point *p, double unit)
{
    const double x = svg_x(c, p->size / unit), y = svg_y(c, p->y.value);
    const double e = p->y.error > 0 ? p->y.error : 0;
    const double low = svg_y(c, p->y.value - e);
    const double high = svg_y(c, p->y.value + e);
    return (struct svg_box){ x - 5, fmin(y - 5, high - 1), x + 5,
                             fmax(y + 5, low + 1) };
}

static void draw_size_chart(const struct ppl_report *r, struct svg_chart *c,
                            bool divergence, const char *title,
                            const char *desc)
{
    size_t n, n_taken = 0;
    struct point *p = make_points(r, &n, divergence);
    struct svg_box *taken = msg_must(calloc(2 * n + 1, sizeof *taken));
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        const double e = p[i].y.error > 0 ? p[i].y.error : 0;
        /* on a logarithmic scale, ignore the end of a bar at or below 0 */
        const double end = p[i].y.value - e;
        low = fmin(low, divergence && !(end > 0) ? p[i].y.value : end);
        high = fmax(high, p[i].y.value + e);
    }
    c->x = (struct svg_axis){ .log = false };
    c->y = (struct svg_axis){ .label = divergence ? "KL divergence (nats)"
                                                  : "perplexity" };
    const double unit = fit_size_axis(&c->x, p, n);
    if (divergence && low > 0 && high > 5 * low)
        svg_axis_fit_log(&c->y, low, high);
    else
        svg_axis_fit(&c->y, divergence ? 0 : low, high, 5, false);
    svg_begin(c, title, desc);
    for (size_t i = 0; i < n; i++)
        taken[n_taken++] = get_dot_box(c, &p[i], unit);
    if (!divergence && r->stats) {
        const double y = svg_y(c, r->stats[0].ppl_base.value);
        taken[n_taken++] =
            (struct svg_box){ c->ax, y - 1, c->ax + c->aw, y + 1 };
        svg_hline(c, r->stats[0].ppl_base.value, "");
    }
    for (size_t i = 0; i < n; i++) {
        char size[24], value[32], error[32], text[160];
        snprintf(text, sizeof text, "%s: %s, %s " PM " %s", p[i].label,
                 table_size(size, (uint64_t)p[i].size),
                 text_format_number(value, p[i].y.value, 5),
                 text_format_number(error, p[i].y.error, 2));
        svg_dot(c, p[i].series, p[i].label, p[i].size / unit, p[i].y.value,
                p[i].y.error, text);
    }
    for (size_t i = 0; i < n; i++)
        svg_label(c, p[i].series, p[i].size / unit, p[i].y.value, p[i].label,
                  taken, &n_taken);
    svg_end(c);
    free(taken);
    free(p);
}

void ppl_chart_ppl_size(const struct ppl_report *r, struct svg_chart *c)
{
    draw_size_chart(r, c, false, "Perplexity against size",
                    "A dot for each model; bars are one standard error of its "
                    "difference from the base, which is the dashed line.");
}

void ppl_chart_kld_size(const struct ppl_report *r, struct svg_chart *c)
{
    draw_size_chart(
        r, c, true, "KL divergence from the base against size",
        "A dot for each model; bars are one standard error. Low and "
        "left is good.");
}

/* ---- percentiles ---- */

/* Bars between two quantiles (gguf_kld_quantile), the outermost first. */
static const struct {
    int from, to;
    double width, opacity;
} boxes[] = {
    { 0, 12, 2, 0.5 }, /* minimum to maximum */
    { 1, 11, 5, 0.3 }, { 2, 10, 9, 0.3 },
    { 3, 9, 13, 0.4 }, { 5, 7, 13, 0.9 }, /* the middle half */
};
enum { MEDIAN = 6, LOW = 2 };

static const struct gguf_figure *get_quantiles(const struct ppl_report *r,
                                               size_t i, bool divergence)
{
    return divergence ? r->stats[i].kld_at : r->stats[i].dp_at;
}

static void fit_box_axis(const struct ppl_report *r, struct svg_axis *a,
                         bool divergence)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < r->n; i++) {
        const struct gguf_figure *q = get_quantiles(r, i, divergence);
        high = fmax(high, q[GGUF_KLD_N_QUANTILES - 1].value);
        /* the smallest divergences are rounding errors */
        const double first = divergence ? q[LOW].value : q[0].value;
        if (!divergence || first > 0)
            low = fmin(low, first);
    }
    if (divergence)
        svg_axis_fit_log(a, fmax(isfinite(low) ? low : 0, 1e-9),
                         high > 1e-8 ? high : 1e-8);
    else
        svg_axis_fit(a, 100 * low, 100 * high, 6, false);
}

static void draw_box_chart(const struct ppl_report *r, struct svg_chart *c,
                           bool divergence, const char *title)
{
    const char **names = msg_must(calloc(r->n, sizeof *names));
    size_t longest = 0;
    for (size_t i = 0; i < r->n; i++) {
        names[i] = r->curve[r->order[i]].label;
        longest = strlen(names[i]) > longest ? strlen(names[i]) : longest;
    }
    c->x = (struct svg_axis){ .label = divergence
                                           ? "KL divergence of a token (nats)"
                                           : "change of its probability "
                                             "(percentage points)" };
    fit_box_axis(r, &c->x, divergence);
    svg_axis_rows(&c->y, names, r->n);
    c->left = 16 + 6.3 * (double)(longest < 24 ? longest : 24);
    svg_begin(c, title,
              "A row for each model: the dark bar is the middle half of the "
              "tokens, then those from 5 to 95, 1 to 99 and 0.1 to 99.9 "
              "percent, the thin line all; the mark is the median.");
    for (size_t i = 0; i < r->n; i++) {
        const size_t k = r->order[i];
        const struct gguf_figure *q = get_quantiles(r, k, divergence);
        const double unit = divergence ? 1 : 100, y = (double)i;
        for (size_t b = 0; b < sizeof boxes / sizeof *boxes; b++)
            svg_bar(c, r->curve[k].series, y, unit * q[boxes[b].from].value,
                    unit * q[boxes[b].to].value, boxes[b].width,
                    boxes[b].opacity);
        svg_tick(c, unit * q[MEDIAN].value, y, 17);
    }
    svg_end(c);
    free(names);
}

void ppl_chart_kld_boxes(const struct ppl_report *r, struct svg_chart *c)
{
    draw_box_chart(r, c, true, "KL divergence of single tokens");
}

void ppl_chart_dp_boxes(const struct ppl_report *r, struct svg_chart *c)
{
    draw_box_chart(r, c, false, "Change of the right token's probability");
}
