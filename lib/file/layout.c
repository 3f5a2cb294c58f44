/* SPDX-License-Identifier: MIT */
/* layout.c - offsets of tensor data */
#include "config.h"
#include "file/layout.h"
#include "base/ckd.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

/* Format " at byte N"; nothing for GGUF_NO_OFFSET. */
struct where {
    char s[32];
};

static const char *format_offset(struct where *w, uint64_t at)
{
    w->s[0] = '\0';
    if (at != GGUF_NO_OFFSET)
        snprintf(w->s, sizeof w->s, " at byte %" PRIu64, at);
    return w->s;
}

enum gguf_status gg_file_align_from_kv(const struct gguf_kv *kv,
                                       uint32_t *align, struct gguf_error *err)
{
    *align = GG_ALIGN_DEFAULT;
    if (!kv)
        return GGUF_OK;
    struct where w;
    if (kv->type != GGUF_VAL_U32)
        return gg_error_set(err, GGUF_E_FORMAT, kv->off,
                            "general.alignment%s is %s, expected u32",
                            format_offset(&w, kv->off),
                            gguf_val_type_name(kv->type));
    uint32_t v;
    GG_TRY(gguf_kv_get_u32(kv, &v, err));
    if (v < GG_ALIGN_MIN || (v & (v - 1)))
        return gg_error_set(err, GGUF_E_FORMAT, kv->off,
                            "general.alignment%s is %" PRIu32
                            ", expected a power of two, at least %d",
                            format_offset(&w, kv->off), v, GG_ALIGN_MIN);
    *align = v;
    return GGUF_OK;
}

bool gg_file_align_up(uint64_t *out, uint64_t off, uint32_t align)
{
    return gg_ckd_align(out, off, align) || gg_ckd_exceeds_cap(*out);
}

static enum gguf_status fail_dim(const struct gguf_tensor_info *t, unsigned d,
                                 uint64_t at, struct gguf_error *err)
{
    struct gg_str_esc e;
    struct where w;
    if (t->ne[d] == 0)
        return gg_error_set(err, GGUF_E_FORMAT, at,
                            "tensor '%s'%s: dimension %u is 0",
                            gg_str_esc(&e, t->name), format_offset(&w, at), d);
    return gg_error_set(err, GGUF_E_OVERFLOW, at,
                        "tensor '%s'%s: dimension %u is %" PRIu64
                        ", limit is %" PRId64,
                        gg_str_esc(&e, t->name), format_offset(&w, at), d,
                        (uint64_t)t->ne[d], INT64_MAX);
}

static enum gguf_status fail_size(const struct gguf_tensor_info *t,
                                  const char *what, uint64_t at,
                                  struct gguf_error *err)
{
    struct gg_str_esc e;
    struct where w;
    const struct gguf_dtype_info *dt = gguf_dtype_find(t->dtype);
    return gg_error_set(
        err, GGUF_E_OVERFLOW, at,
        "tensor '%s'%s: the %s of %" PRId64 " x %" PRId64 " x %" PRId64
        " x %" PRId64 " (type %s) do not fit 63 bits",
        gg_str_esc(&e, t->name), format_offset(&w, at), what, t->ne[0],
        t->ne[1], t->ne[2], t->ne[3], dt ? dt->name : "unknown");
}

/* Treat a type as unknown. Two forks may use one id for different types: if the
 * layout that we know is impossible, the file has the other one. */
static enum gguf_status forget_size(struct gguf_tensor_info *t)
{
    t->size = 0;
    t->size_inferred = 1;
    return GGUF_OK;
}

static bool is_fork(const struct gguf_tensor_info *t)
{
    const struct gguf_dtype_info *dt = gguf_dtype_find(t->dtype);
    return dt && dt->family == GGUF_FAMILY_FORK;
}

enum gguf_status gg_file_tensor_measure(struct gguf_tensor_info *t,
                                        uint64_t at, struct gguf_error *err)
{
    uint64_t n = 1, row;
    for (unsigned d = t->n_dims; d < GGUF_MAX_DIMS; d++)
        t->ne[d] = 1;
    for (unsigned d = 0; d < t->n_dims; d++) {
        if (t->ne[d] <= 0)
            return fail_dim(t, d, at, err);
        if (gg_ckd_mul(&n, n, (uint64_t)t->ne[d]) || gg_ckd_exceeds_cap(n))
            return fail_size(t, "elements", at, err);
    }
    t->n_elements = n;
    t->size = 0;
    const struct gguf_dtype_info *dt = gguf_dtype_find(t->dtype);
    t->size_inferred = !dt || dt->block_len == 0;
    if (t->size_inferred)
        return GGUF_OK;
    uint64_t ne0 = (uint64_t)t->ne[0];
    struct gg_str_esc e;
    struct where w;
    if (ne0 % dt->block_len && dt->family == GGUF_FAMILY_FORK)
        return forget_size(t);
    if (ne0 % dt->block_len)
        return gg_error_set(err, GGUF_E_SHAPE, at,
                            "tensor '%s'%s: a row of %" PRIu64
                            " elements is not a multiple of the %" PRIu32
                            " in a block of %s",
                            gg_str_esc(&e, t->name), format_offset(&w, at),
                            ne0, dt->block_len, dt->name);
    if (gguf_dtype_row_size(t->dtype, ne0, &row, NULL) != GGUF_OK ||
        gg_ckd_mul(&t->size, row, n / ne0) || gg_ckd_exceeds_cap(t->size))
        return fail_size(t, "bytes", at, err);
    return GGUF_OK;
}

