/* SPDX-License-Identifier: MIT */
/* split.c - several files read as one model */
#include "config.h"
#include "file/split_int.h"
#include "base/ckd.h"
#include "base/index.h"
#include "base/mem.h"
#include "base/params.h"
#include "base/str.h"
#include "file/file_int.h"
#include "file/split_find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *const gg_file_split_keys[GG_N_SPLIT_KEYS] = {
    "split.no", "split.count", "split.tensors.count"
};

struct gguf_split {
    const struct gguf_allocator *allocator;
    struct gguf_file **files;
    unsigned n_files;
    bool is_split;
    int32_t total; /* split.tensors.count of the first shard */
    struct gguf_split_tensor *tensors;
    size_t n_tensors;
    struct gg_index index; /* of tensor names; .slots NULL: not yet made */
};

enum gguf_status gg_file_split_in_shard(enum gguf_status status,
                                        const char *path,
                                        struct gguf_error *err)
{
    if (status != GGUF_OK && err) {
        struct gg_str_esc e;
        char old[sizeof err->message];
        memcpy(old, err->message, sizeof old);
        snprintf(err->message, sizeof err->message, "shard '%s': %.320s",
                 gg_str_esc(&e, gg_str_z(gg_file_split_base(path))), old);
    }
    return status;
}

/* ---- what a shard says about itself ---- */

struct shard_keys {
    uint16_t no, count;
    int32_t total;
};

static enum gguf_status read_keys(const struct gguf_file *f,
                                  struct shard_keys *k, struct gguf_error *err)
{
    const struct gguf_kv *kv;
    GG_TRY(gguf_file_kv_get(f, "split.no", &kv, err));
    GG_TRY(gguf_kv_get_u16(kv, &k->no, err));
    GG_TRY(gguf_file_kv_get(f, "split.count", &kv, err));
    GG_TRY(gguf_kv_get_u16(kv, &k->count, err));
    GG_TRY(gguf_file_kv_get(f, "split.tensors.count", &kv, err));
    GG_TRY(gguf_kv_get_i32(kv, &k->total, err));
    if (k->total < 0)
        return gg_error_set(err, GGUF_E_MISMATCH, kv->off,
                            "split.tensors.count is %" PRId32, k->total);
    return GGUF_OK;
}

bool gg_file_split_is_key(struct gguf_str key)
{
    for (int i = 0; i < GG_N_SPLIT_KEYS; i++)
        if (gg_str_eqz(key, gg_file_split_keys[i]))
            return true;
    return false;
}

enum gguf_status gg_file_split_set_keys(struct gguf_meta *m, size_t no,
                                        size_t count, size_t n_tensors,
                                        struct gguf_error *err)
{
    GG_TRY(gguf_meta_set_u16(m, gg_file_split_keys[GG_SPLIT_NO], (uint16_t)no,
                             err));
    GG_TRY(gguf_meta_set_u16(m, gg_file_split_keys[GG_SPLIT_COUNT],
                             (uint16_t)count, err));
    return gguf_meta_set_i32(m, gg_file_split_keys[GG_SPLIT_TOTAL],
                             (int32_t)n_tensors, err);
}

void gg_file_split_remove_keys(struct gguf_meta *m)
{
    for (int i = 0; i < GG_N_SPLIT_KEYS; i++)
        gguf_meta_remove(m, gg_file_split_keys[i]);
}

/* Metadata of a later shard repeats the first one's or is about the split. */
static enum gguf_status check_metadata(const struct gguf_file *first,
                                       const struct gguf_file *f,
                                       struct gguf_error *err)
{
    struct gg_str_esc e;
    for (size_t i = 0; i < gguf_file_n_kv(f); i++) {
        const struct gguf_kv *kv = gguf_file_kv(f, i);
        if (gg_file_split_is_key(kv->key))
            continue;
        uint32_t id = gg_index_find(&first->kv_index, kv->key);
        const struct gguf_kv *other =
            id == GG_INDEX_NONE ? NULL : gguf_file_kv(first, id);
        if (!gguf_kv_equal(kv, other))
            return gg_error_set(
                err, GGUF_E_MISMATCH, kv->key_off,
                "key '%s' %s in the first shard: not of one model",
                gg_str_esc(&e, kv->key),
                other ? "has another value" : "is not");
    }
    return GGUF_OK;
}

