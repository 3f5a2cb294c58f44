/* SPDX-License-Identifier: MIT */
/* imatrix.h - importance data of the columns of weight matrices
 *
 * Importance data have, for each weight matrix, the mean square of each input
 * column over some text. Encoders weigh rounding errors with them (quant.h).
 * The object stores sums of squares and counts of input rows; a tensor with
 * several matrices (experts) has them for each.
 *
 * Life cycle, to use existing data:
 *
 *     gguf_imatrix_load(&im, "model.imatrix", NULL, &err);
 *     params.imatrix = im;                              (quant.h)
 *     ... create and run jobs, destroy them
 *     gguf_imatrix_destroy(im);
 *
 * To collect data, use gguf_collect_run() (collect.h), or fill an object of
 * gguf_imatrix_create() with gguf_imatrix_add() and gguf_imatrix_add_chunks().
 * gguf_imatrix_merge() adds up objects, gguf_imatrix_filter() drops entries,
 * and gguf_imatrix_save() writes a file.
 *
 * File forms, both read and written (source: llama.cpp, commit d32676d,
 * tools/imatrix):
 *
 *  - GGUF, with general.type "imatrix": tensors NAME.in_sum2 [n_cols, n_mats]
 *    and NAME.counts [1, n_mats];
 *  - the older form without magic (.dat), with one count per tensor, in calls
 *    instead of rows.
 *
 * Entries are numbered by ascending name; their numbers change when entries are
 * added or dropped.
 *
 * Threads: any number may read an object that no thread changes.
 */
#ifndef GGUF_IMATRIX_H
#define GGUF_IMATRIX_H

#include <gguf/file.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_imatrix;

/* Create an object without entries.
 *
 * out        Receives the object. NULL after a failure.
 * allocator  Memory for the object; kept. NULL: malloc.
 *
 * Free *out with gguf_imatrix_destroy().
 *
 * GGUF_E_NOMEM  Memory for the object cannot be allocated.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_create(struct gguf_imatrix **out,
                    const struct gguf_allocator *allocator,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Load a file of either form, or all shards of a set in the GGUF form.
 *
 * out      Receives the object. NULL after a failure.
 * path     Path of a file, of any shard of a set, of a folder that holds one
 *          set, or the prefix of a set.
 * params   How to open the file. NULL: the defaults. Its limits apply to the
 *          GGUF form, where names of up to 128 bytes are accepted even under a
 *          lower limit, but never more than 255.
 *
 * Every number is checked. Files stay mapped until the object is destroyed, so
 * that memory does not grow with the data; data of big-endian files are copied.
 * Free *out with gguf_imatrix_destroy().
 *
 * GGUF_E_MISMATCH   Sums without counts, counts without sums, or counts of
 *                   another shape.
 * GGUF_E_TYPE       Sums or counts are not F32; a key has the wrong type.
 * GGUF_E_NONFINITE  A count is NaN or infinite, or all sums of a tensor are.
 * GGUF_E_FORMAT     A number is negative; a tensor has no count above 0 (or 0
 *                   calls), so that it has no mean squares.
 * GGUF_E_DUPLICATE  A tensor occurs twice.
 * GGUF_E_NOTFOUND   A GGUF file that is not importance data, or has no entries.
 * Other             The statuses of gguf_file_open().
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_load(struct gguf_imatrix **out, const char *path,
                  const struct gguf_file_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Free an object and unmap its files. NULL is ignored. Since: 0.1 */
GGUF_API void gguf_imatrix_destroy(struct gguf_imatrix *im);

/* ---------------------------------------------------------- reading it --- */

/* Data of one weight tensor. Pointers belong to the object, and are valid until
 * it changes. */
struct gguf_imatrix_entry {
    size_t struct_size; /* set by GGUF_IMATRIX_ENTRY_INIT; members
                         * beyond this size are not filled */
    const char *name;   /* name of the weight tensor */
    uint64_t n_values;  /* number of sums: one per column of each matrix, one
                         * matrix after another */
    uint64_t n_mats;    /* number of counts, one per matrix; 0: the older form,
                         * which has no counts */
    uint64_t n_calls;   /* calls, in the older form; 0: the GGUF form */
};
#define GGUF_IMATRIX_ENTRY_INIT GGUF_INIT(struct gguf_imatrix_entry)

/* Number of entries. Since: 0.1 */
GGUF_API size_t gguf_imatrix_n_entries(const struct gguf_imatrix *im);

