/* SPDX-License-Identifier: MIT */
/* opt.c - the options of a tool: reading argv
 *
 * getopt_long() is not used: it splits every word after a single dash, does not
 * notice that an option is given twice, and permutes argv by its own rules.
 */
#include "config.h"
#include "tools/common/opt_internal.h"
#include "gguf/version.h"

#include <gguf/text.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct opt opt_common[] = {
    { "-h --help", "[all]", "print this help and exit", OPT_HELP,
      OPT_NO_MEMBER },
    { "--version", NULL, "print the version and exit", OPT_VERSION,
      OPT_NO_MEMBER },
    { .names = NULL },
};

void opt_usage(const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    msg_error(NULL, "%s%s (try '%s --help')", line,
              n >= (int)sizeof line ? "..." : "", msg_tool());
    exit(MSG_USAGE);
}

/* ---- names ---- */

struct opt_name opt_next_name(const char **p)
{
    struct opt_name name = { NULL, 0 };
    *p += strspn(*p, " ");
    if (**p) {
        name.s = *p;
        name.n = (int)strcspn(*p, " ");
        *p += name.n;
    }
    return name;
}

bool opt_name_is(struct opt_name name, const char *text, size_t n_text)
{
    if ((size_t)name.n != n_text)
        return false;
    for (int i = 0; i < name.n; i++)
        if (name.s[i] != (text[i] == '_' ? '-' : text[i]))
            return false;
    return true;
}

/* How a word is compared with names. */
enum match {
    EXACT,  /* -x, -xyz, --name */
    DASHES, /* -name for --name */
    PREFIX  /* --na for --name */
};

static bool name_matches(enum match how, struct opt_name name,
                         const char *text, size_t n)
{
    if (how == DASHES)
        return name.n > 2 && name.s[1] == '-' &&
               opt_name_is((struct opt_name){ name.s + 1, name.n - 1 }, text,
                           n);
    if (how == PREFIX && (size_t)name.n > n)
        name.n = (int)n;
    return opt_name_is(name, text, n);
}

struct parser {
    const struct opt_tool *tool;
    size_t n_rows; /* rows of the tool's table */
    void *options;
    /* name by which each row was given; s NULL: it was not */
    struct opt_name *given;
    const char **argument; /* argument of each row, or NULL */
    char **argv, **end;    /* current word, and the end of argv */
};

/* Row i: the tool's rows, then those of opt_common. NULL after the last. */
static const struct opt *row_at(const struct parser *p, size_t i)
{
    const struct opt *o =
        i < p->n_rows ? &p->tool->table[i] : &opt_common[i - p->n_rows];
    return opt_is_end(o) ? NULL : o;
}

/* Is this a row for an option of another program? */
static bool is_foreign(const struct opt *o)
{
    return o->kind == OPT_REFUSED || o->kind == OPT_ACCEPTED;
}

/* Find the first option, from row i on, whose name is the n bytes of text. */
static struct opt_use find_option(const struct parser *p, size_t i,
                                  enum match how, const char *text, size_t n)
{
    struct opt_use u = { .row = NULL };
    for (u.i = i; (u.row = row_at(p, u.i)) != NULL; u.i++) {
        const char *names = u.row->names ? u.row->names : "";
        if (how == PREFIX && is_foreign(u.row))
            continue;
        while ((u.name = opt_next_name(&names)).s)
            if (name_matches(how, u.name, text, n))
                return u;
    }
    return u;
}

/* ---- one word ---- */

/* Refuse u if it would replace an earlier argument. A list grows, and a flag
 * repeats itself. */
static void check_given(const struct parser *p, const struct opt_use *u)
{
    const struct opt *o = u->row, *other;
    if (!o->arg || o->kind == OPT_LIST || o->kind == OPT_LIMIT)
        return;
    struct opt_name b = p->given[u->i];
    if (b.s == u->name.s)
        opt_usage("option '%.*s' is given twice", b.n, b.s);
    for (size_t i = 0; !b.s && u->arg && i < p->n_rows; i++) {
        other = &p->tool->table[i];
        if (p->argument[i] && other->size && other->at == o->at)
            b = p->given[i]; /* another option that sets the same member */
    }
    if (b.s)
        opt_usage("'%.*s' and '%.*s' say the same thing: give only one", b.n,
                  b.s, u->name.n, u->name.s);
}

