/* SPDX-License-Identifier: MIT */
/* name.h - names of keys and of tensors: how they are read, what they may look
 * like, and what they say */
#ifndef GG_FILE_NAME_H
#define GG_FILE_NAME_H

#include "base/cursor.h"
#include "gguf/file.h"

/* What is wrong with a key or a tensor's name, or NULL: "is empty", "holds a
 * control character", "is not UTF-8". */
const char *gg_name_find_fault(struct gguf_str name);

/* The name at the cursor, a u64 length and bytes of which there is nothing
 * wrong. what it is of, "key", and length, "key length", are for messages.
 * GGUF_E_TRUNCATED, GGUF_E_LIMIT for more than max bytes, GGUF_E_FORMAT. */
enum gguf_status gg_name_read(struct gg_cursor *c, const char *what,
                              const char *length, uint64_t max,
                              struct gguf_str *name, struct gguf_error *err);

/* Cut "FIRSTN." off *name, as gguf_layer_from_name() cuts "blk.N.": N, or -1
 * and *name stays. */
int64_t gg_name_cut_index(struct gguf_str *name, const char *first);

#endif
