/* SPDX-License-Identifier: MIT */
/* kv.h - metadata: pairs of a key and a typed value
 *
 * A struct gguf_kv describes one pair. Its value stays encoded where it lies,
 * in an open file (file.h) or in a struct gguf_meta, until a getter decodes
 * it. Values of a file were checked when it was opened. So a getter fails only
 * for a wrong type, an index out of range, or a number that does not fit; the
 * message names the key and, in a file, the byte.
 *
 *     uint64_t n_layer;
 *     const struct gguf_kv *kv;
 *     if (gguf_file_kv_get(file, "llama.block_count", &kv, &err) != GGUF_OK ||
 *         gguf_kv_get_uint(kv, &n_layer, &err) != GGUF_OK)
 *         return fail(err.message);
 *
 * To write pairs, make a list of them in memory (meta.h).
 *
 * Format: GGUF specification (ggml, docs/gguf.md), "File Structure".
 */
#ifndef GGUF_KV_H
#define GGUF_KV_H

#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_file;

/* --------------------------------------------------------- value types --- */

/* Type of a value. The numbers are those of the file format. */
enum gguf_val_type {
    GGUF_VAL_U8 = 0,
    GGUF_VAL_I8 = 1,
    GGUF_VAL_U16 = 2,
    GGUF_VAL_I16 = 3,
    GGUF_VAL_U32 = 4,
    GGUF_VAL_I32 = 5,
    GGUF_VAL_F32 = 6,
    GGUF_VAL_BOOL = 7,
    GGUF_VAL_STR = 8,
    GGUF_VAL_ARR = 9,
    GGUF_VAL_U64 = 10,
    GGUF_VAL_I64 = 11,
    GGUF_VAL_F64 = 12
};
#define GGUF_N_VAL_TYPES 13 /* number of value types */

/* Name of a value type, such as "u32", "str" or "arr"; "?" if the type is
 * unknown. Threads: any. Since: 0.1 */
GGUF_API const char *gguf_val_type_name(uint32_t type);

/* Find the value type of a name.
 *
 * name   Name, NUL-terminated, such as "u32", or a long form, such as "uint32",
 *        "float32", "string" or "array". Letter case is ignored.
 * type   Receives the type.
 *
 * Returns false, and does not change *type, if the name is unknown.
 *
 * Threads: any. Since: 0.1 */
GGUF_API bool gguf_val_type_find(const char *name, enum gguf_val_type *type);

/* Size of a scalar value in bytes; 0 for GGUF_VAL_STR, GGUF_VAL_ARR and
 * unknown types. Threads: any. Since: 0.1 */
GGUF_API size_t gguf_val_type_size(uint32_t type);

/* ----------------------------------------------------------- one value --- */

#define GGUF_NO_INDEX UINT64_MAX /* not an element of an array */

/* A metadata pair, or an element of an array.
 *
 * Only the library fills it; programs read it. Everything it points to belongs
 * to the file or list that it came from. Programs hold elements of arrays in
 * variables (gguf_kv_iter_next()), so later versions add no members to this
 * struct. */
struct gguf_kv {
    struct gguf_str key; /* key of the pair; of an element, its array's key */
    uint32_t type;       /* enum gguf_val_type */
    uint32_t elem_type;  /* enum gguf_val_type of an array's elements; same as
                          * type if the value is not an array */
    uint64_t n;          /* number of an array's elements; else 1 */

    /* Encoded value, unaligned: the bytes of a scalar, the bytes of a string,
     * or the elements of an array one after another. */
    const void *data;
    size_t size; /* bytes at data */

    /* Byte of the file where the value begins: a scalar, the length of a
     * string, or the element type of an array. GGUF_NO_OFFSET: not in a
     * file. */
    uint64_t off;

    /* Byte of the file where the length of the key stands. GGUF_NO_OFFSET:
     * not in a file. */
    uint64_t key_off;

    uint64_t index;  /* index in its array; GGUF_NO_INDEX: not an element */
    bool big_endian; /* numbers at data are big-endian */
};

/* ------------------------------------------------------------- scalars --- */

