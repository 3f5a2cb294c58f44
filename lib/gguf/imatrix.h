/* SPDX-License-Identifier: MIT */
/* imatrix.h - importance data: which columns of a weight matrix matter
 *
 * For a weight matrix, the mean square of each column's input over some text.
 * Encoders weigh errors with it. There are two file forms: GGUF (general.type
 * "imatrix": tensors NAME.in_sum2 [n_cols, n_mats] and NAME.counts [1, n_mats])
 * and an older one without magic (.dat), which has one count per tensor. Both
 * are read and written. Source: llama.cpp (commit d32676d), tools/imatrix.
 *
 * An object is read by any number of threads as long as none changes it.
 */
#ifndef GGUF_IMATRIX_H
#define GGUF_IMATRIX_H

#include <gguf/file.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_imatrix;

/* No entries. allocator: NULL is malloc; kept. GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_create(struct gguf_imatrix **out,
                    const struct gguf_allocator *allocator,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* From a file of either form, or all shards of a set in the GGUF form: path
 * is any shard, the folder or the prefix. Files stay mapped: memory does not
 * grow with the data, except that data of big-endian files is copied.
 * Every number is checked once. A tensor without counted input (no count above
 * 0, or 0 calls in the older form) has no mean squares: it can be neither
 * loaded, added nor saved, in either form.
 *
 * params: NULL is the defaults; its limits are for the GGUF form, where names
 * may have 128 bytes even if they say less, but no more than 255.
 *
 * The statuses of gguf_file_open, and GGUF_E_MISMATCH (sums without counts,
 * counts without sums, or of another shape), GGUF_E_TYPE (not F32; a key of
 * another type), GGUF_E_NONFINITE, GGUF_E_FORMAT (a negative number; a tensor
 * without counted input), GGUF_E_DUPLICATE (a tensor that is there twice),
 * GGUF_E_NOTFOUND (a GGUF file that is not an imatrix, or has no entries).
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_load(struct gguf_imatrix **out, const char *path,
                  const struct gguf_file_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_imatrix_destroy(struct gguf_imatrix *im);

/* One tensor's data. Everything belongs to the object. */
struct gguf_imatrix_entry {
    size_t struct_size; /* the caller's: as much is filled in */
    const char *name;   /* of the weight tensor; NUL-terminated */
    uint64_t n_values;  /* sums: the columns of all matrices, one matrix after
                         * another */
    uint64_t n_mats;    /* counts; 0: the older form, which does not know */
    uint64_t n_calls;   /* of the older form, not 0; else 0 */
};
#define GGUF_IMATRIX_ENTRY_INIT GGUF_INIT(struct gguf_imatrix_entry)

/* By ascending name. GGUF_E_INVALID (i, out). Since: 0.1 */
GGUF_API size_t gguf_imatrix_n_entries(const struct gguf_imatrix *im);
GGUF_API enum gguf_status
gguf_imatrix_entry(const struct gguf_imatrix *im, size_t i,
                   struct gguf_imatrix_entry *out,
                   struct gguf_error *err) GGUF_MUST_CHECK;
/* The entry of this name: 1 and its number in *i; 0 if there is none.
 * Since: 0.1 */
GGUF_API int gguf_imatrix_find(const struct gguf_imatrix *im,
                               struct gguf_str name, size_t *i);

/* The entry that holds for a matrix of this name with n_values importances, one
 * for each column of each of its matrices: its own, or where it has none, that
 * of one of its layer that multiplies the same vectors, such as attn_k.weight
 * for attn_q.weight, or ffn_gate_exps.weight for ffn_up_exps.weight. 1 and its
 * number in *i; 0 if there is none, or its own has another number of values.
 * Since: 0.1 */
GGUF_API int gguf_imatrix_find_for_matrix(const struct gguf_imatrix *im,
                                          struct gguf_str name,
                                          uint64_t n_values, size_t *i);

/* Sums of squares first .. first+n-1 of entry i, and its counts: how many rows
 * of input each matrix saw. GGUF_E_INVALID (out of range). Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_sums(const struct gguf_imatrix *im, size_t i, uint64_t first,
                  size_t n, float *dst,
                  struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_imatrix_counts(const struct gguf_imatrix *im, size_t i, uint64_t first,
                    size_t n, float *dst,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Names of the texts that were read, in order. NULL after the last.
 * Since: 0.1 */
GGUF_API const char *gguf_imatrix_dataset(const struct gguf_imatrix *im,
                                          size_t i);
