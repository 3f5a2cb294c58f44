/* SPDX-License-Identifier: MIT */
/* metadata.c - lists of metadata pairs in memory
 *
 * Each pair owns one block of memory: the bytes of the key, then the value as
 * encoded in a little-endian file.
 */
#include "config.h"
#include "file/limits.h"
#include "file/metadata.h"
#include "file/name.h"
#include "file/value.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/str.h"
#include "gguf/text.h"

static struct gguf_str meta_key(const void *user, uint32_t id)
{
    const struct gguf_meta *m = user;
    return m->kv[id].key;
}

enum gguf_status gguf_meta_create(struct gguf_meta **out,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err)
{
    *out = NULL;
    struct gguf_meta *m = gg_mem_alloc_zero(allocator, 1, sizeof *m);
    if (!m)
        return gg_error_set_nomem(err, sizeof *m);
    m->allocator = allocator;
    enum gguf_status st =
        gg_index_init(&m->index, allocator, 32, meta_key, m, err);
    if (st != GGUF_OK) {
        gg_mem_free(allocator, m);
        return st;
    }
    *out = m;
    return GGUF_OK;
}

/* Free the block of a pair, which begins with its key. */
static void free_kv(const struct gguf_meta *m, const struct gguf_kv *kv)
{
    gg_mem_free(m->allocator, (void *)(uintptr_t)kv->key.data);
}

void gguf_meta_destroy(struct gguf_meta *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        free_kv(m, &m->kv[i]);
    gg_mem_free(m->allocator, m->kv);
    gg_index_fini(&m->index);
    gg_mem_free(m->allocator, m);
}

size_t gguf_meta_n_kv(const struct gguf_meta *m)
{
    return m->n;
}

const struct gguf_kv *gguf_meta_kv(const struct gguf_meta *m, size_t i)
{
    return i < m->n ? &m->kv[i] : NULL;
}

const struct gguf_kv *gguf_meta_find(const struct gguf_meta *m,
                                     const char *key)
{
    uint32_t id = gg_index_find(&m->index, gg_str_z(key));
    return id == GG_INDEX_NONE ? NULL : &m->kv[id];
}

static enum gguf_status check_key(struct gguf_str key, struct gguf_error *err)
{
    const struct gguf_limits *limits = &gg_limits_default;
    struct gg_str_esc e;
    const char *fault = gg_name_find_fault(key);
    if (fault)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET, "key '%s' %s",
                            gg_str_esc(&e, key), fault);
    if (key.size > limits->max_key_size)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a key of %zu bytes, limit is %" PRIu64, key.size,
                            limits->max_key_size);
    return GGUF_OK;
}

/* Make *own a little-endian copy of v under key. */
static enum gguf_status copy_kv(const struct gguf_meta *m, struct gguf_str key,
                                const struct gguf_kv *v, struct gguf_kv *own,
                                struct gguf_error *err)
{
    uint64_t size = (uint64_t)key.size + v->size;
    uint8_t *block =
        size > PTRDIFF_MAX ? NULL : gg_mem_alloc(m->allocator, (size_t)size);
    if (!block)
        return gg_error_set_nomem(err, (size_t)size);
    memcpy(block, key.data, key.size);
    if (v->size)
        memcpy(block + key.size, v->data, v->size);
    if (v->big_endian)
        gg_value_payload_swap(block + key.size, v->size, v->type, v->elem_type,
                              v->n, true);
    *own = (struct gguf_kv){
        .key = { (const char *)block, key.size },
        .type = v->type,
        .elem_type = v->elem_type,
        .n = v->n,
        .data = block + key.size,
        .size = v->size,
        .off = GGUF_NO_OFFSET,
        .key_off = GGUF_NO_OFFSET,
        .index = GGUF_NO_INDEX,
    };
    return GGUF_OK;
}

/* Add or replace a pair. own belongs to the list, after a failure, too. */
static enum gguf_status put_pair(struct gguf_meta *m,
                                 const struct gguf_kv *own,
                                 struct gguf_error *err)
{
    uint32_t id = gg_index_find(&m->index, own->key);
    if (id != GG_INDEX_NONE) {
        free_kv(m, &m->kv[id]);
        m->kv[id] = *own;
        return GGUF_OK;
    }
    enum gguf_status st = GGUF_OK;
    if (m->n == m->room) {
        void *grown =
            gg_mem_grow(m->allocator, m->kv, &m->room, sizeof *m->kv, 32, err);
        if (grown)
            m->kv = grown;
        else
            st = GGUF_E_NOMEM;
    }
    uint32_t other;
    if (st == GGUF_OK) {
        m->kv[m->n] = *own;
        st = gg_index_add(&m->index, (uint32_t)m->n, &other, err);
    }
    if (st == GGUF_OK)
        m->n++;
    else
        free_kv(m, own);
    return st;
}

