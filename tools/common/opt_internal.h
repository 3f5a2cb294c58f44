/* SPDX-License-Identifier: MIT */
/* opt_internal.h - what the parts of opt.c share */
#ifndef TOOLS_COMMON_OPT_INTERNAL_H
#define TOOLS_COMMON_OPT_INTERNAL_H

#include "tools/common/opt.h"

/* A name in a row's names: not followed by a NUL. s NULL: none. */
struct opt_name {
    const char *s;
    int n; /* bytes */
};

/* The next name after *p, which is advanced; s NULL: there is none. */
struct opt_name opt_next_name(const char **p);

/* Is name n the n_text bytes at text? '_' is '-' in text. */
bool opt_name_is(struct opt_name name, const char *text, size_t n_text);

/* Rows of every tool, after its own. */
extern const struct opt opt_common[];

static inline bool opt_is_end(const struct opt *o)
{
    return !o->names && !o->help && !o->group;
}

/* An option as it was given. */
struct opt_use {
    const struct opt *row; /* NULL: there is none */
    size_t i;              /* its number, opt_common's counted on */
    struct opt_name name;
    const char *arg; /* NULL: without one */
};

/* opt_value.c: put it where the row says, or end in a usage error. */
void opt_store(const struct opt_use *u, void *options);
/* May text, which stands right after the option's letter, be its argument? */
bool opt_accepts_arg(const struct opt *o, const char *text);

/* opt_rule.c: given[i] is the name by which row i of the table was given,
 * operand what else was said first, or NULL. */
void opt_check_rules(const struct opt_tool *tool, const struct opt_name *given,
                     const char *operand);

/* opt_help.c: print it and exit; all: with the options that are rare. */
_Noreturn void opt_print_help(const struct opt_tool *t, bool all);

#endif
