/* SPDX-License-Identifier: MIT */
/* str.h - counted strings, UTF-8, and making file text safe to print */
#ifndef GG_BASE_STR_H
#define GG_BASE_STR_H

#include "gguf/memory.h"

#include <stdbool.h>

/* A string literal as a counted string. */
#define GG_STR(s) ((struct gguf_str){ "" s, sizeof(s) - 1 })

bool gg_str_eq(struct gguf_str a, struct gguf_str b);
bool gg_str_eqz(struct gguf_str a, const char *z);
/* Equal if the case of ASCII letters is ignored, in any locale: for names of
 * types, which a Turkish strcasecmp with its dotless i would miss. */
bool gg_str_eq_nocase(struct gguf_str a, const char *z);
bool gg_str_starts(struct gguf_str s, const char *prefix);
bool gg_str_ends(struct gguf_str s, const char *suffix);
struct gguf_str gg_str_z(const char *z);

/* Take the decimal digits at the beginning of *s: their number is *v. false:
 * there is no digit, or the number is above max; nothing is changed then. */
bool gg_str_uint(struct gguf_str *s, uint64_t max, uint64_t *v);

/* s with end after it as a text in out. false: it does not fit size bytes with
 * the NUL, or s holds a NUL; out is "" then. */
bool gg_str_join(char *out, size_t size, struct gguf_str s, const char *end);

/* One code point at p[0..n), n > 0: its length in bytes (1 to 4) and its
 * value in *cp, or 0 if the bytes are not well-formed UTF-8 (surrogates,
 * overlong forms and values above U+10FFFF are not). */
size_t gg_str_utf8_decode(const char *p, size_t n, uint32_t *cp);

/* UTF-8 of cp into out: 1 to 4 bytes; 0 if cp cannot be encoded. */
size_t gg_str_utf8_encode(uint32_t cp, char out[4]);

bool gg_str_utf8_valid(const char *p, size_t n);

/* How many of the n bytes at p fit room bytes, cut between code points. */
size_t gg_str_utf8_fit(const char *p, size_t n, size_t room);

/* File text as one printable line: control characters (C0, DEL, C1), bytes
 * that are not UTF-8, characters that reorder text or are not seen, and
 * backslashes become \n, \t, \xNN or \u{N}. Writes at most size bytes with
 * the NUL and never cuts an escape or a code point; what does not fit ends in
 * "...". Returns the bytes written without the NUL. */
size_t gg_str_escape(char *out, size_t size, const char *data, size_t n);

/* Room for an escaped name inside an error message. */
struct gg_str_esc {
    char s[120];
};
const char *gg_str_esc(struct gg_str_esc *e, struct gguf_str s);

#endif
