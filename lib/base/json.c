/* SPDX-License-Identifier: MIT */
/* json.c - read untrusted JSON texts into trees of Jansson's values */
#include "config.h"
#include "base/json.h"

#include "base/json_lex.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a walk over the text ---- */

/* Scanner that finds the first byte of each value, in the order of the text. It
 * does not check that the text is JSON. */
struct walk {
    const struct gg_json *j;    /* the text; omitted members are skipped */
    size_t at;                  /* byte after the last value */
    char in[GG_JSON_DEPTH + 1]; /* open containers: '{' or '[' */
    unsigned depth;
    bool name;            /* the next string is a member's name */
    struct gguf_str last; /* last name, escapes not replaced */
};

static bool is_end(char c)
{
    return c == ',' || c == ']' || c == '}' || c == ':' || c == ' ' ||
           c == '\n' || c == '\r' || c == '\t' || c == '"';
}

static void skip_string(struct walk *w)
{
    const char *text = w->j->text;
    const size_t size = w->j->size;
    for (w->at++; w->at < size && text[w->at] != '"'; w->at++)
        w->at += text[w->at] == '\\';
    w->at = w->at < size ? w->at + 1 : size;
}

/* Move to the end of the container that was just entered, if it is omitted. */
static void skip_omitted(struct walk *w)
{
    for (unsigned k = 0; k < w->j->n_later; k++)
        if (w->at == w->j->later[k].begin)
            w->at = w->j->later[k].end;
}

/* Find the next value: *begin. Containers are entered, and depth may then
 * exceed GG_JSON_DEPTH. Returns false at the end. */
static bool next_token(struct walk *w, size_t *begin)
{
    const char *text = w->j->text;
    const size_t size = w->j->size;
    while (w->at < size) {
        const char c = text[w->at];
        *begin = w->at;
        if (c == '"') {
            const bool name = w->name;
            skip_string(w);
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
            skip_omitted(w);
            return true;
        } else if ((c == ']' || c == '}') && w->depth) {
            w->depth--;
            w->name = false;
        }
    }
    return false;
}

/* ---- omitted members ---- */

/* Byte of the closing bracket of the container that w has just entered;
 * SIZE_MAX if it does not end. */
static size_t find_end(struct walk w)
{
    const char *text = w.j->text;
    for (size_t depth = 1; w.at < w.j->size; w.at++) {
        const char c = text[w.at];
        if (c == '"') {
            skip_string(&w);
            w.at--;
        } else if (c == '[' || c == '{') {
            depth++;
        } else if ((c == ']' || c == '}') && !--depth) {
            return w.at;
        }
    }
    return SIZE_MAX;
}

/* Is the last name z? A quotation mark follows it in the text. */
static bool is_last(const struct walk *w, const char *z)
{
    const size_t n = strlen(z);
    return w->last.size == n + 1 && !memcmp(w->last.data, z, n);
}

/* Omit the container that w has just entered, if its name is in later[1 ..].
 * *of keeps whether the member of the root around it is later[0]. */
