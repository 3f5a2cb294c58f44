/* SPDX-License-Identifier: MIT */
/* part_int.h - a part in memory */
#ifndef GG_EVAL_PART_INT_H
#define GG_EVAL_PART_INT_H

#include "base/error.h"
#include "base/index.h"
#include "base/mem.h"
#include "gguf/part.h"

enum {
    GG_PART_MAX_ROW_VALUES = 4096,
    GG_PART_MAX_CHUNK_VALUES = 64,
    GG_PART_MAX_NAME = 40
};

/* Pairs of name and value. */
struct gg_part_pairs {
    struct gg_part_pair {
        const char *name, *value;
    } * list;
    size_t n, room;
    struct gg_index index; /* index of the pairs by name */
};

struct gguf_part {
    const struct gguf_allocator *allocator;
    struct gg_mem_arena arena; /* names and values */
    struct gg_part_pairs settings, notes;
    size_t n_chunks, n_chunk_values, n_row_values, n_done;
    struct gg_part_chunk {
        double
            *record; /* [n_chunk_values + n * n_row_values]; NULL: not done */
        size_t n;    /* rows */
    } * chunk;       /* [n_chunks] */
};

/* Set a pair; name and value are copied, and an earlier value is replaced.
 * GGUF_E_INVALID: the name is not allowed. GGUF_E_NOMEM. */
enum gguf_status gg_part_set_pair(struct gguf_part *p, struct gg_part_pairs *l,
                                  struct gguf_str name, struct gguf_str value,
                                  struct gguf_error *err);
/* Add a record for a chunk of n rows. The caller sets its numbers, *size of
 * them. GGUF_E_NOMEM. */
enum gguf_status gg_part_add_record(struct gguf_part *p, size_t chunk,
                                    uint64_t n, size_t *size,
                                    struct gguf_error *err);

#endif
