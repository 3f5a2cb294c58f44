/* SPDX-License-Identifier: MIT */
/* file_variant.c - create a file with changed metadata, for reading that */
#include "config.h"
#include "file/file_int.h"

#include "base/mem.h"
#include "base/str.h"
#include "gguf/writer.h"

static struct gguf_str name_of(const void *user, uint32_t id)
{
    const struct gguf_file *f = user;
    return f->kv[id].key;
}

/* Add or replace a pair. f has room for it. */
static enum gguf_status set_pair(struct gguf_file *f, const struct gguf_kv *kv,
                                 struct gguf_error *err)
{
    uint32_t other;
    f->kv[f->n_kv] = *kv;
    GG_TRY(gg_index_add(&f->kv_index, (uint32_t)f->n_kv, &other, err));
    if (other == GG_INDEX_NONE)
        f->n_kv++;
    else
        f->kv[other] = *kv;
    return GGUF_OK;
}

static enum gguf_status fill_pairs(struct gguf_file *f,
                                   const struct gguf_file *like,
                                   const struct gguf_meta *changes,
                                   struct gguf_error *err)
{
    f->kv_room = like->n_kv + gguf_meta_n_kv(changes);
    GG_TRY(gg_index_init(&f->kv_index, f->allocator, (uint32_t)f->kv_room,
                         name_of, f, err));
    f->kv = gg_mem_alloc_zero(f->allocator, f->kv_room + 1, sizeof *f->kv);
    if (!f->kv)
        return gg_error_set_nomem(err, (f->kv_room + 1) * sizeof *f->kv);
    for (size_t i = 0; i < like->n_kv; i++)
        GG_TRY(set_pair(f, &like->kv[i], err));
    for (size_t i = 0; i < gguf_meta_n_kv(changes); i++)
        GG_TRY(set_pair(f, gguf_meta_kv(changes, i), err));
    return GGUF_OK;
}

enum gguf_status gg_file_create_with_pairs(struct gguf_file **out,
                                           const struct gguf_file *like,
                                           const struct gguf_meta *changes,
                                           const struct gguf_allocator *a,
                                           struct gguf_error *err)
{
    *out = NULL;
    struct gguf_file *f = gg_mem_alloc_zero(a, 1, sizeof *f);
    if (!f)
        return gg_error_set_nomem(err, sizeof *f);
    f->allocator = a;
    f->map = (struct gg_mapfile){ .data = (const uint8_t *)"", .fd = -1 };
    f->version = like->version;
    f->big_endian = like->big_endian;
    f->align = like->align;
    enum gguf_status st = fill_pairs(f, like, changes, err);
    if (st != GGUF_OK) {
        gguf_file_close(f);
        return st;
    }
    *out = f;
    return GGUF_OK;
}