/* Pieces of text, and tokens in each; 0: unknown. Since: 0.1 */
GGUF_API uint64_t gguf_imatrix_n_chunks(const struct gguf_imatrix *im);
GGUF_API uint64_t gguf_imatrix_chunk_size(const struct gguf_imatrix *im);

/* How products were computed when the model was evaluated, a name of
 * gguf_precision_name (gguf/session.h), or "mixed" where data of several were
 * merged. NULL: unknown, as files of others are, the older form, and what was
 * merged with them. In files it is the key libgguf.imatrix.precision, which
 * other programs pass over. Since: 0.1 */
GGUF_API const char *gguf_imatrix_precision(const struct gguf_imatrix *im);
/* name: NULL: unknown. GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_set_precision(struct gguf_imatrix *im, const char *name,
                           struct gguf_error *err) GGUF_MUST_CHECK;

/* Remove the folders from the texts' paths, as they tell about a machine, and
 * keep the file names. Since: 0.1 */
GGUF_API void gguf_imatrix_hide_paths(struct gguf_imatrix *im);

/* Figures about the mean squares v(j) = sum(j) / count of an entry, in double
 * precision: of its n values, with s their sum and mean = s / n,
 *
 *     stddev  = sqrt(sum over j of (v(j) - mean)^2 / n)
 *     entropy = -sum over j of v(j) / s log2(v(j) / s), 0 where v(j) = 0
 *
 * Values that are negative or not finite are counted in n_bad only; matrices
 * without input do not count. */
struct gguf_imatrix_stats {
    size_t struct_size; /* the caller's: as much is filled in */
    uint64_t n;         /* values */
    uint64_t n_empty;   /* matrices that saw no input */
    uint64_t n_bad;     /* values that are negative, NaN or infinite */
    double min_count, max_count; /* of the matrices; calls in the older form */
    double sum, min, max, mean;
    double stddev;  /* of the population */
    double active;  /* share of values above 0.00001 */
    double high;    /* share of values above mean + stddev */
    double entropy; /* in bits, of the values divided by their sum: log2(n) if
                       * all are the same */
};
#define GGUF_IMATRIX_STATS_INIT GGUF_INIT(struct gguf_imatrix_stats)

/* Figures of entry i. GGUF_E_INVALID (i, out). Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_stats(const struct gguf_imatrix *im, size_t i,
                   struct gguf_imatrix_stats *out,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Cosine of the angle between the mean squares of entries i and k; 0 if one of
 * them is zero throughout. GGUF_E_INVALID (out of range), GGUF_E_MISMATCH
 * (shapes). Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_cosine(const struct gguf_imatrix *im, size_t i, size_t k,
                    double *out, struct gguf_error *err) GGUF_MUST_CHECK;

/* Add data to an entry, which is made if there is none: sums[n_cols * n_mats]
 * and counts[n_mats], none below 0 and one above, because without counted
 * input there is no data. GGUF_E_MISMATCH (another shape than before),
 * GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_add(struct gguf_imatrix *im, const char *name, uint64_t n_cols,
                 uint64_t n_mats, const float *sums, const float *counts,
                 struct gguf_error *err) GGUF_MUST_CHECK;
/* Count chunks of size tokens from a text, and note its name if it is new;
 * dataset may be NULL. Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_add_chunks(struct gguf_imatrix *im, const char *dataset,
                        uint64_t n_chunks, uint64_t size,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Add everything of other. Calls of the older form stay calls until data with
 * counts are added to them: then a call counts as many tokens as a chunk of
 * either object has. After a failure, im may have a part of other.
 * GGUF_E_MISMATCH (another shape), GGUF_E_NONFINITE (no value of a tensor is a
 * number in both), GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_merge(struct gguf_imatrix *im, const struct gguf_imatrix *other,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Keep (keep not 0) or drop the entries whose names contain one of the n
 * texts. Since: 0.1 */
GGUF_API void gguf_imatrix_filter(struct gguf_imatrix *im,
                                  const char *const *texts, size_t n,
                                  int keep);

enum gguf_imatrix_form { GGUF_IMATRIX_GGUF, GGUF_IMATRIX_DAT };

/* Write a file, atomically. The older form keeps one count per tensor, so the
 * counts of single experts are lost; in the newer form, calls of the older
 * become chunks. force: replace an existing file. GGUF_E_LIMIT (more than the
 * form has numbers for), GGUF_E_EXIST, GGUF_E_IO, GGUF_E_NOSPACE,
 * GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_save(const struct gguf_imatrix *im, const char *path,
                  enum gguf_imatrix_form form, int force,
                  struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
