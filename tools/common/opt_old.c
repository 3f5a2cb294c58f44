/* opt.c - one table of options per tool: parsing, --help, --version */
#include "config.h"
#include "tools/common/opt_old.h"
#include "gguf/version.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ID_HELP = 0x10000,
    ID_VERSION,
    MAX_NAMES = 256, /* of one tool, aliases counted */
    NAME_SIZE = 40,  /* bytes with "--" and NUL */
    HELP_COLUMN = 30,
    WIDTH = 79
};

/* What getopt_long wants, made from the table. */
struct opt_lists {
    char shorts[2 * MAX_NAMES + 2];
    struct option longs[MAX_NAMES + 1];
    char names[MAX_NAMES][NAME_SIZE]; /* "--name" of each of longs */
    bool one_dash[MAX_NAMES];         /* may be written "-name" */
    size_t n_longs;
};

/* Rows of every tool, behind its own. */
static const struct opt common[] = {
    { ID_HELP, "-h --help", NULL, "print this help and exit" },
    { ID_VERSION, "--version", NULL, "print the version and exit" },
    { 0, NULL, NULL, NULL },
};

static bool is_end(const struct opt *o)
{
    return !o->id && !o->help;
}

static void add_name(struct opt_lists *l, const struct opt *o,
                     const char *name, size_t n)
{
    if (n == 2 && name[1] != '-') {
        size_t k = strlen(l->shorts);
        snprintf(l->shorts + k, sizeof l->shorts - k, "%c%s", name[1],
                 !o->arg ? "" : ":");
        return;
    }
    assert(l->n_longs < MAX_NAMES && n + 2 <= NAME_SIZE);
    size_t i = l->n_longs++;
    bool two = name[1] == '-';
    snprintf(l->names[i], NAME_SIZE, "%s%.*s", two ? "" : "-", (int)n, name);
    l->one_dash[i] = !two;
    l->longs[i] = (struct option){ l->names[i] + 2,
                                   !o->arg             ? no_argument
                                   : o->arg[0] == '[' ? optional_argument
                                                      : required_argument,
                                   NULL, o->id };
}

static void add_table(struct opt_lists *l, const struct opt *o)
{
    for (; !is_end(o); o++) {
        if (!o->id)
            continue;
        for (const char *s = o->names; *s;) {
            size_t n = strcspn(s, " ");
            add_name(l, o, s, n);
            s += n + strspn(s + n, " ");
        }
    }
}

void opt_begin(struct opt_parser *p, const struct opt_tool *tool, int argc,
               char **argv)
{
    msg_init(tool->name);
    *p = (struct opt_parser){ .tool = tool, .argc = argc, .argv = argv };
    p->lists = msg_must(calloc(1, sizeof *p->lists));
    strcpy(p->lists->shorts, ":");
    add_table(p->lists, tool->table);
    add_table(p->lists, common);
    opterr = 0;
    optind = 0; /* begin anew, whatever an earlier parser was in */
}

/* Rewrite the next option as getopt_long knows it: "-ngl" as "--ngl", and
 * dashes for underscores in a long name. The next option is the first element
 * from optind on that begins with a dash; inside a cluster of short options it
 * is that cluster, which is none of these. */
static void normalize(struct opt_parser *p)
{
    int i = optind ? optind : 1;
    while (i < p->argc && (p->argv[i][0] != '-' || !p->argv[i][1]))
        i++;
    if (i >= p->argc)
        return;
    char *a = p->argv[i];
    if (a[1] != '-') {
        for (size_t k = 0; k < p->lists->n_longs; k++)
            if (p->lists->one_dash[k] && !strcmp(a, p->lists->names[k] + 1))
                p->argv[i] = p->lists->names[k];
        return;
    }
    for (char *c = a + 2; *c && *c != '='; c++)
        if (*c == '_')
            *c = '-';
}

static const struct opt *row_of(const struct opt_parser *p, int id)
{
    for (int pass = 0; pass < 2; pass++)
        for (const struct opt *o = pass ? common : p->tool->table; !is_end(o);
             o++)
            if (o->id == id && o->help)
                return o;
    return NULL;
}

