/* SPDX-License-Identifier: MIT */
/* layout.h - where tensor data lies: the only place with alignment arithmetic
 */
#ifndef GG_FILE_LAYOUT_H
#define GG_FILE_LAYOUT_H

#include "base/error.h"
#include "gguf/file.h"

#include <stdbool.h>

enum { GG_ALIGN_DEFAULT = 32, GG_ALIGN_MIN = 8 };

/* *align from the value of general.alignment (NULL: the default). A power of
 * two from 8 on, as the specification's "multiple of 8" and every known
 * reader allow together; else GGUF_E_FORMAT. */
enum gguf_status gg_file_align_from_kv(const struct gguf_kv *kv,
                                       uint32_t *align,
                                       struct gguf_error *err);

/* off rounded up to align; true if that leaves 63 bits. */
bool gg_file_align_up(uint64_t *out, uint64_t off, uint32_t align);

/* Fill t->n_elements and t->size from its type and ne[0 .. n_dims). A type
 * without a known size gets size 0 and size_inferred 1. at: the offset that
 * errors report. GGUF_E_FORMAT (a dimension is 0), GGUF_E_OVERFLOW,
 * GGUF_E_SHAPE. */
enum gguf_status gg_file_tensor_measure(struct gguf_tensor_info *t,
                                        uint64_t at, struct gguf_error *err);

/* A tensor's place in the data. */
struct gg_file_place {
    uint64_t off;
    uint32_t index;
};

/* Check the places of n tensors in a file of size bytes, whose data begin at
 * data_off, which is no more (places comes back sorted by offset): aligned,
 * inside, apart from each other. Fills in sizes that are to be inferred. *end
 * is where the last one ends. GGUF_E_FORMAT, GGUF_E_TRUNCATED. */
enum gguf_status gg_file_layout_check(struct gguf_tensor_info *t, size_t n,
                                      struct gg_file_place *places,
                                      uint64_t data_off, uint64_t size,
                                      uint32_t align, uint64_t *end,
                                      struct gguf_error *err);

/* Put a tensor of t->size bytes at *end, which moves after its padding.
 * GGUF_E_OVERFLOW. */
enum gguf_status gg_file_layout_append(struct gguf_tensor_info *t,
                                       uint64_t *end, uint32_t align,
                                       struct gguf_error *err);

#endif
