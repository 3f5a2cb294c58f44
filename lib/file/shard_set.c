/* SPDX-License-Identifier: MIT */
/* shard_set.c - open a set of shards as one file */
#include "config.h"
#include "file/shard_set.h"
#include "base/mem.h"
#include "base/os/os.h"
#include "base/params.h"
#include "base/str.h"
#include "file/file_int.h"
#include "file/split_find.h"
#include "gguf/split.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *const gg_file_split_keys[GG_N_SPLIT_KEYS] = {
    "split.no", "split.count", "split.tensors.count"
};

/* ---- keys of a shard ---- */

struct shard_keys {
    uint16_t no, count;
    int32_t total; /* number of tensors of all shards */
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

static const struct gguf_kv *find_key(const struct gguf_file *f, int key)
{
    return gguf_file_kv_find(f, gg_file_split_keys[key]);
}

/* Check that each pair of a later shard repeats one of the first shard or is a
 * key of the set. */
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

/* Check that f is shard i, from 0, of n. first is shard 0, and total its number
 * of tensors of all shards. */
static enum gguf_status check_shard(const struct gguf_file *first,
                                    const struct gguf_file *f, unsigned i,
                                    unsigned n, int32_t total,
                                    struct gguf_error *err)
{
    struct shard_keys k;
    GG_TRY(read_keys(f, &k, err));
    if (k.no != i)
        return gg_error_set(err, GGUF_E_MISMATCH,
                            find_key(f, GG_SPLIT_NO)->off,
                            "split.no is %u, its name says %u", k.no, i);
    if (k.count != n)
        return gg_error_set(
            err, GGUF_E_MISMATCH, find_key(f, GG_SPLIT_COUNT)->off,
            "split.count is %u, the set has %u shards", k.count, n);
    if (k.total != total)
        return gg_error_set(err, GGUF_E_MISMATCH,
                            find_key(f, GG_SPLIT_TOTAL)->off,
                            "split.tensors.count is %" PRId32
                            ", the first shard says %" PRId32,
                            k.total, total);
    if (f->big_endian != first->big_endian)
        return gg_error_set(err, GGUF_E_MISMATCH, 4,
                            "its byte order is not that of the first shard");
    if (f->align != first->align)
        return gg_error_set(err, GGUF_E_MISMATCH, f->data_off,
                            "its alignment is %" PRIu32
                            " bytes, that of the first shard %" PRIu32,
                            f->align, first->align);
    return i ? check_metadata(first, f, err) : GGUF_OK;
}

static enum gguf_status check_total(const struct gguf_file *first,
                                    uint64_t n_tensors, struct gguf_error *err)
{
    struct shard_keys k;
    GG_TRY(read_keys(first, &k, err));
    if (n_tensors == (uint64_t)k.total)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_MISMATCH,
                        find_key(first, GG_SPLIT_TOTAL)->off,
                        "split.tensors.count is %" PRId32
                        ", the shards have %" PRIu64 " tensors",
                        k.total, n_tensors);
}

enum gguf_status gg_file_check_whole(const struct gguf_file *f,
                                     const char *for_what,
                                     struct gguf_error *err)
{
    const struct gguf_kv *kv = find_key(f, GG_SPLIT_COUNT);
    uint64_t n_shards = 1;
    if (kv && !f->shard)
        GG_TRY(gguf_kv_get_uint(kv, &n_shards, err));
    if (n_shards > 1)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, kv->off,
                            "the file is one of %" PRIu64
                            " shards, which must be opened together %s",
                            n_shards, for_what);
    return GGUF_OK;
}

/* ---- the set ---- */

/* Create a set with room for n shards. */
static enum gguf_status make_set(struct gguf_file **out, unsigned n,
                                 const struct gguf_allocator *a,
                                 struct gguf_error *err)
{
    struct gguf_file *s = gg_mem_alloc_zero(a, 1, sizeof *s);
    *out = s;
    if (!s)
        return gg_error_set_nomem(err, sizeof *s);
    s->allocator = a;
    s->map.fd = -1;
    s->shard = gg_mem_alloc_zero(a, n, sizeof(struct gguf_file *));
    if (!s->shard)
        return gg_error_set_nomem(err, n * sizeof(struct gguf_file *));
    s->n_shards = n;
    return GGUF_OK;
}

/* Take over the metadata and places of the first shard. */
static void take_first(struct gguf_file *s)
{
    const struct gguf_file *first = s->shard[0];
    s->version = first->version;
    s->big_endian = first->big_endian;
    s->align = first->align;
    s->header_end = first->header_end;
    s->data_off = first->data_off;
    s->data_end = first->data_end;
    s->kv = first->kv;
    s->n_kv = first->n_kv;
    s->kv_index = first->kv_index;
}