/* Does shard number i (from 0) fit the set so far? */
static enum gguf_status check_shard(const struct gguf_split *s, unsigned i,
                                    struct gguf_error *err)
{
    const struct gguf_file *f = s->files[i], *first = s->files[0];
    struct shard_keys k;
    GG_TRY(read_keys(f, &k, err));
    if (k.no != i)
        return gg_error_set(
            err, GGUF_E_MISMATCH,
            gguf_file_kv_find(f, gg_file_split_keys[GG_SPLIT_NO])->off,
            "split.no is %u, its name says %u", k.no, i);
    if (k.count != s->n_files)
        return gg_error_set(
            err, GGUF_E_MISMATCH,
            gguf_file_kv_find(f, gg_file_split_keys[GG_SPLIT_COUNT])->off,
            "split.count is %u, the set has %u shards", k.count, s->n_files);
    if (k.total != s->total)
        return gg_error_set(
            err, GGUF_E_MISMATCH,
            gguf_file_kv_find(f, gg_file_split_keys[GG_SPLIT_TOTAL])->off,
            "split.tensors.count is %" PRId32
            ", the first shard says %" PRId32,
            k.total, s->total);
    if (gguf_file_is_big_endian(f) != gguf_file_is_big_endian(first))
        return gg_error_set(err, GGUF_E_MISMATCH, 4,
                            "its byte order is not that of the first shard");
    if (gguf_file_alignment(f) != gguf_file_alignment(first))
        return gg_error_set(err, GGUF_E_MISMATCH, gguf_file_data_off(f),
                            "its alignment is %" PRIu32
                            " bytes, that of the first shard %" PRIu32,
                            gguf_file_alignment(f),
                            gguf_file_alignment(first));
    return i ? check_metadata(first, f, err) : GGUF_OK;
}

/* ---- tensors ---- */

static struct gguf_str tensor_name(const void *user, uint32_t id)
{
    const struct gguf_split *s = user;
    return s->tensors[id].info->name;
}

static enum gguf_status list_tensors(struct gguf_split *s,
                                     struct gguf_error *err)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < s->n_files; i++)
        n += gguf_file_n_tensors(s->files[i]);
    if (s->is_split && n != (uint64_t)s->total)
        return gg_error_set(
            err, GGUF_E_MISMATCH,
            gguf_file_kv_find(s->files[0], gg_file_split_keys[GG_SPLIT_TOTAL])
                ->off,
            "split.tensors.count is %" PRId32 ", the shards have %" PRIu64
            " tensors",
            s->total, n);
    if (n >= GG_INDEX_NONE)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "%" PRIu64 " tensors are too many", n);
    s->tensors = gg_mem_alloc_zero(s->allocator, n, sizeof *s->tensors);
    if (!s->tensors)
        return gg_error_set_nomem(err, (size_t)n * sizeof *s->tensors);
    GG_TRY(gg_index_init(&s->index, s->allocator, (uint32_t)n, tensor_name, s,
                         err));
    for (unsigned i = 0; i < s->n_files; i++) {
        const struct gguf_file *f = s->files[i];
        for (size_t k = 0; k < gguf_file_n_tensors(f); k++) {
            struct gguf_split_tensor *t = &s->tensors[s->n_tensors];
            *t = (struct gguf_split_tensor){ gguf_file_tensor(f, k), f, i };
            uint32_t other;
            GG_TRY(
                gg_index_add(&s->index, (uint32_t)s->n_tensors, &other, err));
            struct gg_str_esc e;
            if (other != GG_INDEX_NONE)
                return gg_file_split_in_shard(
                    gg_error_set(err, GGUF_E_DUPLICATE, t->info->info_off,
                                 "tensor '%s' is in shard %" PRIu32 " too",
                                 gg_str_esc(&e, t->info->name),
                                 s->tensors[other].file_no + 1),
                    gguf_split_path(s, i), err);
            s->n_tensors++;
        }
    }
    return GGUF_OK;
}

/* ---- opening ---- */

static enum gguf_status make_room(struct gguf_split *s, unsigned n,
                                  struct gguf_error *err)
{
    s->files = gg_mem_alloc_zero(s->allocator, n, sizeof(struct gguf_file *));
    if (!s->files)
        return gg_error_set_nomem(err, n * sizeof(struct gguf_file *));
    s->n_files = n;
    return GGUF_OK;
}