static enum gguf_status set_value(struct gguf_meta *m, struct gguf_str key,
                                  const struct gguf_kv *v,
                                  struct gguf_error *err)
{
    struct gguf_kv own;
    GG_TRY(check_key(key, err));
    GG_TRY(copy_kv(m, key, v, &own, err));
    return put_pair(m, &own, err);
}

/* ------------------------------------------------------------- scalars --- */

static enum gguf_status set_bits(struct gguf_meta *m, const char *key,
                                 uint32_t type, uint64_t bits,
                                 struct gguf_error *err)
{
    uint8_t b[8];
    gg_bytes_store64le(b, bits);
    struct gguf_kv v = { .type = type,
                         .elem_type = type,
                         .n = 1,
                         .data = b,
                         .size = gguf_val_type_size(type) };
    return set_value(m, gg_str_z(key), &v, err);
}

#define SETTER(NAME, CTYPE, TYPE, BITS)                                       \
    enum gguf_status gguf_meta_set_##NAME(struct gguf_meta *m,                \
                                          const char *key, CTYPE v,           \
                                          struct gguf_error *err)             \
    {                                                                         \
        return set_bits(m, key, TYPE, BITS, err);                             \
    }
SETTER(u8, uint8_t, GGUF_VAL_U8, v)
SETTER(i8, int8_t, GGUF_VAL_I8, (uint64_t)v)
SETTER(u16, uint16_t, GGUF_VAL_U16, v)
SETTER(i16, int16_t, GGUF_VAL_I16, (uint64_t)v)
SETTER(u32, uint32_t, GGUF_VAL_U32, v)
SETTER(i32, int32_t, GGUF_VAL_I32, (uint64_t)v)
SETTER(u64, uint64_t, GGUF_VAL_U64, v)
SETTER(i64, int64_t, GGUF_VAL_I64, (uint64_t)v)
SETTER(f32, float, GGUF_VAL_F32, gg_bytes_f32_bits(v))
SETTER(f64, double, GGUF_VAL_F64, gg_bytes_f64_bits(v))
SETTER(bool, bool, GGUF_VAL_BOOL, v)

enum gguf_status gguf_meta_set_str(struct gguf_meta *m, const char *key,
                                   struct gguf_str s, struct gguf_error *err)
{
    struct gguf_kv v = { .type = GGUF_VAL_STR,
                         .elem_type = GGUF_VAL_STR,
                         .n = 1,
                         .data = s.data,
                         .size = s.size };
    return set_value(m, gg_str_z(key), &v, err);
}

enum gguf_status gguf_meta_set_strz(struct gguf_meta *m, const char *key,
                                    const char *s, struct gguf_error *err)
{
    return gguf_meta_set_str(m, key, gg_str_z(s), err);
}

/* -------------------------------------------------------------- arrays --- */

enum gguf_status gguf_meta_set_array(struct gguf_meta *m, const char *key,
                                     uint32_t elem_type, const void *data,
                                     uint64_t n, struct gguf_error *err)
{
    size_t size = gguf_val_type_size(elem_type), bytes;
    if (size == 0)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "an array of scalars cannot have elements of type %s",
            gguf_val_type_name(elem_type));
    if (gg_ckd_array(&bytes, n, size))
        return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                            "an array of %" PRIu64 " elements overflows", n);
    const uint8_t *b = data;
    for (uint64_t i = 0; elem_type == GGUF_VAL_BOOL && i < n; i++)
        if (b[i] > 1)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "bool %" PRIu64 " is %u, expected 0 or 1", i,
                                b[i]);
    struct gguf_kv v = { .type = GGUF_VAL_ARR,
                         .elem_type = elem_type,
                         .n = n,
                         .data = data,
                         .size = bytes,
                         .big_endian = !gg_bytes_host_is_le() };
    return set_value(m, gg_str_z(key), &v, err);
}

