/* SPDX-License-Identifier: MIT */
/* str.h - counted strings, UTF-8, and escaping */
#ifndef GG_BASE_STR_H
#define GG_BASE_STR_H

#include "gguf/memory.h"

#include <stdbool.h>

/* A string literal as a counted string. */
#define GG_STR(s) ((struct gguf_str){ "" s, sizeof(s) - 1 })

/* Are two strings equal? gg_str_eqz() takes a NUL-terminated one. */
bool gg_str_eq(struct gguf_str a, struct gguf_str b);
bool gg_str_eqz(struct gguf_str a, const char *z);
/* Are two strings equal apart from the case of ASCII letters? Does not depend
 * on the locale: a Turkish strcasecmp() would not match "I" with "i". */
bool gg_str_eq_nocase(struct gguf_str a, const char *z);
/* Does s begin with prefix, or end with suffix? */
bool gg_str_starts(struct gguf_str s, const char *prefix);
bool gg_str_ends(struct gguf_str s, const char *suffix);
/* A NUL-terminated string as a counted one. */
struct gguf_str gg_str_z(const char *z);

/* Parse the decimal digits at the beginning of *s and remove them from it.
 *
 * max   Largest number that is accepted.
 * v     Receives the number.
 *
 * Returns false, and changes nothing, if *s does not begin with a digit or the
 * number is above max. */
bool gg_str_uint(struct gguf_str *s, uint64_t max, uint64_t *v);

/* Write s and end to out, NUL-terminated. Returns false, with "" in out, if
 * they do not fit in size bytes or s holds a NUL. */
bool gg_str_join(char *out, size_t size, struct gguf_str s, const char *end);

/* Decode the code point at p[0..n), n > 0, to *cp. Returns its length in bytes,
 * 1 to 4; 0 if the bytes are not well-formed UTF-8. Surrogates, overlong forms
 * and values above U+10FFFF are not. */
size_t gg_str_utf8_decode(const char *p, size_t n, uint32_t *cp);

/* Encode cp as UTF-8. Returns its length in bytes, 1 to 4; 0 if cp cannot be
 * encoded. */
size_t gg_str_utf8_encode(uint32_t cp, char out[4]);

/* Are n bytes at p well-formed UTF-8? */
bool gg_str_utf8_valid(const char *p, size_t n);

/* Largest number of the n bytes at p, at most room, that does not cut a code
 * point. */
size_t gg_str_utf8_fit(const char *p, size_t n, size_t room);

/* Escape text so that it is one printable line, as gguf_text_escape() does.
 * Writes at most size bytes with the NUL. Text that does not fit ends in "...",
 * and no escape or code point is cut. Returns the bytes written without the
 * NUL. */
size_t gg_str_escape(char *out, size_t size, const char *data, size_t n);

/* An escaped name, cut to a length that fits in a message. */
struct gg_str_esc {
    char s[120];
};
/* Escape s into e. Returns e->s. */
const char *gg_str_esc(struct gg_str_esc *e, struct gguf_str s);

#endif
