/* SPDX-License-Identifier: MIT */
/* json.h - writing one JSON document as a stream
 *
 *     struct json j;
 *     json_begin_object(&j, stdout);
 *     json_u64(&j, "size", n);
 *     json_end(&j);
 *
 * Integers are exact up to 64 bits; floating point numbers are the shortest
 * text that reads back as the same value; what JSON has no number for (NaN,
 * infinities) is null. Strings are valid UTF-8 whatever they were: each byte
 * that is not part of a well-formed character becomes U+FFFD; control and
 * invisible characters are written as \uXXXX, so that a document on a terminal
 * is harmless.
 *
 * key is the member's name inside an object, and NULL inside an array, or where
 * json_key gave the name just before.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <gguf/memory.h>

#include <stdbool.h>
#include <stdio.h>

enum { JSON_DEPTH = 64 };

struct json {
    FILE *f;
    unsigned depth;
    bool named;             /* json_key() was the last call */
    char close[JSON_DEPTH]; /* closing bracket of each open level */
    bool some[JSON_DEPTH];  /* the level has a member already */
    bool flat[JSON_DEPTH];  /* members of the level are written on one line */
};

/* Begin a document on f. json_begin_object() also opens an object. */
void json_begin(struct json *j, FILE *f);
void json_begin_object(struct json *j, FILE *f);
/* Close all open objects and arrays, and end the line. */
void json_end(struct json *j);

/* Open an object ('{'), an array ('['), or an array on one line ('('). */
void json_open(struct json *j, const char *key, char kind);
void json_close(struct json *j);

/* Write the name of the next member, whose own key must be NULL. */
void json_key(struct json *j, struct gguf_str key);

void json_u64(struct json *j, const char *key, uint64_t v);
void json_i64(struct json *j, const char *key, int64_t v);
/* An array of n numbers on one line. */
void json_i64s(struct json *j, const char *key, size_t n, const int64_t *v);
void json_f64(struct json *j, const char *key, double v);
void json_f32(struct json *j, const char *key, float v);
void json_bool(struct json *j, const char *key, bool v);
/* Jansson, which the library uses, also exports json_null(). */
#define json_null json_put_null
void json_null(struct json *j, const char *key);
/* Write the members of a JSON object in the layout of this document. text is
 * what stands between its braces; the program ends if it is not JSON. */
void json_members(struct json *j, const char *text);
void json_str(struct json *j, const char *key, struct gguf_str v);
void json_strz(struct json *j, const char *key, const char *v);

/* Shortest decimal text that strtod() or strtof() reads as v; "nan", "inf" and
 * "-inf" for these. out holds 32 bytes. */
void json_format_f64(char *out, double v);
void json_format_f32(char *out, float v);

#endif
