/* SPDX-License-Identifier: MIT */
/* remote_response.h - reading the headers of an HTTP response */
#ifndef TOOLS_COMMON_REMOTE_RESPONSE_H
#define TOOLS_COMMON_REMOTE_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Content of the headers so far. Zeroed: none. */
struct remote_response {
    bool ranged;            /* the body has bytes from .. to of total */
    bool has_total, packed; /* total is known; the body is compressed */
    uint64_t from, to, total;
    char etag[256]; /* entity tag; "": none, or one that does not fit */
};

/* Read one header line of n bytes. A status line begins a new response, which
 * resets a. */
void remote_response_read_line(struct remote_response *a, const char *line,
                               size_t n);

#endif
