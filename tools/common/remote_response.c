/* SPDX-License-Identifier: MIT */
/* remote_response.c - reading the headers of an HTTP response (RFC 9110) */
#include "config.h"
#include "tools/common/remote_response.h"
#include "tools/common/nocase.h"

#include <string.h>

static bool parse_number(const char **p, uint64_t *v)
{
    const char *s = *p;
    for (*v = 0; *s >= '0' && *s <= '9'; s++) {
        if (*v > (UINT64_MAX - 9) / 10)
            return false;
        *v = *v * 10 + (uint64_t)(*s - '0');
    }
    const bool some = s != *p;
    *p = s;
    return some;
}

/* Read Content-Range: "bytes A-B/T", or without a range "bytes * /T" (no blank
 * after the star). */
static void content_range(struct remote_response *a, const char *s)
{
    uint64_t from = 0, to = 0, total;
    a->ranged = a->has_total = false;
    if (!nocase_begins(s, "bytes "))
        return;
    s += 6;
    const bool none = *s == '*';
    if (none)
        s++;
    else if (!parse_number(&s, &from) || *s++ != '-' || !parse_number(&s, &to))
        return;
    if (*s++ != '/' || !parse_number(&s, &total) || (*s && !strchr(" \t", *s)))
        return;
    a->from = from;
    a->to = to;
    a->total = total;
    a->has_total = total <= INT64_MAX;
    a->ranged = !none && from <= to && to < total;
}

void remote_response_read_line(struct remote_response *a, const char *line,
                               size_t n)
{
    char s[512];
    const size_t k = n < sizeof s - 1 ? n : sizeof s - 1;
    memcpy(s, line, k);
    s[k] = '\0';
    s[strcspn(s, "\r\n")] = '\0';
    const char *colon = strchr(s, ':');
    const char *v = colon ? colon + 1 + strspn(colon + 1, " \t") : "";
    if (!strncmp(s, "HTTP/", 5))
        *a = (struct remote_response){ .ranged = false };
    else if (nocase_begins(s, "content-range:"))
        content_range(a, v);
    else if (nocase_begins(s, "content-encoding:"))
        a->packed = *v && !nocase_equals(v, "identity");
    else if (nocase_begins(s, "etag:") && strlen(v) < sizeof a->etag)
        memcpy(a->etag, v, strlen(v) + 1);
}
