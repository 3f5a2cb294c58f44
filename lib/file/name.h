/* SPDX-License-Identifier: MIT */
/* name.h - read and check keys and names of tensors, and parse numbers in
 * them */
#ifndef GG_FILE_NAME_H
#define GG_FILE_NAME_H

#include "base/cursor.h"
#include "gguf/file.h"

/* Describe the fault of a key or a tensor's name: "is empty", "holds a control
 * character", "is not UTF-8". NULL: no fault. */
const char *gg_name_find_fault(struct gguf_str name);

/* Read the name at the cursor: u64 length, bytes.
 *
 * what     Kind of name for messages, such as "key".
 * length   Name of its length for messages, such as "key length".
 * max      Largest number of bytes.
 *
 * GGUF_E_TRUNCATED: past the end of the file. GGUF_E_LIMIT: longer than max.
 * GGUF_E_FORMAT: the name has a fault. */
enum gguf_status gg_name_read(struct gg_cursor *c, const char *what,
                              const char *length, uint64_t max,
                              struct gguf_str *name, struct gguf_error *err);

/* Remove "FIRSTN." from the beginning of *name, as gguf_layer_from_name() does
 * with "blk.N.". Returns N; -1, and *name stays, if it begins differently. */
int64_t gg_name_cut_index(struct gguf_str *name, const char *first);

#endif
