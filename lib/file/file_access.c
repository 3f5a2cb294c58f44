/* SPDX-License-Identifier: MIT */
/* file_access.c - accessors of an open file or set of shards */
#include "config.h"
#include "file/file_int.h"
#include "base/str.h"
#include "dtype/byte_order.h"

const char *gguf_file_path(const struct gguf_file *f)
{
    return f->path;
}

uint32_t gguf_file_version(const struct gguf_file *f)
{
    return f->version;
}

bool gguf_file_is_big_endian(const struct gguf_file *f)
{
    return f->big_endian;
}

uint32_t gguf_file_alignment(const struct gguf_file *f)
{
    return f->align;
}

uint64_t gguf_file_size(const struct gguf_file *f)
{
    uint64_t n = f->map.size;
    for (unsigned i = 0; i < f->n_shards; i++)
        n += f->shard[i]->map.size;
    return n;
}

uint64_t gguf_file_header_end(const struct gguf_file *f)
{
    return f->header_end;
}

uint64_t gguf_file_data_off(const struct gguf_file *f)
{
    return f->data_off;
}

uint64_t gguf_file_data_end(const struct gguf_file *f)
{
    return f->data_end;
}

const void *gguf_file_bytes(const struct gguf_file *f)
{
    return gguf_file_shard(f, 0)->map.data;
}

size_t gguf_file_n_shards(const struct gguf_file *f)
{
    return f->shard ? f->n_shards : 1;
}

const struct gguf_file *gguf_file_shard(const struct gguf_file *f, size_t i)
{
    if (!f->shard)
        return i ? NULL : f;
    return i < f->n_shards ? f->shard[i] : NULL;
}

bool gguf_file_is_split(const struct gguf_file *f)
{
    uint64_t count = 0;
    const struct gguf_kv *kv = gguf_file_kv_find(f, "split.count");
    return kv && (gguf_kv_get_uint(kv, &count, NULL) != GGUF_OK || count);
}

size_t gguf_file_n_kv(const struct gguf_file *f)
{
    return f->n_kv;
}

const struct gguf_kv *gguf_file_kv(const struct gguf_file *f, size_t i)
{
    return i < f->n_kv ? &f->kv[i] : NULL;
}

const struct gguf_kv *gguf_file_kv_find(const struct gguf_file *f,
                                        const char *key)
{
    uint32_t id = gg_index_find(&f->kv_index, gg_str_z(key));
    return id == GG_INDEX_NONE ? NULL : &f->kv[id];
}

enum gguf_status gguf_file_kv_get(const struct gguf_file *f, const char *key,
                                  const struct gguf_kv **out,
                                  struct gguf_error *err)
{
    struct gg_str_esc e;
    *out = gguf_file_kv_find(f, key);
    if (*out)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET, "no key '%s'",
                        gg_str_esc(&e, gg_str_z(key)));
}

size_t gguf_file_n_tensors(const struct gguf_file *f)
{
    return f->n_tensors;
}

const struct gguf_tensor_info *gguf_file_tensor(const struct gguf_file *f,
                                                size_t i)
{
    return i < f->n_tensors ? &f->tensor[i] : NULL;
}

const struct gguf_tensor_info *gguf_file_tensor_find(const struct gguf_file *f,
                                                     const char *name)
{
    uint32_t id = gg_index_find(&f->tensor_index, gg_str_z(name));
    return id == GG_INDEX_NONE ? NULL : &f->tensor[id];
}

const struct gguf_tensor_info *
gguf_file_tensor_by_offset(const struct gguf_file *f, size_t i)
{
    if (i >= f->n_tensors)
        return NULL;
    const struct gguf_file *of = gg_file_of_tensor(f, &i);
    const size_t first = f->shard ? of->first_in_set : 0;
    return &f->tensor[first + of->places[i].index];
}

const void *gguf_file_tensor_data(const struct gguf_file *f, size_t i)
{
    if (i >= f->n_tensors)
        return NULL;
    f = gg_file_of_tensor(f, &i);
    return f->map.read ? NULL : gg_file_tensor_at(f, i);
}

bool gg_file_tensor_is_swapped(const struct gguf_file *f, size_t i)
{
    const int type = gg_dtype_index(f->tensor[i].dtype);
    return type >= 0 && gg_byte_order_is_known(type) &&
           gg_byte_order_differs(type, f->big_endian);
}

bool gg_file_tensor_in_place(const struct gguf_file *f, size_t i)
{
    const uint32_t dtype = f->tensor[i].dtype;
    return !gg_file_tensor_is_swapped(f, i) &&
           ((dtype != GGUF_DTYPE_F32 && dtype != GGUF_DTYPE_I32) ||
            (uintptr_t)gguf_file_tensor_data(f, i) % sizeof(float) == 0);
}

void gguf_file_advise_tensor(const struct gguf_file *f, size_t i, uint64_t off,
                             uint64_t size, enum gguf_advice advice)
{
    static const enum gg_mapfile_advice how[] = {
        [GGUF_ADVICE_SEQUENTIAL] = GG_ADVISE_SEQUENTIAL,
        [GGUF_ADVICE_WILLNEED] = GG_ADVISE_WILLNEED,
        [GGUF_ADVICE_DONTNEED] = GG_ADVISE_DONTNEED,
    };
    if (i >= f->n_tensors || off > f->tensor[i].size ||
        (size_t)advice >= GG_LEN(how))
        return;
    size = GG_MIN(size, f->tensor[i].size - off);
    f = gg_file_of_tensor(f, &i);
    gg_mapfile_advise(&f->map, f->data_off + f->tensor[i].off + off, size,
                      how[advice]);
}

enum gguf_status gg_file_read_tensor(const struct gguf_file *f, size_t i,
                                     uint64_t off, uint64_t size, void *dst,
                                     struct gguf_error *err)
{
    f = gg_file_of_tensor(f, &i);
    return gg_mapfile_read(&f->map, f->data_off + f->tensor[i].off + off,
                           (size_t)size, dst, err);
}
