/* SPDX-License-Identifier: MIT */
/* json_lex.h - texts and numbers of JSON (RFC 8259)
 *
 * The words that json.c makes trees of and json_scan.c reads one by one. No
 * function here allocates, so that a failure is one of the text. Jansson's own
 * reader is not used: where memory ends it aborts, reads beyond its buffer or
 * calls the text malformed.
 */
#ifndef GG_BASE_JSON_LEX_H
#define GG_BASE_JSON_LEX_H

#include "gguf/memory.h"

#include <stdbool.h>

struct gg_json_lex {
    const char *text; /* kept */
    size_t size;
    size_t at;        /* next byte to read */
    size_t failed;    /* byte of the first failure */
    const char *what; /* message for that failure; NULL: none */
};

struct gg_json_number {
    bool whole; /* neither point nor exponent: n is the number, too */
    int64_t n;
    double x;
};

/* Keep the first failure; false. */
bool gg_json_lex_fail(struct gg_json_lex *l, size_t at, const char *what);

/* Skip blanks: the next byte, or NUL at the end. */
char gg_json_lex_peek(struct gg_json_lex *l);

/* Read the text whose quotation mark is next: raw is what stands between its
 * marks, valid UTF-8 without control characters; *plain: raw has no escape. */
bool gg_json_lex_text(struct gg_json_lex *l, struct gguf_str *raw,
                      bool *plain);

/* Write raw (of the text) to out with escapes replaced: *n bytes, at most
 * raw.size. Halves of surrogate pairs are refused. */
bool gg_json_lex_unescape(struct gg_json_lex *l, struct gguf_str raw,
                          char *out, size_t *n);

/* Read the number that is next. long_real: whole numbers of 19 digits and more
 * are real numbers; else one that 64 bits do not hold is refused. */
bool gg_json_lex_number(struct gg_json_lex *l, bool long_real,
                        struct gg_json_number *out);

#endif
