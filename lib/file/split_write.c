/* SPDX-License-Identifier: MIT */
/* split_write.c - write shards, and merge shards into one file */
#include "config.h"
#include "file/file_int.h"
#include "file/split_find.h"
#include "file/split_layout.h"
#include "file/split_plan.h"
#include "file/merge_journal.h"
#include "base/mem.h"
#include "base/os/os.h"
#include "base/params.h"
#include "base/paths_int.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Bytes between two calls of the progress callback. Calls then cost nothing,
 * jobs stop promptly, and little unwritten data is in memory. */
enum { STEP = 32 << 20 };

/* Largest number of finished outputs without a name. Each holds a
 * descriptor. */
enum { MAX_NAMELESS = 256 };

struct run {
    const struct gguf_file *from;
    const struct gguf_split_output_params *job;
    bool shares;              /* inputs and outputs can share extents */
    uint64_t done, total;     /* bytes of tensor data done, and all */
    struct gg_outfile *files; /* n_files outputs: finished and not yet
                               * published, or closed */
    size_t n_files;
    struct gg_merge_journal *resume; /* journal of a merge; NULL: none */
};

static enum gguf_status report_progress(const struct run *r,
                                        struct gguf_error *err)
{
    if (r->job->progress.fn &&
        r->job->progress.fn(r->job->progress.user, r->done, r->total))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}

/* Report and record a piece that was appended to o. */
static enum gguf_status note_piece(const struct run *r, struct gg_outfile *o,
                                   struct gguf_error *err)
{
    if (r->resume)
        GG_TRY(gg_merge_journal_note(r->resume, o, err));
    return report_progress(r, err);
}

static uint64_t data_size(const struct gguf_file *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < gguf_file_n_tensors(s); i++)
        n += gguf_file_tensor(s, i)->size;
    return n;
}

/* Copy tensor `from' of the input to tensor `to' of w. */
static enum gguf_status copy_tensor(struct run *r, struct gguf_writer *w,
                                    size_t from, size_t to,
                                    struct gguf_error *err)
{
    const uint64_t size = r->from->tensor[from].size;
    GG_TRY(gguf_writer_begin_tensor(w, to, err));
    for (uint64_t off = 0; off < size;) {
        uint64_t n = GG_MIN(size - off, (uint64_t)STEP);
        GG_TRY(gguf_writer_copy(w, r->from, from, off, n, err));
        off += n;
        r->done += n;
        GG_TRY(note_piece(r, &w->out, err));
    }
    return GGUF_OK;
}

static enum gguf_status add_tensors(struct gguf_writer *w,
                                    const struct gguf_file *from, size_t first,
                                    size_t n, struct gguf_error *err)
{
    for (size_t i = 0; i < n; i++)
        GG_TRY(
            gguf_writer_add_like(w, gguf_file_tensor(from, first + i), err));
    return GGUF_OK;
}

/* Can all tensors of w, which are the input's from `first' on, share extents
 * with the input? They can if each keeps its offset within a page. */
static bool shares_all(const struct run *r, const struct gguf_writer *w,
                       size_t first)
{
    enum { PAGE = 4096 };
    bool all = r->shares;
    for (size_t i = 0; i < w->n_tensors && all; i++) {
        const struct gg_file_shard_tensor t =
            gg_file_in_shard(r->from, first + i);
        all = (t.file->data_off + t.info->off - gguf_writer_data_off(w) -
               w->tensor[i].off) %
                  PAGE ==
              0;
    }
    return all;
}

/* Find out whether a file at path can share extents with the input. If the file
 * cannot be created, the writer fails later. GGUF_E_NOMEM. */
static enum gguf_status try_sharing(struct run *r, const char *path,
                                    struct gguf_error *err)
{
    struct gg_outfile o;
    struct gguf_error why;
    enum gguf_status st =
        gg_outfile_open(&o, r->from->allocator, path, GG_OUTFILE_FORCE, &why);
    if (st == GGUF_OK)
        r->shares =
            gg_outfile_can_share(&o, gguf_file_shard(r->from, 0)->map.fd);
    gg_outfile_abort(&o);
    return st == GGUF_E_NOMEM
               ? gg_error_set(err, st, GGUF_NO_OFFSET, "%s", why.message)
               : GGUF_OK;
}

