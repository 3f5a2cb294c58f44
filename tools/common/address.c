/* SPDX-License-Identifier: MIT */
/* address.c - removing secrets from addresses */
#include "config.h"
#include "tools/common/address.h"
#include "tools/common/nocase.h"

#include <stdbool.h>
#include <string.h>

static const char blank[] = " \t\r\n";

/* Length of "USER:PASSWORD@" at p, of n bytes; 0: none. By RFC 3986, 3.2.1, it
 * ends before the first slash. A password with a slash is recognised as well:
 * no port follows the colon then. */
static size_t authority_user_size(const char *p, size_t n)
{
    size_t end = 0, at = 0;
    while (end < n && !strchr("/?#", p[end]))
        end++;
    for (size_t i = 0; i < end; i++)
        at = p[i] == '@' ? i + 1 : at;
    const char *colon = memchr(p, ':', end);
    if (at || !colon)
        return at;
    const char *port = colon + 1;
    while (port < p + end && *port >= '0' && *port <= '9')
        port++;
    for (size_t i = port == p + end ? n : end; i < n; i++)
        at = p[i] == '@' ? i + 1 : at;
    return at;
}

/* Length of "USER:PASSWORD@" of the address whose n bytes at p follow "://";
 * begin is the start of the text. Extra slashes before the user, as in
 * http:///me@host, are counted. */
static size_t user_size(const char *begin, const char *p, size_t n)
{
    size_t skip = 0;
    if (p - begin >= 5 && nocase_begins(p - 5, "hf://"))
        return 0; /* '@' begins a revision */
    while (skip < n && p[skip] == '/')
        skip++;
    const size_t user = authority_user_size(p + skip, n - skip);
    return user ? skip + user : 0;
}

int address_find_secret(const char *url, struct address_secret *out)
{
    const char *p = strstr(url, "://");
    *out = (struct address_secret){ .user = url, .query = url + strlen(url) };
    if (!p)
        return false;
    out->user = p + 3;
    out->n_user = user_size(url, out->user, strlen(out->user));
    out->query = out->user + out->n_user;
    out->query += strcspn(out->query, "?#");
    out->n_query = strlen(out->query);
    return out->n_user || out->n_query;
}

void address_remove_secrets(char *s)
{
    for (char *p = s; (p = strstr(p, "://"));) {
        p += 3;
        const size_t user = user_size(s, p, strcspn(p, blank));
        memmove(p, p + user, strlen(p + user) + 1);
        const size_t n = strcspn(p, blank), query = strcspn(p, "?#");
        size_t end = n;
        /* punctuation that follows an address in a message */
        while (end > query && strchr("'\"),.;:", p[end - 1]))
            end--;
        if (query < end)
            memmove(p + query, p + end, strlen(p + end) + 1);
        p += query < n ? query : n;
    }
}
