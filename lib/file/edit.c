/* SPDX-License-Identifier: MIT */
/* edit.c - change the metadata of a file */
#include "config.h"
#include "file/edit_int.h"
#include "base/os/os.h"
#include "base/params.h"
#include "base/paths_int.h"
#include "file/header.h"
#include "file/edit_journal.h"
#include "file/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Unit of bytes in which extents can be shared. */
enum { EXTENT = 4096 };

/* Create the writer of e->meta, with the file's tensors at their old
 * offsets. */
static enum gguf_status make_writer(struct gg_edit *e, struct gguf_error *err)
{
    const struct gguf_file *f = e->file;
    struct gguf_writer_params p = GGUF_INIT(struct gguf_writer_params);
    p.allocator = e->a;
    p.big_endian = f->big_endian != e->swaps;
    p.version = p.big_endian ? 3 : f->version; /* v2 is little-endian only */
    gguf_writer_destroy(e->w);
    GG_TRY(gguf_writer_create(&e->w, e->meta, &p, err));
    e->relayout = e->w->align != f->align;
    for (size_t i = 0; i < f->n_tensors; i++) {
        GG_TRY(gguf_writer_add_like(e->w, &f->tensor[i], err));
        if (!e->relayout)
            e->w->tensor[i].off = f->tensor[i].off;
    }
    return GGUF_OK;
}

static uint64_t header_end(const struct gg_edit *e)
{
    return GG_HEAD_SIZE + e->w->kv_size + e->w->infos_size;
}

/* Encoded size of a padding pair with n zeros. */
static uint64_t padding_size(uint64_t n)
{
    struct gguf_kv kv = { .key.size = sizeof GGUF_EDIT_PADDING_KEY - 1,
                          .type = GGUF_VAL_ARR,
                          .size = (size_t)n };
    uint64_t size = 0;
    (void)gg_kv_encoded_size(&kv, &size);
    return size;
}

/* Make the header end right before data_off, with a padding pair if needed.
 * *fits receives whether that is possible. */
static enum gguf_status pad_to(struct gg_edit *e, uint64_t data_off,
                               bool *fits, struct gguf_error *err)
{
    uint64_t end = header_end(e);
    *fits = end <= data_off && data_off - end < e->file->align;
    if (*fits || end > data_off || data_off - end < padding_size(0))
        return GGUF_OK;
    uint64_t n = data_off - end - padding_size(0);
    uint8_t *zeros = gg_mem_alloc_zero(e->a, n ? n : 1, 1);
    if (!zeros)
        return gg_error_set_nomem(err, (size_t)n);
    enum gguf_status st = gguf_meta_set_array(e->meta, GGUF_EDIT_PADDING_KEY,
                                              GGUF_VAL_U8, zeros, n, err);
    gg_mem_free(e->a, zeros);
    GG_TRY(st);
    GG_TRY(make_writer(e, err));
    *fits = gguf_writer_data_off(e->w) == data_off;
    return GGUF_OK;
}

/* Encode the new header. If it is padded by the same number of bytes as the old
 * one, it gets the old bytes. */
static enum gguf_status make_header(struct gg_edit *e, const void **header,
                                    size_t *size, struct gguf_error *err)
{
    const struct gguf_file *f = e->file;
    GG_TRY(gguf_writer_header(e->w, header, size, err));
    uint64_t end = header_end(e), n = f->data_off - f->header_end;
    if (*size - end == n)
        memcpy(e->w->header + end, f->map.data + f->header_end,
               (size_t)GG_MIN(n, f->map.size - f->header_end));
    return GGUF_OK;
}

/* --------------------------------------------------------------- copies --- */

enum gguf_status gg_edit_report_progress(const struct gg_edit *e,
                                         uint64_t done, uint64_t total,
                                         struct gguf_error *err)
{
    if (e->p.progress.fn && e->p.progress.fn(e->p.progress.user, done, total))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "the edit was stopped");
    return GGUF_OK;
}

/* Append everything after the header unchanged. The first piece ends at a
 * boundary between extents, so that extents after it can be shared. */