/* Write the file of w, whose tensors are the input's from `first' on. *file
 * receives the finished file, which is not yet published. */
static enum gguf_status write_file(struct run *r, struct gguf_writer *w,
                                   size_t first, const char *path,
                                   struct gg_outfile *file,
                                   struct gguf_error *err)
{
    struct gguf_output_params out = GGUF_INIT(struct gguf_output_params);
    out.force = r->job->force;
    out.no_sync = r->job->no_sync;
    out.no_reserve = shares_all(r, w, first);
    out.partial = out.resume = r->resume != NULL;
    GG_TRY(gguf_writer_begin_file(
        w, path, &out, err)); /* inputs were checked by note_inputs() */
    if (r->resume)
        GG_TRY(gg_merge_journal_skip(r->resume, &w->out, err));
    GG_TRY(report_progress(r, err));
    for (size_t i = 0; i < gguf_writer_n_tensors(w); i++)
        GG_TRY(copy_tensor(r, w, first + i, i, err));
    GG_TRY(gg_writer_finish(w, err));
    if (r->n_files > MAX_NAMELESS)
        GG_TRY(gg_outfile_park(&w->out, err));
    *file = w->out;
    w->out = (struct gg_outfile){ .fd = -1 };
    return GGUF_OK;
}

static enum gguf_status sync_folder(const struct run *r,
                                    struct gguf_error *err)
{
    enum gguf_status st = gg_outfile_sync_folder(&r->files[0], err);
    if (st != GGUF_OK && r->n_files > 1 && err) {
        char old[sizeof err->message];
        memcpy(old, err->message, sizeof old);
        snprintf(err->message, sizeof err->message,
                 "all %zu shards have their names; each %.180s", r->n_files,
                 old);
    }
    return st;
}

static struct gg_outfile *file_at(void *run, size_t i)
{
    return &((struct run *)run)->files[i];
}

/* Check that the inputs have not changed, then publish all files or none. */
static enum gguf_status give_names(struct run *r, struct gguf_error *err)
{
    GG_TRY(gg_file_check_unchanged(r->from, err));
    size_t bad;
    enum gguf_status st =
        gg_outfile_publish_all(file_at, r, r->n_files, true, &bad, err);
    if (st == GGUF_OK)
        return sync_folder(r, err);
    if (r->n_files > 1)
        gg_file_split_in_shard(st, r->files[bad].path, err);
    return st;
}

/* Initialize a run with n outputs. Call run_fini() after a failure, too. */
static enum gguf_status run_init(struct run *r, const struct gguf_file *from,
                                 const struct gguf_split_output_params *job,
                                 size_t n, struct gguf_error *err)
{
    *r = (struct run){ .from = from, .job = job, .total = data_size(from) };
    r->files = gg_mem_alloc_zero(from->allocator, n, sizeof *r->files);
    if (!r->files)
        return gg_error_set_nomem(err, n * sizeof *r->files);
    for (; r->n_files < n; r->n_files++)
        r->files[r->n_files].fd = -1;
    return GGUF_OK;
}

static void run_fini(struct run *r)
{
    for (size_t i = 0; i < r->n_files; i++)
        gg_outfile_abort(&r->files[i]);
    gg_mem_free(r->from->allocator, r->files);
}

/* Create a set of paths with the inputs. */
static enum gguf_status note_inputs(const struct gguf_file *from,
                                    struct gguf_paths **paths,
                                    struct gguf_error *err)
{
    GG_TRY(gguf_paths_create(paths, from->allocator, err));
    return gg_file_add_paths(from, *paths, err);
}

/* ---- shards ---- */

static enum gguf_status check_output(struct gguf_paths *paths,
                                     const char *path, bool force,
                                     struct gguf_error *err)
{
    struct gg_os_stat s;
    struct gg_str_esc e;
    GG_TRY(gguf_paths_add_output(paths, path, "output", err));
    if (!force && gg_os_stat_link(path, &s) == 0)
        return gg_error_set(err, GGUF_E_EXIST, GGUF_NO_OFFSET,
                            "output '%s' exists already",
                            gg_str_esc(&e, gg_str_z(path)));
    return GGUF_OK;
}