static enum gguf_status add_tensor(struct gguf_file *s, unsigned no,
                                   const struct gguf_tensor_info *info,
                                   struct gguf_error *err)
{
    struct gguf_tensor_info *t = &s->tensor[s->n_tensors];
    uint32_t other;
    *t = *info;
    t->index = (uint32_t)s->n_tensors;
    t->shard = no;
    GG_TRY(gg_index_add(&s->tensor_index, t->index, &other, err));
    s->n_tensors++;
    struct gg_str_esc e;
    if (other == GG_INDEX_NONE)
        return GGUF_OK;
    return gg_file_split_in_shard(
        gg_error_set(err, GGUF_E_DUPLICATE, t->info_off,
                     "tensor '%s' is in shard %" PRIu32 " too",
                     gg_str_esc(&e, t->name), s->tensor[other].shard + 1),
        s->shard[no]->path, err);
}

static enum gguf_status list_tensors(struct gguf_file *s,
                                     struct gguf_error *err)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < s->n_shards; i++)
        n += s->shard[i]->n_tensors;
    GG_TRY(check_total(s->shard[0], n, err));
    if (n >= GG_INDEX_NONE)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "%" PRIu64 " tensors are too many", n);
    s->tensor = gg_mem_alloc_zero(s->allocator, n, sizeof *s->tensor);
    if (!s->tensor)
        return gg_error_set_nomem(err, (size_t)n * sizeof *s->tensor);
    GG_TRY(gg_file_index_tensors(s, (uint32_t)n, err));
    for (unsigned i = 0; i < s->n_shards; i++) {
        struct gguf_file *f = s->shard[i];
        f->first_in_set = s->n_tensors;
        for (size_t k = 0; k < f->n_tensors; k++)
            GG_TRY(add_tensor(s, i, &f->tensor[k], err));
    }
    return GGUF_OK;
}

/* Finish a set whose shards are open, or close it if st is a failure. */
static enum gguf_status finish_set(struct gguf_file **out, struct gguf_file *s,
                                   enum gguf_status st, struct gguf_error *err)
{
    if (st == GGUF_OK)
        st = list_tensors(s, err);
    if (st == GGUF_OK) {
        take_first(s);
        *out = s;
    } else {
        gguf_file_close(s);
    }
    return st;
}

/* ---- opening ---- */

/* Open the shards of prefix that are not open already. */
static enum gguf_status open_shards(struct gguf_file *s, const char *prefix,
                                    const struct gguf_file_params *params,
                                    struct gguf_error *err)
{
    struct shard_keys k;
    if (!gg_file_opener_takes(params->opener, prefix))
        GG_TRY(
            gg_file_split_all_there(prefix, s->n_shards, s->allocator, err));
    for (unsigned i = 0; i < s->n_shards; i++) {
        char *name;
        enum gguf_status st = gg_file_split_name(prefix, i + 1, s->n_shards,
                                                 s->allocator, &name, err);
        if (st == GGUF_OK && !s->shard[i])
            st = gg_file_split_in_shard(
                gg_file_open_one(&s->shard[i], name, params, err), name, err);
        if (st == GGUF_OK && i == 0)
            st = gg_file_split_in_shard(read_keys(s->shard[0], &k, err), name,
                                        err);
        if (st == GGUF_OK)
            st =
                gg_file_split_in_shard(check_shard(s->shard[0], s->shard[i], i,
                                                   s->n_shards, k.total, err),
                                       name, err);
        gg_mem_free(s->allocator, name);
        GG_TRY(st);
    }
    return GGUF_OK;
}

static enum gguf_status open_prefix(struct gguf_file **out, const char *prefix,
                                    unsigned count, struct gguf_file *file,
                                    unsigned no, const char *path,
                                    const struct gguf_file_params *params,
                                    struct gguf_error *err)
{
    struct gguf_file *s;
    enum gguf_status st = make_set(&s, count, params->allocator, err);
    if (st == GGUF_OK && file)
        s->shard[no] = file;
    else
        gguf_file_close(file);
    if (st == GGUF_OK)
        st = gg_file_set_path(s, path, err);
    if (st == GGUF_OK)
        st = open_shards(s, prefix, params, err);
    return finish_set(out, s, st, err);
}

/* Open the other shards of the set of f, which was opened at path and has the
 * keys k. f then belongs to the set; it is closed after a failure. */
