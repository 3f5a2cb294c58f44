/* SPDX-License-Identifier: MIT */
/* imatrix_file.c - both forms of importance files, read and written
 *
 * Older form, in the byte order of the machine that wrote it: i32 entries; for
 * each i32 length, name, i32 calls, i32 values, f32 value each (mean square *
 * calls); then, if there is more, i32 chunks, i32 length, name of the text.
 * Only the number of entries shows the byte order: the file must be long
 * enough to hold all of them.
 */
#include "config.h"
#include "imatrix/imatrix_int.h"
#include "base/bytes.h"
#include "base/cursor.h"
#include "base/outfile_int.h"
#include "base/params.h"
#include "base/str.h"
#include "base/foreign_format.h"
#include "file/file_int.h"
#include "gguf/writer.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* A key of ours: other programs pass over it. */
#define PRECISION "libgguf.imatrix.precision"

static const char sums_suffix[] = ".in_sum2";
static const char counts_suffix[] = ".counts";
enum { NAME_SIZE = 256 }; /* of a tensor with suffix and NUL */

/* Sums of squares and counts are numbers from 0 up. Some sums may be NaN or
 * infinite: they are replaced from the others where they are used; if all are,
 * the data are useless. off: of the first. */
static enum gguf_status check_values(const uint8_t *p, uint64_t n,
                                     uint64_t off, struct gguf_str name,
                                     const char *what, bool sums,
                                     struct gguf_error *err)
{
    struct gg_str_esc esc;
    uint64_t n_not = 0;
    for (uint64_t i = 0; i < n; i++) {
        float v = gg_bytes_f32_from_bits(gg_bytes_load32le(p + 4 * i));
        if (v >= 0 && v <= FLT_MAX)
            continue;
        n_not++;
        if (!sums || (v < 0 && isfinite(v)))
            return gg_error_set(
                err, isfinite(v) ? GGUF_E_FORMAT : GGUF_E_NONFINITE,
                off + 4 * i,
                "'%s': %s %" PRIu64 " is %g, must be a number from 0 up",
                gg_str_esc(&esc, name), what, i, (double)v);
    }
    if (!n || n_not < n)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_NONFINITE, off,
                        "'%s': none of %" PRIu64 " %ss is a number",
                        gg_str_esc(&esc, name), n, what);
}

/* The values of an entry: where they lie, or of a big-endian file a copy in
 * the order that we use. counts may be NULL. */
static enum gguf_status take_values(struct gguf_imatrix *im,
                                    struct gg_imatrix_entry *e, bool big,
                                    const uint8_t *sums, uint64_t n_sums,
                                    const uint8_t *counts, uint64_t n_counts,
                                    struct gguf_error *err)
{
    e->sums = sums;
    e->counts = counts;
    if (!big)
        return GGUF_OK;
    size_t size;
    uint8_t *p = NULL;
    if (!gg_ckd_array(&size, n_sums + n_counts, 4)) /* both are in a file */
        p = gg_mem_alloc(im->allocator, size);
    e->sums = p;
    e->counts = NULL;
    if (!p)
        return gg_error_set_nomem(err, SIZE_MAX);
    for (uint64_t i = 0; i < n_sums; i++)
        gg_bytes_store32le(p + 4 * i,
                           gg_bytes_swap32(gg_bytes_load32le(sums + 4 * i)));
    if (counts)
        e->counts = p + 4 * n_sums;
    for (uint64_t i = 0; i < n_counts; i++)
        gg_bytes_store32le(p + 4 * (n_sums + i),
                           gg_bytes_swap32(gg_bytes_load32le(counts + 4 * i)));
    e->owned = true;
    return GGUF_OK;
}

/* ---------------------------------------------------------- older form --- */

static enum gguf_status read_i32(struct gg_cursor *c, uint32_t *v,
                                 const char *what, struct gguf_error *err)
{
    uint64_t at = c->off;
    GG_TRY(gg_cursor_u32(c, v, what, err));
    if (*v > INT32_MAX)
        return gg_error_set(err, GGUF_E_FORMAT, at,
                            "%s at byte %" PRIu64 " is %" PRId64
                            ", must be a number from 0 up",
                            what, at, (int64_t)*v - (INT64_C(1) << 32));
    return GGUF_OK;
}

