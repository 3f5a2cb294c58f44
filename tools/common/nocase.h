/* SPDX-License-Identifier: MIT */
/* nocase.h - comparing texts without regard to the case of ASCII letters */
#ifndef TOOLS_NOCASE_H
#define TOOLS_NOCASE_H

#include <stdbool.h>

static inline char nocase_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Does s begin with `begin'? */
static inline bool nocase_begins(const char *s, const char *begin)
{
    while (*begin && nocase_lower(*s) == nocase_lower(*begin)) {
        s++;
        begin++;
    }
    return !*begin;
}

/* Are a and b equal? */
static inline bool nocase_equals(const char *a, const char *b)
{
    while (*a && nocase_lower(*a) == nocase_lower(*b)) {
        a++;
        b++;
    }
    return !*a && !*b;
}

#endif
