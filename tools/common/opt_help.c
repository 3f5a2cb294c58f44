/* SPDX-License-Identifier: MIT */
/* opt_help.c - printing --help from the table */
#include "config.h"
#include "tools/common/opt_internal.h"
#include "tools/common/style.h"
#include "base/os/os_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Column where help begins, and width of a line. The last column stays free,
 * since some terminals begin a new line after it. */
struct layout {
    int column, width;
};

static struct layout layout_of(int fd)
{
    int columns = style_columns(fd);
    columns = columns < 20 ? 20 : columns > 80 ? 80 : columns;
    return (struct layout){ columns < 60 ? 8 : 30, columns - 1 };
}

/* Print text from column on, wrapped to width. '\n' in text begins a line. */
static void print_wrapped(const char *text, int column, int width)
{
    int at = column;
    while (*text) {
        size_t word = strcspn(text, " \n");
        if (at > column && at + 1 + (int)word > width) {
            printf("\n%*s", column, "");
            at = column;
        } else if (at > column) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)word, text);
        at += (int)word;
        text += word;
        if (*text == '\n') {
            printf("\n%*s", column, "");
            at = column;
        }
        if (*text)
            text++;
    }
    putchar('\n');
}

/* Does the table have rare options? */
static bool has_rare(const struct opt *o)
{
    while (!opt_is_end(o) && !o->rare)
        o++;
    return o->rare;
}

/* Print the rows. all: also the rare options. */
static void print_table(const struct opt *o, struct layout l, bool all)
{
    bool shown = true;
    for (; !opt_is_end(o); o++) {
        if (!o->names)
            shown = all || !o->rare;
        if (!shown || o->kind == OPT_REFUSED || o->kind == OPT_ACCEPTED)
            continue;
        if (!o->names) {
            putchar('\n');
            print_wrapped(o->help, 0, l.width);
            continue;
        }
        char left[256];
        bool is_long = o->names[1] == '-';
        size_t n = (size_t)snprintf(left, sizeof left, "%s",
                                    is_long ? "      " : "  ");
        for (const char *s = o->names; *s; s++) {
            is_long = *s == '-' && s[1] == '-' ? true : is_long;
            n += (size_t)snprintf(left + n, sizeof left - n, "%s%c",
                                  *s == ' ' ? "," : "", *s);
        }
        if (o->arg && o->arg[0] == '[')
            n += (size_t)snprintf(left + n, sizeof left - n, "[=%s",
                                  o->arg + 1);
        else if (o->arg)
            n += (size_t)snprintf(left + n, sizeof left - n, "%c%s",
                                  is_long ? '=' : ' ', o->arg);
        fputs(left, stdout);
        if ((int)n + 2 > l.column) {
            putchar('\n');
            n = 0;
        }
        printf("%*s", l.column - (int)n, "");
        print_wrapped(o->help, l.column, l.width);
    }
}

/* Say how to print the rare options. */
static void print_more(const struct opt_tool *t, struct layout l)
{
    char text[160];
    snprintf(text, sizeof text,
             "%s --help=all prints all options; see also man %s", t->name,
             t->name);
    putchar('\n');
    print_wrapped(text, 0, l.width);
}

void opt_print_help(const struct opt_tool *t, bool all)
{
    const struct layout l = layout_of(GG_OS_STDOUT);
    const char *lead = "Usage:";
    for (const char *s = t->usage; *s; lead = "      ") {
        size_t n = strcspn(s, "\n");
        printf("%s %s %.*s\n", lead, t->name, (int)n, s);
        s += n + (s[n] == '\n');
    }
    putchar('\n');
    print_wrapped(t->about, 0, l.width);
    if (!opt_is_end(t->table) && t->table->names)
        putchar('\n');
    print_table(t->table, l, all);
    putchar('\n');
    print_table(opt_common, l, all);
    if (has_rare(t->table) && !all)
        print_more(t, l);
    if (t->more) {
        putchar('\n');
        print_wrapped(t->more, 0, l.width);
    }
    exit(msg_exit(MSG_DONE));
}
