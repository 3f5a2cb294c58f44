/* SPDX-License-Identifier: MIT */
/* writer.c - the plan of a file: metadata, tensors, offsets, header */
#include "config.h"
#include "file/header.h"
#include "file/limits.h"
#include "file/name.h"
#include "file/value.h"
#include "file/writer_int.h"
#include "base/params.h"
#include "base/str.h"

static struct gguf_str tensor_name(const void *user, uint32_t id)
{
    const struct gguf_writer *w = user;
    return w->tensor[id].name;
}

static enum gguf_status encode_meta(struct gguf_writer *w,
                                    const struct gguf_meta *meta,
                                    struct gguf_error *err)
{
    uint64_t size = 0, one;
    size_t n = meta ? gguf_meta_n_kv(meta) : 0;
    for (size_t i = 0; i < n; i++)
        if (gg_kv_encoded_size(gguf_meta_kv(meta, i), &one) ||
            gg_ckd_add(&size, size, one) || gg_ckd_exceeds_cap(size))
            return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                                "the metadata does not fit 63 bits");
    w->n_kv = n;
    w->kv_bytes =
        size > PTRDIFF_MAX ? NULL : gg_mem_alloc(w->allocator, (size_t)size);
    if (!w->kv_bytes)
        return gg_error_set_nomem(err, (size_t)size);
    for (size_t i = 0; i < n; i++) {
        const struct gguf_kv *kv = gguf_meta_kv(meta, i);
        gg_kv_encode(kv, w->big_endian, w->kv_bytes + w->kv_size);
        (void)gg_kv_encoded_size(kv, &one); /* cannot overflow: see above */
        w->kv_size += (size_t)one;
    }
    GG_TRY(gg_file_align_from_kv(
        meta ? gguf_meta_find(meta, "general.alignment") : NULL, &w->align,
        err));
    if (w->align > GGUF_WRITER_MAX_ALIGNMENT)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "general.alignment is %" PRIu32
                            ", limit is %" PRIu32,
                            w->align, GGUF_WRITER_MAX_ALIGNMENT);
    return GGUF_OK;
}

static enum gguf_status check_params(const struct gguf_writer_params *params,
                                     struct gguf_writer_params *p,
                                     struct gguf_error *err)
{
    *p = (struct gguf_writer_params)GGUF_INIT(struct gguf_writer_params);
    GG_TRY(gg_params_take(p, sizeof *p, params, "gguf_writer_params", err));
    if (!p->version)
        p->version = 3;
    if (p->version != 3 && (p->version != 2 || p->big_endian))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "GGUF version %" PRIu32 "%s is not written",
                            p->version, p->big_endian ? ", big-endian," : "");
    return GGUF_OK;
}

enum gguf_status gguf_writer_create(struct gguf_writer **out,
                                    const struct gguf_meta *meta,
                                    const struct gguf_writer_params *params,
                                    struct gguf_error *err)
{
    struct gguf_writer_params p;
    *out = NULL;
    GG_TRY(check_params(params, &p, err));
    struct gguf_writer *w = gg_mem_alloc_zero(p.allocator, 1, sizeof *w);
    if (!w)
        return gg_error_set_nomem(err, sizeof *w);
    w->allocator = p.allocator;
    w->version = p.version;
    w->big_endian = p.big_endian;
    gg_mem_arena_init(&w->arena, p.allocator);
    enum gguf_status st = encode_meta(w, meta, err);
    if (st == GGUF_OK)
        st = gg_index_init(&w->index, p.allocator, 64, tensor_name, w, err);
    if (st != GGUF_OK) {
        gguf_writer_destroy(w);
        return st;
    }
    *out = w;
    return GGUF_OK;
}

void gguf_writer_destroy(struct gguf_writer *w)
{
    if (!w)
        return;
    gg_outfile_abort(&w->out);
    gg_index_fini(&w->index);
    gg_mem_free(w->allocator, (void *)w->done);
    gg_mem_free(w->allocator, w->inputs);
    gg_mem_free(w->allocator, w->header);
    gg_mem_free(w->allocator, w->tensor);
    gg_mem_free(w->allocator, w->kv_bytes);
    gg_mem_arena_fini(&w->arena);
    gg_mem_free(w->allocator, w);
}

static enum gguf_status grow_tensors(struct gguf_writer *w,
                                     struct gguf_error *err)
{
    if (w->n_tensors < w->room)
        return GGUF_OK;
    void *grown = gg_mem_grow(w->allocator, w->tensor, &w->room,
                              sizeof *w->tensor, 64, err);
    if (!grown)
        return GGUF_E_NOMEM;
    w->tensor = grown;
    return GGUF_OK;
}

