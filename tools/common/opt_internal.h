/* SPDX-License-Identifier: MIT */
/* opt_internal.h - declarations that the parts of opt.c share */
#ifndef TOOLS_COMMON_OPT_INTERNAL_H
#define TOOLS_COMMON_OPT_INTERNAL_H

#include "tools/common/opt.h"

/* A name in the names of a row; not NUL-terminated. s NULL: none. */
struct opt_name {
    const char *s;
    int n; /* bytes */
};

/* Read the next name at *p, and advance *p. s is NULL at the end. */
struct opt_name opt_next_name(const char **p);

/* Does the text, of n_text bytes, name this option? '_' stands for '-'. */
bool opt_name_is(struct opt_name name, const char *text, size_t n_text);

/* Rows that every tool has, after its own. */
extern const struct opt opt_common[];

static inline bool opt_is_end(const struct opt *o)
{
    return !o->names && !o->help && !o->group;
}

/* An option on the command line. */
struct opt_use {
    const struct opt *row; /* row of the option; NULL: none */
    /* number of the row; opt_common's follow those of the tool */
    size_t i;
    struct opt_name name;
    const char *arg; /* argument; NULL: none */
};

/* opt_value.c: store the argument in the member of the row, or end in a usage
 * error. */
void opt_store(const struct opt_use *u, void *options);
/* Can text, which directly follows the option's letter, be its argument? */
bool opt_accepts_arg(const struct opt *o, const char *text);

/* opt_rule.c: check the rules of a tool, or end in a usage error.
 *
 * given     The name by which row i was given; s NULL: it was not.
 * operand   The first operand, or NULL.
 */
void opt_check_rules(const struct opt_tool *tool, const struct opt_name *given,
                     const char *operand);

/* opt_help.c: print --help and exit. all: also print the rare options. */
_Noreturn void opt_print_help(const struct opt_tool *t, bool all);

#endif
