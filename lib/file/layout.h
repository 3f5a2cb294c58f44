/* SPDX-License-Identifier: MIT */
/* layout.h - offsets of tensor data; no other file computes with alignments */
#ifndef GG_FILE_LAYOUT_H
#define GG_FILE_LAYOUT_H

#include "base/error.h"
#include "gguf/file.h"

#include <stdbool.h>

enum { GG_ALIGN_DEFAULT = 32, GG_ALIGN_MIN = 8 }; /* bytes */

/* Get the alignment from general.alignment, or the default if kv is NULL.
 * GGUF_E_FORMAT: not a power of two of at least 8. The specification asks for a
 * multiple of 8, and all known readers for a power of two. */
enum gguf_status gg_file_align_from_kv(const struct gguf_kv *kv,
                                       uint32_t *align,
                                       struct gguf_error *err);

/* Round off up to a multiple of align. Returns true if the result does not fit
 * in 63 bits. */
bool gg_file_align_up(uint64_t *out, uint64_t off, uint32_t align);

/* Compute t->n_elements and t->size from its type and ne[0 .. n_dims). If the
 * size of the type is unknown, size is 0 and size_inferred is set. at is the
 * offset of errors. GGUF_E_FORMAT: a dimension is 0. GGUF_E_OVERFLOW: too
 * large. GGUF_E_SHAPE: a row is not a multiple of the type's block. */
enum gguf_status gg_file_tensor_measure(struct gguf_tensor_info *t,
                                        uint64_t at, struct gguf_error *err);

/* Has the tensor a dimension of 0 and none below? Its sizes are 0 then, and its
 * dimensions from n_dims on 1. */
bool gg_file_tensor_is_empty(struct gguf_tensor_info *t);

/* Place of a tensor in the data. */
struct gg_file_place {
    uint64_t off;   /* byte from the start of the data */
    uint32_t index; /* index of the tensor */
};

/* Check that tensors are aligned, inside the file, and do not overlap. Sets
 * sizes that are inferred.
 *
 * t          n tensors.
 * places     Receives their n places, sorted by offset.
 * data_off   Byte of the file where tensor data begins, at most size.
 * size       Bytes of the file.
 * align      Alignment in bytes.
 * end        Receives the end of the last tensor, from the start of the data.
 *
 * GGUF_E_FORMAT: not aligned, or an overlap. GGUF_E_TRUNCATED: a tensor reaches
 * past the end of the file. */
enum gguf_status gg_file_layout_check(struct gguf_tensor_info *t, size_t n,
                                      struct gg_file_place *places,
                                      uint64_t data_off, uint64_t size,
                                      uint32_t align, uint64_t *end,
                                      struct gguf_error *err);

/* Place a tensor of t->size bytes at *end, and move *end after its padding.
 * GGUF_E_OVERFLOW: does not fit in 63 bits. */
enum gguf_status gg_file_layout_append(struct gguf_tensor_info *t,
                                       uint64_t *end, uint32_t align,
                                       struct gguf_error *err);

#endif
