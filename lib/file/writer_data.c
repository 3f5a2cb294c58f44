/* SPDX-License-Identifier: MIT */
/* writer_data.c - write the tensors of a file, in order or in parallel */
#include "config.h"
#include "file/file_int.h"
#include "file/writer_int.h"
#include "base/params.h"
#include "base/paths_int.h"
#include "base/str.h"

#include <string.h>

static enum gguf_status fail_state(const char *what, struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET, "%s", what);
}

/* Check that neither the output nor a temporary with a known name is an
 * input. */
static enum gguf_status check_inputs(const struct gguf_writer *w,
                                     const char *path,
                                     const struct gguf_output_params *p,
                                     struct gguf_error *err)
{
    struct gguf_paths *paths;
    GG_TRY(gguf_paths_create(&paths, w->allocator, err));
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; i < p->n_inputs && st == GGUF_OK; i++)
        if (p->inputs[i])
            st = gg_file_add_paths(p->inputs[i], paths, err);
    if (st == GGUF_OK)
        st = gguf_paths_add_output(paths, path, "output", err);
    if (st == GGUF_OK && p->partial)
        st = gg_paths_add_output_beside(paths, path, GG_OUTFILE_PART,
                                        "unfinished output", err);
    gguf_paths_destroy(paths);
    return st;
}

/* Offset in the file of byte off of tensor i. */
static uint64_t file_off(const struct gguf_writer *w, size_t i, uint64_t off)
{
    return gguf_writer_data_off(w) + w->tensor[i].off + off;
}

/* Write the padding of a resumed file, which may hold any bytes there. */
static enum gguf_status clear_gaps(struct gguf_writer *w,
                                   struct gguf_error *err)
{
    static const uint8_t zeros[4096];
    for (size_t i = 0; i < w->n_tensors; i++) {
        uint64_t at = file_off(w, i, w->tensor[i].size);
        uint64_t end = i + 1 < w->n_tensors ? file_off(w, i + 1, 0)
                                            : gguf_writer_file_size(w);
        while (at < end) {
            uint64_t n = GG_MIN(end - at, (uint64_t)sizeof zeros);
            GG_TRY(gg_outfile_write_at(&w->out, at, zeros, n, err));
            at += n;
        }
    }
    return GGUF_OK;
}

/* Free the state of a file that was begun, so that it can be begun again. */
static void forget_opening(struct gguf_writer *w)
{
    gg_mem_free(w->allocator, w->inputs);
    gg_mem_free(w->allocator, (void *)w->done);
    w->inputs = NULL;
    w->n_inputs = 0;
    w->done = NULL;
}

static enum gguf_status note_opening(struct gguf_writer *w,
                                     const struct gguf_output_params *p,
                                     struct gguf_error *err)
{
    const size_t size = p->n_inputs * sizeof *w->inputs;
    w->inputs = gg_mem_alloc(w->allocator, size);
    if (!w->inputs)
        return gg_error_set_nomem(err, size);
    w->n_inputs = p->n_inputs;
    for (size_t i = 0; i < p->n_inputs; i++)
        w->inputs[i] = p->inputs[i];
    w->done = gg_mem_alloc_zero(w->allocator, w->n_tensors, sizeof *w->done);
    if (w->done)
        return GGUF_OK;
    forget_opening(w);
    return gg_error_set_nomem(err, w->n_tensors * sizeof *w->done);
}

