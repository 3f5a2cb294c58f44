/* SPDX-License-Identifier: MIT */
/* str.c - counted strings, UTF-8, and escaping */
#include "config.h"
#include "base/str.h"
#include "base/compiler.h"

#include <stdio.h>
#include <string.h>

bool gg_str_eq(struct gguf_str a, struct gguf_str b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size));
}

struct gguf_str gg_str_z(const char *z)
{
    return (struct gguf_str){ z, strlen(z) };
}

bool gg_str_eqz(struct gguf_str a, const char *z)
{
    return gg_str_eq(a, gg_str_z(z));
}

static char upper_letter(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 32 : c);
}

bool gg_str_eq_nocase(struct gguf_str a, const char *z)
{
    size_t i = 0;
    while (i < a.size && z[i] && upper_letter(a.data[i]) == upper_letter(z[i]))
        i++;
    return i == a.size && !z[i];
}

bool gg_str_starts(struct gguf_str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.size >= n && !memcmp(s.data, prefix, n);
}

bool gg_str_ends(struct gguf_str s, const char *suffix)
{
    size_t n = strlen(suffix);
    return s.size >= n && !memcmp(s.data + s.size - n, suffix, n);
}

bool gg_str_uint(struct gguf_str *s, uint64_t max, uint64_t *v)
{
    size_t i = 0;
    uint64_t n = 0;
    for (; i < s->size && s->data[i] >= '0' && s->data[i] <= '9'; i++) {
        uint64_t digit = (uint64_t)(s->data[i] - '0');
        if (digit > max || n > (max - digit) / 10)
            return false;
        n = 10 * n + digit;
    }
    if (!i)
        return false;
    s->data += i;
    s->size -= i;
    *v = n;
    return true;
}

bool gg_str_join(char *out, size_t size, struct gguf_str s, const char *end)
{
    const size_t n = strlen(end);
    out[0] = '\0';
    if (n >= size || s.size >= size - n ||
        (s.size && memchr(s.data, '\0', s.size)))
        return false;
    if (s.size)
        memcpy(out, s.data, s.size);
    memcpy(out + s.size, end, n + 1);
    return true;
}

/* Well-formed byte sequences: The Unicode Standard 15.0, table 3-7. */
size_t gg_str_utf8_decode(const char *p, size_t n, uint32_t *cp)
{
    const unsigned char *b = (const unsigned char *)p;
    if (b[0] < 0x80) {
        *cp = b[0];
        return 1;
    }
    size_t len = b[0] < 0xc2   ? 0
                 : b[0] < 0xe0 ? 2
                 : b[0] < 0xf0 ? 3
                 : b[0] < 0xf5 ? 4
                               : 0;
    if (!len || len > n)
        return 0;
    uint32_t v = b[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 0;
        v = v << 6 | (b[i] & 0x3fu);
    }
    if ((len == 3 && v < 0x800) || (len == 4 && v < 0x10000) || v > 0x10ffff ||
        (v >= 0xd800 && v < 0xe000))
        return 0;
    *cp = v;
    return len;
}

size_t gg_str_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        if (cp >= 0xd800 && cp < 0xe000)
            return 0;
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    if (cp > 0x10ffff)
        return 0;
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

bool gg_str_utf8_valid(const char *p, size_t n)
{
    uint32_t cp;
    for (size_t len; n; p += len, n -= len) {
        len = 1;
        if ((unsigned char)*p >= 0x80 &&
            !(len = gg_str_utf8_decode(p, n, &cp)))
            return false;
    }
    return true;
}

size_t gg_str_utf8_fit(const char *p, size_t n, size_t room)
{
    if (n <= room)
        return n;
    while (room && ((unsigned char)p[room] & 0xc0) == 0x80)
        room--;
    return room;
}

/* Does a character reorder or hide text on a terminal, or is it invisible?
 * Those are the characters with the property Default_Ignorable_Code_Point (The
 * Unicode Standard 15.0, DerivedCoreProperties.txt), among them explicit
 * directional formatting and tags, which spell ASCII; line and paragraph
 * separators; and annotations. */
static bool is_invisible(uint32_t cp)
{
    static const uint32_t ranges[][2] = {
        { 0xad, 0xad },       { 0x34f, 0x34f },     { 0x61c, 0x61c },
        { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
        { 0x200b, 0x200f },   { 0x2028, 0x202e },   { 0x2060, 0x206f },
        { 0x3164, 0x3164 },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },
        { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },   { 0x1bca0, 0x1bca3 },
        { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
    };
    for (size_t i = 0; i < GG_LEN(ranges) && cp >= ranges[i][0]; i++)
        if (cp <= ranges[i][1])
            return true;
    return false;
}

/* Escape one character of the input to out[16]. Returns its length in the
 * input. */
static size_t escape_one(const char *p, size_t n, char out[16])
{
    uint32_t cp;
    size_t len = gg_str_utf8_decode(p, n, &cp);
    unsigned char b = (unsigned char)p[0];
    if (!len) {
        snprintf(out, 16, "\\x%02X", b);
        return 1;
    }
    if (cp == '\n' || cp == '\t' || cp == '\r' || cp == '\\')
        snprintf(out, 16, "\\%c",
                 cp == '\n'   ? 'n'
                 : cp == '\t' ? 't'
                 : cp == '\r' ? 'r'
                              : '\\');
    else if (cp < 0x20 || cp == 0x7f)
        snprintf(out, 16, "\\x%02X", b);
    else if ((cp >= 0x80 && cp < 0xa0) || is_invisible(cp))
        snprintf(out, 16, "\\u{%X}", (unsigned)cp);
    else {
        memcpy(out, p, len);
        out[len] = '\0';
    }
    return len;
}

size_t gg_str_escape(char *out, size_t size, const char *data, size_t n)
{
    if (!size)
        return 0;
    size_t used = 0;
    size_t fit = 0; /* largest length after which "..." fits */
    char one[16];
    while (n) {
        size_t len = escape_one(data, n, one);
        size_t k = strlen(one);
        if (used + k >= size) {
            used = fit;
            size_t dots = size - 1 - used < 3 ? size - 1 - used : 3;
            memcpy(out + used, "...", dots);
            used += dots;
            break;
        }
        memcpy(out + used, one, k);
        used += k;
        if (used + 3 < size)
            fit = used;
        data += len;
        n -= len;
    }
    out[used] = '\0';
    return used;
}

const char *gg_str_esc(struct gg_str_esc *e, struct gguf_str s)
{
    gg_str_escape(e->s, sizeof e->s, s.data, s.size);
    return e->s;
}
