/* SPDX-License-Identifier: MIT */
/* dtype.h - data types of tensors
 *
 * A data type packs block_len consecutive elements of a row into a block of
 * block_size bytes; gguf-quants(7) describes the blocks. A tensor has the id
 * of its type in its entry of the file's list (struct gguf_tensor_info).
 *
 * Types of forks are known so that files with them can be listed, split and
 * merged. Many of them can also be decoded: gguf_rows_can_decode() (stats.h).
 *
 *     const struct gguf_dtype_info *info = gguf_dtype_find(tensor->dtype);
 *     puts(info ? info->name : "unknown type");
 *
 * Everything here is static and may be used by any thread.
 */
#ifndef GGUF_DTYPE_H
#define GGUF_DTYPE_H

#include <gguf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ids of data types, as in the file. Ids of forks have no names here;
 * gguf_dtype_at() lists all known ids. */
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
    GGUF_DTYPE_Q2_0 = 42,
    GGUF_DTYPE_F8_E4M3 = 43
};

/* Kind of a data type. */
enum gguf_dtype_family {
    GGUF_FAMILY_FLOAT,   /* f64, f32, f16, bf16, f8_e4m3 */
    GGUF_FAMILY_INT,     /* plain integers */
    GGUF_FAMILY_QUANT,   /* blocks of quantized values */
    GGUF_FAMILY_REMOVED, /* removed from the format; its sizes are 0 */
    GGUF_FAMILY_FORK     /* written by forks only; some can be decoded, some
                          * of these encoded */
};

/* Description of a data type. Only the library makes it; later versions may add
 * members at its end. */
struct gguf_dtype_info {
    uint32_t id;                   /* id in files */
    const char *name;              /* name, such as "Q4_K" */
    uint32_t block_len;            /* elements of a block */
    uint32_t block_size;           /* bytes of a block */
    uint32_t row_header;           /* bytes before the blocks of each row; 0
                                    * for all but a few types of forks */
    enum gguf_dtype_family family; /* kind of the type */
};

/* Data type with this id; NULL if the id is unknown. Threads: any.
 * Since: 0.1 */
GGUF_API const struct gguf_dtype_info *gguf_dtype_find(uint32_t id);

/* Data type with this name, NUL-terminated; NULL if the name is unknown.
 * Letter case is ignored. Threads: any. Since: 0.1 */
GGUF_API const struct gguf_dtype_info *gguf_dtype_find_name(const char *name);

/* Known data type n in ascending order of ids, counted from 0; NULL after the
 * last. Threads: any. Since: 0.1 */
GGUF_API const struct gguf_dtype_info *gguf_dtype_at(size_t n);

/* Get the size of a row in bytes.
 *
 * id     Id of the data type.
 * ne0    Number of elements of the row.
 * size   Receives the number of bytes, with the header of the row.
 *
 * GGUF_OK              *size is the number of bytes.
 * GGUF_E_UNSUPPORTED   The id is unknown, or the type was removed.
 * GGUF_E_SHAPE         ne0 is not a multiple of block_len.
 * GGUF_E_OVERFLOW      The size does not fit in 63 bits.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_dtype_row_size(uint32_t id, uint64_t ne0, uint64_t *size,
                    struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
