/* SPDX-License-Identifier: MIT */
/* svg.c - charts as SVG text */
#include "config.h"
#include "tools/common/svg.h"
#include "tools/common/text.h"

#include <math.h>
#include <string.h>

/* Margins of the plot area in pixels, and the width of a letter of size 11. */
enum { TOP = 30, BOTTOM = 42, LEFT = 58, RIGHT = 16 };
#define LETTER 6.0

/* ---- text and colours ---- */

void svg_markup(FILE *f, struct gguf_str s)
{
    for (size_t i = 0; i < s.size; i++)
        switch (s.data[i]) {
        case '&': fputs("&amp;", f); break;
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '"': fputs("&quot;", f); break;
        case '\'': fputs("&#39;", f); break;
        default: putc(s.data[i], f);
        }
}

void svg_text(FILE *f, struct gguf_str s)
{
    struct text t = { NULL, 0, 0 };
    text_add_esc(&t, s, UINT64_MAX);
    svg_markup(f, (struct gguf_str){ t.s, t.n });
    text_fini(&t);
}

void svg_textz(FILE *f, const char *s)
{
    svg_text(f, (struct gguf_str){ s, strlen(s) });
}

/* Colours that colour-blind people can tell apart: after Okabe and Ito (Color
 * Universal Design, 2008), darker on white and lighter on black. */
static const struct {
    const char *light, *dark;
} colours[SVG_N_COLOURS] = {
    { "#0067a5", "#5ab4ec" }, { "#c2500a", "#ff9b57" },
    { "#00805d", "#3fcf9f" }, { "#8a4fa8", "#cfa2ee" },
    { "#9a6b00", "#ecc043" }, { "#b83a78", "#ff9ac6" },
    { "#2f8fa0", "#7fdbe8" }, { "#5c6b1e", "#bccf63" },
};

static void style_set(FILE *f, bool dark)
{
    fprintf(f,
            ".bg{fill:%s}.ink{fill:%s}.mute{fill:%s}.grid{stroke:%s}"
            ".axis{stroke:%s}.sb{color:%s}\n",
            dark ? "#16181b" : "#ffffff", dark ? "#e8e6e3" : "#1b1d20",
            dark ? "#a3a8ae" : "#5b6168", dark ? "#2c3036" : "#e4e7ea",
            dark ? "#6b7178" : "#8d949b", dark ? "#a3a8ae" : "#6a7178");
    for (int i = 0; i < SVG_N_COLOURS; i++)
        fprintf(f, ".s%d{color:%s}", i,
                dark ? colours[i].dark : colours[i].light);
    putc('\n', f);
}

void svg_style(FILE *f)
{
    fputs("svg text{font:11px system-ui,-apple-system,\"Segoe UI\",Roboto,"
          "\"Helvetica Neue\",Arial,sans-serif}\n"
          "svg text.title{font-size:13px;font-weight:600}\n"
          ".line{fill:none;stroke:currentColor;stroke-width:1.6;"
          "stroke-linejoin:round}\n"
          ".fill{fill:currentColor;stroke:none}\n"
          ".grid,.axis{fill:none;stroke-width:1}\n"
          ".dash{stroke-dasharray:5 4}\n",
          f);
    style_set(f, false);
    fputs("@media (prefers-color-scheme:dark){\n", f);
    style_set(f, true);
    fputs("}\n", f);
}

const char *svg_class(int series)
{
    static const char *const names[SVG_N_COLOURS] = { "s0", "s1", "s2", "s3",
                                                      "s4", "s5", "s6", "s7" };
    return series < 0 ? "sb" : names[series % SVG_N_COLOURS];
}

/* ---- axes ---- */

/* The least of 1, 2 and 5 times a power of ten that is not below v. */
static double nice_step(double v)
{
    const double unit = pow(10, floor(log10(v)));
    const double m = v / unit;
    return (m <= 1.0001 ? 1 : m <= 2.0001 ? 2 : m <= 5.0001 ? 5 : 10) * unit;
}