static void leave_out(struct gg_json *j, struct walk *w,
                      const char *const *later, bool *of)
{
    if (w->depth == 2)
        *of = w->in[1] == '{' && w->in[2] == '{' && is_last(w, later[0]);
    if (w->depth != 3 || !*of || j->n_later == GG_JSON_MAX_OMITTED)
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

/* ---- reading ---- */

/* Check depth and number of values, and find the members to omit. */
static enum gguf_status check_bounds(struct gg_json *j,
                                     const char *const *later,
                                     struct gguf_error *err)
{
    struct walk w = { .j = j };
    size_t begin, n = 0;
    bool of = false;
    while (next_token(&w, &begin)) {
        if (w.depth > GG_JSON_DEPTH)
            return gg_error_set(err, GGUF_E_LIMIT, j->off + begin,
                                "JSON nested deeper than %d levels",
                                GG_JSON_DEPTH);
        if (++n > GG_JSON_VALUES)
            return gg_error_set(err, GGUF_E_LIMIT, j->off + begin,
                                "JSON with more than %d values",
                                GG_JSON_VALUES);
        if (later && strchr("[{", j->text[begin]))
            leave_out(j, &w, later, &of);
    }
    return GGUF_OK;
}

/* Write the position of byte `at' of the text: "line L, column C", from 1. */
static void describe_position(const struct gg_json *j, size_t at, char out[64])
{
    const char *end = j->text + (at < j->size ? at : j->size);
    size_t line = 1, column = 1;
    for (const char *p = j->begin ? j->begin : j->text; p < end; p++)
        if (*p == '\n') {
            line++;
            column = 1;
        } else {
            column += ((unsigned char)*p & 0xc0) != 0x80;
        }
    snprintf(out, 64, "line %zu, column %zu", line, column);
}

/* Bytes of the character at p, at most n. */
static size_t character_size(const char *p, size_t n)
{
    size_t k = 1;
    while (k < n && k < 4 && ((unsigned char)p[k] & 0xc0) == 0x80)
        k++;
    return k;
}

enum gguf_status gg_json_fail_at(const struct gg_json *j, size_t at,
                                 const char *what, struct gguf_error *err)
{
    struct gg_str_esc esc;
    char place[64];
    describe_position(j, at, place);
    if (!strstr(what, "expected"))
        return gg_error_set(err, GGUF_E_FORMAT, j->off + at, "JSON, %s: %s",
                            place, what);
    if (at >= j->size)
        return gg_error_set(err, GGUF_E_FORMAT, j->off + at,
                            "JSON, %s: %s, found the end of the file", place,
                            what);
    const struct gguf_str c = { j->text + at,
                                character_size(j->text + at, j->size - at) };
    return gg_error_set(err, GGUF_E_FORMAT, j->off + at,
                        "JSON, %s: %s, found '%s'", place, what,
                        gg_str_esc(&esc, c));
}

/* ---- the tree ---- */

struct reader {
    struct gg_json *j;
    struct gg_json_lex lex;
    bool long_real;
    bool python;    /* GG_JSON_PYTHON */
    unsigned k;     /* index of the next omitted member */
    char *text;     /* stack of names and a string, escapes replaced */
    size_t n, room; /* bytes used and bytes allocated of text */
    bool no_memory;
    struct gguf_str twice; /* name that its object has already */
};

static json_t *read_value(struct reader *r);

static json_t *fail_read(struct reader *r, size_t at, const char *what)
{
    gg_json_lex_fail(&r->lex, at, what);
    return NULL;
}

/* Return v; record an allocation failure if it is NULL. */
static json_t *check_made(struct reader *r, json_t *v)
{
    r->no_memory |= !v;
    return v;
}

/* Push the next string and a NUL onto the stack. *size: its bytes. */
static bool push_text(struct reader *r, size_t *size)
{
    struct gguf_str raw;
    bool plain;
    if (!gg_json_lex_text(&r->lex, &raw, &plain))
        return false;
    if (raw.size >= r->room - r->n) {
        char *grown =
            gg_mem_grow(NULL, r->text, &r->room, 1, r->n + raw.size + 1, NULL);
        r->no_memory |= !grown;
        if (!grown)
            return false;
        r->text = grown;
    }
    char *out = r->text + r->n;
    *size = raw.size;
    if (plain)
        memcpy(out, raw.data, raw.size);
    else if (!gg_json_lex_unescape(&r->lex, raw, out, size))
        return false;
    out[*size] = 0;
    return true;
}

static json_t *read_text(struct reader *r)
{
    size_t size;
    return push_text(r, &size)
               ? check_made(r, json_stringn_nocheck(r->text + r->n, size))
               : NULL;
}

static json_t *read_number(struct reader *r)
{
    struct gg_json_number x;
    if (!gg_json_lex_number(&r->lex, r->long_real, &x))
        return NULL;
    return check_made(r, x.whole ? json_integer(x.n) : json_real(x.x));
}

static json_t *read_word(struct reader *r)
{
    static const struct {
        const char *word;
        json_type type;
        bool python;
    } rows[] = { { "null", JSON_NULL, false },
                 { "true", JSON_TRUE, false },
                 { "false", JSON_FALSE, false },
                 { "Infinity", JSON_NULL, true },
                 { "-Infinity", JSON_NULL, true } };
    const char *p = r->lex.text + r->lex.at;
    const size_t left = r->lex.size - r->lex.at;
    size_t n = 0;
    while (n < left && !is_end(p[n]))
        n++;
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        if (n != strlen(rows[i].word) || memcmp(p, rows[i].word, n) != 0 ||
            (rows[i].python && !r->python))
            continue;
        r->lex.at += n;
        return rows[i].type == JSON_NULL   ? json_null()
               : rows[i].type == JSON_TRUE ? json_true()
                                           : json_false();
    }
    return NULL;
}