static enum gguf_status read_text(struct gg_cursor *c, struct gguf_str *out,
                                  const char *what, struct gguf_error *err)
{
    uint32_t n;
    const uint8_t *p = NULL;
    uint64_t at = c->off;
    GG_TRY(read_i32(c, &n, what, err));
    if (n > 65535)
        return gg_error_set(err, GGUF_E_LIMIT, at,
                            "%s at byte %" PRIu64 " has %" PRIu32
                            " bytes, limit is 65535",
                            what, at, n);
    GG_TRY(gg_cursor_take(c, n, &p, what, err));
    if (n && memchr(p, 0, n))
        return gg_error_set(err, GGUF_E_FORMAT, at,
                            "%s at byte %" PRIu64 " has a NUL byte", what, at);
    *out = (struct gguf_str){ (const char *)p, n };
    return GGUF_OK;
}

static enum gguf_status read_old_entry(struct gguf_imatrix *im,
                                       struct gg_cursor *c,
                                       struct gg_index *names,
                                       struct gguf_error *err)
{
    struct gguf_str name;
    struct gg_imatrix_entry *e;
    struct gg_str_esc esc;
    uint32_t n_calls, n, other;
    const uint8_t *p = NULL;
    uint64_t at = c->off;
    GG_TRY(read_text(c, &name, "a name", err));
    GG_TRY(read_i32(c, &n_calls, "a number of calls", err));
    GG_TRY(read_i32(c, &n, "a number of values", err));
    if (!name.size || !n)
        return gg_error_set(err, GGUF_E_FORMAT, at,
                            "the entry at byte %" PRIu64 " is empty", at);
    GG_TRY(gg_cursor_take(c, (uint64_t)n * 4, &p, "values", err));
    if (!n_calls)
        return gg_error_set(err, GGUF_E_FORMAT, at,
                            "'%s' has 0 calls: nothing was counted",
                            gg_str_esc(&esc, name));
    GG_TRY(gg_imatrix_append(im, name, &e, err));
    GG_TRY(gg_index_add(names, (uint32_t)im->n_entries - 1, &other, err));
    if (other != GG_INDEX_NONE)
        return gg_error_set(err, GGUF_E_DUPLICATE, at, "'%s' is there twice",
                            gg_str_esc(&esc, name));
    e->n_values = e->n_cols = n;
    e->n_calls = n_calls;
    GG_TRY(take_values(im, e, c->swap, p, n, NULL, 0, err));
    return check_values(e->sums, n, c->off - (uint64_t)n * 4, name, "value",
                        true, err);
}

static bool can_hold(const struct gg_cursor *c, uint32_t n_entries)
{
    return n_entries && n_entries <= gg_cursor_left(c) / 12;
}

static struct gguf_str entry_name(const void *user, uint32_t id)
{
    return gg_str_z(((const struct gguf_imatrix *)user)->entries[id]->name);
}

static enum gguf_status read_old_entries(struct gguf_imatrix *im,
                                         struct gg_cursor *c, uint32_t n,
                                         struct gguf_error *err)
{
    struct gg_index names; /* where they lie in the file */
    GG_TRY(gg_index_init(&names, im->allocator, 0, entry_name, im, err));
    enum gguf_status st = GGUF_OK;
    for (uint32_t i = 0; i < n && st == GGUF_OK; i++)
        st = read_old_entry(im, c, &names, err);
    gg_index_fini(&names);
    return st;
}

static enum gguf_status read_old(struct gguf_imatrix *im,
                                 struct gguf_error *err)
{
    struct gg_cursor c = { .base = im->map.data, .size = im->map.size };
    struct gguf_str text;
    uint32_t n, v;
    const char *is = gg_foreign_format_name(im->map.data, im->map.size,
                                            GG_FOREIGN_BUT_NONE);
    if (is)
        return gg_error_set(err, GGUF_E_FORMAT, 0,
                            "neither GGUF nor importance data; it looks like "
                            "%s",
                            is);
    GG_TRY(gg_cursor_u32(&c, &n, "the number of entries", err));
    if (!can_hold(&c, n) && can_hold(&c, gg_bytes_swap32(n))) {
        c.swap = true;
        n = gg_bytes_swap32(n);
    }
    if (!can_hold(&c, n))
        return gg_error_set(err, GGUF_E_FORMAT, 0,
                            "neither GGUF nor importance data: %" PRIu32
                            " entries in %" PRIu64 " bytes",
                            n, im->map.size);
    GG_TRY(read_old_entries(im, &c, n, err));
    if (!gg_cursor_left(&c))
        return GGUF_OK;
    GG_TRY(read_i32(&c, &v, "the number of chunks", err));
    im->n_chunks = v;
    if (!gg_cursor_left(&c))
        return GGUF_OK;
    GG_TRY(read_text(&c, &text, "the name of the text", err));
    return text.size ? gg_imatrix_add_dataset(im, text, err) : GGUF_OK;
}

