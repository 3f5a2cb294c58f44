/* SPDX-License-Identifier: MIT */
/* name.c - read and check keys and names of tensors, and parse numbers in
 * them */
#include "config.h"
#include "file/name.h"
#include "base/error.h"
#include "base/str.h"
#include "file/value.h"

#include <stdio.h>
#include <string.h>

const char *gg_name_find_fault(struct gguf_str name)
{
    if (name.size == 0)
        return "is empty";
    for (size_t i = 0; i < name.size;) {
        uint32_t cp;
        size_t n = gg_str_utf8_decode(name.data + i, name.size - i, &cp);
        if (n == 0)
            return "is not UTF-8";
        if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
            return "holds a control character";
        i += n;
    }
    return NULL;
}

enum gguf_status gg_name_read(struct gg_cursor *c, const char *what,
                              const char *length, uint64_t max,
                              struct gguf_str *name, struct gguf_error *err)
{
    const uint64_t at = c->off;
    const uint8_t *p = NULL;
    uint64_t len;
    struct gg_str_esc e;
    GG_TRY(gg_cursor_u64(c, &len, length, err));
    if (len > gg_cursor_left(c))
        return gg_error_set(err, GGUF_E_TRUNCATED, at,
                            "%s %" PRIu64 " at byte %" PRIu64
                            " is more than the %" PRIu64 " bytes left",
                            length, len, at, gg_cursor_left(c));
    if (len > max)
        return gg_error_set(err, GGUF_E_LIMIT, at,
                            "%s %" PRIu64 " at byte %" PRIu64
                            ", limit is %" PRIu64,
                            length, len, at, max);
    GG_TRY(gg_cursor_take(c, len, &p, what, err));
    *name = (struct gguf_str){ (const char *)p, (size_t)len };
    const char *fault = gg_name_find_fault(*name);
    if (fault)
        return gg_error_set(err, GGUF_E_FORMAT, at,
                            "%s '%s' at byte %" PRIu64 " %s", what,
                            gg_str_esc(&e, *name), at, fault);
    return GGUF_OK;
}

const char *gg_kv_label(struct gg_kv_label *l, const struct gguf_kv *kv)
{
    struct gg_str_esc e;
    if (kv->index == GGUF_NO_INDEX)
        snprintf(l->s, sizeof l->s, "key '%s'", gg_str_esc(&e, kv->key));
    else
        snprintf(l->s, sizeof l->s, "key '%s'[%" PRIu64 "]",
                 gg_str_esc(&e, kv->key), kv->index);
    return l->s;
}

int64_t gg_name_cut_index(struct gguf_str *name, const char *first)
{
    struct gguf_str s = *name;
    uint64_t n;
    if (!gg_str_starts(s, first))
        return -1;
    s.data += strlen(first);
    s.size -= strlen(first);
    const struct gguf_str digits = s;
    if (!gg_str_uint(&s, UINT32_MAX, &n) || !gg_str_starts(s, ".") ||
        (*digits.data == '0' && digits.size - s.size > 1))
        return -1;
    name->data = s.data + 1;
    name->size = s.size - 1;
    return (int64_t)n;
}

int64_t gguf_layer_from_name(struct gguf_str name, struct gguf_str *rest)
{
    const int64_t layer = gg_name_cut_index(&name, "blk.");
    if (rest)
        *rest = name;
    return layer;
}
