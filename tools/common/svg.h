/* SPDX-License-Identifier: MIT */
/* svg.h - charts as SVG text, for a file of their own or inside of a page
 *
 * A chart is a frame with two axes. Everything inside is drawn in the units of
 * the axes:
 *
 *     struct svg_chart c = { .f = f, .w = 640, .h = 240, .id = "ppl" };
 *     svg_axis_fit(&c.x, 0, 100, 6);
 *     svg_axis_fit(&c.y, 8.1, 9.7, 5);
 *     svg_begin(&c, "Perplexity", "falls from 9.7 to 8.2");
 *     svg_line(&c, 0, x, y, n);
 *     svg_end(&c);
 *
 * Colours come from a style sheet for light and dark pages (svg_style()).
 * Series have numbers; series k has colour k modulo SVG_N_COLOURS. Everything
 * outside of the axes is clipped. The attributes data-x and data-y of the plot
 * area have the values at its edges, so that programs can compute numbers from
 * coordinates. All text is escaped.
 */
#ifndef TOOLS_SVG_H
#define TOOLS_SVG_H

#include <gguf/memory.h>

#include <stdbool.h>
#include <stdio.h>

enum { SVG_N_COLOURS = 8, SVG_BASE = -1 }; /* SVG_BASE: grey */

struct svg_axis {
    const char *label;      /* label with the unit; must outlive the axis */
    double low, high;       /* values at the ends, low < high */
    double step;            /* distance of ticks; unused for a log axis */
    bool log;               /* logarithmic; low and high are positive */
    const char *const *row; /* names of rows, instead of ticks; or NULL */
    size_t n_rows;          /* number of rows, at 0, 1, ... from the top */
};

struct svg_chart {
    FILE *f;
    double w, h;    /* size of the whole chart in pixels */
    double top;     /* upper edge in a larger picture; 0 in a page */
    double left;    /* pixels left of the plot area; 0: 58 */
    const char *id; /* id of this chart in its document: [a-z0-9]+ */
    bool inside;    /* part of a larger picture, which has the svg element */
    struct svg_axis x, y;
    double ax, ay, aw, ah; /* plot area, set by svg_begin() */
};

/* Write XML text; markup and unprintable characters are escaped. */
void svg_text(FILE *f, struct gguf_str s);
void svg_textz(FILE *f, const char *s);

/* Write text that is printable; only markup is escaped. */
void svg_markup(FILE *f, struct gguf_str s);

/* Write the style sheet for light and dark pages. */
void svg_style(FILE *f);
/* Class of a series, such as " s3". */
const char *svg_class(int series);

/* Set ends and about n steps of 1, 2 or 5 times a power of ten for values from
 * low to high. tight: keep low and high as the ends. */
void svg_axis_fit(struct svg_axis *a, double low, double high, int n,
                  bool tight);
void svg_axis_rows(struct svg_axis *a, const char *const *row, size_t n);
/* Set a logarithmic axis for positive values from low to high, with ticks at
 * decades, or at 1, 2 and 5 if there are few. */
void svg_axis_fit_log(struct svg_axis *a, double low, double high);

/* Write frame, ticks, labels and title. desc describes the chart for people
 * who cannot see it. */
void svg_begin(struct svg_chart *c, const char *title, const char *desc);
void svg_end(struct svg_chart *c);

/* Position of a value in pixels. */
double svg_x(const struct svg_chart *c, double x);
double svg_y(const struct svg_chart *c, double y);

/* Draw points joined by lines; NaN is a gap, and a point without neighbours
 * becomes a dot. name becomes the attribute data-name; NULL: none. */
void svg_line(struct svg_chart *c, int series, const char *name,
              const double *x, const double *y, size_t n);
/* Fill the area between two lines. */
void svg_band(struct svg_chart *c, int series, double opacity, const double *x,
              const double *low, const double *high, size_t n);
/* Draw n bars, the k-th from x[k] to x[k + 1], as one outline with a faint
 * filling. A bar that is not above the axis is left out. */
void svg_steps(struct svg_chart *c, int series, const char *name,
               const double *x, const double *y, size_t n);
/* Draw a dot, with an error bar if error is a number above 0. title is shown
 * when the pointer is on it. */
void svg_dot(struct svg_chart *c, int series, const char *name, double x,
             double y, double error, const char *title);
/* Write a text beside a dot where it covers no other text. taken has the boxes
 * of the texts so far, with room for one more. */
struct svg_box {
    double x0, y0, x1, y1;
};
void svg_label(struct svg_chart *c, int series, double x, double y,
               const char *text, struct svg_box *taken, size_t *n_taken);
/* Draw a dashed horizontal line at y with a text. */
void svg_hline(struct svg_chart *c, double y, const char *text);
/* svg_bar() draws a horizontal bar from x0 to x1 around y, width pixels high;
 * svg_tick() a vertical mark. */
void svg_bar(struct svg_chart *c, int series, double y, double x0, double x1,
             double width, double opacity);
void svg_tick(struct svg_chart *c, double x, double y, double height);

#endif
