/* SPDX-License-Identifier: MIT */
/* json.h - read untrusted JSON texts into trees of Jansson's values
 *
 * The parser is our own (json_lex.h). The values and hash tables are Jansson's,
 * which allocate with malloc() and report when that fails. The parser bounds
 * depth and number of values, finds the byte of the file where a value stands,
 * for messages, and can accept the texts of Python's json module, which are not
 * quite JSON.
 *
 * It refuses everything that RFC 8259 does not allow, and also: bytes that are
 * not UTF-8, halves of surrogate pairs, two members of one name, numbers that
 * neither a double nor a 64-bit integer can hold, and NUL in names of members.
 * Hash tables have a random seed, so that names cannot be crafted to collide.
 * Members keep the order of the text.
 *
 * A value of a tree takes about 100 bytes and 0.3 us, which is too much for
 * arrays of half a million strings. Such members can be omitted from the tree
 * and read where they lie, by json_scan.h.
 */
#ifndef GG_BASE_JSON_H
#define GG_BASE_JSON_H

#include "base/error.h"
#include "gguf/memory.h"

#include <jansson.h>
#include <stdbool.h>

enum {
    GG_JSON_DEPTH = 64,       /* largest depth of nested containers */
    GG_JSON_VALUES = 1 << 22, /* largest number of values; a value takes at
                               * most 250 bytes */
    /* Flag: accept the texts of Python's json module. Infinity and -Infinity
     * become null, integers of more than 18 digits become real numbers. */
    GG_JSON_PYTHON = 1,
    /* Flag: integers of more than 18 digits become real numbers. */
    GG_JSON_BIG_INTEGERS = 2,
    GG_JSON_MAX_OMITTED = 2 /* largest number of omitted members */
};

struct gg_json {
    json_t *root;     /* an object or array */
    const char *text; /* the text */
    size_t size;      /* bytes of text */
    uint64_t off;     /* byte of the file where text begins */
    /* Omitted members in the order of the text, as offsets in text: begin is
     * the byte after the opening bracket, end is the closing bracket. */
    struct {
        size_t begin, end;
    } later[GG_JSON_MAX_OMITTED];
    unsigned n_later;
    const char *begin; /* begin of line 1 in messages; NULL: text */
};

/* Read a text, which must be one object or array.
 *
 * text    The text. It must outlive j.
 * size    Bytes of text.
 * off     Byte of the file where text begins.
 * flags   GG_JSON_PYTHON, GG_JSON_BIG_INTEGERS or 0.
 *
 * Free j with gg_json_fini(), but not after a failure.
 *
 * GGUF_E_FORMAT: malformed; err->offset is the byte. GGUF_E_DUPLICATE: two
 * members of one name. GGUF_E_LIMIT: too deep, too many values, or more than 2
 * GiB. GGUF_E_NOMEM. */
enum gguf_status gg_json_read(struct gg_json *j, const char *text, size_t size,
                              uint64_t off, unsigned flags,
                              struct gguf_error *err);
/* Read a text like gg_json_read(), but omit the contents of some members.
 *
 * later   Names: of a member of the root that is an object, then of its members
 *         to omit, then NULL. A name with escapes in the text does not match.
 *
 * An omitted array or object is empty in the tree. Its contents are neither
 * parsed nor counted; j->later[] has their place. */
enum gguf_status gg_json_read_without(struct gg_json *j, const char *text,
                                      size_t size, uint64_t off,
                                      unsigned flags, const char *const *later,
                                      struct gguf_error *err);
/* Read the array or object in bytes begin to end - 1 of the text of whole,
 * which need not have a root. Messages give lines and offsets of whole. */
enum gguf_status gg_json_read_part(struct gg_json *j,
                                   const struct gg_json *whole, size_t begin,
                                   size_t end, unsigned flags,
                                   struct gguf_error *err);
/* Free a tree. A zeroed struct is allowed. */
void gg_json_fini(struct gg_json *j);

/* Byte of the file where value v of j begins; GGUF_NO_OFFSET if v is not a
 * value of j. true, false and null are one value each in a tree: the byte is
 * that of the first. Takes time, as it searches the text: for messages only. */
uint64_t gg_json_offset_of(const struct gg_json *j, const json_t *v);

/* Fail with GGUF_E_FORMAT and a message of line, column and text.
 *
 * at     Byte of the text that is wrong.
 * what   Text of the message. If it ends with "expected", the character at that
 *        byte is added. */
enum gguf_status gg_json_fail_at(const struct gg_json *j, size_t at,
                                 const char *what, struct gguf_error *err);

/* Get a string, integer or number. Returns false, and does not change *out, if
 * v is NULL or of another kind. An integer may be written with a point or
 * exponent if it is at most 2^53. The bytes of a string belong to v. */
bool gg_json_str(const json_t *v, struct gguf_str *out);
bool gg_json_int(const json_t *v, int64_t *out);
bool gg_json_num(const json_t *v, double *out);

/* ---- writing ----
 *
 * Building a tree takes hundreds of calls of Jansson, and each can fail. A
 * failed allocation sets errno to ENOMEM (POSIX), so callers check it once:
 *
 *     gg_json_make_begin();
 *     root = json_object(); ... json_object_set_new(root, ...) ...
 *     text = gg_json_make_text(root, JSON_INDENT(2));
 */

/* Begin: set errno to 0. */
void gg_json_make_begin(void);
/* Has an allocation failed since gg_json_make_begin()? */
bool gg_json_make_failed(void);
/* Format root as text, and release root. Free the text with free(). Returns
 * NULL if root is NULL or an allocation has failed since
 * gg_json_make_begin(). */
char *gg_json_make_text(json_t *root, size_t flags);

#endif
