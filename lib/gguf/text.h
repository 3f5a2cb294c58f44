/* SPDX-License-Identifier: MIT */
/* text.h - text from files and users: escape, parse, suggest
 *
 *   gguf_text_escape()    Makes text from a file safe to print.
 *   gguf_size_parse()     Reads a size such as "1.5G".
 *   gguf_suggestion_*()   Finds the known name that is most like a wrong one.
 *   gguf_json_walk()      Reads a JSON text value by value.
 *
 * Names and values of a file come from strangers. They may hold control
 * sequences of terminals, bytes that are not UTF-8, or characters that reverse
 * the direction of the text after them. Escape them before they are printed.
 * Error messages of the library are escaped already.
 *
 * The functions may be called from any thread.
 */
#ifndef GGUF_TEXT_H
#define GGUF_TEXT_H

#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------- escape and parse --- */

/* Escape text so that it is one printable line of UTF-8.
 *
 * out    Receives the text, NUL-terminated. Text that does not fit ends in
 *        "...", and no escape or character is cut.
 * size   Bytes at out, at least 1. 8 * s.size + 1 bytes are always enough.
 * s      The text.
 *
 * Control characters (C0, DEL, C1), bytes that are not UTF-8, direction
 * overrides, invisible characters (Unicode's default ignorable ones) and
 * backslashes become \n, \r, \t, \\, \xNN or \u{N}.
 *
 * Returns the bytes written without the NUL. Since: 0.1 */
GGUF_API size_t gguf_text_escape(char *out, size_t size, struct gguf_str s);

/* Decode one code point of UTF-8.
 *
 * p    The text.
 * n    Bytes at p, at least 1.
 * cp   Receives the code point. May be NULL.
 *
 * Returns the length of the code point in bytes, 1 to 4; 0 if the bytes are
 * not well-formed UTF-8. Surrogates, overlong forms and values above U+10FFFF
 * are not well-formed. Since: 0.1 */
GGUF_API size_t gguf_text_decode_utf8(const char *p, size_t n, uint32_t *cp);

/* Parse a size that a user typed, such as "512", "1.5G" or "4GiB".
 *
 * text    A number, which may have a fraction, and a unit: none or B for
 *         bytes; k, M, G, T for powers of 1000; Ki, Mi, Gi, Ti for powers of
 *         1024. A B may follow the unit. Letter case is ignored.
 * bytes   Receives the size in bytes. A fraction of a byte is dropped.
 *
 * GGUF_OK           *bytes is the size.
 * GGUF_E_INVALID    text is not a size.
 * GGUF_E_OVERFLOW   The size does not fit in 63 bits.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_size_parse(const char *text, uint64_t *bytes,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* ---------------------------------------------------------- suggestions --- */

/* Search for the known name that is most like an unknown one.
 *
 *     struct gguf_suggestion s;
 *     char text[GGUF_SUGGESTION_SIZE];
 *     gguf_suggestion_init(&s, name);
 *     for (size_t i = 0; i < n_known; i++)
 *         gguf_suggestion_try(&s, known[i]);
 *     printf("'%s' is not known%s", escaped_name,
 *            gguf_suggestion_text(&s, text));
 *
 * The structure is the caller's and needs no cleanup. Later versions add no
 * members to this struct. */
struct gguf_suggestion {
    struct gguf_str name; /* unknown name */
    struct gguf_str best; /* most similar known name so far; empty: none */
    unsigned distance;    /* letters that differ between name and best */
    unsigned limit;       /* most letters that may differ */
};

/* Bytes that gguf_suggestion_text() writes at most. */
#define GGUF_SUGGESTION_SIZE 112

/* Begin a search for names like name, which must stay valid during the search.
 * Since: 0.1 */
GGUF_API void gguf_suggestion_init(struct gguf_suggestion *s,
                                   struct gguf_str name);

/* Compare with a known name, which must stay valid during the search.
 *
 * A name is similar if at most a quarter of the letters are inserted, deleted,
 * replaced or swapped with their neighbour. Letter case, '-', '_', '.' and
 * blanks are ignored. The first of the most similar names is kept.
 *
 * Since: 0.1 */
GGUF_API void gguf_suggestion_try(struct gguf_suggestion *s,
                                  struct gguf_str known);

/* Write "; did you mean 'BEST'?" to out, or an empty text if no name is
 * similar. Returns out. Since: 0.1 */
GGUF_API const char *gguf_suggestion_text(const struct gguf_suggestion *s,
                                          char out[GGUF_SUGGESTION_SIZE]);

/* ----------------------------------------------------------------- JSON --- */

/* Kind of a JSON value. */
enum gguf_json_kind {
    GGUF_JSON_NULL,
    GGUF_JSON_FALSE,
    GGUF_JSON_TRUE,
    GGUF_JSON_INTEGER, /* number without point and exponent, up to 18 digits */
    GGUF_JSON_REAL,    /* any other number */
    GGUF_JSON_STRING,
    GGUF_JSON_ARRAY,  /* begin of an array; its elements follow */
    GGUF_JSON_OBJECT, /* begin of an object; its members follow */
    GGUF_JSON_END     /* end of the innermost array or object */
};

/* A JSON value. Valid during the call of the callback. Later versions
 * add no members to this struct. */
struct gguf_json_value {
    enum gguf_json_kind kind; /* kind of the value */
    struct gguf_str name;     /* name of a member; data is NULL for others */
    struct gguf_str string;   /* GGUF_JSON_STRING: UTF-8, may hold NUL */
    int64_t integer;          /* GGUF_JSON_INTEGER: the number */
    double real;              /* GGUF_JSON_INTEGER, GGUF_JSON_REAL: the number,
                               * finite */
};

/* Receive a value. Return another status than GGUF_OK to end the walk, which
 * then returns that status. */
typedef enum gguf_status gguf_json_fn(void *user,
                                      const struct gguf_json_value *v,
                                      struct gguf_error *err);

/* A function that receives JSON values, and its first argument. Later versions
 * add no members to this struct. */
struct gguf_json_callback {
    gguf_json_fn *fn; /* the function; required */
    void *user;       /* its first argument */
};

/* Call a function for each value of a JSON text (RFC 8259).
 *
 * json   The text, an object or an array.
 * each   Receives the values in the order of the text, the outermost first. It
 *        is not called before the whole text was found valid. fn is required.
 *
 * GGUF_OK            All values were passed on.
 * GGUF_E_INVALID     each.fn is NULL.
 * GGUF_E_FORMAT      The text is not valid: err->offset is the byte. It must
 *                    be UTF-8, an object or array, and its numbers must fit a
 *                    double.
 * GGUF_E_DUPLICATE   An object has two members of one name.
 * GGUF_E_LIMIT       The text is nested deeper than 64 levels or has more than
 *                    4194304 values.
 * GGUF_E_NOMEM       Out of memory.
 * others             The status that each.fn returned.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_json_walk(struct gguf_str json, struct gguf_json_callback each,
               struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
