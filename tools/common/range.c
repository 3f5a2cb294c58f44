/* SPDX-License-Identifier: MIT */
/* range.c - reading a range */
#include "config.h"
#include "tools/common/range.h"

/* Read digits at *p, and advance *p. */
static bool parse_number(const char **p, uint64_t *out)
{
    const char *begin = *p;
    uint64_t v = 0;
    for (; **p >= '0' && **p <= '9' && v <= UINT32_MAX; (*p)++)
        v = v * 10 + (uint64_t)(**p - '0');
    *out = v;
    return *p > begin && v <= UINT32_MAX;
}

bool range_parse(const char *text, uint64_t *first, uint64_t *n)
{
    const char *p = text;
    uint64_t a, b = 0;
    if (!parse_number(&p, &a))
        return false;
    if (!*p && a) {
        *first = 0;
        *n = a;
        return true;
    }
    if (p[0] != '.' || p[1] != '.')
        return false;
    p += 2;
    if (*p && (!parse_number(&p, &b) || *p || b <= a))
        return false;
    *first = a;
    *n = b ? b - a : 0;
    return true;
}
