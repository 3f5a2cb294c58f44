/* SPDX-License-Identifier: MIT */
/* rows_apart.h - weights of interleaved types, with their rows apart
 *
 * Kernels multiply rows that lie apart. A weight of an interleaved type
 * (dtype/interleave.h) is copied when its model is opened, row by row, as a
 * tensor of the plain type. No other file knows of groups of rows.
 */
#ifndef GG_MODEL_WEIGHT_ROWS_APART_H
#define GG_MODEL_WEIGHT_ROWS_APART_H

#include "file/file_int.h"

#include <stdbool.h>

/* Does a model use the tensor's rows only after they are copied apart? */
bool gg_rows_apart_is_needed(const struct gguf_tensor_info *t);

/* Can the tensor's rows be copied apart? They form whole groups, and the file
 * is little-endian. */
bool gg_rows_apart_is_possible(const struct gguf_file *f,
                               const struct gguf_tensor_info *t);

/* Type and size in bytes of the rows apart; the tensor's own for types that are
 * not interleaved. */
uint32_t gg_rows_apart_dtype(const struct gguf_tensor_info *t);
uint64_t gg_rows_apart_size(const struct gguf_tensor_info *t);

/* Read a tensor and copy its rows apart, a group at a time.
 *
 * dst  receives gg_rows_apart_size() bytes
 *
 * gg_rows_apart_is_possible() must be true. The pages of the tensor in the
 * file's mapping are released.
 *
 * GGUF_E_NOMEM       The allocator failed.
 * GGUF_E_IO          Reading failed.
 * GGUF_E_TRUNCATED   The file has become shorter. */
enum gguf_status gg_rows_apart_read(const struct gguf_file *f,
                                    const struct gguf_tensor_info *t,
                                    void *dst, const struct gguf_allocator *a,
                                    struct gguf_error *err);

#endif
