/* SPDX-License-Identifier: MIT */
/* notes.h - collects the notes of a conversion */
#ifndef TESTS_CONVERT_NOTES_H
#define TESTS_CONVERT_NOTES_H

#include "gguf/convert.h"

#include <stdio.h>
#include <string.h>

struct notes {
    char text[40000];
};

/* A gguf_convert_note_fn. user: a struct notes that begins with zeros. */
static inline void notes_keep(void *user, enum gguf_convert_note_kind kind,
                              const char *line)
{
    struct notes *n = user;
    const size_t used = strlen(n->text);
    (void)kind;
    snprintf(n->text + used, sizeof n->text - used, "%s\n", line);
}

#endif