void svg_axis_fit(struct svg_axis *a, double low, double high, int n,
                  bool tight)
{
    if (!(high > low)) { /* equal, or NaN */
        low = isfinite(low) ? low : 0;
        const double room = low != 0 ? fabs(low) * 0.05 : 1;
        high = low + room;
        low -= room;
    }
    a->log = false;
    a->step = nice_step((high - low) / n);
    a->low = tight ? low : floor(low / a->step + 1e-9) * a->step;
    a->high = tight ? high : ceil(high / a->step - 1e-9) * a->step;
}

void svg_axis_fit_log(struct svg_axis *a, double low, double high)
{
    static const double marks[] = { 1, 2, 5, 10 };
    const double u0 = pow(10, floor(log10(low)));
    const double u1 = pow(10, floor(log10(high)));
    a->log = true;
    for (int i = 0; i < 4; i++)
        if (marks[i] * u0 <= low * 1.0001)
            a->low = marks[i] * u0;
    for (int i = 3; i >= 0; i--)
        if (marks[i] * u1 >= high * 0.9999)
            a->high = marks[i] * u1;
    if (!(a->high > a->low))
        a->high = a->low * 10;
}

void svg_axis_rows(struct svg_axis *a, const char *const *row, size_t n)
{
    *a = (struct svg_axis){ .row = row, .n_rows = n };
    a->low = (double)n - 0.5;
    a->high = -0.5;
}

static double position_along(const struct svg_axis *a, double v)
{
    return a->log ? (log(v) - log(a->low)) / (log(a->high) - log(a->low))
                  : (v - a->low) / (a->high - a->low);
}

double svg_x(const struct svg_chart *c, double x)
{
    return c->ax + c->aw * position_along(&c->x, x);
}

double svg_y(const struct svg_chart *c, double y)
{
    return c->ay + c->ah * (1 - position_along(&c->y, y));
}

/* Write the number of a tick in its shortest form; -0 becomes 0. */
static void tick_text(char out[32], const struct svg_axis *a, double v)
{
    if (a->log && v > 0.9e-5 && v < 0.9) {
        snprintf(out, 32, "%.*f", (int)ceil(-log10(v) - 1e-9), v);
    } else if (a->log && v < 0.9) {
        snprintf(out, 32, "%.0e", v); /* 1e-05 */
        char *e = strchr(out, 'e');
        if (e && e[2] == '0')
            memmove(e + 2, e + 3, strlen(e + 2));
    } else if (a->log || a->step >= 1) {
        snprintf(out, 32, "%.10g", v);
    } else {
        const int digits = (int)ceil(-log10(a->step) - 1e-9);
        snprintf(out, 32, "%.*f", digits,
                 fabs(v) < a->step / 2 ? 0 : v); /* no -0 */
    }
}

/* Find the k-th tick. Returns false after the last. */
static bool tick_at(const struct svg_axis *a, int k, double *v)
{
    if (a->row)
        return false;
    if (!a->log) {
        *v = (ceil(a->low / a->step - 1e-9) + k) * a->step;
        return *v <= a->high + a->step * 1e-9;
    }
    const double decades = log10(a->high / a->low);
    const bool fine = decades < 2.5;
    const int skip = decades > 8 ? 2 : 1;
    const double m[] = { 1, 2, 5 };
    for (int d = (int)floor(log10(a->low) + 1e-9), n = 0; d < 400; d += skip)
        for (int i = 0; i < (fine ? 3 : 1); i++) {
            *v = m[i] * pow(10, d);
            if (*v > a->high * 1.0001)
                return false;
            if (*v >= a->low * 0.9999 && n++ == k)
                return true;
        }
    return false;
}

static void x_axis(struct svg_chart *c)
{
    const double bottom = c->ay + c->ah;
    double v, last = -1e9;
    for (int k = 0; tick_at(&c->x, k, &v); k++) {
        char s[32];
        const double x = svg_x(c, v);
        tick_text(s, &c->x, v);
        fprintf(c->f, "<path class=\"grid\" d=\"M%.2f %.2fV%.2f\"/>", x, c->ay,
                bottom);
        if (x - last < LETTER * (double)strlen(s) + 6)
            continue; /* the text would touch the one before */
        last = x;
        fprintf(c->f,
                "<text class=\"mute\" x=\"%.2f\" y=\"%.2f\" "
                "text-anchor=\"middle\">%s</text>\n",
                x, bottom + 15, s);
    }
    fprintf(c->f,
            "<text class=\"mute\" x=\"%.2f\" y=\"%.2f\" "
            "text-anchor=\"middle\">",
            c->ax + c->aw / 2, bottom + 32);
    svg_textz(c->f, c->x.label ? c->x.label : "");
    fputs("</text>\n", c->f);
}

