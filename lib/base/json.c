/* json.c - JSON texts from strangers, read by Jansson */
#include "config.h"
#include "base/json.h"

#include "base/mem.h"
#include "base/str.h"

#include <limits.h>
#include <string.h>

/* Digits of integers that Python writes and 64 bits may not hold. */
enum { LONG_INTEGER = 19 };

/* ---- a walk over the text ---- */

/* Beginnings of values in the order of the text. It trusts nothing: whether
 * the text is JSON is not asked here. */
struct walk {
    const char *text;
    size_t size, at;            /* at: after the value that next gave */
    char in[GG_JSON_DEPTH + 1]; /* the containers around: '{' or '[' */
    unsigned depth;
    bool name; /* the next text is a member's name */
};

static bool is_end(char c)
{
    return c == ',' || c == ']' || c == '}' || c == ':' || c == ' ' ||
           c == '\n' || c == '\r' || c == '\t' || c == '"';
}

static void pass_text(struct walk *w)
{
    for (w->at++; w->at < w->size && w->text[w->at] != '"'; w->at++)
        w->at += w->text[w->at] == '\\';
    w->at = w->at < w->size ? w->at + 1 : w->size;
}

/* The next value begins at *begin; false: there is none. Containers are
 * entered: their depth is then above GG_JSON_DEPTH if that is too deep. */
static bool next(struct walk *w, size_t *begin)
{
    while (w->at < w->size) {
        const char c = w->text[w->at];
        *begin = w->at;
        if (c == '"') {
            const bool name = w->name;
            pass_text(w);
            w->name = false;
            if (!name)
                return true;
            continue;
        }
        if (!is_end(c) && c != '[' && c != '{') {
            while (w->at < w->size && !is_end(w->text[w->at]))
                w->at++;
            return true;
        }
        w->at++;
        if (c == ',') {
            w->name = w->depth && w->in[w->depth] == '{';
        } else if (c == '[' || c == '{') {
            if (++w->depth <= GG_JSON_DEPTH)
                w->in[w->depth] = c;
            w->name = c == '{';
            return true;
        } else if ((c == ']' || c == '}') && w->depth) {
            w->depth--;
            w->name = false;
        }
    }
    return false;
}

/* ---- before Jansson reads ---- */

/* A word of n bytes that Python writes and JSON does not have, as JSON in as
 * many bytes. */
static void replace_word(char *s, size_t n)
{
    const size_t sign = *s == '-';
    size_t digits = 0;
    if (n - sign == 8 && !memcmp(s + sign, "Infinity", 8)) {
        memset(s, ' ', n);
        memcpy(s, "null", 4);
        return;
    }
    while (sign + digits < n && s[sign + digits] >= '0' &&
           s[sign + digits] <= '9')
        digits++;
    if (sign + digits != n || digits < LONG_INTEGER || digits > 300)
        return;
    /* d.ddd...e+N: as long as nineteen digits, with thirteen of them */
    char *d = s + sign;
    const size_t e = digits - 1;
    memmove(d + 2, d + 1, 12);
    d[1] = '.';
    d[14] = 'e';
    d[15] = (char)('0' + e / 100);
    d[16] = (char)('0' + e / 10 % 10);
    d[17] = (char)('0' + e % 10);
    memset(d + 18, ' ', digits - 18);
}

static bool may_be_python(const char *s, size_t n)
{
    return n >= LONG_INTEGER
               ? *s == '-' || (*s >= '0' && *s <= '9')
               : *s == 'I' || (*s == '-' && n > 1 && s[1] == 'I');
}

/* Depth, number of values; with *copy, which is freed by the caller, the words
 * of Python are replaced in a copy if there are any. */
