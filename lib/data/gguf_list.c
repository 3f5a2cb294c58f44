/* SPDX-License-Identifier: MIT */
/* gguf_list.c - tensors of a GGUF file or a split set as a list */
#include "config.h"
#include "data/gguf_list.h"
#include "base/compiler.h"
#include "base/str.h"
#include "dtype/interleave.h"
#include "file/file_int.h"
#include "file/shard_set.h"

#include <math.h>
#include <string.h>

static const struct gg_data_gguf *as_gguf(const struct gg_data *d)
{
    return (const struct gg_data_gguf *)d;
}

/* ---- scales ---- */

bool gg_data_scale_name(struct gguf_str weight, uint32_t dtype,
                        const char *suffix, char name[GG_SCALE_NAME])
{
    static const char end[] = ".weight";
    struct gguf_str stem = weight;
    if (dtype != GGUF_DTYPE_NVFP4 || !gg_str_ends(stem, end))
        return false;
    stem.size -= sizeof end - 1;
    return gg_str_join(name, GG_SCALE_NAME, stem, suffix);
}

/* Hold bytes of a tensor in memory, or release them. */
static enum gguf_status hold_bytes(const struct gg_data_gguf *d,
                                   const struct gg_file_shard_tensor *t,
                                   uint64_t off, uint64_t size, bool begin,
                                   struct gguf_error *err)
{
    struct gg_resident *h = d->held ? &d->held[t->file_no] : NULL;
    if (!h || !h->map)
        return GGUF_OK;
    off += gguf_file_data_off(t->file) + t->info->off;
    if (begin)
        return gg_resident_hold(h, off, size, err);
    gg_resident_release(h, off, size);
    return GGUF_OK;
}

/* Multiply the elements read through s, tensor t, by the scale tensor from. */
static enum gguf_status set_scale(const struct gg_data_gguf *d,
                                  struct gg_stored *s,
                                  const struct gguf_tensor_info *t,
                                  const struct gg_file_shard_tensor *from,
                                  struct gguf_error *err)
{
    const struct gguf_tensor_info *scale = from->info;
    struct gg_str_esc e;
    uint64_t n = scale->n_elements;
    uint64_t n_mat = t->n_elements / ((uint64_t)t->ne[0] * (uint64_t)t->ne[1]);
    if (scale->dtype != GGUF_DTYPE_F32 || (n != 1 && n != n_mat))
        return gg_error_set(err, GGUF_E_TENSOR, scale->info_off,
                            "tensor '%s' must be F32 with 1 or %" PRIu64
                            " elements, a scale for each matrix: it has "
                            "type %" PRIu32 ", %" PRIu64 " elements",
                            gg_str_esc(&e, scale->name), n_mat, scale->dtype,
                            n);
    GG_TRY(hold_bytes(d, from, 0, scale->size, true, err));
    s->scale = gg_file_tensor_at(from->file, scale->index);
    s->per_scale = t->n_elements / n;
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(gg_stored_scale(s, i)))
            return gg_error_set(err, GGUF_E_TENSOR, scale->info_off,
                                "tensor '%s': scale %" PRIu64 " is not finite",
                                gg_str_esc(&e, scale->name), i);
    return GGUF_OK;
}

/* Refuse a single shard, whose scales may be in another one. */
static enum gguf_status check_whole(const struct gguf_file *file,
                                    const struct gguf_tensor_info *t,
                                    struct gguf_error *err)
{
    uint64_t count;
    struct gg_str_esc e;
    const struct gguf_kv *kv =
        gguf_file_kv_find(file, gg_file_split_keys[GG_SPLIT_COUNT]);
    if (kv && gguf_kv_get_uint(kv, &count, NULL) == GGUF_OK && count > 1)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, t->info_off,
                            "tensor '%s': its scale may be in another of "
                            "the %" PRIu64 " files: merge them first",
                            gg_str_esc(&e, t->name), count);
    return GGUF_OK;
}

