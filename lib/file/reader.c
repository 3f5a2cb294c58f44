/* SPDX-License-Identifier: MIT */
/* reader.c - files that are read through a program's reader */
#include "config.h"
#include "gguf/reader.h"
#include "base/mem.h"
#include "base/params.h"
#include "file/file_int.h"

/* Sizes of the pieces in which a header is read: the first, the growth, and the
 * size from which pieces double. Small headers take one or two requests;
 * headers with a vocabulary have some MB and take four. */
enum { FIRST = 128 << 10, TIMES = 4, DOUBLE_FROM = 8 << 20 };

/* Bytes of the buffer for copies. */
enum { COPY = 1 << 20 };

static enum gguf_status read_more(struct gg_cursor *c, uint64_t upto,
                                  struct gguf_error *err)
{
    struct gguf_file *f = c->user;
    const uint64_t most = c->most;
    if (upto > most)
        return gg_error_set(err, GGUF_E_LIMIT, c->off,
                            "the header has at least %" PRIu64
                            " bytes, limit is %" PRIu64,
                            upto, most);
    uint64_t next = FIRST;
    if (c->have)
        next = c->have < DOUBLE_FROM ? c->have * TIMES : c->have * 2;
    next = GG_MIN(GG_MAX(next, upto), GG_MIN(c->size, most));
    GG_TRY(gg_mapfile_fetch(&f->map, c->have, next, err));
    c->have = next;
    return GGUF_OK;
}

void gg_file_reader_cursor(struct gguf_file *f, uint64_t most,
                           struct gg_cursor *c)
{
    if (!f->map.read)
        return;
    c->more = read_more;
    c->user = f;
    c->most = most;
}

/* ---- opening ---- */

static enum gguf_status open_taken(struct gguf_file **out,
                                   const struct gguf_reader *r,
                                   const char *name,
                                   const struct gguf_file_params *params,
                                   struct gguf_error *err)
{
    enum gguf_status st =
        r->read_at ? gg_file_open_reader(out, r, name, params, err)
                   : gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                  "gguf_reader has no function read_at");
    if (st == GGUF_OK)
        (*out)->reader = *r;
    else if (r->close)
        r->close(r->user);
    return st;
}

enum gguf_status gguf_file_open_reader(struct gguf_file **out,
                                       const struct gguf_reader *reader,
                                       const char *name,
                                       const struct gguf_file_params *params,
                                       struct gguf_error *err)
{
    struct gguf_reader own = { .struct_size = sizeof own };
    *out = NULL;
    GG_TRY(gg_params_take(&own, sizeof own, reader, "gguf_reader", err));
    return open_taken(out, &own, name, params, err);
}

enum gguf_status gg_file_params_take(struct gguf_file_params *own,
                                     const struct gguf_file_params *given,
                                     struct gguf_error *err)
{
    struct gguf_opener o = GGUF_INIT(struct gguf_opener);
    GG_TRY(gg_params_take(own, sizeof *own, given, "gguf_file_params", err));
    if (!own->opener)
        return GGUF_OK;
    GG_TRY(gg_params_take(&o, sizeof o, own->opener, "gguf_opener", err));
    if (own->opener->struct_size < sizeof o)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_opener: struct_size is %zu, must be %zu at "
                            "least",
                            own->opener->struct_size, sizeof o);
    if (!o.accepts || !o.open_reader)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_opener has no function %s",
                            o.accepts ? "open_reader" : "accepts");
    return GGUF_OK;
}

bool gg_file_opener_takes(const struct gguf_opener *opener, const char *path)
{
    return opener && opener->accepts(opener->user, path);
}

enum gguf_status gg_file_open_with(struct gguf_file **out, const char *path,
                                   const struct gguf_file_params *params,
                                   struct gguf_error *err)
{
    const struct gguf_opener *o = params->opener;
    struct gguf_reader r = { .struct_size = sizeof r };
    *out = NULL;
    GG_TRY(o->open_reader(o->user, path, &r, err));
    return open_taken(out, &r, path, params, err);
}

/* ---- data ---- */

bool gguf_file_has_reader(const struct gguf_file *f)
{
    return gguf_file_shard(f, 0)->map.read != NULL;
}

enum gguf_status gg_file_fail_unmapped(struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "its data is read through a reader, but this needs it "
                        "in memory");
}

enum gguf_status gg_file_require_memory(const struct gguf_file *f,
                                        struct gguf_error *err)
{
    return gguf_file_has_reader(f) ? gg_file_fail_unmapped(err) : GGUF_OK;
}

enum gguf_status gguf_file_read_tensor(const struct gguf_file *f, size_t i,
                                       uint64_t off, void *dst, size_t size,
                                       struct gguf_error *err)
{
    const struct gguf_tensor_info *t = gguf_file_tensor(f, i);
    if (!t || off > t->size || size > t->size - off)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%zu bytes from byte %" PRIu64
                            " are not in tensor %zu",
                            size, off, i);
    return gg_file_read_tensor(f, i, off, size, dst, err);
}

static enum gguf_status copy_read(struct gg_outfile *o,
                                  const struct gguf_file *f, uint64_t off,
                                  uint64_t size, struct gguf_error *err)
{
    const size_t room = (size_t)GG_MIN(size, (uint64_t)COPY);
    enum gguf_status st = GGUF_OK;
    if (!size)
        return GGUF_OK;
    void *buffer = gg_mem_alloc(f->allocator, room);
    if (!buffer)
        return gg_error_set_nomem(err, room);
    for (uint64_t n; size && st == GGUF_OK; off += n, size -= n) {
        n = GG_MIN(size, (uint64_t)room);
        st = gg_mapfile_read(&f->map, off, (size_t)n, buffer, err);
        if (st == GGUF_OK)
            st = gg_outfile_write(o, buffer, n, err);
    }
    gg_mem_free(f->allocator, buffer);
    return st;
}

enum gguf_status gg_file_copy(struct gg_outfile *o, const struct gguf_file *f,
                              uint64_t off, uint64_t size,
                              struct gguf_error *err)
{
    const struct gg_mapfile *m = &f->map;
    const uint64_t passed = gg_outfile_skip_complete(o, size);
    off += passed;
    size -= passed;
    if (m->read)
        return copy_read(o, f, off, size, err);
    if (m->fd >= 0)
        return gg_outfile_copy(o, m->fd, m->off + off, size, err);
    return gg_outfile_write(o, m->data + off, size, err);
}
