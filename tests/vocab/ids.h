/* SPDX-License-Identifier: MIT */
/* ids.h - token ids as text: "1,2,3" */
#ifndef TESTS_VOCAB_IDS_H
#define TESTS_VOCAB_IDS_H

#include "gguf/vocab.h"

#include <stdio.h>
#include <stdlib.h>

static inline int same_ids(const struct gguf_tokens *t, const char *want)
{
    size_t i = 0;
    for (char *end; *want; want = end + (*end == ',')) {
        long id = strtol(want, &end, 10);
        if (end == want || i >= t->n || t->id[i++] != id)
            return 0;
    }
    return i == t->n;
}

static inline void print_ids(const struct gguf_tokens *t)
{
    for (size_t i = 0; i < t->n; i++)
        printf("%s%d", i ? "," : "", t->id[i]);
    putchar('\n');
}

#endif
