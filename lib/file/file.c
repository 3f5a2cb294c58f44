/* SPDX-License-Identifier: MIT */
/* file.c - open and check a file */
#include "config.h"
#include "file/file_int.h"
#include "file/header.h"
#include "file/image_models.h"
#include "file/edit_journal.h"
#include "file/limits.h"
#include "file/shard_set.h"
#include "file/value.h"
#include "gguf/writer.h"
#include "base/mem.h"
#include "base/params.h"
#include "base/paths_int.h"
#include "base/str.h"

#include <string.h>
#include <xxhash.h>

static struct gguf_str kv_name(const void *user, uint32_t id)
{
    const struct gguf_file *f = user;
    return f->kv[id].key;
}

static struct gguf_str tensor_name(const void *user, uint32_t id)
{
    const struct gguf_file *f = user;
    return f->tensor[id].name;
}

/* The counts in the header are not trusted: lists grow as entries are read. */

static enum gguf_status read_kvs(struct gguf_file *f, struct gg_cursor *c,
                                 const struct gguf_limits *limits, uint64_t n,
                                 struct gguf_error *err)
{
    GG_TRY(gg_index_init(&f->kv_index, f->allocator, 64, kv_name, f, err));
    for (uint64_t i = 0; i < n; i++) {
        if (f->n_kv == f->kv_room) {
            void *grown = gg_mem_grow(f->allocator, f->kv, &f->kv_room,
                                      sizeof *f->kv, 64, err);
            if (!grown)
                return GGUF_E_NOMEM;
            f->kv = grown;
        }
        struct gguf_kv *kv = &f->kv[f->n_kv];
        GG_TRY(gg_kv_read(c, limits, kv, err));
        uint32_t other;
        GG_TRY(gg_index_add(&f->kv_index, (uint32_t)f->n_kv, &other, err));
        struct gg_str_esc e;
        if (other != GG_INDEX_NONE)
            return gg_error_set(err, GGUF_E_DUPLICATE, kv->key_off,
                                "duplicate key '%s' at byte %" PRIu64
                                ", first at byte %" PRIu64,
                                gg_str_esc(&e, kv->key), kv->key_off,
                                f->kv[other].key_off);
        f->n_kv++;
    }
    return GGUF_OK;
}

enum gguf_status gg_file_index_tensors(struct gguf_file *f, uint32_t n,
                                       struct gguf_error *err)
{
    return gg_index_init(&f->tensor_index, f->allocator, n, tensor_name, f,
                         err);
}

static enum gguf_status read_tensors(struct gguf_file *f, struct gg_cursor *c,
                                     const struct gguf_limits *limits,
                                     uint64_t n, struct gguf_error *err)
{
    GG_TRY(gg_file_index_tensors(f, 64, err));
    for (uint64_t i = 0; i < n; i++) {
        if (f->n_tensors == f->tensor_room) {
            void *grown = gg_mem_grow(f->allocator, f->tensor, &f->tensor_room,
                                      sizeof *f->tensor, 64, err);
            if (!grown)
                return GGUF_E_NOMEM;
            f->tensor = grown;
        }
        struct gguf_tensor_info *t = &f->tensor[f->n_tensors];
        GG_TRY(gg_tensor_info_read(c, limits, f->may_be_empty, t, err));
        t->index = (uint32_t)i;
        t->shard = 0;
        uint32_t other;
        GG_TRY(gg_index_add(&f->tensor_index, t->index, &other, err));
        struct gg_str_esc e;
        if (other != GG_INDEX_NONE)
            return gg_error_set(err, GGUF_E_DUPLICATE, t->info_off,
                                "duplicate tensor '%s' at byte %" PRIu64
                                ", first at byte %" PRIu64,
                                gg_str_esc(&e, t->name), t->info_off,
                                f->tensor[other].info_off);
        f->n_tensors++;
    }
    return GGUF_OK;
}

static enum gguf_status place_data(struct gguf_file *f, struct gguf_error *err)
{
    if (gg_file_align_up(&f->data_off, f->header_end, f->align))
        return gg_error_set(
            err, GGUF_E_OVERFLOW, f->header_end,
            "the offset of the tensor data does not fit 63 bits");
    f->data_end = f->data_off;
    if (f->n_tensors == 0)
        return GGUF_OK;
    if (f->data_off > f->map.size)
        return gg_error_set(err, GGUF_E_TRUNCATED, f->header_end,
                            "tensor data would begin at byte %" PRIu64
                            " (alignment %" PRIu32
                            "), the file ends at %" PRIu64,
                            f->data_off, f->align, f->map.size);
    f->places =
        gg_mem_alloc_zero(f->allocator, f->n_tensors, sizeof *f->places);
    if (!f->places)
        return gg_error_set_nomem(err, f->n_tensors * sizeof *f->places);
    uint64_t end;
    GG_TRY(gg_file_layout_check(f->tensor, f->n_tensors, f->places,
                                f->data_off, f->map.size, f->align, &end,
                                err));
    f->data_end = f->data_off + end;
    return GGUF_OK;
}

