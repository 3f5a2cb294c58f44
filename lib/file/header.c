/* SPDX-License-Identifier: MIT */
/* header.c - read and encode the head of a file */
#include "config.h"
#include "file/header.h"
#include "base/foreign_format.h"
#include "file/value.h"

static enum gguf_status fail_magic(const struct gg_cursor *c,
                                   struct gguf_error *err)
{
    const char *is =
        gg_foreign_format_name(c->base, c->size, GG_FOREIGN_BUT_GGUF);
    const uint8_t *b = c->base;
    return gg_error_set(
        err, GGUF_E_FORMAT, 0,
        "not a GGUF file: begins with bytes %02x %02x %02x %02x, "
        "not 47 47 55 46%s%s",
        b[0], b[1], b[2], b[3], is ? "; it looks like " : "", is ? is : "");
}

static enum gguf_status read_version(struct gg_cursor *c, uint32_t *version,
                                     struct gguf_error *err)
{
    GG_TRY(gg_cursor_u32(c, version, "version", err));
    uint32_t v = *version, s = gg_bytes_swap32(v);
    if (v == 2 || v == 3)
        return GGUF_OK;
    if (s == 3) {
        c->swap = true;
        *version = 3;
        return GGUF_OK;
    }
    if (v == 1)
        return gg_error_set(
            err, GGUF_E_VERSION, 4,
            "GGUF version 1, with its 32-bit counts, is not read; "
            "versions 2 and 3 are");
    if (s == 1 || s == 2)
        return gg_error_set(err, GGUF_E_VERSION, 4,
                            "GGUF version %" PRIu32
                            " in big-endian order: that began with version 3",
                            s);
    return gg_error_set(
        err, GGUF_E_VERSION, 4,
        "GGUF version %" PRIu32 " is unknown; versions 2 and 3 are read", v);
}

static enum gguf_status check_count(const struct gg_cursor *c,
                                    const char *what, uint64_t n, size_t least,
                                    uint64_t limit, uint64_t at,
                                    struct gguf_error *err)
{
    if (n > gg_cursor_left(c) / least)
        return gg_error_set(err, GGUF_E_TRUNCATED, at,
                            "%" PRIu64 " %s at byte %" PRIu64
                            " do not fit the %" PRIu64 " bytes left",
                            n, what, at, gg_cursor_left(c));
    if (n > limit)
        return gg_error_set(err, GGUF_E_LIMIT, at,
                            "%" PRIu64 " %s at byte %" PRIu64
                            ", limit is %" PRIu64,
                            n, what, at, limit);
    return GGUF_OK;
}

enum gguf_status gg_file_head_read(struct gg_cursor *c,
                                   const struct gguf_limits *limits,
                                   struct gg_file_head *h,
                                   struct gguf_error *err)
{
    const uint8_t *magic = NULL;
    if (c->size == 0)
        return gg_error_set(err, GGUF_E_TRUNCATED, 0, "the file is empty");
    GG_TRY(gg_cursor_take(c, 4, &magic, "magic", err));
    if (memcmp(magic, "GGUF", 4) != 0)
        return fail_magic(c, err);
    GG_TRY(read_version(c, &h->version, err));
    GG_TRY(gg_cursor_u64(c, &h->n_tensors, "number of tensors", err));
    GG_TRY(gg_cursor_u64(c, &h->n_kv, "number of keys", err));
    GG_TRY(check_count(c, "tensors", h->n_tensors, GG_INFO_MIN_SIZE,
                       limits->max_tensors, 8, err));
    return check_count(c, "keys", h->n_kv, GG_KV_MIN_SIZE, limits->max_kv, 16,
                       err);
}

void gg_file_head_encode(const struct gg_file_head *h, bool big_endian,
                         uint8_t *out)
{
    memcpy(out, "GGUF", 4);
    gg_bytes_store32le(out + 4,
                       big_endian ? gg_bytes_swap32(h->version) : h->version);
    gg_bytes_store64le(out + 8, big_endian ? gg_bytes_swap64(h->n_tensors)
                                           : h->n_tensors);
    gg_bytes_store64le(out + 16,
                       big_endian ? gg_bytes_swap64(h->n_kv) : h->n_kv);
}
