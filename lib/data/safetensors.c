/* SPDX-License-Identifier: MIT */
/* safetensors.c - tensors of a Hugging Face folder as a list */
#include "config.h"
#include "data/safetensors.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/str.h"
#include "data/nibbles.h"
#include "data/packed.h"
#include "data/tiled.h"
#include "file/limits.h"

#include <stdio.h>
#include <string.h>

/* Bytes that Linux maps around a page fault. */
#define AROUND (UINT64_C(1) << 16)

/* Elements from which a table of all 256 values of a byte pays. */
enum { MANY = 512 };

static const struct gg_safetensors *as_safetensors(const struct gg_data *d)
{
    return (const struct gg_safetensors *)d;
}

/* ---- the list ---- */

static size_t n_tensors(const struct gg_data *d)
{
    return as_safetensors(d)->n_tensors;
}

static void tensor_info(const struct gg_data *d, size_t i,
                        struct gg_data_info *out)
{
    const struct gg_safetensors_tensor *t = &as_safetensors(d)->tensor[i];
    *out = (struct gg_data_info){ .name = t->name,
                                  .dtype = t->type->dtype,
                                  .n_dims = t->n_dims,
                                  .n_elements = t->n_elements,
                                  .size = t->size,
                                  .info_off = GGUF_NO_OFFSET,
                                  .off = GGUF_NO_OFFSET };
    memcpy(out->ne, t->ne, sizeof out->ne);
    if (t->is_index) {
        out->dtype = GGUF_DTYPE_I32;
        out->size = 4 * t->n_elements;
    }
}

static void read_stored(const struct gg_data_rows *r, uint64_t first,
                        uint64_t n, float *dst)
{
    gg_stored_read(&r->stored, first, n, dst);
}

static void read_f8(const struct gg_data_rows *r, uint64_t first, uint64_t n,
                    float *dst)
{
    const struct gg_safetensors_tensor *t = r->source;
    const uint8_t *p = t->data + first;
    float value[256];
    for (uint64_t k = 0; n < MANY && k < n; k++)
        dst[k] = t->type->f8(p[k]);
    if (n < MANY)
        return;
    for (unsigned b = 0; b < GG_LEN(value); b++)
        value[b] = t->type->f8((uint8_t)b);
    for (uint64_t k = 0; k < n; k++)
        dst[k] = value[p[k]];
}

/* Multiply runs of elements that share a scale; a run ends with its row. */
static void read_scaled(const struct gg_data_rows *r, uint64_t first,
                        uint64_t n, float *dst)
{
    const struct gg_safetensors_tensor *t = r->source;
    const struct gg_safetensors_scale *s = t->scale;
    read_f8(r, first, n, dst);
    for (uint64_t k; n; first += k, dst += k, n -= k) {
        uint64_t rest = first, at = 0, stride = 1;
        const uint64_t col = first % (uint64_t)t->ne[0];
        for (size_t d = 0; d < GGUF_MAX_DIMS; d++) {
            const uint64_t ne = (uint64_t)t->ne[d];
            at += rest % ne / s->per[d] * stride;
            rest /= ne;
            stride *= s->n[d];
        }
        k = GG_MIN(s->per[0] - col % s->per[0], (uint64_t)t->ne[0] - col);
        k = GG_MIN(k, n);
        for (uint64_t i = 0; i < k; i++)
            dst[i] *= s->value[at];
    }
}

/* Store the lower 32 bits of each number; those above repeat its sign. */
static void store_index(const struct gg_data_rows *r, uint64_t first,
                        uint64_t n, uint8_t *dst)
{
    const struct gg_safetensors_tensor *t = r->source;
    const unsigned size = t->type->bits / 8;
    for (uint64_t k = 0; k < n; k++)
        memcpy(dst + 4 * k, t->data + (first + k) * size, 4);
}

enum gguf_status gg_safetensors_convert_to_i32(struct gg_safetensors *s,
                                               size_t i,
                                               struct gguf_error *err)
{
    struct gg_safetensors_tensor *t = &s->tensor[i];
    struct gg_str_esc e;
    const uint32_t dtype = t->type->dtype;
    if (!t->data)
        return GGUF_OK;
    if (dtype != GGUF_DTYPE_I32 && dtype != GGUF_DTYPE_I64)
        return gg_error_set(err, GGUF_E_TENSOR, t->off,
                            "tensor '%s': %s are not integers",
                            gg_str_esc(&e, t->name), t->type->name);
    if (dtype == GGUF_DTYPE_I64) {
        uint64_t k = 0;
        GG_TRY(gg_safetensors_hold_all(s, i, true, err));
        while (k < t->n_elements &&
               !((gg_bytes_load64le(t->data + 8 * k) + 0x80000000u) >> 32))
            k++;
        (void)gg_safetensors_hold_all(s, i, false, NULL);
        if (k < t->n_elements)
            return gg_error_set(err, GGUF_E_TENSOR, t->off + 8 * k,
                                "tensor '%s': element %" PRIu64
                                " does not fit 32 bits",
                                gg_str_esc(&e, t->name), k);
    }
    t->is_index = true;
    return GGUF_OK;
}