/* Take what programs for image and video models take. Limits other than the
 * defaults stay. A later shard does not say its architecture. */
static void raise_limits(struct gguf_file *f, struct gguf_limits *limits)
{
    const struct gguf_kv *arch = gguf_file_kv_find(f, "general.architecture");
    f->may_be_empty = arch ? gg_image_models_have(arch)
                           : gguf_file_kv_find(f, "split.no") != NULL;
    if (!f->may_be_empty)
        return;
    if (limits->max_name_size == gg_limits_default.max_name_size)
        limits->max_name_size = GG_IMAGE_NAME_SIZE;
    if (limits->max_dims == gg_limits_default.max_dims)
        limits->max_dims = GG_IMAGE_DIMS;
}

static enum gguf_status read_all(struct gguf_file *f,
                                 const struct gguf_limits *limits,
                                 struct gguf_error *err)
{
    struct gg_cursor c = { .base = f->map.data, .size = f->map.size };
    struct gguf_limits own = *limits;
    struct gg_file_head h;
    gg_file_reader_cursor(f, limits->max_header, &c);
    GG_TRY(gg_file_head_read(&c, limits, &h, err));
    f->version = h.version;
    f->big_endian = c.swap;
    GG_TRY(read_kvs(f, &c, limits, h.n_kv, err));
    GG_TRY(gg_file_align_from_kv(gguf_file_kv_find(f, "general.alignment"),
                                 &f->align, err));
    raise_limits(f, &own);
    GG_TRY(read_tensors(f, &c, &own, h.n_tensors, err));
    f->header_end = c.off;
    GG_TRY(place_data(f, err));
    return gg_cursor_need(&c, GG_MIN(f->data_off, f->map.size), err);
}

/* Source of a file's bytes. The first member that is set counts. */
struct source {
    const char *path; /* path, or the name of a reader */
    const void *data; /* memory */
    size_t size;      /* bytes at data */
    int fd;           /* descriptor */
    uint64_t planned; /* size of a planned file, whose header is data; or 0 */
    const struct gguf_reader *reader; /* reader; it comes before path */
};

static enum gguf_status map_source(struct gguf_file *f, const struct source *s,
                                   const struct gguf_file_params *p,
                                   struct gguf_error *err)
{
    if (s->reader) {
        GG_TRY(gg_mapfile_open_reader(&f->map, s->reader->read_at,
                                      s->reader->user, s->reader->size,
                                      p->offset, p->size, err));
        f->map.version = s->reader->version;
        return GGUF_OK;
    }
    if (s->path)
        return gg_mapfile_open(&f->map, s->path, p->offset, p->size, err);
    if (s->data)
        return gg_mapfile_open_memory(&f->map, s->data, s->size, p->offset,
                                      p->size, err);
    return gg_mapfile_open_fd(&f->map, s->fd, p->offset, p->size, err);
}

/* Free the members that belong to a set. The others belong to its first
 * shard. */
static void forget_shards(struct gguf_file *f)
{
    for (unsigned i = 0; i < f->n_shards; i++)
        gguf_file_close(f->shard[i]);
    gg_mem_free(f->allocator, f->shard);
}

/* Free all members except path and allocator. */
static void forget_contents(struct gguf_file *f)
{
    const struct gguf_allocator *a = f->allocator;
    gg_index_fini(&f->tensor_index);
    gg_mem_free(a, f->tensor);
    if (f->shard) {
        forget_shards(f);
    } else {
        gg_index_fini(&f->kv_index);
        gg_mem_free(a, f->places);
        gg_mem_free(a, f->kv);
        gg_mapfile_close(&f->map);
        gguf_writer_destroy(f->writer);
    }
    *f = (struct gguf_file){ .allocator = a,
                             .path = f->path,
                             .map = { .fd = -1 } };
}

/* ----------------------------------------- files that are being edited --- */

/* Read the header from the journal of an interrupted edit, if one exists. */
static enum gguf_status apply_journal(struct gguf_file *f, bool *there,
                                      struct gguf_error *err)
{
    struct gg_edit_journal j;
    *there = false;
    GG_TRY(gg_edit_journal_find(&j, f->allocator, f->path, &f->map, err));
    if (!j.header)
        return GGUF_OK;
    *there = true;
    enum gguf_status st = gg_mapfile_overlay(&f->map, j.header, j.size, err);
    gg_edit_journal_close(&j);
    return st;
}

