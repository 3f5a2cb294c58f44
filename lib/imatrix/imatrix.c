/* SPDX-License-Identifier: MIT */
/* imatrix.c - importance data: entries, sums, and weights for encoders */
#include "config.h"
#include "base/params.h"
#include "imatrix/imatrix_int.h"
#include "base/bytes.h"
#include "base/str.h"
#include "file/file_int.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

static struct gguf_str dataset_name(const void *user, uint32_t id)
{
    return gg_str_z(((const struct gguf_imatrix *)user)->datasets[id]);
}

enum gguf_status gguf_imatrix_create(struct gguf_imatrix **out,
                                     const struct gguf_allocator *allocator,
                                     struct gguf_error *err)
{
    *out = NULL;
    struct gguf_imatrix *im = gg_mem_alloc_zero(allocator, 1, sizeof *im);
    if (!im)
        return gg_error_set_nomem(err, sizeof *im);
    im->allocator = allocator;
    im->map.fd = -1;
    gg_mem_arena_init(&im->arena, allocator);
    enum gguf_status st =
        gg_index_init(&im->dataset_index, allocator, 0, dataset_name, im, err);
    if (st != GGUF_OK)
        gg_mem_free(allocator, im);
    else
        *out = im;
    return st;
}

static void entry_fini(struct gguf_imatrix *im, struct gg_imatrix_entry *e)
{
    if (e->owned)
        gg_mem_free(im->allocator, (void *)e->sums);
}

void gguf_imatrix_destroy(struct gguf_imatrix *im)
{
    if (!im)
        return;
    for (size_t i = 0; i < im->n_entries; i++)
        entry_fini(im, im->entries[i]);
    gg_mem_free(im->allocator, im->entries);
    gg_mem_free(im->allocator, im->datasets);
    gg_mem_free(im->allocator, im->sens);
    gg_index_fini(&im->dataset_index);
    gg_mem_arena_fini(&im->arena);
    gguf_file_close(im->file);
    gg_mapfile_close(&im->map);
    gg_mem_free(im->allocator, im);
}

enum gguf_status gg_imatrix_check_file(const struct gguf_imatrix *im,
                                       struct gguf_error *err)
{
    struct gguf_error why;
    const struct gg_mapfile *m = im->file ? &im->file->map : &im->map;
    if (!im->file && !im->map.data)
        return GGUF_OK;
    enum gguf_status st = gg_mapfile_check_unchanged(m, m->fd, &why);
    return st == GGUF_OK ? st
                         : gg_error_set(err, st, GGUF_NO_OFFSET,
                                        "the file of the importance data %s",
                                        why.message);
}

/* ------------------------------------------------------------- entries --- */

static int compare_name(struct gguf_str a, const char *b)
{
    size_t n = strlen(b);
    int c = memcmp(a.data, b, GG_MIN(a.size, n));
    return c ? c : (a.size > n) - (a.size < n);
}

/* Find the place of a name among the sorted entries, whether it exists or
 * not. */
