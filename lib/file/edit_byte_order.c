/* SPDX-License-Identifier: MIT */
/* edit_byte_order.c - write tensor data in the other byte order */
#include "config.h"
#include "file/edit_int.h"
#include "base/str.h"
#include "dtype/byte_order.h"

#include <string.h>

enum {
    BUFFER = 1 << 18, /* bytes swapped at once; fits in the cache */
    STEP = 16 << 20   /* bytes between two calls of the progress callback */
};

/* Destination of the bytes: o, or the writer of e if o is NULL. */
struct sink {
    const struct gg_edit *e;
    struct gg_outfile *o;
    uint8_t *buffer;
    uint64_t done, total; /* bytes of the data section */
};

static enum gguf_status make_sink(struct sink *s, const struct gg_edit *e,
                                  struct gg_outfile *o, struct gguf_error *err)
{
    *s = (struct sink){ e, o, gg_mem_alloc(e->a, BUFFER), 0, 0 };
    return s->buffer ? GGUF_OK : gg_error_set_nomem(err, BUFFER);
}

enum gguf_status gg_edit_check_order(const struct gg_edit *e,
                                     struct gguf_error *err)
{
    const struct gguf_file *f = e->file;
    for (size_t i = 0; i < f->n_tensors; i++) {
        const struct gguf_tensor_info *t = &f->tensor[i];
        struct gg_str_esc esc;
        if (t->size_inferred ||
            !gg_byte_order_is_known(gg_dtype_index(t->dtype)))
            return gg_error_set(
                err, GGUF_E_UNSUPPORTED, t->info_off,
                "tensor '%s': the byte order of type %" PRIu32
                " cannot be changed, because its layout is unknown",
                gg_str_esc(&esc, t->name), t->dtype);
    }
    return GGUF_OK;
}

static enum gguf_status swap_tensor(struct sink *s, size_t i,
                                    struct gguf_error *err)
{
    const struct gguf_file *f = s->e->file;
    const struct gguf_tensor_info *t = &f->tensor[i];
    uint64_t row =
        t->size ? t->size / (t->n_elements / (uint64_t)t->ne[0]) : 0;
    uint64_t from = f->data_off + t->off, n;
    int type = gg_dtype_index(t->dtype);
    for (uint64_t off = 0; off < t->size; off += n) {
        n = GG_MIN(t->size - off, (uint64_t)BUFFER);
        n = gg_byte_order_floor(type, row, off + n) - off;
        memcpy(s->buffer, f->map.data + from + off, (size_t)n);
        gg_byte_order_swap(type, row, off, s->buffer, (size_t)n);
        GG_TRY(s->o ? gg_outfile_write(s->o, s->buffer, n, err)
                    : gguf_writer_write(s->e->w, s->buffer, n, err));
        /* Release pages that were read, to bound the memory. */
        gg_mapfile_advise(&f->map, from + off, n, GG_ADVISE_DONTNEED);
        if (s->total && (s->done / STEP != (s->done + n) / STEP))
            GG_TRY(gg_edit_report_progress(s->e, s->done + n, s->total, err));
        s->done += n;
    }
    return GGUF_OK;
}

/* Copy bytes between or after tensors unchanged. */
static enum gguf_status copy_gap(struct sink *s, uint64_t from, uint64_t to,
                                 struct gguf_error *err)
{
    if (from >= to)
        return GGUF_OK;
    s->done += to - from;
    return gg_outfile_write(s->o, s->e->file->map.data + from, to - from, err);
}

enum gguf_status gg_edit_swap_rest(const struct gg_edit *e,
                                   struct gg_outfile *o,
                                   struct gguf_error *err)
{
    const struct gguf_file *f = e->file;
    struct sink s;
    uint64_t at = GG_MIN(f->data_off, f->map.size);
    GG_TRY(make_sink(&s, e, o, err));
    s.total = f->map.size - at;
    enum gguf_status st = GGUF_OK;
    for (size_t k = 0; k < f->n_tensors && st == GGUF_OK; k++) {
        const struct gguf_tensor_info *t = &f->tensor[f->places[k].index];
        st = copy_gap(&s, at, f->data_off + t->off, err);
        if (st == GGUF_OK)
            st = swap_tensor(&s, t->index, err);
        at = f->data_off + t->off + t->size;
    }
    if (st == GGUF_OK)
        st = copy_gap(&s, at, f->map.size, err);
    if (st == GGUF_OK)
        st = gg_edit_report_progress(e, s.total, s.total, err);
    gg_mem_free(e->a, s.buffer);
    return st;
}

enum gguf_status gg_edit_swap_tensor(const struct gg_edit *e, size_t i,
                                     struct gguf_error *err)
{
    struct sink s;
    GG_TRY(make_sink(&s, e, NULL, err));
    enum gguf_status st = swap_tensor(&s, i, err);
    gg_mem_free(e->a, s.buffer);
    return st;
}
