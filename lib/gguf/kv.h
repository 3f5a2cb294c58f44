/* SPDX-License-Identifier: MIT */
/* kv.h - metadata: typed values under keys, read from a file or built in memory
 *
 * A struct gguf_kv is a view of one value where it lies, in the mapping of a
 * file or in a struct gguf_meta: nothing is decoded until it is asked for.
 * Its bytes have been checked when the file was opened, so that a getter fails
 * only for the wrong type, an index out of range, or a value that does not
 * fit; the error names the key, and in a file the byte.
 *
 *     uint64_t n_layer;
 *     const struct gguf_kv *kv;
 *     if (gguf_file_kv_get(file, "llama.block_count", &kv, &err) != GGUF_OK ||
 *         gguf_kv_get_uint(kv, &n_layer, &err) != GGUF_OK)
 *         return fail(&err);
 *
 * Source: GGUF specification (ggml, docs/gguf.md), "File Structure".
 */
#ifndef GGUF_KV_H
#define GGUF_KV_H

#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_file;

/* Ids of value types, as in the file. */
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
#define GGUF_N_VAL_TYPES 13

/* "u32", "str", "arr" ...; "?" for an unknown id. Since: 0.1 */
GGUF_API const char *gguf_val_type_name(uint32_t type);

/* The id of a name as gguf_val_type_name gives it ("string", "array",
 * "uint32", "float32" ... are understood too), or -1. Since: 0.1 */
GGUF_API int gguf_val_type_find(const char *name);

/* Bytes of a value of a scalar type; 0 for str, arr and unknown ids.
 * Since: 0.1 */
GGUF_API size_t gguf_val_type_size(uint32_t type);

#define GGUF_NO_INDEX UINT64_MAX

/* One value and its name. Read it; it is filled by the library only. Everything
 * it points to belongs to the file or list it came from. It never grows, as
 * programs have room for elements of arrays (gguf_kv_iter_next). */
struct gguf_kv {
    struct gguf_str key;
    uint32_t type;      /* enum gguf_val_type */
    uint32_t elem_type; /* of an array's elements; else the same as type */
    uint64_t n;         /* elements of an array; else 1 */
    const void *data;   /* encoded: a scalar's or a string's bytes, or an
                         * array's elements one after another; unaligned */
    size_t size;        /* bytes at data */
    uint64_t off;       /* byte in the file where the value begins (a string's
                         * length, an array's element type), or
                         * GGUF_NO_OFFSET */
    uint64_t key_off;   /* likewise the key's length */
    uint64_t index;     /* place in its array, or GGUF_NO_INDEX */
    int big_endian;     /* byte order at data */
};

/* ------------------------------------------------------------- scalars ---
 *
 * All take a kv that may be NULL (GGUF_E_NOTFOUND; where there was a key to
 * look up, gguf_file_kv_get gives the better message) and leave *out alone on
 * failure. Any thread. Since: 0.1 */

/* Exactly this type, else GGUF_E_TYPE. */
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
/* 0 or 1 */
GGUF_API enum gguf_status
gguf_kv_get_bool(const struct gguf_kv *kv, int *out,
                 struct gguf_error *err) GGUF_MUST_CHECK;
