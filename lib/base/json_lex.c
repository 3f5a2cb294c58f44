/* SPDX-License-Identifier: MIT */
/* json_lex.c - read the strings and numbers of a JSON text (RFC 8259) */
#include "config.h"
#include "base/json_lex.h"

#include "base/str.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LONG_WHOLE = 19,  /* digits from which an integer may not fit in 64 bits */
    MOST_NUMBER = 512 /* largest number in bytes, with NUL */
};

bool gg_json_lex_fail(struct gg_json_lex *l, size_t at, const char *what)
{
    if (!l->what) {
        l->failed = at;
        l->what = what;
    }
    return false;
}

char gg_json_lex_peek(struct gg_json_lex *l)
{
    while (l->at < l->size &&
           (l->text[l->at] == ' ' || l->text[l->at] == '\n' ||
            l->text[l->at] == '\r' || l->text[l->at] == '\t'))
        l->at++;
    return l->at < l->size ? l->text[l->at] : 0;
}

/* ---- strings ---- */

/* Number of bytes before the first one that is not UTF-8. */
static size_t count_valid(struct gguf_str s)
{
    uint32_t cp;
    size_t i = 0, n;
    while (i < s.size && (n = gg_str_utf8_decode(s.data + i, s.size - i, &cp)))
        i += n;
    return i;
}

bool gg_json_lex_text(struct gg_json_lex *l, struct gguf_str *raw, bool *plain)
{
    const char *text = l->text;
    size_t i = l->at + 1;
    *plain = true;
    for (; i < l->size && text[i] != '"'; i++) {
        if ((unsigned char)text[i] < ' ')
            return gg_json_lex_fail(l, i, "a control character in a string");
        if (text[i] == '\\') {
            *plain = false;
            i++;
        }
    }
    if (i >= l->size)
        return gg_json_lex_fail(l, l->size,
                                "a string has no closing quotation mark");
    *raw = (struct gguf_str){ text + l->at + 1, i - l->at - 1 };
    if (!gg_str_utf8_valid(raw->data, raw->size))
        return gg_json_lex_fail(l, l->at + 1 + count_valid(*raw),
                                "bytes that are not UTF-8");
    l->at = i + 1;
    return true;
}

/* Value of four hexadecimal digits at p; -1 if they are not four digits. */
static int32_t read_hex(const char *p, const char *end)
{
    static const char hex[] = "0123456789abcdef";
    int32_t n = 0;
    if (end - p < 4)
        return -1;
    for (unsigned i = 0; i < 4; i++) {
        const char c = p[i] >= 'A' && p[i] <= 'F' ? (char)(p[i] + 32) : p[i];
        const char *at = c ? strchr(hex, c) : NULL;
        if (!at)
            return -1;
        n = n << 4 | (int32_t)(at - hex);
    }
    return n;
}

