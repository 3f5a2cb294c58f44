/* SPDX-License-Identifier: MIT */
/* paths.c - sets of the files that a program reads and writes
 *
 * A path has two keys: 'f' with device and inode of its file, and 'p' with
 * device and inode of its folder and the name in it. The keys are indexed, so
 * that forty thousand shards need not be compared with each other.
 */
#include "config.h"
#include "base/paths_int.h"
#include "base/file_id.h"
#include "base/index.h"
#include "base/mem.h"
#include "base/os/os.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct entry {
    struct gguf_str key;
    const char *path; /* path for messages; NULL: only a descriptor is known */
    const char *what;
    bool write;
};

struct gguf_paths {
    const struct gguf_allocator *allocator;
    struct gg_mem_arena arena; /* keys, paths and roles */
    struct gg_index index;
    struct entry *entries;
    size_t n, room;
};

/* Keys of one path. */
struct keys {
    struct gguf_str key[2];
    unsigned n;
};

static struct gguf_str key_of(const void *user, uint32_t id)
{
    const struct gguf_paths *p = user;
    return p->entries[id].key;
}

enum gguf_status gguf_paths_create(struct gguf_paths **out,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_error *err)
{
    struct gguf_paths *p = gg_mem_alloc_zero(allocator, 1, sizeof *p);
    *out = NULL;
    if (!p)
        return gg_error_set_nomem(err, sizeof *p);
    p->allocator = allocator;
    gg_mem_arena_init(&p->arena, allocator);
    enum gguf_status st =
        gg_index_init(&p->index, allocator, 16, key_of, p, err);
    if (st != GGUF_OK) {
        gguf_paths_destroy(p);
        return st;
    }
    *out = p;
    return GGUF_OK;
}

void gguf_paths_destroy(struct gguf_paths *p)
{
    if (!p)
        return;
    gg_index_fini(&p->index);
    gg_mem_free(p->allocator, p->entries);
    gg_mem_arena_fini(&p->arena);
    gg_mem_free(p->allocator, p);
}

static enum gguf_status add_key(struct gguf_paths *p, struct keys *k,
                                char kind, const struct gg_os_stat *s,
                                const char *name, struct gguf_error *err)
{
    struct gg_file_id id = { s->dev, s->ino };
    size_t n = strlen(name), size = 1 + sizeof id.dev + sizeof id.ino + n;
    char *key = gg_mem_arena_alloc(&p->arena, size);
    if (!key)
        return gg_error_set_nomem(err, size);
    key[0] = kind;
    memcpy(key + 1, &id.dev, sizeof id.dev);
    memcpy(key + 1 + sizeof id.dev, &id.ino, sizeof id.ino);
    memcpy(key + size - n, name, n);
    k->key[k->n++] = (struct gguf_str){ key, size };
    return GGUF_OK;
}

/* Is it a pipe, socket or character device? These are not overwritten: standard
 * output may be a pipe that /dev/stdout also leads to. */
static bool is_stream(const struct gg_os_stat *s)
{
    return s->kind == GG_OS_CHARACTERS || s->kind == GG_OS_PIPE ||
           s->kind == GG_OS_SOCKET;
}

static enum gguf_status keys_of(struct gguf_paths *p, const char *path,
                                struct keys *k, struct gguf_error *err)
{
    struct gg_os_stat s;
    *k = (struct keys){ .n = 0 };
    if (gg_os_stat(path, &s) == 0) {
        if (s.kind == GG_OS_CHARACTERS)
            return GGUF_OK;
        if (!is_stream(&s))
            GG_TRY(add_key(p, k, 'f', &s, "", err));
    }
    char *dir = gg_file_id_folder(p->allocator, path);
    if (!dir)
        return gg_error_set_nomem(err, strlen(path));
    int rc = gg_os_stat(dir, &s);
    gg_mem_free(p->allocator, dir);
    return rc == 0 ? add_key(p, k, 'p', &s,
                             path + gg_file_id_folder_size(path), err)
                   : GGUF_OK; /* opening it will fail with a message */
}

/* Fail because e, which is being added, clashes with an entry. */
static enum gguf_status fail_clash(const struct entry *e,
                                   const struct entry *other,
                                   struct gguf_error *err)
{
    struct gg_str_esc esc;
    const char *path = e->path ? e->path : other->path;
    const char *name = gg_str_esc(&esc, gg_str_z(path ? path : e->what));
    if (!strcmp(e->what, other->what))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "'%s' would be %s twice", name, e->what);
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "'%s' would be both %s and %s", name, other->what,
                        e->what);
}

