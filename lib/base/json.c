/* SPDX-License-Identifier: MIT */
/* json.c - JSON texts from strangers, read by Jansson */
#include "config.h"
#include "base/json.h"

#include "base/mem.h"
#include "base/str.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Digits of integers that Python writes and 64 bits may not hold. */
enum { LONG_INTEGER = 19 };

/* ---- a walk over the text ---- */

/* Beginnings of values in the order of the text. It trusts nothing: whether
 * the text is JSON is not asked here. */
struct walk {
    const struct gg_json *j;    /* what is left out is passed over */
    size_t at;                  /* after the value that next gave */
    char in[GG_JSON_DEPTH + 1]; /* the containers around: '{' or '[' */
    unsigned depth;
    bool name;            /* the next text is a member's name */
    struct gguf_str last; /* the last name, as it is written */
};

static bool is_end(char c)
{
    return c == ',' || c == ']' || c == '}' || c == ':' || c == ' ' ||
           c == '\n' || c == '\r' || c == '\t' || c == '"';
}

static void pass_text(struct walk *w)
{
    const char *text = w->j->text;
    const size_t size = w->j->size;
    for (w->at++; w->at < size && text[w->at] != '"'; w->at++)
        w->at += text[w->at] == '\\';
    w->at = w->at < size ? w->at + 1 : size;
}

/* The end of the container that has just been entered, if it is left out. */
static void pass_later(struct walk *w)
{
    for (unsigned k = 0; k < w->j->n_later; k++)
        if (w->at == w->j->later[k].begin)
            w->at = w->j->later[k].end;
}

/* The next value begins at *begin; false: there is none. Containers are
 * entered: their depth is then above GG_JSON_DEPTH if that is too deep. */