/* Enter the next container. Skip its contents if they are omitted. */
static void enter_level(struct reader *r)
{
    r->lex.at++;
    if (r->k < r->j->n_later && r->j->later[r->k].begin == r->lex.at)
        r->lex.at = r->j->later[r->k++].end;
}

/* Does another item come before the bracket end? If not, skip the bracket. */
static bool has_more_items(struct reader *r, char end, bool first)
{
    const char c = gg_json_lex_peek(&r->lex);
    if (c == end) {
        r->lex.at++;
        return false;
    }
    if (first)
        return true;
    if (c != ',')
        return gg_json_lex_fail(&r->lex, r->lex.at,
                                end == ']' ? "',' or ']' expected"
                                           : "',' or '}' expected");
    r->lex.at++;
    return true;
}

static json_t *read_list(struct reader *r)
{
    json_t *list = check_made(r, json_array());
    enter_level(r);
    for (bool first = true; list && has_more_items(r, ']', first);
         first = false) {
        json_t *v = read_value(r);
        if (v && json_array_append_new(list, v)) {
            r->no_memory = true;
            break;
        }
        if (!v)
            break;
    }
    return list;
}

/* Read a member into object. */
static bool read_member(struct reader *r, json_t *object)
{
    size_t size;
    if (gg_json_lex_peek(&r->lex) != '"')
        return gg_json_lex_fail(&r->lex, r->lex.at,
                                "a name in quotation marks expected");
    const size_t at = r->lex.at, name = r->n;
    if (!push_text(r, &size))
        return false;
    if (strlen(r->text + name) != size)
        return gg_json_lex_fail(&r->lex, at, "a name with a NUL byte");
    if (json_object_get(object, r->text + name)) {
        r->twice =
            (struct gguf_str){ r->lex.text + at + 1, r->lex.at - at - 2 };
        return gg_json_lex_fail(&r->lex, at, "duplicate name");
    }
    if (gg_json_lex_peek(&r->lex) != ':')
        return gg_json_lex_fail(&r->lex, r->lex.at, "':' expected");
    r->lex.at++;
    r->n += size + 1;
    json_t *v = read_value(r);
    r->n = name;
    if (v && json_object_set_new_nocheck(object, r->text + name, v))
        r->no_memory = true;
    return v && !r->no_memory;
}

static json_t *read_object(struct reader *r)
{
    json_t *object = check_made(r, json_object());
    enter_level(r);
    for (bool first = true; object && has_more_items(r, '}', first);
         first = false)
        if (!read_member(r, object))
            break;
    return object;
}

/* Read a value. NULL: failed. Recursion is at most GG_JSON_DEPTH deep. */
static json_t *read_value(struct reader *r)
{
    const char c = gg_json_lex_peek(&r->lex);
    json_t *v = c == '['   ? read_list(r)
                : c == '{' ? read_object(r)
                : c == '"' ? read_text(r)
                           : read_word(r);
    if (!v && (c == '-' || (c >= '0' && c <= '9')))
        v = read_number(r);
    if (v && !r->lex.what && !r->no_memory)
        return v;
    json_decref(v);
    if (!r->no_memory)
        fail_read(r, r->lex.at, "a value expected");
    return NULL;
}