enum gguf_status
gguf_writer_begin_file(struct gguf_writer *w, const char *path,
                       const struct gguf_output_params *params,
                       struct gguf_error *err)
{
    struct gguf_output_params p = GGUF_INIT(struct gguf_output_params);
    if (w->state != GG_PLANNING)
        return fail_state("the file has been begun already", err);
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_output_params", err));
    GG_TRY(check_inputs(w, path, &p, err));
    const void *header;
    size_t size;
    GG_TRY(gguf_writer_header(w, &header, &size, err));
    GG_TRY(note_opening(w, &p, err));
    unsigned flags = (p.force ? GG_OUTFILE_FORCE : 0u) |
                     (p.no_sync ? GG_OUTFILE_NO_SYNC : 0u) |
                     (p.partial ? GG_OUTFILE_PARTIAL : 0u) |
                     (p.resume ? GG_OUTFILE_RESUME : 0u);
    enum gguf_status st =
        gg_outfile_open(&w->out, w->allocator, path, flags, err);
    if (st == GGUF_OK && !p.no_reserve)
        st = gg_outfile_reserve(&w->out, gguf_writer_file_size(w), true, err);
    if (st == GGUF_OK)
        st = gg_outfile_write(&w->out, header, size, err);
    if (st == GGUF_OK && p.resume)
        st = clear_gaps(w, err);
    if (st != GGUF_OK) {
        gg_outfile_abort(&w->out);
        forget_opening(w);
        return st;
    }
    w->state = GG_WRITING;
    return GGUF_OK;
}

static uint64_t bytes_done(const struct gguf_writer *w, size_t i)
{
    return atomic_load_explicit(&w->done[i], memory_order_relaxed);
}

static enum gguf_status check_complete(const struct gguf_writer *w, size_t i,
                                       struct gguf_error *err)
{
    struct gg_str_esc e;
    if (bytes_done(w, i) == w->tensor[i].size)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "tensor '%s': %" PRIu64
                        " bytes written, expected %" PRIu64,
                        gg_str_esc(&e, w->tensor[i].name), bytes_done(w, i),
                        w->tensor[i].size);
}

/* End the tensor that is being streamed, if any, and pad it. */
static enum gguf_status end_stream(struct gguf_writer *w,
                                   struct gguf_error *err)
{
    if (!w->streaming)
        return GGUF_OK;
    GG_TRY(check_complete(w, w->next - 1, err));
    uint64_t end = w->next < w->n_tensors ? file_off(w, w->next, 0)
                                          : gguf_writer_file_size(w);
    GG_TRY(gg_outfile_zeros(&w->out, end - w->out.pos, err));
    w->streaming = false;
    return GGUF_OK;
}

enum gguf_status gguf_writer_begin_tensor(struct gguf_writer *w, size_t i,
                                          struct gguf_error *err)
{
    if (w->state != GG_WRITING)
        return fail_state("no file has been begun", err);
    if (i >= w->n_tensors || i < w->next)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "tensor %zu cannot be begun: next is %zu of %zu",
                            i, w->next, w->n_tensors);
    GG_TRY(end_stream(w, err));
    /* Tensors that are skipped come by gguf_writer_write_at(). The commit
     * checks that they are complete. */
    uint64_t at = file_off(w, i, 0);
    if (at != w->out.pos)
        GG_TRY(gg_outfile_skip(&w->out, at - w->out.pos, err));
    w->next = i + 1;
    w->streaming = true;
    return GGUF_OK;
}

/* Check that the streamed tensor has room for size more bytes. */
static enum gguf_status check_room(const struct gguf_writer *w, uint64_t size,
                                   struct gguf_error *err)
{
    struct gg_str_esc e;
    if (w->state != GG_WRITING || !w->streaming)
        return fail_state("no tensor was begun", err);
    const struct gguf_tensor_info *t = &w->tensor[w->next - 1];
    uint64_t done = bytes_done(w, w->next - 1);
    if (size > t->size - done)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "tensor '%s': %" PRIu64 " bytes more, but only %" PRIu64
            " of %" PRIu64 " are to come",
            gg_str_esc(&e, t->name), size, t->size - done, t->size);
    return GGUF_OK;
}

static void add_done(struct gguf_writer *w, size_t i, uint64_t size)
{
    /* Relaxed: it is read after the threads have joined. */
    atomic_fetch_add_explicit(&w->done[i], size, memory_order_relaxed);
}

enum gguf_status gguf_writer_write(struct gguf_writer *w, const void *data,
                                   uint64_t size, struct gguf_error *err)
{
    GG_TRY(check_room(w, size, err));
    GG_TRY(gg_outfile_write(&w->out, data, size, err));
    add_done(w, w->next - 1, size);
    return GGUF_OK;
}

