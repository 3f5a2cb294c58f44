/* SPDX-License-Identifier: MIT */
/* stats.h - decode the numbers in tensors, summarize and compare them
 *
 * A struct gguf_rows decodes tensor data of all types that the library can
 * evaluate. One object serves a whole program: it knows the processor, not a
 * file.
 *
 *   1. gguf_rows_create() makes a decoder.
 *   2. gguf_rows_decode() decodes elements; gguf_stats_tensor() summarizes a
 *      tensor; gguf_stats_compare() compares two.
 *   3. gguf_rows_destroy() frees it.
 *
 *     struct gguf_stats_params params = GGUF_INIT(struct gguf_stats_params);
 *     struct gguf_stats stats = GGUF_INIT(struct gguf_stats);
 *     params.rows = rows;
 *     if (gguf_stats_tensor(file, i, &params, &stats, &err) != GGUF_OK)
 *         return fail(err.message);
 *
 * Elements are decoded exactly as in evaluation. F64 and wide integers are
 * rounded to f32. Sums are computed in double over pieces of a fixed length,
 * which are added in order, so results do not depend on the pool.
 */
#ifndef GGUF_STATS_H
#define GGUF_STATS_H

#include <gguf/file.h>
#include <gguf/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- decoder --- */

/* Decoder of tensor data. It does not change: any number of threads may use
 * it. */
struct gguf_rows;

/* Create a decoder for the processor that runs the program.
 *
 * out         Receives the decoder. NULL after a failure.
 * allocator   Allocator of the decoder. It must outlive it. NULL: malloc.
 *
 * Destroy *out with gguf_rows_destroy().
 *
 * GGUF_OK        *out is the decoder.
 * GGUF_E_NOMEM   Out of memory.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_rows_create(struct gguf_rows **out,
                 const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a decoder. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_rows_destroy(struct gguf_rows *rows);

/* Can tensors of this data type be decoded? For programs that skip the others.
 * Threads: any. Since: 0.1 */
GGUF_API bool gguf_rows_can_decode(const struct gguf_rows *rows,
                                   uint32_t dtype);

/* Decode elements of a tensor to floats.
 *
 * rows    The decoder.
 * file    An open file, of either byte order.
 * i       Index of the tensor.
 * first   Index of the first element, in file order: a multiple of the type's
 *         block_len (dtype.h).
 * n       Number of elements, a multiple of block_len.
 * dst     Receives n floats.
 *
 * Elements of NVFP4 are multiplied by the tensor's scale (gguf-quants(7)),
 * which must be in the same file.
 *
 * GGUF_OK              dst is filled.
 * GGUF_E_INVALID       The tensor does not exist, does not have these
 *                      elements, or first or n is not a multiple of block_len.
 * GGUF_E_UNSUPPORTED   The data type cannot be decoded. Or file is a shard
 *                      without the tensor's scale, which another shard may
 *                      have. Or the file is read through a reader.
 * GGUF_E_TENSOR        The scale has a wrong type or shape, or is not finite.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_rows_decode(const struct gguf_rows *rows, const struct gguf_file *file,
                 size_t i, uint64_t first, uint64_t n, float *dst,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* ---------------------------------------------------------- statistics --- */

/* How to compute statistics. */
struct gguf_stats_params {
    size_t struct_size; /* size of this structure in bytes */

    /* Allocator for the call. NULL: malloc. */
    const struct gguf_allocator *allocator;

    const struct gguf_rows *rows; /* decoder; required */

    /* Threads to use. NULL: the calling thread. */
    struct gguf_pool *pool;
};
#define GGUF_STATS_PARAMS_INIT GGUF_INIT(struct gguf_stats_params)

#define GGUF_STATS_BINS 24 /* number of bins of a histogram */

/* Statistics of a tensor. Elements that are NaN or infinite are counted, and
 * left out of all other members. */
