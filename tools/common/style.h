/* style.h - weight and colour, on a terminal only */
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

/* when: "always", "never", or "auto": if standard output is a terminal that
 * can, and the environment has no NO_COLOR. false: another word. Without this
 * call nothing is styled. */
bool style_init(const char *when);

/* What to print before text of a style, and STYLE_PLAIN's behind it: an escape
 * sequence, or nothing. */
const char *style(enum style s);

#endif