bool gg_safetensors_unscaled_rows(const struct gg_safetensors *s, size_t i,
                                  struct gg_data_rows *out)
{
    const struct gg_safetensors_tensor *t = &s->tensor[i];
    const uint64_t ne0 = (uint64_t)t->ne[0];
    *out = (struct gg_data_rows){ .read = read_f8, .source = t };
    if (!t->n_elements)
        return false;
    if (t->type->f8)
        return true;
    out->read = read_stored;
    return gg_stored_init(&out->stored, s->codec, t->type->dtype, t->data, ne0,
                          t->size / (t->n_elements / ne0), false);
}

static enum gguf_status prepare_rows(const struct gg_data *d, size_t i,
                                     struct gg_data_rows *out,
                                     struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t = &as_safetensors(d)->tensor[i];
    struct gg_str_esc e;
    if (t->made) {
        *out = t->made->rows;
        return GGUF_OK;
    }
    if (t->packed)
        return gg_packed_rows(as_safetensors(d), i, out, err);
    if (t->nibbles) {
        gg_nibbles_rows(as_safetensors(d), i, out);
        return GGUF_OK;
    }
    if (t->tiled) {
        gg_tiled_rows(as_safetensors(d), i, out);
        return GGUF_OK;
    }
    if (!gg_safetensors_unscaled_rows(as_safetensors(d), i, out))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, t->off,
                            "tensor '%s': %s of %" PRIu64
                            " elements cannot be read as numbers",
                            gg_str_esc(&e, t->name), t->type->name,
                            t->n_elements);
    if (t->scale)
        out->read = read_scaled;
    if (t->is_index)
        out->blocks = store_index;
    return GGUF_OK;
}

static const uint8_t *stored_bytes(const struct gg_data *d, size_t i)
{
    const struct gg_safetensors_tensor *t = &as_safetensors(d)->tensor[i];
    const bool as_it_is =
        !t->made && !t->packed && !t->nibbles && !t->tiled && !t->is_index;
    return t->type->dtype != GG_SAFETENSORS_NO_DTYPE && as_it_is ? t->data
                                                                 : NULL;
}

static bool input_file(const struct gg_data *d, size_t i,
                       struct gg_data_file *out)
{
    const struct gg_safetensors *s = as_safetensors(d);
    if (i < s->n_files)
        *out = (struct gg_data_file){ &s->file[i]->map, s->file[i]->path, 0 };
    return i < s->n_files;
}

/* Pages that the system mapped around a piece are released with it, before and
 * after. A thread that still reads there gets them again. */
void gg_safetensors_advise(const struct gg_safetensors *s, uint32_t file_no,
                           uint64_t off, uint64_t size,
                           enum gg_mapfile_advice how)
{
    if (file_no == UINT32_MAX)
        return;
    const struct gg_safetensors_file *f = s->file[file_no];
    if (how == GG_ADVISE_DONTNEED) {
        const uint64_t before = GG_MIN(off - f->data_off, AROUND);
        off -= before;
        size = GG_MIN(size + before + AROUND, f->map.size - off);
    }
    gg_mapfile_advise(&f->map, off, size, how);
}

/* Elements first to first + n of the tensor that a computed one is made of. */
static void find_made(const struct gg_safetensors_made *m, uint64_t *first,
                      uint64_t *n)
{
    const uint64_t begin = *first / m->width;
    const uint64_t end = (*first + *n + m->width - 1) / m->width;
    *first = begin * m->width_from;
    *n = (end - begin) * m->width_from;
}

static void advise_pages(const struct gg_data *d, size_t i, uint64_t first,
                         uint64_t n, enum gg_mapfile_advice how)
{
    const struct gg_safetensors_tensor *t = &as_safetensors(d)->tensor[i];
    if (t->made) {
        find_made(t->made, &first, &n);
        t = &as_safetensors(d)->tensor[i = t->made->from];
    }
    const uint64_t bits = t->type->bits;
    if (t->nibbles)
        gg_nibbles_advise(as_safetensors(d), i, first, n, how);
    else if (t->tiled)
        gg_tiled_advise(as_safetensors(d), i, first, n, how);
    else if (t->packed)
        gg_packed_advise(as_safetensors(d), i, first, n, how);
    else
        gg_safetensors_advise(as_safetensors(d), t->file_no,
                              t->off + first * bits / 8, n * bits / 8, how);
}

