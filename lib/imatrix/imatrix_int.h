/* SPDX-License-Identifier: MIT */
/* imatrix_int.h - internals of importance data, in memory or in a mapped
 * file */
#ifndef GG_IMATRIX_IMATRIX_INT_H
#define GG_IMATRIX_IMATRIX_INT_H

#include "base/index.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "gguf/file.h"
#include "gguf/imatrix.h"
#include "gguf/meta.h"

#include <stdbool.h>

struct gg_imatrix_entry {
    const char *name;
    uint64_t n_values, n_cols; /* number of sums; sums for each count */
    uint64_t n_mats;           /* number of counts; 0: the older form */
    uint32_t n_calls;          /* count of the older form, never 0 */
    const uint8_t *sums;       /* floats: little-endian, unaligned */
    const uint8_t *counts;     /* n_mats floats; NULL: the older form */
    bool owned;                /* sums and counts are one allocated block */
};

/* Sensitivity of a tensor, and the tokens that it was measured on. */
struct gg_imatrix_sens {
    const char *name;
    double value, input, n_tokens;
};

struct gguf_imatrix {
    const struct gguf_allocator *allocator;
    struct gg_mem_arena arena; /* memory of entries, names and datasets */
    struct gg_imatrix_entry **entries;
    size_t n_entries, cap_entries;
    size_t n_sorted; /* number of leading entries that are sorted by name */
    const char **datasets;
    size_t n_datasets, cap_datasets;
    struct gg_index dataset_index;
    struct gg_imatrix_sens *sens; /* sensitivities, sorted by name */
    size_t n_sens, cap_sens;
    uint64_t n_chunks, chunk_size;
    const char *precision;  /* NULL: unknown */
    struct gguf_file *file; /* file with the data of entries; NULL: none */
    struct gg_mapfile map;  /* mapped file of the older form */
};

/* Check that the file behind the entries is unchanged (mapfile.h).
 * GGUF_E_MISMATCH, GGUF_E_IO. */
enum gguf_status gg_imatrix_check_file(const struct gguf_imatrix *im,
                                       struct gguf_error *err);

/* Find an entry; NULL if it does not exist. Its address is valid as long as
 * im. */
const struct gg_imatrix_entry *
gg_imatrix_find_str(const struct gguf_imatrix *im, struct gguf_str name);
const struct gg_imatrix_entry *gg_imatrix_find(const struct gguf_imatrix *im,
                                               const char *name);

/* Append an empty entry with a new name. It is found only after
 * gg_imatrix_sort. GGUF_E_NOMEM. */
enum gguf_status gg_imatrix_append(struct gguf_imatrix *im,
                                   struct gguf_str name,
                                   struct gg_imatrix_entry **out,
                                   struct gguf_error *err);
/* Sort appended entries into their places: n steps for one entry, n log n for
 * several. */
void gg_imatrix_sort(struct gguf_imatrix *im);

/* Record a text unless it is recorded already. GGUF_E_NOMEM. */
enum gguf_status gg_imatrix_add_dataset(struct gguf_imatrix *im,
                                        struct gguf_str name,
                                        struct gguf_error *err);

/* Record the precision of the evaluation; empty: unknown. GGUF_E_NOMEM. */
enum gguf_status gg_imatrix_set_precision(struct gguf_imatrix *im,
                                          struct gguf_str name,
                                          struct gguf_error *err);

/* Name of a text without its folders, in Unix or Windows form. */
const char *gg_imatrix_base_name(const char *text);

/* Store a sum or a count. An overflow becomes the largest finite number, which
 * encoders reject; NaN stays. */
void gg_imatrix_store_float(uint8_t *p, float v);

/* Compute weights for values first to first + n - 1 of an entry: sum / count,
 * or 1 for a matrix without input. Values that are NaN, negative or above 2^64
 * (where encoders' sums overflow) become the mean of the others among these n.
 * If all are zero, all become 1. Returns the number of replaced values. */
uint64_t gg_imatrix_weights(const struct gg_imatrix_entry *e, uint64_t first,
                            size_t n, float *dst);

/* ---- imatrix_sensitivity.c ---- */

/* Add a sensitivity, whose numbers are valid: the mean over the tokens of all
 * that are added. The name of s is copied. GGUF_E_NOMEM. */
enum gguf_status gg_imatrix_add_sensitivity(struct gguf_imatrix *im,
                                            const struct gg_imatrix_sens *s,
                                            struct gguf_error *err);
/* Add all sensitivities of b. GGUF_E_NOMEM. */
enum gguf_status gg_imatrix_merge_sensitivities(struct gguf_imatrix *im,
                                                const struct gguf_imatrix *b,
                                                struct gguf_error *err);
/* Read the sensitivities of a file. Entries that are not valid are left out.
 * GGUF_E_NOMEM. */
enum gguf_status gg_imatrix_read_sensitivities(struct gguf_imatrix *im,
                                               const struct gguf_file *f,
                                               struct gguf_error *err);
/* Set the keys of a file, if there are sensitivities. GGUF_E_NOMEM. */
enum gguf_status gg_imatrix_set_sensitivities(const struct gguf_imatrix *im,
                                              struct gguf_meta *m,
                                              struct gguf_error *err);
/* Keep (keep) or drop the sensitivities whose names contain one of n texts. */
void gg_imatrix_filter_sensitivities(struct gguf_imatrix *im,
                                     const char *const *texts, size_t n,
                                     bool keep);

#endif
