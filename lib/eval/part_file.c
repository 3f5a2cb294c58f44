/* SPDX-License-Identifier: MIT */
/* part_file.c - files of parts, with a checksum */
#include "config.h"
#include "eval/part_file.h"

#include "base/bytes.h"
#include "base/params.h"
#include "base/str.h"
#include "file/file_int.h"
#include "file/limits.h"
#include "gguf/digest.h"

#include <stdio.h>
#include <string.h>

enum { SUM_SIZE = 32, KEY_SIZE = 64 };
static const struct gguf_str sum_name = { "checksum", 8 };

static void sum_text(char out[SUM_SIZE + 1], XXH128_hash_t h)
{
    struct gguf_digest d = { .algo = GGUF_DIGEST_XXH3_128 };
    XXH128_canonical_t c;
    XXH128_canonicalFromHash(&c, h);
    memcpy(d.bytes, c.digest, sizeof c.digest);
    gguf_digest_format(&d, out);
}

static void version_key(char out[KEY_SIZE], const struct gg_part_kind *kind)
{
    snprintf(out, KEY_SIZE, "%sversion", kind->prefix);
}

/* ---- writing ---- */

enum gguf_status gg_part_begin(struct gg_part_out *o,
                               const struct gg_part_kind *kind,
                               struct gguf_meta *meta,
                               const struct gguf_allocator *a,
                               struct gguf_error *err)
{
    struct gguf_writer_params wp = GGUF_INIT(struct gguf_writer_params);
    char key[KEY_SIZE];
    *o = (struct gg_part_out){ .allocator = a };
    version_key(key, kind);
    GG_TRY(gguf_meta_set_strz(meta, "general.type", kind->type, err));
    GG_TRY(gguf_meta_set_u32(meta, key, kind->version, err));
    wp.allocator = a;
    GG_TRY(gguf_writer_create(&o->w, meta, &wp, err));
    o->hash = XXH3_createState();
    if (!o->hash)
        return gg_error_set_nomem(err, sizeof o->hash);
    (void)XXH3_128bits_reset(o->hash);
    return GGUF_OK;
}

enum gguf_status gg_part_add(struct gg_part_out *o, struct gguf_str name,
                             uint32_t dtype, uint64_t columns, uint64_t rows,
                             struct gguf_error *err)
{
    struct gguf_tensor_info t = { .name = name,
                                  .dtype = dtype,
                                  .n_dims = rows > 1 ? 2 : 1,
                                  .ne = { 1, 1, 1, 1, 1, 1, 1, 1 } };
    t.ne[0] = (int64_t)columns;
    t.ne[1] = (int64_t)rows;
    t.n_elements = columns * rows;
    t.size = t.n_elements * (dtype == GGUF_DTYPE_I8 ? 1 : 8);
    return gguf_writer_add_like(o->w, &t, err);
}

enum gguf_status gg_part_open(struct gg_part_out *o, const char *path,
                              bool force, struct gguf_error *err)
{
    struct gguf_output_params op = GGUF_INIT(struct gguf_output_params);
    const void *header;
    size_t size;
    op.force = force;
    GG_TRY(gg_part_add(o, sum_name, GGUF_DTYPE_I8, SUM_SIZE, 1, err));
    GG_TRY(gguf_writer_header(o->w, &header, &size, err));
    (void)XXH3_128bits_update(o->hash, header, size);
    o->at = size;
    return gguf_writer_begin_file(o->w, path, &op, err);
}

enum gguf_status gg_part_next(struct gg_part_out *o, struct gguf_error *err)
{
    static const uint8_t zeros[64];
    const uint64_t off =
        gguf_writer_data_off(o->w) + gguf_writer_tensor(o->w, o->next)->off;
    for (uint64_t n; o->at < off; o->at += n) {
        n = GG_MIN(off - o->at, sizeof zeros);
        (void)XXH3_128bits_update(o->hash, zeros, (size_t)n);
    }
    return gguf_writer_begin_tensor(o->w, o->next++, err);
}

enum gguf_status gg_part_put(struct gg_part_out *o, const void *data,
                             uint64_t size, struct gguf_error *err)
{
    (void)XXH3_128bits_update(o->hash, data, (size_t)size);
    o->at += size;
    return gguf_writer_write(o->w, data, size, err);
}