static size_t place_of(const struct gguf_imatrix *im, struct gguf_str name,
                       bool *found)
{
    size_t low = 0, high = im->n_sorted;
    *found = false;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = compare_name(name, im->entries[mid]->name);
        if (!c)
            *found = true;
        if (c <= 0)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* Find an entry to change; NULL if it does not exist. */
static struct gg_imatrix_entry *find_entry(const struct gguf_imatrix *im,
                                           struct gguf_str name)
{
    bool found;
    size_t i = place_of(im, name, &found);
    return found ? im->entries[i] : NULL;
}

const struct gg_imatrix_entry *
gg_imatrix_find_str(const struct gguf_imatrix *im, struct gguf_str name)
{
    return find_entry(im, name);
}

const struct gg_imatrix_entry *gg_imatrix_find(const struct gguf_imatrix *im,
                                               const char *name)
{
    return find_entry(im, gg_str_z(name));
}

bool gguf_imatrix_find(const struct gguf_imatrix *im, struct gguf_str name,
                       size_t *i)
{
    bool found;
    *i = place_of(im, name, &found);
    return found;
}

enum gguf_status gg_imatrix_append(struct gguf_imatrix *im,
                                   struct gguf_str name,
                                   struct gg_imatrix_entry **out,
                                   struct gguf_error *err)
{
    if (im->n_entries == im->cap_entries) {
        void *grown = gg_mem_grow(im->allocator, im->entries, &im->cap_entries,
                                  sizeof *im->entries, 64, err);
        if (!grown)
            return GGUF_E_NOMEM;
        im->entries = grown;
    }
    struct gg_imatrix_entry *e = gg_mem_arena_alloc(&im->arena, sizeof *e);
    const char *copy = gg_mem_arena_strndup(&im->arena, name.data, name.size);
    if (!e || !copy)
        return gg_error_set_nomem(err, sizeof *e + name.size + 1);
    *e = (struct gg_imatrix_entry){ .name = copy };
    im->entries[im->n_entries++] = *out = e;
    return GGUF_OK;
}

static int compare_entries(const void *a, const void *b)
{
    const struct gg_imatrix_entry *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

void gg_imatrix_sort(struct gguf_imatrix *im)
{
    size_t n = im->n_sorted;
    if (im->n_entries == n + 1) {
        bool found;
        struct gg_imatrix_entry *e = im->entries[n];
        size_t i = place_of(im, gg_str_z(e->name), &found);
        memmove(im->entries + i + 1, im->entries + i, (n - i) * sizeof e);
        im->entries[i] = e;
    } else if (im->n_entries > n) {
        qsort(im->entries, im->n_entries, sizeof *im->entries,
              compare_entries);
    }
    im->n_sorted = im->n_entries;
}

enum gguf_status gg_imatrix_add_dataset(struct gguf_imatrix *im,
                                        struct gguf_str name,
                                        struct gguf_error *err)
{
    uint32_t other;
    if (gg_index_find(&im->dataset_index, name) != GG_INDEX_NONE)
        return GGUF_OK;
    if (im->n_datasets == im->cap_datasets) {
        void *grown =
            gg_mem_grow(im->allocator, im->datasets, &im->cap_datasets,
                        sizeof *im->datasets, 4, err);
        if (!grown)
            return GGUF_E_NOMEM;
        im->datasets = grown;
    }
    const char *copy = gg_mem_arena_strndup(&im->arena, name.data, name.size);
    if (!copy)
        return gg_error_set_nomem(err, name.size + 1);
    im->datasets[im->n_datasets] = copy;
    GG_TRY(gg_index_add(&im->dataset_index, (uint32_t)im->n_datasets, &other,
                        err));
    im->n_datasets++;
    return GGUF_OK;
}

size_t gguf_imatrix_n_entries(const struct gguf_imatrix *im)
{
    return im->n_entries;
}

enum gguf_status gguf_imatrix_entry(const struct gguf_imatrix *im, size_t i,
                                    struct gguf_imatrix_entry *out,
                                    struct gguf_error *err)
{
    if (i >= im->n_entries)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "importance data: entry %zu is out of range, "
                            "there are %zu",
                            i, im->n_entries);
    const struct gg_imatrix_entry *e = im->entries[i];
    const struct gguf_imatrix_entry own = { sizeof own, e->name, e->n_values,
                                            e->n_mats, e->n_calls };
    return gg_params_give(out, &own, sizeof own, "gguf_imatrix_entry", err);
}

const char *gguf_imatrix_dataset(const struct gguf_imatrix *im, size_t i)
{
    return i < im->n_datasets ? im->datasets[i] : NULL;
}

const char *gg_imatrix_base_name(const char *text)
{
    for (const char *p = text; *p; p++)
        if ((*p == '/' || *p == '\\') && p[1])
            text = p + 1;
    return text;
}

void gguf_imatrix_hide_paths(struct gguf_imatrix *im)
{
    size_t n = 0;
    uint32_t other;
    gg_index_clear(&im->dataset_index);
    for (size_t i = 0; i < im->n_datasets; i++) {
        im->datasets[n] = gg_imatrix_base_name(im->datasets[i]);
        /* cannot fail: the index has room for the former number */
        if (gg_index_add(&im->dataset_index, (uint32_t)n, &other, NULL) ==
                GGUF_OK &&
            other == GG_INDEX_NONE)
            n++;
    }
    im->n_datasets = n;
}

const char *gguf_imatrix_precision(const struct gguf_imatrix *im)
{
    return im->precision;
}

enum gguf_status gg_imatrix_set_precision(struct gguf_imatrix *im,
                                          struct gguf_str name,
                                          struct gguf_error *err)
{
    im->precision = NULL;
    if (!name.size)
        return GGUF_OK;
    im->precision = gg_mem_arena_strndup(&im->arena, name.data, name.size);
    return im->precision ? GGUF_OK : gg_error_set_nomem(err, name.size + 1);
}

enum gguf_status gguf_imatrix_set_precision(struct gguf_imatrix *im,
                                            const char *name,
                                            struct gguf_error *err)
{
    return gg_imatrix_set_precision(im, gg_str_z(name ? name : ""), err);
}

uint64_t gguf_imatrix_n_chunks(const struct gguf_imatrix *im)
{
    return im->n_chunks;
}

uint64_t gguf_imatrix_chunk_size(const struct gguf_imatrix *im)
{
    return im->chunk_size;
}

/* -------------------------------------------------------------- values --- */

static float load_float(const uint8_t *floats, uint64_t i)
{
    return gg_bytes_f32_from_bits(gg_bytes_load32le(floats + 4 * i));
}

void gg_imatrix_store_float(uint8_t *p, float v)
{
    gg_bytes_store32le(p, gg_bytes_f32_bits(v > FLT_MAX ? FLT_MAX : v));
}

static float count_of(const struct gg_imatrix_entry *e, uint64_t mat)
{
    return e->counts ? load_float(e->counts, mat) : (float)e->n_calls;
}

enum gguf_status gguf_imatrix_sums(const struct gguf_imatrix *im, size_t i,
                                   uint64_t first, size_t n, float *dst,
                                   struct gguf_error *err)
{
    if (i >= im->n_entries || first > im->entries[i]->n_values ||
        n > im->entries[i]->n_values - first)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "importance data: entry or values out of range");
    for (size_t k = 0; k < n; k++)
        dst[k] = load_float(im->entries[i]->sums, first + k);
    return GGUF_OK;
}

