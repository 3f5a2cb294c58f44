/* SPDX-License-Identifier: MIT */
/* job_files.c - divide an output into files, and create their writers */
#include "config.h"
#include "quant/job/job.h"
#include "base/str.h"
#include "file/shard_set.h"

#include <string.h>

static enum gguf_status add_tensor(struct gguf_writer *w,
                                   const struct gg_job_tensor *t,
                                   struct gguf_error *err)
{
    struct gguf_str name = gg_str_z(t->pub.name);
    /* Keep the number of dimensions of the input, within the limits. */
    struct gguf_tensor_info like = { .name = name,
                                     .dtype = t->pub.to,
                                     .n_dims = t->src->n_dims };
    memcpy(like.ne, t->src->ne, sizeof like.ne);
    if (!gg_file_tensor_is_empty(&like))
        GG_TRY(gg_file_tensor_measure(&like, GGUF_NO_OFFSET, err));
    GG_TRY(gguf_writer_add_like(w, &like, err));
    if (!t->outer)
        return GGUF_OK;
    char scale[GG_SCALE_NAME];
    const int64_t n = (int64_t)gg_job_n_mats(t);
    (void)gg_data_scale_name(name, like.dtype, ".scale", scale);
    return gguf_writer_add_tensor(w, gg_str_z(scale), GGUF_DTYPE_F32, 1, &n,
                                  err);
}

static size_t n_written(const struct gguf_quant *q)
{
    size_t n = 0;
    for (size_t i = 0; i < q->n_t; i++)
        n += gg_job_n_written(&q->t[i]);
    return n;
}

uint32_t gg_job_alignment(const struct gguf_quant *q)
{
    uint32_t v;
    const struct gguf_kv *kv = gguf_meta_find(q->meta, "general.alignment");
    return kv && gguf_kv_get_u32(kv, &v, NULL) == GGUF_OK ? v : 32;
}

/* Make the metadata of file no, one of several. */
static enum gguf_status shard_meta(const struct gguf_quant *q, size_t no,
                                   struct gguf_meta **out,
                                   struct gguf_error *err)
{
    uint32_t align = gg_job_alignment(q);
    struct gguf_meta *m;
    GG_TRY(gguf_meta_create(&m, q->p.allocator, err));
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; !no && st == GGUF_OK && i < gguf_meta_n_kv(q->meta);
         i++)
        st = gguf_meta_set_kv(m, NULL, gguf_meta_kv(q->meta, i), err);
    /* Without this key, readers assume 32. */
    if (st == GGUF_OK && no && align != 32)
        st = gguf_meta_set_u32(m, "general.alignment", align, err);
    if (st == GGUF_OK)
        st = gg_file_split_set_keys(m, no, q->n_shards, n_written(q), err);
    if (st != GGUF_OK) {
        gguf_meta_destroy(m);
        return st;
    }
    *out = m;
    return GGUF_OK;
}

/* Create a writer with the metadata of file no, and without tensors. */
static enum gguf_status empty_writer(const struct gguf_quant *q, size_t no,
                                     struct gguf_writer **out,
                                     struct gguf_error *err)
{
    struct gguf_writer_params p = GGUF_INIT(struct gguf_writer_params);
    struct gguf_meta *m = NULL;
    p.allocator = q->p.allocator;
    *out = NULL;
    if (q->n_shards == 1)
        return gguf_writer_create(out, q->meta, &p, err);
    GG_TRY(shard_meta(q, no, &m, err));
    enum gguf_status st = gguf_writer_create(out, m, &p, err);
    gguf_meta_destroy(m);
    return st;
}

enum gguf_status gg_job_create_writer(const struct gguf_quant *q, size_t no,
                                      struct gguf_writer **out,
                                      struct gguf_error *err)
{
    enum gguf_status st = empty_writer(q, no, out, err);
    for (size_t i = 0; st == GGUF_OK && i < q->n_t; i++)
        if (q->t[i].shard == no)
            st = add_tensor(*out, &q->t[i], err);
    if (st != GGUF_OK) {
        gguf_writer_destroy(*out);
        *out = NULL;
    }
    return st;
}