/* Check that no output exists, unless force, and that no output is an input. */
static enum gguf_status check_outputs(const struct gguf_split_plan *plan,
                                      const char *prefix, bool force,
                                      struct gguf_error *err)
{
    struct gguf_paths *paths;
    enum gguf_status st = note_inputs(plan->from, &paths, err);
    for (size_t i = 0; i < plan->n_shards && st == GGUF_OK; i++) {
        char *path;
        st = gg_file_split_name(prefix, (unsigned)i + 1,
                                (unsigned)plan->n_shards, plan->allocator,
                                &path, err);
        if (st == GGUF_OK)
            st = check_output(paths, path, force, err);
        gg_mem_free(plan->allocator, path);
    }
    gguf_paths_destroy(paths);
    return st;
}

/* Create the writer of shard i with its tensors. NULL after a failure. */
static enum gguf_status shard_writer(const struct gguf_split_plan *plan,
                                     size_t i, struct gguf_writer **w,
                                     struct gguf_error *err)
{
    const struct gguf_split_shard *s = &plan->shards[i];
    GG_TRY(gg_file_split_writer(w, plan, i, plan->n_shards, err));
    enum gguf_status st =
        add_tensors(*w, plan->from, s->first_tensor, s->n_tensors, err);
    if (st != GGUF_OK) {
        gguf_writer_destroy(*w);
        *w = NULL;
    }
    return st;
}

/* Disk space that all shards need, in bytes. */
static enum gguf_status room_needed(const struct run *r,
                                    const struct gguf_split_plan *plan,
                                    uint64_t *size, struct gguf_error *err)
{
    *size = 0;
    for (size_t i = 0; i < plan->n_shards; i++) {
        bool shared = false;
        if (r->shares) {
            struct gguf_writer *w;
            GG_TRY(shard_writer(plan, i, &w, err));
            shared = shares_all(r, w, plan->shards[i].first_tensor);
            gguf_writer_destroy(w);
        }
        *size += shared ? 0 : plan->shards[i].file_size;
    }
    return GGUF_OK;
}

/* Check that the disk has room for all shards together. If the folder cannot be
 * read, the first shard fails later. */
static enum gguf_status check_room(const struct run *r,
                                   const struct gguf_split_plan *plan,
                                   const char *prefix, struct gguf_error *err)
{
    uint64_t size;
    size_t n = (size_t)(gg_file_split_base(prefix) - prefix);
    GG_TRY(room_needed(r, plan, &size, err));
    char *dir = gg_mem_alloc(plan->allocator, n + 2);
    if (!dir)
        return gg_error_set_nomem(err, n + 2);
    memcpy(dir, prefix, n);
    memcpy(dir + n, n ? "" : ".", n ? 1 : 2);
    uint64_t n_free;
    const bool known = gg_os_free_space(dir, &n_free) == 0;
    gg_mem_free(plan->allocator, dir);
    if (known && size >= n_free)
        return gg_error_set(err, GGUF_E_NOSPACE, GGUF_NO_OFFSET,
                            "the shards need %" PRIu64
                            " bytes, the file system has %" PRIu64 " free",
                            size, n_free);
    return GGUF_OK;
}

static enum gguf_status write_shard(struct run *r,
                                    const struct gguf_split_plan *plan,
                                    size_t i, const char *prefix,
                                    struct gguf_error *err)
{
    struct gguf_writer *w;
    char *path;
    enum gguf_status st =
        gg_file_split_name(prefix, (unsigned)i + 1, (unsigned)plan->n_shards,
                           plan->allocator, &path, err);
    if (st == GGUF_OK)
        st = shard_writer(plan, i, &w, err);
    if (st == GGUF_OK) {
        st = write_file(r, w, plan->shards[i].first_tensor, path, &r->files[i],
                        err);
        gguf_writer_destroy(w);
    }
    gg_mem_free(plan->allocator, path);
    return st;
}

enum gguf_status
gguf_split_plan_write(const struct gguf_split_plan *plan, const char *prefix,
                      const struct gguf_split_output_params *job,
                      struct gguf_error *err)
{
    struct gguf_split_output_params own =
        GGUF_INIT(struct gguf_split_output_params);
    struct run r;
    GG_TRY(gg_params_take(&own, sizeof own, job, "gguf_split_output_params",
                          err));
    GG_TRY(check_outputs(plan, prefix, own.force, err));
    enum gguf_status st = run_init(&r, plan->from, &own, plan->n_shards, err);
    if (st == GGUF_OK)
        st = try_sharing(&r, prefix, err);
    if (st == GGUF_OK)
        st = check_room(&r, plan, prefix, err);
    for (size_t i = 0; i < plan->n_shards && st == GGUF_OK; i++)
        st = write_shard(&r, plan, i, prefix, err);
    if (st == GGUF_OK)
        st = give_names(&r, err);
    run_fini(&r);
    return st;
}

