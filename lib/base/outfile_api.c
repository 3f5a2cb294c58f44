/* SPDX-License-Identifier: MIT */
/* outfile_api.c - struct gguf_outfile, for programs */
#include "config.h"
#include "base/mem.h"
#include "base/outfile_int.h"
#include "gguf/outfile.h"

struct gguf_outfile {
    const struct gguf_allocator *allocator;
    struct gg_outfile o; /* path is NULL after the commit */
};

enum gguf_status gguf_outfile_open(struct gguf_outfile **out, const char *path,
                                   bool force,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_error *err)
{
    *out = NULL;
    struct gguf_outfile *f = gg_mem_alloc_zero(allocator, 1, sizeof *f);
    if (!f)
        return gg_error_set_nomem(err, sizeof *f);
    f->allocator = allocator;
    enum gguf_status st = gg_outfile_open(&f->o, allocator, path,
                                          force ? GG_OUTFILE_FORCE : 0u, err);
    if (st != GGUF_OK) {
        gg_mem_free(allocator, f);
        return st;
    }
    *out = f;
    return GGUF_OK;
}

static enum gguf_status check_open(const struct gguf_outfile *f,
                                   struct gguf_error *err)
{
    return f->o.path ? GGUF_OK
                     : gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                    "the file has been committed already");
}

enum gguf_status gguf_outfile_write(struct gguf_outfile *f, const void *data,
                                    uint64_t size, struct gguf_error *err)
{
    GG_TRY(check_open(f, err));
    return gg_outfile_write(&f->o, data, size, err);
}

enum gguf_status gg_outfile_check_room(struct gguf_outfile *f, uint64_t size,
                                       struct gguf_error *err)
{
    return gg_outfile_reserve(&f->o, size, false, err);
}

enum gguf_status gguf_outfile_commit(struct gguf_outfile *f,
                                     struct gguf_error *err)
{
    GG_TRY(check_open(f, err));
    return gg_outfile_commit(&f->o, err);
}

void gguf_outfile_close(struct gguf_outfile *f)
{
    if (!f)
        return;
    gg_outfile_abort(&f->o);
    gg_mem_free(f->allocator, f);
}