enum gguf_status gguf_imatrix_counts(const struct gguf_imatrix *im, size_t i,
                                     uint64_t first, size_t n, float *dst,
                                     struct gguf_error *err)
{
    const struct gg_imatrix_entry *e =
        i < im->n_entries ? im->entries[i] : NULL;
    if (!e || first > GG_MAX(e->n_mats, 1) || n > GG_MAX(e->n_mats, 1) - first)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "importance data: entry or values out of range");
    for (size_t k = 0; k < n; k++)
        dst[k] = count_of(e, first + k);
    return GGUF_OK;
}

/* Can a value be used? The encoders' sums overflow with larger ones. */
static bool is_usable(float v)
{
    return v >= 0 && v <= 0x1p64f;
}

uint64_t gg_imatrix_weights(const struct gg_imatrix_entry *e, uint64_t first,
                            size_t n, float *dst)
{
    uint64_t n_bad = 0, n_good = 0;
    double sum = 0;
    bool some = false;
    for (size_t k = 0; k < n; k++) {
        float count = count_of(e, (first + k) / e->n_cols);
        /* like llama-quantize: an expert without input has weights of 1 */
        float v = count > 0 ? load_float(e->sums, first + k) / count : 1;
        dst[k] = v;
        if (is_usable(v)) {
            sum += v;
            n_good++;
            some |= v > 0;
        }
    }
    float mean = n_good ? (float)(sum / (double)n_good) : 1;
    for (size_t k = 0; k < n; k++) {
        bool good = is_usable(dst[k]);
        n_bad += !good || !some;
        if (!some)
            dst[k] = 1;
        else if (!good)
            dst[k] = mean;
    }
    return n_bad;
}

/* -------------------------------------------------------------- adding --- */

/* Copy the values of an entry so that they can be changed, with n_mats counts.
 * With n_mats 0, data of the older form stay so; otherwise they become sums and
 * equal counts, scale tokens per call. */
