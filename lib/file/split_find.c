/* SPDX-License-Identifier: MIT */
/* split_find.c - find the files of a split set */
#include "config.h"
#include "file/split_find.h"
#include "base/mem.h"
#include "base/os/os.h"
#include "base/os/os_path.h"
#include "base/str.h"
#include "file/shard_set.h"
#include "gguf/split.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 256 }; /* bytes of a file name with its NUL */

const char *gg_file_split_base(const char *path)
{
    return gg_os_path_name(path);
}

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

enum gguf_status gg_file_split_name(const char *prefix, unsigned no,
                                    unsigned count,
                                    const struct gguf_allocator *a,
                                    char **name, struct gguf_error *err)
{
    size_t size = strlen(prefix) + sizeof "-00001-of-00001.gguf";
    *name = gg_mem_alloc(a, size);
    if (!*name)
        return gg_error_set_nomem(err, size);
    return gguf_split_name_format(*name, size, prefix, no, count, err);
}

/* Is `name', without a folder, that of a shard of prefix base? NULL: of any. */
static bool is_shard_of(const char *name, const char *base,
                        size_t *prefix_size, unsigned *count)
{
    return gguf_split_name_parse(name, prefix_size, NULL, count) &&
           (!base || (strlen(base) == *prefix_size &&
                      !memcmp(base, name, *prefix_size)));
}

/* Join dir and n bytes of base to a path. */
static enum gguf_status join_path(const char *dir, const char *base, size_t n,
                                  const struct gguf_allocator *a, char **out,
                                  struct gguf_error *err)
{
    size_t k = strlen(dir);
    bool slash = k && !gg_os_path_separates(dir[k - 1]);
    *out = gg_mem_alloc(a, k + slash + n + 1);
    if (!*out)
        return gg_error_set_nomem(err, k + n + 2);
    memcpy(*out, dir, k);
    if (slash)
        (*out)[k] = '/';
    memcpy(*out + k + slash, base, n);
    (*out)[k + slash + n] = '\0';
    return GGUF_OK;
}

/* Other files of the folder, for messages. */
struct others {
    size_t n_models;       /* number of GGUF files that are not shards */
    char model[NAME_SIZE]; /* name of the first one in alphabetical order */
    bool has_config;       /* has config.json, like a folder of transformers */
    bool has_adapter;      /* has adapter_config.json, like a PEFT folder */
};

static void look_at(struct others *o, const char *name)
{
    const size_t n = strlen(name);
    o->has_config |= !strcmp(name, "config.json");
    o->has_adapter |= !strcmp(name, "adapter_config.json");
    if (n <= 5 || n >= NAME_SIZE || strcmp(name + n - 5, ".gguf") != 0)
        return;
    if (!o->n_models++ || strcmp(name, o->model) < 0)
        memcpy(o->model, name, n + 1);
}

/* Read all entries of d. *prefix receives the prefix of the set. */
static enum gguf_status
scan_folder(struct gg_os_folder *d, const char *dir, const char *base,
            const struct gguf_allocator *a, char **prefix, unsigned *count,
            struct others *others, struct gguf_error *err)
{
    const char *name;
    while ((name = gg_os_folder_next(d)) != NULL) {
        size_t n;
        unsigned k;
        if (!is_shard_of(name, base, &n, &k)) {
            look_at(others, name);
            continue;
        }
        if (!*prefix) {
            GG_TRY(join_path(dir, name, n, a, prefix, err));
            *count = k;
            continue;
        }
        const char *first = gg_file_split_base(*prefix);
        struct gg_str_esc e, f;
        if (k != *count || strlen(first) != n || memcmp(first, name, n) != 0)
            return gg_error_set(
                err, GGUF_E_DUPLICATE, GGUF_NO_OFFSET,
                "more than one split model: '%s-*-of-%05u.gguf' "
                "and '%s'",
                gg_str_esc(&e, gg_str_z(first)), *count,
                gg_str_esc(&f, gg_str_z(name)));
    }
    return GGUF_OK;
}

/* Fail because the folder has no set. The message names other files that it
 * has. */