enum gguf_status gg_safetensors_hold(const struct gg_safetensors *s,
                                     uint32_t file_no, uint64_t off,
                                     uint64_t size, bool begin,
                                     struct gguf_error *err)
{
    struct gg_safetensors_file *f =
        file_no == UINT32_MAX ? NULL : s->file[file_no];
    if (!f || !f->map.read)
        return GGUF_OK;
    if (begin)
        return gg_safetensors_name_file(
            f->name, gg_resident_hold(&f->held, off, size, err), err);
    gg_resident_release(&f->held, off, size);
    return GGUF_OK;
}

enum gguf_status gg_safetensors_hold_all(const struct gg_safetensors *s,
                                         size_t i, bool begin,
                                         struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t = &s->tensor[i];
    return gg_safetensors_hold(s, t->file_no, t->off, t->size, begin, err);
}

static enum gguf_status hold_elements(const struct gg_data *d, size_t i,
                                      uint64_t first, uint64_t n, bool begin,
                                      struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t = &as_safetensors(d)->tensor[i];
    if (t->made) {
        find_made(t->made, &first, &n);
        t = &as_safetensors(d)->tensor[i = t->made->from];
    }
    const uint64_t bits = t->type->bits;
    if (t->packed)
        return gg_packed_hold(as_safetensors(d), i, first, n, begin, err);
    if (t->nibbles)
        return gg_nibbles_hold(as_safetensors(d), i, first, n, begin, err);
    if (t->tiled)
        return gg_tiled_hold(as_safetensors(d), i, first, n, begin, err);
    return gg_safetensors_hold(as_safetensors(d), t->file_no,
                               t->off + first * bits / 8, n * bits / 8, begin,
                               err);
}

/* ---- all of it ---- */

static struct gguf_str name_of(const void *user, uint32_t id)
{
    const struct gg_safetensors *s = user;
    return s->tensor[id].name;
}

static enum gguf_status read_memory(struct gg_safetensors *s, const void *data,
                                    size_t size, struct gguf_error *err)
{
    struct gg_safetensors_file *f = gg_safetensors_reserve_file(s, err);
    if (!f)
        return GGUF_E_NOMEM;
    GG_TRY(gg_mapfile_open_memory(&f->map, data, size, 0, size, err));
    return gg_safetensors_read_header(s, 0, err);
}

static enum gguf_status
create_list(struct gg_safetensors **out, const struct gg_dir *folder,
            const char *name, const void *data, size_t size,
            const struct gguf_limits *limits,
            const struct gg_codec_kern *codec,
            const struct gguf_allocator *allocator, struct gguf_error *err)
{
    static const struct gg_data_ops ops = { n_tensors,    tensor_info,
                                            prepare_rows, stored_bytes,
                                            input_file,   advise_pages,
                                            hold_elements };
    struct gguf_limits resolved;
    *out = NULL;
    GG_TRY(gg_limits_resolve(&resolved, limits, err));
    struct gg_safetensors *s = gg_mem_alloc_zero(allocator, 1, sizeof *s);
    if (!s)
        return gg_error_set_nomem(err, sizeof *s);
    s->list.ops = &ops;
    s->allocator = allocator;
    s->codec = codec;
    s->limits = resolved;
    s->block[0] = s->block[1] = 128;
    snprintf(s->single_name, sizeof s->single_name, "%.40s.safetensors", name);
    snprintf(s->index_name, sizeof s->index_name,
             "%.40s.safetensors.index.json", name);
    gg_mem_arena_init(&s->arena, allocator);
    enum gguf_status st =
        gg_index_init(&s->index, allocator, 256, name_of, s, err);
    if (st == GGUF_OK)
        st = folder ? gg_safetensors_read_files(s, folder, err)
             : data ? read_memory(s, data, size, err)
                    : GGUF_OK;
    if (st == GGUF_OK && !folder)
        st = gg_safetensors_scale(s, err);
    if (st != GGUF_OK) {
        gg_safetensors_close(s);
        return st;
    }
    *out = s;
    return GGUF_OK;
}