/* ---------------------------------------------------------------- GGUF --- */

/* The tensor that is called like t, with another suffix. */
static const struct gguf_tensor_info *
find_other(const struct gguf_file *f, const struct gguf_tensor_info *t,
           const char *has, const char *wants)
{
    char name[NAME_SIZE];
    struct gguf_str stem = { t->name.data, t->name.size - strlen(has) };
    return gg_str_join(name, sizeof name, stem, wants)
               ? gguf_file_tensor_find(f, name)
               : NULL;
}

/* The values of t, which lie at p. */
static enum gguf_status check_tensor(const struct gguf_file *f,
                                     const struct gguf_tensor_info *t,
                                     const uint8_t *p, const char *what,
                                     bool sums, struct gguf_error *err)
{
    const struct gguf_file *shard = gguf_file_shard(f, t->shard);
    return check_values(p, t->n_elements, gguf_file_data_off(shard) + t->off,
                        t->name, what, sums, err);
}

static bool is_zero(const uint8_t *floats, uint64_t n)
{
    for (uint64_t i = 0; i < 4 * n; i++)
        if (floats[i] & (i % 4 == 3 ? 0x7f : 0xff))
            return false;
    return true;
}

static enum gguf_status read_tensor(struct gguf_imatrix *im,
                                    const struct gguf_tensor_info *t,
                                    struct gguf_error *err)
{
    struct gg_imatrix_entry *e;
    struct gg_str_esc esc;
    if (t->name.size >= NAME_SIZE)
        return gg_error_set(
            err, GGUF_E_LIMIT, t->info_off, "'%s' has %zu bytes, limit is %d",
            gg_str_esc(&esc, t->name), t->name.size, NAME_SIZE - 1);
    if (gg_str_ends(t->name, counts_suffix) &&
        !find_other(im->file, t, counts_suffix, sums_suffix))
        return gg_error_set(err, GGUF_E_MISMATCH, t->info_off,
                            "'%s' has no sums", gg_str_esc(&esc, t->name));
    if (!gg_str_ends(t->name, sums_suffix))
        return GGUF_OK;
    struct gguf_str base = { t->name.data,
                             t->name.size - (sizeof sums_suffix - 1) };
    const struct gguf_tensor_info *counts =
        find_other(im->file, t, sums_suffix, counts_suffix);
    if (!base.size || !counts ||
        counts->n_elements * (uint64_t)t->ne[0] != t->n_elements ||
        !t->n_elements)
        return gg_error_set(err, GGUF_E_MISMATCH, t->info_off,
                            "'%s' has no counts of its shape",
                            gg_str_esc(&esc, t->name));
    if (t->dtype != GGUF_DTYPE_F32 || counts->dtype != GGUF_DTYPE_F32)
        return gg_error_set(err, GGUF_E_TYPE, t->info_off, "'%s' is not F32",
                            gg_str_esc(&esc, t->name));
    GG_TRY(gg_imatrix_append(im, base, &e, err));
    e->n_values = t->n_elements;
    e->n_cols = (uint64_t)t->ne[0];
    e->n_mats = counts->n_elements;
    GG_TRY(take_values(im, e, gguf_file_is_big_endian(im->file),
                       gguf_file_tensor_data(im->file, t->index),
                       t->n_elements,
                       gguf_file_tensor_data(im->file, counts->index),
                       counts->n_elements, err));
    GG_TRY(check_tensor(im->file, t, e->sums, "sum", true, err));
    GG_TRY(check_tensor(im->file, counts, e->counts, "count", false, err));
    if (is_zero(e->counts, counts->n_elements))
        return gg_error_set(err, GGUF_E_FORMAT, counts->info_off,
                            "'%s' counted nothing",
                            gg_str_esc(&esc, counts->name));
    return GGUF_OK;
}