/* Code point of the escape \u at p; -1 if malformed. *size: its bytes. */
static int32_t read_unicode(const char *p, const char *end, size_t *size)
{
    const int32_t high = read_hex(p + 2, end);
    *size = 6;
    if (high < 0xd800 || high > 0xdfff)
        return high;
    if (high >= 0xdc00 || end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return -1;
    const int32_t low = read_hex(p + 8, end);
    *size = 12;
    return low >= 0xdc00 && low <= 0xdfff
               ? 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
               : -1;
}

bool gg_json_lex_unescape(struct gg_json_lex *l, struct gguf_str raw,
                          char *out, size_t *n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *p = raw.data, *const end = p + raw.size;
    *n = 0;
    while (p < end) {
        if (*p != '\\') {
            out[(*n)++] = *p++;
            continue;
        }
        const char *at = memchr(from, p[1], sizeof from - 1);
        if (at) {
            out[(*n)++] = to[at - from];
            p += 2;
            continue;
        }
        size_t size = 0;
        const int32_t cp = p[1] == 'u' ? read_unicode(p, end, &size) : -1;
        if (cp < 0)
            return gg_json_lex_fail(l, (size_t)(p - l->text),
                                    "an escape that JSON does not have");
        *n += gg_str_utf8_encode((uint32_t)cp, out + *n);
        p += size;
    }
    return true;
}

/* ---- numbers ---- */

/* Offset of the first byte from i on that is not a digit. */
static size_t pass_digits(const struct gg_json_lex *l, size_t i)
{
    while (i < l->size && l->text[i] >= '0' && l->text[i] <= '9')
        i++;
    return i;
}

/* End of the number that comes next; 0 if it is not a number of JSON. *whole
 * receives whether it has neither point nor exponent. */
static size_t find_end(const struct gg_json_lex *l, bool *whole)
{
    const char *t = l->text;
    const size_t first = l->at + (l->at < l->size && t[l->at] == '-');
    size_t i = pass_digits(l, first);
    *whole = true;
    if (i == first || (t[first] == '0' && i > first + 1))
        return 0;
    if (i < l->size && t[i] == '.') {
        const size_t begin = i + 1;
        i = pass_digits(l, begin);
        *whole = false;
        if (i == begin)
            return 0;
    }
    if (i < l->size && (t[i] == 'e' || t[i] == 'E')) {
        i++;
        i += i < l->size && (t[i] == '+' || t[i] == '-');
        const size_t begin = i;
        i = pass_digits(l, begin);
        *whole = false;
        if (i == begin)
            return 0;
    }
    return i;
}

/* Convert [-]DIGITS[.DIGITS] of n bytes, if it is a quotient of two exact
 * doubles. */
static bool read_short(const char *p, size_t n, double *out)
{
    const bool minus = *p == '-';
    uint64_t digits = 0, part = 1;
    bool point = false;
    if (n > 18)
        return false;
    for (size_t i = minus; i < n; i++) {
        if (p[i] == '.') {
            point = true;
            continue;
        }
        if (p[i] < '0' || p[i] > '9')
            return false;
        digits = 10 * digits + (uint64_t)(p[i] - '0');
        part *= point ? 10 : 1;
    }
    if (digits >> 53)
        return false;
    *out = (double)digits / (double)part;
    *out = minus ? -*out : *out;
    return true;
}

/* Convert with strtod(), after replacing the point by the locale's. */
static bool read_long(const char *p, size_t n, double *out)
{
    char s[MOST_NUMBER];
    const char *point = localeconv()->decimal_point;
    char *after;
    if (n >= sizeof s)
        return false;
    memcpy(s, p, n);
    s[n] = 0;
    char *dot = strchr(s, '.');
    if (dot && point[0] && !point[1])
        *dot = point[0];
    *out = strtod(s, &after);
    return after == s + n && isfinite(*out);
}

static bool read_whole(const char *p, size_t n, int64_t *out)
{
    const bool minus = *p == '-';
    struct gguf_str digits = { p + minus, n - minus };
    uint64_t v;
    if (!gg_str_uint(&digits, (uint64_t)INT64_MAX + minus, &v))
        return false;
    *out = !minus ? (int64_t)v : v ? -(int64_t)(v - 1) - 1 : 0;
    return true;
}

bool gg_json_lex_number(struct gg_json_lex *l, bool long_real,
                        struct gg_json_number *out)
{
    const char *p = l->text + l->at;
    const size_t end = find_end(l, &out->whole);
    if (!end || (end < l->size && !memchr(",]} \n\r\t", l->text[end], 7)))
        return gg_json_lex_fail(l, l->at, "not a number in JSON");
    const size_t n = end - l->at;
    if (!read_short(p, n, &out->x) && !read_long(p, n, &out->x))
        return gg_json_lex_fail(l, l->at, "a number too large for a double");
    if (long_real && n - (*p == '-') >= LONG_WHOLE)
        out->whole = false;
    if (out->whole && !read_whole(p, n, &out->n))
        return gg_json_lex_fail(l, l->at,
                                "an integer that does not fit 64 bits");
    if (out->whole)
        out->x = (double)out->n;
    l->at = end;
    return true;
}
