/* SPDX-License-Identifier: MIT */
/* opt.h - the options of a tool: rows of a table, and rules between them
 *
 * An option is a row: its names, its argument and its help; its kind, which
 * says how the argument is read; the range or the words that it may be; the
 * member of the tool's own struct that it sets. Parsing, --help, --version and
 * all messages come from the rows, so that a tool has no code for an option.
 *
 *     struct options {
 *         bool json;
 *         uint32_t n_ctx;
 *         int sort;
 *         const char *out;
 *         struct opt_list texts;
 *     };
 *     #define AT(member) OPT_AT(struct options, member)
 *     static const struct opt_word orders[] = {
 *         { "name", BY_NAME }, { "size", BY_SIZE }, { NULL, 0 },
 *     };
 *     static const struct opt table[] = {
 *         { .help = "What is shown:" },
 *         { "-j --json", NULL, "one JSON document", OPT_FLAG, AT(json) },
 *         { "-c --ctx-size", "N", "tokens of the cache", OPT_UINT, AT(n_ctx),
 *           .min = 1, .max = UINT32_MAX },
 *         { "--sort", "WORD", "order of the list", OPT_WORD, AT(sort),
 *           .words = orders },
 *         { "--include", "TEXT", "may be given again", OPT_LIST, AT(texts) },
 *         { "-o --output", "OUT", "write it there", OPT_OUT, AT(out) },
 *         { .names = NULL },
 *     };
 *     static const struct opt_rule rules[] = {
 *         { "--json", OPT_EXCLUDES, "--output" },
 *         { "--include", OPT_NEEDS, "--output" },
 *         { .a = NULL },
 *     };
 *     static const struct opt_tool tool = {
 *         "gguf-x", "[OPTION]... FILE...", "Show ...", table, rules, "FILE...",
 *         NULL
 *     };
 *     struct options o = { .n_ctx = 512 };      -- what is not given stays
 *     int n = opt_parse(&tool, argc, argv, &o); -- argv[1] to argv[n]
 *
 * To add an option: its member, its row, its lines in the man page (a test
 * compares them), a rule where it excludes or needs another.
 *
 * How options are written: as GNU has it (-c 512, -c512, -jq, --ctx-size 512,
 * --ctx-size=512, --ctx, -- before operands, options after operands), and as
 * people know it from llama.cpp's tools: names of several letters after one
 * dash (-ub 64), '=' after those and after single letters, and underscores for
 * dashes (--ctx_size). A word after one dash is read as a name first, and as
 * letters only where there is no such name; and it is not cut where the rest
 * cannot be the argument of the letter before it: -tb is never -t b. An option
 * that llama.cpp has and a tool lacks gets a row of kind OPT_REFUSED, which
 * says what to do instead, or OPT_ACCEPTED, where it asks for what the tool
 * does anyway.
 *
 * Tools that take the same options share a group of rows: the tools' structs
 * contain one struct, and a row of the tool's table names the group and where
 * that struct is. The first row that has a name counts, so that a tool's own
 * rows stand before a group that has the same names.
 *
 *     { .group = &ev_cache, .at = offsetof(struct options, ev) },
 *
 * A heading with .rare begins options that --help leaves out; --help=all
 * prints them.
 *
 * An option with an argument that is given twice is an error, unless it is a
 * list: the first one would be lost silently. So are two options with an
 * argument that set one member. A flag may be given twice.
 */
#ifndef TOOLS_OPT_H
#define TOOLS_OPT_H

#include "tools/common/msg.h"

#include <gguf/file.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The member it sets. */
enum opt_kind {
    OPT_FLAG,     /* bool or int: becomes value, or 1 where that is 0 */
    OPT_UINT,     /* any unsigned: a number in [min, max] or one of words */
    OPT_DOUBLE,   /* double: a number in [low, high] */
    OPT_SIZE,     /* uint64_t: bytes above 0, as gguf_size_parse has it */
    OPT_STR,      /* const char * */
    OPT_OUT,      /* const char *: a file to write; not "-", since models
                     * appear under a name when they are complete */
    OPT_WORD,     /* int, unsigned or enum: the value of one of words */
    OPT_LIST,     /* struct opt_list: one more, with value */
    OPT_LIMIT,    /* struct gguf_limits: NAME=N, one more */
    OPT_REFUSED,  /* OPT_NO_MEMBER: the tool has no such option; help says
                   * what to do instead */
    OPT_ACCEPTED, /* OPT_NO_MEMBER: read and ignored; an argument other than
                   * words is refused with help */
    OPT_HELP,     /* these two are opt.c's own */
    OPT_VERSION
};