static void use_option(struct parser *p, struct opt_use u)
{
    if (u.row->kind == OPT_HELP) {
        if (u.arg && strcmp(u.arg, "all") != 0)
            opt_usage("--help: '%s' is not 'all'", u.arg);
        opt_print_help(p->tool, u.arg != NULL);
    }
    if (u.row->kind == OPT_VERSION) {
        printf("%s (libgguf) %s\n", p->tool->name, gguf_version_string());
        exit(msg_exit(MSG_DONE));
    }
    check_given(p, &u);
    p->given[u.i] = u.name;
    p->argument[u.i] = u.arg;
    opt_store(&u, p->options);
}

/* Take the next word as an argument. */
static const char *next_word(struct parser *p, struct opt_name name)
{
    if (p->argv + 1 == p->end)
        opt_usage("option '%.*s' needs an argument", name.n, name.s);
    return *++p->argv;
}

/* Refuse an option of another program; the text of the row says what to do
 * instead. */
static _Noreturn void refuse_option(const struct opt_use *u)
{
    msg_error(NULL, "unsupported option '%.*s': %s", u->name.n, u->name.s,
              u->row->help);
    exit(MSG_USAGE);
}

/* Ignore an option of another program and its argument, if that is one of the
 * words that change nothing. */
static void accept_option(struct parser *p, const struct opt_use *u,
                          const char *arg)
{
    const struct opt_word *w = u->row->words;
    if (!arg && u->row->arg)
        arg = next_word(p, u->name);
    while (arg && w && w->word && strcmp(w->word, arg) != 0)
        w++;
    if (!arg || !w || w->word)
        return;
    msg_error(NULL, "%.*s: '%s' is not '%s': %s", u->name.n, u->name.s, arg,
              u->row->words->word, u->row->help);
    exit(MSG_USAGE);
}

/* Use the option u, whose name may be followed by '=' and an argument. */
static void use_name(struct parser *p, struct opt_use u, const char *arg)
{
    if (u.row->kind == OPT_REFUSED)
        refuse_option(&u);
    if (u.row->kind == OPT_ACCEPTED) {
        accept_option(p, &u, arg);
        return;
    }
    if (arg && !u.row->arg)
        opt_usage("option '%.*s' takes no argument", u.name.n, u.name.s);
    if (!arg && u.row->arg && u.row->arg[0] != '[')
        arg = next_word(p, u.name);
    u.arg = arg;
    use_option(p, u);
}

/* Report a prefix of several options, with their names. */
static _Noreturn void fail_ambiguous(const struct parser *p, const char *text,
                                     size_t n)
{
    char list[512] = "";
    size_t at = 0;
    struct opt_use u = { .i = 0 };
    for (; (u = find_option(p, u.i, PREFIX, text, n)).row && at < sizeof list;
         u.i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%.*s",
                               at ? ", " : "", u.name.n, u.name.s);
    opt_usage("option '%.*s' is ambiguous: %s", (int)n, text, list);
}

/* Report an unknown option, with a similar one if there is any. */
static _Noreturn void fail_unknown(const struct parser *p, const char *text,
                                   size_t n)
{
    const struct opt *o;
    struct gguf_suggestion near;
    char hint[GGUF_SUGGESTION_SIZE];
    gguf_suggestion_init(&near, (struct gguf_str){ text, n });
    for (size_t i = 0; (o = row_at(p, i)) != NULL; i++) {
        const char *names = o->names ? o->names : "";
        struct opt_name name;
        while ((name = opt_next_name(&names)).s)
            if (!is_foreign(o) && name.n > 2)
                gguf_suggestion_try(
                    &near, (struct gguf_str){ name.s, (size_t)name.n });
    }
    opt_usage("unknown option '%.*s'%s", (int)n, text,
              gguf_suggestion_text(&near, hint));
}

/* Read --name, --na, -xyz or -x=argument. Returns false if the word is none of
 * these. */
static bool read_name(struct parser *p)
{
    const char *text = *p->argv, *eq = strchr(text, '=');
    size_t n = eq ? (size_t)(eq - text) : strlen(text);
    struct opt_use u = find_option(p, 0, EXACT, text, n);
    if (!u.row && text[1] == '-') {
        u = find_option(p, 0, PREFIX, text, n);
        if (u.row && find_option(p, u.i + 1, PREFIX, text, n).row)
            fail_ambiguous(p, text, n);
        if (!u.row)
            fail_unknown(p, text, n);
    }
    if (u.row)
        use_name(p, u, eq ? eq + 1 : NULL);
    return u.row != NULL;
}

/* Read single letters: -abc, -c512. A word with a letter that is not an option
 * is reported as a whole. */
