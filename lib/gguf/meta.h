/* SPDX-License-Identifier: MIT */
/* meta.h - lists of metadata pairs, for writing and editing files
 *
 * A struct gguf_meta is an ordered list of metadata pairs in memory. Its keys
 * are distinct: setting a key that exists replaces the value and keeps its
 * place; a new key goes to the end. Keys and values are copied. Keys are
 * NUL-terminated: 1 to 65535 bytes of UTF-8 without control characters.
 *
 *   1. gguf_meta_create() makes an empty list.
 *   2. gguf_meta_copy_file() and gguf_meta_set_*() fill it.
 *   3. gguf_writer_create() (writer.h) or gguf_edit_apply() (edit.h) uses it.
 *   4. gguf_meta_destroy() frees it.
 *
 *     if (gguf_meta_create(&meta, NULL, &err) != GGUF_OK ||
 *         gguf_meta_set_strz(meta, "general.architecture", "llama", &err) ||
 *         gguf_meta_set_u32(meta, "llama.block_count", 32, &err))
 *         return fail(err.message);
 *
 * One thread at a time may use a list.
 */
#ifndef GGUF_META_H
#define GGUF_META_H

#include <gguf/kv.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_meta;

/* Create an empty list.
 *
 * out         Receives the list. NULL after a failure.
 * allocator   Allocator of the list. It must outlive the list. NULL: malloc.
 *
 * Destroy *out with gguf_meta_destroy().
 *
 * GGUF_OK        *out is the list.
 * GGUF_E_NOMEM   Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_meta_create(struct gguf_meta **out,
                 const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Destroy a list. Pairs that it returned become invalid. NULL is allowed.
 * Since: 0.1 */
GGUF_API void gguf_meta_destroy(struct gguf_meta *m);

/* Number of pairs. Since: 0.1 */
GGUF_API size_t gguf_meta_n_kv(const struct gguf_meta *m);

/* Pair i in order; NULL if i is out of range. It is valid until the list
 * changes. Since: 0.1 */
GGUF_API const struct gguf_kv *gguf_meta_kv(const struct gguf_meta *m,
                                            size_t i);

/* Pair with this key; NULL if the list does not have it. It is valid until the
 * list changes. Since: 0.1 */
GGUF_API const struct gguf_kv *gguf_meta_find(const struct gguf_meta *m,
                                              const char *key);

/* Set a scalar value.
 *
 * m     The list.
 * key   Key, NUL-terminated.
 * v     The value.
 *
 * GGUF_OK          The pair is set.
 * GGUF_E_INVALID   The key is not allowed.
 * GGUF_E_NOMEM     Out of memory. The list is unchanged.
 *
 * Since: 0.1 */
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
gguf_meta_set_bool(struct gguf_meta *m, const char *key, bool v,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Set a string.
 *
 * m     The list.
 * key   Key, NUL-terminated.
 * v     The string: with a length for gguf_meta_set_str(), NUL-terminated for
 *       gguf_meta_set_strz().
 *
 * GGUF_OK          The pair is set.
 * GGUF_E_INVALID   The key is not allowed.
 * GGUF_E_NOMEM     Out of memory. The list is unchanged.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_meta_set_str(struct gguf_meta *m, const char *key, struct gguf_str v,
                  struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_meta_set_strz(struct gguf_meta *m, const char *key, const char *v,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Set an array of scalars.
 *
 * m           The list.
 * key         Key, NUL-terminated.
 * elem_type   enum gguf_val_type of the elements, not GGUF_VAL_STR or
 *             GGUF_VAL_ARR.
 * v           n elements, as in a C array of that type; for GGUF_VAL_BOOL one
 *             byte each, 0 or 1. May be NULL if n is 0.
 * n           Number of elements.
 *
 * GGUF_OK           The pair is set.
 * GGUF_E_INVALID    The key or elem_type is not allowed, or a bool is neither
 *                   0 nor 1.
 * GGUF_E_OVERFLOW   The address space cannot hold n elements.
 * GGUF_E_NOMEM      Out of memory. The list is unchanged.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_meta_set_array(struct gguf_meta *m, const char *key, uint32_t elem_type,
                    const void *v, uint64_t n,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Set an array of strings.
 *
 * m     The list.
 * key   Key, NUL-terminated.
 * v     n strings. May be NULL if n is 0.
 * n     Number of strings.
 *
 * GGUF_OK          The pair is set.
 * GGUF_E_INVALID   The key is not allowed.
 * GGUF_E_NOMEM     Out of memory. The list is unchanged.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_meta_set_str_array(struct gguf_meta *m, const char *key,
                        const struct gguf_str *v, uint64_t n,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Set a value of any type from its encoded bytes. The only way to set nested
 * arrays.
 *
 * m       The list.
 * key     Key, NUL-terminated.
 * type    enum gguf_val_type of the value.
 * bytes   The value as it stands after the type id in a little-endian file: a
 *         string with its length, an array with element type and count.
 * size    Number of bytes.
 *
 * The bytes are checked as in a file, with the default limits.
 *
 * GGUF_OK           The pair is set.
 * GGUF_E_INVALID    The key is not allowed.
 * GGUF_E_FORMAT     The type is unknown, a bool is neither 0 nor 1, or bytes
 *                   follow the value.
 * GGUF_E_TRUNCATED  The value needs more than size bytes.
 * GGUF_E_LIMIT      A string, an array or its depth exceeds a default limit.
 * GGUF_E_NOMEM      Out of memory. The list is unchanged.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_meta_set_encoded(struct gguf_meta *m, const char *key, uint32_t type,
                      const void *bytes, size_t size,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Set a copy of a pair of a file or list.
 *
 * m     The list.
 * key   Key of the copy, NUL-terminated. NULL: the key of kv.
 * kv    The pair to copy. It must not be an element of an array.
 *
 * GGUF_OK          The pair is set.
 * GGUF_E_INVALID   The key is not allowed.
 * GGUF_E_NOMEM     Out of memory. The list is unchanged.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_meta_set_kv(struct gguf_meta *m, const char *key,
                 const struct gguf_kv *kv,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Set copies of all pairs of a file, in its order.
 *
 * m      The list. It may have pairs already.
 * file   An open file.
 *
 * GGUF_OK          All pairs are set.
 * GGUF_E_INVALID   A key of the file is longer than a list allows.
 * GGUF_E_NOMEM     Out of memory. Some pairs may be set.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_meta_copy_file(struct gguf_meta *m, const struct gguf_file *file,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Remove a pair. Returns false if the list does not have the key.
 * Since: 0.1 */
GGUF_API bool gguf_meta_remove(struct gguf_meta *m, const char *key);

/* Change the key of a pair, which keeps its place and value.
 *
 * m      The list.
 * from   Present key, NUL-terminated.
 * to     New key, NUL-terminated.
 *
 * GGUF_OK            The key is changed, or to is the same as from.
 * GGUF_E_NOTFOUND    The list does not have the key from. The message suggests
 *                    a similar one.
 * GGUF_E_DUPLICATE   Another pair has the key to.
 * GGUF_E_INVALID     The key to is not allowed.
 * GGUF_E_NOMEM       Out of memory. The list is unchanged.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_meta_rename(struct gguf_meta *m, const char *from, const char *to,
                 struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