static enum gguf_status open_rest(struct gguf_file **out, struct gguf_file *f,
                                  const struct shard_keys *k, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err)
{
    size_t n;
    unsigned no, count;
    bool named = gguf_split_name_parse(path, &n, &no, &count);
    char *prefix = NULL;
    enum gguf_status st = GGUF_OK;
    if (!named || count != k->count || no != k->no + 1u)
        st = gg_error_set(err, GGUF_E_MISMATCH, find_key(f, GG_SPLIT_NO)->off,
                          "shard %u of %u has another name than "
                          "NAME-%05u-of-%05u.gguf, so the others cannot be "
                          "found",
                          k->no + 1u, k->count, k->no + 1u, k->count);
    else if (!(prefix = gg_mem_alloc(params->allocator, n + 1)))
        st = gg_error_set_nomem(err, n + 1);
    if (st != GGUF_OK) {
        gguf_file_close(f);
        return st;
    }
    memcpy(prefix, path, n);
    prefix[n] = '\0';
    st = open_prefix(out, prefix, count, f, no - 1, path, params, err);
    gg_mem_free(params->allocator, prefix);
    return st;
}

/* Check that the keys of f agree with its name. *k receives the keys; count is
 * 0 if f is not a shard. */
static enum gguf_status check_name(const struct gguf_file *f, const char *path,
                                   struct shard_keys *k,
                                   struct gguf_error *err)
{
    const struct gguf_kv *kv = find_key(f, GG_SPLIT_COUNT);
    unsigned no, count;
    bool named = gguf_split_name_parse(path, NULL, &no, &count) && count > 1;
    *k = (struct shard_keys){ 0, 0, 0 };
    if (!kv)
        return named ? gg_error_set(
                           err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                           "named as shard %u of %u, but key 'split.count' is "
                           "missing",
                           no, count)
                     : GGUF_OK;
    GG_TRY(gguf_kv_get_u16(kv, &k->count, err));
    if (named && k->count <= 1)
        return gg_error_set(err, GGUF_E_MISMATCH, kv->off,
                            "named as shard %u of %u, but split.count is %u",
                            no, count, k->count);
    return k->count ? read_keys(f, k, err) : GGUF_OK;
}

static enum gguf_status open_file(struct gguf_file **out, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err)
{
    struct gguf_file *f;
    struct shard_keys k;
    GG_TRY(gg_file_open_one(&f, path, params, err));
    enum gguf_status st = check_name(f, path, &k, err);
    if (st == GGUF_OK && k.count > 1)
        return open_rest(out, f, &k, path, params, err);
    if (st == GGUF_OK && k.count)
        st = check_shard(f, f, 0, 1, k.total, err);
    if (st == GGUF_OK && k.count)
        st = check_total(f, f->n_tensors, err);
    if (st == GGUF_OK)
        *out = f;
    else
        gguf_file_close(f);
    return st;
}

enum gguf_status gg_file_open_set(struct gguf_file **out, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err)
{
    struct gg_os_stat s;
    char *prefix;
    unsigned count = 0;
    *out = NULL;
    if (gg_file_opener_takes(params->opener, path) ||
        (gg_os_stat(path, &s) == 0 ? s.kind != GG_OS_FOLDER
                                   : errno != ENOENT && errno != ENOTDIR))
        return open_file(out, path, params, err);
    enum gguf_status st =
        gg_file_split_find_path(path, params->allocator, &prefix, &count, err);
    if (st == GGUF_OK)
        st = open_prefix(out, prefix, count, NULL, 0, path, params, err);
    gg_mem_free(params->allocator, prefix);
    return st;
}

/* ---- files that do not have their names yet ---- */

static enum gguf_status open_fds(struct gguf_file *s, const int *fd,
                                 const char *const *path,
                                 const struct gguf_file_params *params,
                                 struct gguf_error *err)
{
    struct shard_keys k;
    for (unsigned i = 0; i < s->n_shards; i++) {
        GG_TRY(gguf_file_open_fd(&s->shard[i], fd[i], params, err));
        GG_TRY(gg_file_set_path(s->shard[i], path[i], err));
    }
    GG_TRY(read_keys(s->shard[0], &k, err));
    for (unsigned i = 0; i < s->n_shards; i++)
        GG_TRY(gg_file_split_in_shard(check_shard(s->shard[0], s->shard[i], i,
                                                  s->n_shards, k.total, err),
                                      path[i], err));
    return GGUF_OK;
}

enum gguf_status gg_file_open_set_fds(struct gguf_file **out, const int *fd,
                                      const char *const *path, size_t n,
                                      const struct gguf_file_params *params,
                                      struct gguf_error *err)
{
    struct gguf_file *s;
    *out = NULL;
    if (n == 1) {
        GG_TRY(gguf_file_open_fd(out, *fd, params, err));
        const enum gguf_status st = gg_file_set_path(*out, *path, err);
        if (st != GGUF_OK) {
            gguf_file_close(*out);
            *out = NULL;
        }
        return st;
    }
    enum gguf_status st = make_set(&s, (unsigned)n, params->allocator, err);
    if (st == GGUF_OK)
        st = open_fds(s, fd, path, params, err);
    return finish_set(out, s, st, err);
}