/* Fill files up to max_file_size, in the order of tensors. */
static enum gguf_status divide_tensors(struct gguf_quant *q,
                                       struct gguf_error *err)
{
    struct gguf_writer *w;
    struct gg_str_esc esc;
    enum gguf_status st;
    size_t i = 0, no = 0;
    q->n_shards = 2; /* more than 1, so that the headers include the split
                      * keys */
    do {
        st = empty_writer(q, no, &w, err);
        if (st != GGUF_OK)
            return st;
        size_t n = 0;
        uint64_t size = gguf_writer_file_size(w);
        for (; i < q->n_t && st == GGUF_OK;
             n += gg_job_n_written(&q->t[i]), i++) {
            st = add_tensor(w, &q->t[i], err);
            size = gguf_writer_file_size(w);
            if (size > q->p.max_file_size && n)
                break;
            if (size > q->p.max_file_size)
                st = gg_error_set(
                    err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                    "tensor '%s' does not fit in a file of %" PRIu64 " bytes",
                    gg_str_esc(&esc, gg_str_z(q->t[i].pub.name)),
                    q->p.max_file_size);
            q->t[i].shard = (uint32_t)no;
            q->t[i].index = n;
        }
        gguf_writer_destroy(w);
        if (st == GGUF_OK && size > q->p.max_file_size && !n)
            st = gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                              "the metadata do not fit in a file of %" PRIu64
                              " bytes",
                              q->p.max_file_size);
    } while (st == GGUF_OK && ++no < GGUF_SPLIT_MAX_FILES && i < q->n_t);
    q->n_shards = no;
    if (st == GGUF_OK && i < q->n_t)
        st = gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                          "more than %d files would be needed",
                          GGUF_SPLIT_MAX_FILES);
    return st;
}

enum gguf_status gg_job_plan_files(struct gguf_quant *q, uint64_t *size,
                                   struct gguf_error *err)
{
    struct gguf_writer *w;
    q->n_shards = 1;
    for (size_t i = 0, n = 0; i < q->n_t; i++) {
        q->t[i].index = n;
        n += gg_job_n_written(&q->t[i]);
    }
    if (q->p.keep_split && q->in.n_files > 1) {
        q->n_shards = q->in.n_files;
        for (size_t i = 0, n = 0; i < q->n_t; i++) {
            q->t[i].shard = q->t[i].src->file_no;
            n = i && q->t[i].shard == q->t[i - 1].shard
                    ? n + gg_job_n_written(&q->t[i - 1])
                    : 0;
            q->t[i].index = n;
        }
    } else if (q->p.max_file_size) {
        GG_TRY(divide_tensors(q, err));
    }
    *size = 0;
    for (size_t no = 0; no < q->n_shards; no++) {
        GG_TRY(gg_job_create_writer(q, no, &w, err));
        *size += gguf_writer_file_size(w);
        gguf_writer_destroy(w);
    }
    return GGUF_OK;
}

enum gguf_status gg_job_format_path(const struct gguf_quant *q,
                                    const char *path, size_t no, char **out,
                                    struct gguf_error *err)
{
    size_t n = strlen(path), size = n + 32;
    char *prefix = gg_mem_alloc(q->p.allocator, n + 1);
    *out = gg_mem_alloc(q->p.allocator, size);
    enum gguf_status st =
        prefix && *out ? GGUF_OK : gg_error_set_nomem(err, size);
    if (st == GGUF_OK) {
        memcpy(prefix, path, n + 1);
        memcpy(*out, path, n + 1);
        if (n > 5 && !strcmp(path + n - 5, ".gguf"))
            prefix[n - 5] = 0;
        if (q->n_shards > 1)
            st = gguf_split_name_format(*out, size, prefix, (unsigned)no + 1,
                                        (unsigned)q->n_shards, err);
    }
    gg_mem_free(q->p.allocator, prefix);
    if (st != GGUF_OK) {
        gg_mem_free(q->p.allocator, *out);
        *out = NULL;
    }
    return st;
}
