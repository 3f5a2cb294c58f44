/* SPDX-License-Identifier: MIT */
/* json_scan.c - a list or object of JSON, read where it lies */
#include "config.h"
#include "base/json_scan.h"

#include "base/str.h"

#include <string.h>

static bool fail(struct gg_json_scan *s, enum gguf_status st, size_t at,
                 const char *what)
{
    if (s->status == GGUF_OK) {
        s->status = st;
        s->failed = at;
        s->what = what;
    }
    return false;
}

/* The next byte that is no blank, or NUL at the end. */
static char peek(struct gg_json_scan *s)
{
    const char *text = s->j->text;
    while (s->at < s->j->size && (text[s->at] == ' ' || text[s->at] == '\n' ||
                                  text[s->at] == '\r' || text[s->at] == '\t'))
        s->at++;
    return s->at < s->j->size ? text[s->at] : 0;
}

static bool enter(struct gg_json_scan *s)
{
    s->close[++s->depth] = s->j->text[s->at++] == '[' ? ']' : '}';
    s->first = true;
    return true;
}

void gg_json_scan_open(struct gg_json_scan *s, const struct gg_json *j,
                       const json_t *v, struct gg_mem_arena *arena)
{
    const uint64_t at = gg_json_place(j, v);
    *s = (struct gg_json_scan){ .j = j, .arena = arena };
    s->at = s->value = at == GGUF_NO_OFFSET ? j->size : (size_t)(at - j->off);
    const char c = peek(s);
    if (c == '[' || c == '{')
        enter(s);
    else
        fail(s, GGUF_E_FORMAT, s->at, "neither a list nor an object");
}

bool gg_json_scan_more(struct gg_json_scan *s)
{
    if (s->status != GGUF_OK || !s->depth)
        return false;
    char c = peek(s);
    s->value = s->at;
    if (c == s->close[s->depth]) {
        s->at++;
        s->depth--;
        s->first = false;
        return false;
    }
    if (!s->first) {
        if (c != ',')
            return fail(s, GGUF_E_FORMAT, s->at,
                        s->close[s->depth] == ']' ? "',' or ']' expected"
                                                  : "',' or '}' expected");
        s->at++;
        c = peek(s);
        s->value = s->at;
    }
    s->first = false;
    return c && c != ',' && c != s->close[s->depth]
               ? true
               : fail(s, GGUF_E_FORMAT, s->at, "a value is missing");
}

bool gg_json_scan_list(struct gg_json_scan *s)
{
    return s->status == GGUF_OK && peek(s) == '[' &&
           s->depth < GG_JSON_SCAN_DEPTH && enter(s);
}

/* ---- by Jansson ---- */

static json_t *read_alone(struct gg_json_scan *s, size_t end, size_t flags)
{
    json_error_t e;
    json_t *v = json_loadb(s->j->text + s->value, end - s->value,
                           JSON_DECODE_ANY | flags, &e);
    if (v)
        return v;
    if (json_error_code(&e) == json_error_out_of_memory)
        fail(s, GGUF_E_NOMEM, s->value, "no memory");
    else
        fail(s, GGUF_E_FORMAT,
             s->value + (e.position > 0 ? (size_t)e.position : 0),
             "not a text or number that can be read");
    return NULL;
}

/* ---- texts ---- */

static bool by_jansson(struct gg_json_scan *s, size_t end, size_t flags,
                       struct gguf_str *out)
{
    json_t *v = read_alone(s, end, flags);
    if (!v)
        return false;
    out->size = json_string_length(v);
    out->data =
        gg_mem_arena_strndup(s->arena, json_string_value(v), out->size);
    json_decref(v);
    return out->data || fail(s, GGUF_E_NOMEM, s->value, "no memory");
}

/* How many of the bytes are UTF-8. */
static size_t valid(struct gguf_str s)
{
    uint32_t cp;
    size_t i = 0;
    if (gg_str_utf8_valid(s.data, s.size))
        return s.size;
    for (size_t n; (n = gg_str_utf8_decode(s.data + i, s.size - i, &cp));)
        i += n;
    return i;
}

/* The character that four hexadecimal digits are, or 0. */
static uint32_t read_hex(const char *p)
{
    static const char hex[] = "0123456789abcdef";
    uint32_t cp = 0;
    for (unsigned i = 0; i < 4; i++) {
        const char c = p[i] >= 'A' && p[i] <= 'F' ? (char)(p[i] + 32) : p[i];
        const char *at = c ? strchr(hex, c) : NULL;
        if (!at)
            return 0;
        cp = cp << 4 | (uint32_t)(at - hex);
    }
    return cp;
}

/* What the escape at *p stands for into out, and *p after it; 0: none that is
 * read here. */