/* ---- merging ---- */

/* A merged file. */
struct merged {
    const struct gguf_file *set;
    struct gguf_writer *w;
    struct gg_file_split_layout layout;
    bool exact; /* layout is used instead of the writer's own */
};

static enum gguf_status check_split(const struct gguf_file *set,
                                    struct gguf_error *err)
{
    if (gguf_file_is_split(set))
        return gg_file_check_whole(set, "to be merged", err);
    return gg_error_set(
        err, GGUF_E_INVALID, GGUF_NO_OFFSET,
        "nothing to merge: the file is not a shard of a split model "
        "(split.count is %s)",
        gguf_file_kv_find(gguf_file_shard(set, 0),
                          gg_file_split_keys[GG_SPLIT_COUNT])
            ? "0"
            : "missing");
}

/* Initialize. Call merged_fini() after a failure, too. */
static enum gguf_status merged_init(struct merged *m,
                                    const struct gguf_file *set,
                                    struct gguf_error *err)
{
    struct gguf_meta *meta;
    *m = (struct merged){ .set = set };
    GG_TRY(check_split(set, err));
    struct gguf_writer_params p = gg_file_split_writer_params(set);
    GG_TRY(gguf_meta_create(&meta, p.allocator, err));
    enum gguf_status st = gg_file_split_layout_take(
        &m->layout, meta, gguf_file_shard(set, 0), p.allocator, err);
    if (st == GGUF_OK)
        st = gguf_writer_create(&m->w, meta, &p, err);
    gguf_meta_destroy(meta);
    if (st == GGUF_OK)
        st = add_tensors(m->w, set, 0, gguf_file_n_tensors(set), err);
    return st == GGUF_OK
               ? gg_file_split_layout_fit(&m->layout, m->w, &m->exact, err)
               : st;
}

static void merged_fini(struct merged *m)
{
    gguf_writer_destroy(m->w);
    gg_file_split_layout_fini(&m->layout);
}

/* Append tensor i to o. */
static enum gguf_status append_tensor(struct run *r, struct gg_outfile *o,
                                      size_t i, struct gguf_error *err)
{
    const struct gg_file_shard_tensor t = gg_file_in_shard(r->from, i);
    uint64_t from = t.file->data_off + t.info->off;
    for (uint64_t off = 0; off < t.info->size;) {
        uint64_t n = GG_MIN(t.info->size - off, (uint64_t)STEP);
        GG_TRY(gg_file_copy(o, t.file, from + off, n, err));
        off += n;
        r->done += n;
        GG_TRY(note_piece(r, o, err));
    }
    return GGUF_OK;
}

/* Append the header, then tensors in order of offset and the bytes between. */
static enum gguf_status append_all(struct run *r, const struct merged *m,
                                   struct gg_outfile *o,
                                   struct gguf_error *err)
{
    const void *header;
    size_t size;
    uint64_t gap = 0;
    GG_TRY(gguf_writer_header(m->w, &header, &size, err));
    GG_TRY(gg_outfile_write(
        o, header,
        gg_file_split_layout_size(&m->layout, m->w) - m->layout.size, err));
    for (size_t k = 0; k < m->w->n_tensors; k++) {
        GG_TRY(gg_file_split_layout_gap(&m->layout, m->w, k, o, &gap, err));
        GG_TRY(append_tensor(r, o, m->layout.places[k].index, err));
    }
    return gg_file_split_layout_gap(&m->layout, m->w, m->w->n_tensors, o, &gap,
                                    err);
}

