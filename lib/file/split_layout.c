/* SPDX-License-Identifier: MIT */
/* split_layout.c - restore the layout of a file that was split */
#include "config.h"
#include "file/split_layout.h"
#include "base/ckd.h"
#include "base/mem.h"
#include "base/str.h"
#include "file/file_int.h"
#include "file/header.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "libgguf."

static const char key_offsets[] = PREFIX "split.offsets";
static const char key_size[] = PREFIX "split.size";
static const char key_gaps[] = PREFIX "split.gaps";
static const char *const layout_keys[] = { key_offsets, key_size, key_gaps };

/* Places of the tensors of a file. */
struct form {
    const struct gguf_tensor_info *t;
    const struct gg_file_place *places; /* places in order of offset */
    size_t n;
    uint64_t header_end, data_off, end;
};

/* Find the bytes outside tensors before tensor k in order of offset. */
static void find_gap(const struct form *f, size_t k, uint64_t *from,
                     uint64_t *to)
{
    *from = f->header_end;
    *to = f->end;
    if (k > 0) {
        const struct gguf_tensor_info *t = &f->t[f->places[k - 1].index];
        *from = f->data_off + t->off + t->size;
    }
    if (k < f->n)
        *to = f->data_off + f->t[f->places[k].index].off;
}

/* --------------------------------------------------------------- saving --- */

static struct form form_of_file(const struct gguf_file *f)
{
    return (struct form){ f->tensor,     f->places,   f->n_tensors,
                          f->header_end, f->data_off, f->map.size };
}

/* Does the file have the offsets and size that a writer would give it? */
static bool is_usual(const struct gguf_file *f)
{
    uint64_t end = 0;
    for (size_t i = 0; i < f->n_tensors; i++)
        if (f->tensor[i].off != end ||
            gg_file_align_up(&end, end + f->tensor[i].size, f->align))
            return false;
    return f->map.size == f->data_off + end;
}

/* Count the bytes outside tensors. In a file with a reader they are fetched, up
 * to GG_SPLIT_MAX_GAPS. */
static enum gguf_status count_gaps(const struct gguf_file *f, uint64_t *n,
                                   struct gguf_error *err)
{
    const struct form form = form_of_file(f);
    uint64_t from, to;
    *n = 0;
    for (size_t k = 0; k <= form.n; k++) {
        find_gap(&form, k, &from, &to);
        *n += to - from;
        if (f->map.read && *n <= GG_SPLIT_MAX_GAPS)
            GG_TRY(gg_mapfile_fetch(&f->map, from, to, err));
    }
    return GGUF_OK;
}

/* Are all bytes outside tensors zero? */
static bool are_zeros(const struct gguf_file *f)
{
    const struct form form = form_of_file(f);
    uint64_t from, to;
    for (size_t k = 0; k <= form.n; k++)
        for (find_gap(&form, k, &from, &to); from < to; from++)
            if (f->map.data[from])
                return false;
    return true;
}

static enum gguf_status save_gaps(struct gguf_meta *m,
                                  const struct gguf_file *f, uint64_t n,
                                  struct gguf_error *err)
{
    const struct form form = form_of_file(f);
    uint64_t at = 0, from, to;
    uint8_t *bytes = gg_mem_alloc(f->allocator, (size_t)n);
    if (!bytes)
        return gg_error_set_nomem(err, (size_t)n);
    for (size_t k = 0; k <= form.n; k++) {
        find_gap(&form, k, &from, &to);
        memcpy(bytes + at, f->map.data + from, (size_t)(to - from));
        at += to - from;
    }
    enum gguf_status st =
        gguf_meta_set_array(m, key_gaps, GGUF_VAL_U8, bytes, n, err);
    gg_mem_free(f->allocator, bytes);
    return st;
}

static enum gguf_status save_offsets(struct gguf_meta *m,
                                     const struct gguf_file *f,
                                     struct gguf_error *err)
{
    uint64_t *off = gg_mem_alloc_zero(f->allocator, f->n_tensors, sizeof *off);
    if (!off)
        return gg_error_set_nomem(err, f->n_tensors * sizeof *off);
    for (size_t i = 0; i < f->n_tensors; i++)
        off[i] = f->tensor[i].off;
    enum gguf_status st = gguf_meta_set_array(m, key_offsets, GGUF_VAL_U64,
                                              off, f->n_tensors, err);
    gg_mem_free(f->allocator, off);
    return st;
}

/* A key of a split set: the number of times it begins with PREFIX, and whether
 * it is one of layout_keys. */
struct split_key {
    size_t depth;
    bool layout;
};

