/* split_write.c - writing shards, and one file from shards */
#include "config.h"
#include "file/file.h"
#include "file/split_find.h"
#include "file/split_layout.h"
#include "file/split_plan.h"
#include "base/mem.h"
#include "base/params.h"
#include "base/str.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Between two calls of the progress callback: long enough that calls cost
 * nothing, short enough that a stop is prompt and what is dirty in memory
 * stays small. */
enum { STEP = 32 << 20 };

struct run {
    const struct gguf_split *from;
    const struct gguf_split_job *job;
    bool shares; /* blocks can be shared between inputs and outputs */
    uint64_t done, total; /* bytes of tensor data */
};

static enum gguf_status report(const struct run *r, struct gguf_error *err)
{
    if (r->job->progress && r->job->progress(r->job->user, r->done, r->total))
        return gg_fail(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET, "cancelled");
    return GGUF_OK;
}

static uint64_t data_size(const struct gguf_split *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < gguf_split_n_tensors(s); i++)
        n += gguf_split_tensor(s, i)->info->size;
    return n;
}

/* Tensor number from of the set becomes tensor number to of w. */
static enum gguf_status copy_tensor(struct run *r, struct gguf_writer *w,
                                    size_t from, size_t to,
                                    struct gguf_error *err)
{
    const struct gguf_split_tensor *t = gguf_split_tensor(r->from, from);
    GG_TRY(gguf_writer_begin(w, to, err));
    for (uint64_t off = 0; off < t->info->size;) {
        uint64_t n = GG_MIN(t->info->size - off, (uint64_t)STEP);
        GG_TRY(gguf_writer_copy(w, t->file, t->info->index, off, n, err));
        off += n;
        r->done += n;
        GG_TRY(report(r, err));
    }
    return GGUF_OK;
}

static enum gguf_status add_tensors(struct gguf_writer *w,
                                    const struct gguf_split *from,
                                    size_t first, size_t n,
                                    struct gguf_error *err)
{
    for (size_t i = 0; i < n; i++)
        GG_TRY(gguf_writer_add_like(
            w, gguf_split_tensor(from, first + i)->info, err));
    return GGUF_OK;
}

/* Does a copy of all tensors of w, those from number first on, take no room?
 * It does not where each has the place in a page that it had. */
static bool shares_all(const struct run *r, const struct gguf_writer *w,
                       size_t first)
{
    enum { PAGE = 4096 };
    bool all = r->shares;
    for (size_t i = 0; i < w->n_tensors && all; i++) {
        const struct gguf_split_tensor *t =
            gguf_split_tensor(r->from, first + i);
        all = (t->file->data_off + t->info->off - gguf_writer_data_off(w) -
               w->tensor[i].off) % PAGE == 0;
    }
    return all;
}

/* Can the file path share blocks with those of the set? A file that cannot be
 * made is for the writer to complain about. GGUF_E_NOMEM. */
static enum gguf_status try_sharing(struct run *r, const char *path,
                                    struct gguf_error *err)
{
    struct gg_outfile o;
    struct gguf_error why;
    enum gguf_status st = gg_outfile_open(&o, gg_split_allocator(r->from),
                                          path, GG_OUTFILE_FORCE, &why);
    if (st == GGUF_OK)
        r->shares =
            gg_outfile_can_share(&o, gguf_split_file(r->from, 0)->map.fd);
    gg_outfile_abort(&o);
    return st == GGUF_E_NOMEM
               ? gg_fail(err, st, GGUF_NO_OFFSET, "%s", why.message)
               : GGUF_OK;
}