/* Describe entry i in *out.
 *
 * GGUF_E_INVALID  i is out of range; out is NULL or its struct_size is 0.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_entry(const struct gguf_imatrix *im, size_t i,
                   struct gguf_imatrix_entry *out,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Find the entry with a name. Returns true and stores its number in *i, or
 * returns false. Since: 0.1 */
GGUF_API bool gguf_imatrix_find(const struct gguf_imatrix *im,
                                struct gguf_str name, size_t *i);

/* Find the data that apply to a weight tensor.
 *
 * im         The object.
 * name       Name of the weight tensor.
 * n_values   Columns of all its matrices together.
 * i          Receives the number of the entry.
 *
 * Returns true if the tensor has an entry of this size. If it has no entry,
 * returns true for one of a tensor in the same layer that multiplies the same
 * vectors: attn_k.weight for attn_q.weight, or ffn_gate_exps.weight for
 * ffn_up_exps.weight. Otherwise returns false. Since: 0.1 */
GGUF_API bool gguf_imatrix_find_for_matrix(const struct gguf_imatrix *im,
                                           struct gguf_str name,
                                           uint64_t n_values, size_t *i);

/* Copy sums of squares of entry i: those numbered first to first + n - 1, to
 * dst[n]. For programs that compute other statistics of the data.
 *
 * GGUF_E_INVALID  i, first or n is out of range.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_sums(const struct gguf_imatrix *im, size_t i, uint64_t first,
                  size_t n, float *dst,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Copy counts of entry i: the numbers of input rows that matrices first to
 * first + n - 1 received, to dst[n]. In the older form there is one count for
 * all matrices, the number of calls.
 *
 * GGUF_E_INVALID  i, first or n is out of range.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_counts(const struct gguf_imatrix *im, size_t i, uint64_t first,
                    size_t n, float *dst,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Name of text i that the data were collected from, in order; NULL after the
 * last. Valid until the object changes. Since: 0.1 */
GGUF_API const char *gguf_imatrix_dataset(const struct gguf_imatrix *im,
                                          size_t i);

/* Number of chunks of text that were evaluated; 0: unknown. Since: 0.1 */
GGUF_API uint64_t gguf_imatrix_n_chunks(const struct gguf_imatrix *im);

/* Tokens of a chunk; 0: unknown. Since: 0.1 */
GGUF_API uint64_t gguf_imatrix_chunk_size(const struct gguf_imatrix *im);

/* Precision of the products with which the model was evaluated: a name of
 * gguf_precision_name() (session.h), or "mixed" after a merge of data with
 * different ones. NULL: unknown, as in files of other programs and in the older
 * form. Stored in the key libgguf.imatrix.precision, which other programs
 * ignore. Valid until the object changes. Since: 0.1 */
GGUF_API const char *gguf_imatrix_precision(const struct gguf_imatrix *im);

/* Statistics of the mean squares v(j) = sum(j) / count of one entry, in double
 * precision. With n values, their sum s, and mean = s / n:
 *
 *     stddev  = sqrt(sum over j of (v(j) - mean)^2 / n)
 *     entropy = -sum over j of v(j) / s log2(v(j) / s)   (0 where v(j) = 0)
 *
 * Values that are negative, NaN or infinite count in n_bad alone. Matrices
 * without input count in n_empty alone. */
struct gguf_imatrix_stats {
    size_t struct_size; /* set by GGUF_IMATRIX_STATS_INIT; members
                         * beyond this size are not filled */
    uint64_t n;         /* number of values */
    uint64_t n_empty;   /* number of matrices without input */
    uint64_t n_bad;   /* number of values that are negative, NaN or infinite */
    double min_count; /* smallest count of a matrix; calls in the older form */
    double max_count; /* largest count of a matrix; calls in the older form */
    double sum;       /* sum of the values */
    double min;       /* smallest value */
    double max;       /* largest value */
    double mean;      /* mean of the values */
    double stddev;    /* standard deviation of the population */
    double active;    /* share of values above 0.00001 */
    double high;      /* share of values above mean + stddev */
    double entropy;   /* entropy of the normalized values, in bits; log2(n) if
                       * all are equal */
};
#define GGUF_IMATRIX_STATS_INIT GGUF_INIT(struct gguf_imatrix_stats)