enum gguf_status gguf_meta_set_str_array(struct gguf_meta *m, const char *key,
                                         const struct gguf_str *s, uint64_t n,
                                         struct gguf_error *err)
{
    uint64_t size = 0;
    for (uint64_t i = 0; i < n; i++)
        if (gg_ckd_add(&size, size, 8) || gg_ckd_add(&size, size, s[i].size))
            size = UINT64_MAX;
    uint8_t *bytes =
        size > PTRDIFF_MAX ? NULL : gg_mem_alloc(m->allocator, (size_t)size);
    if (!bytes)
        return gg_error_set_nomem(err, (size_t)size);
    uint8_t *p = bytes;
    for (uint64_t i = 0; i < n; i++) {
        gg_bytes_store64le(p, s[i].size);
        if (s[i].size)
            memcpy(p + 8, s[i].data, s[i].size);
        p += 8 + s[i].size;
    }
    struct gguf_kv v = { .type = GGUF_VAL_ARR,
                         .elem_type = GGUF_VAL_STR,
                         .n = n,
                         .data = bytes,
                         .size = (size_t)size };
    enum gguf_status st = set_value(m, gg_str_z(key), &v, err);
    gg_mem_free(m->allocator, bytes);
    return st;
}

enum gguf_status gguf_meta_set_encoded(struct gguf_meta *m, const char *key,
                                       uint32_t type, const void *bytes,
                                       size_t size, struct gguf_error *err)
{
    struct gg_cursor c = { .base = bytes, .size = size };
    struct gguf_kv v = { .key = gg_str_z(key),
                         .type = type,
                         .index = GGUF_NO_INDEX };
    if (type >= GGUF_N_VAL_TYPES)
        return gg_error_set(err, GGUF_E_FORMAT, GGUF_NO_OFFSET,
                            "value type %" PRIu32 ", expected 0 to %d", type,
                            GGUF_N_VAL_TYPES - 1);
    GG_TRY(gg_value_read(&c, &gg_limits_default, &v, err));
    if (c.off != size)
        return gg_error_set(err, GGUF_E_FORMAT, c.off,
                            "%zu bytes, expected %" PRIu64 " for this value",
                            size, c.off);
    return set_value(m, v.key, &v, err);
}

/* ---------------------------------------------------- whole pairs, keys --- */

enum gguf_status gguf_meta_set_kv(struct gguf_meta *m, const char *key,
                                  const struct gguf_kv *kv,
                                  struct gguf_error *err)
{
    return set_value(m, key ? gg_str_z(key) : kv->key, kv, err);
}

enum gguf_status gguf_meta_copy_file(struct gguf_meta *m,
                                     const struct gguf_file *file,
                                     struct gguf_error *err)
{
    for (size_t i = 0; i < gguf_file_n_kv(file); i++)
        GG_TRY(gguf_meta_set_kv(m, NULL, gguf_file_kv(file, i), err));
    return GGUF_OK;
}

/* Rebuild the index after pairs have moved or a key has changed. It has room
 * for them, so it cannot fail. */
static void reindex_keys(struct gguf_meta *m)
{
    gg_index_clear(&m->index);
    for (size_t i = 0; i < m->n; i++) {
        uint32_t other;
        (void)gg_index_add(&m->index, (uint32_t)i, &other, NULL);
    }
}

bool gguf_meta_remove(struct gguf_meta *m, const char *key)
{
    uint32_t id = gg_index_find(&m->index, gg_str_z(key));
    if (id == GG_INDEX_NONE)
        return false;
    free_kv(m, &m->kv[id]);
    m->n--;
    memmove(&m->kv[id], &m->kv[id + 1], (m->n - id) * sizeof *m->kv);
    reindex_keys(m);
    return true;
}

enum gguf_status gguf_meta_rename(struct gguf_meta *m, const char *from,
                                  const char *to, struct gguf_error *err)
{
    struct gg_str_esc e;
    struct gguf_str key = gg_str_z(to);
    uint32_t id = gg_index_find(&m->index, gg_str_z(from));
    if (id == GG_INDEX_NONE) {
        struct gguf_suggestion near;
        char hint[GGUF_SUGGESTION_SIZE];
        gguf_suggestion_init(&near, gg_str_z(from));
        for (size_t i = 0; i < m->n; i++)
            gguf_suggestion_try(&near, m->kv[i].key);
        return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                            "no key '%s'%s", gg_str_esc(&e, gg_str_z(from)),
                            gguf_suggestion_text(&near, hint));
    }
    uint32_t there = gg_index_find(&m->index, key);
    if (there == id)
        return GGUF_OK;
    if (there != GG_INDEX_NONE)
        return gg_error_set(err, GGUF_E_DUPLICATE, GGUF_NO_OFFSET,
                            "key '%s' exists already", gg_str_esc(&e, key));
    struct gguf_kv own;
    GG_TRY(check_key(key, err));
    GG_TRY(copy_kv(m, key, &m->kv[id], &own, err));
    free_kv(m, &m->kv[id]);
    m->kv[id] = own;
    reindex_keys(m);
    return GGUF_OK;
}