/* The tensors of w, which are those from number first on, as path. */
static enum gguf_status write_file(struct run *r, struct gguf_writer *w,
                                   size_t first, const char *path,
                                   struct gguf_error *err)
{
    struct gguf_output_params out = GGUF_OUTPUT_PARAMS_INIT;
    out.force = r->job->force;
    out.no_sync = r->job->no_sync;
    out.no_reserve = shares_all(r, w, first);
    out.inputs = gg_split_files(r->from);
    out.n_inputs = gguf_split_n_files(r->from);
    GG_TRY(gguf_writer_open(w, path, &out, err));
    GG_TRY(report(r, err));
    for (size_t i = 0; i < gguf_writer_n_tensors(w); i++)
        GG_TRY(copy_tensor(r, w, first + i, i, err));
    return gguf_writer_commit(w, err);
}

/* ---- shards ---- */

/* Is the output an input? What is overwritten must not be what is read. */
static enum gguf_status not_an_input(const struct gguf_split *from,
                                     const char *path, const struct stat *sb,
                                     struct gguf_error *err)
{
    for (size_t i = 0; i < gguf_split_n_files(from); i++) {
        struct stat in;
        struct gg_esc e;
        if (stat(gguf_split_path(from, i), &in) == 0 &&
            in.st_dev == sb->st_dev && in.st_ino == sb->st_ino)
            return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                           "output '%s' is an input",
                           gg_esc(&e, gg_strz(path)));
    }
    return GGUF_OK;
}

/* No shard may be there, or with force: be an input. */
static enum gguf_status check_outputs(const struct gguf_split_plan *plan,
                                      const char *prefix, bool force,
                                      struct gguf_error *err)
{
    for (size_t i = 0; i < plan->n_shards; i++) {
        char *path;
        struct stat sb;
        struct gg_esc e;
        enum gguf_status st =
            gg_split_name(prefix, (unsigned)i + 1, (unsigned)plan->n_shards,
                          plan->allocator, &path, err);
        if (st == GGUF_OK && stat(path, &sb) == 0) {
            st = not_an_input(plan->from, path, &sb, err);
            if (st == GGUF_OK && !force)
                st = gg_fail(err, GGUF_E_EXIST, GGUF_NO_OFFSET,
                             "output '%s' exists already",
                             gg_esc(&e, gg_strz(path)));
        }
        gg_free(plan->allocator, path);
        GG_TRY(st);
    }
    return GGUF_OK;
}

/* Writer of shard i with its tensors; owned by the caller, NULL if it fails. */
static enum gguf_status shard_writer(const struct gguf_split_plan *plan,
                                     size_t i, struct gguf_writer **w,
                                     struct gguf_error *err)
{
    const struct gguf_split_shard *s = &plan->shards[i];
    GG_TRY(gg_split_writer(w, plan, i, plan->n_shards, err));
    enum gguf_status st =
        add_tensors(*w, plan->from, s->first_tensor, s->n_tensors, err);
    if (st != GGUF_OK) {
        gguf_writer_destroy(*w);
        *w = NULL;
    }
    return st;
}

/* Bytes that the file system must have for all shards. */
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

/* Is there room for all shards together? A folder that cannot be looked at is
 * for the first shard to complain about. */
static enum gguf_status check_room(const struct run *r,
                                   const struct gguf_split_plan *plan,
                                   const char *prefix, struct gguf_error *err)
{
    uint64_t size;
    size_t n = (size_t)(gg_split_base(prefix) - prefix);
    GG_TRY(room_needed(r, plan, &size, err));
    char *dir = gg_alloc(plan->allocator, n + 2);
    if (!dir)
        return gg_fail_nomem(err, n + 2);
    memcpy(dir, prefix, n);
    memcpy(dir + n, n ? "" : ".", n ? 1 : 2);
    struct statvfs v;
    int there = statvfs(dir, &v);
    gg_free(plan->allocator, dir);
    if (there == 0 && v.f_frsize > 0 && v.f_blocks > 0 &&
        size / v.f_frsize >= v.f_bavail)
        return gg_fail(err, GGUF_E_NOSPACE, GGUF_NO_OFFSET,
                       "the shards need %" PRIu64
                       " bytes, the file system has %" PRIu64 " free",
                       size, (uint64_t)v.f_bavail * (uint64_t)v.f_frsize);
    return GGUF_OK;
}

