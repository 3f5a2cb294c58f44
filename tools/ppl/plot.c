/* SPDX-License-Identifier: MIT */
/* plot.c - the picture of an evaluation: one SVG document */
#include "config.h"
#include "tools/ppl/report.h"

#include <inttypes.h>
#include <string.h>

#define PM "\302\261" /* plus or minus */
enum { WIDTH = 760, CHART = 300, HEAD = 66, LINE = 18 };

static void put_title(const struct ppl_report *r, FILE *f)
{
    ppl_report_title(r, f);
    fputs(r->o->text ? " on " : ", on the text of ", f);
    ppl_report_text(r, f);
}

static void put_key(const struct ppl_report *r, FILE *f, double y, int series,
                    const char *label, size_t i)
{
    const bool base = series == SVG_BASE;
    const struct gguf_figure p =
        base ? r->stats[0].ppl_base : ppl_report_ppl(r, i);
    char kld[32], error[32];
    fprintf(f,
            "<path class=\"line %s%s\" stroke-width=\"3\" d=\"M58 %.1fh22\"/>"
            "<text class=\"ink\" x=\"88\" y=\"%.1f\">",
            svg_class(series), base ? " dash" : "", y - 4, y);
    svg_textz(f, label);
    fprintf(
        f,
        "</text><text class=\"ink figure\" x=\"330\" y=\"%.1f\">PPL %.4f " PM
        " %.4f</text>",
        y, p.value, p.error);
    if (!base && r->stats)
        fprintf(f,
                "<text class=\"ink figure\" x=\"510\" y=\"%.1f\">KLD %s " PM
                " %s</text>",
                y, text_format_number(kld, r->stats[i].kld.value, 4),
                text_format_number(error, r->stats[i].kld.error, 2));
    putc('\n', f);
}

void ppl_report_plot(const struct ppl_report *r, FILE *f)
{
    const size_t n_keys = r->n + (r->base != NULL);
    const double top = HEAD + LINE * (double)n_keys;
    const int n_charts = r->side ? 3 : 1;
    const double height = top + n_charts * CHART + 6;
    struct svg_chart c = { .f = f, .w = WIDTH, .h = CHART, .inside = true };
    fprintf(f,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %g\" "
            "width=\"%d\" height=\"%g\" role=\"img\" aria-labelledby=\"t\">\n"
            "<title id=\"t\">",
            WIDTH, height, WIDTH, height);
    put_title(r, f);
    fputs("</title>\n<style>\n", f);
    svg_style(f);
    fprintf(f,
            "</style>\n<rect class=\"bg\" width=\"%d\" height=\"%g\"/>\n"
            "<text class=\"ink title\" x=\"58\" y=\"24\">",
            WIDTH, height);
    put_title(r, f);
    fprintf(f,
            "</text>\n<text class=\"mute\" x=\"58\" y=\"42\">%zu chunk%s of "
            "%" PRIu32 " tokens, libgguf %s</text>\n",
            r->n_chunks, text_s(r->n_chunks), r->o->ev.n_ctx,
            gguf_version_string());
    double y = HEAD;
    if (r->base) {
        put_key(r, f, y, SVG_BASE, r->base->label, 0);
        y += LINE;
    }
    for (size_t i = 0; i < r->n; i++, y += LINE)
        put_key(r, f, y, r->curve[i].series, r->curve[i].label, i);
    c.top = top;
    c.id = "running";
    ppl_chart_running(r, &c);
    if (r->side) {
        c.top += CHART;
        c.id = "position";
        ppl_chart_position(r, &c);
        c.top += CHART;
        c.id = "change";
        ppl_chart_change(r, &c);
    }
    fputs("</svg>\n", f);
}