static enum gguf_status read_root(struct reader *r, struct gguf_error *err)
{
    struct gg_json *j = r->j;
    const char c = gg_json_lex_peek(&r->lex);
    struct gg_str_esc esc;
    char place[64];
    const bool marked = c == '\xef'; /* byte-order mark of UTF-8 */
    json_t *root =
        c == '[' || c == '{'
            ? read_value(r)
            : fail_read(
                  r, r->lex.at,
                  marked ? "the text begins with a byte-order mark; save it "
                           "as UTF-8 without one"
                         : "'[' or '{' expected");
    if (root && (gg_json_lex_peek(&r->lex) || r->lex.at < r->lex.size)) {
        fail_read(r, r->lex.at, "the end of the file expected");
        json_decref(root);
        root = NULL;
    }
    if (r->no_memory)
        return gg_error_set_nomem(err, r->room);
    j->root = root;
    if (root)
        return GGUF_OK;
    if (!r->twice.data)
        return gg_json_fail_at(j, r->lex.failed, r->lex.what, err);
    describe_position(j, r->lex.failed, place);
    return gg_error_set(err, GGUF_E_DUPLICATE, j->off + r->lex.failed,
                        "JSON, %s: duplicate name '%s'", place,
                        gg_str_esc(&esc, r->twice));
}

/* Build the tree of j->text. */
static enum gguf_status read_tree(struct gg_json *j, unsigned flags,
                                  const char *const *later,
                                  struct gguf_error *err)
{
    const char *text = j->text;
    const size_t size = j->size;
    const uint64_t off = j->off;
    if (size >= INT_MAX)
        return gg_error_set(err, GGUF_E_LIMIT, off,
                            "JSON of %zu bytes, limit is %d", size,
                            INT_MAX - 1);
    const char *nul = size ? memchr(text, 0, size) : NULL;
    if (nul)
        return gg_error_set(err, GGUF_E_FORMAT, off + (size_t)(nul - text),
                            "JSON with a NUL byte");
    GG_TRY(check_bounds(j, later, err));
    struct reader r = { .j = j,
                        .lex = { .text = text, .size = size },
                        .python = flags & GG_JSON_PYTHON,
                        .long_real =
                            flags & (GG_JSON_PYTHON | GG_JSON_BIG_INTEGERS) };
    const enum gguf_status st = read_root(&r, err);
    gg_mem_free(NULL, r.text);
    return st;
}

enum gguf_status gg_json_read_without(struct gg_json *j, const char *text,
                                      size_t size, uint64_t off,
                                      unsigned flags, const char *const *later,
                                      struct gguf_error *err)
{
    *j = (struct gg_json){ .text = text, .size = size, .off = off };
    return read_tree(j, flags, later, err);
}

enum gguf_status gg_json_read_part(struct gg_json *j,
                                   const struct gg_json *whole, size_t begin,
                                   size_t end, unsigned flags,
                                   struct gguf_error *err)
{
    *j = (struct gg_json){ .text = whole->text + begin,
                           .size = end - begin,
                           .off = whole->off + begin,
                           .begin = whole->text };
    return read_tree(j, flags, NULL, err);
}

enum gguf_status gg_json_read(struct gg_json *j, const char *text, size_t size,
                              uint64_t off, unsigned flags,
                              struct gguf_error *err)
{
    return gg_json_read_without(j, text, size, off, flags, NULL, err);
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

uint64_t gg_json_offset_of(const struct gg_json *j, const json_t *v)
{
    struct walk w = { .j = j };
    size_t n = 0, begin = 0;
    if (!j->root || !count_to(j->root, v, &n))
        return GGUF_NO_OFFSET;
    while (n && next_token(&w, &begin))
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

/* ---- writing ---- */

void gg_json_make_begin(void)
{
    errno = 0;
}

bool gg_json_make_failed(void)
{
    return errno == ENOMEM;
}

char *gg_json_make_text(json_t *root, size_t flags)
{
    char *text =
        root && !gg_json_make_failed() ? json_dumps(root, flags) : NULL;
    if (text && gg_json_make_failed()) {
        free(text);
        text = NULL;
    }
    json_decref(root);
    return text;
}