static enum gguf_status write_shard(struct run *r,
                                    const struct gguf_split_plan *plan,
                                    size_t i, const char *path,
                                    struct gguf_error *err)
{
    struct gguf_writer *w;
    GG_TRY(shard_writer(plan, i, &w, err));
    enum gguf_status st =
        write_file(r, w, plan->shards[i].first_tensor, path, err);
    gguf_writer_destroy(w);
    return st;
}

/* Take away the first n shards, which this run wrote. */
static void remove_shards(const struct gguf_split_plan *plan,
                          const char *prefix, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *path;
        if (gg_split_name(prefix, (unsigned)i + 1, (unsigned)plan->n_shards,
                          plan->allocator, &path, NULL) == GGUF_OK)
            unlink(path);
        gg_free(plan->allocator, path);
    }
}

enum gguf_status gguf_split_plan_write(const struct gguf_split_plan *plan,
                                       const char *prefix,
                                       const struct gguf_split_job *job,
                                       struct gguf_error *err)
{
    struct gguf_split_job own = GGUF_SPLIT_JOB_INIT;
    GG_TRY(gg_params_take(&own, sizeof own, job, "gguf_split_job", err));
    GG_TRY(check_outputs(plan, prefix, own.force, err));
    struct run r = { plan->from, &own, false, 0, data_size(plan->from) };
    GG_TRY(try_sharing(&r, prefix, err));
    GG_TRY(check_room(&r, plan, prefix, err));
    for (size_t i = 0; i < plan->n_shards; i++) {
        char *path;
        enum gguf_status st =
            gg_split_name(prefix, (unsigned)i + 1, (unsigned)plan->n_shards,
                          plan->allocator, &path, err);
        if (st == GGUF_OK)
            st = write_shard(&r, plan, i, path, err);
        gg_free(plan->allocator, path);
        if (st != GGUF_OK) {
            remove_shards(plan, prefix, i);
            return st;
        }
    }
    return GGUF_OK;
}

/* ---- one file ---- */

/* The merged file. */
struct merged {
    const struct gguf_split *set;
    struct gguf_writer *w;
    struct gg_split_layout layout;
    bool exact; /* layout says where things are, not the writer */
};

static enum gguf_status check_split(const struct gguf_split *set,
                                    struct gguf_error *err)
{
    if (gguf_split_is_split(set))
        return GGUF_OK;
    return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                   "nothing to merge: the file is no shard of a split model "
                   "(split.count is %s)",
                   gguf_file_kv_find(gguf_split_file(set, 0),
                                     gg_split_keys[GG_SPLIT_COUNT])
                       ? "0"
                       : "missing");
}

/* To be given to merged_fini in any case. */
static enum gguf_status merged_init(struct merged *m,
                                    const struct gguf_split *set,
                                    struct gguf_error *err)
{
    struct gguf_meta *meta;
    *m = (struct merged){ .set = set };
    GG_TRY(check_split(set, err));
    struct gguf_writer_params p = gg_split_writer_params(set);
    GG_TRY(gguf_meta_create(&meta, p.allocator, err));
    enum gguf_status st = gg_split_layout_take(
        &m->layout, meta, gguf_split_file(set, 0), p.allocator, err);
    if (st == GGUF_OK)
        st = gguf_writer_create(&m->w, meta, &p, err);
    gguf_meta_destroy(meta);
    if (st == GGUF_OK)
        st = add_tensors(m->w, set, 0, gguf_split_n_tensors(set), err);
    return st == GGUF_OK
               ? gg_split_layout_fit(&m->layout, m->w, &m->exact, err)
               : st;
}

static void merged_fini(struct merged *m)
{
    gguf_writer_destroy(m->w);
    gg_split_layout_fini(&m->layout);
}

