/* opt_help.c - what --help prints, from the table */
#include "config.h"
#include "tools/common/opt_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELP_COLUMN = 30, WIDTH = 79 };

/* Print text from column on, wrapped; '\n' in it begins a line. */
static void print_wrapped(const char *text, int column, int at)
{
    while (*text) {
        size_t word = strcspn(text, " \n");
        if (at > column && at + 1 + (int)word > WIDTH) {
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

static void print_table(const struct opt *o)
{
    for (; !opt_is_end(o); o++) {
        if (o->kind == OPT_REFUSED)
            continue;
        if (!o->names) {
            printf("\n%s\n", o->help);
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
        if (n + 2 > HELP_COLUMN) {
            putchar('\n');
            n = 0;
        }
        printf("%*s", HELP_COLUMN - (int)n, "");
        print_wrapped(o->help, HELP_COLUMN, HELP_COLUMN);
    }
}

void opt_print_help(const struct opt_tool *t)
{
    const char *lead = "Usage:";
    for (const char *s = t->usage; *s; lead = "      ") {
        size_t n = strcspn(s, "\n");
        printf("%s %s %.*s\n", lead, t->name, (int)n, s);
        s += n + (s[n] == '\n');
    }
    putchar('\n');
    print_wrapped(t->about, 0, 0);
    if (!opt_is_end(t->table) && t->table->names)
        putchar('\n');
    print_table(t->table);
    putchar('\n');
    print_table(opt_common);
    if (t->more) {
        putchar('\n');
        print_wrapped(t->more, 0, 0);
    }
    exit(msg_exit(MSG_DONE));
}