/* Every shard of a set, those opened already (files[i] set) but not again. */
static enum gguf_status open_shards(struct gguf_split *s, const char *prefix,
                                    const struct gguf_file_params *params,
                                    struct gguf_error *err)
{
    s->is_split = true;
    if (!gg_file_opener_takes(params->opener, prefix))
        GG_TRY(gg_file_split_all_there(prefix, s->n_files, s->allocator, err));
    for (unsigned i = 0; i < s->n_files; i++) {
        char *name;
        enum gguf_status st = gg_file_split_name(prefix, i + 1, s->n_files,
                                                 s->allocator, &name, err);
        if (st == GGUF_OK && !s->files[i])
            st = gg_file_split_in_shard(
                gguf_file_open(&s->files[i], name, params, err), name, err);
        if (st == GGUF_OK && i == 0) {
            struct shard_keys k;
            st = gg_file_split_in_shard(read_keys(s->files[0], &k, err), name,
                                        err);
            if (st == GGUF_OK)
                s->total = k.total;
        }
        if (st == GGUF_OK)
            st = gg_file_split_in_shard(check_shard(s, i, err), name, err);
        gg_mem_free(s->allocator, name);
        GG_TRY(st);
    }
    return GGUF_OK;
}

/* A file that is a shard of more: its place by its name, and the rest. f is
 * taken. */
static enum gguf_status open_rest(struct gguf_split *s, struct gguf_file *f,
                                  const struct shard_keys *k, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err)
{
    size_t n;
    unsigned no, count;
    bool named = gguf_split_name_parse(path, &n, &no, &count);
    enum gguf_status st = GGUF_OK;
    char *prefix = NULL;
    if (!named || count != k->count || no != k->no + 1u)
        st = gg_error_set(
            err, GGUF_E_MISMATCH,
            gguf_file_kv_find(f, gg_file_split_keys[GG_SPLIT_NO])->off,
            "shard %u of %u has another name than "
            "NAME-%05u-of-%05u.gguf, so the others cannot be found",
            k->no + 1u, k->count, k->no + 1u, k->count);
    else
        st = make_room(s, count, err);
    if (st != GGUF_OK) {
        gguf_file_close(f);
        return st;
    }
    s->files[no - 1] = f;
    prefix = gg_mem_alloc(s->allocator, n + 1);
    if (!prefix)
        return gg_error_set_nomem(err, n + 1);
    memcpy(prefix, path, n);
    prefix[n] = '\0';
    st = open_shards(s, prefix, params, err);
    gg_mem_free(s->allocator, prefix);
    return st;
}

static enum gguf_status open_file(struct gguf_split *s, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err)
{
    struct gguf_file *f;
    GG_TRY(gguf_file_open(&f, path, params, err));
    struct shard_keys k = { 0, 0, 0 };
    const struct gguf_kv *kv =
        gguf_file_kv_find(f, gg_file_split_keys[GG_SPLIT_COUNT]);
    unsigned no, count;
    enum gguf_status st = GGUF_OK;
    bool named = gguf_split_name_parse(path, NULL, &no, &count) && count > 1;
    if (kv)
        st = gguf_kv_get_u16(kv, &k.count, err);
    else if (named)
        st = gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                          "named as shard %u of %u, but key 'split.count' is "
                          "missing",
                          no, count);
    if (st == GGUF_OK && kv && named && k.count <= 1)
        st = gg_error_set(err, GGUF_E_MISMATCH, kv->off,
                          "named as shard %u of %u, but split.count is %u", no,
                          count, k.count);
    if (st == GGUF_OK && k.count)
        st = read_keys(f, &k, err);
    if (st == GGUF_OK && k.count > 1)
        return open_rest(s, f, &k, path, params, err);
    if (st == GGUF_OK)
        st = make_room(s, 1, err);
    if (st != GGUF_OK) {
        gguf_file_close(f);
        return st;
    }
    s->files[0] = f;
    s->is_split = k.count == 1;
    s->total = k.total;
    return s->is_split ? check_shard(s, 0, err) : GGUF_OK;
}

/* A folder, or the prefix of a set. */
static enum gguf_status open_set(struct gguf_split *s, const char *path,
                                 const struct gguf_file_params *params,
                                 struct gguf_error *err)
{
    char *prefix;
    unsigned count = 0;
    enum gguf_status st =
        gg_file_split_find_path(path, s->allocator, &prefix, &count, err);
    if (st == GGUF_OK)
        st = make_room(s, count, err);
    if (st == GGUF_OK)
        st = open_shards(s, prefix, params, err);
    gg_mem_free(s->allocator, prefix);
    return st;
}