/* All of tensor i behind what o has. */
static enum gguf_status append_tensor(struct run *r, struct gg_outfile *o,
                                      size_t i, struct gguf_error *err)
{
    const struct gguf_split_tensor *t = gguf_split_tensor(r->from, i);
    const struct gg_mapfile *map = &t->file->map;
    uint64_t from = map->off + t->file->data_off + t->info->off;
    for (uint64_t off = 0; off < t->info->size;) {
        uint64_t n = GG_MIN(t->info->size - off, (uint64_t)STEP);
        GG_TRY(gg_outfile_copy(o, map->fd, from + off, n, err));
        off += n;
        r->done += n;
        GG_TRY(report(r, err));
    }
    return GGUF_OK;
}

/* Header, then tensors in the order of their data and what is between. */
static enum gguf_status append_all(struct run *r, const struct merged *m,
                                   struct gg_outfile *o,
                                   struct gguf_error *err)
{
    const void *header;
    size_t size;
    uint64_t gap = 0;
    GG_TRY(gguf_writer_header(m->w, &header, &size, err));
    GG_TRY(gg_outfile_write(o, header, gg_split_layout_size(&m->layout, m->w) -
                                           m->layout.size, err));
    for (size_t k = 0; k < m->w->n_tensors; k++) {
        GG_TRY(gg_split_layout_gap(&m->layout, m->w, k, o, &gap, err));
        GG_TRY(append_tensor(r, o, m->layout.places[k].index, err));
    }
    return gg_split_layout_gap(&m->layout, m->w, m->w->n_tensors, o, &gap,
                               err);
}

/* A file that was laid out in another way than a writer does. */
static enum gguf_status write_exact(struct run *r, const struct merged *m,
                                    const char *path, struct gguf_error *err)
{
    struct gg_outfile o;
    struct stat sb;
    unsigned flags = (r->job->force ? GG_OUTFILE_FORCE : 0u) |
                     (r->job->no_sync ? GG_OUTFILE_NO_SYNC : 0u);
    if (stat(path, &sb) == 0)
        GG_TRY(not_an_input(m->set, path, &sb, err));
    GG_TRY(gg_outfile_open(&o, gg_split_allocator(m->set), path, flags, err));
    enum gguf_status st = GGUF_OK;
    if (!shares_all(r, m->w, 0))
        st = gg_outfile_reserve(
            &o, gg_split_layout_size(&m->layout, m->w), true, err);
    if (st == GGUF_OK)
        st = report(r, err);
    if (st == GGUF_OK)
        st = append_all(r, m, &o, err);
    if (st == GGUF_OK)
        st = gg_outfile_commit(&o, err);
    gg_outfile_abort(&o);
    return st;
}

enum gguf_status gguf_split_merge(const struct gguf_split *set,
                                  const char *path,
                                  const struct gguf_split_job *job,
                                  struct gguf_error *err)
{
    struct merged m;
    struct gguf_split_job own = GGUF_SPLIT_JOB_INIT;
    GG_TRY(gg_params_take(&own, sizeof own, job, "gguf_split_job", err));
    enum gguf_status st = merged_init(&m, set, err);
    struct run r = { set, &own, false, 0, data_size(set) };
    if (st == GGUF_OK)
        st = try_sharing(&r, path, err);
    if (st == GGUF_OK)
        st = m.exact ? write_exact(&r, &m, path, err)
                     : write_file(&r, m.w, 0, path, err);
    merged_fini(&m);
    return st;
}

enum gguf_status gguf_split_merge_size(const struct gguf_split *set,
                                       uint64_t *size, struct gguf_error *err)
{
    struct merged m;
    enum gguf_status st = merged_init(&m, set, err);
    if (st == GGUF_OK)
        *size = m.exact ? gg_split_layout_size(&m.layout, m.w)
                        : gguf_writer_file_size(m.w);
    merged_fini(&m);
    return st;
}
