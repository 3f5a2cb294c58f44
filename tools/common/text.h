/* SPDX-License-Identifier: MIT */
/* text.h - a growing line of text, and metadata values as text */
#ifndef TOOLS_TEXT_H
#define TOOLS_TEXT_H

#include "tools/common/msg.h"

#include <gguf/kv.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Print z so that it does nothing to a terminal: what gguf_text_escape escapes
 * is escaped, but for backslashes, so that text which is escaped already, or is
 * printable, stays as it is. All messages and cells of tables go through
 * this. */
void text_put(FILE *f, const char *z);

/* Zeroed is empty. Memory that runs out ends the program with a message. */
struct text {
    char *s; /* NUL-terminated once something was added, else NULL */
    size_t n, size;
};

void text_fini(struct text *t);
void text_clear(struct text *t);
void text_add(struct text *t, const char *p, size_t n);
void text_addz(struct text *t, const char *z);
/* As text_put prints it. */
void text_add_safe(struct text *t, const char *z);
/* As one word for a shell (POSIX), in single quotation marks. */
void text_add_shell(struct text *t, const char *z);
void text_addf(struct text *t, const char *fmt, ...) MSG_PRINTF(2, 3);
/* Escaped. At most max bytes of s, cut at a character, then "..." */
void text_add_esc(struct text *t, struct gguf_str s, uint64_t max);

/* "256 x 4"; "scalar" without dimensions. */
void text_add_shape(struct text *t, uint32_t n_dims, const int64_t *ne);

/* Add all of the file path, "-" being standard input. false: a message was
 * printed, also where it is larger than 1 GiB. */
bool text_read(struct text *t, const char *path);

/* How much of a value is shown. */
struct text_limits {
    uint64_t elems; /* of each array */
    uint64_t bytes; /* of each string */
};

/* A metadata value on one line: strings of arrays are quoted; an array that is
 * cut ends in its count. */
void text_add_kv(struct text *t, const struct gguf_kv *kv,
                 const struct text_limits *limits);

/* The last part of a path; all of it, if it ends in '/'. */
const char *text_base_name(const char *path);

/* What a noun after the number n ends in: 1 key, 2 keys. */
static inline const char *text_s(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* v to so many digits, or all before the point, and never in the exponent
 * form, down to 1e-12. Returns out. */
const char *text_format_number(char out[static 32], double v, int digits);

/* The n bytes at p as a text in out. false: they do not fit size bytes with the
 * NUL, or hold a NUL; out is "" then. */
bool text_copy(char *out, size_t size, const char *p, size_t n);

/* Is s the text z? */
bool text_is(struct gguf_str s, const char *z);

/* A shell pattern (* ? [a-z] \x) against all of s. */
bool text_glob(const char *pattern, struct gguf_str s);

#endif
