/* SPDX-License-Identifier: MIT */
/* table.h - aligned columns, and numbers as people read them */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include "tools/common/text.h"

#include <stdint.h>
#include <stdio.h>

enum {
    TABLE_MAX_COLS = 16,
    TABLE_MIN_TEXT = 16, /* columns of the first text, if it is cut, */
    TABLE_MIN_LAST = 12, /* and of the last */
    TABLE_MAX_PAD = 120  /* a cell that is wider does not widen its column:
                         * one key of 64 KiB would make every row as long */
};

/* Cells are added row by row and printed at the end, when the widths are
 * known. Memory that runs out ends the program with a message. */
struct table {
    unsigned n_cols;
    char align[TABLE_MAX_COLS]; /* 'l' or 'r' */
    struct text text;           /* cells, each with its NUL */
    size_t n_cells;
    int indent;  /* spaces before each row */
    int columns; /* table_print cuts text of the last column there; 0: not */
    /* Or NULL: what table_print leaves out where rows are longer than columns,
     * one after another: hexadecimal digits. After '/', or after all of them,
     * the text of the first may be cut, too, in its middle. */
    const char *leave;
};

/* align: one of 'l' and 'r' for each column. */
void table_init(struct table *t, const char *align, int indent);
void table_fini(struct table *t);

/* The next cell, in reading order; see text_put. */
void table_add(struct table *t, const char *text);
/* s escaped: for names, which must look different if they are. */
void table_add_str(struct table *t, struct gguf_str s);
void table_add_strz(struct table *t, const char *z);
void table_add_shape(struct table *t, uint32_t n_dims, const int64_t *ne);
/* A row of them, such as the heading: as many as there are columns. */
void table_add_row(struct table *t, const char *const *cells);
void table_addf(struct table *t, const char *fmt, ...);

/* Rows that are not complete are not printed. Keeps the cells. */
void table_print(const struct table *t, FILE *f);
/* Print them to standard output, if that is a terminal so that they fit it:
 * leave as above. Ends the table as table_fini. */
void table_show(struct table *t, const char *leave);
/* The same as a Markdown table; the first row is the heading. */
void table_markdown(const struct table *t, FILE *f);

/* Columns of a terminal that text takes: code points that are not marks. */
int table_width(const char *text);

/* n bytes with a binary unit and three or four digits: "1.46 GiB". out holds
 * 24 bytes; returns out. */
char *table_size(char *out, uint64_t n);
/* n with a decimal unit: "1.10 B" as of parameters. */
char *table_count(char *out, uint64_t n);

#endif