/* Append t, whose name, type, dimensions and size are valid. */
static enum gguf_status append_tensor(struct gguf_writer *w,
                                      struct gguf_tensor_info *t,
                                      struct gguf_error *err)
{
    struct gg_str_esc e;
    uint64_t data = w->data_size, infos, file;
    GG_TRY(gg_file_layout_append(t, &data, w->align, err));
    infos = w->infos_size + gg_tensor_info_encoded_size(t);
    if (gg_file_align_up(&file, GG_HEAD_SIZE + w->kv_size + infos, w->align) ||
        gg_ckd_add(&file, file, data) || gg_ckd_exceeds_cap(file))
        return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                            "tensor '%s': the file does not fit 63 bits",
                            gg_str_esc(&e, t->name));
    GG_TRY(grow_tensors(w, err));
    const char *name =
        gg_mem_arena_strndup(&w->arena, t->name.data, t->name.size);
    if (!name)
        return gg_error_set_nomem(err, t->name.size);
    t->name.data = name;
    t->index = (uint32_t)w->n_tensors;
    t->info_off = GGUF_NO_OFFSET;
    w->tensor[w->n_tensors] = *t;
    uint32_t other;
    GG_TRY(gg_index_add(&w->index, t->index, &other, err));
    if (other != GG_INDEX_NONE)
        return gg_error_set(err, GGUF_E_DUPLICATE, GGUF_NO_OFFSET,
                            "the plan has a tensor '%s' already",
                            gg_str_esc(&e, t->name));
    w->n_tensors++;
    w->infos_size = infos;
    w->data_size = data;
    gg_mem_free(w->allocator, w->header);
    w->header = NULL;
    return GGUF_OK;
}

static enum gguf_status check_new(const struct gguf_writer *w,
                                  struct gguf_str name, unsigned n_dims,
                                  unsigned max_dims, struct gguf_error *err)
{
    const struct gguf_limits *limits = &gg_limits_default;
    struct gg_str_esc e;
    const char *fault = gg_name_find_fault(name);
    if (w->state != GG_PLANNING)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "tensor '%s' is added after the file was begun",
                            gg_str_esc(&e, name));
    if (fault)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "tensor name '%s' %s", gg_str_esc(&e, name),
                            fault);
    if (name.size > limits->max_name_size && max_dims == limits->max_dims)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "tensor name '%s' of %zu bytes, limit is %" PRIu64,
                            gg_str_esc(&e, name), name.size,
                            limits->max_name_size);
    if (n_dims > max_dims)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "tensor '%s': %u dimensions, limit is %u",
                            gg_str_esc(&e, name), n_dims, max_dims);
    return GGUF_OK;
}

enum gguf_status gguf_writer_add_tensor(struct gguf_writer *w,
                                        struct gguf_str name, uint32_t dtype,
                                        unsigned n_dims, const int64_t *ne,
                                        struct gguf_error *err)
{
    struct gg_str_esc e;
    GG_TRY(check_new(w, name, n_dims, gg_limits_default.max_dims, err));
    struct gguf_tensor_info t = { .name = name,
                                  .dtype = dtype,
                                  .n_dims = n_dims };
    for (unsigned d = 0; d < n_dims; d++) {
        if (ne[d] <= 0)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "tensor '%s': dimension %u is %" PRId64,
                                gg_str_esc(&e, name), d, ne[d]);
        t.ne[d] = ne[d];
    }
    GG_TRY(gg_file_tensor_measure(&t, GGUF_NO_OFFSET, err));
    if (t.size_inferred)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "tensor '%s': the size of type %" PRIu32
                            " is not known",
                            gg_str_esc(&e, name), dtype);
    return append_tensor(w, &t, err);
}

enum gguf_status gguf_writer_add_like(struct gguf_writer *w,
                                      const struct gguf_tensor_info *like,
                                      struct gguf_error *err)
{
    GG_TRY(check_new(w, like->name, like->n_dims, GGUF_MAX_DIMS, err));
    struct gguf_tensor_info t = *like;
    return append_tensor(w, &t, err);
}

size_t gguf_writer_n_tensors(const struct gguf_writer *w)
{
    return w->n_tensors;
}

const struct gguf_tensor_info *gguf_writer_tensor(const struct gguf_writer *w,
                                                  size_t i)
{
    return i < w->n_tensors ? &w->tensor[i] : NULL;
}

uint32_t gguf_writer_alignment(const struct gguf_writer *w)
{
    return w->align;
}

uint64_t gguf_writer_data_off(const struct gguf_writer *w)
{
    uint64_t off;
    uint64_t end = GG_HEAD_SIZE + w->kv_size + w->infos_size;
    return gg_file_align_up(&off, end, w->align) ? UINT64_MAX : off;
}

uint64_t gguf_writer_file_size(const struct gguf_writer *w)
{
    return gguf_writer_data_off(w) + w->data_size;
}

enum gguf_status gguf_writer_header(struct gguf_writer *w, const void **data,
                                    size_t *size, struct gguf_error *err)
{
    if (!w->header) {
        uint64_t n = gguf_writer_data_off(w);
        uint8_t *p = gg_mem_alloc_zero(w->allocator, n, 1);
        if (!p)
            return gg_error_set_nomem(err, (size_t)n);
        w->header = p;
        w->header_size = (size_t)n;
        struct gg_file_head h = { w->version, w->n_tensors, w->n_kv };
        gg_file_head_encode(&h, w->big_endian, p);
        p += GG_HEAD_SIZE;
        memcpy(p, w->kv_bytes, w->kv_size);
        p += w->kv_size;
        for (size_t i = 0; i < w->n_tensors; i++) {
            gg_tensor_info_encode(&w->tensor[i], w->big_endian, p);
            p += gg_tensor_info_encoded_size(&w->tensor[i]);
        }
    }
    *data = w->header;
    *size = w->header_size;
    return GGUF_OK;
}
