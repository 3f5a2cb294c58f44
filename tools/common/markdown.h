/* SPDX-License-Identifier: MIT */
/* markdown.h - escaping foreign text in Markdown */
#ifndef TOOLS_MARKDOWN_H
#define TOOLS_MARKDOWN_H

#include <stdbool.h>
#include <stdio.h>

/* Write the line s to f as Markdown that shows it literally.
 *
 * Characters that would style it, be HTML or end a table cell are escaped.
 * Sites also turn text into links or mentions (addresses with or without a
 * scheme, @name, #123, GH-123). They do so in the rendered text, where escapes
 * do not help; text that contains such a thing is written as code.
 *
 * cell: s is in a table, where '|' ends the cell even in code.
 */
void markdown_put(FILE *f, const char *s, bool cell);

#endif