static enum gguf_status own_values(struct gguf_imatrix *im,
                                   struct gg_imatrix_entry *e, uint64_t n_mats,
                                   uint64_t scale, struct gguf_error *err)
{
    size_t size;
    bool old = !e->counts;
    if (e->owned && e->n_mats == n_mats)
        return GGUF_OK;
    if (gg_ckd_array(&size, e->n_values + n_mats, 4))
        return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                            "importance data are too large");
    uint8_t *p = gg_mem_alloc(im->allocator, size);
    if (!p)
        return gg_error_set_nomem(err, size);
    float factor = old && n_mats ? (float)scale : 1;
    for (uint64_t k = 0; k < e->n_values; k++)
        gg_imatrix_store_float(p + 4 * k, load_float(e->sums, k) * factor);
    for (uint64_t k = 0; k < n_mats; k++)
        gg_imatrix_store_float(p + 4 * (e->n_values + k),
                               count_of(e, k) * factor);
    entry_fini(im, e);
    e->sums = p;
    e->owned = true;
    if (!n_mats)
        return GGUF_OK;
    e->counts = p + 4 * e->n_values;
    e->n_cols = e->n_values / n_mats;
    e->n_mats = n_mats;
    e->n_calls = 0;
    return GGUF_OK;
}

/* Add the values of b to entry a, whose values are owned. A value that is NaN
 * in one is NaN in the sum, and is replaced when it is used; at least one value
 * must remain to replace it from. */
static enum gguf_status add_values(struct gg_imatrix_entry *a,
                                   const struct gg_imatrix_entry *b,
                                   float factor, struct gguf_error *err)
{
    bool some = false;
    struct gg_str_esc esc;
    uint8_t *sums = (uint8_t *)a->sums, *counts = (uint8_t *)a->counts;
    for (uint64_t k = 0; k < a->n_values; k++) {
        float v = load_float(sums, k) + load_float(b->sums, k) * factor;
        some |= v == v;
        gg_imatrix_store_float(sums + 4 * k, v);
    }
    for (uint64_t k = 0; k < a->n_mats; k++)
        gg_imatrix_store_float(counts + 4 * k, load_float(counts, k) +
                                                   count_of(b, k) * factor);
    if (!a->n_mats)
        a->n_calls += GG_MIN(b->n_calls, UINT32_MAX - a->n_calls);
    if (some)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                        "importance data of '%s': none of %" PRIu64
                        " values is a number in both",
                        gg_str_esc(&esc, gg_str_z(a->name)), a->n_values);
}

static enum gguf_status add_new(struct gguf_imatrix *im,
                                const struct gg_imatrix_entry *b,
                                struct gguf_error *err)
{
    struct gg_imatrix_entry copy = *b, *e;
    copy.owned = false;
    GG_TRY(own_values(im, &copy, b->n_mats, 1, err));
    enum gguf_status st = gg_imatrix_append(im, gg_str_z(b->name), &e, err);
    if (st != GGUF_OK) {
        entry_fini(im, &copy);
        return st;
    }
    copy.name = e->name;
    *e = copy;
    return GGUF_OK;
}

/* Add entry b, if necessary as a new entry; the caller sorts. If one of the two
 * is in the older form, its calls count as scale tokens each. If both are, they
 * stay calls, since a later file may have the number. */
static enum gguf_status add_entry(struct gguf_imatrix *im,
                                  const struct gg_imatrix_entry *b,
                                  uint64_t scale, struct gguf_error *err)
{
    struct gg_str_esc esc;
    struct gg_imatrix_entry *a = find_entry(im, gg_str_z(b->name));
    if (!a)
        return add_new(im, b, err);
    if (a->n_values != b->n_values ||
        (a->n_mats && b->n_mats && a->n_mats != b->n_mats))
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "importance data of '%s': %" PRIu64
                            " values of %" PRIu64 " matrices in one, %" PRIu64
                            " of %" PRIu64 " in the other",
                            gg_str_esc(&esc, gg_str_z(a->name)), a->n_values,
                            a->n_mats, b->n_values, b->n_mats);
    GG_TRY(own_values(im, a, GG_MAX(a->n_mats, b->n_mats), scale, err));
    return add_values(a, b, a->n_mats && !b->counts ? (float)scale : 1, err);
}

/* Are all counts valid, and is one of them above 0? */
static bool is_counted(const float *counts, uint64_t n)
{
    bool some = false;
    for (uint64_t k = 0; k < n; k++) {
        if (!(counts[k] >= 0 && counts[k] <= FLT_MAX))
            return false;
        some |= counts[k] > 0;
    }
    return some;
}