static enum gguf_status read_gguf(struct gguf_imatrix *im,
                                  struct gguf_error *err)
{
    const struct gguf_kv *kv = gguf_file_kv_find(im->file, "general.type");
    struct gguf_str type = GG_STR("missing"), text;
    struct gguf_kv_iter it;
    struct gg_str_esc e;
    (void)gguf_kv_get_str(kv, &type, NULL);
    if (!gg_str_eqz(type, "imatrix"))
        return gg_error_set(err, GGUF_E_NOTFOUND, kv ? kv->off : 0,
                            "the file has no importance data: general.type "
                            "is '%s', must be 'imatrix'; gguf-imatrix makes "
                            "such files",
                            gg_str_esc(&e, type));
    kv = gguf_file_kv_find(im->file, "imatrix.chunk_count");
    if (kv)
        GG_TRY(gguf_kv_get_uint(kv, &im->n_chunks, err));
    kv = gguf_file_kv_find(im->file, "imatrix.chunk_size");
    if (kv)
        GG_TRY(gguf_kv_get_uint(kv, &im->chunk_size, err));
    kv = gguf_file_kv_find(im->file, PRECISION);
    if (kv && gguf_kv_get_str(kv, &text, NULL) == GGUF_OK &&
        !(text.size && memchr(text.data, 0, text.size)))
        GG_TRY(gg_imatrix_note_precision(im, text, err));
    kv = gguf_file_kv_find(im->file, "imatrix.datasets");
    if (kv)
        GG_TRY(gguf_kv_check_array(kv, GGUF_VAL_STR, err));
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_next_str(&it, &text))
        if (text.size && !memchr(text.data, 0, text.size))
            GG_TRY(gg_imatrix_add_dataset(im, text, err));
    for (size_t i = 0; i < gguf_file_n_tensors(im->file); i++)
        GG_TRY(read_tensor(im, gguf_file_tensor(im->file, i), err));
    return im->n_entries
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_NOTFOUND, 0, "there are no entries");
}

static enum gguf_status open_gguf(struct gguf_imatrix *im, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err)
{
    struct gguf_file_params fp = *params;
    struct gguf_limits limits = GGUF_LIMITS_INIT;
    GG_TRY(
        gg_params_take(&limits, sizeof limits, fp.limits, "gguf_limits", err));
    /* names of tensors, of the usual limit, have a suffix here */
    if (limits.max_name_size < 128)
        limits.max_name_size = 128;
    fp.limits = &limits;
    return gguf_file_open(&im->file, path, &fp, err);
}

/* Read the file at path, of either form, or the set that path names as a folder
 * or a prefix. */
static enum gguf_status read_path(struct gguf_imatrix *im, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err)
{
    struct gguf_error why = { .status = GGUF_OK };
    const enum gguf_status st = gg_mapfile_open(&im->map, path, 0, 0, &why);
    if (st != GGUF_OK && why.sys_errno != ENOENT && why.sys_errno != EISDIR) {
        if (err)
            *err = why;
        return st;
    }
    if (st == GGUF_OK &&
        (im->map.size < 4 || memcmp(im->map.data, "GGUF", 4) != 0))
        return read_old(im, err);
    gg_mapfile_close(&im->map);
    GG_TRY(open_gguf(im, path, params, err));
    return read_gguf(im, err);
}

enum gguf_status gguf_imatrix_load(struct gguf_imatrix **out, const char *path,
                                   const struct gguf_file_params *params,
                                   struct gguf_error *err)
{
    struct gguf_file_params fp = GGUF_FILE_PARAMS_INIT;
    struct gguf_imatrix *im;
    *out = NULL;
    GG_TRY(gg_file_params_take(&fp, params, err));
    GG_TRY(gguf_imatrix_create(&im, fp.allocator, err));
    enum gguf_status st = read_path(im, path, &fp, err);
    gg_imatrix_sort(im);
    if (st != GGUF_OK) {
        gguf_imatrix_destroy(im);
        return st;
    }
    *out = im;
    return GGUF_OK;
}

/* ------------------------------------------------------------- writing --- */

static float load_float(const uint8_t *floats, uint64_t i)
{
    return gg_bytes_f32_from_bits(gg_bytes_load32le(floats + 4 * i));
}

static enum gguf_status put_u32(struct gg_outfile *o, uint64_t v,
                                struct gguf_error *err)
{
    uint8_t b[4];
    gg_bytes_store32le(b, (uint32_t)GG_MIN(v, INT32_MAX));
    return gg_outfile_write(o, b, 4, err);
}

static enum gguf_status put_text(struct gg_outfile *o, const char *text,
                                 struct gguf_error *err)
{
    GG_TRY(put_u32(o, strlen(text), err));
    return gg_outfile_write(o, text, strlen(text), err);
}

