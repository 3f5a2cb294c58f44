/* SPDX-License-Identifier: MIT */
/* header.h - the fixed head of a file, and the entries of its tensor list
 *
 * Head: "GGUF", u32 version, u64 number of tensors, u64 number of keys. Then
 * come the metadata entries (value.h), then the tensor list: each a name (u64
 * length, bytes), u32 number of dimensions, u64 each, u32 type, u64 offset.
 */
#ifndef GG_FILE_HEADER_H
#define GG_FILE_HEADER_H

#include "base/cursor.h"
#include "gguf/file.h"

enum { GG_HEAD_SIZE = 4 + 4 + 8 + 8 };

/* Smallest entry of the tensor list: length, one byte, no dimensions. */
enum { GG_INFO_MIN_SIZE = 8 + 1 + 4 + 4 + 8 };

struct gg_file_head {
    uint32_t version;
    uint64_t n_tensors, n_kv;
};

/* Read and check; sets c->swap. GGUF_E_FORMAT, GGUF_E_VERSION,
 * GGUF_E_TRUNCATED (also for counts that the file is too short for),
 * GGUF_E_LIMIT. */
enum gguf_status gg_file_head_read(struct gg_cursor *c,
                                   const struct gguf_limits *limits,
                                   struct gg_file_head *h,
                                   struct gguf_error *err);

/* GG_HEAD_SIZE bytes. */
void gg_file_head_encode(const struct gg_file_head *h, bool big_endian,
                         uint8_t *out);

/* The next entry: name, type, dimensions and offset checked for themselves,
 * size computed (layout.h). index is left alone. */
enum gguf_status gg_tensor_info_read(struct gg_cursor *c,
                                     const struct gguf_limits *limits,
                                     struct gguf_tensor_info *t,
                                     struct gguf_error *err);

size_t gg_tensor_info_encoded_size(const struct gguf_tensor_info *t);
void gg_tensor_info_encode(const struct gguf_tensor_info *t, bool big_endian,
                           uint8_t *out);

#endif
