/* SPDX-License-Identifier: MIT */
/* html_table.c - tables of a page: models and percentiles */
#include "config.h"
#include "tools/ppl/report.h"
#include "tools/common/json.h"
#include "tools/common/table.h"

#include <math.h>
#include <string.h>

#define PM    "\302\261" /* plus or minus */
#define DELTA "\316\224" /* Greek capital delta */

/* ---- cells ---- */

/* Columns of the table of models. small is a second line of the heading.
 * Columns from FIRST_OF_BASE on need a base. */
static const struct column {
    const char *name, *head, *small;
} columns[] = {
    { "size", "size", NULL },
    { "bits", "bits per", "weight" },
    { "ppl", "perplexity", NULL },
    { "change", "perplexity", "against the base" },
    { "kld", "KL divergence", "mean, nats" },
    { "kld99", "KL divergence", "99% of tokens below" },
    { "dp_rms", "RMS " DELTA "p", "of the right token" },
    { "same_top", "same top", "token" },
};
enum { N_COLUMNS = sizeof columns / sizeof *columns, FIRST_OF_BASE = 3 };

/* Format of the figures of a column. */
struct form {
    double factor;
    int decimals;     /* below 0: number of significant digits, negated */
    const char *unit; /* written after the value */
    bool plus;        /* write a plus sign before positive values */
    bool error;       /* write the uncertainty, with the same decimals */
    double predicted; /* second line of the cell; 0: none */
};

static int count_decimals(const struct form *w, double v)
{
    if (w->decimals >= 0)
        return w->decimals;
    const int n = isfinite(v) && v != 0
                      ? -w->decimals - 1 - (int)floor(log10(fabs(v)))
                      : 0;
    return n < 0 ? 0 : n > 12 ? 12 : n;
}

/* Put v times the factor, in an element whose value has all digits of v. */
static void put_data(FILE *f, double v, const struct form *w, int decimals,
                     bool plus, const char *unit)
{
    char value[32];
    const double shown = w->factor * v;
    const bool none = fabs(shown) < 0.5 * pow(10, -decimals); /* no -0.00 */
    json_format_f64(value, v);
    fprintf(f, "<data value=\"%s\">", value);
    fprintf(f, plus ? "%+.*f%s" : "%.*f%s", decimals, none ? 0 : shown, unit);
    fputs("</data>", f);
}

/* Begin a cell. On narrow screens, where rows are laid out as lists, the cell
 * shows the heading of its column. */
static void put_cell(FILE *f, const char *name)
{
    fprintf(f, "<td data-name=\"%s\"", name);
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (!strcmp(columns[i].name, name))
            fprintf(f, " data-label=\"%s%s%s\"", columns[i].head,
                    columns[i].small ? " " : "",
                    columns[i].small ? columns[i].small : "");
}

/* Put a cell with a figure. part: share of the cell's width that is filled as a
 * bar, from 0 to 1. */
static void put_figure(FILE *f, const char *name, struct gguf_figure v,
                       const struct form *w, double part)
{
    const int decimals = count_decimals(w, w->factor * v.value);
    put_cell(f, name);
    if (part > 0)
        fprintf(f, " class=\"part\" style=\"--p:%.1f%%\"", 100 * part);
    putc('>', f);
    put_data(f, v.value, w, decimals, w->plus, w->unit);
    if (w->error && isfinite(v.error)) {
        fputs(" <span class=\"pm\">" PM " ", f);
        put_data(f, v.error, w, decimals, false, "");
        fputs("</span>", f);
    }
    if (w->predicted > 0) {
        fputs("<br/><small>predicted ", f);
        put_data(f, w->predicted, w, count_decimals(w, w->predicted), false,
                 "");
        fputs("</small>", f);
    }
    fputs("</td>", f);
}

static void put_model(FILE *f, const struct ppl_curve *c,
                      const struct ev_model *m, const char *path)
{
    const struct gguf_str name =
        m ? ev_model_name(m) : (struct gguf_str){ path, strlen(path) };
    fprintf(f, "<tr><th scope=\"row\"><span class=\"dot %s\"></span>",
            svg_class(c->series));
    svg_textz(f, c->label);
    fputs("<small>", f);
    svg_text(f, name);
    fputs("</small></th>", f);
}

static void put_size(FILE *f, const struct ev_model *m)
{
    char size[24];
    if (!m || !m->info.n_params) { /* a file of logits has no size */
        fputs("<td></td><td></td>", f);
        return;
    }
    put_cell(f, "size");
    fprintf(f, "><data value=\"%llu\">%s</data></td>",
            (unsigned long long)m->info.weight_size,
            table_size(size, m->info.weight_size));
    put_cell(f, "bits");
    fprintf(f, ">%.2f</td>",
            8.0 * (double)m->info.weight_size / (double)m->info.n_params);
}

/* ---- models ---- */

static double find_max_divergence(const struct ppl_report *r)
{
    double most = 0;
    for (size_t i = 0; i < r->n; i++)
        most = fmax(most, r->stats[i].kld.value);
    return most;
}

