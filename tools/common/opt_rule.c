/* SPDX-License-Identifier: MIT */
/* opt_rule.c - options that exclude or need each other */
#include "config.h"
#include "tools/common/opt_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct rules {
    const struct opt_tool *tool;
    const struct opt_name *given;
    const char *operand; /* first operand; NULL: none */
};

/* Find the row with this name. */
static size_t row_of(const struct opt_tool *tool, struct opt_name name)
{
    size_t i = 0;
    for (; !opt_is_end(&tool->table[i]); i++) {
        const char *names = tool->table[i].names;
        struct opt_name n;
        while (names && (n = opt_next_name(&names)).s)
            if (opt_name_is(n, name.s, (size_t)name.n))
                return i;
    }
    assert(!"a rule is about an option that is not there");
    return i; /* no such row: not given */
}

/* Find the first of names, from *p on, that was given; return it as it was
 * written. */
static struct opt_name first_given(const struct rules *r, const char **p)
{
    struct opt_name name;
    while ((name = opt_next_name(p)).s) {
        struct opt_name g = r->given[row_of(r->tool, name)];
        if (g.s)
            return g;
    }
    return name;
}

static void check_exclusion(const struct rules *r, const struct opt_rule *x)
{
    const char *p = x->a, *q = x->b;
    struct opt_name a = first_given(r, &p);
    struct opt_name b = a.s ? first_given(r, q ? &q : &p) : a;
    if (b.s)
        opt_usage("'%.*s' and '%.*s' exclude each other", a.n, a.s, b.n, b.s);
}

/* Write a list such as "--a, --b or --c". */
static const char *list_names(const char *names, char *out, size_t size)
{
    size_t at = 0;
    struct opt_name n;
    out[0] = '\0';
    while ((n = opt_next_name(&names)).s && at < size)
        at += (size_t)snprintf(out + at, size - at, "%s%.*s",
                               !at      ? ""
                               : *names ? ", "
                                        : " or ",
                               n.n, n.s);
    return out;
}

static void check_need(const struct rules *r, const struct opt_rule *x)
{
    const char *p = x->a, *q = x->b;
    char list[256];
    struct opt_name a = { NULL, 0 };
    if (first_given(r, &q).s || (x->a && !(a = first_given(r, &p)).s))
        return;
    list_names(x->b, list, sizeof list);
    if (a.s)
        opt_usage("'%.*s' needs %s", a.n, a.s, list);
    if (r->operand)
        opt_usage("%s is missing before '%s'", list, r->operand);
    opt_usage("%s is missing", list);
}

void opt_check_rules(const struct opt_tool *tool, const struct opt_name *given,
                     const char *operand)
{
    const struct rules r = { tool, given, operand };
    for (const struct opt_rule *x = tool->rules; x && (x->a || x->b); x++)
        if (x->is == OPT_EXCLUDES)
            check_exclusion(&r, x);
        else
            check_need(&r, x);
}
