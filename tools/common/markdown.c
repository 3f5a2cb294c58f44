/* SPDX-License-Identifier: MIT */
/* markdown.c - escaping foreign text in Markdown */
#include "config.h"
#include "tools/common/markdown.h"
#include "tools/common/nocase.h"

#include <string.h>

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z') || (c & 0x80);
}

/* Does s contain something that a site turns into a link or mention? */
static bool has_links(const char *s)
{
    static const char *const begins[] = { "www.", "mailto:", "xmpp:", "://" };
    for (; *s; s++) {
        if (*s == '@' || (*s == '#' && is_word(s[1])) ||
            (nocase_begins(s, "gh-") && s[3] >= '0' && s[3] <= '9'))
            return true;
        for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
            if (nocase_begins(s, begins[i]))
                return true;
    }
    return false;
}

/* Write s as code, between more backticks than occur in sequence in it. */
static void put_code(FILE *f, const char *s, bool cell)
{
    size_t fence = 1, n = strlen(s);
    for (const char *p = s; (p = strchr(p, '`')) != NULL;) {
        size_t run = strspn(p, "`");
        fence = run >= fence ? run + 1 : fence;
        p += run;
    }
    /* Markdown drops a blank at both ends of code: add one where s needs it */
    bool pad =
        s[0] == '`' || s[n - 1] == '`' || (s[0] == ' ' && s[n - 1] == ' ');
    for (size_t i = 0; i < fence; i++)
        fputc('`', f);
    fputs(pad ? " " : "", f);
    for (; *s; s++) {
        if (*s == '|' && cell)
            fputc('\\', f);
        fputc(*s, f);
    }
    fputs(pad ? " " : "", f);
    for (size_t i = 0; i < fence; i++)
        fputc('`', f);
}

void markdown_put(FILE *f, const char *s, bool cell)
{
    if (has_links(s)) {
        put_code(f, s, cell);
        return;
    }
    for (; *s; s++) {
        if (strchr("\\|`*_<>[]&~#$", *s))
            fputc('\\', f);
        fputc(*s, f);
    }
}