static bool next(struct walk *w, size_t *begin)
{
    const char *text = w->j->text;
    const size_t size = w->j->size;
    while (w->at < size) {
        const char c = text[w->at];
        *begin = w->at;
        if (c == '"') {
            const bool name = w->name;
            pass_text(w);
            w->name = false;
            if (!name)
                return true;
            w->last =
                (struct gguf_str){ text + *begin + 1, w->at - *begin - 1 };
            continue;
        }
        if (!is_end(c) && c != '[' && c != '{') {
            while (w->at < size && !is_end(text[w->at]))
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
            pass_later(w);
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

/* ---- what is left out ---- */

/* The end of the container that w has just entered: where its bracket is;
 * SIZE_MAX: there is none. */
static size_t find_end(struct walk w)
{
    const char *text = w.j->text;
    for (size_t depth = 1; w.at < w.j->size; w.at++) {
        const char c = text[w.at];
        if (c == '"') {
            pass_text(&w);
            w.at--;
        } else if (c == '[' || c == '{') {
            depth++;
        } else if ((c == ']' || c == '}') && !--depth) {
            return w.at;
        }
    }
    return SIZE_MAX;
}

/* Is the last name, which a quotation mark follows, z? */
static bool is_last(const struct walk *w, const char *z)
{
    const size_t n = strlen(z);
    return w->last.size == n + 1 && !memcmp(w->last.data, z, n);
}

/* Leave the container out that w has just entered, if its name is one of
 * later; *of: it is a member of that which later begins with. */
static void leave_out(struct gg_json *j, struct walk *w,
                      const char *const *later, bool *of)
{
    if (w->depth == 2)
        *of = w->in[1] == '{' && w->in[2] == '{' && is_last(w, later[0]);
    if (w->depth != 3 || !*of || j->n_later == GG_JSON_LATER)
        return;
    for (size_t i = 1; later[i]; i++) {
        const size_t end = is_last(w, later[i]) ? find_end(*w) : SIZE_MAX;
        if (end == SIZE_MAX)
            continue;
        j->later[j->n_later].begin = w->at;
        j->later[j->n_later++].end = w->at = end;
        return;
    }
}

/* Jansson reads the text, or a copy of it, without what is left out. */
struct feed {
    const struct gg_json *j;
    const char *text;
    size_t at;
    unsigned k; /* the next one that is left out */
};

static size_t feed(void *out, size_t n, void *user)
{
    struct feed *f = user;
    const struct gg_json *j = f->j;
    while (f->k < j->n_later && f->at == j->later[f->k].begin)
        f->at = j->later[f->k++].end;
    const size_t end = f->k < j->n_later ? j->later[f->k].begin : j->size;
    if (n > end - f->at)
        n = end - f->at;
    memcpy(out, f->text + f->at, n);
    f->at += n;
    return n;
}

/* The byte of the text where Jansson was when it had read n. */
static size_t fed(const struct gg_json *j, size_t n)
{
    for (unsigned k = 0; k < j->n_later; k++)
        if (n > j->later[k].begin)
            n += j->later[k].end - j->later[k].begin;
    return n;
}

/* ---- reading ---- */

/* Depth, number of values, what is left out; with *copy, which is freed by the
 * caller, the words of Python are replaced in a copy if there are any. */
static enum gguf_status look_through(struct gg_json *j, bool python,
                                     const char *const *later, char **copy,
                                     struct gguf_error *err)
{
    struct walk w = { .j = j };
    size_t begin, n = 0;
    bool of = false;
    while (next(&w, &begin)) {
        if (w.depth > GG_JSON_DEPTH)
            return gg_error_set(err, GGUF_E_LIMIT, j->off + begin,
                                "JSON deeper than %d levels", GG_JSON_DEPTH);
        if (++n > GG_JSON_VALUES)
            return gg_error_set(err, GGUF_E_LIMIT, j->off + begin,
                                "JSON of more than %d values", GG_JSON_VALUES);
        if (later && strchr("[{", j->text[begin]))
            leave_out(j, &w, later, &of);
        if (!python || !may_be_python(j->text + begin, w.at - begin))
            continue;
        if (!*copy) {
            *copy = gg_mem_alloc(NULL, j->size);
            if (!*copy)
                return gg_error_set_nomem(err, j->size);
            memcpy(*copy, j->text, j->size);
        }
        replace_word(*copy + begin, w.at - begin);
    }
    return GGUF_OK;
}

void gg_json_say_place(const struct gg_json *j, size_t at, char out[64])
{
    size_t line = 1, column = 0;
    for (size_t i = 0; i < at && i < j->size; i++)
        if (j->text[i] == '\n') {
            line++;
            column = 0;
        } else {
            column += ((unsigned char)j->text[i] & 0xc0) != 0x80;
        }
    snprintf(out, 64, "line %zu, column %zu", line, column);
}

static enum gguf_status fail(const struct gg_json *j, const json_error_t *e,
                             struct gguf_error *err)
{
    const size_t at = fed(j, e->position > 0 ? (size_t)e->position : 0);
    const enum json_error_code code = json_error_code(e);
    struct gg_str_esc esc;
    char place[64];
    snprintf(place, sizeof place, "line %d, column %d", e->line, e->column);
    if (j->n_later)
        gg_json_say_place(j, at, place);
    return gg_error_set(err,
                        code == json_error_out_of_memory   ? GGUF_E_NOMEM
                        : code == json_error_duplicate_key ? GGUF_E_DUPLICATE
                                                           : GGUF_E_FORMAT,
                        j->off + at, "JSON, %s: %s", place,
                        gg_str_esc(&esc, gg_str_z(e->text)));
}

enum gguf_status gg_json_read_but(struct gg_json *j, const char *text,
                                  size_t size, uint64_t off, unsigned flags,
                                  const char *const *later,
                                  struct gguf_error *err)
{
    char *copy = NULL;
    json_error_t e;
    *j = (struct gg_json){ .text = text, .size = size, .off = off };
    if (size >= INT_MAX)
        return gg_error_set(err, GGUF_E_LIMIT, off,
                            "JSON of %zu bytes, limit is %d", size,
                            INT_MAX - 1);
    const char *nul = size ? memchr(text, 0, size) : NULL;
    if (nul) /* Jansson drops one that follows a number */
        return gg_error_set(err, GGUF_E_FORMAT, off + (size_t)(nul - text),
                            "JSON with a byte that is 0");
    enum gguf_status st =
        look_through(j, flags & GG_JSON_PYTHON, later, &copy, err);
    if (st == GGUF_OK) {
        struct feed f = { .j = j, .text = copy ? copy : text };
        j->root = json_load_callback(
            feed, &f, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
        if (!j->root)
            st = fail(j, &e, err);
    }
    gg_mem_free(NULL, copy);
    return st;
}

enum gguf_status gg_json_read(struct gg_json *j, const char *text, size_t size,
                              uint64_t off, unsigned flags,
                              struct gguf_error *err)
{
    return gg_json_read_but(j, text, size, off, flags, NULL, err);
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
    struct walk w = { .j = j };
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
