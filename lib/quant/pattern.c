/* pattern.c - regular expressions on tensor names, by the system's regcomp */
#include "config.h"
#include "quant/pattern.h"
#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

enum { MAX_PATTERN = 1000 };

struct text {
    char s[8 * MAX_PATTERN + 1]; /* no piece is longer than 8 bytes a byte */
    size_t n;
};

static void put(struct text *t, const char *s)
{
    size_t n = strlen(s);
    memcpy(t->s + t->n, s, n);
    t->n += n;
}

/* Classes that POSIX spells otherwise: outside and inside of brackets. */
static const struct {
    char letter;
    const char *out, *in;
} classes[] = {
    { 'd', "[0-9]", "0-9" },
    { 'D', "[^0-9]", NULL },
    { 'w', "[_a-zA-Z0-9]", NULL },
    { 'W', "[^_a-zA-Z0-9]", NULL },
    { 's', "[ \t]", NULL },
    { 'S', "[^ \t]", NULL },
};

/* An escape outside of brackets. */
static void put_escape(struct text *t, char c)
{
    for (size_t i = 0; i < GG_LEN(classes); i++)
        if (classes[i].letter == c) {
            put(t, classes[i].out);
            return;
        }
    char s[3] = { '\\', c, 0 };
    /* Before anything but punctuation the backslash says nothing. */
    put(t, strchr(".[]{}()*+?^$|\\", c) ? s : s + 1);
}

/* A bracket expression from its '[' on: how many bytes it takes, or 0 if it
 * has no end. POSIX knows no escapes there: ']' goes first, '-' and '^'
 * last. */
static size_t put_bracket(struct text *t, const char *p, size_t n)
{
    bool first = false, last_dash = false, last_hat = false, negate = false;
    char set[2 * MAX_PATTERN + 8];
    size_t n_set = 0, i = 1;

    if (i < n && p[i] == '^') {
        negate = true;
        i++;
    }
    for (size_t begin = i;; i++) {
        if (i >= n)
            return 0;
        char c = p[i];
        bool escaped = c == '\\' && i + 1 < n;
        if (c == ']' && i > begin)
            break;
        if (escaped)
            c = p[++i];
        if (escaped && c == 'd') {
            memcpy(set + n_set, "0-9", 3);
            n_set += 3;
        } else if (c == ']') {
            first = true;
        } else if (escaped && c == '-') {
            last_dash = true;
        } else if (c == '^') {
            last_hat = true;
        } else {
            set[n_set++] = c;
        }
    }
    set[n_set] = 0;
    if (last_hat && !last_dash && !first && !n_set && !negate) {
        put(t, "\\^"); /* "[^]" would begin a negated set */
        return i + 1;
    }
    put(t, negate ? "[^" : "[");
    put(t, first ? "]" : "");
    put(t, set);
    put(t, last_hat ? "^" : "");
    put(t, last_dash ? "-" : "");
    put(t, "]");
    return i + 1;
}

enum gguf_status gg_pattern_init(struct gg_pattern *p, struct gguf_str text,
                                 struct gguf_error *err)
{
    struct gg_esc esc;
    struct text t = { .n = 0 };

    if (text.size > MAX_PATTERN)
        return gg_fail(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                       "pattern of %zu bytes, limit is %d", text.size,
                       MAX_PATTERN);
    if (!text.size || memchr(text.data, 0, text.size))
        return gg_fail(err, GGUF_E_FORMAT, GGUF_NO_OFFSET,
                       "pattern '%s' is empty or has a NUL byte",
                       gg_esc(&esc, text));
    for (size_t i = 0; i < text.size;) {
        char c = text.data[i];
        size_t n = 1;
        if (c == '\\' && i + 1 < text.size) {
            put_escape(&t, text.data[i + 1]);
            n = 2;
        } else if (c == '[') {
            n = put_bracket(&t, text.data + i, text.size - i);
            if (!n)
                return gg_fail(err, GGUF_E_FORMAT, GGUF_NO_OFFSET,
                               "pattern '%s': '[' has no end",
                               gg_esc(&esc, text));
        } else {
            t.s[t.n++] = c;
        }
        i += n;
    }
    t.s[t.n] = 0;
    int rc = regcomp(&p->re, t.s, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    if (rc == REG_ESPACE)
        return gg_fail(err, GGUF_E_NOMEM, GGUF_NO_OFFSET,
                       "no memory for pattern '%s'", gg_esc(&esc, text));
    if (rc) {
        char why[100];
        regerror(rc, &p->re, why, sizeof why);
        return gg_fail(err, GGUF_E_FORMAT, GGUF_NO_OFFSET, "pattern '%s': %s",
                       gg_esc(&esc, text), why);
    }
    return GGUF_OK;
}

void gg_pattern_fini(struct gg_pattern *p)
{
    regfree(&p->re);
}

bool gg_pattern_match(const struct gg_pattern *p, const char *name)
{
    return regexec(&p->re, name, 0, NULL, 0) == 0;
}
