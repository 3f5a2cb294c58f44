/* SPDX-License-Identifier: MIT */
/* table.c - tables with aligned columns, and readable numbers */
#include "config.h"
#include "tools/common/table.h"
#include "tools/common/markdown.h"
#include "tools/common/style.h"
#include "gguf/text.h"
#include "base/os/os_path.h"
#include "base/os/os_program.h"

#include <stdarg.h>
#include <string.h>

void table_init(struct table *t, const char *align, int indent)
{
    *t = (struct table){ .n_cols = (unsigned)strlen(align), .indent = indent };
    memcpy(t->align, align, t->n_cols);
}

void table_fini(struct table *t)
{
    text_fini(&t->text);
}

void table_add(struct table *t, const char *text)
{
    text_add_safe(&t->text, text);
    text_add(&t->text, "", 1);
    t->n_cells++;
}

void table_add_str(struct table *t, struct gguf_str s)
{
    text_add_esc(&t->text, s, UINT64_MAX);
    text_add(&t->text, "", 1);
    t->n_cells++;
}

void table_add_strz(struct table *t, const char *z)
{
    table_add_str(t, (struct gguf_str){ z, strlen(z) });
}

void table_add_shape(struct table *t, uint32_t n_dims, const int64_t *ne)
{
    text_add_shape(&t->text, n_dims, ne);
    text_add(&t->text, "", 1);
    t->n_cells++;
}

void table_add_row(struct table *t, const char *const *cells)
{
    for (unsigned c = 0; c < t->n_cols; c++)
        table_add(t, cells[c]);
}

void table_addf(struct table *t, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    table_add(t, text);
}

/* Columns of a character. Combining marks take none, wide East Asian
 * characters and emoji two. The ranges are blocks of UAX #11, which is enough
 * for names. */
static int cp_width(uint32_t cp)
{
    if ((cp >= 0x300 && cp < 0x370) || (cp >= 0x1ab0 && cp < 0x1b00) ||
        (cp >= 0x20d0 && cp < 0x2100) || (cp >= 0xfe00 && cp < 0xfe10))
        return 0;
    if ((cp >= 0x1100 && cp < 0x1160) || (cp >= 0x2e80 && cp < 0xa4d0) ||
        (cp >= 0xac00 && cp < 0xd7a4) || (cp >= 0xf900 && cp < 0xfb00) ||
        (cp >= 0xff01 && cp < 0xff61) || (cp >= 0x1f300 && cp < 0x1f650) ||
        (cp >= 0x1f900 && cp < 0x1fa00) || (cp >= 0x20000 && cp < 0x3fffe))
        return 2;
    return 1;
}

/* Number of leading bytes of text that fit into columns. */
static int bytes_within(const char *text, int columns)
{
    int w = 0, at = 0;
    for (size_t n = strlen(text), len; at < (int)n; at += (int)len) {
        uint32_t cp = 0;
        len = gguf_text_decode_utf8(text + at, n - (size_t)at, &cp);
        w += len ? cp_width(cp) : 1;
        len = len ? len : 1;
        if (w > columns)
            break;
    }
    return at;
}

int table_width(const char *text)
{
    int w = 0;
    for (size_t n = strlen(text); n;) {
        uint32_t cp = 0;
        size_t len = gguf_text_decode_utf8(text, n, &cp);
        w += len ? cp_width(cp) : 1;
        text += len ? len : 1;
        n -= len ? len : 1;
    }
    return w;
}

/* Print the beginning of a text that is too wide. */
static void print_cut(const char *s, int columns, FILE *f)
{
    columns = columns < TABLE_MIN_LAST ? TABLE_MIN_LAST : columns;
    if (table_width(s) > columns)
        fprintf(f, "%.*s...", bytes_within(s, columns - 3), s);
    else
        fputs(s, f);
}

/* Print beginning and end of a text that is too wide: names of tensors begin
 * with the layer and end with the role, and paths end with the name. */
static void print_ends(const char *s, int columns, FILE *f)
{
    const int first =
        gg_os_path_folder_size(s, strlen(s)) ? 0 : columns * 2 / 5;
    const int begin = bytes_within(s, first);
    const char *end = s + begin;
    while (*end && table_width(end) > columns - first - 2)
        end += bytes_within(end, 1) + !bytes_within(end, 1);
    fprintf(f, "%.*s..%s", begin, s, end);
}

/* Width that remains for the first column if the columns in shown are printed.
 * The last of these may be cut if it is text. */
static int room_of(const struct table *t, const int width[TABLE_MAX_COLS],
                   const bool shown[TABLE_MAX_COLS])
{
    int room = t->columns - t->indent, w = 0;
    bool cut = false;
    for (unsigned c = 1; c < t->n_cols; c++) {
        if (!shown[c])
            continue;
        room -= 2 + width[c];
        w = width[c];
        cut = t->align[c] == 'l';
    }
    return cut && w > TABLE_MIN_LAST ? room + w - TABLE_MIN_LAST : room;
}