static enum gguf_status add_entry(struct gguf_paths *p, struct entry e,
                                  struct gguf_error *err)
{
    uint32_t other;
    if (p->n == p->room) {
        void *grown = gg_mem_grow(p->allocator, p->entries, &p->room,
                                  sizeof *p->entries, 16, err);
        if (!grown)
            return GGUF_E_NOMEM;
        p->entries = grown;
    }
    p->entries[p->n] = e;
    GG_TRY(gg_index_add(&p->index, (uint32_t)p->n, &other, err));
    p->n += other == GG_INDEX_NONE;
    return GGUF_OK;
}

static const char *copy_text(struct gguf_paths *p, const char *text)
{
    return gg_mem_arena_strndup(&p->arena, text, strlen(text));
}

/* Add e under each of the keys. Its texts are copied. */
static enum gguf_status add_keys(struct gguf_paths *p, const struct keys *k,
                                 struct entry e, struct gguf_error *err)
{
    for (unsigned i = 0; i < k->n; i++) {
        const uint32_t id = gg_index_find(&p->index, k->key[i]);
        if (id != GG_INDEX_NONE && (e.write || p->entries[id].write))
            return fail_clash(&e, &p->entries[id], err);
    }
    if (!(e.what = copy_text(p, e.what)) ||
        (e.path && !(e.path = copy_text(p, e.path))))
        return gg_error_set_nomem(err, 64);
    for (unsigned i = 0; i < k->n; i++) {
        e.key = k->key[i];
        GG_TRY(add_entry(p, e, err));
    }
    return GGUF_OK;
}

static enum gguf_status add_path(struct gguf_paths *p, const char *path,
                                 const char *what, bool write,
                                 struct gguf_error *err)
{
    struct keys k;
    GG_TRY(keys_of(p, path, &k, err));
    return add_keys(
        p, &k, (struct entry){ .path = path, .what = what, .write = write },
        err);
}

enum gguf_status gguf_paths_add_input(struct gguf_paths *p, const char *path,
                                      const char *what, struct gguf_error *err)
{
    return add_path(p, path, what, false, err);
}

enum gguf_status gguf_paths_add_output(struct gguf_paths *p, const char *path,
                                       const char *what,
                                       struct gguf_error *err)
{
    return add_path(p, path, what, true, err);
}

enum gguf_status gguf_paths_add_input_fd(struct gguf_paths *p, int fd,
                                         const char *what,
                                         struct gguf_error *err)
{
    struct keys k = { .n = 0 };
    struct gg_os_stat s;
    if (gg_os_stat_fd(fd, &s) != 0 || is_stream(&s))
        return GGUF_OK;
    GG_TRY(add_key(p, &k, 'f', &s, "", err));
    return add_keys(p, &k, (struct entry){ .what = what }, err);
}

static enum gguf_status add_beside(struct gguf_paths *p, const char *path,
                                   const char *ending, const char *what,
                                   bool write, struct gguf_error *err)
{
    size_t size = strlen(path) + strlen(ending) + 1;
    char *name = gg_mem_alloc(p->allocator, size);
    if (!name)
        return gg_error_set_nomem(err, size);
    snprintf(name, size, "%s%s", path, ending);
    enum gguf_status st = add_path(p, name, what, write, err);
    gg_mem_free(p->allocator, name);
    return st;
}

enum gguf_status gg_paths_add_output_beside(struct gguf_paths *p,
                                            const char *path,
                                            const char *ending,
                                            const char *what,
                                            struct gguf_error *err)
{
    return add_beside(p, path, ending, what, true, err);
}

enum gguf_status gg_paths_add_input_beside(struct gguf_paths *p,
                                           const char *path,
                                           const char *ending,
                                           const char *what,
                                           struct gguf_error *err)
{
    return add_beside(p, path, ending, what, false, err);
}

static enum gguf_status copy_entry(struct gguf_paths *p,
                                   const struct entry *from,
                                   struct gguf_error *err)
{
    struct keys k = { .n = 1 };
    k.key[0] =
        (struct gguf_str){ gg_mem_arena_strndup(&p->arena, from->key.data,
                                                from->key.size),
                           from->key.size };
    return k.key[0].data ? add_keys(p, &k, *from, err)
                         : gg_error_set_nomem(err, from->key.size);
}

enum gguf_status gg_paths_join(struct gguf_paths *p,
                               const struct gguf_paths *from,
                               struct gguf_error *err)
{
    for (size_t i = 0; from && i < from->n; i++)
        GG_TRY(copy_entry(p, &from->entries[i], err));
    return GGUF_OK;
}

enum gguf_status gg_paths_copy(struct gguf_paths **out,
                               const struct gguf_paths *from,
                               const struct gguf_allocator *a,
                               struct gguf_error *err)
{
    enum gguf_status st = gguf_paths_create(out, a, err);
    if (st == GGUF_OK)
        st = gg_paths_join(*out, from, err);
    if (st != GGUF_OK) {
        gguf_paths_destroy(*out);
        *out = NULL;
    }
    return st;
}