/* Read the file at f->path once. *torn receives whether another process wrote
 * to it meanwhile, so that the header may be a mixture of two.
 *
 * An edit in place saves its journal before it writes, removes it afterwards,
 * and changes the time of the file (edit_journal.h). So if no journal exists
 * before and after reading, and the time is the same, no edit came between. The
 * header is then kept as a copy, which later edits do not change. */
static enum gguf_status read_once(struct gguf_file *f, const struct source *s,
                                  const struct gguf_file_params *p,
                                  const struct gguf_limits *limits, bool *torn,
                                  struct gguf_error *err)
{
    struct gg_edit_journal j = { .map.fd = -1 };
    bool from_journal;
    *torn = false;
    GG_TRY(map_source(f, s, p, err));
    GG_TRY(apply_journal(f, &from_journal, err));
    enum gguf_status st = read_all(f, limits, err);
    if (st == GGUF_OK && !from_journal && f->data_off <= GG_HEADER_KEPT)
        st = gg_mapfile_copy_head(&f->map, f->data_off, err);
    if (from_journal || st == GGUF_E_NOMEM || st == GGUF_E_IO)
        return st;
    *torn = gg_mapfile_check_unchanged(&f->map, f->map.fd, NULL) != GGUF_OK;
    if (*torn)
        return st;
    enum gguf_status found = gg_edit_journal_find(
        &j, f->allocator, f->path, &f->map, st == GGUF_OK ? err : NULL);
    *torn = found == GGUF_OK && j.header;
    if (*torn)
        gg_edit_journal_close(&j);
    return st == GGUF_OK ? found : st;
}

/* Read the file at f->path until it is not torn. A file that grows meanwhile,
 * such as a download, has a constant header: it counts as read when three
 * attempts agree. */
static enum gguf_status read_path(struct gguf_file *f, const struct source *s,
                                  const struct gguf_file_params *p,
                                  const struct gguf_limits *limits,
                                  struct gguf_error *err)
{
    enum { TRIES = 100 };
    XXH64_hash_t print, last = 0;
    unsigned same = 0;
    bool torn;
    for (int i = 0; i < TRIES; i++) {
        forget_contents(f);
        enum gguf_status st = read_once(f, s, p, limits, &torn, err);
        if (!torn)
            return st;
        print = st == GGUF_OK ? XXH3_64bits(f->map.data, f->header_end)
                              : (XXH64_hash_t)st;
        same = print == last ? same + 1 : 0;
        last = print;
        if (same == 2)
            return st;
    }
    return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                        "has changed each time it was read, %d times", TRIES);
}

enum gguf_status gg_file_set_path(struct gguf_file *f, const char *path,
                                  struct gguf_error *err)
{
    size_t n = strlen(path) + 1;
    f->path = gg_mem_alloc(f->allocator, n);
    if (!f->path)
        return gg_error_set_nomem(err, n);
    memcpy(f->path, path, n);
    return GGUF_OK;
}

static enum gguf_status read_source(struct gguf_file *f,
                                    const struct source *s,
                                    const struct gguf_file_params *p,
                                    const struct gguf_limits *limits,
                                    struct gguf_error *err)
{
    if (s->path)
        GG_TRY(gg_file_set_path(f, s->path, err));
    if (s->path && !s->reader && !p->offset && !p->size)
        return read_path(f, s, p, limits, err);
    GG_TRY(map_source(f, s, p, err));
    if (s->planned)
        f->map.size = s->planned; /* the header ends before s->size */
    return read_all(f, limits, err);
}

static enum gguf_status open_source(struct gguf_file **out,
                                    const struct source *s,
                                    const struct gguf_file_params *params,
                                    struct gguf_error *err)
{
    struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
    struct gguf_limits limits;
    *out = NULL;
    GG_TRY(gg_file_params_take(&p, params, err));
    GG_TRY(gg_limits_resolve(&limits, p.limits, err));
    struct gguf_file *f = gg_mem_alloc_zero(p.allocator, 1, sizeof *f);
    if (!f)
        return gg_error_set_nomem(err, sizeof *f);
    f->allocator = p.allocator;
    f->map.fd = -1;
    enum gguf_status st = read_source(f, s, &p, &limits, err);
    if (st != GGUF_OK) {
        gguf_file_close(f);
        return st;
    }
    *out = f;
    return GGUF_OK;
}

enum gguf_status gg_file_open_one(struct gguf_file **out, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err)
{
    struct source s = { .path = path, .fd = -1 };
    *out = NULL;
    return gg_file_opener_takes(params->opener, path)
               ? gg_file_open_with(out, path, params, err)
               : open_source(out, &s, params, err);
}

enum gguf_status gguf_file_open(struct gguf_file **out, const char *path,
                                const struct gguf_file_params *params,
                                struct gguf_error *err)
{
    struct gguf_file_params own = GGUF_INIT(struct gguf_file_params);
    *out = NULL;
    GG_TRY(gg_params_need(path, "path", err));
    GG_TRY(gg_file_params_take(&own, params, err));
    return own.single_file || own.offset || own.size
               ? gg_file_open_one(out, path, &own, err)
               : gg_file_open_set(out, path, &own, err);
}