enum gguf_status gguf_imatrix_add(struct gguf_imatrix *im, const char *name,
                                  uint64_t n_cols, uint64_t n_mats,
                                  const float *sums, const float *counts,
                                  struct gguf_error *err)
{
    struct gg_imatrix_entry b = { .name = name,
                                  .n_cols = n_cols,
                                  .n_mats = n_mats };
    struct gg_str_esc esc;
    size_t size;
    if (!n_cols || !n_mats || !*name ||
        gg_ckd_mul(&b.n_values, n_cols, n_mats) ||
        gg_ckd_array(&size, b.n_values, 8) || n_mats > UINT32_MAX)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "importance data: the name is empty or a size "
                            "is 0");
    if (!is_counted(counts, n_mats))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "importance data of '%s': counts must be "
                            "numbers from 0 up, and one must be above 0",
                            gg_str_esc(&esc, gg_str_z(name)));
    size = (size_t)(4 * (b.n_values + n_mats));
    uint8_t *p = gg_mem_alloc(im->allocator, size);
    if (!p)
        return gg_error_set_nomem(err, size);
    for (uint64_t k = 0; k < b.n_values; k++)
        gg_bytes_store32le(p + 4 * k, gg_bytes_f32_bits(sums[k]));
    for (uint64_t k = 0; k < n_mats; k++)
        gg_bytes_store32le(p + 4 * (b.n_values + k),
                           gg_bytes_f32_bits(counts[k]));
    b.sums = p;
    b.counts = p + 4 * b.n_values;
    enum gguf_status st = add_entry(im, &b, GG_MAX(im->chunk_size, 1), err);
    gg_imatrix_sort(im);
    gg_mem_free(im->allocator, p);
    return st;
}

enum gguf_status gguf_imatrix_add_chunks(struct gguf_imatrix *im,
                                         const char *dataset,
                                         uint64_t n_chunks, uint64_t size,
                                         struct gguf_error *err)
{
    if (dataset)
        GG_TRY(gg_imatrix_add_dataset(im, gg_str_z(dataset), err));
    if (gg_ckd_add(&im->n_chunks, im->n_chunks, n_chunks))
        im->n_chunks = UINT32_MAX;
    if (size)
        im->chunk_size = size;
    return GGUF_OK;
}

/* Combine the precisions of im and other. */
static enum gguf_status merge_precision(struct gguf_imatrix *im,
                                        const struct gguf_imatrix *other,
                                        struct gguf_error *err)
{
    const char *a = im->precision, *b = other->precision;
    if (!other->n_entries)
        return GGUF_OK;
    if (!im->n_entries)
        a = b;
    else if (a && b && strcmp(a, b) != 0)
        a = "mixed";
    else
        a = b ? a : NULL;
    return gguf_imatrix_set_precision(im, a, err);
}

enum gguf_status gguf_imatrix_merge(struct gguf_imatrix *im,
                                    const struct gguf_imatrix *other,
                                    struct gguf_error *err)
{
    GG_TRY(merge_precision(im, other, err));
    uint64_t scale = other->chunk_size ? other->chunk_size : im->chunk_size;
    scale = scale ? scale : 1;
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; i < other->n_entries && st == GGUF_OK; i++)
        st = add_entry(im, other->entries[i], scale, err);
    gg_imatrix_sort(im);
    if (st != GGUF_OK)
        return st;
    GG_TRY(gg_imatrix_check_file(other, err));
    for (size_t i = 0; i < other->n_datasets; i++)
        GG_TRY(gg_imatrix_add_dataset(im, gg_str_z(other->datasets[i]), err));
    GG_TRY(gg_imatrix_merge_sensitivities(im, other, err));
    return gguf_imatrix_add_chunks(im, NULL, other->n_chunks,
                                   other->chunk_size, err);
}

void gguf_imatrix_filter(struct gguf_imatrix *im, const char *const *texts,
                         size_t n, bool keep)
{
    size_t n_left = 0;
    for (size_t i = 0; i < im->n_entries; i++) {
        bool found = false;
        for (size_t k = 0; k < n && !found; k++)
            found = strstr(im->entries[i]->name, texts[k]) != NULL;
        if (found == keep)
            im->entries[n_left++] = im->entries[i];
        else
            entry_fini(im, im->entries[i]);
    }
    im->n_entries = im->n_sorted = n_left;
    gg_imatrix_filter_sensitivities(im, texts, n, keep);
}
