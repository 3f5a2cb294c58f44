/* SPDX-License-Identifier: MIT */
/* model_load.c - read weights into memory, lock them, and release file pages */
#include "config.h"
#include "model/weight/weight_move.h"

#include "base/mem.h"
#include "base/pages.h"
#include "file/file_int.h"
#include "gguf/load.h"

/* ---- prefetching ---- */

static enum gguf_status fetch_range(void *user, unsigned ith, size_t item,
                                    uint64_t off, uint64_t size,
                                    struct gguf_error *err)
{
    const struct gguf_model *m = user;
    const struct gg_file_shard_tensor t = gg_source_tensor(&m->src, item);
    const uint8_t *data = gguf_file_tensor_data(t.file, t.info->index);
    (void)ith;
    (void)err;
    gguf_file_advise_tensor(t.file, t.info->index, off, size,
                            GGUF_ADVICE_WILLNEED);
    gg_pages_touch(data + off, (size_t)size);
    return GGUF_OK;
}

enum gguf_status gguf_model_prefetch_weights(const struct gguf_model *m,
                                             const struct gguf_model_job *job,
                                             struct gguf_error *err)
{
    const size_t n = gg_source_n_tensors(&m->src);
    struct gguf_model_job own;
    GG_TRY(gg_parallel_pass_take_job(&own, job, err));
    for (size_t i = 0; i < gg_source_n_files(&m->src); i++)
        GG_TRY(gg_file_require_memory(gg_source_file(&m->src, i), err));
    struct gg_parallel_pass_item *item =
        gg_mem_alloc_zero(m->allocator, n + 1, sizeof *item);
    if (!item)
        return gg_error_set_nomem(err, (n + 1) * sizeof *item);
    for (size_t i = 0; i < n; i++)
        item[i] = (struct gg_parallel_pass_item){
            gg_weight_is_mapped(m, i) ? gg_source_tensor(&m->src, i).info->size
                                      : 0,
            1
        };
    const struct gg_parallel_pass work = { m->allocator, &own,
                                           (uint64_t)4 << 20, fetch_range,
                                           (void *)(uintptr_t)m };
    enum gguf_status st = gg_parallel_pass_run(&work, item, n, err);
    gg_mem_free(m->allocator, item);
    return st;
}

/* ---- reading into buffers ---- */

enum gguf_status gguf_model_read_weights(struct gguf_model *m,
                                         const struct gguf_model_job *job,
                                         struct gguf_error *err)
{
    const size_t n = gg_source_n_tensors(&m->src);
    struct gguf_model_job own;
    size_t n_moves = 0;
    GG_TRY(gg_parallel_pass_take_job(&own, job, err));
    struct gg_weight_move *move =
        gg_mem_alloc_zero(m->allocator, n + 1, sizeof *move);
    if (!move)
        return gg_error_set_nomem(err, (n + 1) * sizeof *move);
    for (size_t i = 0; i < n; i++)
        if (gg_weight_is_mapped(m, i))
            move[n_moves++] =
                (struct gg_weight_move){ .i = i, .to = gguf_host_buft() };
    enum gguf_status st =
        n_moves ? gg_weights_move(m, move, n_moves, &own, err) : GGUF_OK;
    gg_mem_free(m->allocator, move);
    return st;
}

/* ---- locking ---- */

static bool is_in_host(const struct gguf_tensor *t)
{
    return t && gguf_buft_is_host(gguf_buffer_buft(t->buffer));
}

void gg_weights_unlock(struct gguf_model *m)
{
    for (size_t i = 0; m->locked && i < gg_source_n_tensors(&m->src); i++)
        if (is_in_host(m->of[i]))
            gg_pages_unlock(m->of[i]->data,
                            (size_t)gguf_tensor_size(m->of[i]));
    m->locked = false;
}

enum gguf_status gguf_model_lock_weights(struct gguf_model *m,
                                         struct gguf_error *err)
{
    struct gguf_error why;
    uint64_t size = 0;
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; i < gg_source_n_tensors(&m->src); i++)
        if (is_in_host(m->of[i]))
            size += gguf_tensor_size(m->of[i]);
    m->locked = true;
    for (size_t i = 0; i < gg_source_n_tensors(&m->src) && !st; i++)
        if (is_in_host(m->of[i]))
            st = gg_pages_lock(m->of[i]->data,
                               (size_t)gguf_tensor_size(m->of[i]), &why);
    if (st == GGUF_OK)
        return GGUF_OK;
    gg_weights_unlock(m);
    (void)gg_error_set(err, st, GGUF_NO_OFFSET,
                       "%" PRIu64
                       " bytes of weights cannot be locked in memory: %s",
                       size, why.message);
    if (err)
        err->sys_errno = why.sys_errno;
    return st;
}

/* ---- letting go ---- */

/* Number in all files of the first tensor of file no. */
static size_t first_tensor_of_file(const struct gguf_model *m, size_t no)
{
    size_t first = 0;
    for (size_t i = 0; i < no; i++)
        first += gguf_file_n_tensors(gg_source_file(&m->src, i));
    return first;
}

/* Release the pages of a file between the weights that are used in its
 * mapping. */
static void release_file(const struct gguf_model *m, size_t no)
{
    const struct gguf_file *f = gg_source_file(&m->src, no);
    const size_t first = first_tensor_of_file(m, no);
    uint64_t end = f->data_off; /* end of the last weight that is used */
    for (size_t k = 0; k < f->n_tensors; k++) {
        const struct gguf_tensor_info *t = gguf_file_tensor_by_offset(f, k);
        if (!gg_weight_is_mapped(m, first + t->index))
            continue;
        gg_mapfile_advise(&f->map, end, f->data_off + t->off - end,
                          GG_ADVISE_DONTNEED);
        end = f->data_off + t->off + t->size;
    }
    if (end < f->map.size)
        gg_mapfile_advise(&f->map, end, f->map.size - end, GG_ADVISE_DONTNEED);
}

void gguf_model_release_pages(const struct gguf_model *m)
{
    for (size_t i = 0; i < gg_source_n_files(&m->src); i++)
        release_file(m, i);
}