/* Write a file whose layout differs from a writer's. */
static enum gguf_status write_exact(struct run *r, const struct merged *m,
                                    const char *path, struct gg_outfile *o,
                                    struct gguf_error *err)
{
    unsigned flags = (r->job->force ? GG_OUTFILE_FORCE : 0u) |
                     (r->job->no_sync ? GG_OUTFILE_NO_SYNC : 0u) |
                     (r->resume ? GG_OUTFILE_PARTIAL | GG_OUTFILE_RESUME : 0u);
    GG_TRY(gg_outfile_open(o, m->set->allocator, path, flags, err));
    enum gguf_status st =
        r->resume ? gg_merge_journal_skip(r->resume, o, err) : GGUF_OK;
    if (st == GGUF_OK && !shares_all(r, m->w, 0))
        st = gg_outfile_reserve(o, gg_file_split_layout_size(&m->layout, m->w),
                                true, err);
    if (st == GGUF_OK)
        st = report_progress(r, err);
    if (st == GGUF_OK)
        st = append_all(r, m, o, err);
    return st == GGUF_OK ? gg_outfile_finish(o, err) : st;
}

/* Check that neither the output nor a file beside it is an input. */
static enum gguf_status check_merged(const struct run *r,
                                     const struct merged *m, const char *path,
                                     struct gguf_error *err)
{
    struct gguf_paths *paths;
    enum gguf_status st = note_inputs(m->set, &paths, err);
    if (st == GGUF_OK)
        st = gguf_paths_add_output(paths, path, "output", err);
    if (st == GGUF_OK && r->job->resume)
        st = gg_paths_add_output_beside(paths, path, GG_OUTFILE_PART,
                                        "unfinished output", err);
    if (st == GGUF_OK && r->job->resume)
        st = gg_paths_add_output_beside(paths, path, GG_JOURNAL_SUFFIX,
                                        "journal", err);
    gguf_paths_destroy(paths);
    return st;
}

static enum gguf_status write_merged(struct run *r, const struct merged *m,
                                     const char *path, struct gguf_error *err)
{
    if (!r->resume) /* a resumable merge reads back its output */
        GG_TRY(try_sharing(r, path, err));
    GG_TRY(m->exact ? write_exact(r, m, path, r->files, err)
                    : write_file(r, m->w, 0, path, r->files, err));
    return give_names(r, err);
}

/* Merge with a journal. */
static enum gguf_status merge_on(struct run *r, const struct merged *m,
                                 const char *path, struct gguf_error *err)
{
    struct gg_merge_journal resume;
    struct gg_os_stat s;
    struct gg_str_esc e;
    if (!r->job->force && gg_os_stat_link(path, &s) == 0)
        return gg_error_set(err, GGUF_E_EXIST, GGUF_NO_OFFSET,
                            "output '%s' exists already",
                            gg_str_esc(&e, gg_str_z(path)));
    enum gguf_status st =
        gg_merge_journal_open(&resume, m->set, m->w, &m->layout, path, err);
    r->resume = &resume;
    if (st == GGUF_OK)
        st = write_merged(r, m, path, err);
    const int reason = gg_merge_journal_close(&resume, st == GGUF_OK);
    r->resume = NULL;
    return st == GGUF_OK && reason
               ? gg_error_set_errno(err, reason,
                                    "is complete, but the journal beside it "
                                    "cannot be removed")
               : st;
}

enum gguf_status gguf_split_merge(const struct gguf_file *set,
                                  const char *path,
                                  const struct gguf_split_output_params *job,
                                  struct gguf_error *err)
{
    struct merged m;
    struct run r;
    struct gguf_split_output_params own =
        GGUF_INIT(struct gguf_split_output_params);
    GG_TRY(gg_params_take(&own, sizeof own, job, "gguf_split_output_params",
                          err));
    enum gguf_status st = run_init(&r, set, &own, 1, err);
    if (st == GGUF_OK) {
        st = merged_init(&m, set, err);
        if (st == GGUF_OK)
            st = check_merged(&r, &m, path, err);
        if (st == GGUF_OK)
            st = own.resume ? merge_on(&r, &m, path, err)
                            : write_merged(&r, &m, path, err);
        merged_fini(&m);
    }
    run_fini(&r);
    return st;
}

enum gguf_status gguf_split_merge_size(const struct gguf_file *set,
                                       uint64_t *size, struct gguf_error *err)
{
    struct merged m;
    enum gguf_status st = merged_init(&m, set, err);
    if (st == GGUF_OK)
        *size = m.exact ? gg_file_split_layout_size(&m.layout, m.w)
                        : gguf_writer_file_size(m.w);
    merged_fini(&m);
    return st;
}
