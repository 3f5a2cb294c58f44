/* SPDX-License-Identifier: MIT */
/* json.h - JSON texts from strangers, as trees of Jansson's values
 *
 * The reader is the tree's own (json_lex.h); the values and tables are
 * Jansson's, which allocate with malloc and say when that fails. The reader
 * bounds depth and number of values, knows the byte of the file where any value
 * stands, for messages, and takes on request the texts that Python's json
 * module writes, which are not quite JSON. It refuses bytes that are not UTF-8,
 * halves of surrogate pairs, two members of one name, numbers that no double or
 * 64-bit integer holds, NUL in names of a tree, and all that RFC 8259 does not
 * have.
 * Tables are seeded, so that names cannot be chosen such that they collide;
 * members are kept in the order of the text.
 *
 * A tree costs some 100 bytes and 0.3 us for each value, which is too much for
 * lists of half a million texts: a reader may leave members out, whose texts
 * are read where they lie, by json_scan.h.
 */
#ifndef GG_BASE_JSON_H
#define GG_BASE_JSON_H

#include "base/error.h"
#include "gguf/memory.h"

#include <jansson.h>
#include <stdbool.h>

enum {
    GG_JSON_DEPTH = 64,       /* containers in containers */
    GG_JSON_VALUES = 1 << 22, /* values of a text: at most 250 bytes each */
    /* A flag: take what Python's json module writes: Infinity and -Infinity,
     * which become null, and integers of more than 18 digits, which become
     * real numbers. */
    GG_JSON_PYTHON = 1,
    /* A flag: take integers of more than 18 digits as real numbers, alone. */
    GG_JSON_BIG_INTEGERS = 2,
    GG_JSON_MAX_OMITTED = 2 /* members left out, at most */
};

struct gg_json {
    json_t *root; /* an object or an array */
    const char *text;
    size_t size;
    uint64_t off; /* byte of the file where text begins */
    /* What is left out, in the order of the text: from after the bracket to
     * that which ends it. */
    struct {
        size_t begin, end;
    } later[GG_JSON_MAX_OMITTED];
    unsigned n_later;
    const char *begin; /* start of line 1 in messages; NULL: text */
};

/* Read the one object or array that text is; text is kept, and begins at byte
 * off of its file. After a failure there is nothing to free. GGUF_E_FORMAT
 * (with the byte where it was noticed), GGUF_E_DUPLICATE (names), GGUF_E_LIMIT
 * (depth, number of values, 2 GiB), GGUF_E_NOMEM. */
enum gguf_status gg_json_read(struct gg_json *j, const char *text, size_t size,
                              uint64_t off, unsigned flags,
                              struct gguf_error *err);
/* The same, but lists and objects in a member of the root are left out: later
 * is that member's name, theirs, NULL. They are there and empty in the tree,
 * whatever they have, and neither read nor counted. A name that is written with
 * escapes is none of them. */
enum gguf_status gg_json_read_without(struct gg_json *j, const char *text,
                                      size_t size, uint64_t off,
                                      unsigned flags, const char *const *later,
                                      struct gguf_error *err);
/* Read the list or object in bytes begin to end - 1 of the text of whole, whose
 * root need not be there: places and messages are those of whole. */
enum gguf_status gg_json_read_part(struct gg_json *j,
                                   const struct gg_json *whole, size_t begin,
                                   size_t end, unsigned flags,
                                   struct gguf_error *err);
/* Fine on a zeroed struct. */
void gg_json_fini(struct gg_json *j);

/* The byte of the file where value v of j begins (GGUF_NO_OFFSET: it is none
 * of j's; of true, false and null, which are one thing each, the first).
 * Searched for: for messages only. */
uint64_t gg_json_offset_of(const struct gg_json *j, const json_t *v);

/* Return GGUF_E_FORMAT with a message: the line and column, both from 1, of the
 * byte with offset `at' in the text, and the words `what'. If they end with
 * "expected", the message also has the character that stands there. */
enum gguf_status gg_json_fail_at(const struct gg_json *j, size_t at,
                                 const char *what, struct gguf_error *err);

/* Is v (NULL: it is not there) a text, a whole number, a number? false leaves
 * *out. A whole number may be written with a point or exponent, up to 2^53.
 * What *out points to is v's. */
bool gg_json_str(const json_t *v, struct gguf_str *out);
bool gg_json_int(const json_t *v, int64_t *out);
bool gg_json_num(const json_t *v, double *out);

/* ---- texts to write ----
 *
 * Hundreds of calls of Jansson make a tree, and each may fail. A failed
 * allocation sets errno to ENOMEM (POSIX), so that callers check errno once:
 *
 *     gg_json_make_begin();
 *     root = json_object(); ... json_object_set_new(root, ...) ...
 *     text = gg_json_make_text(root, JSON_INDENT(2));
 */

/* Set errno to 0. */
void gg_json_make_begin(void);
/* Did an allocation fail since? */
bool gg_json_make_failed(void);
/* The text of root, which is given up, from malloc. NULL: an allocation failed
 * since gg_json_make_begin, or root is NULL. */
char *gg_json_make_text(json_t *root, size_t flags);

#endif