static enum gguf_status look_through(const char *text, size_t size,
                                     uint64_t off, bool python, char **copy,
                                     struct gguf_error *err)
{
    struct walk w = { .text = text, .size = size };
    size_t begin, n = 0;
    while (next(&w, &begin)) {
        if (w.depth > GG_JSON_DEPTH)
            return gg_error_set(err, GGUF_E_LIMIT, off + begin,
                                "JSON deeper than %d levels", GG_JSON_DEPTH);
        if (++n > GG_JSON_VALUES)
            return gg_error_set(err, GGUF_E_LIMIT, off + begin,
                                "JSON of more than %d values", GG_JSON_VALUES);
        if (!python || !may_be_python(text + begin, w.at - begin))
            continue;
        if (!*copy) {
            *copy = gg_mem_alloc(NULL, size);
            if (!*copy)
                return gg_error_set_nomem(err, size);
            memcpy(*copy, text, size);
        }
        replace_word(*copy + begin, w.at - begin);
    }
    return GGUF_OK;
}

enum gguf_status gg_json_read(struct gg_json *j, const char *text, size_t size,
                              uint64_t off, unsigned flags,
                              struct gguf_error *err)
{
    char *copy = NULL;
    json_error_t e;
    struct gg_str_esc esc;
    *j = (struct gg_json){ NULL, text, size, off };
    if (size >= INT_MAX)
        return gg_error_set(err, GGUF_E_LIMIT, off,
                            "JSON of %zu bytes, limit is %d", size,
                            INT_MAX - 1);
    enum gguf_status st =
        look_through(text, size, off, flags & GG_JSON_PYTHON, &copy, err);
    if (st == GGUF_OK) {
        j->root = json_loadb(copy ? copy : text, size,
                             JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
        if (!j->root)
            st = gg_error_set(
                err,
                json_error_code(&e) == json_error_out_of_memory ? GGUF_E_NOMEM
                : json_error_code(&e) == json_error_duplicate_key
                    ? GGUF_E_DUPLICATE
                    : GGUF_E_FORMAT,
                off + (uint64_t)(e.position > 0 ? e.position : 0),
                "JSON, line %d, column %d: %s", e.line, e.column,
                gg_str_esc(&esc, gg_str_z(e.text)));
    }
    gg_mem_free(NULL, copy);
    return st;
}

void gg_json_fini(struct gg_json *j)
{
    json_decref(j->root);
    j->root = NULL;
}

/* ---- places ---- */

/* Count values in the order of the text up to v. */
static bool count_to(json_t *at, const json_t *v, size_t *n)
{
    const char *key;
    json_t *child;
    size_t i;
    ++*n;
    if (at == v)
        return true;
    if (json_is_array(at)) {
        json_array_foreach(at, i, child)
        {
            if (count_to(child, v, n))
                return true;
        }
    } else if (json_is_object(at)) {
        json_object_foreach(at, key, child)
        {
            if (count_to(child, v, n))
                return true;
        }
    }
    return false;
}

uint64_t gg_json_place(const struct gg_json *j, const json_t *v)
{
    struct walk w = { .text = j->text, .size = j->size };
    size_t n = 0, begin = 0;
    if (!j->root || !count_to(j->root, v, &n))
        return GGUF_NO_OFFSET;
    while (n && next(&w, &begin))
        n--;
    return j->off + begin;
}

/* ---- values ---- */

bool gg_json_str(const json_t *v, struct gguf_str *out)
{
    if (!json_is_string(v))
        return false;
    *out = (struct gguf_str){ json_string_value(v), json_string_length(v) };
    return true;
}

bool gg_json_int(const json_t *v, int64_t *out)
{
    if (json_is_integer(v)) {
        *out = json_integer_value(v);
        return true;
    }
    const double x = json_real_value(v);
    if (!json_is_real(v) || !(x >= -0x1p53 && x <= 0x1p53) ||
        x != (double)(int64_t)x)
        return false;
    *out = (int64_t)x;
    return true;
}

bool gg_json_num(const json_t *v, double *out)
{
    if (!json_is_number(v))
        return false;
    *out = json_number_value(v);
    return true;
}
