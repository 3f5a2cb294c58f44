/* opt_old.h - one table of options per tool: parsing, --help, --version
 *
 *     enum { OPT_KEY = OPT_FIRST_LONG };
 *     static const struct opt table[] = {
 *         { 0, NULL, NULL, "What is shown:" },
 *         { 'j', "-j --json", NULL, "print one JSON document" },
 *         { OPT_KEY, "--key", "NAME", "print the value of NAME only" },
 *         { 0, NULL, NULL, NULL },
 *     };
 *     static const struct opt_tool tool = {
 *         "gguf-info", "[OPTION]... FILE...", "Show ...", table, NULL
 *     };
 *     struct opt_parser p;
 *     opt_begin(&p, &tool, argc, argv);
 *     for (int id; (id = opt_next(&p)) != OPT_END;)
 *         switch (id) ...
 *     operands: p.argv[p.i] to p.argv[p.argc - 1]
 *
 * Names are those of GNU, and beside them those that people know from
 * llama.cpp's tools, including long names behind one dash ("-ngl") and
 * underscores for dashes ("--split_max_size"). Parsing is getopt_long's:
 * abbreviations, --name=value, "--" ends the options.
 *
 * --help prints the table on standard output and exits with 0; --version
 * likewise. A wrong option prints one line and a hint, and exits with 2.
 */
#ifndef TOOLS_OPT_OLD_H
#define TOOLS_OPT_OLD_H

#include "tools/common/msg.h"

#include <gguf/file.h>

#include <stdbool.h>

enum { OPT_END = -1, OPT_FIRST_LONG = 256 };

struct opt {
    int id;            /* what opt_next returns, > 0; 0: help is a heading */
    const char *names; /* separated by spaces: "-c --ctx-size" */
    const char *arg;   /* name of the argument; NULL: none; "[N]": optional */
    const char *help;  /* wrapped when printed; '\n' begins a line; NULL with
                        * id 0 ends the table; NULL with an id hides the row,
                        * which then is another's alias */
};

struct opt_tool {
    const char *name;
    const char *usage; /* behind the name; lines separated by '\n' */
    const char *about; /* one sentence or more */
    const struct opt *table;
    const char *more;  /* printed behind the options, or NULL */
};

struct opt_parser {
    const struct opt_tool *tool;
    int argc;
    char **argv;
    int i;                 /* behind OPT_END: the first operand */
    const char *arg;       /* of the last option, or NULL */
    const struct opt *opt; /* the last option's row */
    struct opt_lists *lists;
};

void opt_begin(struct opt_parser *p, const struct opt_tool *tool, int argc,
               char **argv);
int opt_next(struct opt_parser *p);

/* One line of usage error, the hint, exit status 2. */
_Noreturn void opt_usage(const char *fmt, ...) MSG_PRINTF(1, 2);

/* The last option's argument as a number in [min, max], or a usage error. */
uint64_t opt_u64(const struct opt_parser *p, uint64_t min, uint64_t max);
double opt_double(const struct opt_parser *p, double min, double max);

/* The last option's argument NAME=N as one of limits, or a usage error. */
void opt_limit(const struct opt_parser *p, struct gguf_limits *limits);
/* What --help says about it. */
#define OPT_LIMIT_HELP                                                        \
    "read files that break a limit honestly; NAME is one of kv, tensors, "    \
    "key-size, name-size, str-size, array-items, depth, dims"

/* path, of a file to write; "-" is a usage error: models are written at any
 * place and appear under a name when they are complete, a pipe has neither. */
const char *opt_out(const char *path);

/* text as a decimal number; false if it is anything else or too large. */
bool opt_parse_u64(const char *text, uint64_t *v);

#endif
