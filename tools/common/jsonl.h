/* SPDX-License-Identifier: MIT */
/* jsonl.h - reading texts from lines of JSON
 *
 * Each line is an object; a text is the value of one member. Lines of white
 * space are skipped. The parser is gguf_json_walk().
 */
#ifndef TOOLS_JSONL_H
#define TOOLS_JSONL_H

#include <gguf/memory.h>

#include <stddef.h>

struct jsonl {
    const char *path;  /* file name for messages; must outlive the struct */
    const char *field; /* name of the member; must outlive the struct */
    const char *data;  /* rest of the input; must outlive the struct */
    size_t size;
    size_t line; /* number of the line, from 1 */
    char *text;  /* text of the current line; owned */
};

/* Read the next text; it is valid until the next call. Returns 1, 0 at the
 * end, or -1 after a message. */
int jsonl_next(struct jsonl *j, struct gguf_str *text);
/* Free the memory. A zeroed struct is fine. */
void jsonl_fini(struct jsonl *j);

#endif
