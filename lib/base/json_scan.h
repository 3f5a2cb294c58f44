/* SPDX-License-Identifier: MIT */
/* json_scan.h - read a long JSON array or object without building a tree
 *
 * Strings and numbers are read one by one (json_lex.h); a string without
 * escapes is the text of the file. The caller says which kind of value it
 * expects next. Unlike in a tree, names may hold NUL, and the caller must
 * detect names that occur twice.
 *
 *     gg_json_scan_open(&s, j, v, &arena);
 *     while (gg_json_scan_more(&s))
 *         gg_json_scan_name(&s, &name) && gg_json_scan_num(&s, &x) || ...
 *     return gg_json_scan_end(&s, err);
 */
#ifndef GG_BASE_JSON_SCAN_H
#define GG_BASE_JSON_SCAN_H

#include "base/json.h"
#include "base/json_lex.h"
#include "base/mem.h"

enum { GG_JSON_SCAN_DEPTH = 4 }; /* largest depth of open containers */

struct gg_json_scan {
    const struct gg_json *j;    /* the text; it must outlive the scan */
    struct gg_mem_arena *arena; /* holds strings that had escapes */
    struct gg_json_lex lex;     /* position and first failure */
    size_t value;               /* byte of the last value or name */
    char close[GG_JSON_SCAN_DEPTH + 1]; /* closing brackets of containers */
    unsigned depth;                     /* number of open containers */
    bool first;     /* the innermost container is still unread */
    bool no_memory; /* the failure is an allocation */
};

/* Enter v, an array or object of j. If j omitted its contents, they are read
 * from the text all the same. */
void gg_json_scan_open(struct gg_json_scan *s, const struct gg_json *j,
                       const json_t *v, struct gg_mem_arena *arena);
/* Enter the array or object that the text of j is. j need not have a root. A
 * failure names the character that stands there instead. */
void gg_json_scan_open_root(struct gg_json_scan *s, const struct gg_json *j,
                            struct gg_mem_arena *arena);
/* Skip the array or object that comes next: bytes *begin to *end - 1 of the
 * text. Only its quotation marks and brackets are checked. Returns false if
 * something else comes next, and reads nothing, or if it does not end. */
bool gg_json_scan_skip(struct gg_json_scan *s, size_t *begin, size_t *end);
/* Does the innermost open container have another element or member? If not, it
 * is left. Returns false after a failure, too. */
bool gg_json_scan_more(struct gg_json_scan *s);
/* Enter the array that comes next. Returns false, and reads nothing, if
 * something else comes next. */
bool gg_json_scan_enter_list(struct gg_json_scan *s);
/* Read the next string, name of a member (with its colon) or number. Returns
 * false if something else comes next, and reads nothing, or if the text is
 * malformed, which gg_json_scan_end() then reports. A string belongs to the
 * text or the arena. */
bool gg_json_scan_str(struct gg_json_scan *s, struct gguf_str *out);
bool gg_json_scan_name(struct gg_json_scan *s, struct gguf_str *out);
bool gg_json_scan_num(struct gg_json_scan *s, double *out);
/* Byte of the file where the value or name that was looked at last begins. */
uint64_t gg_json_scan_offset(const struct gg_json_scan *s);
/* GGUF_OK, or the first failure: GGUF_E_FORMAT with the byte, GGUF_E_NOMEM. */
enum gguf_status gg_json_scan_end(const struct gg_json_scan *s,
                                  struct gguf_error *err);
/* Finish after the outermost container was left. Fails like gg_json_scan_end(),
 * and if anything but blanks follows. */
enum gguf_status gg_json_scan_finish(struct gg_json_scan *s,
                                     struct gguf_error *err);
/* Byte of the file where the next value begins. */
uint64_t gg_json_scan_next_offset(struct gg_json_scan *s);

#endif
