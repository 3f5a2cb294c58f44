/* SPDX-License-Identifier: MIT */
/* job_inputs.c - inputs of a job: a list of tensors, and adapters
 *
 * GGUF files become a description, as a converter's folder does, so that later
 * code does not distinguish them. Input files are numbered: those of the list,
 * then those of adapters.
 */
#include "config.h"
#include "quant/job/job.h"
#include "base/compiler.h"
#include "base/paths_int.h"
#include "base/str.h"
#include "file/file_int.h"

#include <string.h>

/* GGUF files, and everything that their description points to. */
struct gg_job_gguf {
    struct gguf_file *own; /* files that the job opened; NULL: the caller's */
    struct gg_source files;
    struct gguf_meta *meta;
    struct gguf_paths *opened;
    struct gg_data_gguf data;
};

static enum gguf_status open_files(struct gguf_quant *q, const char *path,
                                   struct gguf_error *err)
{
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    fp.allocator = q->p.allocator;
    fp.limits = q->p.limits;
    fp.opener = q->p.opener;
    GG_TRY(gguf_file_open(&q->gguf->own, path, &fp, err));
    q->gguf->files.file = q->gguf->own;
    return GGUF_OK;
}

enum gguf_status gg_job_open_input(struct gguf_quant *q, const char *path,
                                   const struct gguf_file *file,
                                   struct gguf_error *err)
{
    const struct gguf_allocator *a = q->p.allocator;
    struct gg_job_gguf *g = gg_mem_alloc_zero(a, 1, sizeof *g);
    if (!g)
        return gg_error_set_nomem(err, sizeof *g);
    q->gguf = g;
    g->files = (struct gg_source){ .file = file };
    if (path)
        GG_TRY(open_files(q, path, err));
    GG_TRY(gguf_meta_create(&g->meta, a, err));
    GG_TRY(gguf_meta_copy_file(g->meta, g->files.file, err));
    GG_TRY(gguf_paths_create(&g->opened, a, err));
    GG_TRY(gg_file_add_paths(g->files.file, g->opened, err));
    gg_data_gguf_init(&g->data, &g->files, q->kern.codec, !q->p.compat);
    GG_TRY(gg_data_gguf_allow_readers(&g->data, a, err));
    q->in =
        (struct gg_description){ .origin = g->files.file,
                                 .meta = g->meta,
                                 .list = &g->data.list,
                                 .opened = g->opened,
                                 .path = gg_source_file(&g->files, 0)->path,
                                 .n_files = gg_source_n_files(&g->files) };
    return GGUF_OK;
}

void gg_job_close_input(struct gguf_quant *q)
{
    if (!q->gguf)
        return;
    gg_data_gguf_fini(&q->gguf->data, q->p.allocator);
    gguf_paths_destroy(q->gguf->opened);
    gguf_meta_destroy(q->gguf->meta);
    gguf_file_close(q->gguf->own);
    gg_mem_free(q->p.allocator, q->gguf);
}

bool gg_job_input_file(const struct gguf_quant *q, size_t i,
                       struct gg_data_file *out)
{
    size_t n = 0;
    while (gg_data_file(q->in.list, n, out))
        if (n++ == i)
            return true;
    i -= n;
    for (size_t k = 0; k < q->p.n_loras; k++) {
        const struct gguf_file *set = q->merge[k].lora.file;
        const struct gguf_file *f = gguf_file_shard(set, i);
        if (f) {
            *out = (struct gg_data_file){ &f->map, f->path,
                                          GG_MIN(f->data_off, f->map.size) };
            return true;
        }
        i -= gguf_file_n_shards(set);
    }
    return false;
}

const char *gg_job_input_difference(const struct gguf_quant *a,
                                    const struct gguf_quant *b)
{
    const char *x = a->in.path, *y = b->in.path;
    if (!(a->in.origin == b->in.origin || (x && y && !strcmp(x, y))) ||
        a->n_in != b->n_in)
        return "input";
    return gg_job_has_same_loras(a, b) ? NULL : "adapters";
}

enum gguf_status gg_job_list_inputs(const struct gguf_quant *q,
                                    struct gguf_paths *paths,
                                    struct gguf_error *err)
{
    GG_TRY(gg_paths_join(paths, q->in.opened, err));
    for (size_t i = 0; i < q->p.n_loras; i++)
        GG_TRY(gg_file_add_paths(q->merge[i].lora.file, paths, err));
    return GGUF_OK;
}

bool gg_job_has_reader(const struct gguf_quant *q)
{
    struct gg_data_file in;
    for (size_t i = 0; gg_job_input_file(q, i, &in); i++)
        if (in.map->read)
            return true;
    return false;
}

/* Replace bytes off to off + size by the elements that they hold parts of. */
static void find_elements(const struct gg_data_info *t, uint64_t *off,
                          uint64_t *size)
{
    uint64_t len;
    const uint64_t unit =
        gg_data_block_size(t->dtype, (uint64_t)t->ne[0], &len);
    const uint64_t end = unit ? (*off + *size + unit - 1) / unit * len : 0;
    *off = unit ? *off / unit * len : 0;
    *size = end - *off;
}

enum gguf_status gg_job_hold(const struct gguf_quant *q,
                             const struct gg_job_tensor *t, uint64_t off,
                             uint64_t size, struct gguf_error *err)
{
    find_elements(t->src, &off, &size);
    return gg_data_hold(q->in.list, t->no, off, size, err);
}

void gg_job_release(const struct gguf_quant *q, const struct gg_job_tensor *t,
                    uint64_t off, uint64_t size)
{
    find_elements(t->src, &off, &size);
    gg_data_release(q->in.list, t->no, off, size);
}

void gg_job_advise(const struct gguf_quant *q, const struct gg_job_tensor *t,
                   uint64_t off, uint64_t size, enum gg_mapfile_advice how)
{
    find_elements(t->src, &off, &size);
    gg_data_advise(q->in.list, t->no, off, size, how);
}

enum gguf_status gg_job_check_input_file(const struct gg_data_file *in,
                                         struct gguf_error *err)
{
    struct gguf_error why;
    struct gg_str_esc e;
    const enum gguf_status st =
        gg_mapfile_check_unchanged(in->map, in->map->fd, &why);
    if (st == GGUF_OK)
        return st;
    return gg_error_set(err, st, GGUF_NO_OFFSET, "the input '%s' %s",
                        in->path ? gg_str_esc(&e, gg_str_z(in->path)) : "",
                        why.message);
}

enum gguf_status gg_job_check_inputs(const struct gguf_quant *q,
                                     struct gguf_error *err)
{
    struct gg_data_file in;
    for (size_t i = 0; gg_job_input_file(q, i, &in); i++)
        GG_TRY(gg_job_check_input_file(&in, err));
    return GGUF_OK;
}
