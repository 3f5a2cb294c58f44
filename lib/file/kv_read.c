/* SPDX-License-Identifier: MIT */
/* kv_read.c - read and check a metadata entry
 *
 * Nested arrays are read with a stack of fixed size, so that the file
 * determines neither the depth of recursion nor the memory.
 */
#include "config.h"
#include "file/name.h"
#include "file/value.h"
#include "base/str.h"

static enum gguf_status fail_at(struct gguf_error *err, enum gguf_status st,
                                const struct gguf_kv *kv, uint64_t off,
                                const char *what, uint64_t found,
                                const char *limit_is, uint64_t limit)
{
    struct gg_kv_label l;
    return gg_error_set(
        err, st, off, "%s at byte %" PRIu64 ": %s %" PRIu64 ", %s %" PRIu64,
        gg_kv_label(&l, kv), off, what, found, limit_is, limit);
}

static inline uint64_t load64(const struct gg_cursor *c, uint64_t off)
{
    uint64_t v = gg_bytes_load64le(c->base + off);
    return c->swap ? gg_bytes_swap64(v) : v;
}

/* Skip n strings: a length and the bytes of each. */
static enum gguf_status pass_strings(struct gg_cursor *c, uint64_t n,
                                     const struct gguf_limits *limits,
                                     const struct gguf_kv *kv,
                                     struct gguf_error *err)
{
    uint64_t off = c->off;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t left = c->size - off;
        if (left < 8)
            return fail_at(err, GGUF_E_TRUNCATED, kv, off,
                           "a string's length needs 8 bytes, string", i,
                           "bytes left", left);
        GG_TRY(gg_cursor_need(c, off + 8, err));
        uint64_t len = load64(c, off);
        if (len > left - 8)
            return fail_at(err, GGUF_E_TRUNCATED, kv, off, "string length",
                           len, "bytes left", left - 8);
        if (len > limits->max_str_size)
            return fail_at(err, GGUF_E_LIMIT, kv, off, "string length", len,
                           "limit is", limits->max_str_size);
        off += 8 + len;
    }
    GG_TRY(gg_cursor_need(c, off, err));
    c->off = off;
    return GGUF_OK;
}

static enum gguf_status pass_scalars(struct gg_cursor *c, uint32_t type,
                                     uint64_t n, const struct gguf_kv *kv,
                                     struct gguf_error *err)
{
    size_t size = gguf_val_type_size(type);
    if (n > gg_cursor_left(c) / size)
        return fail_at(err, GGUF_E_TRUNCATED, kv, c->off,
                       n == 1 ? "value needs bytes:" : "array items",
                       n == 1 ? size : n, "bytes left", gg_cursor_left(c));
    GG_TRY(gg_cursor_need(c, c->off + n * size, err));
    const uint8_t *p = c->base + c->off;
    if (type == GGUF_VAL_BOOL)
        for (uint64_t i = 0; i < n; i++)
            if (p[i] > 1)
                return fail_at(err, GGUF_E_FORMAT, kv, c->off + i, "bool is",
                               p[i], "expected 0 or", 1);
    c->off += n * size;
    return GGUF_OK;
}

/* Read element type and count of an array. The cursor moves to its elements. */
static enum gguf_status array_head(struct gg_cursor *c,
                                   const struct gguf_limits *limits,
                                   const struct gguf_kv *kv, uint32_t *elem,
                                   uint64_t *n, struct gguf_error *err)
{
    uint64_t at = c->off;
    if (gg_cursor_left(c) < 12)
        return fail_at(err, GGUF_E_TRUNCATED, kv, at,
                       "an array begins with bytes:", 12, "bytes left",
                       gg_cursor_left(c));
    GG_TRY(gg_cursor_u32(c, elem, "array element type", err));
    GG_TRY(gg_cursor_u64(c, n, "array length", err));
    if (*elem >= GGUF_N_VAL_TYPES)
        return fail_at(err, GGUF_E_FORMAT, kv, at, "array element type", *elem,
                       "expected 0 to", GGUF_N_VAL_TYPES - 1);
    /* smallest encoded size of an element */
    size_t least = *elem == GGUF_VAL_STR   ? 8
                   : *elem == GGUF_VAL_ARR ? 12
                                           : gguf_val_type_size(*elem);
    if (*n > gg_cursor_left(c) / least)
        return fail_at(err, GGUF_E_TRUNCATED, kv, at + 4, "array items", *n,
                       "bytes left", gg_cursor_left(c));
    if (*n > limits->max_array_items)
        return fail_at(err, GGUF_E_LIMIT, kv, at + 4, "array items", *n,
                       "limit is", limits->max_array_items);
    return GGUF_OK;
}

