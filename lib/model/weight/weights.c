/* SPDX-License-Identifier: MIT */
/* weights.c - turn the tensors of a file into weights of a model
 *
 * After all tensors are checked (tensors.h), each is used in the mapping, or
 * copied if that is impossible.
 */
#include "config.h"
#include "model/model_int.h"

#include "base/mem.h"
#include "base/str.h"
#include "dtype/dtype_int.h"
#include "dtype/byte_order.h"
#include "file/file_int.h"
#include "model/weight/rows_apart.h"
#include "model/weight/tensors.h"

#include <stdio.h>
#include <string.h>

/* ---- placing ---- */

/* Bytes that a weight's copy takes. */
static size_t copy_room(const struct gguf_tensor_info *t)
{
    const size_t size = (size_t)gg_rows_apart_size(t);
    return (size + GGUF_TENSOR_ALIGN - 1) & ~(size_t)(GGUF_TENSOR_ALIGN - 1);
}

/* Is a weight used where it lies in the file? */
static bool is_in_place(const struct gg_file_shard_tensor *t)
{
    return !gg_rows_apart_is_needed(t->info) &&
           gg_file_tensor_in_place(t->file, t->info->index);
}

/* Copy a weight's bytes as kernels read them. */
static enum gguf_status copy_weight(const struct gguf_model *m,
                                    const struct gg_file_shard_tensor *from,
                                    uint8_t *copy, struct gguf_error *err)
{
    const struct gguf_tensor_info *info = from->info;
    const size_t size = (size_t)info->size;
    if (gg_rows_apart_is_needed(info))
        return gg_rows_apart_read(from->file, info, copy, m->allocator, err);
    GG_TRY(gg_file_require_memory(from->file, err));
    memcpy(copy, gguf_file_tensor_data(from->file, info->index), size);
    if (gg_file_tensor_is_swapped(from->file, info->index))
        gg_byte_order_swap(gg_dtype_index(info->dtype),
                           info->size /
                               (info->n_elements / (uint64_t)info->ne[0]),
                           0, copy, size);
    return GGUF_OK;
}

static enum gguf_status place_weight(struct gguf_model *m,
                                     struct gguf_tensor *t,
                                     const struct gg_file_shard_tensor *from,
                                     struct gguf_error *err)
{
    if (is_in_place(from))
        return gguf_buffer_place_tensor(
            m->buffer[from->file_no], t,
            gguf_file_data_off(from->file) + from->info->off, err);
    GG_TRY(copy_weight(m, from, (uint8_t *)m->copy + m->copy_used, err));
    GG_TRY(gguf_buffer_place_tensor(m->copy_buffer, t, m->copy_used, err));
    m->copy_used += copy_room(from->info);
    return GGUF_OK;
}

/* Is this a weight that files may have and that no graph uses? */
static bool is_unused_weight(const struct gg_arch *a, enum gg_weight id)
{
    for (const uint16_t *p = a->unused; p && *p; p++)
        if (*p == id)
            return true;
    return id >= GG_W_NEXTN_PROJ && id <= GG_W_NEXTN_NORM;
}

/* The tensor at place i of those of all files is a weight, and was checked. */
static enum gguf_status take_weight(struct gguf_model *m, size_t i,
                                    struct gguf_tensor **slot,
                                    struct gguf_error *err)
{
    const struct gg_file_shard_tensor from = gg_source_tensor(&m->src, i);
    const struct gguf_tensor_info *info = from.info;
    char name[GGUF_TENSOR_NAME];
    struct gguf_tensor *t =
        gguf_tensor_create_4d(m->ctx, gg_rows_apart_dtype(info), info->ne[0],
                              info->ne[1], info->ne[2], info->ne[3]);
    GG_TRY(gguf_ctx_status(m->ctx, err));
    GG_TRY(place_weight(m, t, &from, err));
    /* it is the name of a row, which fits */
    gg_str_join(name, sizeof name, info->name, "");
    *slot = gguf_tensor_set_name(t, name);
    m->used[i] = 1;
    m->of[i] = t;
    m->n_params += info->n_elements;
    m->weight_size += info->size;
    return GGUF_OK;
}

/* Use weight from in place of a missing weight to: embeddings and the output
 * may be one matrix. */
static void share_weight(struct gg_weights *of, enum gg_weight to,
                         enum gg_weight from)
{
    if (of->w[to])
        return;
    of->w[to] = of->w[from];
    of->scale[to] = of->scale[from];
}