static void read_letters(struct parser *p)
{
    const char *word = *p->argv;
    size_t n = strcspn(word, "=");
    struct opt_use u = find_option(p, 0, DASHES, word, n);
    if (u.row)
        opt_usage("unknown option '%.*s'; did you mean '%.*s'?", (int)n, word,
                  u.name.n, u.name.s);
    for (const char *c = word + 1; *c; c++) {
        char name[2] = { '-', *c };
        u = find_option(p, 0, EXACT, name, 2);
        if (!u.row || u.row->kind == OPT_HELP ||
            (u.row->arg && c[1] && !opt_accepts_arg(u.row, c + 1)))
            opt_usage("unknown option '%s'", word);
        if (u.row->arg) {
            use_name(p, u, c[1] ? c + 1 : NULL);
            return;
        }
        use_name(p, u, NULL);
    }
}

/* ---- operands ---- */

/* Check the number of operands. */
static void check_operands(const struct opt_tool *tool, int n, char **operand)
{
    const char *p = tool->operands ? tool->operands : "";
    struct opt_name name;
    int k = 0;
    while ((name = opt_next_name(&p)).s) {
        int word = (int)strcspn(name.s, ". ");
        if (k == n && name.s[0] != '[')
            opt_usage("%.*s is missing", word, name.s);
        k = name.s[word] == '.' ? n : k + (k < n);
    }
    if (k < n)
        opt_usage("'%s' is one argument too many", operand[k]);
}

/* ---- groups ---- */

/* Append the rows of a table to to. at: offset of the struct that holds their
 * members. */
static struct opt *add_rows(struct opt *to, size_t *n, size_t *room,
                            const struct opt *o, size_t at)
{
    for (; !opt_is_end(o); o++) {
        if (o->group) {
            to = add_rows(to, n, room, o->group->table, at + o->at);
            continue;
        }
        to = msg_grow(to, room, *n + 2, sizeof *to);
        to[*n] = *o;
        to[*n].at += at;
        to[(*n)++].bits_at += at;
    }
    return to;
}

static struct opt_rule *add_rules(struct opt_rule *to, size_t *n, size_t *room,
                                  const struct opt *o,
                                  const struct opt_rule *x)
{
    for (; x && (x->a || x->b); x++) {
        to = msg_grow(to, room, *n + 2, sizeof *to);
        to[(*n)++] = *x;
    }
    for (; !opt_is_end(o); o++)
        if (o->group)
            to = add_rules(to, n, room, o->group->table, o->group->rules);
    return to;
}

/* Return the tool with the rows and rules of its groups inserted. Free it with
 * close_groups(). */
static struct opt_tool open_groups(const struct opt_tool *tool)
{
    struct opt_tool t = *tool;
    size_t n = 0, room = 0, n_rules = 0, room_rules = 0;
    struct opt *rows = add_rows(NULL, &n, &room, tool->table, 0);
    struct opt_rule *rules =
        add_rules(NULL, &n_rules, &room_rules, tool->table, tool->rules);
    rows = msg_grow(rows, &room, n + 1, sizeof *rows);
    rules = msg_grow(rules, &room_rules, n_rules + 1, sizeof *rules);
    rows[n] = (struct opt){ .names = NULL };
    rules[n_rules] = (struct opt_rule){ .a = NULL };
    t.table = rows;
    t.rules = rules;
    return t;
}

static void close_groups(struct opt_tool *t)
{
    free((void *)(uintptr_t)t->table);
    free((void *)(uintptr_t)t->rules);
}

int opt_parse(const struct opt_tool *asked, int argc, char **argv,
              void *options)
{
    msg_init(asked->name);
    struct opt_tool open = open_groups(asked), *tool = &open;
    struct parser p = { .tool = tool, .options = options };
    int n = 0;
    bool ended = false;
    while (!opt_is_end(&tool->table[p.n_rows]))
        p.n_rows++;
    p.given = msg_must(calloc(p.n_rows + 2, sizeof *p.given));
    p.argument = msg_must(calloc(p.n_rows + 2, sizeof *p.argument));
    p.end = argv + argc;
    for (p.argv = argv + (argc > 0); p.argv < p.end; p.argv++) {
        char *word = *p.argv;
        if (ended || word[0] != '-' || !word[1])
            argv[1 + n++] = word;
        else if (!strcmp(word, "--"))
            ended = true;
        else if (!read_name(&p))
            read_letters(&p);
    }
    opt_check_rules(tool, p.given, n ? argv[1] : NULL);
    check_operands(tool, n, argv + 1);
    free(p.given);
    free(p.argument);
    close_groups(tool);
    return n;
}