static bool find_split_key(struct gguf_str key, struct split_key *k)
{
    const size_t n = sizeof PREFIX - 1;
    *k = (struct split_key){ 0, false };
    for (; gg_str_starts(key, PREFIX); k->depth++) {
        key.data += n;
        key.size -= n;
    }
    for (size_t i = 0; i < GG_LEN(layout_keys) && !k->layout; i++)
        k->layout = gg_str_eqz(key, layout_keys[i] + n);
    return k->layout ? k->depth > 0 : gg_file_split_is_key(key);
}

/* Add kv to m with PREFIX before its key. */
static enum gguf_status add_hidden(struct gguf_meta *m,
                                   const struct gguf_kv *kv,
                                   const struct gguf_allocator *a,
                                   struct gguf_error *err)
{
    size_t size = sizeof PREFIX + kv->key.size;
    char *key = gg_mem_alloc(a, size);
    if (!key)
        return gg_error_set_nomem(err, size);
    memcpy(key, PREFIX, sizeof PREFIX - 1);
    memcpy(key + sizeof PREFIX - 1, kv->key.data, kv->key.size);
    key[size - 1] = '\0';
    enum gguf_status st = gguf_meta_set_kv(m, key, kv, err);
    gg_mem_free(a, key);
    return st;
}

void gg_file_split_layout_forget(struct gguf_meta *m)
{
    char mine[64];
    for (size_t i = 0; i < GG_LEN(layout_keys); i++)
        gguf_meta_remove(m, layout_keys[i]);
    for (int i = 0; i < GG_N_SPLIT_KEYS; i++) {
        snprintf(mine, sizeof mine, PREFIX "%s", gg_file_split_keys[i]);
        gguf_meta_remove(m, mine);
    }
}

enum gguf_status gg_file_split_layout_save(struct gguf_meta *m,
                                           const struct gguf_file *f,
                                           struct gguf_error *err)
{
    struct split_key k;
    bool zeros;
    for (size_t i = 0; i < f->n_kv; i++)
        GG_TRY(find_split_key(f->kv[i].key, &k)
                   ? add_hidden(m, &f->kv[i], f->allocator, err)
                   : gguf_meta_set_kv(m, NULL, &f->kv[i], err));
    uint64_t n;
    GG_TRY(count_gaps(f, &n, err));
    zeros = (!f->map.read || n <= GG_SPLIT_MAX_GAPS) && are_zeros(f);
    if (zeros && is_usual(f))
        return GGUF_OK;
    if (n > GG_SPLIT_MAX_GAPS)
        return gg_error_set(err, GGUF_E_LIMIT, f->data_end,
                            "%" PRIu64
                            " bytes of the file belong to no tensor, at "
                            "most %" PRIu64 " are kept",
                            n, GG_SPLIT_MAX_GAPS);
    GG_TRY(save_offsets(m, f, err));
    GG_TRY(gguf_meta_set_u64(m, key_size, f->map.size - f->header_end, err));
    return zeros ? GGUF_OK : save_gaps(m, f, n, err);
}

/* ----------------------------------------------------------- restoring --- */

/* Copy the numbers of an array to allocated memory. *out is NULL and *n is 0 if
 * the key is missing or has another type. */
static enum gguf_status take_array(const struct gguf_file *f, const char *key,
                                   uint32_t elem, size_t elem_size,
                                   const struct gguf_allocator *a, void **out,
                                   uint64_t *n, struct gguf_error *err)
{
    const struct gguf_kv *kv = gguf_file_kv_find(f, key);
    *out = NULL;
    *n = 0;
    if (!kv || kv->type != GGUF_VAL_ARR || kv->elem_type != elem)
        return GGUF_OK;
    *out = gg_mem_alloc_zero(a, kv->n, elem_size);
    if (!*out)
        return gg_error_set_nomem(err, (size_t)kv->n * elem_size);
    *n = kv->n;
    if (elem == GGUF_VAL_U64)
        return gguf_kv_get_elems_uint(kv, 0, (size_t)kv->n, *out, err);
    if (kv->n)
        memcpy(*out, kv->data, (size_t)kv->n);
    return GGUF_OK;
}

/* Add kv to m with one PREFIX less. Keys of the set itself are skipped. */
static enum gguf_status add_shown(struct gguf_meta *m,
                                  const struct gguf_kv *kv,
                                  struct gguf_error *err)
{
    struct split_key k;
    struct gguf_kv own = *kv;
    if (find_split_key(kv->key, &k)) {
        if (k.depth == (k.layout ? 1 : 0))
            return GGUF_OK;
        own.key.data += sizeof PREFIX - 1;
        own.key.size -= sizeof PREFIX - 1;
    }
    return gguf_meta_set_kv(m, NULL, &own, err);
}