static enum gguf_status put_entry(struct gg_outfile *o,
                                  const struct gguf_imatrix *im,
                                  const struct gg_imatrix_entry *e,
                                  struct gguf_error *err)
{
    uint64_t size = im->chunk_size ? im->chunk_size : 1;
    float most = 0;
    for (uint64_t k = 0; k < e->n_mats; k++)
        most = GG_MAX(most, load_float(e->counts, k));
    uint64_t n_calls = e->n_calls;
    struct gg_str_esc esc;
    if (e->counts) { /* means do not depend on it */
        n_calls =
            most < 0x1p53f ? ((uint64_t)most + size - 1) / size : INT32_MAX;
        n_calls = GG_MAX(GG_MIN(n_calls, INT32_MAX), 1);
    }
    if (e->n_values > INT32_MAX || n_calls > INT32_MAX)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "'%s': %" PRIu64 " values of %" PRIu64
                            " calls, of "
                            "both the older form has %" PRId32 " at most",
                            gg_str_esc(&esc, gg_str_z(e->name)), e->n_values,
                            n_calls, INT32_MAX);
    GG_TRY(put_text(o, e->name, err));
    GG_TRY(put_u32(o, n_calls, err));
    GG_TRY(put_u32(o, e->n_values, err));
    if (!e->counts)
        return gg_outfile_write(o, e->sums, 4 * e->n_values, err);
    for (uint64_t k = 0; k < e->n_values; k++) {
        float count = load_float(e->counts, k / e->n_cols);
        float mean = count > 0 ? load_float(e->sums, k) / count : 1;
        uint8_t b[4];
        gg_imatrix_store(b, mean * (float)n_calls);
        GG_TRY(gg_outfile_write(o, b, 4, err));
    }
    return GGUF_OK;
}

static enum gguf_status save_old(const struct gguf_imatrix *im,
                                 const char *path, bool force,
                                 struct gguf_error *err)
{
    struct gg_outfile o = { .fd = -1 };
    const char *text = im->n_datasets ? im->datasets[im->n_datasets - 1] : "";
    GG_TRY(gg_outfile_open(&o, im->allocator, path, force, err));
    enum gguf_status st = put_u32(&o, im->n_entries, err);
    for (size_t i = 0; st == GGUF_OK && i < im->n_entries; i++)
        st = put_entry(&o, im, im->entries[i], err);
    if (st == GGUF_OK)
        st = put_u32(&o, im->n_chunks, err);
    if (st == GGUF_OK)
        st = put_text(&o, text, err);
    if (st == GGUF_OK)
        st = gg_imatrix_check(im, err);
    if (st == GGUF_OK)
        return gg_outfile_commit(&o, err);
    gg_outfile_abort(&o);
    return st;
}

static enum gguf_status make_meta(const struct gguf_imatrix *im,
                                  struct gguf_meta *m, struct gguf_error *err)
{
    struct gguf_str *texts =
        gg_mem_alloc_zero(im->allocator, im->n_datasets, sizeof *texts);
    if (!texts)
        return gg_error_set_nomem(err, im->n_datasets * sizeof *texts);
    for (size_t i = 0; i < im->n_datasets; i++)
        texts[i] = gg_str_z(im->datasets[i]);
    enum gguf_status st =
        gguf_meta_set_strz(m, "general.type", "imatrix", err);
    if (st == GGUF_OK)
        st = gguf_meta_set_str_array(m, "imatrix.datasets", texts,
                                     im->n_datasets, err);
    gg_mem_free(im->allocator, texts);
    if (st == GGUF_OK)
        st =
            gguf_meta_set_u32(m, "imatrix.chunk_count",
                              (uint32_t)GG_MIN(im->n_chunks, UINT32_MAX), err);
    uint64_t size = im->chunk_size ? im->chunk_size : 1;
    if (st == GGUF_OK)
        st = gguf_meta_set_u32(m, "imatrix.chunk_size",
                               (uint32_t)GG_MIN(size, UINT32_MAX), err);
    if (st == GGUF_OK && im->precision)
        st = gguf_meta_set_strz(m, PRECISION, im->precision, err);
    return st;
}

