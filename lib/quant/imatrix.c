/* imatrix.c - importance data: entries, sums, what encoders get */
#include "config.h"
#include "quant/imatrix.h"
#include "base/bytes.h"
#include "base/str.h"

#include <float.h>
#include <string.h>

enum gguf_status gguf_imatrix_create(struct gguf_imatrix **out,
                                     const struct gguf_allocator *allocator,
                                     struct gguf_error *err)
{
    struct gguf_imatrix *im = gg_alloc_zero(allocator, 1, sizeof *im);
    *out = im;
    if (!im)
        return gg_fail_nomem(err, sizeof *im);
    im->allocator = allocator;
    im->map.fd = -1;
    gg_arena_init(&im->arena, allocator);
    return GGUF_OK;
}

static void entry_fini(struct gguf_imatrix *im, struct gg_imatrix_entry *e)
{
    if (e->owned)
        gg_free(im->allocator, (void *)e->sums);
}

void gguf_imatrix_destroy(struct gguf_imatrix *im)
{
    if (!im)
        return;
    for (size_t i = 0; i < im->n_entries; i++)
        entry_fini(im, &im->entries[i]);
    gg_free(im->allocator, im->entries);
    gg_free(im->allocator, im->datasets);
    gg_arena_fini(&im->arena);
    gguf_file_close(im->file);
    gg_mapfile_close(&im->map);
    gg_free(im->allocator, im);
}

/* ------------------------------------------------------------- entries --- */

static int compare(struct gguf_str a, const char *b)
{
    size_t n = strlen(b);
    int c = memcmp(a.data, b, GG_MIN(a.size, n));
    return c ? c : (a.size > n) - (a.size < n);
}

/* Where an entry of this name is or would be. */
static size_t place(const struct gguf_imatrix *im, struct gguf_str name,
                    bool *found)
{
    size_t low = 0, high = im->n_entries;
    *found = false;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = compare(name, im->entries[mid].name);
        if (!c)
            *found = true;
        if (c <= 0)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

const struct gg_imatrix_entry *
gg_imatrix_find_str(const struct gguf_imatrix *im, struct gguf_str name)
{
    bool found;
    size_t i = place(im, name, &found);
    return found ? &im->entries[i] : NULL;
}

const struct gg_imatrix_entry *gg_imatrix_find(const struct gguf_imatrix *im,
                                               const char *name)
{
    return gg_imatrix_find_str(im, gg_strz(name));
}

enum gguf_status gg_imatrix_insert(struct gguf_imatrix *im,
                                   struct gguf_str name,
                                   struct gg_imatrix_entry **out, bool *found,
                                   struct gguf_error *err)
{
    size_t i = place(im, name, found);
    if (*found) {
        *out = &im->entries[i];
        return GGUF_OK;
    }
    if (im->n_entries == im->cap_entries) {
        void *grown = gg_grow(im->allocator, im->entries, &im->cap_entries,
                              sizeof *im->entries, 64, err);
        if (!grown)
            return GGUF_E_NOMEM;
        im->entries = grown;
    }
    const char *copy = gg_arena_strndup(&im->arena, name.data, name.size);
    if (!copy)
        return gg_fail_nomem(err, name.size + 1);
    struct gg_imatrix_entry *e = &im->entries[i];
    memmove(e + 1, e, (im->n_entries++ - i) * sizeof *e);
    *e = (struct gg_imatrix_entry){ .name = copy };
    *out = e;
    return GGUF_OK;
}

enum gguf_status gg_imatrix_add_dataset(struct gguf_imatrix *im,
                                        struct gguf_str name,
                                        struct gguf_error *err)
{
    for (size_t i = 0; i < im->n_datasets; i++)
        if (!compare(name, im->datasets[i]))
            return GGUF_OK;
    if (im->n_datasets == im->cap_datasets) {
        void *grown = gg_grow(im->allocator, im->datasets, &im->cap_datasets,
                              sizeof *im->datasets, 4, err);
        if (!grown)
            return GGUF_E_NOMEM;
        im->datasets = grown;
    }
    const char *copy = gg_arena_strndup(&im->arena, name.data, name.size);
    if (!copy)
        return gg_fail_nomem(err, name.size + 1);
    im->datasets[im->n_datasets++] = copy;
    return GGUF_OK;
}

size_t gguf_imatrix_n_entries(const struct gguf_imatrix *im)
{
    return im->n_entries;
}

int gguf_imatrix_entry(const struct gguf_imatrix *im, size_t i,
                       struct gguf_imatrix_entry *out)
{
    if (i >= im->n_entries)
        return 0;
    const struct gg_imatrix_entry *e = &im->entries[i];
    *out = (struct gguf_imatrix_entry){ e->name, e->n_values, e->n_mats,
                                        e->n_calls };
    return 1;
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
    for (size_t i = 0; i < im->n_datasets; i++) {
        const char *name = gg_imatrix_base_name(im->datasets[i]);
        bool known = false;
        for (size_t k = 0; k < n; k++)
            known |= !strcmp(im->datasets[k], name);
        if (!known)
            im->datasets[n++] = name;
    }
    im->n_datasets = n;
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

static float load(const uint8_t *floats, uint64_t i)
{
    return gg_f32_from_bits(gg_load32le(floats + 4 * i));
}

void gg_imatrix_store(uint8_t *p, float v)
{
    gg_store32le(p, gg_f32_bits(v > FLT_MAX ? FLT_MAX : v));
}

static float count_of(const struct gg_imatrix_entry *e, uint64_t mat)
{
    return e->counts ? load(e->counts, mat) : (float)e->n_calls;
}

enum gguf_status gguf_imatrix_sums(const struct gguf_imatrix *im, size_t i,
                                   uint64_t first, size_t n, float *dst,
                                   struct gguf_error *err)
{
    if (i >= im->n_entries || first > im->entries[i].n_values ||
        n > im->entries[i].n_values - first)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "importance data: out of range");
    for (size_t k = 0; k < n; k++)
        dst[k] = load(im->entries[i].sums, first + k);
    return GGUF_OK;
}

enum gguf_status gguf_imatrix_counts(const struct gguf_imatrix *im, size_t i,
                                     uint64_t first, size_t n, float *dst,
                                     struct gguf_error *err)
{
    const struct gg_imatrix_entry *e =
        i < im->n_entries ? &im->entries[i] : NULL;
    if (!e || first > GG_MAX(e->n_mats, 1) ||
        n > GG_MAX(e->n_mats, 1) - first)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "importance data: out of range");
    for (size_t k = 0; k < n; k++)
        dst[k] = count_of(e, first + k);
    return GGUF_OK;
}