enum gguf_status gguf_writer_copy(struct gguf_writer *w,
                                  const struct gguf_file *file, size_t src,
                                  uint64_t off, uint64_t size,
                                  struct gguf_error *err)
{
    const struct gguf_tensor_info *t = gguf_file_tensor(file, src);
    if (!t || off > t->size || size > t->size - off)
        return fail_state("the range to copy is not in the tensor", err);
    GG_TRY(check_room(w, size, err));
    file = gg_file_of_tensor(file, &src);
    GG_TRY(
        gg_file_copy(&w->out, file, file->data_off + t->off + off, size, err));
    add_done(w, w->next - 1, size);
    return GGUF_OK;
}

/* Check that the file is being written, tensor i has not been begun, and it has
 * size bytes from off. */
static enum gguf_status check_range(const struct gguf_writer *w, size_t i,
                                    uint64_t off, uint64_t size,
                                    struct gguf_error *err)
{
    struct gg_str_esc e;
    if (w->state != GG_WRITING || i >= w->n_tensors || i < w->next)
        return fail_state("the tensor does not exist or has been begun", err);
    const struct gguf_tensor_info *t = &w->tensor[i];
    if (off > t->size || size > t->size - off)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "tensor '%s': bytes %" PRIu64 " + %" PRIu64
                            " are not in its %" PRIu64,
                            gg_str_esc(&e, t->name), off, size, t->size);
    return GGUF_OK;
}

enum gguf_status gg_writer_sync_some(const struct gguf_writer *w, uint64_t *at,
                                     struct gguf_error *err)
{
    return gg_outfile_sync_some(&w->out, at, gguf_writer_file_size(w), err);
}

enum gguf_status gguf_writer_read_at(const struct gguf_writer *w, size_t i,
                                     uint64_t off, void *data, uint64_t size,
                                     struct gguf_error *err)
{
    GG_TRY(check_range(w, i, off, size, err));
    return gg_outfile_read_at(&w->out, file_off(w, i, off), data, size, err);
}

enum gguf_status gguf_writer_mark_complete(struct gguf_writer *w, size_t i,
                                           struct gguf_error *err)
{
    GG_TRY(check_range(w, i, 0, 0, err));
    atomic_store_explicit(&w->done[i], w->tensor[i].size,
                          memory_order_relaxed);
    return GGUF_OK;
}

enum gguf_status gguf_writer_write_at(struct gguf_writer *w, size_t i,
                                      uint64_t off, const void *data,
                                      uint64_t size, struct gguf_error *err)
{
    GG_TRY(check_range(w, i, off, size, err));
    GG_TRY(gg_outfile_write_at(&w->out, file_off(w, i, off), data, size, err));
    add_done(w, i, size);
    return GGUF_OK;
}

enum gguf_status gg_writer_finish(struct gguf_writer *w,
                                  struct gguf_error *err)
{
    if (w->state != GG_WRITING)
        return fail_state("no file has been begun", err);
    GG_TRY(end_stream(w, err));
    for (size_t i = 0; i < w->n_tensors; i++)
        GG_TRY(check_complete(w, i, err));
    for (size_t i = 0; i < w->n_inputs; i++)
        GG_TRY(gg_file_check_unchanged(w->inputs[i], err));
    uint64_t size = gguf_writer_file_size(w);
    if (w->out.pos != size)
        GG_TRY(gg_outfile_skip(&w->out, size - w->out.pos, err));
    w->state = GG_DONE;
    return gg_outfile_finish(&w->out, err);
}

enum gguf_status gguf_writer_commit(struct gguf_writer *w,
                                    struct gguf_error *err)
{
    GG_TRY(gg_writer_finish(w, err));
    enum gguf_status st = gg_outfile_publish(&w->out, false, err);
    if (st == GGUF_OK)
        st = gg_outfile_sync_folder(&w->out, err);
    gg_outfile_abort(&w->out);
    return st;
}