static void y_axis(struct svg_chart *c)
{
    double v;
    for (int k = 0; tick_at(&c->y, k, &v); k++) {
        char s[32];
        const double y = svg_y(c, v);
        tick_text(s, &c->y, v);
        fprintf(c->f,
                "<path class=\"grid\" d=\"M%.2f %.2fH%.2f\"/>"
                "<text class=\"mute\" x=\"%.2f\" y=\"%.2f\" "
                "text-anchor=\"end\">%s</text>\n",
                c->ax, y, c->ax + c->aw, c->ax - 6, y + 3.8, s);
    }
    for (size_t i = 0; i < c->y.n_rows; i++) {
        fprintf(c->f,
                "<text class=\"ink\" x=\"%.2f\" y=\"%.2f\" "
                "text-anchor=\"end\">",
                c->ax - 6, svg_y(c, (double)i) + 3.8);
        svg_textz(c->f, c->y.row[i]);
        fputs("</text>\n", c->f);
    }
    if (c->y.row || !c->y.label)
        return;
    const double x = c->ax - LEFT + 12, y = c->ay + c->ah / 2;
    fprintf(c->f,
            "<text class=\"mute\" x=\"%.2f\" y=\"%.2f\" "
            "text-anchor=\"middle\" transform=\"rotate(-90 %.2f %.2f)\">",
            x, y, x, y);
    svg_textz(c->f, c->y.label);
    fputs("</text>\n", c->f);
}

/* ---- the frame ---- */

void svg_begin(struct svg_chart *c, const char *title, const char *desc)
{
    FILE *f = c->f;
    c->ax = c->left > 0 ? c->left : LEFT;
    c->ay = c->top + TOP;
    c->aw = c->w - c->ax - RIGHT;
    c->ah = c->h - TOP - (c->x.label ? BOTTOM : BOTTOM - 16);
    if (c->inside)
        fprintf(f, "<g role=\"img\" aria-labelledby=\"%s-t %s-d\">\n", c->id,
                c->id);
    else
        fprintf(f,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g "
                "%g\" role=\"img\" aria-labelledby=\"%s-t %s-d\">\n",
                c->w, c->h, c->id, c->id);
    fprintf(f, "<title id=\"%s-t\">", c->id);
    svg_textz(f, title);
    fprintf(f, "</title>\n<desc id=\"%s-d\">", c->id);
    svg_textz(f, desc);
    fputs("</desc>\n", f);
    fprintf(f, "<text class=\"ink title\" x=\"%.2f\" y=\"%.2f\">",
            c->inside ? c->ax : 10, c->ay - 11);
    svg_textz(f, title);
    fputs("</text>\n", f);
    x_axis(c);
    y_axis(c);
    fprintf(f,
            "<clipPath id=\"%s-c\"><rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
            "height=\"%.2f\"/></clipPath>\n"
            "<path class=\"axis\" d=\"M%.2f %.2fV%.2fH%.2f\"/>\n"
            "<g class=\"area\" clip-path=\"url(#%s-c)\" data-left=\"%.2f\" "
            "data-right=\"%.2f\" data-bottom=\"%.2f\" data-top=\"%.2f\" "
            "data-x=\"%.10g %.10g%s\" data-y=\"%.10g %.10g%s\">\n",
            c->id, c->ax, c->ay - 1, c->aw + 1, c->ah + 2, c->ax, c->ay,
            c->ay + c->ah, c->ax + c->aw, c->id, c->ax, c->ax + c->aw,
            c->ay + c->ah, c->ay, c->x.low, c->x.high, c->x.log ? " log" : "",
            c->y.low, c->y.high, c->y.log ? " log" : "");
}

void svg_end(struct svg_chart *c)
{
    fputs(c->inside ? "</g>\n</g>\n" : "</g>\n</svg>\n", c->f);
}