/* Compute the statistics of entry i.
 *
 * GGUF_E_INVALID  i is out of range; out is NULL or its struct_size is 0.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_stats(const struct gguf_imatrix *im, size_t i,
                   struct gguf_imatrix_stats *out,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Compute the cosine similarity of the mean squares of entries i and k. *out is
 * 0 if one of them is zero throughout.
 *
 * GGUF_E_INVALID   i or k is out of range.
 * GGUF_E_MISMATCH  The entries have different shapes.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_cosine(const struct gguf_imatrix *im, size_t i, size_t k,
                    double *out, struct gguf_error *err) GGUF_MUST_CHECK;

/* --------------------------------------------------------- changing it --- */

/* Add sums and counts to an entry, which is created if it does not exist.
 *
 * im       The object.
 * name     Name of the weight tensor; copied.
 * n_cols   Columns of a matrix.
 * n_mats   Number of matrices: 1, or the number of experts.
 * sums     Sums of squares, n_cols * n_mats of them, one matrix after another.
 * counts   Number of input rows of each of the n_mats matrices: finite, not
 *          negative, and one of them above 0.
 *
 * GGUF_E_MISMATCH   The entry exists with another shape.
 * GGUF_E_NONFINITE  No value of the tensor is a number in both.
 * GGUF_E_INVALID    The name is empty, a size is 0, or counts are not as above.
 * GGUF_E_NOMEM      Memory for the entry cannot be allocated.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_add(struct gguf_imatrix *im, const char *name, uint64_t n_cols,
                 uint64_t n_mats, const float *sums, const float *counts,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Record the text that data were collected from.
 *
 * im         The object.
 * dataset    Name of the text; copied; recorded once. NULL: none.
 * n_chunks   Chunks to add to gguf_imatrix_n_chunks().
 * size       Tokens of a chunk. 0: gguf_imatrix_chunk_size() stays.
 *
 * GGUF_E_NOMEM  Memory for the name cannot be allocated.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_add_chunks(struct gguf_imatrix *im, const char *dataset,
                        uint64_t n_chunks, uint64_t size,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Record the precision of the products, for programs that collect data with an
 * evaluation of their own.
 *
 * name   A name of gguf_precision_name() (session.h); copied. NULL: unknown.
 *
 * GGUF_E_NOMEM  Memory for the name cannot be allocated.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_set_precision(struct gguf_imatrix *im, const char *name,
                           struct gguf_error *err) GGUF_MUST_CHECK;

/* Reduce the recorded paths of texts to file names, since folder names say
 * something about the machine. Since: 0.1 */
GGUF_API void gguf_imatrix_hide_paths(struct gguf_imatrix *im);

/* Add all data of other to im.
 *
 * Calls of the older form stay calls until data with counts are added to them.
 * Then each call counts as one chunk of tokens, by the chunk size of other or,
 * without one, of im. After a failure, im may have a part of the data.
 *
 * GGUF_E_MISMATCH   An entry of other has another shape in im; or the file of
 *                   other has changed since it was loaded.
 * GGUF_E_NONFINITE  No value of a tensor is a number in both.
 * GGUF_E_NOMEM      Memory for an entry cannot be allocated.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_merge(struct gguf_imatrix *im, const struct gguf_imatrix *other,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Keep or drop entries by name.
 *
 * im      The object.
 * texts   Parts of names; an entry matches if its name contains one of them.
 * n       Number of texts.
 * keep    true: keep the matching entries. false: drop them.
 *
 * Since: 0.1 */
GGUF_API void gguf_imatrix_filter(struct gguf_imatrix *im,
                                  const char *const *texts, size_t n,
                                  bool keep);

enum gguf_imatrix_form {
    GGUF_IMATRIX_GGUF, /* a GGUF file */
    GGUF_IMATRIX_DAT   /* the older form */
};

/* Save the data as a file.
 *
 * im      The object.
 * path    Path of the file. It gets its name when it is complete; a failure
 *         leaves an existing file as it was.
 * form    Form of the file. The older one has one count per tensor: the counts
 *         of single experts are lost. In the GGUF form, calls become chunks.
 * force   Replace an existing file.
 *
 * GGUF_E_EXIST    path exists and force is not set.
 * GGUF_E_LIMIT    A number is too large for the form; a name is too long.
 * GGUF_E_MISMATCH The file that the data were loaded from has changed.
 * GGUF_E_IO       The file cannot be written.
 * GGUF_E_NOSPACE  The disk is full.
 * GGUF_E_NOMEM    A buffer cannot be allocated.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_save(const struct gguf_imatrix *im, const char *path,
                  enum gguf_imatrix_form form, bool force,
                  struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
