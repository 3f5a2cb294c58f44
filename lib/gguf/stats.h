/* SPDX-License-Identifier: MIT */
/* stats.h - the numbers in tensors: decoded to floats, summarized, compared
 *
 * Types are decoded exactly as evaluation does (f64 and wide integers are
 * rounded to f32). Sums are taken in double over pieces of fixed length, and
 * these are added in order: results do not depend on the pool.
 */
#ifndef GGUF_STATS_H
#define GGUF_STATS_H

#include <gguf/file.h>
#include <gguf/pool.h>
#include <gguf/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- rows --- */

/* A decoder for this processor: read-only, any thread. */
struct gguf_rows;

/* allocator: NULL is malloc; kept. GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_rows_create(struct gguf_rows **out,
                 const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;
/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_rows_destroy(struct gguf_rows *rows);

/* Can rows of this type be decoded? Since: 0.1 */
GGUF_API int gguf_rows_can_decode(const struct gguf_rows *rows,
                                  uint32_t dtype);

/* n elements from element first on of tensor i, in file order, into dst[n].
 * Both are multiples of the type's block_len. Elements of NVFP4 are multiplied
 * by the tensor's scale (gguf-quants(7)), which must be in the same file.
 * Files of both byte orders give the same. GGUF_E_UNSUPPORTED (type; a shard
 * without the scale, which may be in another), GGUF_E_TENSOR (a scale of
 * another type or shape, or not finite), GGUF_E_INVALID (range).
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_rows_decode(const struct gguf_rows *rows, const struct gguf_file *file,
                 size_t i, uint64_t first, uint64_t n, float *dst,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* ---------------------------------------------------------- statistics --- */

struct gguf_stats_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc */
    const struct gguf_rows *rows;           /* must be given */
    struct gguf_pool *pool;                 /* NULL: the calling thread */
};
#define GGUF_STATS_PARAMS_INIT GGUF_INIT(struct gguf_stats_params)

#define GGUF_STATS_BINS 24

struct gguf_stats {
    size_t struct_size;    /* the caller's: as much is filled in */
    uint64_t n;            /* elements */
    uint64_t n_zero;       /* of them 0 */
    uint64_t n_nan, n_inf; /* elements that are not finite: ignored below */
    double min, max;       /* 0 if no element is finite */
    double mean, rms;
    double stddev;   /* of the population */
    double kurtosis; /* excess over the normal distribution's 3; 0 if
                              * all are the same */
    double lo, hi;   /* mean -+ 4 stddev, inside [min, max] */
    uint64_t bins[GGUF_STATS_BINS]; /* finite elements in equal parts of [lo,
                              * hi]; the outer two also count those beyond */
};
#define GGUF_STATS_INIT                                                       \
    {                                                                         \
        sizeof(struct gguf_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,        \
        {                                                                     \
            0                                                                 \
        }                                                                     \
    }

/* All elements of tensor i. GGUF_E_UNSUPPORTED, GGUF_E_INVALID (i, params,
 * out), GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_stats_tensor(const struct gguf_file *file, size_t i,
                  const struct gguf_stats_params *params,
                  struct gguf_stats *out,
                  struct gguf_error *err) GGUF_MUST_CHECK;

struct gguf_stats_diff {
    size_t struct_size; /* the caller's: as much is filled in */
    uint64_t n;         /* elements */
    uint64_t n_differ;  /* elements that are not the same number */
    uint64_t n_nan;     /* elements NaN or infinite in either: ignored below */
    double max_abs;     /* largest |a - b| */
    double rms;         /* of a - b */
    double rms_a, rms_b;
    double cosine; /* cosine cosine of the angle between a and b; 1 if both are
                          * 0, 0 if one is */
};
#define GGUF_STATS_DIFF_INIT GGUF_INIT(struct gguf_stats_diff)

/* Tensor ia of a against ib of b: types may differ, shapes may not
 * (GGUF_E_SHAPE). Else as gguf_stats_tensor. Since: 0.1 */
GGUF_API enum gguf_status gguf_stats_compare(
    const struct gguf_file *a, size_t ia, const struct gguf_file *b, size_t ib,
    const struct gguf_stats_params *params, struct gguf_stats_diff *out,
    struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
