/* SPDX-License-Identifier: MIT */
/* style.h - bold and coloured text on a terminal, and its width */
#ifndef TOOLS_STYLE_H
#define TOOLS_STYLE_H

#include <stdbool.h>

enum style {
    STYLE_PLAIN, /* end of styled text */
    STYLE_TITLE,
    STYLE_HEADING,
    STYLE_ERROR,
    STYLE_WARNING,
    STYLE_NOTE
};

/* When to style. STYLE_AUTO: if standard output is a terminal that supports it
 * and the environment does not have NO_COLOR. */
enum style_when { STYLE_AUTO, STYLE_ALWAYS, STYLE_NEVER };

/* Choose when to style. Without this call nothing is styled. */
void style_init(enum style_when when);

/* Is standard output a terminal that somebody looks at? */
bool style_on_terminal(void);

/* Treat standard output as no terminal from now on: another program, such as
 * mpirun, reads it from a terminal that it has made. */
void style_no_terminal(void);

/* Width of the terminal fd in columns; 80 if it is not a terminal or does not
 * say. */
int style_columns(int fd);

/* Escape sequence to print before styled text; print that of STYLE_PLAIN after
 * it. "" if nothing is styled. */
const char *style(enum style s);

#endif
