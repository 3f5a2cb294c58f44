/* SPDX-License-Identifier: MIT */
/* wrap.c - lines on standard output that fit the terminal */
#include "config.h"
#include "tools/common/wrap.h"
#include "tools/common/style.h"
#include "tools/common/table.h"
#include "base/os/os_program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 8 }; /* columns of a label with the blanks after it */

static struct text pending; /* incomplete line */

static bool has_label(const char *line)
{
    return strlen(line) > LABEL && line[0] != ' ' && line[LABEL - 1] == ' ' &&
           line[LABEL] != ' ';
}

/* Replace each run of blanks by one blank. */
static void squeeze_blanks(char *line)
{
    char *to = line;
    for (const char *p = line; *p; p++)
        if (*p != ' ' || p == line || p[-1] != ' ')
            *to++ = *p;
    *to = '\0';
}

/* Is p after a sign such as "+/-", which must not end a line? */
static bool after_sign(const char *line, const char *p)
{
    static const char *const signs[] = { "+/-", "\302\261" };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const size_t n = strlen(signs[i]);
        if ((size_t)(p - line) >= n && !memcmp(p - n, signs[i], n))
            return true;
    }
    return false;
}

/* Find where the line can be wrapped: the start of its rest after columns, or
 * after a first word that is longer. NULL: nowhere. */
static char *rest_of(char *line, int columns)
{
    char *found = NULL;
    for (char *p = line + 1; p[-1] && *p; p++) {
        const bool blank = *p == ' ', comma = p[-1] == ',' && !blank;
        if ((!blank && !comma) || after_sign(line, p))
            continue;
        const char was = *p;
        *p = '\0';
        const bool fits = table_width(line) <= columns;
        *p = was;
        if (fits || !found)
            found = p;
        if (!fits)
            break;
    }
    return found;
}

static void put_line(char *line)
{
    const int columns = style_columns(GG_OS_STDOUT);
    int room = columns, indent = 2;
    if (table_width(line) > columns) {
        if (has_label(line) && columns >= 3 * LABEL) {
            fwrite(line, 1, LABEL, stdout);
            line += indent = LABEL;
            room -= indent;
        }
        squeeze_blanks(line);
    }
    for (char *rest; table_width(line) > room; room = columns - indent) {
        if (!(rest = rest_of(line, room)))
            break;
        fwrite(line, 1, (size_t)(rest - line), stdout);
        printf("\n%*s", indent, "");
        line = rest + (*rest == ' ');
    }
    puts(line);
}

void wrap_printf(const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    if (!style_on_terminal()) {
        (void)vprintf(fmt, ap);
        va_end(ap);
        return;
    }
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    char *made = msg_must(malloc((size_t)n + 1));
    (void)vsnprintf(made, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    text_add(&pending, made, (size_t)n);
    free(made);
    char *line = pending.s;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        put_line(line);
    }
    pending.n -= (size_t)(line - pending.s);
    memmove(pending.s, line, pending.n + 1);
    if (!pending.n)
        text_fini(&pending);
}
