/* SPDX-License-Identifier: MIT */
/* dtype.h - tensor data types: what an id in a file means
 *
 * A type packs block_len consecutive elements of a row into block_size bytes.
 * Ids are those of the GGUF format; ids of fork-only types are listed so that
 * files with them can be inspected, split and merged. Many of those are also
 * decoded: gguf_rows_can_decode() tells which.
 */
#ifndef GGUF_DTYPE_H
#define GGUF_DTYPE_H

#include <gguf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The types that most programs name. All known ids: gguf_dtype_at(). */
enum gguf_dtype {
    GGUF_DTYPE_F32 = 0,
    GGUF_DTYPE_F16 = 1,
    GGUF_DTYPE_Q4_0 = 2,
    GGUF_DTYPE_Q4_1 = 3,
    GGUF_DTYPE_Q5_0 = 6,
    GGUF_DTYPE_Q5_1 = 7,
    GGUF_DTYPE_Q8_0 = 8,
    GGUF_DTYPE_Q8_1 = 9,
    GGUF_DTYPE_Q2_K = 10,
    GGUF_DTYPE_Q3_K = 11,
    GGUF_DTYPE_Q4_K = 12,
    GGUF_DTYPE_Q5_K = 13,
    GGUF_DTYPE_Q6_K = 14,
    GGUF_DTYPE_Q8_K = 15,
    GGUF_DTYPE_IQ2_XXS = 16,
    GGUF_DTYPE_IQ2_XS = 17,
    GGUF_DTYPE_IQ3_XXS = 18,
    GGUF_DTYPE_IQ1_S = 19,
    GGUF_DTYPE_IQ4_NL = 20,
    GGUF_DTYPE_IQ3_S = 21,
    GGUF_DTYPE_IQ2_S = 22,
    GGUF_DTYPE_IQ4_XS = 23,
    GGUF_DTYPE_I8 = 24,
    GGUF_DTYPE_I16 = 25,
    GGUF_DTYPE_I32 = 26,
    GGUF_DTYPE_I64 = 27,
    GGUF_DTYPE_F64 = 28,
    GGUF_DTYPE_IQ1_M = 29,
    GGUF_DTYPE_BF16 = 30,
    GGUF_DTYPE_TQ1_0 = 34,
    GGUF_DTYPE_TQ2_0 = 35,
    GGUF_DTYPE_MXFP4 = 39,
    GGUF_DTYPE_NVFP4 = 40,
    GGUF_DTYPE_Q1_0 = 41,
    GGUF_DTYPE_Q2_0 = 42
};

enum gguf_dtype_family {
    GGUF_FAMILY_FLOAT,   /* f64, f32, f16, bf16 */
    GGUF_FAMILY_INT,     /* plain integers */
    GGUF_FAMILY_QUANT,   /* blocks of quantized values */
    GGUF_FAMILY_REMOVED, /* id is taken, the type is gone: sizes are 0 */
    GGUF_FAMILY_FORK     /* written by forks only; decoded at best, never
                          * encoded */
};

/* Made by the library: it may grow at its end. */
struct gguf_dtype_info {
    uint32_t id;
    const char *name;    /* as people write it: "Q4_K" */
    uint32_t block_len;  /* elements */
    uint32_t block_size; /* bytes */
    uint32_t row_header; /* bytes before the blocks of each row; mostly 0 */
    enum gguf_dtype_family family;
};

/* What id means, or NULL if it is unknown. Static storage. Any thread.
 * Since: 0.1 */
GGUF_API const struct gguf_dtype_info *gguf_dtype_find(uint32_t id);

/* By name, letter case ignored, or NULL. name is NUL-terminated. Since: 0.1 */
GGUF_API const struct gguf_dtype_info *gguf_dtype_find_name(const char *name);

/* The n-th known type by ascending id, or NULL after the last. Since: 0.1 */
GGUF_API const struct gguf_dtype_info *gguf_dtype_at(size_t n);

/* Bytes of a row of ne0 elements. GGUF_E_UNSUPPORTED (unknown or removed id),
 * GGUF_E_SHAPE (ne0 is not a multiple of block_len), GGUF_E_OVERFLOW.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_dtype_row_size(uint32_t id, uint64_t ne0, uint64_t *size,
                    struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
