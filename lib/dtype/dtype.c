/* SPDX-License-Identifier: MIT */
/* dtype.c - the table of data types, made from list.h */
#include "config.h"
#include "dtype/dtype_int.h"
#include "base/ckd.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/str.h"

static const struct gguf_dtype_info types[] = {
#define X(ID, NAME, LEN, BLOCK, HEADER, FAMILY)                               \
    { ID, #NAME, LEN, sizeof(BLOCK), HEADER, GGUF_FAMILY_##FAMILY },
    GG_DTYPE_LIST(X)
#undef X
};

static const struct gguf_dtype_info removed[] = {
#define X(ID, NAME) { ID, #NAME, 0, 0, 0, GGUF_FAMILY_REMOVED },
    GG_DTYPE_REMOVED_LIST(X)
#undef X
};

int gg_dtype_index(uint32_t id)
{
    static const uint8_t indices[] = {
#define X(ID, NAME, LEN, BLOCK, HEADER, FAMILY) [ID] = GG_DT_##NAME + 1,
        GG_DTYPE_LIST(X)
#undef X
    };
    return id < GG_LEN(indices) ? indices[id] - 1 : -1;
}

const struct gguf_dtype_info *gg_dtype_by_index(int index)
{
    return &types[index];
}

const struct gguf_dtype_info *gguf_dtype_find(uint32_t id)
{
    int i = gg_dtype_index(id);
    if (i >= 0)
        return &types[i];
    for (size_t k = 0; k < GG_LEN(removed); k++)
        if (removed[k].id == id)
            return &removed[k];
    return NULL;
}

const struct gguf_dtype_info *gguf_dtype_find_name(const char *name)
{
    for (size_t i = 0; i < GG_LEN(types); i++)
        if (gg_str_eq_nocase(gg_str_z(types[i].name), name))
            return &types[i];
    return NULL;
}

const struct gguf_dtype_info *gguf_dtype_at(size_t n)
{
    return n < GG_LEN(types) ? &types[n] : NULL;
}

enum gguf_status gguf_dtype_row_size(uint32_t id, uint64_t ne0, uint64_t *size,
                                     struct gguf_error *err)
{
    const struct gguf_dtype_info *t = gguf_dtype_find(id);
    if (!t)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "tensor type %" PRIu32 " is unknown", id);
    if (t->family == GGUF_FAMILY_REMOVED)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "tensor type %" PRIu32
                            " (%s) was removed from the format",
                            id, t->name);
    if (ne0 % t->block_len)
        return gg_error_set(err, GGUF_E_SHAPE, GGUF_NO_OFFSET,
                            "a row of %" PRIu64
                            " elements is not a multiple of %s's %" PRIu32,
                            ne0, t->name, t->block_len);
    uint64_t n;
    if (gg_ckd_mul(&n, ne0 / t->block_len, t->block_size) ||
        gg_ckd_add(&n, n, t->row_header) || gg_ckd_exceeds_cap(n))
        return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                            "the size of a row of %" PRIu64
                            " %s elements overflows",
                            ne0, t->name);
    *size = n;
    return GGUF_OK;
}
