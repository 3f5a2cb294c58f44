/* SPDX-License-Identifier: MIT */
/* text.h - a growing string, and metadata values as text */
#ifndef TOOLS_TEXT_H
#define TOOLS_TEXT_H

#include "tools/common/msg.h"

#include <gguf/kv.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Print z so that it is harmless on a terminal: characters that
 * gguf_text_escape() escapes are escaped, except backslashes, so that text
 * that is printable or escaped already stays the same. All messages and table
 * cells are printed this way. */
void text_put(FILE *f, const char *z);

/* A growing string. Zeroed: empty. If memory runs out the program ends with a
 * message. */
struct text {
    char *s; /* NUL-terminated once something was added, otherwise NULL */
    size_t n, size;
};

void text_fini(struct text *t);
void text_clear(struct text *t);
void text_add(struct text *t, const char *p, size_t n);
void text_addz(struct text *t, const char *z);
/* Append z as text_put() prints it. */
void text_add_safe(struct text *t, const char *z);
/* Append z as one word for a POSIX shell, in single quotes. */
void text_add_shell(struct text *t, const char *z);
void text_addf(struct text *t, const char *fmt, ...) MSG_PRINTF(2, 3);
/* Append s escaped. If it is longer than max bytes, it is cut at a character
 * and "..." is added. */
void text_add_esc(struct text *t, struct gguf_str s, uint64_t max);

/* Append a shape: "256 x 4", or "scalar" without dimensions. */
void text_add_shape(struct text *t, uint32_t n_dims, const int64_t *ne);

/* Append the content of a file; path "-" is standard input. Returns false
 * after a message, also if it is larger than 1 GiB. */
bool text_read(struct text *t, const char *path);

/* Limits for showing a value. */
struct text_limits {
    uint64_t elems; /* most elements of an array */
    uint64_t bytes; /* most bytes of a string */
};

/* Append a metadata value on one line. Strings in arrays are quoted; an array
 * that is cut ends with its number of elements. */
void text_add_kv(struct text *t, const struct gguf_kv *kv,
                 const struct text_limits *limits);

/* Last component of a path; the whole path if it ends in '/'. */
const char *text_base_name(const char *path);

/* Plural ending for a noun after the number n: 1 key, 2 keys. */
static inline const char *text_s(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* Write v with the given number of significant digits, or more if needed to
 * reach the decimal point. Values down to 1e-12 never have an exponent.
 * Returns out. */
const char *text_format_number(char out[static 32], double v, int digits);

/* Copy the n bytes at p to out, NUL-terminated. Returns false, with out "", if
 * they do not fit into size bytes or contain a NUL. */
bool text_copy(char *out, size_t size, const char *p, size_t n);

/* Is s equal to z? */
bool text_is(struct gguf_str s, const char *z);

/* Does the shell pattern (* ? [a-z] \x) match all of s? */
bool text_glob(const char *pattern, struct gguf_str s);

#endif