static enum gguf_status find_scale(const struct gg_data_gguf *d,
                                   struct gg_stored *s,
                                   const struct gg_file_shard_tensor *t,
                                   struct gguf_error *err)
{
    char name[GG_SCALE_NAME];
    size_t i;
    if (!gg_data_scale_name(t->info->name, t->info->dtype, ".scale", name))
        return GGUF_OK;
    if (!gg_source_find(&d->from, name, &i))
        return gguf_file_n_shards(d->from.file) > 1
                   ? GGUF_OK
                   : check_whole(t->file, t->info, err);
    const struct gg_file_shard_tensor scale = gg_source_tensor(&d->from, i);
    return set_scale(d, s, t->info, &scale, err);
}

bool gg_data_gguf_is_scale(const struct gg_data_gguf *d, size_t i)
{
    static const char scale[] = ".scale";
    struct gguf_str stem = gg_source_tensor(&d->from, i).info->name;
    char name[GG_SCALE_NAME];
    size_t of;
    if (!gg_str_ends(stem, scale))
        return false;
    stem.size -= sizeof scale - 1;
    return gg_str_join(name, sizeof name, stem, ".weight") &&
           gg_source_find(&d->from, name, &of) &&
           gg_source_tensor(&d->from, of).info->dtype == GGUF_DTYPE_NVFP4;
}

/* ---- the list ---- */

static size_t n_tensors(const struct gg_data *d)
{
    return gg_source_n_tensors(&as_gguf(d)->from);
}

static void tensor_info(const struct gg_data *d, size_t i,
                        struct gg_data_info *out)
{
    const struct gg_file_shard_tensor from =
        gg_source_tensor(&as_gguf(d)->from, i);
    const struct gguf_tensor_info *t = from.info;
    *out = (struct gg_data_info){
        .name = t->name,
        .dtype = t->dtype,
        .n_dims = t->n_dims,
        .n_elements = t->n_elements,
        .size = t->size,
        .info_off = t->info_off,
        .off = gguf_file_data_off(from.file) + t->off,
        .file_no = from.file_no,
        .big_endian = gguf_file_is_big_endian(from.file),
        .size_inferred = t->size_inferred,
    };
    memcpy(out->ne, t->ne, sizeof out->ne);
}

static void read_stored(const struct gg_data_rows *r, uint64_t first,
                        uint64_t n, float *dst)
{
    gg_stored_read(&r->stored, first, n, dst);
}

static enum gguf_status prepare_rows(const struct gg_data *d, size_t i,
                                     struct gg_data_rows *out,
                                     struct gguf_error *err)
{
    const struct gg_data_gguf *g = as_gguf(d);
    const struct gg_file_shard_tensor from = gg_source_tensor(&g->from, i);
    const struct gguf_tensor_info *t = from.info;
    struct gg_str_esc e;
    uint64_t ne0 = (uint64_t)t->ne[0];
    *out = (struct gg_data_rows){ .read = read_stored };
    if (!t->n_elements)
        return GGUF_OK;
    if (!g->held)
        GG_TRY(gg_file_require_memory(from.file, err));
    const int type = gg_dtype_index(t->dtype);
    const unsigned rows = type < 0 ? 1 : gg_interleave_rows(type);
    if (t->ne[1] % (int64_t)rows)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, t->info_off,
                            "tensor '%s': %" PRId64
                            " rows, must be a multiple of %u, which %s stores "
                            "together",
                            gg_str_esc(&e, t->name), t->ne[1], rows,
                            gg_dtype_by_index(type)->name);
    if (t->size_inferred && type >= 0)
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, t->info_off,
            "tensor '%s' has type %" PRIu32 ", but not the size of %s",
            gg_str_esc(&e, t->name), t->dtype, gg_dtype_by_index(type)->name);
    if (t->size_inferred ||
        !gg_stored_init(&out->stored, g->codec, t->dtype,
                        gg_file_tensor_at(from.file, t->index), ne0,
                        t->size / (t->n_elements / ne0),
                        gguf_file_is_big_endian(from.file)))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, t->info_off,
                            "tensor '%s': type %" PRIu32 " cannot be decoded",
                            gg_str_esc(&e, t->name), t->dtype);
    return g->scaled ? find_scale(g, &out->stored, &from, err) : GGUF_OK;
}

