/* imatrix.h - importance data as they lie in memory or in a mapped file */
#ifndef GG_QUANT_IMATRIX_H
#define GG_QUANT_IMATRIX_H

#include "base/mapfile.h"
#include "base/mem.h"
#include "gguf/file.h"
#include "gguf/imatrix.h"

#include <stdbool.h>

struct gg_imatrix_entry {
    const char *name;
    uint64_t n_values, n_cols; /* n_cols: values for each count */
    uint64_t n_mats;           /* counts; 0: older form */
    uint32_t n_calls;          /* the count of the older form */
    const uint8_t *sums;       /* floats, little-endian, unaligned */
    const uint8_t *counts;     /* n_mats; NULL: older form */
    bool owned;                /* sums and counts are one block of ours */
};

struct gguf_imatrix {
    const struct gguf_allocator *allocator;
    struct gg_arena arena;    /* names, datasets */
    struct gg_imatrix_entry *entries; /* by name */
    size_t n_entries, cap_entries;
    const char **datasets;
    size_t n_datasets, cap_datasets;
    uint64_t n_chunks, chunk_size;
    struct gguf_file *file;   /* what entries point into, or NULL */
    struct gg_mapfile map;    /* likewise */
};

/* NULL: no such entry. */
const struct gg_imatrix_entry *
gg_imatrix_find_str(const struct gguf_imatrix *im, struct gguf_str name);
const struct gg_imatrix_entry *gg_imatrix_find(const struct gguf_imatrix *im,
                                               const char *name);

/* A cleared entry of this name in its place, or the one that is there
 * (*found). GGUF_E_NOMEM. The pointer is good until the next call. */
enum gguf_status gg_imatrix_insert(struct gguf_imatrix *im,
                                   struct gguf_str name,
                                   struct gg_imatrix_entry **out, bool *found,
                                   struct gguf_error *err);

enum gguf_status gg_imatrix_add_dataset(struct gguf_imatrix *im,
                                        struct gguf_str name,
                                        struct gguf_error *err);

/* The name of a text without the folders before it, of either system. */
const char *gg_imatrix_base_name(const char *text);

/* Store a sum or a count: what overflowed becomes the largest number there is,
 * too large to be used, but still one. NaN stays. */
void gg_imatrix_store(uint8_t *p, float v);

/* Weights for values first .. first+n of an entry: sum / count, or 1 where the
 * count is 0. What is no number, negative or above 2^64 (of which encoders'
 * sums overflow) becomes the mean of the others of these n; where nothing is
 * left but zeros, all become 1. Returns how many had to be replaced. */
uint64_t gg_imatrix_weights(const struct gg_imatrix_entry *e, uint64_t first,
                            size_t n, float *dst);

#endif