/* What the first of the files says of the set; then each of them. */
static enum gguf_status take_fds(struct gguf_split *s, const int *fd,
                                 const char *const *path,
                                 const struct gguf_file_params *params,
                                 struct gguf_error *err)
{
    struct shard_keys k = { 0, 0, 0 };
    for (unsigned i = 0; i < s->n_files; i++) {
        GG_TRY(gguf_file_open_fd(&s->files[i], fd[i], params, err));
        GG_TRY(gg_file_set_path(s->files[i], path[i], err));
    }
    s->is_split =
        gguf_file_kv_find(s->files[0], gg_file_split_keys[GG_SPLIT_COUNT]);
    if (s->is_split)
        GG_TRY(read_keys(s->files[0], &k, err));
    s->total = k.total;
    for (unsigned i = 0; i < s->n_files && s->is_split; i++)
        GG_TRY(gg_file_split_in_shard(check_shard(s, i, err), path[i], err));
    return GGUF_OK;
}

/* The set s, whose files are open if st says so: its tensors are listed and it
 * goes to *out, or it is closed. */
static enum gguf_status finish_open(struct gguf_split **out,
                                    struct gguf_split *s, enum gguf_status st,
                                    struct gguf_error *err)
{
    if (st == GGUF_OK)
        st = list_tensors(s, err);
    if (st == GGUF_OK)
        *out = s;
    else
        gguf_split_close(s);
    return st;
}

enum gguf_status gg_file_split_open_fds(struct gguf_split **out, const int *fd,
                                        const char *const *path, size_t n,
                                        const struct gguf_file_params *params,
                                        struct gguf_error *err)
{
    *out = NULL;
    struct gguf_split *s = gg_mem_alloc_zero(params->allocator, 1, sizeof *s);
    if (!s)
        return gg_error_set_nomem(err, sizeof *s);
    s->allocator = params->allocator;
    enum gguf_status st = make_room(s, (unsigned)n, err);
    if (st == GGUF_OK)
        st = take_fds(s, fd, path, params, err);
    return finish_open(out, s, st, err);
}

enum gguf_status gguf_split_open(struct gguf_split **out, const char *path,
                                 const struct gguf_file_params *params,
                                 struct gguf_error *err)
{
    struct gguf_file_params p = GGUF_FILE_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_file_params_take(&p, params, err));
    if (p.offset || p.size)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a split set cannot be opened at an offset");
    struct gguf_split *s = gg_mem_alloc_zero(p.allocator, 1, sizeof *s);
    if (!s)
        return gg_error_set_nomem(err, sizeof *s);
    s->allocator = p.allocator;
    struct stat sb;
    enum gguf_status st;
    if (gg_file_opener_takes(p.opener, path) ||
        (stat(path, &sb) == 0 ? !S_ISDIR(sb.st_mode)
                              : errno != ENOENT && errno != ENOTDIR))
        st = open_file(s, path, &p, err); /* or says why not */
    else
        st = open_set(s, path, &p, err);
    return finish_open(out, s, st, err);
}

void gguf_split_close(struct gguf_split *s)
{
    if (!s)
        return;
    if (s->index.slots)
        gg_index_fini(&s->index);
    for (unsigned i = 0; i < s->n_files; i++)
        gguf_file_close(s->files[i]);
    gg_mem_free(s->allocator, s->files);
    gg_mem_free(s->allocator, s->tensors);
    gg_mem_free(s->allocator, s);
}

/* ---- reading ---- */

size_t gguf_split_n_files(const struct gguf_split *s)
{
    return s->n_files;
}

const struct gguf_file *gguf_split_file(const struct gguf_split *s, size_t i)
{
    return i < s->n_files ? s->files[i] : NULL;
}

const char *gguf_split_path(const struct gguf_split *s, size_t i)
{
    return i < s->n_files ? gguf_file_path(s->files[i]) : NULL;
}

int gguf_split_is_split(const struct gguf_split *s)
{
    return s->is_split;
}

size_t gguf_split_n_tensors(const struct gguf_split *s)
{
    return s->n_tensors;
}

const struct gguf_split_tensor *gguf_split_tensor(const struct gguf_split *s,
                                                  size_t i)
{
    return i < s->n_tensors ? &s->tensors[i] : NULL;
}

const struct gguf_split_tensor *
gguf_split_tensor_find(const struct gguf_split *s, const char *name)
{
    uint32_t i = gg_index_find(&s->index, gg_str_z(name));
    return i == GG_INDEX_NONE ? NULL : &s->tensors[i];
}

uint64_t gguf_split_size(const struct gguf_split *s)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < s->n_files; i++)
        n += gguf_file_size(s->files[i]);
    return n;
}

const struct gguf_allocator *
gg_file_split_allocator(const struct gguf_split *s)
{
    return s->allocator;
}

const struct gguf_file *const *gg_file_split_files(const struct gguf_split *s)
{
    return (const struct gguf_file *const *)s->files;
}