/* Can a value be used? Of larger ones the encoders' sums overflow. */
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
        float v = load(e->sums, first + k);
        /* as llama-quantize: an expert that saw nothing has weights of 1; the
         * older form without calls is taken as it is */
        if (count > 0)
            v /= count;
        else if (e->counts)
            v = 1;
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

/* Make the values ours, so that they can be changed, with n_mats counts; 0:
 * of the older form, and they stay so. Else older data become sums and equal
 * counts, in units of scale tokens a call. */
static enum gguf_status own(struct gguf_imatrix *im,
                            struct gg_imatrix_entry *e, uint64_t n_mats,
                            uint64_t scale, struct gguf_error *err)
{
    size_t size;
    bool old = !e->counts;
    if (e->owned && e->n_mats == n_mats)
        return GGUF_OK;
    if (gg_ckd_array(&size, e->n_values + n_mats, 4))
        return gg_fail(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                       "importance data are too large");
    uint8_t *p = gg_alloc(im->allocator, size);
    if (!p)
        return gg_fail_nomem(err, size);
    float factor = old && n_mats ? (float)scale : 1;
    for (uint64_t k = 0; k < e->n_values; k++)
        gg_imatrix_store(p + 4 * k, load(e->sums, k) * factor);
    for (uint64_t k = 0; k < n_mats; k++)
        gg_imatrix_store(p + 4 * (e->n_values + k), count_of(e, k) * factor);
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

/* Add the values of b to those of the entry a, which is ours. A value that is
 * NaN in one is so in the sum, and mended when it is used; some must be left
 * to mend it from. */
static enum gguf_status add_values(struct gg_imatrix_entry *a,
                                   const struct gg_imatrix_entry *b,
                                   float factor, struct gguf_error *err)
{
    bool some = false;
    struct gg_esc esc;
    uint8_t *sums = (uint8_t *)a->sums, *counts = (uint8_t *)a->counts;
    for (uint64_t k = 0; k < a->n_values; k++) {
        float v = load(sums, k) + load(b->sums, k) * factor;
        some |= v == v;
        gg_imatrix_store(sums + 4 * k, v);
    }
    for (uint64_t k = 0; k < a->n_mats; k++)
        gg_imatrix_store(counts + 4 * k,
                         load(counts, k) + count_of(b, k) * factor);
    if (!a->n_mats)
        a->n_calls += GG_MIN(b->n_calls, UINT32_MAX - a->n_calls);
    if (some)
        return GGUF_OK;
    return gg_fail(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                   "importance data of '%s': none of %" PRIu64
                   " values is a number in both",
                   gg_esc(&esc, gg_strz(a->name)), a->n_values);
}

/* Add entry b. Where one is of the older form, its calls are of scale tokens;
 * where both are they stay so, as the next file may tell how many. */
static enum gguf_status add_entry(struct gguf_imatrix *im,
                                  const struct gg_imatrix_entry *b,
                                  uint64_t scale, struct gguf_error *err)
{
    struct gg_imatrix_entry *a;
    struct gg_esc esc;
    bool found;
    struct gguf_str name = gg_strz(b->name);
    GG_TRY(gg_imatrix_insert(im, name, &a, &found, err));
    if (!found) {
        const char *kept = a->name;
        *a = *b;
        a->name = kept;
        a->owned = false;
        enum gguf_status st = own(im, a, b->n_mats, 1, err);
        if (st != GGUF_OK) { /* b's values are not for us to keep */
            size_t i = (size_t)(a - im->entries);
            memmove(a, a + 1, (--im->n_entries - i) * sizeof *a);
        }
        return st;
    }
    if (a->n_values != b->n_values ||
        (a->n_mats && b->n_mats && a->n_mats != b->n_mats))
        return gg_fail(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                       "importance data of '%s': %" PRIu64 " values of %" PRIu64
                       " matrices in one, %" PRIu64 " of %" PRIu64
                       " in the other",
                       gg_esc(&esc, name), a->n_values, a->n_mats,
                       b->n_values, b->n_mats);
    GG_TRY(own(im, a, GG_MAX(a->n_mats, b->n_mats), scale, err));
    return add_values(a, b, a->n_mats && !b->counts ? (float)scale : 1, err);
}

enum gguf_status gguf_imatrix_add(struct gguf_imatrix *im, const char *name,
                                  uint64_t n_cols, uint64_t n_mats,
                                  const float *sums, const float *counts,
                                  struct gguf_error *err)
{
    struct gg_imatrix_entry b = { .name = name, .n_cols = n_cols,
                                  .n_mats = n_mats };
    size_t size;
    if (!n_cols || !n_mats || !*name ||
        gg_ckd_mul(&b.n_values, n_cols, n_mats) ||
        gg_ckd_array(&size, b.n_values, 8) || n_mats > UINT32_MAX)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "importance data: a name and a size are wanted");
    size = (size_t)(4 * (b.n_values + n_mats));
    uint8_t *p = gg_alloc(im->allocator, size);
    if (!p)
        return gg_fail_nomem(err, size);
    for (uint64_t k = 0; k < b.n_values; k++)
        gg_store32le(p + 4 * k, gg_f32_bits(sums[k]));
    for (uint64_t k = 0; k < n_mats; k++)
        gg_store32le(p + 4 * (b.n_values + k), gg_f32_bits(counts[k]));
    b.sums = p;
    b.counts = p + 4 * b.n_values;
    enum gguf_status st =
        add_entry(im, &b, GG_MAX(im->chunk_size, 1), err);
    gg_free(im->allocator, p);
    return st;
}

