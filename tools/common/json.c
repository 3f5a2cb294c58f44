/* SPDX-License-Identifier: MIT */
/* json.c - writing one JSON document as a stream */
#include "config.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"
#include "gguf/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void json_begin(struct json *j, FILE *f)
{
    *j = (struct json){ .f = f };
}

void json_begin_object(struct json *j, FILE *f)
{
    json_begin(j, f);
    json_open(j, NULL, '{');
}

void json_end(struct json *j)
{
    while (j->depth)
        json_close(j);
    fputc('\n', j->f);
}

static void indent_line(struct json *j)
{
    fprintf(j->f, "\n%*s", (int)(2 * j->depth), "");
}

/* May the character at p[0..n) be written unchanged? Characters that the
 * library escapes for a terminal may not. */
static bool is_plain(const char *p, size_t n)
{
    char out[16];
    return gguf_text_escape(out, sizeof out, (struct gguf_str){ p, n }) == n;
}

/* Write cp as \uXXXX, or as two of them, a surrogate pair. */
static void put_code(FILE *f, uint32_t cp)
{
    if (cp > 0xffff) {
        fprintf(f, "\\u%04x", (unsigned)(0xd800 + ((cp - 0x10000) >> 10)));
        cp = 0xdc00 + (cp & 0x3ff);
    }
    fprintf(f, "\\u%04x", (unsigned)cp);
}

static void put_string(FILE *f, const char *p, size_t n)
{
    fputc('"', f);
    for (size_t len; n; p += len, n -= len) {
        uint32_t cp = 0;
        /* fast path: most text is plain ASCII */
        for (len = 0; len < n && p[len] >= ' ' && p[len] < 0x7f &&
                      p[len] != '"' && p[len] != '\\';)
            len++;
        if (len) {
            fwrite(p, 1, len, f);
            continue;
        }
        len = gguf_text_decode_utf8(p, n, &cp);
        if (!len) {
            fputs("\\ufffd", f);
            len = 1;
        } else if (cp == '"' || cp == '\\')
            fprintf(f, "\\%c", (char)cp);
        else if (cp == '\n')
            fputs("\\n", f);
        else if (cp == '\t')
            fputs("\\t", f);
        else if (cp == '\r')
            fputs("\\r", f);
        else if (!is_plain(p, len))
            put_code(f, cp);
        else
            fwrite(p, 1, len, f);
    }
    fputc('"', f);
}

/* Write separator, indentation and name of a member; name.data is NULL in an
 * array. */
static void put_name(struct json *j, struct gguf_str name)
{
    if (!j->depth)
        return;
    unsigned d = j->depth - 1;
    if (j->some[d])
        fputc(',', j->f);
    if (!j->flat[d])
        indent_line(j);
    else if (j->some[d])
        fputc(' ', j->f);
    j->some[d] = true;
    assert((name.data != NULL) == (j->close[d] == '}'));
    if (name.data) {
        put_string(j->f, name.data, name.size);
        fputs(": ", j->f);
    }
}

static void write_lead(struct json *j, const char *key)
{
    if (!j->named)
        put_name(j, (struct gguf_str){ key, key ? strlen(key) : 0 });
    j->named = false;
}

void json_key(struct json *j, struct gguf_str key)
{
    put_name(j, key);
    j->named = true;
}

void json_open(struct json *j, const char *key, char kind)
{
    assert(j->depth < JSON_DEPTH);
    write_lead(j, key);
    fputc(kind == '{' ? '{' : '[', j->f);
    j->close[j->depth] = kind == '{' ? '}' : ']';
    j->flat[j->depth] = kind == '(';
    j->some[j->depth] = false;
    j->depth++;
}

void json_close(struct json *j)
{
    assert(j->depth);
    j->depth--;
    if (j->some[j->depth] && !j->flat[j->depth])
        indent_line(j);
    fputc(j->close[j->depth], j->f);
}

/* State of json_members(). A list is opened only when its first value is
 * known, since a list of plain values is written on one line. */
