/* SPDX-License-Identifier: MIT */
/* safetensors_write.h - tensors written as .safetensors files
 *
 * Tensors are announced first, with the file that each goes to; then the
 * numbers of each are written, in the same order, as they come. Headers are
 * as safetensors.h has them, padded with blanks so that the numbers begin at a
 * multiple of 8 bytes, and the tensors of a file follow each other in the
 * order in which they were announced.
 */
#ifndef GG_DATA_SAFETENSORS_WRITE_H
#define GG_DATA_SAFETENSORS_WRITE_H

#include "base/error.h"
#include "base/mem.h"
#include "data/safetensors.h"

struct gg_safetensors_writer_tensor {
    struct gguf_str name; /* kept; a NUL follows */
    uint32_t dtype;       /* F32, F16, BF16 */
    unsigned n_dims;
    int64_t ne[4];
    uint64_t size;  /* bytes; filled in */
    size_t file_no; /* filled in */
};

struct gg_safetensors_writer {
    const struct gguf_allocator *allocator;
    struct gg_safetensors_writer_tensor *tensor; /* kept */
    size_t n;
    size_t n_files;
    uint64_t total; /* bytes of numbers */
};

/* Cut n tensors into files of at most max_size bytes of numbers (0: one file);
 * a tensor is not cut, and a larger one has a file of its own.
 * GGUF_E_OVERFLOW. */
enum gguf_status gg_safetensors_writer_divide(
    struct gg_safetensors_writer *w,
    struct gg_safetensors_writer_tensor *tensor, size_t n, uint64_t max_size,
    const struct gguf_allocator *allocator, struct gguf_error *err);

/* "model.safetensors", or "model-00001-of-00002.safetensors". */
void gg_safetensors_writer_file_name(const struct gg_safetensors_writer *w,
                                     size_t file_no, char out[64]);

/* What file file_no begins with, as a text of *size bytes that the caller frees
 * with gg_mem_free; the index, model.safetensors.index.json. GGUF_E_NOMEM. */
enum gguf_status
gg_safetensors_writer_header(const struct gg_safetensors_writer *w,
                             size_t file_no, uint8_t **out, size_t *size,
                             struct gguf_error *err);
enum gguf_status
gg_safetensors_writer_index(const struct gg_safetensors_writer *w, char **out,
                            size_t *size, struct gguf_error *err);

#endif