enum gguf_status gg_file_open_reader(struct gguf_file **out,
                                     const struct gguf_reader *reader,
                                     const char *name,
                                     const struct gguf_file_params *params,
                                     struct gguf_error *err)
{
    struct source s = { .path = name, .fd = -1, .reader = reader };
    return open_source(out, &s, params, err);
}

enum gguf_status gguf_file_open_fd(struct gguf_file **out, int fd,
                                   const struct gguf_file_params *params,
                                   struct gguf_error *err)
{
    struct source s = { .fd = fd };
    return open_source(out, &s, params, err);
}

enum gguf_status gguf_file_open_memory(struct gguf_file **out,
                                       const void *data, size_t size,
                                       const struct gguf_file_params *params,
                                       struct gguf_error *err)
{
    struct source s = { .data = data ? data : "", .size = size, .fd = -1 };
    return open_source(out, &s, params, err);
}

void gguf_file_close(struct gguf_file *f)
{
    if (!f)
        return;
    const struct gguf_reader reader = f->reader;
    forget_contents(f);
    if (reader.close)
        reader.close(reader.user);
    gg_mem_free(f->allocator, f->path);
    gg_mem_free(f->allocator, f);
}

enum gguf_status gg_file_add_paths(const struct gguf_file *f,
                                   struct gguf_paths *paths,
                                   struct gguf_error *err)
{
    static const char word[] = "input";
    for (unsigned i = 0; i < f->n_shards; i++)
        GG_TRY(gg_file_add_paths(f->shard[i], paths, err));
    if (f->shard)
        return GGUF_OK;
    if (f->map.fd >= 0)
        GG_TRY(gguf_paths_add_input_fd(paths, f->map.fd, word, err));
    if (!f->path || f->map.read)
        return GGUF_OK;
    GG_TRY(gguf_paths_add_input(paths, f->path, word, err));
    return gg_paths_add_input_beside(paths, f->path, GG_EDIT_JOURNAL, word,
                                     err);
}

enum gguf_status gg_file_check_unchanged(const struct gguf_file *f,
                                         struct gguf_error *err)
{
    struct gguf_error why;
    struct gg_str_esc e;
    for (unsigned i = 0; f && i < f->n_shards; i++)
        GG_TRY(gg_file_check_unchanged(f->shard[i], err));
    enum gguf_status st =
        f && !f->shard ? gg_mapfile_check_unchanged(&f->map, f->map.fd, &why)
                       : GGUF_OK;
    if (st == GGUF_OK)
        return st;
    return gg_error_set(err, st, GGUF_NO_OFFSET, "the input '%s' %s",
                        f->path ? gg_str_esc(&e, gg_str_z(f->path)) : "",
                        why.message);
}

enum gguf_status gg_file_create_planned(struct gguf_file **out,
                                        const struct gguf_file *like,
                                        const struct gguf_meta *meta,
                                        const struct gguf_allocator *a,
                                        struct gguf_error *err)
{
    static const struct gguf_limits limits = {
        .struct_size = sizeof limits,
        .max_kv = UINT32_MAX - 1,
        .max_tensors = UINT32_MAX - 1,
        .max_key_size = INT64_MAX,
        .max_name_size = INT64_MAX,
        .max_str_size = INT64_MAX,
        .max_array_items = INT64_MAX,
        .max_depth = GGUF_MAX_DEPTH,
        .max_dims = GGUF_MAX_DIMS,
        .max_header = INT64_MAX,
    };
    struct gguf_writer_params p = GGUF_INIT(struct gguf_writer_params);
    struct gguf_writer *w;
    const void *header = NULL;
    size_t size = 0;
    *out = NULL;
    p.allocator = a;
    p.version = like->version;
    p.big_endian = like->big_endian;
    GG_TRY(gguf_writer_create(&w, meta, &p, err));
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; i < like->n_tensors && st == GGUF_OK; i++)
        st = gguf_writer_add_like(w, &like->tensor[i], err);
    if (st == GGUF_OK)
        st = gguf_writer_header(w, &header, &size, err);
    struct source s = { .data = header, .size = size, .fd = -1 };
    if (st == GGUF_OK) {
        s.planned = gguf_writer_file_size(w);
        st = open_source(out, &s,
                         &(struct gguf_file_params){
                             .struct_size = sizeof(struct gguf_file_params),
                             .allocator = a,
                             .limits = &limits,
                             .single_file = true },
                         err);
    }
    if (st != GGUF_OK) {
        gguf_writer_destroy(w);
        return st;
    }
    (*out)->like = like;
    (*out)->writer = w;
    return GGUF_OK;
}
