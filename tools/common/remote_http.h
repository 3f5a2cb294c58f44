/* SPDX-License-Identifier: MIT */
/* remote_http.h - reading ranges of bytes from a server */
#ifndef TOOLS_REMOTE_HTTP_H
#define TOOLS_REMOTE_HTTP_H

#include <gguf/reader.h>

/* A file on a server, with a buffer of bytes that were read ahead
 * (remote_read.c). */
struct remote {
    char *url;    /* address as given */
    char *target; /* address after redirects, or NULL */
    uint64_t size;
    char etag[256];
    uint8_t *buf; /* buffered bytes: buf_n of them, from offset buf_off on */
    uint64_t buf_off;
    size_t buf_n;
    uint64_t next; /* offset of the end of the last request */
    /* bytes that the next request asks for, about */
    size_t ahead;
    size_t taken; /* bytes of buf that were used so far */
    /* bytes of all responses; number of responses that were shorter than
     * requested */
    uint64_t n_bytes, n_short;
};

/* Open the file at url, an https or http address, as a reader. Returns
 * GGUF_E_UNSUPPORTED in a build without libcurl. */
enum gguf_status remote_http_open(const char *url, struct gguf_reader *out,
                                  struct gguf_error *err);

/* Requests to the server, by one thread at a time. remote_http_read() reads the
 * n bytes from off on into dst, all of them. remote_http_read_first() reads the
 * first n bytes or less into r->buf, and sets r->size. */
enum gguf_status remote_http_read(struct remote *r, uint64_t off, uint8_t *dst,
                                  size_t n, struct gguf_error *err);
enum gguf_status remote_http_read_first(struct remote *r, size_t n,
                                        struct gguf_error *err);

#endif