static size_t take_escape(const char **p, const char *end, char out[4])
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at = strchr(from, (*p)[1]);
    if (at && *at) {
        *p += 2;
        *out = to[at - from];
        return 1;
    }
    const uint32_t cp = (*p)[1] == 'u' && end - *p >= 6 ? read_hex(*p + 2) : 0;
    *p += 6;
    return cp ? gg_str_utf8_encode(cp, out) : 0; /* 0: half of a pair */
}

/* Of a text that has escapes and ends before end: halves of pairs, NUL and what
 * is wrong are Jansson's. */
static bool unescape(struct gg_json_scan *s, size_t end, size_t flags,
                     struct gguf_str *out)
{
    const char *p = s->j->text + s->value + 1;
    const char *last = s->j->text + end - 1;
    char *text = gg_mem_arena_alloc(s->arena, (size_t)(last - p));
    size_t n = 0;
    if (!text)
        return fail(s, GGUF_E_NOMEM, s->value, "no memory");
    while (p < last) {
        if (*p != '\\') {
            text[n++] = *p++;
            continue;
        }
        const size_t k = take_escape(&p, last, text + n);
        if (!k)
            return by_jansson(s, end, flags, out);
        n += k;
    }
    *out = (struct gguf_str){ text, n };
    return gg_str_utf8_valid(text, n) || by_jansson(s, end, flags, out);
}

static bool read_str(struct gg_json_scan *s, size_t flags,
                     struct gguf_str *out)
{
    const char *text = s->j->text;
    const size_t size = s->j->size;
    bool plain = true;
    if (s->status != GGUF_OK || peek(s) != '"')
        return false;
    s->value = s->at;
    size_t i = s->at + 1;
    for (; i < size && text[i] != '"'; i++) {
        if ((unsigned char)text[i] < ' ')
            return fail(s, GGUF_E_FORMAT, i, "a control character in a text");
        if (text[i] == '\\') {
            plain = false;
            i++;
        }
    }
    if (i >= size)
        return fail(s, GGUF_E_FORMAT, size, "a text has no end");
    s->at = i + 1;
    if (!plain)
        return unescape(s, s->at, flags, out);
    *out = (struct gguf_str){ text + s->value + 1, i - s->value - 1 };
    const size_t n = valid(*out);
    return n == out->size || fail(s, GGUF_E_FORMAT, s->value + 1 + n,
                                  "bytes that are not UTF-8");
}

bool gg_json_scan_str(struct gg_json_scan *s, struct gguf_str *out)
{
    return read_str(s, JSON_ALLOW_NUL, out);
}

bool gg_json_scan_name(struct gg_json_scan *s, struct gguf_str *out)
{
    if (!read_str(s, 0, out))
        return false;
    if (peek(s) != ':')
        return fail(s, GGUF_E_FORMAT, s->at, "':' expected");
    s->at++;
    return true;
}

/* ---- numbers ---- */

/* [-]DIGITS[.DIGITS] of n bytes that is exact as a quotient of two doubles. */
static bool read_short(const char *p, size_t n, double *out)
{
    const bool minus = n && *p == '-';
    uint64_t digits = 0, part = 1;
    size_t i = minus, point = 0;
    for (; i < n && i < 18; i++) {
        if (p[i] == '.' && !point && i > minus && i + 1 < n) {
            point = i;
            continue;
        }
        if (p[i] < '0' || p[i] > '9')
            return false;
        digits = 10 * digits + (uint64_t)(p[i] - '0');
        part *= point ? 10 : 1;
    }
    const size_t whole = (point ? point : n) - minus;
    if (i < n || !whole || (whole > 1 && p[minus] == '0') || digits >> 53 ||
        (minus && !digits))
        return false;
    *out = (double)digits / (double)part;
    *out = minus ? -*out : *out;
    return true;
}

bool gg_json_scan_num(struct gg_json_scan *s, double *out)
{
    const char *text = s->j->text;
    const char c = s->status == GGUF_OK ? peek(s) : 0;
    if (c != '-' && (c < '0' || c > '9'))
        return false;
    s->value = s->at;
    size_t end = s->at;
    while (end < s->j->size && text[end] && !strchr(",]} \n\r\t", text[end]))
        end++;
    s->at = end;
    if (read_short(text + s->value, end - s->value, out))
        return true;
    json_t *v = read_alone(s, end, 0);
    if (!v)
        return false;
    *out = json_number_value(v);
    json_decref(v);
    return true;
}

/* ---- what came of it ---- */

uint64_t gg_json_scan_place(const struct gg_json_scan *s)
{
    return s->j->off + s->value;
}

enum gguf_status gg_json_scan_end(const struct gg_json_scan *s,
                                  struct gguf_error *err)
{
    char place[64];
    if (s->status == GGUF_OK)
        return GGUF_OK;
    gg_json_say_place(s->j, s->failed, place);
    return gg_error_set(err, s->status, s->j->off + s->failed, "JSON, %s: %s",
                        place, s->what);
}
