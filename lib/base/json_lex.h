/* SPDX-License-Identifier: MIT */
/* json_lex.h - read the strings and numbers of a JSON text (RFC 8259)
 *
 * json.c builds trees of them, json_scan.c reads them one by one. The functions
 * do not allocate, so a failure is always a fault of the text. Jansson's own
 * parser is not used: when memory runs out it aborts, reads beyond its buffer
 * or calls the text malformed.
 */
#ifndef GG_BASE_JSON_LEX_H
#define GG_BASE_JSON_LEX_H

#include "gguf/memory.h"

#include <stdbool.h>

struct gg_json_lex {
    const char *text; /* the text; it must outlive the lexer */
    size_t size;      /* bytes of text */
    size_t at;        /* next byte to read */
    size_t failed;    /* byte of the first failure */
    const char *what; /* message of the first failure; NULL: no failure */
};

struct gg_json_number {
    bool whole; /* written without point and exponent: n is set */
    int64_t n;  /* the number, if whole */
    double x;   /* the number */
};

/* Record a failure, unless an earlier one is recorded. Returns false. */
bool gg_json_lex_fail(struct gg_json_lex *l, size_t at, const char *what);

/* Skip blanks. Returns the next byte without reading it; NUL at the end. */
char gg_json_lex_peek(struct gg_json_lex *l);

/* Read a string. Its quotation mark is the next byte.
 *
 * raw     Receives the bytes between the quotation marks: UTF-8 without control
 *         characters, escapes not replaced.
 * plain   Receives whether raw has no escapes.
 *
 * Returns false after recording a failure. */
bool gg_json_lex_text(struct gg_json_lex *l, struct gguf_str *raw,
                      bool *plain);

/* Write raw, a part of the text, to out with its escapes replaced.
 *
 * out   Receives at most raw.size bytes.
 * n     Receives the number of bytes.
 *
 * Returns false after recording a failure, such as half a surrogate pair. */
bool gg_json_lex_unescape(struct gg_json_lex *l, struct gguf_str raw,
                          char *out, size_t *n);

/* Read a number. long_real: integers of 19 digits and more become real numbers;
 * otherwise integers that do not fit in 64 bits are refused. Returns false
 * after recording a failure. */
bool gg_json_lex_number(struct gg_json_lex *l, bool long_real,
                        struct gg_json_number *out);

#endif
