/* SPDX-License-Identifier: MIT */
/* html.c - the page of an evaluation
 *
 * The page is one document without scripts and without references to other
 * files. It is also well-formed XML. Every figure is a data element whose value
 * has all digits. The page ends with the document of --json.
 */
#include "config.h"
#include "tools/ppl/report.h"
#include "tools/common/msg.h"
#include "tools/common/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHART_W = 400, CHART_H = 270, ROW_H = 26 };

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--panel:#f7f8f9;--ink:#1b1d20;"
    "--mute:#5b6168;--rule:#dde1e5;--bar:#cfe2f2}\n"
    "@media (prefers-color-scheme:dark){:root{--bg:#101214;--panel:#16181b;"
    "--ink:#e8e6e3;--mute:#a3a8ae;--rule:#2c3036;--bar:#1c3d58}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 "
    "system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,"
    "sans-serif}\n"
    "main{max-width:1240px;margin:0 auto;padding:1.25rem 1rem 3rem}\n"
    "h1{font-size:1.6rem;line-height:1.25;margin:.2rem 0 .4rem;"
    "overflow-wrap:anywhere}\n"
    "h2{font-size:1.15rem;margin:2.2rem 0 .7rem}\n"
    "p{max-width:70ch;margin:.4rem 0}\n"
    ".mute,small{color:var(--mute)}\n"
    ".scroll{overflow-x:auto;border:1px solid var(--rule);border-radius:8px}\n"
    "table{border-collapse:separate;border-spacing:0;width:100%;font-size:.9rem;"
    "font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.45rem .7rem;text-align:right;white-space:nowrap;"
    "border-top:1px solid var(--rule)}\n"
    "thead th{border-top:0;background:var(--panel);font-weight:600;"
    "vertical-align:bottom}\n"
    "thead small{display:block;font-weight:400}\n"
    "th:first-child{text-align:left;position:sticky;left:0;"
    "background:var(--bg);font-weight:600}\n"
    "thead th:first-child{background:var(--panel)}\n"
    "tbody th small{display:block;font-weight:400;max-width:16rem;"
    "overflow:hidden;text-overflow:ellipsis}\n"
    ".pm{color:var(--mute);font-size:.85em}\n"
    ".part{background:linear-gradient(var(--bar),var(--bar)) left/var(--p) "
    "100% no-repeat}\n"
    ".dot{display:inline-block;width:.7em;height:.7em;border-radius:50%;"
    "background:currentColor;margin-right:.45em}\n"
    ".charts{display:grid;gap:1rem;"
    "grid-template-columns:repeat(auto-fit,minmax(min(340px,100%),1fr))}\n"
    "figure{margin:0;background:var(--panel);border:1px solid var(--rule);"
    "border-radius:8px;padding:.5rem;max-width:600px}\n"
    "figure svg{display:block;width:100%;height:auto}\n"
    ".legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;max-width:none;"
    "font-size:.9rem;margin:0 0 .7rem}\n"
    "details{margin:.8rem 0}\n"
    "summary{cursor:pointer;padding:.3rem 0}\n"
    "pre{overflow:auto;max-height:30rem;background:var(--panel);"
    "border:1px solid var(--rule);border-radius:8px;padding:.8rem;"
    "font-size:.8rem;margin:.3rem 0}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;"
    "margin:0;font-size:.9rem}\n"
    "dt{color:var(--mute)}dd{margin:0;overflow-wrap:anywhere}\n"
    "code{font-size:.9em}\n"
    "@media (max-width:600px){main{padding:.8rem .7rem 2rem}"
    "h1{font-size:1.3rem}th,td{padding:.4rem .5rem}"
    "tbody th small{max-width:9rem}"
    "#models,#models tbody{display:block}#models thead{display:none}"
    "#models tr{display:grid;grid-template-columns:1fr 1fr;"
    "gap:.25rem .8rem;padding:.5rem .6rem;border-top:1px solid var(--rule)}"
    "#models tr:first-child{border-top:0}"
    "#models th{grid-column:1/-1;border:0;padding:0}"
    "#models th small{display:inline;margin-left:.6em}"
    "#models td{border:0;padding:0;text-align:left;align-self:start}"
    "#models td:empty{display:none}"
    "#models td::before{content:attr(data-label);display:block;"
    "white-space:normal;color:var(--mute);font-size:.85em}}\n"
    "@media print{.scroll{overflow:visible}details{display:none}}\n";

/* ---- the head ---- */

static void put_head(const struct ppl_report *r, FILE *f)
{
    fputs("<!DOCTYPE html>\n"
          "<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" "
          "content=\"width=device-width,initial-scale=1\"/>\n"
          "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>",
          f);
    ppl_report_title(r, f);
    fputs("</title>\n<style>\n", f);
    fputs(style, f);
    svg_style(f);
    fputs("</style>\n</head>\n<body>\n<main>\n<header>\n<h1>", f);
    ppl_report_title(r, f);
    fputs("</h1>\n<p class=\"mute\">", f);
    if (r->n > 1)
        fprintf(f, "%zu models on ", r->n);
    else
        fputs("On ", f);
    ppl_report_text(r, f);
    fprintf(f,
            ": %zu chunk%s of %" PRIu32 " tokens, %" PRIu64
            " of them scored.</p>\n</header>\n",
            r->n_chunks, text_s(r->n_chunks), r->o->ev.n_ctx,
            r->stats ? r->stats[0].n : r->run->total.n);
}

/* ---- charts ---- */

typedef void chart_fn(const struct ppl_report *r, struct svg_chart *c);

