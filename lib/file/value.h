/* SPDX-License-Identifier: MIT */
/* value.h - metadata entries between bytes and struct gguf_kv
 *
 * An entry is a key (u64 length, bytes), a u32 type and a value. A value is a
 * scalar; a string (u64 length, bytes); or an array (u32 element type, u64
 * count, elements as they would be alone). struct gguf_kv points at what comes
 * after length or count.
 */
#ifndef GG_FILE_VALUE_H
#define GG_FILE_VALUE_H

#include "base/cursor.h"
#include "gguf/file.h"

#include <stdbool.h>

/* ---------------------------------------------------------------- names --- */

/* "key 'NAME'" or "key 'NAME'[INDEX]", escaped, for messages. */
struct gg_kv_label {
    char s[160];
};
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
/* type < GGUF_N_VAL_TYPES */
enum gg_value_kind gg_value_kind(uint32_t type);

/* size (1, 2, 4, 8) bytes as a number. */
uint64_t gg_value_load_bits(const void *p, size_t size, bool big_endian);

/* -------------------------------------------------------------- reading --- */

/* Smallest entry: key length, one byte of key, type, one byte of value. */
enum { GG_KV_MIN_SIZE = 8 + 1 + 4 + 1 };

/* The entry at the cursor, checked throughout; the cursor moves after it. On
 * failure the cursor is somewhere inside. */
enum gguf_status gg_kv_read(struct gg_cursor *c,
                            const struct gguf_limits *limits,
                            struct gguf_kv *kv, struct gguf_error *err);

/* Only the value of type kv->type, for kv->key. */
enum gguf_status gg_value_read(struct gg_cursor *c,
                               const struct gguf_limits *limits,
                               struct gguf_kv *kv, struct gguf_error *err);

/* -------------------------------------------------------------- writing --- */

/* Bytes of an entry, or true if that overflows. */
bool gg_kv_encoded_size(const struct gguf_kv *kv, uint64_t *size);

/* Write the entry into out, which has room; in this byte order. */
void gg_kv_encode(const struct gguf_kv *kv, bool big_endian, uint8_t *out);

/* Reverse the bytes of every number of a payload, in place. big_endian is the
 * order that it has before. */
void gg_value_payload_swap(uint8_t *data, size_t size, uint32_t type,
                           uint32_t elem_type, uint64_t n, bool big_endian);

#endif