/* The id of the row that has short option c. */
static int short_id(const struct opt_parser *p, int c)
{
    for (int pass = 0; pass < 2; pass++)
        for (const struct opt *o = pass ? common : p->tool->table; !is_end(o);
             o++) {
            if (!o->id)
                continue;
            for (const char *s = o->names; s; s = strchr(s, ' ')) {
                s += strspn(s, " ");
                if (s[0] == '-' && s[1] == c && (!s[2] || s[2] == ' '))
                    return o->id;
            }
        }
    return c;
}

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
    for (; !is_end(o); o++) {
        if (!o->id) {
            printf("\n%s\n", o->help);
            continue;
        }
        if (!o->help)
            continue;
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

static void print_help(const struct opt_tool *t)
{
    const char *lead = "Usage:";
    for (const char *s = t->usage; *s; lead = "      ") {
        size_t n = strcspn(s, "\n");
        printf("%s %s %.*s\n", lead, t->name, (int)n, s);
        s += n + (s[n] == '\n');
    }
    putchar('\n');
    print_wrapped(t->about, 0, 0);
    if (!is_end(t->table) && t->table->id)
        putchar('\n');
    print_table(t->table);
    putchar('\n');
    print_table(common);
    if (t->more) {
        putchar('\n');
        print_wrapped(t->more, 0, 0);
    }
    exit(msg_exit(MSG_DONE));
}

/* How the last option was written. */
static const char *written(const struct opt_parser *p, char buf[3])
{
    const char *a = optind > 0 ? p->argv[optind - 1] : "";
    if (a[0] == '-' && a[1] == '-')
        return a;
    snprintf(buf, 3, "-%c", optopt);
    return buf;
}

int opt_next(struct opt_parser *p)
{
    normalize(p);
    char buf[3];
    int id = getopt_long(p->argc, p->argv, p->lists->shorts, p->lists->longs,
                         NULL);
    if (id == -1) {
        p->i = optind;
        free(p->lists);
        p->lists = NULL;
        return OPT_END;
    }
    if (id == '?') {
        const char *w = written(p, buf);
        if (w[1] == '-' && optopt)
            opt_usage("option '%s' takes no argument", w);
        opt_usage("unknown or ambiguous option '%s'", w);
    }
    if (id == ':')
        opt_usage("option '%s' needs an argument", written(p, buf));
    if (id < OPT_FIRST_LONG)
        id = short_id(p, id);
    p->opt = row_of(p, id);
    p->arg = optarg;
    if (id == ID_HELP)
        print_help(p->tool);
    if (id == ID_VERSION) {
        printf("%s (libgguf) %s\n", p->tool->name, gguf_version_string());
        exit(msg_exit(MSG_DONE));
    }
    return id;
}

/* The longest name of the last option. */
static const char *long_name(const struct opt_parser *p)
{
    const char *s = p->opt ? strstr(p->opt->names, "--") : NULL;
    return s ? s : p->opt ? p->opt->names : "";
}

uint64_t opt_u64(const struct opt_parser *p, uint64_t min, uint64_t max)
{
    uint64_t v;
    if (!opt_parse_u64(p->arg, &v) || v < min || v > max)
        opt_usage("%s: '%s' is not a whole number between %" PRIu64
                  " and %" PRIu64, long_name(p), p->arg, min, max);
    return v;
}

double opt_double(const struct opt_parser *p, double min, double max)
{
    char *end;
    double v = strtod(p->arg, &end);
    if (end == p->arg || *end || !(v >= min && v <= max))
        opt_usage("%s: '%s' is not a number between %g and %g", long_name(p),
                  p->arg, min, max);
    return v;
}

void opt_limit(const struct opt_parser *p, struct gguf_limits *limits)
{
    char name[64];
    const char *eq = strchr(p->arg, '=');
    uint64_t n;
    struct gguf_error err;
    if (!eq || (size_t)(eq - p->arg) >= sizeof name ||
        !opt_parse_u64(eq + 1, &n))
        opt_usage("--limit: '%s' is not NAME=N", p->arg);
    memcpy(name, p->arg, (size_t)(eq - p->arg));
    name[eq - p->arg] = '\0';
    if (gguf_limits_set(limits, name, n, &err) != GGUF_OK)
        opt_usage("--limit: %s", err.message);
}