static void put_chart(const struct ppl_report *r, FILE *f, const char *id,
                      double h, chart_fn *fn)
{
    struct svg_chart c = { .f = f, .w = CHART_W, .h = h, .id = id };
    fputs("<figure>\n", f);
    fn(r, &c);
    fputs("</figure>\n", f);
}

static void put_key(FILE *f, const struct ppl_curve *c)
{
    fprintf(f, "<span><span class=\"dot %s\"></span>", svg_class(c->series));
    svg_textz(f, c->label);
    fputs("</span>\n", f);
}

static void put_legend(const struct ppl_report *r, FILE *f)
{
    fputs("<p class=\"legend\">", f);
    if (r->base)
        put_key(f, r->base);
    for (size_t i = 0; i < r->n; i++)
        put_key(f, &r->curve[r->order[i]]);
    fputs("</p>\n", f);
}

static void put_charts(const struct ppl_report *r, FILE *f)
{
    const double rows = 76 + ROW_H * (double)r->n;
    if (r->base) {
        fputs(
            "<section>\n<h2>Against size</h2>\n<p class=\"mute\">Bars are one standard error; for perplexity, of the difference from the base, which is the dashed line.</p>\n<div class=\"charts\">\n",
            f);
        put_chart(r, f, "kldsize", CHART_H, ppl_chart_kld_size);
        put_chart(r, f, "pplsize", CHART_H, ppl_chart_ppl_size);
        fputs(
            "</div>\n</section>\n<section>\n<h2>Token by token</h2>\n"
            "<p class=\"mute\">The dark bar is the middle half of the "
            "tokens; the lighter ones are those from 5 to 95, from 1 to 99 and "
            "from 0.1 to 99.9 percent; the thin line is all tokens, the mark "
            "the median.</p>\n<div class=\"charts\">\n",
            f);
        put_chart(r, f, "kldboxes", rows, ppl_chart_kld_boxes);
        put_chart(r, f, "dpboxes", rows, ppl_chart_dp_boxes);
        fputs("</div>\n", f);
        ppl_html_percentiles(r, f);
        fputs("</section>\n", f);
    }
    ppl_html_layer_map(r, f);
    fputs("<section>\n<h2>Over the text</h2>\n", f);
    put_legend(r, f);
    fputs("<div class=\"charts\">\n", f);
    put_chart(r, f, "running", CHART_H, ppl_chart_running);
    if (r->base) {
        put_chart(r, f, "position", CHART_H, ppl_chart_position);
        put_chart(r, f, "change", CHART_H, ppl_chart_change);
    }
    fputs("</div>\n</section>\n", f);
}

/* ---- settings ---- */

static void put_term(FILE *f, const char *term)
{
    fprintf(f, "<dt>%s</dt><dd>", term);
}

static void put_digest(FILE *f, const struct gguf_digest *d)
{
    char hex[65];
    if (!d)
        return;
    gguf_digest_format(d, hex);
    fprintf(f, " <code>%s:%s</code>", gguf_digest_algo_name(d->algo), hex);
}

static void put_model(FILE *f, const char *term, const struct ev_model *m)
{
    put_term(f, term);
    svg_textz(f, m->path);
    put_digest(f, m->has_digest ? &m->digest : NULL);
    fputs("</dd>\n", f);
}

/* Put the document of --json, which has every setting. */
static void put_document(const struct ppl_report *r, FILE *f)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = msg_open_memory(&text, &n);
    if (r->side)
        ppl_print_side_json(r->side, r->stats, to);
    else
        ppl_print_json(r->run, to);
    msg_close_memory(to, &text, &n);
    fputs("<details>\n<summary>All settings and figures, as --json has them"
          "</summary>\n<pre>",
          f);
    for (const char *p = text, *end; *p; p = end + (*end != 0)) {
        end = p + strcspn(p, "\n"); /* svg_markup() would escape line ends */
        svg_markup(f, (struct gguf_str){ p, (size_t)(end - p) });
        putc('\n', f);
    }
    fputs("</pre>\n</details>\n", f);
    free(text);
}

static void put_settings(const struct ppl_report *r, FILE *f)
{
    const struct ppl_options *o = r->o;
    fputs("<section>\n<h2>What was run</h2>\n<dl>\n", f);
    for (size_t i = 0; i < (o->text ? o->texts.n : 1); i++) {
        put_term(f, "text");
        svg_textz(f, o->text ? o->texts.path[i] : o->base);
        put_digest(f, r->run->e.has_digest && o->texts.n == 1
                          ? &r->run->e.digest
                          : NULL);
        fputs("</dd>\n", f);
    }
    if (r->base && r->side->base) {
        put_model(f, "base", r->side->base);
    } else if (r->base) {
        put_term(f, "base");
        svg_textz(f, o->base);
        put_digest(f, r->side->has_digest ? &r->side->digest : NULL);
        fputs("</dd>\n", f);
    }
    for (size_t i = 0; i < r->n; i++)
        put_model(f, "model", ppl_report_model(r, r->order[i]));
    put_term(f, "cache");
    fprintf(f, "keys %s, values %s</dd>\n",
            gguf_dtype_find(o->ev.key_dtype)->name,
            gguf_dtype_find(o->ev.value_dtype)->name);
    put_term(f, "program");
    fprintf(f, "gguf-ppl, libgguf %s</dd>\n</dl>\n", gguf_version_string());
    put_document(r, f);
    fputs("</section>\n", f);
}

void ppl_report_html(const struct ppl_report *r, FILE *f)
{
    put_head(r, f);
    ppl_html_models(r, f);
    put_charts(r, f);
    put_settings(r, f);
    fputs("</main>\n</body>\n</html>\n", f);
}
