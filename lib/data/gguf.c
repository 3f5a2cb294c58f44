/* SPDX-License-Identifier: MIT */
/* gguf.c - the tensors of a GGUF file, or of a split set, as a list */
#include "config.h"
#include "data/gguf.h"
#include "base/str.h"
#include "file/file.h"
#include "file/split.h"

#include <math.h>
#include <string.h>

static const struct gg_data_gguf *self(const struct gg_data *d)
{
    return (const struct gg_data_gguf *)d;
}

/* ---- scales ---- */

bool gg_data_scale_name(const struct gguf_tensor_info *t, const char *suffix,
                        char name[GG_SCALE_NAME])
{
    static const char weight[] = ".weight";
    struct gguf_str stem = t->name;
    if (t->dtype != GGUF_DTYPE_NVFP4 || !gg_str_ends(stem, weight))
        return false;
    stem.size -= sizeof weight - 1;
    return gg_str_join(name, GG_SCALE_NAME, stem, suffix);
}

/* Multiply what is read from s, which is tensor t, by the tensor scale of
 * file. */
static enum gguf_status set_scale(struct gg_stored *s,
                                  const struct gguf_tensor_info *t,
                                  const struct gguf_file *file,
                                  const struct gguf_tensor_info *scale,
                                  struct gguf_error *err)
{
    struct gg_str_esc e;
    uint64_t n = scale->n_elements;
    uint64_t n_mat = t->n_elements / ((uint64_t)t->ne[0] * (uint64_t)t->ne[1]);
    if (scale->dtype != GGUF_DTYPE_F32 || (n != 1 && n != n_mat))
        return gg_error_set(err, GGUF_E_TENSOR, scale->info_off,
                            "tensor '%s' must be F32 of 1 or %" PRIu64
                            " elements, a scale of each matrix: it is of type "
                            "%" PRIu32 ", %" PRIu64 " elements",
                            gg_str_esc(&e, scale->name), n_mat, scale->dtype,
                            n);
    GG_TRY(gg_file_fetch(file, scale->index, 0, scale->size, err));
    s->scale = gg_file_tensor_at(file, scale->index);
    s->per_scale = t->n_elements / n;
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(gg_stored_scale(s, i)))
            return gg_error_set(err, GGUF_E_TENSOR, scale->info_off,
                                "tensor '%s': scale %" PRIu64 " is not finite",
                                gg_str_esc(&e, scale->name), i);
    return GGUF_OK;
}

/* One file of several does not know what is in the others. */
static enum gguf_status check_whole(const struct gguf_file *file,
                                    const struct gguf_tensor_info *t,
                                    struct gguf_error *err)
{
    uint64_t count;
    struct gg_str_esc e;
    const struct gguf_kv *kv =
        gguf_file_kv_find(file, gg_file_split_keys[GG_SPLIT_COUNT]);
    if (kv && gguf_kv_get_uint(kv, &count, NULL) == GGUF_OK && count > 1)
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, t->info_off,
            "tensor '%s': its scale is not in this file of %" PRIu64
            ", it may be in another: merge them first",
            gg_str_esc(&e, t->name), count);
    return GGUF_OK;
}

static enum gguf_status find_scale(const struct gg_data_gguf *d,
                                   struct gg_stored *s,
                                   const struct gguf_split_tensor *t,
                                   struct gguf_error *err)
{
    char name[GG_SCALE_NAME];
    size_t i;
    if (!gg_data_scale_name(t->info, ".scale", name))
        return GGUF_OK;
    if (!gg_source_find(&d->from, name, &i))
        return d->from.set ? GGUF_OK : check_whole(t->file, t->info, err);
    const struct gguf_split_tensor scale = gg_source_tensor(&d->from, i);
    return set_scale(s, t->info, scale.file, scale.info, err);
}

/* ---- the list ---- */

static size_t n_tensors(const struct gg_data *d)
{
    return gg_source_n_tensors(&self(d)->from);
}

static void info(const struct gg_data *d, size_t i, struct gg_data_info *out)
{
    const struct gguf_tensor_info *t =
        gg_source_tensor(&self(d)->from, i).info;
    *out = (struct gg_data_info){ .name = t->name,
                                  .dtype = t->dtype,
                                  .n_dims = t->n_dims,
                                  .n_elements = t->n_elements,
                                  .size = t->size,
                                  .info_off = t->info_off };
    memcpy(out->ne, t->ne, sizeof out->ne);
}

static void read_stored(const struct gg_data_rows *r, uint64_t first,
                        uint64_t n, float *dst)
{
    gg_stored_read(&r->stored, first, n, dst);
}

static enum gguf_status rows(const struct gg_data *d, size_t i,
                             struct gg_data_rows *out, struct gguf_error *err)
{
    const struct gg_data_gguf *g = self(d);
    const struct gguf_split_tensor from = gg_source_tensor(&g->from, i);
    const struct gguf_tensor_info *t = from.info;
    struct gg_str_esc e;
    uint64_t ne0 = (uint64_t)t->ne[0];
    *out = (struct gg_data_rows){ .read = read_stored };
    if (!g->fetched)
        GG_TRY(gg_file_in_memory(from.file, err));
    if (t->size_inferred ||
        !gg_stored_init(&out->stored, g->codec, t->dtype,
                        gg_file_tensor_at(from.file, t->index), ne0,
                        t->size / (t->n_elements / ne0),
                        gguf_file_is_big_endian(from.file)))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, t->info_off,
                            "tensor '%s': type %" PRIu32 " is not decoded",
                            gg_str_esc(&e, t->name), t->dtype);
    return g->scaled ? find_scale(g, &out->stored, &from, err) : GGUF_OK;
}

static const uint8_t *bytes(const struct gg_data *d, size_t i)
{
    const struct gguf_split_tensor t = gg_source_tensor(&self(d)->from, i);
    return gguf_file_tensor_data(t.file, t.info->index);
}

void gg_data_gguf_init(struct gg_data_gguf *d, const struct gg_source *from,
                       const struct gg_codec_kern *codec, bool scaled)
{
    static const struct gg_data_ops ops = {
        .n_tensors = n_tensors, .info = info, .rows = rows, .bytes = bytes
    };
    *d = (struct gg_data_gguf){ { &ops }, *from, codec, scaled, false };
}