/* ---- drawing ---- */

/* Clamp a coordinate to a range that SVG paths can hold. */
static double clamp_pixel(double v)
{
    return v < -9999 ? -9999 : v > 9999 ? 9999 : v;
}

static double pixel_x(const struct svg_chart *c, double x)
{
    if (c->x.log && !(x > 0))
        return clamp_pixel(c->ax - c->aw);
    return clamp_pixel(svg_x(c, x));
}

static double pixel_y(const struct svg_chart *c, double y)
{
    if (c->y.log && !(y > 0))
        return clamp_pixel(c->ay + 2 * c->ah);
    return clamp_pixel(svg_y(c, y));
}

static void put_name(const struct svg_chart *c, const char *name)
{
    if (!name)
        return;
    fputs(" data-name=\"", c->f);
    svg_textz(c->f, name);
    putc('"', c->f);
}

void svg_line(struct svg_chart *c, int series, const char *name,
              const double *x, const double *y, size_t n)
{
    char go = 'M';
    fprintf(c->f, "<path class=\"line %s%s\"", svg_class(series),
            series < 0 ? " dash" : "");
    put_name(c, name);
    fputs(" d=\"", c->f);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(y[i])) {
            go = 'M';
            continue;
        }
        fprintf(c->f, "%c%.2f %.2f", go, pixel_x(c, x[i]), pixel_y(c, y[i]));
        go = 'L';
    }
    fputs("\"/>\n", c->f);
    for (size_t i = 0; i < n; i++) /* points without neighbours */
        if (isfinite(y[i]) && (!i || !isfinite(y[i - 1])) &&
            (i + 1 == n || !isfinite(y[i + 1])))
            fprintf(c->f,
                    "<circle class=\"fill %s\" cx=\"%.2f\" cy=\"%.2f\" "
                    "r=\"3\"/>\n",
                    svg_class(series), pixel_x(c, x[i]), pixel_y(c, y[i]));
}

void svg_band(struct svg_chart *c, int series, double opacity, const double *x,
              const double *low, const double *high, size_t n)
{
    char go = 'M';
    fprintf(c->f, "<path class=\"fill %s\" opacity=\"%.2f\" d=\"",
            svg_class(series), opacity);
    for (size_t i = 0; i < 2 * n; i++) {
        const size_t k = i < n ? i : 2 * n - 1 - i;
        const double y = i < n ? low[k] : high[k];
        if (!isfinite(low[k]) || !isfinite(high[k]))
            continue;
        fprintf(c->f, "%c%.2f %.2f", go, pixel_x(c, x[k]), pixel_y(c, y));
        go = 'L';
    }
    fputs(go == 'L' ? "Z\"/>\n" : "\"/>\n", c->f);
}

static void draw_outline(struct svg_chart *c, const double *x, const double *y,
                         size_t n)
{
    const double bottom = c->ay + c->ah;
    double at = bottom;
    fprintf(c->f, "M%.2f %.2f", pixel_x(c, x[0]), bottom);
    for (size_t i = 0; i < n; i++) {
        const double to = y[i] > 0 ? fmin(pixel_y(c, y[i]), bottom) : bottom;
        if (fabs(to - at) > 1e-9)
            fprintf(c->f, "H%.2fV%.2f", pixel_x(c, x[i]), to);
        at = to;
    }
    fprintf(c->f, "H%.2fV%.2f", pixel_x(c, x[n]), bottom);
}

void svg_steps(struct svg_chart *c, int series, const char *name,
               const double *x, const double *y, size_t n)
{
    fprintf(c->f, "<path class=\"fill %s\" opacity=\".16\" d=\"",
            svg_class(series));
    draw_outline(c, x, y, n);
    fprintf(c->f, "Z\"/>\n<path class=\"line %s\"", svg_class(series));
    put_name(c, name);
    fputs(" d=\"", c->f);
    draw_outline(c, x, y, n);
    fputs("\"/>\n", c->f);
}

