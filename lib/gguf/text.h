/* SPDX-License-Identifier: MIT */
/* text.h - text from files: making it safe to print; names like others
 *
 * Names and values of a file come from strangers: they may hold terminal
 * control sequences, invalid UTF-8 or characters that reverse the direction of
 * what follows. Error messages of the library are escaped already.
 */
#ifndef GGUF_TEXT_H
#define GGUF_TEXT_H

#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* s as one printable line of UTF-8: control characters (C0, DEL, C1), bytes
 * that are not UTF-8, direction overrides, invisible characters (Unicode's
 * default ignorable ones) and backslashes become \n, \r, \t, \\, \xNN or
 * \u{N}. Writes at most size bytes with the NUL and never cuts an escape or a
 * character; what does not fit ends in "...". 8 * s.size + 1 bytes are always
 * enough. Returns the bytes written without the NUL. Any thread. Since: 0.1 */
GGUF_API size_t gguf_text_escape(char *out, size_t size, struct gguf_str s);

/* The code point at p[0..n), n > 0: its length in bytes (1 to 4) and its value
 * in *cp (may be NULL), or 0 if the bytes are not well-formed UTF-8
 * (surrogates, overlong forms and values above U+10FFFF are not). Any thread.
 * Since: 0.1 */
GGUF_API size_t gguf_text_decode_utf8(const char *p, size_t n, uint32_t *cp);

/* ------------------------------------------------------ names like others ---
 *
 * For messages about a name that is not known:
 *
 *     struct gguf_suggestion near;
 *     char hint[GGUF_SUGGESTION_SIZE];
 *     gguf_suggestion_init(&near, name);
 *     for (size_t i = 0; i < n_known; i++)
 *         gguf_suggestion_try(&near, known[i]);
 *     printf("'%s' is not known%s", text, gguf_suggestion_text(&near, hint));
 */

/* The caller's storage; it never grows. */
struct gguf_suggestion {
    struct gguf_str name;     /* that is not known; kept */
    struct gguf_str best;     /* size 0: nothing is like it */
    unsigned distance, limit; /* letters that differ; and that may */
};
#define GGUF_SUGGESTION_SIZE 112

/* name is kept. Since: 0.1 */
GGUF_API void gguf_suggestion_init(struct gguf_suggestion *near,
                                   struct gguf_str name);
/* known, which is kept, becomes the best if it is like name, and more so than
 * those before: letters that are put in, left out, replaced or exchanged with a
 * neighbour, a quarter of them at most; case, '-', '_', '.' and blanks do not
 * count. Since: 0.1 */
GGUF_API void gguf_suggestion_try(struct gguf_suggestion *near,
                                  struct gguf_str known);
/* out becomes "; did you mean 'BEST'?", or empty. Returns out. Since: 0.1 */
GGUF_API const char *gguf_suggestion_text(const struct gguf_suggestion *near,
                                          char out[GGUF_SUGGESTION_SIZE]);

/* -------------------------------------------------------------- JSON ------ */

enum gguf_json_kind {
    GGUF_JSON_NULL,
    GGUF_JSON_FALSE,
    GGUF_JSON_TRUE,
    GGUF_JSON_INTEGER, /* number without point and exponent */
    GGUF_JSON_REAL,    /* any other number */
    GGUF_JSON_STRING,
    GGUF_JSON_ARRAY,  /* its elements follow, then GGUF_JSON_END */
    GGUF_JSON_OBJECT, /* its members follow, then GGUF_JSON_END */
    GGUF_JSON_END
};

/* A value of a JSON text, valid during the call; it never grows. */
struct gguf_json_value {
    enum gguf_json_kind kind;
    struct gguf_str name; /* name of a member; data NULL: not a member */
    struct gguf_str text; /* GGUF_JSON_STRING: UTF-8, may hold NUL */
    int64_t whole;        /* GGUF_JSON_INTEGER */
    double real;          /* GGUF_JSON_INTEGER, GGUF_JSON_REAL: finite */
};
/* Anything but GGUF_OK ends the walk, which returns it. */
typedef enum gguf_status gguf_json_fn(void *user,
                                      const struct gguf_json_value *v,
                                      struct gguf_error *err);

/* Call fn for each value of the object or list that json is (RFC 8259), in the
 * order of the text. Nothing is called before all of json is found good. A
 * whole number of 19 digits and more is real. fn is required.
 * GGUF_E_INVALID (fn is NULL), GGUF_E_FORMAT (with the byte; not
 * UTF-8; not an object or list; a number that no double holds),
 * GGUF_E_DUPLICATE (two members of one name), GGUF_E_LIMIT (depth 64, 4 million
 * values), GGUF_E_NOMEM. Any thread. Since: 0.1 */
GGUF_API enum gguf_status
gguf_json_walk(struct gguf_str json, gguf_json_fn *fn, void *user,
               struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
