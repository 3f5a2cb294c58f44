/* SPDX-License-Identifier: MIT */
/* table.h - tables with aligned columns, and readable numbers */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include "tools/common/text.h"

#include <stdint.h>
#include <stdio.h>

enum {
    TABLE_MAX_COLS = 16,
    TABLE_MIN_TEXT = 16, /* least width of the first column if it is cut */
    TABLE_MIN_LAST = 12, /* least width of the last column if it is cut */
    /* a wider cell does not widen its column: otherwise one key of 64 KiB
     * would make every row as long */
    TABLE_MAX_PAD = 120
};

/* A table. Cells are added row by row and printed at the end, when the widths
 * are known. If memory runs out the program ends with a message. */
struct table {
    unsigned n_cols;
    char align[TABLE_MAX_COLS]; /* alignment of each column: 'l' or 'r' */
    struct text text;           /* text of the cells, each NUL-terminated */
    size_t n_cells;
    int indent; /* spaces before each row */
    /* width at which table_print() cuts the last column; 0: no limit */
    int columns;
    /* Columns that table_print() drops, one after another, while rows are
     * wider than the member columns: hexadecimal digits. After a '/' in the
     * text, or at its end, the first column may be shortened in its middle,
     * too. NULL: drop none. */
    const char *drop;
};

/* Initialise a table. align has 'l' or 'r' for each column. */
void table_init(struct table *t, const char *align, int indent);
void table_fini(struct table *t);

/* Add the next cell in reading order; text is printed as by text_put(). */
void table_add(struct table *t, const char *text);
/* Add a cell with s escaped. For names: different names look different. */
void table_add_str(struct table *t, struct gguf_str s);
void table_add_strz(struct table *t, const char *z);
void table_add_shape(struct table *t, uint32_t n_dims, const int64_t *ne);
/* Add a row of cells, such as the heading; cells has one for each column. */
void table_add_row(struct table *t, const char *const *cells);
void table_addf(struct table *t, const char *fmt, ...);

/* Print all complete rows; the cells stay. */
void table_print(const struct table *t, FILE *f);
/* Print the table to standard output, and free it as table_fini() does. On a
 * terminal it is made to fit; drop is the member of that name. */
void table_show(struct table *t, const char *drop);
/* Print the table as Markdown; the first row is the heading. */
void table_markdown(const struct table *t, FILE *f);

/* Columns that text takes on a terminal. */
int table_width(const char *text);

/* Write n bytes with a binary unit and three or four digits: "1.46 GiB". out
 * holds 24 bytes. Returns out. */
char *table_size(char *out, uint64_t n);
/* Write a count with a decimal unit: "1.10 B". out holds 24 bytes. Returns
 * out. */
char *table_count(char *out, uint64_t n);

#endif
