/* SPDX-License-Identifier: MIT */
/* dir.c - files of a folder, local or remote */
#include "config.h"
#include "data/dir.h"
#include "base/os/os.h"
#include "base/os/os_path.h"
#include "base/str.h"
#include "base/foreign_format.h"
#include "file/file_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool gg_dir_is_remote(const struct gg_dir *f)
{
    return gg_file_opener_takes(f->opener, f->path);
}

static enum gguf_status fail_size(uint64_t size, uint64_t most,
                                  struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                        "%" PRIu64 " bytes, limit is %" PRIu64, size, most);
}

static enum gguf_status open_remote(const struct gg_dir *f, const char *path,
                                    uint64_t most, struct gg_mapfile *m,
                                    bool *there, struct gguf_error *err)
{
    struct gguf_reader r = { .struct_size = sizeof r };
    struct gguf_error why;
    enum gguf_status st =
        f->opener->open_reader(f->opener->user, path, &r, &why);
    if (st == GGUF_E_NOTFOUND)
        return GGUF_OK;
    if (st == GGUF_OK && !r.read_at)
        st = gg_error_set(&why, GGUF_E_INVALID, GGUF_NO_OFFSET,
                          "gguf_reader: read_at is NULL");
    if (st != GGUF_OK) {
        if (err)
            *err = why;
        return st;
    }
    st = r.size > most
             ? fail_size(r.size, most, err)
             : gg_mapfile_open_reader(m, r.read_at, r.user, r.size, 0, 0, err);
    if (st != GGUF_OK) {
        if (r.close)
            r.close(r.user);
        return st;
    }
    m->close = r.close;
    m->version = r.version;
    *there = true;
    return st;
}

static enum gguf_status open_local(const struct gg_dir *f, const char *path,
                                   uint64_t most, struct gg_mapfile *m,
                                   bool *there, struct gguf_error *err)
{
    struct gguf_error why;
    struct gg_os_stat s;
    if (gg_os_stat(path, &s) == 0 && s.kind == GG_OS_FILE && s.size > most)
        return fail_size(s.size, most, err);
    enum gguf_status st = gg_mapfile_open(m, path, 0, 0, &why);
    if (st == GGUF_OK && f->opened) {
        st = gguf_paths_add_input(f->opened, path, "input", &why);
        if (st != GGUF_OK)
            gg_mapfile_close(m);
    }
    *there = st == GGUF_OK;
    if (!*there && why.sys_errno == ENOENT && gg_os_stat_link(path, &s) == 0)
        return gg_error_set(err, GGUF_E_IO, GGUF_NO_OFFSET,
                            "is a link to a file that is not there");
    if (*there || why.sys_errno == ENOENT)
        return GGUF_OK;
    if (err)
        *err = why;
    return st;
}

static enum gguf_status open_any(const struct gg_dir *f, const char *name,
                                 uint64_t most, struct gg_mapfile *m,
                                 bool *there, struct gguf_error *err)
{
    const size_t n = strlen(f->path), size = n + strlen(name) + 2;
    char *path = gg_mem_alloc(f->allocator, size);
    *m = (struct gg_mapfile){ .fd = -1 };
    *there = false;
    if (!path)
        return gg_error_set_nomem(err, size);
    const bool slash = n && gg_os_path_separates(f->path[n - 1]);
    snprintf(path, size, "%s%s%s", f->path, slash ? "" : "/", name);
    const enum gguf_status st = gg_dir_is_remote(f)
                                    ? open_remote(f, path, most, m, there, err)
                                    : open_local(f, path, most, m, there, err);
    gg_mem_free(f->allocator, path);
    return st;
}

enum gguf_status gg_dir_open(const struct gg_dir *f, const char *name,
                             struct gg_mapfile *m, bool *there,
                             struct gguf_error *err)
{
    return open_any(f, name, UINT64_MAX, m, there, err);
}

/* Check that the file has the format of its name. */
static enum gguf_status check_kind(const char *name,
                                   const struct gg_mapfile *m,
                                   struct gguf_error *err)
{
    const char *is = gg_foreign_format_name(m->data, m->size,
                                            gg_str_ends(gg_str_z(name), ".md")
                                                ? GG_FOREIGN_BUT_PROSE
                                                : GG_FOREIGN_BUT_NONE);
    if (is)
        return gg_error_set(err, GGUF_E_FORMAT, 0, "it looks like %s", is);
    return m->size || !gg_str_ends(gg_str_z(name), ".json")
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_TRUNCATED, 0, "the file is empty");
}

enum gguf_status gg_dir_map(const struct gg_dir *f, const char *name,
                            uint64_t most, struct gg_mapfile *m, bool *there,
                            struct gguf_error *err)
{
    GG_TRY(open_any(f, name, most, m, there, err));
    if (!*there)
        return GGUF_OK;
    enum gguf_status st =
        m->read ? gg_mapfile_fetch(m, 0, m->size, err) : GGUF_OK;
    if (st == GGUF_OK)
        st = check_kind(name, m, err);
    if (st != GGUF_OK) {
        gg_mapfile_close(m);
        *there = false;
    }
    return st;
}
