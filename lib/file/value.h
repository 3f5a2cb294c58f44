/* SPDX-License-Identifier: MIT */
/* value.h - read and encode metadata entries
 *
 * An entry is a key (u64 length, bytes), a u32 type and a value. A value is a
 * scalar, a string (u64 length, bytes), or an array (u32 element type, u64
 * count, elements). struct gguf_kv points after the length or count.
 */
#ifndef GG_FILE_VALUE_H
#define GG_FILE_VALUE_H

#include "base/cursor.h"
#include "gguf/file.h"

#include <stdbool.h>

/* ---------------------------------------------------------------- names --- */

/* Description of a value for messages: "key 'NAME'" or "key 'NAME'[INDEX]",
 * escaped. */
struct gg_kv_label {
    char s[160];
};
/* Write the description of kv to l. Returns l->s. */
const char *gg_kv_label(struct gg_kv_label *l, const struct gguf_kv *kv);

/* ---------------------------------------------------------------- types --- */

enum gg_value_kind {
    GG_KIND_UINT,
    GG_KIND_INT,
    GG_KIND_FLOAT,
    GG_KIND_BOOL,
    GG_KIND_STR,
    GG_KIND_ARR
};
/* Kind of a value type. type is below GGUF_N_VAL_TYPES. */
enum gg_value_kind gg_value_kind(uint32_t type);

/* Load a number of size bytes: 1, 2, 4 or 8. */
uint64_t gg_value_load_bits(const void *p, size_t size, bool big_endian);

/* -------------------------------------------------------------- reading --- */

/* Bytes of the smallest entry: key length, a key of one byte, type, a value of
 * one byte. */
enum { GG_KV_MIN_SIZE = 8 + 1 + 4 + 1 };

/* Read and check the entry at the cursor, which moves after it. After a failure
 * the cursor may be inside the entry. Fails like gguf_file_open(). */
enum gguf_status gg_kv_read(struct gg_cursor *c,
                            const struct gguf_limits *limits,
                            struct gguf_kv *kv, struct gguf_error *err);

/* Read and check the value of kv, whose key and type are set. Fails like
 * gguf_file_open(). */
enum gguf_status gg_value_read(struct gg_cursor *c,
                               const struct gguf_limits *limits,
                               struct gguf_kv *kv, struct gguf_error *err);

/* -------------------------------------------------------------- writing --- */

/* Get the bytes of an encoded entry. Returns true if they do not fit in 63
 * bits. */
bool gg_kv_encoded_size(const struct gguf_kv *kv, uint64_t *size);

/* Encode an entry to out, which has room for it. */
void gg_kv_encode(const struct gguf_kv *kv, bool big_endian, uint8_t *out);

/* Reverse the bytes of every number in an encoded value, in place. big_endian
 * is its present order. */
void gg_value_payload_swap(uint8_t *data, size_t size, uint32_t type,
                           uint32_t elem_type, uint64_t n, bool big_endian);

#endif