/* Get a scalar value of exactly one type.
 *
 * kv    The value. NULL counts as a missing key.
 * out   Receives the value. Unchanged after a failure.
 *
 * Writers do not agree on the width of integers: for hyperparameters use
 * gguf_kv_get_uint(), gguf_kv_get_int() or gguf_kv_get_float().
 *
 * GGUF_OK           *out is the value.
 * GGUF_E_NOTFOUND   kv is NULL. gguf_file_kv_get() fails earlier, with a
 *                   message that names the key.
 * GGUF_E_TYPE       The value has another type.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_kv_get_u8(const struct gguf_kv *kv, uint8_t *out,
               struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_i8(const struct gguf_kv *kv, int8_t *out,
               struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_u16(const struct gguf_kv *kv, uint16_t *out,
                struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_i16(const struct gguf_kv *kv, int16_t *out,
                struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_u32(const struct gguf_kv *kv, uint32_t *out,
                struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_i32(const struct gguf_kv *kv, int32_t *out,
                struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_u64(const struct gguf_kv *kv, uint64_t *out,
                struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_i64(const struct gguf_kv *kv, int64_t *out,
                struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_f32(const struct gguf_kv *kv, float *out,
                struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_f64(const struct gguf_kv *kv, double *out,
                struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_bool(const struct gguf_kv *kv, bool *out,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Get a string.
 *
 * kv    The value. NULL counts as a missing key.
 * out   Receives the string: any bytes, not terminated, owned by the file or
 *       list that kv came from. Unchanged after a failure.
 *
 * GGUF_OK           *out is the string.
 * GGUF_E_NOTFOUND   kv is NULL.
 * GGUF_E_TYPE       The value is not a string.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_kv_get_str(const struct gguf_kv *kv, struct gguf_str *out,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Get an integer of any type as a uint64_t or int64_t. For hyperparameters.
 *
 * kv    The value. NULL counts as a missing key.
 * out   Receives the value. Unchanged after a failure.
 *
 * GGUF_OK           *out is the value.
 * GGUF_E_NOTFOUND   kv is NULL.
 * GGUF_E_TYPE       The value is not an integer. A bool is not an integer.
 * GGUF_E_OVERFLOW   The type of out cannot hold the value.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_kv_get_uint(const struct gguf_kv *kv, uint64_t *out,
                 struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_int(const struct gguf_kv *kv, int64_t *out,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Get a float or an integer of any type as a double. For hyperparameters.
 *
 * kv    The value. NULL counts as a missing key.
 * out   Receives the value, rounded to a double. It may be NaN or infinite.
 *       Unchanged after a failure.
 *
 * GGUF_OK           *out is the value.
 * GGUF_E_NOTFOUND   kv is NULL.
 * GGUF_E_TYPE       The value is not a number.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_kv_get_float(const struct gguf_kv *kv, double *out,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* -------------------------------------------------------------- arrays --- */

/* Check that a value is an array with elements of one type.
 *
 * kv          The value. NULL counts as a missing key.
 * elem_type   enum gguf_val_type of the elements.
 *
 * For programs that then read kv->data themselves.
 *
 * GGUF_OK           It is such an array.
 * GGUF_E_NOTFOUND   kv is NULL.
 * GGUF_E_TYPE       The value is not an array, or has other elements.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_kv_check_array(const struct gguf_kv *kv, uint32_t elem_type,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Get element i of an array.
 *
 * kv    The array. NULL counts as a missing key.
 * i     Index of the element.
 * out   Receives the element, with the key of the array. Decode it with the
 *       getters above, or use it as an array if it is one. It is valid as long
 *       as kv is.
 *
 * For scalars the time does not depend on i. For strings and arrays it grows
 * with i: read all of them with an iterator instead.
 *
 * GGUF_OK           *out is the element.
 * GGUF_E_NOTFOUND   kv is NULL.
 * GGUF_E_TYPE       The value is not an array.
 * GGUF_E_INVALID    i is out of range.
 * GGUF_E_FORMAT     The file was changed on disk since it was opened.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_kv_get_elem(const struct gguf_kv *kv, uint64_t i, struct gguf_kv *out,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Get elements of an array of numbers, converted.
 *
 * kv      The array. NULL counts as a missing key.
 * first   Index of the first element.
 * n       Number of elements. 0 is allowed.
 * dst     Receives n elements.
 *
 * gguf_kv_get_elems_f32() converts elements of types f32 and f64, the other
 * two elements of any integer type and of bool.
 *
 * GGUF_OK           dst is filled.
 * GGUF_E_NOTFOUND   kv is NULL.
 * GGUF_E_TYPE       The value is not such an array.
 * GGUF_E_INVALID    The array has fewer elements.
 * GGUF_E_OVERFLOW   The type of dst cannot hold an integer.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_kv_get_elems_f32(const struct gguf_kv *kv, uint64_t first, size_t n,
                      float *dst, struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_elems_i32(const struct gguf_kv *kv, uint64_t first, size_t n,
                      int32_t *dst, struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_elems_uint(const struct gguf_kv *kv, uint64_t first, size_t n,
                       uint64_t *dst, struct gguf_error *err) GGUF_MUST_CHECK;

/* Iterator over the elements of an array.
 *
 *     struct gguf_kv_iter it;
 *     struct gguf_kv elem;
 *     gguf_kv_iter_init(&it, kv);
 *     while (gguf_kv_iter_next(&it, &elem))
 *         use(&elem);
 *
 * It is the fast way through strings and nested arrays. The structure is the
 * caller's and needs no cleanup. Its members are private. Later versions add no
 * members to this struct. */
struct gguf_kv_iter {
    const struct gguf_kv *kv; /* the array; it must outlive the iterator */
    uint64_t i;               /* index of the next element */
    size_t pos;               /* bytes from kv->data to the next element */
};

/* Start at the first element of an array. A NULL kv, or one that is not an
 * array, has no elements. Since: 0.1 */
GGUF_API void gguf_kv_iter_init(struct gguf_kv_iter *it,
                                const struct gguf_kv *kv);

/* Get the next element of any type. Returns false after the last.
 * Since: 0.1 */
GGUF_API bool gguf_kv_iter_next(struct gguf_kv_iter *it, struct gguf_kv *out);

/* Get the next element of an array of strings. Returns false after the last,
 * and for arrays of other elements. Faster than gguf_kv_iter_next().
 * Since: 0.1 */
GGUF_API bool gguf_kv_iter_next_str(struct gguf_kv_iter *it,
                                    struct gguf_str *out);

/* Do two values have the same type and the same bits? Keys and byte orders do
 * not matter. Two NULL values are equal. Threads: any. Since: 0.1 */
GGUF_API bool gguf_kv_equal(const struct gguf_kv *a, const struct gguf_kv *b);

#ifdef __cplusplus
}
#endif
#endif