/* Counted, not terminated, any bytes. */
GGUF_API enum gguf_status
gguf_kv_get_str(const struct gguf_kv *kv, struct gguf_str *out,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* For hyperparameters: any integer type, if the value is in range. GGUF_E_TYPE
 * for other types, GGUF_E_OVERFLOW for values out of range. */
GGUF_API enum gguf_status
gguf_kv_get_uint(const struct gguf_kv *kv, uint64_t *out,
                 struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_int(const struct gguf_kv *kv, int64_t *out,
                struct gguf_error *err) GGUF_MUST_CHECK;
/* f32, f64, or any integer; not checked for NaN and infinity. */
GGUF_API enum gguf_status
gguf_kv_get_float(const struct gguf_kv *kv, double *out,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* -------------------------------------------------------------- arrays --- */

/* Is kv an array with elements of this type? GGUF_E_TYPE. Since: 0.1 */
GGUF_API enum gguf_status
gguf_kv_check_array(const struct gguf_kv *kv, uint32_t elem_type,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Element i of an array, as a value with the array's key and its index, for
 * the getters above; an element that is itself an array for those below. One
 * step for scalars; for strings and arrays the time grows with i: use an
 * iterator. GGUF_E_TYPE (not an array), GGUF_E_INVALID (i out of range).
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_kv_get_elem(const struct gguf_kv *kv, uint64_t i, struct gguf_kv *out,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Elements first .. first+n-1 of an array, converted, into dst[n]. f32: from
 * f32 or f64 elements; the others from elements of any integer type, or bool,
 * whose values are in range. GGUF_E_TYPE, GGUF_E_OVERFLOW, GGUF_E_INVALID
 * (first or n). Since: 0.1 */
GGUF_API enum gguf_status
gguf_kv_get_elems_f32(const struct gguf_kv *kv, uint64_t first, size_t n,
                      float *dst, struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_elems_i32(const struct gguf_kv *kv, uint64_t first, size_t n,
                      int32_t *dst, struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kv_get_elems_uint(const struct gguf_kv *kv, uint64_t first, size_t n,
                       uint64_t *dst, struct gguf_error *err) GGUF_MUST_CHECK;

/* Walk an array of any element type, nested ones too:
 *
 *     struct gguf_kv_iter it;
 *     struct gguf_kv e;
 *     gguf_kv_iter_init(&it, kv);
 *     while (gguf_kv_iter_next(&it, &e)) ...
 *
 * A value that is not an array (or NULL) has no elements. In the caller's
 * storage: it never grows. */
struct gguf_kv_iter {
    const struct gguf_kv *kv; /* kept */
    uint64_t i;               /* next element */
    size_t pos;               /* where it begins, bytes from kv->data */
};
GGUF_API void gguf_kv_iter_init(struct gguf_kv_iter *it,
                                const struct gguf_kv *kv);
/* 1 and the next element, or 0 at the end. Since: 0.1 */
GGUF_API int gguf_kv_iter_next(struct gguf_kv_iter *it, struct gguf_kv *out);
/* The same for an array of strings, with less to fill in: 1 or 0.
 * Since: 0.1 */
GGUF_API int gguf_kv_iter_next_str(struct gguf_kv_iter *it,
                                   struct gguf_str *out);

/* 1 if both are of one type and have one value, bit for bit, whatever their
 * keys and byte orders; or if both are NULL. Since: 0.1 */
GGUF_API int gguf_kv_equal(const struct gguf_kv *a, const struct gguf_kv *b);

/* ------------------------------------------------- metadata in memory ---
 *
 * An ordered list of pairs with distinct keys, for writing. Setting a key that
 * is there replaces its value and keeps its place; a new one goes to the end.
 * Keys are NUL-terminated here; a key must be 1 to 65535 bytes of UTF-8
 * without control characters (GGUF_E_INVALID). Everything is copied.
 * One thread at a time. */
struct gguf_meta;

/* allocator: NULL is malloc; kept. GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_meta_create(struct gguf_meta **out,
                 const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;
/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_meta_destroy(struct gguf_meta *m);

/* Pairs in order; what they return is valid until the list changes.
 * kv: NULL if i is out of range; find: NULL if there is none. Since: 0.1 */
GGUF_API size_t gguf_meta_n_kv(const struct gguf_meta *m);
GGUF_API const struct gguf_kv *gguf_meta_kv(const struct gguf_meta *m,
                                            size_t i);
GGUF_API const struct gguf_kv *gguf_meta_find(const struct gguf_meta *m,
                                              const char *key);

/* Add or replace. GGUF_E_NOMEM, GGUF_E_INVALID (key). Since: 0.1 */
GGUF_API enum gguf_status
gguf_meta_set_u8(struct gguf_meta *m, const char *key, uint8_t v,
                 struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_i8(struct gguf_meta *m, const char *key, int8_t v,
                 struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_u16(struct gguf_meta *m, const char *key, uint16_t v,
                  struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_i16(struct gguf_meta *m, const char *key, int16_t v,
                  struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_u32(struct gguf_meta *m, const char *key, uint32_t v,
                  struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_i32(struct gguf_meta *m, const char *key, int32_t v,
                  struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_u64(struct gguf_meta *m, const char *key, uint64_t v,
                  struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_i64(struct gguf_meta *m, const char *key, int64_t v,
                  struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_f32(struct gguf_meta *m, const char *key, float v,
                  struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_f64(struct gguf_meta *m, const char *key, double v,
                  struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_bool(struct gguf_meta *m, const char *key, int v,
                   struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_str(struct gguf_meta *m, const char *key, struct gguf_str v,
                  struct gguf_error *err) GGUF_MUST_CHECK;
/* v is NUL-terminated. */
GGUF_API enum gguf_status
gguf_meta_set_strz(struct gguf_meta *m, const char *key, const char *v,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* An array of n scalars of elem_type, at v as in a C array of that type
 * (bool: one byte each, 0 or 1). v may be NULL if n is 0. */
GGUF_API enum gguf_status
gguf_meta_set_array(struct gguf_meta *m, const char *key, uint32_t elem_type,
                    const void *v, uint64_t n,
                    struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_str_array(struct gguf_meta *m, const char *key,
                        const struct gguf_str *v, uint64_t n,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* A value of any type, as it is encoded in a little-endian file: after the
 * type id, so a string with its length, an array with element type and count.
 * The only way to set nested arrays. Checked as if it came from a file, with
 * the default limits; the statuses are those of gguf_file_open. */
GGUF_API enum gguf_status
gguf_meta_set_encoded(struct gguf_meta *m, const char *key, uint32_t type,
                      const void *bytes, size_t size,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Copy of a value of a file or list, under its own key or (key not NULL)
 * under another. kv must not be an array's element. */
GGUF_API enum gguf_status
gguf_meta_set_kv(struct gguf_meta *m, const char *key,
                 const struct gguf_kv *kv,
                 struct gguf_error *err) GGUF_MUST_CHECK;
/* Every pair of file, in its order. */
GGUF_API enum gguf_status
gguf_meta_copy_file(struct gguf_meta *m, const struct gguf_file *file,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Take key out: 1, or 0 if it was not there. Since: 0.1 */
GGUF_API int gguf_meta_remove(struct gguf_meta *m, const char *key);

/* Another key for a value, in its place. GGUF_E_NOTFOUND, GGUF_E_DUPLICATE
 * (to is there already), GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_meta_rename(struct gguf_meta *m, const char *from, const char *to,
                 struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
