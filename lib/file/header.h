/* SPDX-License-Identifier: MIT */
/* header.h - read and encode the head of a file and entries of its tensor list
 *
 * The head is "GGUF", u32 version, u64 number of tensors, u64 number of keys.
 * Metadata entries follow (value.h), then the list of tensors. An entry of that
 * list is a name (u64 length, bytes), u32 number of dimensions, a u64 for each,
 * u32 type, u64 offset.
 */
#ifndef GG_FILE_HEADER_H
#define GG_FILE_HEADER_H

#include "base/cursor.h"
#include "gguf/file.h"

enum { GG_HEAD_SIZE = 4 + 4 + 8 + 8 }; /* bytes of the head */

/* Bytes of the smallest entry: length, a name of one byte, no dimensions. */
enum { GG_INFO_MIN_SIZE = 8 + 1 + 4 + 4 + 8 };

struct gg_file_head {
    uint32_t version;         /* version of GGUF */
    uint64_t n_tensors, n_kv; /* number of tensors and of keys */
};

/* Read and check the head at the cursor. Sets c->swap.
 *
 * GGUF_E_FORMAT: wrong magic. GGUF_E_VERSION: unsupported version.
 * GGUF_E_TRUNCATED: the file is too short, also for the counts.
 * GGUF_E_LIMIT: a count exceeds limits. */
enum gguf_status gg_file_head_read(struct gg_cursor *c,
                                   const struct gguf_limits *limits,
                                   struct gg_file_head *h,
                                   struct gguf_error *err);

/* Encode a head: GG_HEAD_SIZE bytes at out. */
void gg_file_head_encode(const struct gg_file_head *h, bool big_endian,
                         uint8_t *out);

/* Read the entry at the cursor, check each of its fields, and compute its size
 * (layout.h). may_be_empty: dimensions may be 0. t->index and t->shard are not
 * set. */
enum gguf_status gg_tensor_info_read(struct gg_cursor *c,
                                     const struct gguf_limits *limits,
                                     bool may_be_empty,
                                     struct gguf_tensor_info *t,
                                     struct gguf_error *err);

/* Bytes of an encoded entry. */
size_t gg_tensor_info_encoded_size(const struct gguf_tensor_info *t);
/* Encode an entry: gg_tensor_info_encoded_size() bytes at out. */
void gg_tensor_info_encode(const struct gguf_tensor_info *t, bool big_endian,
                           uint8_t *out);

#endif
