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
 *    sensitivities, if there are some, are in the keys
 *    libgguf.imatrix.sensitivity.names, .values and .tokens, which other
 *    programs ignore;
 *  - the older form without magic (.dat), with one number of calls per tensor
 *    and no counts of input rows. A call is one evaluation of the tensor's
 *    product, for one chunk of tokens.
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
 * allocator  Allocator of the object. It must outlive the object. NULL: malloc.
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
 *          set, or the prefix of a set (the path of its shards without
 *          "-00001-of-00002.gguf").
 * params   How to open the file. NULL: the defaults. Its limits apply to the
 *          GGUF form only. There a name of a tensor in the file may have
 *          limits.max_name_size bytes, or 128 if that is less than 128; but
 *          never more than 255.
 *
 * Every number is checked. A sum that is NaN or infinite is accepted, if
 * another sum of the tensor is a number; encoders replace it by the mean. Files
 * stay mapped until the object is destroyed, so that memory does not grow with
 * the data; data of big-endian files are copied.
 * Free *out with gguf_imatrix_destroy().
 *
 * GGUF_E_MISMATCH   Sums without counts, counts without sums, or counts of
 *                   another shape.
 * GGUF_E_TYPE       Sums or counts are not F32; a key has the wrong type.
 * GGUF_E_NONFINITE  A count is NaN or infinite, or every sum of a tensor is NaN
 *                   or infinite.
 * GGUF_E_FORMAT     The file is neither GGUF nor the older form. A number is
 *                   negative. All counts of a tensor are 0, or its number of
 *                   calls is 0: it has no mean squares.
 * GGUF_E_DUPLICATE  A tensor occurs twice.
 * GGUF_E_NOTFOUND   A GGUF file that is not importance data, or has no entries.
 * Other             The statuses of gguf_file_open().
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_load(struct gguf_imatrix **out, const char *path,
                  const struct gguf_file_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Free an object and unmap its files. NULL is ignored. Jobs that use it must be
 * destroyed before. Since: 0.1 */
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
                         * which has n_calls in their place */
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

/* Find the entry with a name. Returns true and stores its number in *i; or
 * returns false, and *i is undefined. Since: 0.1 */
GGUF_API bool gguf_imatrix_find(const struct gguf_imatrix *im,
                                struct gguf_str name, size_t *i);

/* Find the data that apply to a weight tensor.
 *
 * im         The object.
 * name       Name of the weight tensor.
 * n_values   Columns of all its matrices together.
 * i          Receives the number of the entry. Undefined if the result is
 *            false.
 *
 * If an entry has this name, returns true if it also has this size. If no entry
 * has this name, looks for the entry of another tensor of the same layer that
 * multiplies the same input vectors: for attn_q.weight that of attn_k.weight,
 * for ffn_up_exps.weight that of ffn_gate_exps.weight, for example. Returns
 * true if one of this size is found. Since: 0.1 */
GGUF_API bool gguf_imatrix_find_for_matrix(const struct gguf_imatrix *im,
                                           struct gguf_str name,
                                           uint64_t n_values, size_t *i);

/* Copy sums of squares of an entry, for programs that compute other statistics.
 *
 * im      The object.
 * i       Number of the entry.
 * first   Index of the first sum, from 0.
 * n       Number of sums.
 * dst     Receives the n sums.
 *
 * GGUF_E_INVALID  i, first or n is out of range.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_sums(const struct gguf_imatrix *im, size_t i, uint64_t first,
                  size_t n, float *dst,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Copy counts of an entry: for each matrix, the number of input rows that it
 * received.
 *
 * im      The object.
 * i       Number of the entry.
 * first   Number of the first matrix, from 0.
 * n       Number of matrices.
 * dst     Receives the n counts.
 *
 * An entry in the older form has one count for all matrices, its number of
 * calls: first is 0 and n is 1.
 *
 * GGUF_E_INVALID  i, first or n is out of range.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_counts(const struct gguf_imatrix *im, size_t i, uint64_t first,
                    size_t n, float *dst,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Name of the text that was recorded as number i, from 0, among the texts that
 * the data were collected from. NULL if i is past the last. Valid until the
 * object changes. Since: 0.1 */
GGUF_API const char *gguf_imatrix_dataset(const struct gguf_imatrix *im,
                                          size_t i);

/* Number of chunks of text that were evaluated; 0: unknown. Since: 0.1 */
GGUF_API uint64_t gguf_imatrix_n_chunks(const struct gguf_imatrix *im);

/* Tokens of a chunk; 0: unknown. Since: 0.1 */
GGUF_API uint64_t gguf_imatrix_chunk_size(const struct gguf_imatrix *im);

/* Precision of the matrix products in the evaluation that gave the data: a name
 * of gguf_precision_name() (session.h), or "mixed" after a merge of data with
 * different ones. NULL: unknown, as in files of other programs and in the older
 * form. Stored in the key libgguf.imatrix.precision, which other programs
 * ignore. Valid until the object changes. Since: 0.1 */
GGUF_API const char *gguf_imatrix_precision(const struct gguf_imatrix *im);

/* Statistics of the mean squares v(j) = sum(j) / count of one entry, in double
 * precision. With n values, their sum s, and mean = s / n:
 *
 *     stddev  = sqrt(sum over j of (v(j) - mean)^2 / n)
 *     entropy = -sum over j of p(j) log2(p(j)), p(j) = v(j) / s;
 *               0 where v(j) = 0
 *
 * A value that is negative, NaN or infinite is counted in n_bad and in no other
 * member. A matrix that received no input is counted in n_empty, and its values
 * are counted nowhere. If n is 0 all statistics are 0; if s is 0 the entropy is
 * 0. */
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

/* Compute the cosine similarity of the mean squares of entries i and k. A value
 * that is bad in one of them, or belongs to a matrix that received no input, is
 * left out. *out is 0 if all other values of one of them are 0.
 *
 * GGUF_E_INVALID   i or k is out of range.
 * GGUF_E_MISMATCH  The entries have different numbers of values or of columns.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_cosine(const struct gguf_imatrix *im, size_t i, size_t k,
                    double *out, struct gguf_error *err) GGUF_MUST_CHECK;

/* ------------------------------------------------------- sensitivities --- */

/* Sensitivity of a weight tensor: the effect of an error of its weights on the
 * model's predictions. With sensitivity c, an error E of the weights gives the
 * predicted divergence
 *
 *     D = 1/2 c  sum over matrices k, rows r and columns j of
 *                    a(k) v(k, j) E(k, r, j)^2
 *
 * in nats per token. v(k, j) is the mean square of input column j of matrix k,
 * and a(k) the share of the entry's input rows that matrix k received. For a
 * table of rows that are looked up, such as the token embedding, D is 1/2 c
 * times the mean over its rows of the sum of E^2. Divergences of the tensors of
 * a model add up.
 *
 * D is the KL divergence of the changed model's distribution of the next token
 * from that of the original, to second order, with errors of different weights
 * independent of each other. gguf_sensitivity_run() (sensitivity.h) measures c.
 *
 * A token embedding that is the output matrix, too, has two sensitivities: that
 * of the table with its name, and that of the product as "output.weight". */
struct gguf_imatrix_sensitivity {
    size_t struct_size; /* set by GGUF_IMATRIX_SENSITIVITY_INIT; members
                         * beyond this size are not filled */
    const char *name;   /* name of the weight tensor; belongs to the object,
                         * until that changes */
    double value;       /* c, not negative */
    double input; /* mean square of the product's inputs, in place of v for a
                      * tensor without an entry; 0: the tensor is a table */
    double n_tokens; /* number of tokens on which it was measured */
};
#define GGUF_IMATRIX_SENSITIVITY_INIT                                         \
    GGUF_INIT(struct gguf_imatrix_sensitivity)

/* Number of sensitivities. Since: 0.1 */
GGUF_API size_t gguf_imatrix_n_sensitivities(const struct gguf_imatrix *im);

/* Describe sensitivity i in *out. They are numbered by ascending name.
 *
 * GGUF_E_INVALID  i is out of range; out is NULL or its struct_size is 0.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_sensitivity(const struct gguf_imatrix *im, size_t i,
                         struct gguf_imatrix_sensitivity *out,
                         struct gguf_error *err) GGUF_MUST_CHECK;

/* Find the sensitivity of a weight tensor by name. Returns true and stores its
 * number in *i; or returns false, and *i is undefined. Since: 0.1 */
GGUF_API bool gguf_imatrix_find_sensitivity(const struct gguf_imatrix *im,
                                            struct gguf_str name, size_t *i);

/* Add a measurement of a sensitivity. Of several measurements, the object has
 * the mean, weighted by their tokens.
 *
 * im         The object.
 * name       Name of the weight tensor; copied.
 * value      The sensitivity c: finite, not negative.
 * input      Mean square of the product's inputs: finite, not negative. 0: the
 *            tensor is a table.
 * n_tokens   Number of tokens on which it was measured: finite, above 0.
 *
 * GGUF_E_INVALID  The name is empty, or a number is not as above.
 * GGUF_E_NOMEM    Memory for the sensitivity cannot be allocated.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_add_sensitivity(struct gguf_imatrix *im, const char *name,
                             double value, double input, double n_tokens,
                             struct gguf_error *err) GGUF_MUST_CHECK;

/* --------------------------------------------------------- changing it --- */

/* Add sums and counts to an entry, which is created if it does not exist.
 *
 * im       The object.
 * name     Name of the weight tensor; copied.
 * n_cols   Columns of a matrix.
 * n_mats   Number of matrices: 1, or the number of experts.
 * sums     Sums of squares, n_cols * n_mats of them, one matrix after another.
 *          They are not checked: they must not be negative.
 * counts   Number of input rows of each of the n_mats matrices: finite, not
 *          negative, and at least one of them above 0.
 *
 * sums and counts are borrowed during the call. If the entry is in the older
 * form, its calls become counts first: a call becomes gguf_imatrix_chunk_size()
 * input rows, or 1 if that is unknown. After GGUF_E_NONFINITE the entry may
 * have a part of the sums.
 *
 * GGUF_E_MISMATCH   The entry exists with another shape.
 * GGUF_E_NONFINITE  All sums of the entry would be NaN: in every column the old
 *                   sum or the added one is.
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
 * dataset    Name of the text; copied. A name that is recorded already is not
 *            recorded again. NULL: none.
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
 * name   A name of gguf_precision_name() (session.h); copied, and not checked.
 *        NULL: unknown.
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
 * im       Receives the data.
 * other    Another object. It is not changed, and may be destroyed afterwards.
 *
 * If an entry is in the older form in both, it stays in that form. If it is in
 * the older form in one of them only, its calls become counts: the chunk
 * size of other is the number of input rows that a call becomes; if that is
 * unknown, the chunk size of im; if both are unknown, 1. Sensitivities of a
 * tensor become their mean, weighted by tokens. If other has no entries, the
 * precision of im stays. After a failure, im may have a part of the data.
 *
 * GGUF_E_MISMATCH   An entry of other has another shape in im; or the file of
 *                   other has changed since it was loaded.
 * GGUF_E_NONFINITE  All sums of an entry would be NaN: in every column the sum
 *                   in im or the one in other is.
 * GGUF_E_NOMEM      Memory for an entry cannot be allocated.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_imatrix_merge(struct gguf_imatrix *im, const struct gguf_imatrix *other,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Keep or drop entries and sensitivities by name.
 *
 * im      The object.
 * texts   Parts of names; an entry matches if its name contains one of them.
 * n       Number of texts. 0: no entry matches.
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
 * path    Path of the file. The data are written to a temporary file, which is
 *         renamed to path when it is complete: a failure leaves an existing
 *         file as it was.
 * form    Form of the file. The older one has one number of calls per tensor:
 *         the counts of single experts and the sensitivities are lost. In the
 *         GGUF form an entry of the older form gets counts: a call becomes
 *         gguf_imatrix_chunk_size() input rows, or 1 if that is unknown.
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