static enum gguf_status no_set(const struct others *o, struct gguf_error *err)
{
    struct gg_str_esc e;
    const char *name = gg_str_esc(&e, gg_str_z(o->model));
    static const char none[] = "the folder has no split model "
                               "(NAME-NNNNN-of-NNNNN.gguf)";
    if (o->n_models == 1)
        return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                            "%s: give the model in it by its name, '%s'", none,
                            name);
    if (o->n_models)
        return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                            "%s: give one of the %zu models in it by its "
                            "name, such as '%s'",
                            none, o->n_models, name);
    return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET, "%s%s", none,
                        o->has_config    ? ", but a config.json: gguf-convert "
                                           "makes GGUF files of such folders"
                        : o->has_adapter ? ", but an adapter_config.json: "
                                           "gguf-convert --base MODEL makes a "
                                           "GGUF file of such an adapter"
                                         : "");
}

enum gguf_status gg_file_split_find(const char *dir, const char *base,
                                    const struct gguf_allocator *a,
                                    char **prefix, unsigned *count,
                                    struct gguf_error *err)
{
    struct gg_str_esc e;
    struct others others = { 0 };
    *prefix = NULL;
    struct gg_os_folder *d = gg_os_folder_open(*dir ? dir : ".");
    if (!d)
        return gg_error_set_errno(err, errno, "folder '%s'",
                                  gg_str_esc(&e, gg_str_z(dir)));
    enum gguf_status st =
        scan_folder(d, dir, base, a, prefix, count, &others, err);
    gg_os_folder_close(d);
    if (st != GGUF_OK) {
        gg_mem_free(a, *prefix);
        *prefix = NULL;
    } else if (!*prefix && base) {
        st = gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                          "there is no such file, nor a split model "
                          "'%s-NNNNN-of-NNNNN.gguf'",
                          gg_str_esc(&e, gg_str_z(base)));
    } else if (!*prefix) {
        st = no_set(&others, err);
    }
    return st;
}

enum gguf_status gg_file_split_find_path(const char *path,
                                         const struct gguf_allocator *a,
                                         char **prefix, unsigned *count,
                                         struct gguf_error *err)
{
    struct gg_os_stat s;
    *prefix = NULL;
    bool there = gg_os_stat(path, &s) == 0;
    if (!there && errno != ENOENT && errno != ENOTDIR)
        return gg_error_set_errno(err, errno, "cannot be looked at");
    if (there && s.kind == GG_OS_FOLDER)
        return gg_file_split_find(path, NULL, a, prefix, count, err);
    const char *base = gg_file_split_base(path);
    size_t n = (size_t)(base - path);
    char *dir = gg_mem_alloc(a, n + 1);
    if (!dir)
        return gg_error_set_nomem(err, n + 1);
    memcpy(dir, path, n);
    dir[n] = '\0';
    enum gguf_status st = gg_file_split_find(dir, base, a, prefix, count, err);
    gg_mem_free(a, dir);
    return st;
}

/* Append the missing shards from first to last to list. */
static size_t add_range(char *list, size_t size, size_t used, unsigned first,
                        unsigned last)
{
    const char *comma = used ? ", " : "";
    if (size - used < 24) {
        if (used && list[used - 1] != '.')
            used += (size_t)snprintf(list + used, size - used, " ...");
        return used;
    }
    if (first == last)
        return used + (size_t)snprintf(list + used, size - used, "%s%u", comma,
                                       first);
    return used + (size_t)snprintf(list + used, size - used, "%s%u-%u", comma,
                                   first, last);
}

enum gguf_status gg_file_split_all_there(const char *prefix, unsigned count,
                                         const struct gguf_allocator *a,
                                         struct gguf_error *err)
{
    char list[160] = "";
    size_t used = 0;
    unsigned n_missing = 0, first = 0; /* first of a missing range, or 0 */
    for (unsigned no = 1; no <= count; no++) {
        char *name;
        enum gguf_status st =
            gg_file_split_name(prefix, no, count, a, &name, err);
        bool there = st == GGUF_OK && gg_os_find(name) == 0;
        if (st == GGUF_OK && !there && errno != ENOENT && errno != ENOTDIR)
            st = gg_file_split_in_shard(
                gg_error_set_errno(err, errno, "cannot be looked at"), name,
                err);
        gg_mem_free(a, name);
        GG_TRY(st);
        n_missing += !there;
        if (!there && !first)
            first = no;
        if (first && (there || no == count)) {
            used = add_range(list, sizeof list, used, first, no - there);
            first = 0;
        }
    }
    struct gg_str_esc e;
    if (n_missing)
        return gg_error_set(
            err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
            "%u of %u shards of '%s' %s missing: %s", n_missing, count,
            gg_str_esc(&e, gg_str_z(gg_file_split_base(prefix))),
            n_missing == 1 ? "is" : "are", list);
    return GGUF_OK;
}
