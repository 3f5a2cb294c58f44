/* SPDX-License-Identifier: MIT */
/* remote_response.h - what the headers of a server's answer say */
#ifndef TOOLS_COMMON_REMOTE_RESPONSE_H
#define TOOLS_COMMON_REMOTE_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: nothing is said yet. */
struct remote_response {
    bool ranged;            /* the answer has bytes `from' to `to' of total */
    bool has_total, packed; /* total is known; the content is compressed */
    uint64_t from, to, total;
    char etag[256]; /* "": none, or a longer one */
};

/* Read one header line of n bytes. A status line begins another answer. */
void remote_response_read_line(struct remote_response *a, const char *line,
                               size_t n);

#endif
