/* SPDX-License-Identifier: MIT */
/* imatrix_read.c - read importance files of both forms
 *
 * The older form, in the byte order of the machine that wrote it: i32 entries;
 * for each i32 length, name, i32 calls, i32 values, f32 per value (mean square
 * * calls); then optionally i32 chunks, i32 length, name of the text. Only the
 * number of entries shows the byte order: the file must be long enough to hold
 * all entries.
 */
#include "config.h"
#include "imatrix/imatrix_int.h"
#include "imatrix/imatrix_names.h"
#include "base/bytes.h"
#include "base/cursor.h"
#include "base/outfile_int.h"
#include "base/params.h"
#include "base/str.h"
#include "base/foreign_format.h"
#include "file/file_int.h"
#include "file/limits.h"
#include "gguf/writer.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* Check that sums of squares and counts are not negative. Counts must be
 * finite. Some sums may be NaN or infinite, and are replaced from the others
 * when they are used; if all are, the data are useless. off is the byte of the
 * first value. */
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

/* Set the values of an entry: pointers into the file or, for a big-endian file,
 * a swapped copy. counts may be NULL. */
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
    if (!gg_ckd_array(&size, n_sums + n_counts,
                      4)) /* cannot overflow: both are
                           * in a file */
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

static enum gguf_status read_dat_entry(struct gguf_imatrix *im,
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
        return gg_error_set(err, GGUF_E_DUPLICATE, at, "duplicate entry '%s'",
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

static enum gguf_status read_dat_entries(struct gguf_imatrix *im,
                                         struct gg_cursor *c, uint32_t n,
                                         struct gguf_error *err)
{
    struct gg_index names; /* names of entries, in file order */
    GG_TRY(gg_index_init(&names, im->allocator, 0, entry_name, im, err));
    enum gguf_status st = GGUF_OK;
    for (uint32_t i = 0; i < n && st == GGUF_OK; i++)
        st = read_dat_entry(im, c, &names, err);
    gg_index_fini(&names);
    return st;
}

static enum gguf_status read_dat(struct gguf_imatrix *im,
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
    GG_TRY(read_dat_entries(im, &c, n, err));
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

/* Find the tensor with the name of t and another suffix. */
static const struct gguf_tensor_info *
find_other(const struct gguf_file *f, const struct gguf_tensor_info *t,
           const char *has, const char *wants)
{
    char name[GG_IMATRIX_NAME];
    struct gguf_str stem = { t->name.data, t->name.size - strlen(has) };
    return gg_str_join(name, sizeof name, stem, wants)
               ? gguf_file_tensor_find(f, name)
               : NULL;
}

/* Check the values of t, which are at p. */
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
    if (t->name.size >= GG_IMATRIX_NAME)
        return gg_error_set(
            err, GGUF_E_LIMIT, t->info_off, "'%s' has %zu bytes, limit is %d",
            gg_str_esc(&esc, t->name), t->name.size, GG_IMATRIX_NAME - 1);
    if (gg_str_ends(t->name, GG_IMATRIX_COUNTS) &&
        !find_other(im->file, t, GG_IMATRIX_COUNTS, GG_IMATRIX_SUMS))
        return gg_error_set(err, GGUF_E_MISMATCH, t->info_off,
                            "'%s' has no sums", gg_str_esc(&esc, t->name));
    if (!gg_str_ends(t->name, GG_IMATRIX_SUMS))
        return GGUF_OK;
    struct gguf_str base = { t->name.data,
                             t->name.size - (sizeof GG_IMATRIX_SUMS - 1) };
    const struct gguf_tensor_info *counts =
        find_other(im->file, t, GG_IMATRIX_SUMS, GG_IMATRIX_COUNTS);
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
                            "'%s': all counts are 0",
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
    if (gguf_kv_get_str(kv, &type, NULL) != GGUF_OK ||
        !gg_str_eqz(type, "imatrix"))
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
    kv = gguf_file_kv_find(im->file, GG_IMATRIX_PRECISION);
    if (kv && gguf_kv_get_str(kv, &text, NULL) == GGUF_OK &&
        !(text.size && memchr(text.data, 0, text.size)))
        GG_TRY(gg_imatrix_set_precision(im, text, err));
    kv = gguf_file_kv_find(im->file, "imatrix.datasets");
    if (kv)
        GG_TRY(gguf_kv_check_array(kv, GGUF_VAL_STR, err));
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_iter_next_str(&it, &text))
        if (text.size && !memchr(text.data, 0, text.size))
            GG_TRY(gg_imatrix_add_dataset(im, text, err));
    GG_TRY(gg_imatrix_read_sensitivities(im, im->file, err));
    for (size_t i = 0; i < gguf_file_n_tensors(im->file); i++)
        GG_TRY(read_tensor(im, gguf_file_tensor(im->file, i), err));
    return im->n_entries ? GGUF_OK
                         : gg_error_set(err, GGUF_E_NOTFOUND, 0,
                                        "the file has no entries");
}

static enum gguf_status open_gguf(struct gguf_imatrix *im, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err)
{
    struct gguf_file_params fp = *params;
    struct gguf_limits limits;
    GG_TRY(gg_limits_resolve(&limits, fp.limits, err));
    /* room for the suffixes of tensor names with the usual limit */
    if (limits.max_name_size < 128)
        limits.max_name_size = 128;
    fp.limits = &limits;
    return gguf_file_open(&im->file, path, &fp, err);
}

/* Read the file at path, in either form, or the set that path names as a folder
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
        return read_dat(im, err);
    gg_mapfile_close(&im->map);
    GG_TRY(open_gguf(im, path, params, err));
    return read_gguf(im, err);
}

enum gguf_status gguf_imatrix_load(struct gguf_imatrix **out, const char *path,
                                   const struct gguf_file_params *params,
                                   struct gguf_error *err)
{
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
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