enum gguf_status gguf_imatrix_add_chunks(struct gguf_imatrix *im,
                                         const char *dataset,
                                         uint64_t n_chunks, uint64_t size,
                                         struct gguf_error *err)
{
    if (dataset)
        GG_TRY(gg_imatrix_add_dataset(im, gg_strz(dataset), err));
    if (gg_ckd_add(&im->n_chunks, im->n_chunks, n_chunks))
        im->n_chunks = UINT32_MAX;
    if (size)
        im->chunk_size = size;
    return GGUF_OK;
}

enum gguf_status gguf_imatrix_merge(struct gguf_imatrix *im,
                                    const struct gguf_imatrix *other,
                                    struct gguf_error *err)
{
    uint64_t scale = other->chunk_size ? other->chunk_size : im->chunk_size;
    scale = scale ? scale : 1;
    for (size_t i = 0; i < other->n_entries; i++)
        GG_TRY(add_entry(im, &other->entries[i], scale, err));
    for (size_t i = 0; i < other->n_datasets; i++)
        GG_TRY(gg_imatrix_add_dataset(im, gg_strz(other->datasets[i]), err));
    return gguf_imatrix_add_chunks(im, NULL, other->n_chunks,
                                   other->chunk_size, err);
}

void gguf_imatrix_filter(struct gguf_imatrix *im, const char *const *texts,
                         size_t n, int keep)
{
    size_t n_left = 0;
    for (size_t i = 0; i < im->n_entries; i++) {
        bool found = false;
        for (size_t k = 0; k < n && !found; k++)
            found = strstr(im->entries[i].name, texts[k]) != NULL;
        if (found == (keep != 0))
            im->entries[n_left++] = im->entries[i];
        else
            entry_fini(im, &im->entries[i]);
    }
    im->n_entries = n_left;
}