bool gg_file_tensor_is_empty(struct gguf_tensor_info *t)
{
    bool empty = false;
    for (unsigned d = 0; d < t->n_dims; d++) {
        if (t->ne[d] < 0)
            return false;
        empty = empty || !t->ne[d];
    }
    if (!empty)
        return false;
    for (unsigned d = t->n_dims; d < GGUF_MAX_DIMS; d++)
        t->ne[d] = 1;
    t->n_elements = t->size = 0;
    t->size_inferred = 0;
    return true;
}

static int by_offset(const void *a, const void *b)
{
    const struct gg_file_place *x = a, *y = b;
    if (x->off != y->off)
        return x->off < y->off ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void sort_places(const struct gguf_tensor_info *t, size_t n,
                        struct gg_file_place *places)
{
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        places[i] = (struct gg_file_place){ t[i].off, (uint32_t)i };
        sorted = sorted && (i == 0 || t[i - 1].off <= t[i].off);
    }
    if (!sorted)
        qsort(places, n, sizeof *places, by_offset);
}

static enum gguf_status fail_place(enum gguf_status st,
                                   const struct gguf_tensor_info *t,
                                   const char *what, uint64_t limit,
                                   struct gguf_error *err)
{
    struct gg_str_esc e;
    return gg_error_set(err, st, t->info_off,
                        "tensor '%s' (at byte %" PRIu64 "): offset %" PRIu64
                        ", size %" PRIu64 " %s %" PRIu64,
                        gg_str_esc(&e, t->name), t->info_off, t->off, t->size,
                        what, limit);
}

/* Fail because tensor `at' reaches past the end. The message has the size that
 * the file should have. */
static enum gguf_status fail_short(const struct gguf_tensor_info *t, size_t n,
                                   size_t at, uint64_t data_off, uint64_t size,
                                   struct gguf_error *err)
{
    struct gg_str_esc e;
    uint64_t want = 0, end;
    for (size_t i = 0; i < n; i++)
        if (gg_ckd_add(&end, t[i].off, t[i].size) ||
            gg_ckd_add(&end, end, data_off))
            want = UINT64_MAX;
        else if (end > want)
            want = end;
    return gg_error_set(
        err, GGUF_E_TRUNCATED, t[at].info_off,
        "tensor '%s' (at byte %" PRIu64 "), %" PRIu64 " bytes at byte %" PRIu64
        ", reaches past the end: the file has %" PRIu64
        " bytes and should have %" PRIu64,
        gg_str_esc(&e, t[at].name), t[at].info_off, t[at].size,
        gg_ckd_add(&end, data_off, t[at].off) ? UINT64_MAX : end, size, want);
}

enum gguf_status gg_file_layout_check(struct gguf_tensor_info *t, size_t n,
                                      struct gg_file_place *places,
                                      uint64_t data_off, uint64_t size,
                                      uint32_t align, uint64_t *end,
                                      struct gguf_error *err)
{
    const uint64_t data_size = size - data_off;
    *end = 0;
    for (size_t i = 0; i < n; i++) {
        if (t[i].off & (align - 1))
            return fail_place(GGUF_E_FORMAT, &t[i], "is not aligned to", align,
                              err);
        if (t[i].off <= data_size && t[i].size > data_size - t[i].off &&
            is_fork(&t[i]))
            forget_size(&t[i]);
        if (t[i].off > data_size || t[i].size > data_size - t[i].off)
            return fail_short(t, n, i, data_off, size, err);
    }
    sort_places(t, n, places);
    for (size_t i = 0; i < n; i++) {
        struct gguf_tensor_info *this = &t[places[i].index];
        uint64_t next = i + 1 < n ? places[i + 1].off : data_size;
        if (this->size > next - this->off && is_fork(this))
            forget_size(this);
        if (this->size_inferred)
            this->size = next - this->off;
        if (this->size_inferred && this->size == 0)
            return fail_place(i + 1 < n ? GGUF_E_FORMAT : GGUF_E_TRUNCATED,
                              this, "leaves no bytes for it before", next,
                              err);
        if (i + 1 < n && this->size > next - this->off) {
            struct gg_str_esc e;
            const struct gguf_tensor_info *other = &t[places[i + 1].index];
            return gg_error_set(
                err, GGUF_E_FORMAT, other->info_off,
                "tensor '%s' (at byte %" PRIu64 ") at offset %" PRIu64
                " overlaps tensor %" PRIu32 ", which has offset %" PRIu64
                " and size %" PRIu64,
                gg_str_esc(&e, other->name), other->info_off, other->off,
                this->index, this->off, this->size);
        }
        *end = this->off + this->size;
    }
    return GGUF_OK;
}

enum gguf_status gg_file_layout_append(struct gguf_tensor_info *t,
                                       uint64_t *end, uint32_t align,
                                       struct gguf_error *err)
{
    uint64_t next;
    t->off = *end;
    if (gg_ckd_add(&next, *end, t->size) ||
        gg_file_align_up(&next, next, align)) {
        struct gg_str_esc e;
        return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                            "tensor '%s': %" PRIu64 " bytes after %" PRIu64
                            " do not fit 63 bits",
                            gg_str_esc(&e, t->name), t->size, *end);
    }
    *end = next;
    return GGUF_OK;
}