struct copy {
    struct json *j;
    unsigned depth;
    bool pending; /* a list waits for its first value */
};

static void open_list(struct copy *c, bool flat)
{
    if (c->pending)
        json_open(c->j, NULL, flat ? '(' : '[');
    c->pending = false;
}

static void copy_plain(struct json *j, const struct gguf_json_value *v)
{
    if (v->kind == GGUF_JSON_STRING)
        json_str(j, NULL, v->string);
    else if (v->kind == GGUF_JSON_INTEGER)
        json_i64(j, NULL, v->integer);
    else if (v->kind == GGUF_JSON_REAL)
        json_f64(j, NULL, v->real);
    else if (v->kind == GGUF_JSON_NULL)
        json_null(j, NULL);
    else
        json_bool(j, NULL, v->kind == GGUF_JSON_TRUE);
}

static enum gguf_status copy_value(void *user, const struct gguf_json_value *v,
                                   struct gguf_error *err)
{
    struct copy *c = user;
    const bool list = v->kind == GGUF_JSON_ARRAY;
    const bool object = v->kind == GGUF_JSON_OBJECT;
    (void)err;
    open_list(c, !list && !object);
    if (v->kind == GGUF_JSON_END) {
        if (--c->depth)
            json_close(c->j);
        return GGUF_OK;
    }
    if (v->name.data)
        json_key(c->j, v->name);
    c->pending = list;
    if (object && c->depth)
        json_open(c->j, NULL, '{');
    else if (!list && !object)
        copy_plain(c->j, v);
    c->depth += list || object;
    return GGUF_OK;
}

void json_members(struct json *j, const char *text)
{
    struct copy c = { .j = j };
    struct gguf_error err;
    struct text all = { NULL, 0, 0 };
    text_addf(&all, "{%s}", text);
    gguf_error_clear(&err);
    if (gguf_json_walk((struct gguf_str){ all.s, all.n },
                       (struct gguf_json_callback){ copy_value, &c },
                       &err) != GGUF_OK) {
        msg_fail(NULL, &err);
        exit(MSG_FAILED);
    }
    text_fini(&all);
}

void json_u64(struct json *j, const char *key, uint64_t v)
{
    write_lead(j, key);
    fprintf(j->f, "%" PRIu64, v);
}

void json_i64(struct json *j, const char *key, int64_t v)
{
    write_lead(j, key);
    fprintf(j->f, "%" PRId64, v);
}

void json_format_f64(char *out, double v)
{
    if (isnan(v)) {
        memcpy(out, "nan", sizeof "nan");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            break;
    }
}

void json_format_f32(char *out, float v)
{
    if (isnan(v)) {
        memcpy(out, "nan", sizeof "nan");
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(out, 32, "%.*g", digits, (double)v);
        if (strtof(out, NULL) == v)
            break;
    }
}

void json_i64s(struct json *j, const char *key, size_t n, const int64_t *v)
{
    json_open(j, key, '(');
    for (size_t i = 0; i < n; i++)
        json_i64(j, NULL, v[i]);
    json_close(j);
}

void json_f64(struct json *j, const char *key, double v)
{
    char text[32];
    json_format_f64(text, v);
    write_lead(j, key);
    fputs(isfinite(v) ? text : "null", j->f);
}

void json_f32(struct json *j, const char *key, float v)
{
    char text[32];
    json_format_f32(text, v);
    write_lead(j, key);
    fputs(isfinite(v) ? text : "null", j->f);
}

void json_bool(struct json *j, const char *key, bool v)
{
    write_lead(j, key);
    fputs(v ? "true" : "false", j->f);
}

void json_null(struct json *j, const char *key)
{
    write_lead(j, key);
    fputs("null", j->f);
}

void json_str(struct json *j, const char *key, struct gguf_str v)
{
    write_lead(j, key);
    put_string(j->f, v.data, v.size);
}

void json_strz(struct json *j, const char *key, const char *v)
{
    json_str(j, key, (struct gguf_str){ v, strlen(v) });
}
