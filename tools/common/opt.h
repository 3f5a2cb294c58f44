/* SPDX-License-Identifier: MIT */
/* opt.h - the options of a tool: a table of rows, and rules between options
 *
 * A row describes one option: its names, its argument, its help, the kind of
 * its argument, the allowed range or words, and the member of the tool's own
 * struct that it sets. Parsing, --help, --version and all messages work from
 * the rows: a tool needs no code for individual options.
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
 *         { .help = "Output:" },
 *         { "-j --json", NULL, "one JSON document", OPT_FLAG, AT(json) },
 *         { "-c --ctx-size", "N", "tokens of the cache", OPT_UINT, AT(n_ctx),
 *           .min = 1, .max = UINT32_MAX },
 *         { "--sort", "WORD", "order of the list", OPT_WORD, AT(sort),
 *           .words = orders },
 *         { "--include", "TEXT", "use only TEXT", OPT_LIST, AT(texts) },
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
 *     struct options o = { .n_ctx = 512 };      -- defaults
 *     int n = opt_parse(&tool, argc, argv, &o); -- argv[1] to argv[n]
 *
 * To add an option, add its member, its row, its entry in the man page (a test
 * compares them), and a rule if it excludes or needs another option.
 *
 * Users may write options as in GNU programs: -c 512, -c512, -jq,
 * --ctx-size 512, --ctx-size=512, the prefix --ctx, operands before options,
 * and operands after "--". They may also write them as for llama.cpp's tools:
 * names of several letters after one dash (-ub 64), '=' after these and after
 * single letters, and underscores for dashes (--ctx_size). A word after one
 * dash is read as a name if an option has that name, otherwise as single
 * letters. If a letter has an argument, the rest of the word must be a possible
 * argument; otherwise the word is refused: -t takes a number, so that -tb is an
 * error and not -t with the argument b.
 *
 * An option of llama.cpp that a tool lacks has a row of kind OPT_REFUSED, whose
 * help names the alternative. If the tool always behaves as
 * with the option, the row has the kind OPT_ACCEPTED.
 *
 * Tools that share options share a group of rows. The struct of each tool
 * contains the group's struct; a row of its table names the group and the
 * offset of that struct. If two rows have the same name, the first is used. A
 * row of the tool that replaces one of the group must therefore come before the
 * group.
 *
 *     { .group = &ev_cache, .at = offsetof(struct options, ev) },
 *
 * Options between a heading with .rare and the next heading are printed only by
 * --help=all.
 *
 * It is a usage error to give an option with an argument twice, or to give two
 * options with arguments for the same member, because the first argument would
 * be lost. Options of the kinds OPT_LIST and OPT_LIMIT, which lose nothing, and
 * flags may be given any number of times.
 */
#ifndef TOOLS_OPT_H
#define TOOLS_OPT_H

#include "tools/common/msg.h"

#include <gguf/file.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How an argument is read, and the type of the member that it sets. */
enum opt_kind {
    OPT_FLAG, /* bool or int: set to .value, or to 1 if .value is 0 */
    /* unsigned of any width: a number from .min to .max, or one of .words */
    OPT_UINT,
    OPT_DOUBLE, /* double: a number from .low to .high */
    /* uint64_t: bytes, above 0, as gguf_size_parse() reads them */
    OPT_SIZE,
    OPT_STR, /* const char * */
    /* const char *: name of an output file. "-" is refused, because an output
     * is written to a file that gets its name when it is complete. */
    OPT_OUT,
    OPT_WORD,  /* int, unsigned or enum: value of one of .words */
    OPT_LIST,  /* struct opt_list: the argument and .value are appended */
    OPT_LIMIT, /* struct gguf_limits: an argument NAME=N sets one limit */
    /* OPT_NO_MEMBER: the tool has no such option; .help says what to do
     * instead */
    OPT_REFUSED,
    /* OPT_NO_MEMBER: read and ignored. If .words is not NULL, an argument that
     * is not one of .words is refused, with .help in the message. */
    OPT_ACCEPTED,
    OPT_HELP, /* OPT_HELP, OPT_VERSION: for opt.c's own rows only */
    OPT_VERSION
};

/* Word that an argument may be, in upper or lower case. An array of these ends
 * with word NULL. */
struct opt_word {
    const char *word;
    uint64_t value;
};