void svg_dot(struct svg_chart *c, int series, const char *name, double x,
             double y, double error, const char *title)
{
    const char *class = svg_class(series);
    fprintf(c->f, "<g class=\"%s\"><title>", class);
    svg_textz(c->f, title);
    fputs("</title>", c->f);
    if (error > 0)
        fprintf(c->f,
                "<path class=\"line\" d=\"M%.2f %.2fV%.2fM%.2f %.2fh8m-8 "
                "%.2fh8\"/>",
                pixel_x(c, x), pixel_y(c, y - error), pixel_y(c, y + error),
                pixel_x(c, x) - 4, pixel_y(c, y + error),
                pixel_y(c, y - error) - pixel_y(c, y + error));
    fputs("<circle class=\"fill\"", c->f);
    put_name(c, name);
    fprintf(c->f, " cx=\"%.2f\" cy=\"%.2f\" r=\"4\"/></g>\n", pixel_x(c, x),
            pixel_y(c, y));
}

static bool boxes_overlap(const struct svg_box *a, const struct svg_box *b)
{
    return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

void svg_label(struct svg_chart *c, int series, double x, double y,
               const char *text, struct svg_box *taken, size_t *n_taken)
{
    /* positions of a text: right, left, above, below, and at both sides higher
     * and lower */
    static const struct {
        double dx, dy;
        int anchor; /* 0 start, 1 middle, 2 end */
    } tries[] = { { 8, 4, 0 },   { -8, 4, 2 },   { 0, -9, 1 }, { 0, 17, 1 },
                  { 8, -8, 0 },  { -8, -8, 2 },  { 8, 16, 0 }, { -8, 16, 2 },
                  { 8, -20, 0 }, { -8, -20, 2 }, { 8, 28, 0 }, { -8, 28, 2 },
                  { 8, -32, 0 }, { -8, -32, 2 }, { 8, 40, 0 }, { -8, 40, 2 } };
    static const char *const anchors[] = { "start", "middle", "end" };
    const double w = LETTER * (double)strlen(text);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        const double tx = pixel_x(c, x) + tries[i].dx,
                     ty = pixel_y(c, y) + tries[i].dy;
        const double x0 = tx - w * tries[i].anchor / 2;
        const struct svg_box b = { x0, ty - 10, x0 + w, ty + 3 };
        bool free = b.x0 > c->ax + 1 && b.x1 < c->ax + c->aw - 1 &&
                    b.y0 > c->ay && b.y1 < c->ay + c->ah;
        for (size_t k = 0; free && k < *n_taken; k++)
            free = !boxes_overlap(&b, &taken[k]);
        if (!free)
            continue;
        taken[(*n_taken)++] = b;
        fprintf(c->f,
                "<text class=\"fill %s\" x=\"%.2f\" y=\"%.2f\" "
                "text-anchor=\"%s\">",
                svg_class(series), tx, ty, anchors[tries[i].anchor]);
        svg_textz(c->f, text);
        fputs("</text>\n", c->f);
        return;
    }
}

void svg_hline(struct svg_chart *c, double y, const char *text)
{
    fprintf(c->f,
            "<path class=\"line dash sb\" d=\"M%.2f %.2fH%.2f\"/>"
            "<text class=\"fill sb\" x=\"%.2f\" y=\"%.2f\" "
            "text-anchor=\"end\">",
            c->ax, pixel_y(c, y), c->ax + c->aw, c->ax + c->aw - 4,
            pixel_y(c, y) - 5);
    svg_textz(c->f, text);
    fputs("</text>\n", c->f);
}

void svg_bar(struct svg_chart *c, int series, double y, double x0, double x1,
             double width, double opacity)
{
    const double a = pixel_x(c, x0), b = pixel_x(c, x1);
    fprintf(c->f,
            "<rect class=\"fill %s\" opacity=\"%g\" x=\"%.2f\" y=\"%.2f\" "
            "width=\"%.2f\" height=\"%.2f\"/>\n",
            svg_class(series), opacity, a, pixel_y(c, y) - width / 2,
            fmax(b - a, 0.5), width);
}

void svg_tick(struct svg_chart *c, double x, double y, double height)
{
    fprintf(c->f,
            "<rect class=\"ink\" x=\"%.2f\" y=\"%.2f\" width=\"2\" "
            "height=\"%.2f\"/>\n",
            pixel_x(c, x) - 1, pixel_y(c, y) - height / 2, height);
}