struct gguf_stats {
    size_t struct_size; /* size of this structure in bytes, set by the caller;
                         * no more is filled in */

    uint64_t n;      /* number of elements */
    uint64_t n_zero; /* number of elements that are 0 */
    uint64_t n_nan;  /* number of elements that are NaN */
    uint64_t n_inf;  /* number of elements that are infinite */
    double min;      /* smallest element; 0 if no element is finite */
    double max;      /* largest element; 0 if no element is finite */
    double mean;     /* arithmetic mean */
    double rms;      /* root mean square */
    double stddev;   /* standard deviation of the population */
    double kurtosis; /* excess kurtosis: 0 for a normal distribution, and if
                      * all elements are equal */

    double lo; /* lower end of the histogram: mean - 4 stddev, at least min */
    double hi; /* upper end of the histogram: mean + 4 stddev, at most max */

    /* Histogram: number of elements in each of GGUF_STATS_BINS equal parts of
     * [lo, hi]. The first and the last also count elements outside. */
    uint64_t bins[GGUF_STATS_BINS];
};
#define GGUF_STATS_INIT GGUF_INIT(struct gguf_stats)

/* Compute statistics of all elements of a tensor.
 *
 * file     An open file.
 * i        Index of the tensor.
 * params   How to compute; rows is required.
 * out      Receives the statistics. Set struct_size first.
 *
 * GGUF_OK              *out is filled in.
 * GGUF_E_INVALID       The tensor does not exist, or a required member or out
 *                      is missing.
 * GGUF_E_UNSUPPORTED   The data cannot be decoded: gguf_rows_decode().
 * GGUF_E_TENSOR        The scale of an NVFP4 tensor is wrong.
 * GGUF_E_NOMEM         Out of memory.
 *
 * Threads: any, with a pool of its own. Since: 0.1 */
GGUF_API enum gguf_status
gguf_stats_tensor(const struct gguf_file *file, size_t i,
                  const struct gguf_stats_params *params,
                  struct gguf_stats *out,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Comparison of two tensors, a and b. Pairs of elements in which either is NaN
 * or infinite are counted, and left out of all other members. */
struct gguf_stats_diff {
    size_t struct_size; /* size of this structure in bytes, set by the caller;
                         * no more is filled in */

    uint64_t n;        /* number of pairs */
    uint64_t n_differ; /* number of pairs that are not the same number */
    uint64_t n_nan;    /* number of pairs with a NaN or infinity */
    double max_abs;    /* largest |a - b| */
    double rms;        /* root mean square of a - b */
    double rms_a;      /* root mean square of a */
    double rms_b;      /* root mean square of b */
    double cosine;     /* cosine of the angle between a and b; 1 if both are 0,
                        * 0 if one is */
};
#define GGUF_STATS_DIFF_INIT GGUF_INIT(struct gguf_stats_diff)

/* Compare all elements of two tensors of one shape.
 *
 * a        Open file with the first tensor.
 * ia       Index of the first tensor.
 * b        Open file with the second tensor.
 * ib       Index of the second tensor. Its data type may differ.
 * params   How to compute; rows is required.
 * out      Receives the comparison. Set struct_size first.
 *
 * GGUF_OK              *out is filled in.
 * GGUF_E_SHAPE         The shapes differ.
 * GGUF_E_INVALID       A tensor does not exist, or a required member or out is
 *                      missing.
 * GGUF_E_UNSUPPORTED   The data cannot be decoded: gguf_rows_decode().
 * GGUF_E_TENSOR        The scale of an NVFP4 tensor is wrong.
 * GGUF_E_NOMEM         Out of memory.
 *
 * Threads: any, with a pool of its own. Since: 0.1 */
GGUF_API enum gguf_status gguf_stats_compare(
    const struct gguf_file *a, size_t ia, const struct gguf_file *b, size_t ib,
    const struct gguf_stats_params *params, struct gguf_stats_diff *out,
    struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