static enum gguf_status pass_flat(struct gg_cursor *c, uint32_t elem,
                                  uint64_t n, const struct gguf_limits *limits,
                                  const struct gguf_kv *kv,
                                  struct gguf_error *err)
{
    return elem == GGUF_VAL_STR ? pass_strings(c, n, limits, kv, err)
                                : pass_scalars(c, elem, n, kv, err);
}

/* Skip n arrays, which may be nested. */
static enum gguf_status pass_arrays(struct gg_cursor *c, uint64_t n,
                                    const struct gguf_limits *limits,
                                    const struct gguf_kv *kv,
                                    struct gguf_error *err)
{
    uint64_t left[GGUF_MAX_DEPTH]; /* remaining arrays of each level */
    unsigned depth = 1;            /* number of levels; the outermost array has
                                    * depth 1 */
    left[0] = n;
    while (depth > 0) {
        if (left[depth - 1] == 0) {
            depth--;
            continue;
        }
        left[depth - 1]--;
        if (depth + 1 > limits->max_depth)
            return fail_at(err, GGUF_E_LIMIT, kv, c->off,
                           "nested arrays, depth", depth + 1, "limit is",
                           limits->max_depth);
        uint32_t elem;
        uint64_t items;
        GG_TRY(array_head(c, limits, kv, &elem, &items, err));
        if (elem == GGUF_VAL_ARR)
            left[depth++] = items; /* depth < max_depth <= GGUF_MAX_DEPTH */
        else
            GG_TRY(pass_flat(c, elem, items, limits, kv, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_value_read(struct gg_cursor *c,
                               const struct gguf_limits *limits,
                               struct gguf_kv *kv, struct gguf_error *err)
{
    uint64_t from = c->off;
    kv->off = from;
    kv->n = 1;
    kv->elem_type = kv->type;
    kv->big_endian = c->swap;
    if (kv->type == GGUF_VAL_STR) {
        GG_TRY(pass_strings(c, 1, limits, kv, err));
        from += 8;
    } else if (kv->type == GGUF_VAL_ARR) {
        if (limits->max_depth < 1)
            return fail_at(err, GGUF_E_LIMIT, kv, from, "array of depth", 1,
                           "limit is", limits->max_depth);
        GG_TRY(array_head(c, limits, kv, &kv->elem_type, &kv->n, err));
        from = c->off;
        if (kv->elem_type == GGUF_VAL_ARR)
            GG_TRY(pass_arrays(c, kv->n, limits, kv, err));
        else
            GG_TRY(pass_flat(c, kv->elem_type, kv->n, limits, kv, err));
    } else {
        GG_TRY(pass_scalars(c, kv->type, 1, kv, err));
    }
    kv->data = c->base + from;
    kv->size = (size_t)(c->off - from);
    return GGUF_OK;
}

enum gguf_status gg_kv_read(struct gg_cursor *c,
                            const struct gguf_limits *limits,
                            struct gguf_kv *kv, struct gguf_error *err)
{
    *kv = (struct gguf_kv){ .index = GGUF_NO_INDEX };
    kv->key_off = c->off;
    GG_TRY(gg_name_read(c, "key", "key length", limits->max_key_size, &kv->key,
                        err));
    uint64_t at = c->off;
    if (gg_cursor_left(c) < 4)
        return fail_at(err, GGUF_E_TRUNCATED, kv, at,
                       "the value's type needs bytes:", 4, "bytes left",
                       gg_cursor_left(c));
    GG_TRY(gg_cursor_u32(c, &kv->type, "value type", err));
    if (kv->type >= GGUF_N_VAL_TYPES)
        return fail_at(err, GGUF_E_FORMAT, kv, at, "value type", kv->type,
                       "expected 0 to", GGUF_N_VAL_TYPES - 1);
    return gg_value_read(c, limits, kv, err);
}
