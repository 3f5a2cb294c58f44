/* SPDX-License-Identifier: MIT */
/* remote_answer.h - what the headers of a server's answer say */
#ifndef TOOLS_REMOTE_ANSWER_H
#define TOOLS_REMOTE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: nothing is said yet. */
struct remote_answer {
    bool ranged;            /* the answer has bytes `from' to `to' of total */
    bool has_total, packed; /* total is known; the content is compressed */
    uint64_t from, to, total;
    char etag[256]; /* "": none, or a longer one */
};

/* Read one header line of n bytes. A status line begins another answer. */
void remote_answer_line(struct remote_answer *a, const char *line, size_t n);

#endif