static enum gguf_status copy_rest(struct gg_edit *e, struct gg_outfile *o,
                                  struct gguf_error *err)
{
    enum { PIECE = 64 << 20 };
    const struct gg_mapfile *m = &e->file->map;
    uint64_t from = GG_MIN(e->file->data_off, m->size), at = from;
    while (at < m->size) {
        uint64_t n = GG_MIN(m->size - at, at % EXTENT ? EXTENT - at % EXTENT
                                                      : (uint64_t)PIECE);
        GG_TRY(gg_outfile_copy(o, m->fd, m->off + at, n, err));
        at += n;
        GG_TRY(gg_edit_report_progress(e, at - from, m->size - from, err));
    }
    return GGUF_OK;
}

static unsigned out_flags(const struct gg_edit *e)
{
    return (e->replaces || e->p.force ? GG_OUTFILE_FORCE : 0u) |
           (e->p.no_sync ? GG_OUTFILE_NO_SYNC : 0u);
}

static enum gguf_status write_copy(struct gg_edit *e, bool share,
                                   struct gguf_error *err)
{
    struct gg_outfile o;
    const void *header;
    size_t size;
    GG_TRY(make_header(e, &header, &size, err));
    const struct gguf_file *f = e->file;
    if (f->map.size < f->data_off) { /* no tensors and not padded */
        uint64_t end = header_end(e) + (f->map.size - f->header_end);
        size = (size_t)GG_MIN(size, end);
    }
    GG_TRY(gg_outfile_open(&o, e->a, e->target, out_flags(e), err));
    enum gguf_status st = GGUF_OK;
    uint64_t data = f->map.size > f->data_off ? f->map.size - f->data_off : 0;
    if (!share || !gg_outfile_can_share(&o, f->map.fd))
        st = gg_outfile_reserve(&o, size + data, true, err);
    if (st == GGUF_OK)
        st = gg_outfile_write(&o, header, size, err);
    if (st == GGUF_OK)
        st = e->swaps ? gg_edit_swap_rest(e, &o, err) : copy_rest(e, &o, err);
    if (st == GGUF_OK)
        st = gg_file_check_unchanged(f, err);
    if (st == GGUF_OK)
        st = gg_outfile_commit(&o, err);
    gg_outfile_abort(&o);
    return st;
}

/* Write the file with another alignment, tensor by tensor. */
static enum gguf_status write_relayout(struct gg_edit *e,
                                       struct gguf_error *err)
{
    const struct gguf_file *f = e->file;
    struct gguf_output_params o = GGUF_INIT(struct gguf_output_params);
    o.force = e->replaces || e->p.force;
    o.no_sync = e->p.no_sync;
    GG_TRY(gguf_writer_begin_file(e->w, e->target, &o, err));
    uint64_t total = gguf_writer_file_size(e->w);
    for (size_t i = 0; i < f->n_tensors; i++) {
        GG_TRY(gguf_writer_begin_tensor(e->w, i, err));
        GG_TRY(e->swaps
                   ? gg_edit_swap_tensor(e, i, err)
                   : gguf_writer_copy(e->w, f, i, 0, f->tensor[i].size, err));
        GG_TRY(gg_edit_report_progress(e, e->w->out.pos, total, err));
    }
    GG_TRY(gg_file_check_unchanged(f, err));
    return gguf_writer_commit(e->w, err);
}

/* ------------------------------------------------------------- in place --- */

/* Replace the file by a clone with the new header. *done receives whether the
 * file system can clone. */
static enum gguf_status write_clone(struct gg_edit *e, const void *header,
                                    size_t size, bool *done,
                                    struct gguf_error *err)
{
    struct gg_outfile o;
    *done = false;
    GG_TRY(gg_outfile_open(&o, e->a, e->target, out_flags(e), err));
    enum gguf_status st = GGUF_OK;
    if (gg_outfile_clone(&o, e->file->map.fd, e->file->map.size)) {
        *done = true;
        st = gg_outfile_write_at(&o, 0, header, size, err);
        if (st == GGUF_OK)
            st = gg_file_check_unchanged(e->file, err);
        if (st == GGUF_OK)
            st = gg_outfile_commit(&o, err);
    }
    gg_outfile_abort(&o);
    return st;
}

