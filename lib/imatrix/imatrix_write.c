/* SPDX-License-Identifier: MIT */
/* imatrix_write.c - write importance files of both forms
 *
 * imatrix_read.c describes the older form.
 */
#include "config.h"
#include "imatrix/imatrix_int.h"
#include "imatrix/imatrix_names.h"
#include "base/bytes.h"
#include "base/outfile_int.h"
#include "base/params.h"
#include "base/str.h"
#include "file/file_int.h"
#include "gguf/writer.h"

#include <string.h>

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
    if (e->counts) { /* the means are the same for any number of calls */
        n_calls =
            most < 0x1p53f ? ((uint64_t)most + size - 1) / size : INT32_MAX;
        n_calls = GG_MAX(GG_MIN(n_calls, INT32_MAX), 1);
    }
    if (e->n_values > INT32_MAX || n_calls > INT32_MAX)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "'%s': %" PRIu64 " values, %" PRIu64
                            " calls; the older form holds %" PRId32
                            " of each at most",
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
        gg_imatrix_store_float(b, mean * (float)n_calls);
        GG_TRY(gg_outfile_write(o, b, 4, err));
    }
    return GGUF_OK;
}

static enum gguf_status save_dat(const struct gguf_imatrix *im,
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
        st = gg_imatrix_check_file(im, err);
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
        st = gguf_meta_set_strz(m, GG_IMATRIX_PRECISION, im->precision, err);
    if (st == GGUF_OK)
        st = gg_imatrix_set_sensitivities(im, m, err);
    return st;
}

static enum gguf_status plan_entry(struct gguf_writer *w,
                                   const struct gg_imatrix_entry *e,
                                   struct gguf_error *err)
{
    struct gguf_tensor_info t = { .dtype = GGUF_DTYPE_F32,
                                  .n_dims = 2,
                                  .ne = { 1, 1, 1, 1, 1, 1, 1, 1 } };
    char name[GG_IMATRIX_NAME];
    uint64_t n_mats = GG_MAX(e->n_mats, 1);
    size_t n = strlen(e->name);
    if (!gg_str_join(name, sizeof name, gg_str_z(e->name), GG_IMATRIX_SUMS))
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "a name of %zu bytes, limit is %zu", n,
                            sizeof name - sizeof GG_IMATRIX_SUMS);
    t.name = gg_str_z(name);
    t.ne[0] = (int64_t)e->n_cols;
    t.ne[1] = (int64_t)n_mats;
    t.n_elements = e->n_values;
    t.size = 4 * e->n_values;
    t.n_dims = n_mats > 1 ? 2 : 1;
    GG_TRY(gguf_writer_add_like(w, &t, err));
    memcpy(name + n, GG_IMATRIX_COUNTS, sizeof GG_IMATRIX_COUNTS);
    t.name = gg_str_z(name);
    t.ne[0] = 1;
    t.n_elements = n_mats;
    t.size = 4 * n_mats;
    return gguf_writer_add_like(w, &t, err);
}

/* Write n floats multiplied by factor. */
static enum gguf_status write_scaled(struct gguf_writer *w,
                                     const uint8_t *floats, uint64_t n,
                                     float factor, struct gguf_error *err)
{
    uint8_t b[4096];
    for (uint64_t k, at = 0; at < n; at += k) {
        k = GG_MIN(n - at, sizeof b / 4);
        for (uint64_t i = 0; i < k; i++)
            gg_imatrix_store_float(b + 4 * i,
                                   load_float(floats, at + i) * factor);
        GG_TRY(gguf_writer_write(w, b, 4 * k, err));
    }
    return GGUF_OK;
}

/* Write an entry of the older form: each call counts as the tokens of a
 * chunk. */
static enum gguf_status write_dat_entry(const struct gguf_imatrix *im,
                                        struct gguf_writer *w, size_t i,
                                        struct gguf_error *err)
{
    const struct gg_imatrix_entry *e = im->entries[i];
    float size = im->chunk_size ? (float)im->chunk_size : 1;
    uint8_t calls[4];
    gg_bytes_store32le(calls, gg_bytes_f32_bits((float)e->n_calls));
    GG_TRY(gguf_writer_begin_tensor(w, 2 * i, err));
    GG_TRY(write_scaled(w, e->sums, e->n_values, size, err));
    GG_TRY(gguf_writer_begin_tensor(w, 2 * i + 1, err));
    return write_scaled(w, calls, 1, size, err);
}

static enum gguf_status write_entries(const struct gguf_imatrix *im,
                                      struct gguf_writer *w, const char *path,
                                      bool force, struct gguf_error *err)
{
    struct gguf_output_params p = GGUF_INIT(struct gguf_output_params);
    p.force = force;
    for (size_t i = 0; i < im->n_entries; i++)
        GG_TRY(plan_entry(w, im->entries[i], err));
    GG_TRY(gguf_writer_begin_file(w, path, &p, err));
    for (size_t i = 0; i < im->n_entries; i++) {
        const struct gg_imatrix_entry *e = im->entries[i];
        if (!e->counts) {
            GG_TRY(write_dat_entry(im, w, i, err));
            continue;
        }
        GG_TRY(gguf_writer_begin_tensor(w, 2 * i, err));
        GG_TRY(gguf_writer_write(w, e->sums, 4 * e->n_values, err));
        GG_TRY(gguf_writer_begin_tensor(w, 2 * i + 1, err));
        GG_TRY(gguf_writer_write(w, e->counts, 4 * e->n_mats, err));
    }
    GG_TRY(gg_imatrix_check_file(im, err));
    return gguf_writer_commit(w, err);
}

static enum gguf_status save_gguf(const struct gguf_imatrix *im,
                                  const char *path, bool force,
                                  struct gguf_error *err)
{
    struct gguf_writer_params wp = GGUF_INIT(struct gguf_writer_params);
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
                                   enum gguf_imatrix_form form, bool force,
                                   struct gguf_error *err)
{
    return form == GGUF_IMATRIX_DAT ? save_dat(im, path, force, err)
                                    : save_gguf(im, path, force, err);
}
