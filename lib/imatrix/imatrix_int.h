/* SPDX-License-Identifier: MIT */
/* imatrix_int.h - importance data as they lie in memory or in a mapped file */
#ifndef GG_IMATRIX_IMATRIX_INT_H
#define GG_IMATRIX_IMATRIX_INT_H

#include "base/index.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "gguf/file.h"
#include "gguf/imatrix.h"

#include <stdbool.h>

struct gg_imatrix_entry {
    const char *name;
    uint64_t n_values, n_cols; /* n_cols: values for each count */
    uint64_t n_mats;           /* counts; 0: older form */
    uint32_t n_calls;          /* the count of the older form, not 0 */
    const uint8_t *sums;       /* floats, little-endian, unaligned */
    const uint8_t *counts;     /* n_mats; NULL: older form */
    bool owned;                /* sums and counts are one block of ours */
};

struct gguf_imatrix {
    const struct gguf_allocator *allocator;
    struct gg_mem_arena arena; /* entries, names, datasets */
    struct gg_imatrix_entry **entries;
    size_t n_entries, cap_entries;
    size_t n_sorted; /* the first of them, which are by name */
    const char **datasets;
    size_t n_datasets, cap_datasets;
    struct gg_index dataset_index;
    uint64_t n_chunks, chunk_size;
    const char *precision;  /* NULL: unknown */
    struct gguf_file *file; /* what entries point into, or NULL */
    struct gg_mapfile map;  /* likewise */
};

/* Is the file that the entries point into as it was (mapfile.h)?
 * GGUF_E_MISMATCH, GGUF_E_IO. */
enum gguf_status gg_imatrix_check_file(const struct gguf_imatrix *im,
                                       struct gguf_error *err);

/* NULL: no such entry. An entry stays where it is as long as im does. */
const struct gg_imatrix_entry *
gg_imatrix_find_str(const struct gguf_imatrix *im, struct gguf_str name);
const struct gg_imatrix_entry *gg_imatrix_find(const struct gguf_imatrix *im,
                                               const char *name);

/* Append a cleared entry of this name, which must be new; it is found only
 * after gg_imatrix_sort. GGUF_E_NOMEM. */
enum gguf_status gg_imatrix_append(struct gguf_imatrix *im,
                                   struct gguf_str name,
                                   struct gg_imatrix_entry **out,
                                   struct gguf_error *err);
/* Put what was appended in its place: one entry takes as many steps as there
 * are others, any number n log n. */
void gg_imatrix_sort(struct gguf_imatrix *im);

/* Note a text, unless it is there. GGUF_E_NOMEM. */
enum gguf_status gg_imatrix_add_dataset(struct gguf_imatrix *im,
                                        struct gguf_str name,
                                        struct gguf_error *err);

/* Note how the model was evaluated; empty: unknown. GGUF_E_NOMEM. */
enum gguf_status gg_imatrix_set_precision(struct gguf_imatrix *im,
                                          struct gguf_str name,
                                          struct gguf_error *err);

/* The name of a text without the folders before it, of either system. */
const char *gg_imatrix_base_name(const char *text);

/* Store a sum or a count: an overflow becomes the largest finite number, which
 * is too large to be used. NaN stays. */
void gg_imatrix_store_float(uint8_t *p, float v);

/* Weights for values first .. first+n of an entry: sum / count, or 1 for a
 * matrix that saw no input. Values that are not a number, negative, or above
 * 2^64 (with which encoders' sums overflow) become the mean of the others of
 * these n; if only zeros are left, all become 1. Returns how many had to be
 * replaced. */
uint64_t gg_imatrix_weights(const struct gg_imatrix_entry *e, uint64_t first,
                            size_t n, float *dst);

#endif