static void put_base_columns(const struct ppl_report *r, FILE *f, size_t i)
{
    enum { P99 = 10 };
    const struct gguf_kld_stats *k = &r->stats[i];
    const double most = find_max_divergence(r);
    const struct gguf_figure change = { k->ratio.value - 1, k->ratio.error };
    put_figure(f, "change", change,
               &(struct form){ 100, 3, "%", true, true, 0 }, 0);
    struct form form_kld = { 1, -4, "", false, true, 0 };
    if (!ppl_find_prediction(ppl_report_model(r, i), &form_kld.predicted))
        form_kld.predicted = 0;
    put_figure(f, "kld", k->kld, &form_kld,
               most > 0 ? k->kld.value / most : 0);
    put_figure(f, "kld99", k->kld_at[P99],
               &(struct form){ 1, -4, "", false, false, 0 }, 0);
    put_figure(f, "dp_rms", k->dp_rms,
               &(struct form){ 100, 3, "%", false, true, 0 }, 0);
    put_figure(f, "same_top", k->same_top,
               &(struct form){ 100, 2, "%", false, true, 0 }, 0);
}

/* Find a model that is not larger than model i, and closer to the base by more
 * than the uncertainties. Returns r->n if no model is. */
static size_t find_better_model(const struct ppl_report *r, size_t i)
{
    const struct gguf_figure a = r->stats[i].kld;
    for (size_t j = 0; j < r->n; j++) {
        const struct gguf_figure b = r->stats[j].kld;
        if (ppl_report_model(r, j)->info.weight_size <=
                ppl_report_model(r, i)->info.weight_size &&
            b.value + b.error < a.value - a.error)
            return j;
    }
    return r->n;
}

static void put_advice(const struct ppl_report *r, FILE *f)
{
    for (size_t k = 0; k < r->n; k++) {
        const size_t i = r->order[k], j = find_better_model(r, i);
        if (j == r->n)
            continue;
        fputs("<p><strong>", f);
        svg_textz(f, r->curve[i].label);
        fputs("</strong> is no smaller than <strong>", f);
        svg_textz(f, r->curve[j].label);
        fputs("</strong> and is further from the base.</p>\n", f);
    }
}

static const struct form form_ppl = { 1, 4, "", false, true, 0 };

void ppl_html_models(const struct ppl_report *r, FILE *f)
{
    fputs("<section>\n<h2>Models by size</h2>\n<div class=\"scroll\" "
          "tabindex=\"0\">\n<table id=\"models\">\n<thead><tr><th "
          "scope=\"col\">model</th>",
          f);
    for (size_t i = 0; i < (r->base ? N_COLUMNS : FIRST_OF_BASE); i++) {
        fprintf(f, "<th scope=\"col\">%s", columns[i].head);
        if (columns[i].small)
            fprintf(f, " <small>%s</small>", columns[i].small);
        fputs("</th>", f);
    }
    fputs("</tr></thead>\n<tbody>\n", f);
    if (r->base) {
        put_model(f, r->base, r->side->base, r->o->base);
        put_size(f, r->side->base);
        put_figure(f, "ppl", r->stats[0].ppl_base, &form_ppl, 0);
        fputs("<td colspan=\"5\"></td></tr>\n", f);
    }
    for (size_t k = 0; k < r->n; k++) {
        const size_t i = r->order[k];
        put_model(f, &r->curve[i], ppl_report_model(r, i), "");
        put_size(f, ppl_report_model(r, i));
        put_figure(f, "ppl", ppl_report_ppl(r, i), &form_ppl, 0);
        if (r->base)
            put_base_columns(r, f, i);
        fputs("</tr>\n", f);
    }
    fputs("</tbody>\n</table>\n</div>\n", f);
    if (r->base) {
        put_advice(r, f);
        fputs("<p class=\"mute\">Uncertainties are one standard error. KL "
              "divergence is the distance of the predictions of all tokens "
              "from the base's; it tells models apart on shorter texts than "
              "perplexity.</p>\n",
              f);
    }
    fputs("</section>\n", f);
}

/* ---- percentiles ---- */

static void put_percentiles(const struct ppl_report *r, FILE *f,
                            const char *id, bool divergence)
{
    const struct form form = {
        divergence ? 1 : 100, divergence ? -3 : 3, "", false, true, 0
    };
    fprintf(f,
            "<details>\n<summary>Percentiles of %s</summary>\n<div "
            "class=\"scroll\" tabindex=\"0\">\n<table id=\"%s\">\n<thead><tr>"
            "<th scope=\"col\">model</th>",
            divergence ? "KL divergence (nats)"
                       : DELTA "p (percentage points)",
            id);
    for (unsigned q = 0; q < GGUF_KLD_N_QUANTILES; q++)
        fprintf(f, "<th scope=\"col\">%.4g%%</th>",
                100 * gguf_kld_quantile(q));
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t k = 0; k < r->n; k++) {
        const size_t i = r->order[k];
        const struct gguf_kld_stats *s = &r->stats[i];
        put_model(f, &r->curve[i], ppl_report_model(r, i), "");
        for (unsigned q = 0; q < GGUF_KLD_N_QUANTILES; q++)
            put_figure(f, "q", divergence ? s->kld_at[q] : s->dp_at[q], &form,
                       0);
        fputs("</tr>\n", f);
    }
    fputs("</tbody>\n</table>\n</div>\n</details>\n", f);
}

void ppl_html_percentiles(const struct ppl_report *r, FILE *f)
{
    put_percentiles(r, f, "kldq", true);
    put_percentiles(r, f, "dpq", false);
}