enum gguf_status
gg_safetensors_open(struct gg_safetensors **out, const struct gg_dir *folder,
                    const char *name, const struct gguf_limits *limits,
                    const struct gg_codec_kern *codec, struct gguf_error *err)
{
    return create_list(out, folder, name, NULL, 0, limits, codec,
                       folder->allocator, err);
}

enum gguf_status gg_safetensors_open_memory(
    struct gg_safetensors **out, const void *data, size_t size,
    const struct gguf_limits *limits, const struct gg_codec_kern *codec,
    const struct gguf_allocator *allocator, struct gguf_error *err)
{
    return create_list(out, NULL, "", data, size, limits, codec, allocator,
                       err);
}

enum gguf_status gg_safetensors_create(struct gg_safetensors **out,
                                       const struct gg_codec_kern *codec,
                                       const struct gguf_allocator *allocator,
                                       struct gguf_error *err)
{
    return create_list(out, NULL, "", NULL, 0, NULL, codec, allocator, err);
}

void gg_safetensors_close(struct gg_safetensors *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_files; i++) {
        gg_resident_fini(&s->file[i]->held);
        gg_mapfile_close(&s->file[i]->map);
        gg_mem_free(s->allocator, s->file[i]);
    }
    gg_index_fini(&s->index);
    gg_mem_free(s->allocator, s->file);
    gg_mem_free(s->allocator, s->tensor);
    gg_mem_arena_fini(&s->arena);
    gg_mem_free(s->allocator, s);
}

uint32_t gg_safetensors_find(const struct gg_safetensors *s,
                             struct gguf_str name)
{
    return gg_index_find(&s->index, name);
}

struct gg_safetensors_tensor *
gg_safetensors_reserve_tensor(struct gg_safetensors *s, struct gguf_error *err)
{
    if (s->n_tensors == s->room_tensors) {
        void *grown = gg_mem_grow(s->allocator, s->tensor, &s->room_tensors,
                                  sizeof *s->tensor, 64, err);
        if (!grown)
            return NULL;
        s->tensor = grown;
    }
    return &s->tensor[s->n_tensors];
}

enum gguf_status gg_safetensors_add(struct gg_safetensors *s,
                                    struct gguf_str name, const uint8_t *bytes,
                                    size_t n, struct gguf_error *err)
{
    struct gg_str_esc e;
    uint32_t other;
    struct gg_safetensors_tensor *t = gg_safetensors_reserve_tensor(s, err);
    if (!t)
        return GGUF_E_NOMEM;
    *t = (struct gg_safetensors_tensor){
        .name = { gg_mem_arena_strndup(&s->arena, name.data, name.size),
                  name.size },
        .type = gg_safetensors_type(gg_str_z("F32")),
        .n_dims = 1,
        .ne = { (int64_t)n, 1, 1, 1, 1, 1, 1, 1 },
        .n_elements = n,
        .size = 4 * (uint64_t)n,
        .file_no = UINT32_MAX,
        .data = bytes,
    };
    if (!t->name.data)
        return gg_error_set_nomem(err, name.size + 1);
    GG_TRY(gg_index_add(&s->index, (uint32_t)s->n_tensors, &other, err));
    if (other != GG_INDEX_NONE)
        return gg_error_set(err, GGUF_E_DUPLICATE, GGUF_NO_OFFSET,
                            "duplicate tensor '%s'", gg_str_esc(&e, name));
    s->n_tensors++;
    return GGUF_OK;
}

enum gguf_status gg_safetensors_add_integers(struct gg_safetensors *s,
                                             struct gguf_str name,
                                             const uint8_t *bytes, size_t n,
                                             struct gguf_error *err)
{
    GG_TRY(gg_safetensors_add(s, name, bytes, n, err));
    struct gg_safetensors_tensor *t = &s->tensor[s->n_tensors - 1];
    t->type = gg_safetensors_type(gg_str_z("I64"));
    t->size = 8 * (uint64_t)n;
    return GGUF_OK;
}

enum gguf_status gg_safetensors_add_shape(struct gg_safetensors *s,
                                          struct gguf_str name,
                                          unsigned n_dims, const int64_t *ne,
                                          struct gguf_error *err)
{
    GG_TRY(gg_safetensors_add(s, name, NULL, 1, err));
    struct gg_safetensors_tensor *t = &s->tensor[s->n_tensors - 1];
    t->n_dims = n_dims;
    for (unsigned d = 0; d < n_dims; d++) {
        t->ne[d] = ne[d];
        t->n_elements *= (uint64_t)ne[d];
    }
    t->size = 4 * t->n_elements;
    return GGUF_OK;
}