static enum gguf_status write_in_place(struct gg_edit *e,
                                       enum gguf_edit_result *result,
                                       struct gguf_error *err)
{
    const struct gg_mapfile *m = &e->file->map;
    const void *header;
    size_t size;
    bool done;
    GG_TRY(make_header(e, &header, &size, err));
    *result = GGUF_EDIT_CLONED;
    GG_TRY(write_clone(e, header, size, &done, err));
    if (done)
        return GGUF_OK;
    *result = GGUF_EDIT_WROTE_HEADER;
    GG_TRY(gg_edit_journal_save(e->a, e->target, m, header, size, err));
    bool begun;
    enum gguf_status st =
        gg_header_overwrite(e->lock, m, header, size, &begun, err);
    if (st == GGUF_OK)
        return gg_edit_journal_remove(e->a, e->target, err);
    if (!begun)
        (void)gg_edit_journal_remove(e->a, e->target, NULL);
    return st;
}

/* ------------------------------------------------------------- the edit --- */

/* Check that the files to read and to write are different. */
static enum gguf_status check_paths(const struct gg_edit *e,
                                    struct gguf_error *err)
{
    struct gguf_paths *p;
    GG_TRY(gg_paths_copy(&p, e->p.paths, e->a, err));
    enum gguf_status st = GGUF_OK;
    if (!e->replaces)
        st = gg_file_add_paths(e->file, p, err);
    if (st == GGUF_OK)
        st = gguf_paths_add_output(p, e->target, "output", err);
    if (st == GGUF_OK && e->replaces)
        st = gg_paths_add_output_beside(p, e->target, GG_EDIT_JOURNAL,
                                        "journal", err);
    gguf_paths_destroy(p);
    return st;
}

/* Copy a text for free(). NULL: out of memory. */
static char *copy_text(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

static enum gguf_status find_target(struct gg_edit *e, struct gguf_error *err)
{
    const struct gguf_file *f = e->file;
    if (!f->path || f->map.fd < 0 || f->map.off != 0)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "only a whole file that was opened by its path can be "
            "edited");
    e->replaces = !e->p.output;
    /* The target of a symbolic link is edited, not the link. */
    e->target =
        e->replaces ? gg_os_real_path(f->path) : copy_text(e->p.output);
    if (!e->target)
        return gg_error_set_errno(err, errno,
                                  "the file cannot be found again");
    GG_TRY(check_paths(e, err));
    return e->replaces ? gg_header_lock(e->target, &f->map, &e->lock, err)
                       : GGUF_OK;
}

/* Finish an interrupted edit of path, which m maps and fd has open. */
static enum gguf_status finish_edit(const struct gguf_allocator *a,
                                    const char *path,
                                    const struct gg_mapfile *m, int fd,
                                    bool *done, struct gguf_error *err)
{
    struct gg_edit_journal j;
    *done = false;
    GG_TRY(gg_edit_journal_find(&j, a, path, m, err));
    if (!j.header)
        return GGUF_OK;
    bool begun;
    enum gguf_status st =
        gg_header_overwrite(fd, m, j.header, j.size, &begun, err);
    if (st == GGUF_OK)
        st = gg_edit_journal_remove(a, path, err);
    gg_edit_journal_close(&j);
    *done = st == GGUF_OK;
    return st;
}

static enum gguf_status copy_meta(struct gg_edit *e,
                                  const struct gguf_meta *meta,
                                  struct gguf_error *err)
{
    GG_TRY(gguf_meta_create(&e->meta, e->a, err));
    for (size_t i = 0; i < gguf_meta_n_kv(meta); i++)
        GG_TRY(gguf_meta_set_kv(e->meta, NULL, gguf_meta_kv(meta, i), err));
    gguf_meta_remove(e->meta, GGUF_EDIT_PADDING_KEY);
    return GGUF_OK;
}