/* An array of them ends with word NULL; in any case. */
struct opt_word {
    const char *word;
    uint64_t value;
};

struct opt {
    const char *names; /* separated by blanks: "-c --ctx-size"; NULL with help:
                        * a heading; NULL without: the end of the table */
    const char *arg;  /* its name; NULL: takes none; "[X]": optional, after '='
                        * only: without it, a string stays, others get value */
    const char *help; /* wrapped when printed; '\n' begins a line */
    enum opt_kind kind;
    size_t at, size; /* OPT_AT: of the member; OPT_NO_MEMBER */
    uint64_t min, max;
    double low, high;
    const struct opt_word *words;
    uint64_t value;
    bool kilo;      /* OPT_UINT: 8k is 8192 */
    size_t bits_at; /* OPT_BITS: whenever the option is given, */
    unsigned bits;  /* these are added to the unsigned or int there */
    bool rare;      /* heading whose options --help=all prints, not --help */
    const struct opt_group *group; /* rows of a shared struct, in place of this
                                    * row; at is where the struct is */
};

#define OPT_AT(type, member)                                                  \
    .at = offsetof(type, member), .size = sizeof((type *)0)->member
#define OPT_NO_MEMBER .size = 0
#define OPT_BITS(type, member, set)                                           \
    .bits_at = offsetof(type, member), .bits = (set)

/* Zeroed is empty. arg[i] is argv's, value[i] its row's. */
struct opt_list {
    const char **arg;
    uint64_t *value;
    size_t n, room;
};
void opt_list_fini(struct opt_list *l);

enum opt_relation {
    OPT_EXCLUDES, /* none of a with one of b; b NULL: one of a at most */
    OPT_NEEDS     /* one of a only with one of b; a NULL: one of b always */
};

/* Rows of options that other programs have. */
#define ROW_REFUSED(names, arg, help)                                         \
    {                                                                         \
        names, arg, help, OPT_REFUSED, OPT_NO_MEMBER                          \
    }
#define ROW_ACCEPTED(names, arg, help)                                        \
    {                                                                         \
        names, arg, help, OPT_ACCEPTED, OPT_NO_MEMBER                         \
    }

/* An array of them ends with a and b NULL. */
struct opt_rule {
    const char *a; /* names of options, separated by blanks */
    enum opt_relation is;
    const char *b;
};

/* Options that several tools share, and the rules between them. */
struct opt_group {
    const struct opt *table;
    const struct opt_rule *rules; /* or NULL */
};

struct opt_tool {
    const char *name;
    const char *usage; /* after the name; lines separated by '\n' */
    const char *about; /* one sentence or more */
    const struct opt *table;
    const struct opt_rule *rules; /* or NULL */
    const char *operands;         /* "IN [OUT]", "FILE...": how many there are,
                                  * and what one that is missing is called */
    const char *more;             /* printed after the options, or NULL */
};

/* Sets options, which is a struct with the members of the table, and returns
 * how many operands there are: argv[1] and so on, in the order given; argv is
 * the caller's to change. --help and --version print and exit with 0; what is
 * wrong with options, rules or operands is a usage error. */
int opt_parse(const struct opt_tool *tool, int argc, char **argv,
              void *options);

/* One line of usage error, the hint, exit status 2. */
_Noreturn void opt_usage(const char *fmt, ...) MSG_PRINTF(1, 2);

/* What --help says about a row of kind OPT_LIMIT. */
#define OPT_LIMIT_HELP                                                        \
    "raise a safety limit to read a legitimate file, such as dims=5; the "    \
    "manual page lists the names"

/* path, as an argument of kind OPT_OUT; for operands. */
const char *opt_check_output(const char *path);

/* text as a decimal number; false if it is anything else or too large. */
bool opt_parse_u64(const char *text, uint64_t *v);

#endif