enum gguf_status gg_file_split_layout_take(struct gg_file_split_layout *l,
                                           struct gguf_meta *m,
                                           const struct gguf_file *first,
                                           const struct gguf_allocator *a,
                                           struct gguf_error *err)
{
    void *off, *gaps;
    *l = (struct gg_file_split_layout){ .allocator = a };
    enum gguf_status st =
        take_array(first, key_offsets, GGUF_VAL_U64, 8, a, &off, &l->n, err);
    l->off = off;
    GG_TRY(st);
    st =
        take_array(first, key_gaps, GGUF_VAL_U8, 1, a, &gaps, &l->n_gaps, err);
    l->gaps = gaps;
    GG_TRY(st);
    if (gguf_kv_get_u64(gguf_file_kv_find(first, key_size), &l->size, NULL) !=
        GGUF_OK) {
        gg_mem_free(a, l->off);
        l->off = NULL;
    }
    for (size_t i = 0; i < first->n_kv; i++)
        GG_TRY(add_shown(m, &first->kv[i], err));
    return GGUF_OK;
}

void gg_file_split_layout_fini(struct gg_file_split_layout *l)
{
    gg_mem_free(l->allocator, l->off);
    gg_mem_free(l->allocator, l->gaps);
    gg_mem_free(l->allocator, l->places);
    *l = (struct gg_file_split_layout){ 0 };
}

static uint64_t header_end(const struct gguf_writer *w)
{
    return GG_HEAD_SIZE + w->kv_size + w->infos_size;
}

uint64_t gg_file_split_layout_size(const struct gg_file_split_layout *l,
                                   const struct gguf_writer *w)
{
    return header_end(w) + l->size;
}

/* Do the tensors of w fit at the old offsets in a file of size bytes? t is room
 * for them. Sorts l->places. */
static bool in_place(const struct gg_file_split_layout *l,
                     const struct gguf_writer *w, struct gguf_tensor_info *t,
                     uint64_t size)
{
    uint64_t data_off = gguf_writer_data_off(w), end, in_tensors = 0;
    for (size_t i = 0; i < w->n_tensors; i++) {
        t[i] = w->tensor[i];
        t[i].off = l->off[i];
        t[i].size_inferred = 0;
        in_tensors += t[i].size;
    }
    if (w->n_tensors &&
        (size < data_off ||
         gg_file_layout_check(t, w->n_tensors, l->places, data_off, size,
                              w->align, &end, NULL) != GGUF_OK))
        return false;
    for (size_t i = 0; i < w->n_tensors; i++)
        if (t[i].size_inferred) /* its size was reduced to fit */
            return false;
    uint64_t n = l->size - in_tensors;
    return n <= GG_SPLIT_MAX_GAPS && (!l->gaps || l->n_gaps == n);
}

enum gguf_status gg_file_split_layout_fit(struct gg_file_split_layout *l,
                                          struct gguf_writer *w, bool *fits,
                                          struct gguf_error *err)
{
    uint64_t size, n = w->n_tensors;
    *fits = false;
    if (!l->off || l->n != n || gg_ckd_add(&size, header_end(w), l->size) ||
        gg_ckd_exceeds_cap(size))
        return GGUF_OK;
    struct gguf_tensor_info *t = gg_mem_alloc_zero(l->allocator, n, sizeof *t);
    l->places = gg_mem_alloc_zero(l->allocator, n, sizeof *l->places);
    if (!t || !l->places) {
        gg_mem_free(l->allocator, t);
        return gg_error_set_nomem(err, (size_t)n * sizeof *t);
    }
    *fits = in_place(l, w, t, size);
    for (size_t i = 0; *fits && i < n; i++)
        w->tensor[i].off = l->off[i];
    gg_mem_free(l->allocator, t);
    return GGUF_OK;
}

enum gguf_status gg_file_split_layout_gap(const struct gg_file_split_layout *l,
                                          const struct gguf_writer *w,
                                          size_t k, struct gg_outfile *o,
                                          uint64_t *done,
                                          struct gguf_error *err)
{
    const struct form form = { w->tensor,
                               l->places,
                               w->n_tensors,
                               header_end(w),
                               gguf_writer_data_off(w),
                               gg_file_split_layout_size(l, w) };
    uint64_t from, to;
    find_gap(&form, k, &from, &to);
    const uint64_t n = to - from, at = *done;
    *done += n;
    return l->gaps ? gg_outfile_write(o, l->gaps + at, n, err)
                   : gg_outfile_zeros(o, n, err);
}
