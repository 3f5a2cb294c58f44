/* SPDX-License-Identifier: MIT */
/* remote_read.c - reading a file on a server in any order in few requests */
#include "config.h"
#include "tools/common/remote_http.h"
#include "tools/common/msg.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST = 128 << 10,    /* bytes of the first request */
    AHEAD = 1 << 20,      /* least bytes that are read ahead */
    MAX_AHEAD = 16 << 20, /* most; AHEAD doubles while half of it is used */
    NEAR = 4 << 20,  /* largest gap after which reading counts as sequential */
    GAP = 512 << 10, /* a gap of up to this is always read along */
    TIMES = 8        /* a larger gap, if up to this many times the request */
};

/* there is one connection for all files */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Copy bytes from the buffer. Returns their number. */
static size_t take_bytes(struct remote *r, uint64_t off, uint8_t *dst,
                         size_t size)
{
    if (off < r->buf_off || off - r->buf_off >= r->buf_n)
        return 0;
    const size_t at = (size_t)(off - r->buf_off), left = r->buf_n - at;
    const size_t n = left < size ? left : size;
    memcpy(dst, r->buf + at, n);
    r->taken += n;
    return n;
}

static enum gguf_status read_locked(struct remote *r, uint64_t off,
                                    uint8_t *dst, size_t size,
                                    struct gguf_error *err)
{
    const size_t n = take_bytes(r, off, dst, size);
    off += n;
    dst += n;
    size -= n;
    if (!size)
        return GGUF_OK;
    const uint64_t gap = off - r->next;
    const bool sequential =
        off >= r->next && gap <= NEAR && (gap <= GAP || gap / TIMES <= size);
    /* most of the buffer was not used */
    const bool wasted = r->taken < r->buf_n / TIMES;
    const bool backwards = off < r->next && r->next - off <= 2 * MAX_AHEAD;
    if (!sequential || wasted) {
        /* an unrelated offset, or a thread that lags behind others */
        r->taken = r->buf_n;
        if (!backwards) {
            r->next = off + size;
            r->ahead = AHEAD;
        }
        return remote_http_read(r, off, dst, size, err);
    }
    if (r->taken < r->buf_n / 2)
        r->ahead = AHEAD;
    else if (r->ahead < MAX_AHEAD)
        r->ahead *= 2;
    if (size >= r->ahead) {
        r->next = off + size;
        r->taken = r->buf_n;
        return remote_http_read(r, off, dst, size, err);
    }
    const uint64_t left = r->size - off;
    const size_t ahead = left < r->ahead ? (size_t)left : r->ahead;
    free(r->buf);
    r->buf_n = 0;
    r->buf = malloc(ahead);
    if (!r->buf)
        return gguf_error_set(err, GGUF_E_NOMEM, "no memory for %zu bytes",
                              ahead);
    const enum gguf_status st = remote_http_read(r, off, r->buf, ahead, err);
    if (st != GGUF_OK)
        return st;
    r->buf_off = off;
    r->buf_n = ahead;
    r->next = off + ahead;
    r->taken = size;
    memcpy(dst, r->buf, size);
    return GGUF_OK;
}

static enum gguf_status read_remote(void *user, uint64_t off, void *dst,
                                    size_t size, struct gguf_error *err)
{
    pthread_mutex_lock(&lock);
    const enum gguf_status st = read_locked(user, off, dst, size, err);
    pthread_mutex_unlock(&lock);
    return st;
}

static void close_remote(void *user)
{
    struct remote *r = user;
    free(r->buf);
    free(r->target);
    free(r->url);
    free(r);
}

enum gguf_status remote_http_open(const char *url, struct gguf_reader *out,
                                  struct gguf_error *err)
{
    struct remote *r = msg_must(calloc(1, sizeof *r));
    r->url = msg_copy(url);
    r->buf = msg_must(malloc(FIRST));
    r->size = UINT64_MAX;
    r->ahead = AHEAD;
    pthread_mutex_lock(&lock);
    const enum gguf_status st = remote_http_read_first(r, FIRST, err);
    pthread_mutex_unlock(&lock);
    if (st != GGUF_OK) {
        close_remote(r);
        return st;
    }
    out->size = r->size;
    out->read_at = read_remote;
    out->close = close_remote;
    out->user = r;
    if (*r->etag && strncmp(r->etag, "W/", 2) != 0)
        out->version = r->etag;
    return GGUF_OK;
}
