/* SPDX-License-Identifier: MIT */
/* remote_http.h - ranges of bytes from a server */
#ifndef TOOLS_REMOTE_HTTP_H
#define TOOLS_REMOTE_HTTP_H

#include <gguf/reader.h>

/* A file, of which bytes are kept that were read ahead (remote_read.c). */
struct remote {
    char *url;    /* as given */
    char *target; /* where redirects led to, or NULL */
    uint64_t size;
    char etag[256];
    uint8_t *buf; /* bytes that are there already: */
    uint64_t buf_off;
    size_t buf_n;
    uint64_t next;             /* end of the last request, in bytes */
    size_t ahead;              /* bytes that the next one asks for, about */
    size_t taken;              /* bytes of buf, so far */
    uint64_t n_bytes, n_short; /* bytes of all answers; answers with less than
                                * was asked for */
};

/* A reader of what is at url, which is an https or http address. A build
 * without libcurl says GGUF_E_UNSUPPORTED. */
enum gguf_status remote_http_open(const char *url, struct gguf_reader *out,
                                  struct gguf_error *err);

/* What it asks the server, by one thread at a time: bytes off .. off+n, all of
 * them, into dst; and the first n or less into r->buf, from which the size is
 * known. */
enum gguf_status remote_http_read(struct remote *r, uint64_t off, uint8_t *dst,
                                  size_t n, struct gguf_error *err);
enum gguf_status remote_http_read_first(struct remote *r, size_t n,
                                        struct gguf_error *err);

#endif