enum gguf_status gg_part_put64(struct gg_part_out *o, const uint64_t *v,
                               uint64_t n, struct gguf_error *err)
{
    uint8_t b[4096];
    for (uint64_t at = 0, k; at < n; at += k) {
        k = GG_MIN(n - at, sizeof b / 8);
        for (uint64_t i = 0; i < k; i++)
            gg_bytes_store64le(b + 8 * i, v[at + i]);
        GG_TRY(gg_part_put(o, b, 8 * k, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_part_commit(struct gg_part_out *o, struct gguf_error *err)
{
    char sum[SUM_SIZE + 1];
    GG_TRY(gg_part_next(o, err));
    sum_text(sum, XXH3_128bits_digest(o->hash));
    GG_TRY(gguf_writer_write(o->w, sum, SUM_SIZE, err));
    return gguf_writer_commit(o->w, err);
}

void gg_part_fini(struct gg_part_out *o)
{
    gguf_writer_destroy(o->w);
    (void)XXH3_freeState(o->hash);
    *o = (struct gg_part_out){ .w = NULL };
}

/* ---- reading ---- */

uint64_t gg_part_off(const struct gguf_file *f,
                     const struct gguf_tensor_info *t, uint64_t i,
                     unsigned size)
{
    return gguf_file_data_off(f) + t->off + i * size;
}

uint64_t gg_part_get64(const struct gguf_file *f,
                       const struct gguf_tensor_info *t, uint64_t i)
{
    const uint8_t *p = gguf_file_tensor_data(f, t->index);
    const uint64_t v = gg_bytes_load64le(p + 8 * i);
    return gguf_file_is_big_endian(f) ? gg_bytes_swap64(v) : v;
}

enum gguf_status gg_part_read_text(const struct gguf_file *f, const char *key,
                                   char *out, size_t size,
                                   struct gguf_error *err)
{
    const struct gguf_kv *kv;
    struct gguf_str s;
    GG_TRY(gguf_file_kv_get(f, key, &kv, err));
    GG_TRY(gguf_kv_get_str(kv, &s, err));
    if (s.size >= size || memchr(s.data, 0, s.size))
        return gg_error_set(err, GGUF_E_FORMAT, kv->off,
                            "%s has %zu bytes, limit is %zu", key, s.size,
                            size - 1);
    memcpy(out, s.data, s.size);
    out[s.size] = 0;
    return GGUF_OK;
}

enum gguf_status gg_part_read_uint(const struct gguf_file *f, const char *key,
                                   uint64_t min, uint64_t max, uint64_t *out,
                                   struct gguf_error *err)
{
    const struct gguf_kv *kv;
    GG_TRY(gguf_file_kv_get(f, key, &kv, err));
    GG_TRY(gguf_kv_get_uint(kv, out, err));
    return *out >= min && *out <= max
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_FORMAT, kv->off,
                              "%s is %" PRIu64 ", must be %" PRIu64
                              " to %" PRIu64,
                              key, *out, min, max);
}

/* Check the checksum of all bytes before it, and that it is the end. */
static enum gguf_status check_sum(const struct gguf_file *f,
                                  struct gguf_error *err)
{
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, sum_name.data);
    char sum[SUM_SIZE + 1];
    if (!t || t->dtype != GGUF_DTYPE_I8 || t->n_elements != SUM_SIZE)
        return gg_error_set(err, GGUF_E_MISMATCH,
                            t ? t->info_off : GGUF_NO_OFFSET,
                            "no 'checksum' of %d characters", SUM_SIZE);
    const uint64_t at = gg_part_off(f, t, 0, 1);
    if (gguf_file_size(f) != at + SUM_SIZE)
        return gg_error_set(err, GGUF_E_MISMATCH, at + SUM_SIZE,
                            "there are bytes after the checksum");
    sum_text(sum, XXH3_128bits(gguf_file_bytes(f), (size_t)at));
    if (memcmp(sum, gguf_file_tensor_data(f, t->index), SUM_SIZE) != 0)
        return gg_error_set(err, GGUF_E_MISMATCH, at,
                            "the checksum at byte %" PRIu64
                            " is not that of the bytes before it, %s: the "
                            "file has changed",
                            at, sum);
    return GGUF_OK;
}

static enum gguf_status check_kind(const struct gguf_file *f,
                                   const struct gg_part_kind *kind,
                                   struct gguf_error *err)
{
    const struct gguf_kv *kv = gguf_file_kv_find(f, "general.type");
    struct gguf_str type;
    char key[KEY_SIZE];
    uint64_t v;
    if (gguf_kv_get_str(kv, &type, NULL) != GGUF_OK ||
        !gg_str_eqz(type, kind->type))
        return gg_error_set(err, GGUF_E_NOTFOUND, 0,
                            "general.type is not '%s'", kind->type);
    version_key(key, kind);
    GG_TRY(gg_part_read_uint(f, key, 0, UINT32_MAX, &v, err));
    if (v != kind->version)
        return gg_error_set(err, GGUF_E_VERSION, GGUF_NO_OFFSET,
                            "version %" PRIu64 " of parts, %" PRIu32
                            " is read",
                            v, kind->version);
    return check_sum(f, err);
}

enum gguf_status gg_part_read(struct gguf_file **out,
                              const struct gg_part_kind *kind,
                              const char *path,
                              const struct gguf_file_params *params,
                              struct gguf_error *err)
{
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_limits limits;
    *out = NULL;
    GG_TRY(gg_file_params_take(&fp, params, err));
    GG_TRY(gg_limits_resolve(&limits, fp.limits, err));
    /* names of tensors have a suffix here */
    if (limits.max_name_size < 128)
        limits.max_name_size = 128;
    fp.limits = &limits;
    fp.single_file = true;
    struct gguf_file *f = NULL;
    GG_TRY(gguf_file_open(&f, path, &fp, err));
    enum gguf_status st = gg_file_require_memory(f, err);
    if (st == GGUF_OK)
        st = check_kind(f, kind, err);
    if (st == GGUF_OK)
        *out = f;
    else
        gguf_file_close(f);
    return st;
}
