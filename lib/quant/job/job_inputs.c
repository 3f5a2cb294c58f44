/* SPDX-License-Identifier: MIT */
/* job_inputs.c - the files that a job reads weights from: those of the model
 * and of adapters, in this order */
#include "config.h"
#include "quant/job/job.h"
#include "base/compiler.h"
#include "base/paths_int.h"
#include "base/str.h"
#include "file/file_int.h"

#include <string.h>

/* Tensors of fewer bytes stay: some are scales of others, which are needed as
 * long as those. */
enum { SMALL = 1 << 20 };

static void of_file(const struct gguf_file *f, struct gg_job_input *out)
{
    *out = (struct gg_job_input){ &f->map, f->path,
                                  GG_MIN(f->data_off, f->map.size) };
}

bool gg_job_input(const struct gguf_quant *q, size_t i,
                  struct gg_job_input *out)
{
    const struct gg_data *d = q->in.numbers;
    size_t n = 0;
    if (d) {
        const char *path = NULL;
        const struct gg_mapfile *map;
        while ((map = gg_data_map(d, n, &path)) && n < i)
            n++;
        *out = (struct gg_job_input){ map, path, 0 };
        if (map)
            return true;
    } else {
        n = gg_source_n_files(&q->in);
        if (i < n) {
            of_file(gg_source_file(&q->in, i), out);
            return true;
        }
    }
    if (i - n >= q->p.n_loras)
        return false;
    of_file(q->merge[i - n].lora.file, out);
    return true;
}

const char *gg_job_differs(const struct gguf_quant *a,
                           const struct gguf_quant *b)
{
    const char *x = gguf_file_path(a->in.file);
    const char *y = gguf_file_path(b->in.file);
    if (!(a->in.file == b->in.file || (x && y && !strcmp(x, y))) ||
        gg_source_n_tensors(&a->in) != gg_source_n_tensors(&b->in))
        return "input";
    return gg_job_merges_same(a, b) ? NULL : "adapters";
}

enum gguf_status gg_job_note_inputs(const struct gguf_quant *q,
                                    struct gguf_paths *paths,
                                    struct gguf_error *err)
{
    GG_TRY(gg_paths_join(paths, q->opened, err));
    for (size_t i = 0; !q->in.numbers && i < gg_source_n_files(&q->in); i++)
        GG_TRY(gg_file_note(gg_source_file(&q->in, i), paths, err));
    for (size_t i = 0; i < q->p.n_loras; i++)
        GG_TRY(gg_file_note(q->merge[i].lora.file, paths, err));
    return GGUF_OK;
}

bool gg_job_has_reader(const struct gguf_quant *q)
{
    struct gg_job_input in;
    for (size_t i = 0; gg_job_input(q, i, &in); i++)
        if (in.map->read)
            return true;
    return false;
}

/* Of a list: which of its elements bytes off to off + size of a tensor are. */
static void to_elements(const struct gguf_tensor_info *t, uint64_t *off,
                        uint64_t *size)
{
    const struct gguf_dtype_info *x = gguf_dtype_find(t->dtype);
    *off = *off / x->block_size * x->block_len;
    *size = *size / x->block_size * x->block_len;
}

enum gguf_status gg_job_hold(const struct gguf_quant *q,
                             const struct gguf_split_tensor *src, uint64_t off,
                             uint64_t size, struct gguf_error *err)
{
    if (!q->in.numbers)
        return gg_file_fetch(src->file, src->info->index, off, size, err);
    to_elements(src->info, &off, &size);
    return gg_data_hold(q->in.numbers, src->info->index, off, size, err);
}

void gg_job_release(const struct gguf_quant *q,
                    const struct gguf_split_tensor *src, uint64_t off,
                    uint64_t size)
{
    if (q->in.numbers) {
        to_elements(src->info, &off, &size);
        gg_data_release(q->in.numbers, src->info->index, off, size);
    } else if (src->info->size >= SMALL) {
        gg_file_drop(src->file, src->info->index, off, size);
    }
}

void gg_job_release_rest(const struct gguf_quant *q,
                         const struct gguf_split_tensor *src)
{
    if (!q->in.numbers)
        gg_job_release(q, src, 0, src->info->size);
}

enum gguf_status gg_job_check_input(const struct gg_job_input *in,
                                    struct gguf_error *err)
{
    struct gguf_error why;
    struct gg_str_esc e;
    const enum gguf_status st = gg_mapfile_check(in->map, in->map->fd, &why);
    if (st == GGUF_OK)
        return st;
    return gg_error_set(err, st, GGUF_NO_OFFSET, "the input '%s' %s",
                        in->path ? gg_str_esc(&e, gg_str_z(in->path)) : "",
                        why.message);
}

enum gguf_status gg_job_check_inputs(const struct gguf_quant *q,
                                     struct gguf_error *err)
{
    struct gg_job_input in;
    for (size_t i = 0; gg_job_input(q, i, &in); i++)
        GG_TRY(gg_job_check_input(&in, err));
    return GGUF_OK;
}