static enum gguf_status take_all(struct gguf_model *m,
                                 struct gg_model_lookup *l,
                                 struct gguf_error *err)
{
    for (size_t i = 0; i < gg_source_n_tensors(&m->src); i++) {
        const struct gg_file_shard_tensor from = gg_source_tensor(&m->src, i);
        const struct gguf_str name = from.info->name;
        uint64_t il, other;
        enum gg_weight id = gg_model_lookup(l, name, &il);
        const bool scale = id == GG_W_NONE;
        if (scale && gg_model_lookup_scale(l, name, ".input_scale", &other))
            m->used[i] = 1; /* used; no warning */
        if (scale)
            id = gg_model_lookup_scale(l, name, ".scale", &il);
        if (id == GG_W_NONE || is_unused_weight(m->arch, id) ||
            (gg_weights[id].scope != GG_MODEL && m->hp.layer[il].is_nextn))
            continue;
        struct gg_weights *of =
            gg_weights[id].scope == GG_MODEL ? &m->top : &m->layer[il];
        GG_TRY(gg_source_fail(
            &m->src, from.file_no,
            take_weight(m, i, scale ? &of->scale[id] : &of->w[id], err), err));
    }
    share_weight(&m->top, GG_W_TOKEN_EMBD, GG_W_TOKEN_EMBD_MAYBE);
    share_weight(&m->top, GG_W_TOKEN_EMBD, GG_W_OUTPUT);
    share_weight(&m->top, GG_W_OUTPUT, GG_W_TOKEN_EMBD);
    return GGUF_OK;
}

static void warn_unused(const struct gguf_model *m)
{
    size_t n_unused = 0, first = 0;
    for (size_t i = gg_source_n_tensors(&m->src); i-- > 0;)
        if (!m->used[i]) {
            n_unused++;
            first = i;
        }
    if (!n_unused || !m->warn.fn)
        return;
    char line[256];
    struct gg_str_esc e;
    const char *name =
        gg_str_esc(&e, gg_source_tensor(&m->src, first).info->name);
    if (n_unused == 1)
        snprintf(line, sizeof line, "tensor '%s' is not used by the model",
                 name);
    else
        snprintf(line, sizeof line,
                 "%zu tensors are not used by the model, '%s' is the first",
                 n_unused, name);
    m->warn.fn(m->warn.user, line);
}

/* A buffer round the mapping of each file: read-only, as nothing writes to
 * weights. */
static enum gguf_status wrap_files(struct gguf_model *m,
                                   struct gguf_error *err)
{
    size_t n = gg_source_n_files(&m->src);
    m->buffer =
        gg_mem_alloc_zero(m->allocator, n, sizeof(struct gguf_buffer *));
    if (!m->buffer)
        return gg_error_set_nomem(err, n * sizeof(struct gguf_buffer *));
    for (size_t i = 0; i < n; i++) {
        const struct gguf_file *f = gg_source_file(&m->src, i);
        GG_TRY(gguf_buffer_create_from_host(
            &m->buffer[i], (void *)(uintptr_t)gguf_file_bytes(f),
            (size_t)gguf_file_size(f), m->allocator, err));
        gguf_buffer_set_usage(m->buffer[i], GGUF_USAGE_WEIGHTS);
    }
    return GGUF_OK;
}

/* Memory for copies. */
static enum gguf_status make_copy(struct gguf_model *m, struct gguf_error *err)
{
    for (size_t i = 0; i < gg_source_n_tensors(&m->src); i++) {
        const struct gg_file_shard_tensor t = gg_source_tensor(&m->src, i);
        if (!is_in_place(&t))
            m->copy_size += copy_room(t.info);
    }
    if (!m->copy_size)
        return GGUF_OK;
    m->copy =
        gg_mem_alloc_aligned(m->allocator, m->copy_size, GGUF_TENSOR_ALIGN);
    if (!m->copy)
        return gg_error_set_nomem(err, m->copy_size);
    GG_TRY(gguf_buffer_create_from_host(&m->copy_buffer, m->copy, m->copy_size,
                                        m->allocator, err));
    gguf_buffer_set_usage(m->copy_buffer, GGUF_USAGE_WEIGHTS);
    return GGUF_OK;
}

/* Memory for descriptions and marks. */
static enum gguf_status make_room(struct gguf_model *m, struct gguf_error *err)
{
    size_t n = gg_source_n_tensors(&m->src);
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.allocator = m->allocator;
    p.mem_size = (n + 1) * gguf_tensor_overhead();
    p.no_alloc = true;
    GG_TRY(gguf_ctx_create(&m->ctx, &p, err));
    m->used = gg_mem_alloc_zero(m->allocator, n ? n : 1, 1);
    m->layer =
        gg_mem_alloc_zero(m->allocator, m->hp.n_layer_all, sizeof *m->layer);
    m->of = gg_mem_alloc_zero(m->allocator, n ? n : 1, sizeof(void *));
    if (!m->used || !m->of || !m->layer)
        return gg_error_set_nomem(err,
                                  n + m->hp.n_layer_all * sizeof *m->layer);
    return GGUF_OK;
}

enum gguf_status gg_weights_load(struct gguf_model *m, struct gguf_error *err)
{
    const struct gg_finding report = { NULL, &m->src, err };
    struct gg_model_lookup lookup = {
        .src = &m->src, .arch = m->arch, .hp = &m->hp, .strict = m->as != NULL
    };
    struct gg_kern kern;
    gg_kern_init(&kern, 0);
    GG_TRY(gg_tensors_check(&lookup, &report, &kern, m->allocator));
    GG_TRY(make_room(m, err));
    GG_TRY(wrap_files(m, err));
    GG_TRY(make_copy(m, err));
    GG_TRY(take_all(m, &lookup, err));
    warn_unused(m);
    return GGUF_OK;
}