static enum gguf_status plan_entry(struct gguf_writer *w,
                                   const struct gg_imatrix_entry *e,
                                   struct gguf_error *err)
{
    struct gguf_tensor_info t = { .dtype = GGUF_DTYPE_F32,
                                  .n_dims = 2,
                                  .ne = { 1, 1, 1, 1, 1, 1, 1, 1 } };
    char name[NAME_SIZE];
    uint64_t n_mats = GG_MAX(e->n_mats, 1);
    size_t n = strlen(e->name);
    if (!gg_str_join(name, sizeof name, gg_str_z(e->name), sums_suffix))
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "a name of %zu bytes, limit is %zu", n,
                            sizeof name - sizeof sums_suffix);
    t.name = gg_str_z(name);
    t.ne[0] = (int64_t)e->n_cols;
    t.ne[1] = (int64_t)n_mats;
    t.n_elements = e->n_values;
    t.size = 4 * e->n_values;
    t.n_dims = n_mats > 1 ? 2 : 1;
    GG_TRY(gguf_writer_add_like(w, &t, err));
    memcpy(name + n, counts_suffix, sizeof counts_suffix);
    t.name = gg_str_z(name);
    t.ne[0] = 1;
    t.n_elements = n_mats;
    t.size = 4 * n_mats;
    return gguf_writer_add_like(w, &t, err);
}

/* n floats times factor. */
static enum gguf_status write_scaled(struct gguf_writer *w,
                                     const uint8_t *floats, uint64_t n,
                                     float factor, struct gguf_error *err)
{
    uint8_t b[4096];
    for (uint64_t k, at = 0; at < n; at += k) {
        k = GG_MIN(n - at, sizeof b / 4);
        for (uint64_t i = 0; i < k; i++)
            gg_imatrix_store(b + 4 * i, load_float(floats, at + i) * factor);
        GG_TRY(gguf_writer_write(w, b, 4 * k, err));
    }
    return GGUF_OK;
}

/* An entry of the older form: calls of as many tokens as chunks have. */
static enum gguf_status write_old(const struct gguf_imatrix *im,
                                  struct gguf_writer *w, size_t i,
                                  struct gguf_error *err)
{
    const struct gg_imatrix_entry *e = im->entries[i];
    float size = im->chunk_size ? (float)im->chunk_size : 1;
    uint8_t calls[4];
    gg_bytes_store32le(calls, gg_bytes_f32_bits((float)e->n_calls));
    GG_TRY(gguf_writer_begin(w, 2 * i, err));
    GG_TRY(write_scaled(w, e->sums, e->n_values, size, err));
    GG_TRY(gguf_writer_begin(w, 2 * i + 1, err));
    return write_scaled(w, calls, 1, size, err);
}

static enum gguf_status write_entries(const struct gguf_imatrix *im,
                                      struct gguf_writer *w, const char *path,
                                      bool force, struct gguf_error *err)
{
    struct gguf_output_params p = GGUF_OUTPUT_PARAMS_INIT;
    p.force = force;
    for (size_t i = 0; i < im->n_entries; i++)
        GG_TRY(plan_entry(w, im->entries[i], err));
    GG_TRY(gguf_writer_open(w, path, &p, err));
    for (size_t i = 0; i < im->n_entries; i++) {
        const struct gg_imatrix_entry *e = im->entries[i];
        if (!e->counts) {
            GG_TRY(write_old(im, w, i, err));
            continue;
        }
        GG_TRY(gguf_writer_begin(w, 2 * i, err));
        GG_TRY(gguf_writer_write(w, e->sums, 4 * e->n_values, err));
        GG_TRY(gguf_writer_begin(w, 2 * i + 1, err));
        GG_TRY(gguf_writer_write(w, e->counts, 4 * e->n_mats, err));
    }
    GG_TRY(gg_imatrix_check(im, err));
    return gguf_writer_commit(w, err);
}

static enum gguf_status save_gguf(const struct gguf_imatrix *im,
                                  const char *path, bool force,
                                  struct gguf_error *err)
{
    struct gguf_writer_params wp = GGUF_WRITER_PARAMS_INIT;
    struct gguf_meta *m;
    struct gguf_writer *w = NULL;
    wp.allocator = im->allocator;
    GG_TRY(gguf_meta_create(&m, im->allocator, err));
    enum gguf_status st = make_meta(im, m, err);
    if (st == GGUF_OK)
        st = gguf_writer_create(&w, m, &wp, err);
    if (st == GGUF_OK)
        st = write_entries(im, w, path, force, err);
    gguf_writer_destroy(w);
    gguf_meta_destroy(m);
    return st;
}

enum gguf_status gguf_imatrix_save(const struct gguf_imatrix *im,
                                   const char *path,
                                   enum gguf_imatrix_form form, int force,
                                   struct gguf_error *err)
{
    return form == GGUF_IMATRIX_DAT ? save_old(im, path, force != 0, err)
                                    : save_gguf(im, path, force != 0, err);
}
