/* SPDX-License-Identifier: MIT */
/* json_scan.h - a list or object of JSON, read where it lies
 *
 * For long ones of plain things, of which no tree is made: a piece's text is
 * that of the file. Words are read as in a tree (json_lex.h), but names may
 * hold NUL. The reader says what comes next; names that are there twice are its
 * to find.
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

enum { GG_JSON_SCAN_DEPTH = 4 }; /* containers that are open */

struct gg_json_scan {
    const struct gg_json *j;    /* kept */
    struct gg_mem_arena *arena; /* kept: texts that had escapes */
    struct gg_json_lex lex;     /* position and first failure */
    size_t value;               /* where the last value or name began */
    char close[GG_JSON_SCAN_DEPTH + 1]; /* brackets that end what is open */
    unsigned depth;
    bool first;     /* innermost container is still unread */
    bool no_memory; /* the failure is an allocation */
};

/* Enter v, a list or object of j. What is read of it are the text's values,
 * also of what j left out. */
void gg_json_scan_open(struct gg_json_scan *s, const struct gg_json *j,
                       const json_t *v, struct gg_mem_arena *arena);
/* Enter the list or object that the text of j is, whose root need not be there:
 * a failure says what else begins there. */
void gg_json_scan_open_root(struct gg_json_scan *s, const struct gg_json *j,
                            struct gg_mem_arena *arena);
/* Pass over the list or object that is next: it is bytes *begin to *end - 1 of
 * the text. Only its quotation marks and brackets are looked at. false: there
 * is something else, and nothing was read, or it does not end. */
bool gg_json_scan_skip(struct gg_json_scan *s, size_t *begin, size_t *end);
/* Is there one more in the innermost that is open? Else that is left. false
 * after a failure, too. */
bool gg_json_scan_more(struct gg_json_scan *s);
/* Enter the list that is next; false: it is none, and nothing was read. */
bool gg_json_scan_enter_list(struct gg_json_scan *s);
/* The next text, number or name of a member (with its colon). false: there is
 * something else, and nothing was read, or it is not JSON, which
 * gg_json_scan_end says. Anything but a name in a name's place is not JSON. A
 * text is the file's, or the arena's. */
bool gg_json_scan_str(struct gg_json_scan *s, struct gguf_str *out);
bool gg_json_scan_name(struct gg_json_scan *s, struct gguf_str *out);
bool gg_json_scan_num(struct gg_json_scan *s, double *out);
/* The byte of the file where the last value or name began, or where the next
 * one would. */
uint64_t gg_json_scan_offset(const struct gg_json_scan *s);
/* GGUF_OK, or the failure: GGUF_E_FORMAT with the byte, GGUF_E_NOMEM. */
enum gguf_status gg_json_scan_end(const struct gg_json_scan *s,
                                  struct gguf_error *err);
/* gg_json_scan_end after the outermost was left; a failure, too, if more than
 * blanks follow it. */
enum gguf_status gg_json_scan_finish(struct gg_json_scan *s,
                                     struct gguf_error *err);
/* Byte of the file where the next value begins. */
uint64_t gg_json_scan_next_offset(struct gg_json_scan *s);

#endif
