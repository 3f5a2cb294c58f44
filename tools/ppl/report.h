/* SPDX-License-Identifier: MIT */
/* report.h - figures from which charts and pages are drawn
 *
 * report.c collects them during a scan; chart.c, chart_size.c and layer_map.c
 * draw charts, plot.c and html.c write documents of them.
 */
#ifndef TOOLS_PPL_REPORT_H
#define TOOLS_PPL_REPORT_H

#include "tools/ppl/ppl.h"
#include "tools/common/outtext.h"
#include "tools/common/svg.h"
#include "tools/common/text.h"

enum {
    PPL_POSITIONS = 64, /* bins of positions in a chunk */
    PPL_CHANGES = 20000 /* bins of the change of probability, from -1 to 1 */
};

/* A running mean. */
struct ppl_mean {
    uint64_t n;
    double sum, sum_sq;
};
/* The mean; NaN for n = 0. */
double ppl_mean_value(const struct ppl_mean *m);
/* Its standard error; NaN for n < 2. */
double ppl_mean_error(const struct ppl_mean *m);

/* Figures of a model or of the base. Their size does not grow with tokens. */
struct ppl_curve {
    char label[32];                          /* short and printable */
    int series;                              /* number of its colour */
    struct ppl_mean *chunk;                  /* [n_chunks], mean of x */
    struct ppl_mean position[PPL_POSITIONS]; /* mean of the divergence */
    uint64_t *change; /* [PPL_CHANGES], counts of tokens; NULL: for the base,
                       * or for a model without a base */
};

struct ppl_report {
    const struct ppl_options *o;
    const struct ppl_run *run;
    const struct ppl_side *side; /* NULL: one model without a base */
    struct outtext plot, html;
    struct gguf_sink sink;
    struct ppl_curve *curve; /* models in the order of the command line, then
                              * the base */
    size_t n;                /* number of models */
    size_t *order;           /* [n], models from the largest to the smallest */
    struct ppl_curve *base;  /* &curve[n]; NULL: no base */
    size_t n_chunks, room;
    uint32_t first;  /* position before the first that may be scored */
    uint32_t n_rows; /* positions of a chunk that may be scored */
    size_t last;     /* chunk of the last rows; SIZE_MAX: no rows yet */
    /* set at the end of the evaluation */
    const struct gguf_kld_stats *stats; /* [n]; NULL: no base */
    struct gguf_layers **layers; /* [n], each may be NULL; NULL: no page */
};

/* Write the title as XML text. */
void ppl_report_title(const struct ppl_report *r, FILE *f);
/* Write the name of the text, or the number of texts, as XML text. */
void ppl_report_text(const struct ppl_report *r, FILE *f);
const struct ev_model *ppl_report_model(const struct ppl_report *r, size_t i);
/* Perplexity of model i. */
struct gguf_figure ppl_report_ppl(const struct ppl_report *r, size_t i);

/* chart.c: draw a chart. The caller sets the members f, w, h, top, id and
 * inside of c. */
void ppl_chart_running(const struct ppl_report *r, struct svg_chart *c);
void ppl_chart_position(const struct ppl_report *r, struct svg_chart *c);
void ppl_chart_change(const struct ppl_report *r, struct svg_chart *c);

/* chart_size.c: draw a chart of models beside a base: figures against size,
 * percentiles in rows. */
void ppl_chart_ppl_size(const struct ppl_report *r, struct svg_chart *c);
void ppl_chart_kld_size(const struct ppl_report *r, struct svg_chart *c);
void ppl_chart_kld_boxes(const struct ppl_report *r, struct svg_chart *c);
void ppl_chart_dp_boxes(const struct ppl_report *r, struct svg_chart *c);

/* html.c: write the page. */
void ppl_report_html(const struct ppl_report *r, FILE *f);
/* html_table.c: write the table of models. */
void ppl_html_models(const struct ppl_report *r, FILE *f);
/* Write the tables of percentiles. */
void ppl_html_percentiles(const struct ppl_report *r, FILE *f);

/* layer_map.c: write the section with a map for each model. */
void ppl_html_layer_map(const struct ppl_report *r, FILE *f);
void ppl_layer_map_free(struct ppl_report *r);

/* plot.c: write the picture. */
void ppl_report_plot(const struct ppl_report *r, FILE *f);

#endif
