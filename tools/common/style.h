/* SPDX-License-Identifier: MIT */
/* style.h - weight and colour, on a terminal only; its width */
#ifndef TOOLS_STYLE_H
#define TOOLS_STYLE_H

#include <stdbool.h>

enum style {
    STYLE_PLAIN, /* ends the others */
    STYLE_TITLE,
    STYLE_HEADING,
    STYLE_ERROR,
    STYLE_WARNING,
    STYLE_NOTE
};

/* STYLE_AUTO: if standard output is a terminal that can, and the environment
 * has no NO_COLOR. */
enum style_when { STYLE_AUTO, STYLE_ALWAYS, STYLE_NEVER };

/* Without this call nothing is styled. */
void style_init(enum style_when when);

/* Is standard output a terminal that somebody looks at? */
bool style_on_terminal(void);

/* From now on it is none: what is printed goes through a program that has given
 * it one of its own, as mpirun does. */
void style_no_terminal(void);

/* Columns of the terminal that fd is; 80 if it is not a terminal, or does not
 * say. */
int style_columns(int fd);

/* What to print before text of a style, and STYLE_PLAIN's after it: an escape
 * sequence, or nothing. */
const char *style(enum style s);

#endif
