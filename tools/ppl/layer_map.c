/* SPDX-License-Identifier: MIT */
/* layer_map.c - maps of the error of each layer of each model
 *
 * A map has a square for every activation (gguf/layers.h). Its opacity is the
 * error over the first chunks of the text, on a logarithmic scale.
 */
#include "config.h"
#include "tools/ppl/report.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 2, MOST_ROWS = 48, ROW_H = 20 };

/* ---- measuring ---- */

bool ppl_layer_map_measure(struct ppl_report *r,
                           const struct gguf_tokens *tokens)
{
    struct gguf_error err;
    struct progress bar;
    if (!r || !r->o->html || !r->side || !r->side->base)
        return true;
    r->layers = msg_must(calloc(r->n, sizeof *r->layers));
    progress_init(&bar, "layers", "tokens", r->o->ev.quiet);
    for (size_t i = 0; i < r->n; i++) {
        struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
        p.n_ctx = r->o->ev.n_ctx;
        p.max_chunks = CHUNKS;
        p.text_end = r->run->e.several ? r->run->e.text_end : NULL;
        p.n_texts = r->run->e.n_texts;
        p.progress.fn = progress_report;
        p.progress.user = &bar;
        const enum gguf_status st = gguf_layers_run(
            &r->layers[i], r->side->model[i]->session, r->side->base->session,
            tokens->id, tokens->n, &p, &err);
        if (st == GGUF_OK)
            continue;
        progress_clear(&bar);
        if (st == GGUF_E_CANCELLED && progress_stopped())
            return false;
        if (!r->o->ev.quiet)
            msg_warn(r->side->model[i]->path,
                     "the map of layers is left out: %s", err.message);
    }
    progress_clear(&bar);
    return true;
}

/* ---- drawing ---- */

/* The ends of the scale: the least error above 0 and the largest error of all
 * models. Returns false if all errors are 0. */
static bool find_error_range(const struct ppl_report *r, double *low,
                             double *high)
{
    *low = INFINITY;
    *high = 0;
    for (size_t k = 0; k < r->n; k++)
        for (size_t i = 0;
             r->layers[k] && i < gguf_layers_n_entries(r->layers[k]); i++) {
            const double e = gguf_layers_entry(r->layers[k], i)->error;
            if (e > 0 && isfinite(e)) {
                *low = fmin(*low, e);
                *high = fmax(*high, e);
            }
        }
    return *high > 0;
}

static int count_layers(const struct gguf_layers *l)
{
    int n = 0;
    for (size_t i = 0; i < gguf_layers_n_entries(l); i++)
        if (gguf_layers_entry(l, i)->layer >= n)
            n = gguf_layers_entry(l, i)->layer + 1;
    return n;
}

/* List the kinds of activations in the order of their first use. Each is a row
 * of the map. */
static size_t list_kinds(const struct gguf_layers *l,
                         const char *row[MOST_ROWS])
{
    size_t n = 0;
    for (size_t i = 0; i < gguf_layers_n_entries(l); i++) {
        const struct gguf_layers_entry *e = gguf_layers_entry(l, i);
        size_t k = 0;
        while (k < n && strcmp(row[k], e->what) != 0)
            k++;
        if (k == n && n < MOST_ROWS && e->layer >= 0)
            row[n++] = e->what;
    }
    return n;
}

static void put_cell(struct svg_chart *c, double x, double y,
                     const struct gguf_layers_entry *e, double low,
                     double high)
{
    char value[32];
    const double x0 = svg_x(c, x - 0.5), y0 = svg_y(c, y - 0.5);
    const double t =
        e->error > 0 && high > low ? log(e->error / low) / log(high / low) : 0;
    json_format_f64(value, e->error);
    fprintf(c->f, "<rect class=\"fill s1\" data-name=\"");
    svg_textz(c->f, e->name);
    fprintf(c->f,
            "\" data-value=\"%s\" opacity=\"%.2f\" x=\"%.2f\" y=\"%.2f\" "
            "width=\"%.2f\" height=\"%.2f\"><title>",
            value, 0.04 + 0.96 * fmin(fmax(t, 0), 1), x0 + 0.5, y0 + 0.5,
            fmax(svg_x(c, x + 0.5) - x0 - 1, 0.5),
            fmax(svg_y(c, y + 0.5) - y0 - 1, 0.5));
    svg_textz(c->f, e->name);
    fprintf(c->f, ": %s, cosine %.6f</title></rect>\n",
            text_format_number(value, e->error, 3), e->cosine);
}

static void put_map(const struct ppl_report *r, FILE *f, size_t k, double low,
                    double high)
{
    const struct gguf_layers *l = r->layers[k];
    const char *row[MOST_ROWS];
    char id[32], title[80];
    const size_t n = list_kinds(l, row);
    struct svg_chart c = { .f = f, .w = 400, .left = 96, .id = id };
    c.h = 76 + ROW_H * (double)n;
    snprintf(id, sizeof id, "heat%zu", k);
    snprintf(title, sizeof title, "Error by layer: %s", r->curve[k].label);
    c.x = (struct svg_axis){ .label = "layer" };
    svg_axis_fit(&c.x, -0.5, count_layers(l) - 0.5, 8, true);
    c.x.step = fmax(c.x.step, 1);
    svg_axis_rows(&c.y, row, n);
    fputs("<figure>\n", f);
    svg_begin(&c, title,
              "A square for each activation of each layer: the stronger its "
              "colour, the further from the base.");
    for (size_t i = 0; i < gguf_layers_n_entries(l); i++) {
        const struct gguf_layers_entry *e = gguf_layers_entry(l, i);
        for (size_t y = 0; e->layer >= 0 && y < n; y++)
            if (strcmp(row[y], e->what) == 0)
                put_cell(&c, e->layer, (double)y, e, low, high);
    }
    svg_end(&c);
    fputs("</figure>\n", f);
}

void ppl_html_layer_map(const struct ppl_report *r, FILE *f)
{
    double low, high;
    char from[32], to[32];
    if (!r->layers || !find_error_range(r, &low, &high))
        return;
    fprintf(f,
            "<section>\n<h2>Layer by layer</h2>\n<p class=\"mute\">Relative "
            "error of each activation against the base's, over the first "
            "chunks: from %s (faint) to %s (strong), on a logarithmic scale. "
            "The error of a layer contains that of the layers before it."
            "</p>\n<div class=\"charts\">\n",
            text_format_number(from, low, 2), text_format_number(to, high, 2));
    for (size_t i = 0; i < r->n; i++)
        if (r->layers[r->order[i]])
            put_map(r, f, r->order[i], low, high);
    fputs("</div>\n</section>\n", f);
}

void ppl_layer_map_free(struct ppl_report *r)
{
    for (size_t i = 0; r->layers && i < r->n; i++)
        gguf_layers_destroy(r->layers[i]);
    free(r->layers);
}
