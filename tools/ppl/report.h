/* SPDX-License-Identifier: MIT */
/* report.h - what charts and pages are made of */
#ifndef TOOLS_PPL_REPORT_H
#define TOOLS_PPL_REPORT_H

#include "tools/ppl/ppl.h"
#include "tools/common/outtext.h"
#include "tools/common/svg.h"
#include "tools/common/text.h"

/* Bins of positions; bins of the change of probability, from -1 to 1. */
enum { PPL_POSITIONS = 64, PPL_CHANGES = 20000 };

/* A mean as it grows. */
struct ppl_mean {
    uint64_t n;
    double sum, sum_sq;
};
/* NaN for n = 0; n < 2. */
double ppl_mean_value(const struct ppl_mean *m);
double ppl_mean_error(const struct ppl_mean *m);

/* What is kept of one model, or of the base: nothing for each token. */
struct ppl_curve {
    char label[32];                          /* short, printable */
    int series;                              /* number of its colour */
    struct ppl_mean *chunk;                  /* of x, for each chunk */
    struct ppl_mean position[PPL_POSITIONS]; /* of the divergence */
    uint64_t *change; /* [PPL_CHANGES]: tokens; NULL: a base, or alone */
};

struct ppl_report {
    const struct ppl_options *o;
    const struct ppl_run *run;
    const struct ppl_side *side; /* with a base, or NULL: one model alone */
    struct outtext plot, html;
    struct gguf_sink sink;
    struct ppl_curve *curve; /* n models, in the order of the command line, */
    size_t n;
    size_t *order; /* [n]: the same from the largest file to the smallest */
    struct ppl_curve *base; /* and the base, or NULL */
    size_t n_chunks, room;
    uint32_t first, n_rows; /* positions that may be scored */
    size_t last;            /* chunk of the scan's last rows; SIZE_MAX: none */
    /* once all is evaluated */
    const struct gguf_kld_stats *stats; /* [n], or NULL: one model alone */
    struct gguf_layers *
        *layers; /* [n] for a page, each may be NULL; or NULL */
};

/* XML text: what the report is about; on which text. */
void ppl_report_title(const struct ppl_report *r, FILE *f);
void ppl_report_text(const struct ppl_report *r, FILE *f);
const struct ev_model *ppl_report_model(const struct ppl_report *r, size_t i);
/* Perplexity of model i; of the base. */
struct gguf_figure ppl_report_ppl(const struct ppl_report *r, size_t i);

/* chart.c: each chart at a place that c has: f, w, h, top, id,
 * inside. */
void ppl_chart_running(const struct ppl_report *r, struct svg_chart *c);
void ppl_chart_position(const struct ppl_report *r, struct svg_chart *c);
void ppl_chart_change(const struct ppl_report *r, struct svg_chart *c);

/* chart_size.c: likewise, with a base. Dots for perplexity and for
 * divergence; rows for percentiles. */
void ppl_chart_ppl_size(const struct ppl_report *r, struct svg_chart *c);
void ppl_chart_kld_size(const struct ppl_report *r, struct svg_chart *c);
void ppl_chart_kld_boxes(const struct ppl_report *r, struct svg_chart *c);
void ppl_chart_dp_boxes(const struct ppl_report *r, struct svg_chart *c);

/* html.c: the page; html_table.c: parts of it. */
void ppl_report_html(const struct ppl_report *r, FILE *f);
void ppl_html_models(const struct ppl_report *r, FILE *f);
void ppl_html_percentiles(const struct ppl_report *r, FILE *f);

/* layer_map.c: a part of the page; after all. */
void ppl_html_heat(const struct ppl_report *r, FILE *f);
void ppl_heat_free(struct ppl_report *r);

/* plot.c: the document. */
void ppl_report_plot(const struct ppl_report *r, FILE *f);

#endif
