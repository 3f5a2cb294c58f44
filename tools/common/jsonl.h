/* SPDX-License-Identifier: MIT */
/* jsonl.h - texts in lines of JSON: a member of the object in each line
 *
 * By gguf_json_walk. Lines with nothing but white space are passed over.
 */
#ifndef TOOLS_JSONL_H
#define TOOLS_JSONL_H

#include <gguf/memory.h>

#include <stddef.h>

struct jsonl {
    const char *path;  /* for messages; kept */
    const char *field; /* the member's name; kept */
    const char *data;  /* what is left to read; kept */
    size_t size;
    size_t line; /* number of the record, from 1 */
    char *text;  /* text of the record */
};

/* The next record's text, valid until the next call. 0: there is none; -1: a
 * message was printed. */
int jsonl_next(struct jsonl *j, struct gguf_str *text);
/* Fine on a zeroed struct. */
void jsonl_fini(struct jsonl *j);

#endif
