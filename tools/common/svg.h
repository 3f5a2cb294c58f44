/* SPDX-License-Identifier: MIT */
/* svg.h - charts as SVG text, for a file of their own or inside of a page
 *
 * A chart is a frame with two axes, and what is drawn inside of it in the
 * units of the axes:
 *
 *     struct svg_chart c = { .f = f, .w = 640, .h = 240, .id = "ppl" };
 *     svg_axis_fit(&c.x, 0, 100, 6);
 *     svg_axis_fit(&c.y, 8.1, 9.7, 5);
 *     svg_begin(&c, "Perplexity", "falls from 9.7 to 8.2");
 *     svg_line(&c, 0, x, y, n);
 *     svg_end(&c);
 *
 * Colours come from a style sheet with one set for light and one for dark
 * (svg_style): series have numbers, and the class of number k is k modulo
 * SVG_N_COLOURS. What is outside of the axes is cut off. The plot area says in
 * attributes data-x and data-y which values its edges are, so that programs can
 * read numbers back from coordinates. Text is escaped, whatever it was.
 */
#ifndef TOOLS_SVG_H
#define TOOLS_SVG_H

#include <gguf/memory.h>

#include <stdbool.h>
#include <stdio.h>

enum { SVG_N_COLOURS = 8, SVG_BASE = -1 }; /* SVG_BASE: a grey of its own */

struct svg_axis {
    const char *label;      /* with the unit; kept */
    double low, high;       /* values at the ends, low < high */
    double step;            /* between ticks; of a log axis not used */
    bool log;               /* both ends positive */
    const char *const *row; /* instead of ticks the names of n_rows rows, at */
    size_t n_rows;          /* 0, 1, ... from the top: svg_axis_rows */
};

struct svg_chart {
    FILE *f;
    double w, h;    /* of the whole chart, in pixels */
    double top;     /* where it begins in a larger picture: 0 in a page */
    double left;    /* room for what stands left of the area; 0: 58 */
    const char *id; /* of this chart in its document: [a-z0-9]+ */
    bool inside;    /* a part of a larger picture, which has an svg element */
    struct svg_axis x, y;
    double ax, ay, aw, ah; /* the plot area, set by svg_begin */
};

/* XML text: markup and what is not printable is escaped. */
void svg_text(FILE *f, struct gguf_str s);
void svg_textz(FILE *f, const char *s);

/* The same of text that is printable: only markup is escaped. */
void svg_markup(FILE *f, struct gguf_str s);

/* Rules for everything that is drawn here, for light and dark. */
void svg_style(FILE *f);
/* " s3": the class of a series. */
const char *svg_class(int series);

/* Ends and about n steps of 1, 2 or 5 times a power of ten around values from
 * low to high; ends stay where they are with tight. */
void svg_axis_fit(struct svg_axis *a, double low, double high, int n,
                  bool tight);
void svg_axis_rows(struct svg_axis *a, const char *const *row, size_t n);
/* A logarithmic axis of whole decades, or of 1, 2, 5 where there are few. low
 * and high are positive. */
void svg_axis_fit_log(struct svg_axis *a, double low, double high);

/* The frame with ticks, labels and title; desc is for those who cannot see
 * it. */
void svg_begin(struct svg_chart *c, const char *title, const char *desc);
void svg_end(struct svg_chart *c);

/* Pixels of values. */
double svg_x(const struct svg_chart *c, double x);
double svg_y(const struct svg_chart *c, double y);

/* Points joined by lines, and dots that no line leads to; NaN is a gap. name
 * goes into data-name, or NULL. */
void svg_line(struct svg_chart *c, int series, const char *name,
              const double *x, const double *y, size_t n);
/* The area between two lines. */
void svg_band(struct svg_chart *c, int series, double opacity, const double *x,
              const double *low, const double *high, size_t n);
/* n bars, the k-th from x[k] to x[k + 1], as one outline with a faint filling;
 * a height that is not above the axis is none. */
void svg_steps(struct svg_chart *c, int series, const char *name,
               const double *x, const double *y, size_t n);
/* A dot, with a bar of +/- error where that is a number above 0; title is shown
 * by pointing at it. */
void svg_dot(struct svg_chart *c, int series, const char *name, double x,
             double y, double error, const char *title);
/* A text beside a dot where it hides no other: taken has room for all that
 * were placed. */
struct svg_box {
    double x0, y0, x1, y1;
};
void svg_label(struct svg_chart *c, int series, double x, double y,
               const char *text, struct svg_box *taken, size_t *n_taken);
/* A dashed line across at y, with a text. */
void svg_hline(struct svg_chart *c, double y, const char *text);
/* A horizontal bar around y, width pixels high, from x0 to x1; an upright mark.
 */
void svg_bar(struct svg_chart *c, int series, double y, double x0, double x1,
             double width, double opacity);
void svg_tick(struct svg_chart *c, double x, double y, double height);

#endif