static enum gguf_status apply_edit(struct gg_edit *e,
                                   enum gguf_edit_result *result,
                                   struct gguf_error *err)
{
    const struct gguf_file *f = e->file;
    bool large = f->map.size >= GGUF_EDIT_LARGE;
    bool only_in_place = e->p.mode == GGUF_EDIT_IN_PLACE;
    bool fits = false;
    *result = GGUF_EDIT_COPIED;
    e->swaps = e->p.byte_order != GGUF_EDIT_KEEP_ORDER &&
               (e->p.byte_order == GGUF_EDIT_BIG_ENDIAN) != f->big_endian;
    if (e->swaps && only_in_place)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "the byte order cannot be changed in place: all tensor "
            "data is written anew");
    if (e->swaps)
        GG_TRY(gg_edit_check_order(e, err));
    GG_TRY(make_writer(e, err));
    if (e->relayout && !only_in_place)
        return write_relayout(e, err);
    if (e->swaps || e->p.mode == GGUF_EDIT_COPY || (!large && !only_in_place))
        return write_copy(e, false, err);
    if (only_in_place && f->data_off > GG_HEADER_KEPT)
        return gg_error_set(err, GGUF_E_NOSPACE, GGUF_NO_OFFSET,
                            "a header of %" PRIu64
                            " bytes is not written in place, "
                            "the limit is %" PRIu64,
                            f->data_off, GG_HEADER_KEPT);
    if (!e->relayout && e->replaces && f->data_off <= f->map.size &&
        f->data_off <= GG_HEADER_KEPT)
        GG_TRY(pad_to(e, f->data_off, &fits, err));
    if (fits)
        return write_in_place(e, result, err);
    if (only_in_place)
        return gg_error_set(err, GGUF_E_NOSPACE, GGUF_NO_OFFSET,
                            "the new header ends at byte %" PRIu64
                            ", the tensor data %s at %" PRIu64,
                            header_end(e),
                            e->relayout ? "would move, it begins" : "begins",
                            f->data_off);
    /* Data moves by whole extents and stays aligned. */
    uint64_t off = f->data_off, step = GG_MAX((uint64_t)EXTENT, f->align);
    while (off < header_end(e) + padding_size(0))
        off += step;
    GG_TRY(pad_to(e, off, &fits, err));
    return write_copy(e, fits, err);
}

enum gguf_status gguf_edit_apply(const struct gguf_file *file,
                                 const struct gguf_meta *meta,
                                 const struct gguf_edit_params *params,
                                 enum gguf_edit_result *result,
                                 struct gguf_error *err)
{
    struct gg_edit e = { .file = file,
                         .p = GGUF_INIT(struct gguf_edit_params),
                         .lock = -1 };
    enum gguf_edit_result ignored;
    bool done;
    GG_TRY(gg_params_take(&e.p, sizeof e.p, params, "gguf_edit_params", err));
    e.a = e.p.allocator;
    enum gguf_status st = find_target(&e, err);
    if (st == GGUF_OK && e.replaces)
        st = finish_edit(e.a, e.target, &file->map, e.lock, &done, err);
    if (st == GGUF_OK)
        st = copy_meta(&e, meta, err);
    if (st == GGUF_OK)
        st = apply_edit(&e, result ? result : &ignored, err);
    gguf_writer_destroy(e.w);
    gguf_meta_destroy(e.meta);
    gg_header_unlock(e.lock);
    free(e.target);
    return st;
}

enum gguf_status gguf_edit_recover(const char *path, bool *done,
                                   struct gguf_error *err)
{
    struct gg_mapfile m;
    struct gg_edit_journal j;
    int fd;
    bool yes = false;
    if (done)
        *done = false;
    GG_TRY(gg_mapfile_open(&m, path, 0, 0, err));
    enum gguf_status st = gg_edit_journal_find(&j, NULL, path, &m, err);
    if (st == GGUF_OK && j.header) {
        gg_edit_journal_close(&j); /* its edit may still be in progress */
        st = gg_header_lock(path, &m, &fd, err);
        if (st == GGUF_OK) {
            st = finish_edit(NULL, path, &m, fd, &yes, err);
            gg_header_unlock(fd);
        }
    }
    gg_mapfile_close(&m);
    if (done)
        *done = yes;
    return st;
}
