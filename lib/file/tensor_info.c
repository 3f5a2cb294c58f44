/* SPDX-License-Identifier: MIT */
/* tensor_info.c - read and encode an entry of the list of tensors */
#include "config.h"
#include "file/header.h"
#include "file/layout.h"
#include "file/name.h"
#include "file/value.h"
#include "base/str.h"

static enum gguf_status read_dims(struct gg_cursor *c,
                                  const struct gguf_limits *limits,
                                  struct gguf_tensor_info *t,
                                  struct gguf_error *err)
{
    uint64_t at = c->off;
    GG_TRY(gg_cursor_u32(c, &t->n_dims, "number of dimensions", err));
    struct gg_str_esc e;
    if (t->n_dims > limits->max_dims)
        return gg_error_set(
            err, GGUF_E_LIMIT, at,
            "tensor '%s': %" PRIu32 " dimensions at byte %" PRIu64
            ", limit is %" PRIu32,
            gg_str_esc(&e, t->name), t->n_dims, at, limits->max_dims);
    for (unsigned d = 0; d < t->n_dims; d++) {
        uint64_t v;
        GG_TRY(gg_cursor_u64(c, &v, "dimension of a tensor", err));
        t->ne[d] = (int64_t)v; /* above INT64_MAX: negative, refused later */
    }
    return GGUF_OK;
}

enum gguf_status gg_tensor_info_read(struct gg_cursor *c,
                                     const struct gguf_limits *limits,
                                     bool may_be_empty,
                                     struct gguf_tensor_info *t,
                                     struct gguf_error *err)
{
    *t = (struct gguf_tensor_info){ .info_off = c->off };
    GG_TRY(gg_name_read(c, "tensor name", "tensor name length",
                        limits->max_name_size, &t->name, err));
    uint64_t at = c->off;
    GG_TRY(read_dims(c, limits, t, err));
    uint64_t type_at = c->off;
    GG_TRY(gg_cursor_u32(c, &t->dtype, "type of a tensor", err));
    struct gg_str_esc e;
    if (t->dtype > INT32_MAX)
        return gg_error_set(err, GGUF_E_FORMAT, type_at,
                            "tensor '%s': type %" PRIu32 " at byte %" PRIu64
                            " is not a type id",
                            gg_str_esc(&e, t->name), t->dtype, type_at);
    GG_TRY(gg_cursor_u64(c, &t->off, "offset of a tensor", err));
    return may_be_empty && gg_file_tensor_is_empty(t)
               ? GGUF_OK
               : gg_file_tensor_measure(t, at, err);
}

size_t gg_tensor_info_encoded_size(const struct gguf_tensor_info *t)
{
    return 8 + t->name.size + 4 + 8 * (size_t)t->n_dims + 4 + 8;
}

void gg_tensor_info_encode(const struct gguf_tensor_info *t, bool big_endian,
                           uint8_t *out)
{
    gg_bytes_store64le(out, big_endian ? gg_bytes_swap64(t->name.size)
                                       : t->name.size);
    memcpy(out + 8, t->name.data, t->name.size);
    out += 8 + t->name.size;
    gg_bytes_store32le(out,
                       big_endian ? gg_bytes_swap32(t->n_dims) : t->n_dims);
    out += 4;
    for (unsigned d = 0; d < t->n_dims; d++, out += 8) {
        uint64_t v = (uint64_t)t->ne[d];
        gg_bytes_store64le(out, big_endian ? gg_bytes_swap64(v) : v);
    }
    gg_bytes_store32le(out, big_endian ? gg_bytes_swap32(t->dtype) : t->dtype);
    gg_bytes_store64le(out + 4, big_endian ? gg_bytes_swap64(t->off) : t->off);
}