struct opt {
    /* Names, separated by blanks: "-c --ctx-size". NULL: the row is a group if
     * .group is set, a heading if .help is set, otherwise the end of the
     * table. */
    const char *names;
    /* Name of the argument. NULL: the option takes no argument. "[X]": the
     * argument is optional, and is given after '='. If it is not given, a
     * member of kind OPT_STR or OPT_OUT keeps its value, and a member of
     * another kind is set to .value. */
    const char *arg;
    const char *help; /* text for --help, which wraps it; '\n' begins a line */
    enum opt_kind kind;
    /* offset and size of the member; OPT_AT or OPT_NO_MEMBER */
    size_t at, size;
    uint64_t min, max;
    double low, high;
    const struct opt_word *words;
    uint64_t value;
    bool kilo;      /* OPT_UINT: accept 8k for 8192, 8M for 8388608 */
    size_t bits_at; /* OPT_BITS: offset of an unsigned or int */
    unsigned bits;  /* bits to set there whenever the option is given */
    bool rare;      /* heading of options that only --help=all prints */
    /* Group whose rows replace this row. .at is the offset of the group's
     * struct. */
    const struct opt_group *group;
};

#define OPT_AT(type, member)                                                  \
    .at = offsetof(type, member), .size = sizeof((type *)0)->member
#define OPT_NO_MEMBER .size = 0
#define OPT_BITS(type, member, set)                                           \
    .bits_at = offsetof(type, member), .bits = (set)

/* Arguments of options of kind OPT_LIST, in the order given. arg[i] points into
 * argv. value[i] is .value of the row. A zeroed list is empty. */
struct opt_list {
    const char **arg;
    uint64_t *value;
    size_t n, room;
};
/* Free the arrays of a list, and make it empty. */
void opt_list_fini(struct opt_list *l);

enum opt_relation {
    /* Options in .a and options in .b exclude each other. If .b is NULL, at
     * most one option in .a may be given. */
    OPT_EXCLUDES,
    /* Any option in .a needs at least one option in .b. If .a is NULL, at least
     * one option in .b is required. */
    OPT_NEEDS
};

/* Rows for options of other programs. ROW_ACCEPTED accepts any argument. */
#define ROW_REFUSED(names, arg, help)                                         \
    {                                                                         \
        names, arg, help, OPT_REFUSED, OPT_NO_MEMBER                          \
    }
#define ROW_ACCEPTED(names, arg, help)                                        \
    {                                                                         \
        names, arg, help, OPT_ACCEPTED, OPT_NO_MEMBER                         \
    }

/* Relation between options. In the last element of an array, .a and .b are
 * NULL. */
struct opt_rule {
    const char *a; /* names of options, separated by blanks */
    enum opt_relation is;
    const char *b;
};

/* Options that several tools share, with the rules between them. */
struct opt_group {
    const struct opt *table;
    const struct opt_rule *rules; /* rules; NULL: none */
};

struct opt_tool {
    const char *name;
    /* usage after the name of the tool; '\n' begins a line */
    const char *usage;
    const char *about; /* description, one sentence or more */
    const struct opt *table;
    const struct opt_rule *rules; /* rules; NULL: none */
    /* Names and number of operands, such as "IN [OUT]" or "FILE...". NULL: the
     * tool takes no operands. */
    const char *operands;
    const char *more; /* text after the options, or NULL */
};

/* Parse the command line.
 *
 * options   The tool's struct. The caller has set the defaults; the rows of the
 *           table say which members the options set.
 *
 * Returns the number of operands, which are argv[1] and so on in the order
 * given; argv is reordered. --help and --version print and exit with 0. A wrong
 * option, argument or operand, and options that break a rule of the tool, end
 * the program with a usage error.
 */
int opt_parse(const struct opt_tool *tool, int argc, char **argv,
              void *options);

/* Print a usage error and a hint at --help; exit with MSG_USAGE. */
_Noreturn void opt_usage(const char *fmt, ...) MSG_PRINTF(1, 2);

/* Help for a row of kind OPT_LIMIT. */
#define OPT_LIMIT_HELP                                                        \
    "raise a safety limit to read a legitimate file, such as dims=5; the "    \
    "manual page lists the names"

/* Make the check of OPT_OUT for an operand that names an output file: "-" ends
 * the program with a usage error. Returns path, which may be NULL. */
const char *opt_check_output(const char *path);

/* Read text as a decimal number. Returns false if it is anything else or too
 * large; *v is then undefined. */
bool opt_parse_u64(const char *text, uint64_t *v);

#endif
