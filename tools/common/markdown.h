/* SPDX-License-Identifier: MIT */
/* markdown.h - text from strangers inside a Markdown document */
#ifndef TOOLS_MARKDOWN_H
#define TOOLS_MARKDOWN_H

#include <stdbool.h>
#include <stdio.h>

/* s, of one line, as Markdown that shows it: what would style it, be HTML or
 * end a cell is escaped. Escaping does not help against what a site makes a
 * link or tells somebody of (addresses with or without a scheme, @name, #123,
 * GH-123), since sites look at the rendered text: such text becomes code as a
 * whole, where they do not look. cell: inside of a table, where a | always
 * ends the cell, in code, too. */
void markdown_put(FILE *f, const char *s, bool cell);

#endif
