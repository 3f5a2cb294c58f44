/* SPDX-License-Identifier: MIT */
/* cursor.h - bounds-checked reading of a mapped file
 *
 * Invariant: off <= size. A read that does not fit fails with GGUF_E_TRUNCATED
 * at the byte where the item begins. The cursor does not move when a read
 * fails, for this reason or because bytes cannot be fetched.
 */
#ifndef GG_BASE_CURSOR_H
#define GG_BASE_CURSOR_H

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>

struct gg_cursor {
    const uint8_t *base; /* first byte of the file */
    uint64_t size;       /* bytes of the file */
    uint64_t off;        /* next byte; also the offset that errors report */
    bool swap;           /* numbers are big-endian */

    /* Fetch bytes up to at least upto, which is at most size, and set have.
     * NULL: all bytes are in memory. */
    enum gguf_status (*more)(struct gg_cursor *c, uint64_t upto,
                             struct gguf_error *err);
    void *user;    /* data of more() */
    uint64_t have; /* bytes in memory; unused if more is NULL */
    uint64_t most; /* largest number of bytes to fetch; for more() */
};

/* Make sure that bytes up to upto, at most size, are in memory. */
static inline enum gguf_status
gg_cursor_need(struct gg_cursor *c, uint64_t upto, struct gguf_error *err)
{
    return c->more && upto > c->have ? c->more(c, upto, err) : GGUF_OK;
}

/* Bytes after the cursor. */
static inline uint64_t gg_cursor_left(const struct gg_cursor *c)
{
    return c->size - c->off;
}

/* Take n bytes: *out points at them, and the cursor moves after them. what
 * names them in messages. */
static inline enum gguf_status gg_cursor_take(struct gg_cursor *c, uint64_t n,
                                              const uint8_t **out,
                                              const char *what,
                                              struct gguf_error *err)
{
    if (gg_cursor_left(c) < n)
        return gg_error_set(err, GGUF_E_TRUNCATED, c->off,
                            "%s at byte %" PRIu64 " needs %" PRIu64
                            " bytes, the file has %" PRIu64 " left",
                            what, c->off, n, gg_cursor_left(c));
    GG_TRY(gg_cursor_need(c, c->off + n, err));
    *out = c->base + c->off;
    c->off += n;
    return GGUF_OK;
}

/* Take a u32 or u64 in the byte order of the file. */
static inline enum gguf_status gg_cursor_u32(struct gg_cursor *c,
                                             uint32_t *out, const char *what,
                                             struct gguf_error *err)
{
    const uint8_t *p = NULL;
    GG_TRY(gg_cursor_take(c, 4, &p, what, err));
    *out =
        c->swap ? gg_bytes_swap32(gg_bytes_load32le(p)) : gg_bytes_load32le(p);
    return GGUF_OK;
}

static inline enum gguf_status gg_cursor_u64(struct gg_cursor *c,
                                             uint64_t *out, const char *what,
                                             struct gguf_error *err)
{
    const uint8_t *p = NULL;
    GG_TRY(gg_cursor_take(c, 8, &p, what, err));
    *out =
        c->swap ? gg_bytes_swap64(gg_bytes_load64le(p)) : gg_bytes_load64le(p);
    return GGUF_OK;
}

#endif