/* Choose the columns to print, and the width of the first. */
static void fit_columns(const struct table *t, int width[TABLE_MAX_COLS],
                        bool shown[TABLE_MAX_COLS])
{
    for (unsigned c = 0; c < t->n_cols; c++)
        shown[c] = true;
    if (!t->columns || !t->drop)
        return;
    const bool text = t->align[0] == 'l' && width[0] > TABLE_MIN_TEXT;
    const int least = text ? TABLE_MIN_TEXT : width[0];
    bool cut = false;
    int room = room_of(t, width, shown);
    for (const char *p = t->drop; *p && room < (cut ? least : width[0]); p++) {
        if (*p == '/')
            cut = true;
        else
            shown[*p <= '9' ? *p - '0' : *p - 'a' + 10] = false;
        room = room_of(t, width, shown);
    }
    room = room < least ? least : room;
    width[0] = width[0] < room ? width[0] : room;
}

/* Print one cell from column at on. Returns the column after it. */
static int print_cell(const struct table *t, const char *s, unsigned c,
                      bool last, const int *width, int at, FILE *f)
{
    const int w = table_width(s), pad = w < width[c] ? width[c] - w : 0;
    fprintf(f, "%*s", c ? 2 : t->indent, "");
    at += c ? 2 : t->indent;
    if (c == 0 && t->columns && t->drop && w > width[0])
        print_ends(s, width[0], f);
    else if (last && t->columns && at + w > t->columns && t->align[c] == 'l')
        print_cut(s, t->columns - at, f);
    else if (t->align[c] == 'r')
        fprintf(f, "%*s%s", pad, "", s);
    else
        fprintf(f, "%s%*s", s, last ? 0 : pad, "");
    return at + (c == 0 && w > width[0] ? width[0] : w + pad);
}

void table_print(const struct table *t, FILE *f)
{
    int width[TABLE_MAX_COLS] = { 0 };
    bool shown[TABLE_MAX_COLS];
    size_t n_cells = t->n_cells - t->n_cells % t->n_cols;
    const char *s = t->text.s;
    for (size_t i = 0; i < n_cells; i++, s += strlen(s) + 1) {
        int w = table_width(s);
        if (w > width[i % t->n_cols] && w <= TABLE_MAX_PAD)
            width[i % t->n_cols] = w;
    }
    fit_columns(t, width, shown);
    unsigned last = t->n_cols - 1;
    while (last && !shown[last])
        last--;
    s = t->text.s;
    int at = 0; /* current column */
    for (size_t i = 0; i < n_cells; i++, s += strlen(s) + 1) {
        const unsigned c = (unsigned)(i % t->n_cols);
        if (!shown[c])
            continue;
        at = print_cell(t, s, c, c == last, width, c ? at : 0, f);
        if (c == last)
            fputc('\n', f);
    }
}

void table_show(struct table *t, const char *drop)
{
    t->drop = drop;
    if (style_on_terminal())
        t->columns = style_columns(GG_OS_STDOUT);
    table_print(t, stdout);
    table_fini(t);
}

void table_markdown(const struct table *t, FILE *f)
{
    size_t n_cells = t->n_cells - t->n_cells % t->n_cols;
    const char *s = t->text.s;
    for (size_t i = 0; i < n_cells; i++, s += strlen(s) + 1) {
        fputs(i % t->n_cols ? " | " : "| ", f);
        markdown_put(f, s, true);
        if ((i + 1) % t->n_cols)
            continue;
        fputs(" |\n", f);
        if (i + 1 != t->n_cols)
            continue;
        for (unsigned c = 0; c < t->n_cols; c++)
            fputs(t->align[c] == 'r' ? "|---:" : "|:---", f);
        fputs("|\n", f);
    }
}

static char *format_scaled(char *out, uint64_t n, double step,
                           const char *const *units, const char *none)
{
    if ((double)n < step) {
        snprintf(out, 24, "%u%s", (unsigned)n, none);
        return out;
    }
    double v = (double)n;
    unsigned u = 0;
    for (v /= step; v >= step * 0.9995 && units[u + 1]; v /= step)
        u++;
    snprintf(out, 24, "%.*f %s",
             v < 9.995   ? 2
             : v < 99.95 ? 1
                         : 0,
             v, units[u]);
    return out;
}

char *table_size(char *out, uint64_t n)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB",
                                         "PiB", "EiB", NULL };
    return format_scaled(out, n, 1024, units, " B");
}

char *table_count(char *out, uint64_t n)
{
    static const char *const units[] = { "K", "M", "B", "T", "P", "E", NULL };
    return format_scaled(out, n, 1000, units, "");
}