static const uint8_t *stored_bytes(const struct gg_data *d, size_t i)
{
    const struct gg_file_shard_tensor t =
        gg_source_tensor(&as_gguf(d)->from, i);
    return as_gguf(d)->held ? gg_file_tensor_at(t.file, t.info->index)
                            : gguf_file_tensor_data(t.file, t.info->index);
}

static bool input_file(const struct gg_data *d, size_t i,
                       struct gg_data_file *out)
{
    const struct gg_source *from = &as_gguf(d)->from;
    if (i >= gg_source_n_files(from))
        return false;
    const struct gguf_file *f = gg_source_file(from, i);
    *out = (struct gg_data_file){ &f->map, f->path,
                                  GG_MIN(f->data_off, f->map.size) };
    return true;
}

/* Find the bytes of elements first to first + n. */
static void find_bytes(const struct gguf_tensor_info *t, uint64_t first,
                       uint64_t n, uint64_t *off, uint64_t *size)
{
    uint64_t len;
    const uint64_t unit =
        gg_data_block_size(t->dtype, (uint64_t)t->ne[0], &len);
    *off = unit ? first / len * unit : 0;
    *size = unit ? (first + n + len - 1) / len * unit - *off : 0;
}

static void advise_pages(const struct gg_data *d, size_t i, uint64_t first,
                         uint64_t n, enum gg_mapfile_advice how)
{
    const struct gg_file_shard_tensor t =
        gg_source_tensor(&as_gguf(d)->from, i);
    uint64_t off, size;
    find_bytes(t.info, first, n, &off, &size);
    gg_mapfile_advise(&t.file->map,
                      gguf_file_data_off(t.file) + t.info->off + off, size,
                      how);
}

static enum gguf_status hold_elements(const struct gg_data *d, size_t i,
                                      uint64_t first, uint64_t n, bool begin,
                                      struct gguf_error *err)
{
    const struct gg_data_gguf *g = as_gguf(d);
    const struct gg_file_shard_tensor t = gg_source_tensor(&g->from, i);
    uint64_t off, size;
    find_bytes(t.info, first, n, &off, &size);
    return hold_bytes(g, &t, off, size, begin, err);
}

enum gguf_status
gg_data_gguf_allow_readers(struct gg_data_gguf *d,
                           const struct gguf_allocator *allocator,
                           struct gguf_error *err)
{
    const size_t n = gg_source_n_files(&d->from);
    d->held = gg_mem_alloc_zero(allocator, n, sizeof *d->held);
    if (!d->held)
        return gg_error_set_nomem(err, n * sizeof *d->held);
    for (size_t i = 0; i < n; i++) {
        const struct gguf_file *f = gg_source_file(&d->from, i);
        if (!f->map.read)
            continue;
        GG_TRY(gg_resident_init(&d->held[i], &f->map, allocator, err));
        gg_resident_pin(&d->held[i], gguf_file_header_end(f));
    }
    return GGUF_OK;
}

void gg_data_gguf_fini(struct gg_data_gguf *d,
                       const struct gguf_allocator *allocator)
{
    for (size_t i = 0; d->held && i < gg_source_n_files(&d->from); i++)
        gg_resident_fini(&d->held[i]);
    gg_mem_free(allocator, d->held);
    d->held = NULL;
}

void gg_data_gguf_init(struct gg_data_gguf *d, const struct gg_source *from,
                       const struct gg_codec_kern *codec, bool scaled)
{
    static const struct gg_data_ops ops = { .n_tensors = n_tensors,
                                            .info = tensor_info,
                                            .rows = prepare_rows,
                                            .bytes = stored_bytes,
                                            .file = input_file,
                                            .advise = advise_pages,
                                            .hold = hold_elements };
    *d = (struct gg_data_gguf){ { &ops }, *from, codec, scaled, NULL };
}
