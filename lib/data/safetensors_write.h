/* SPDX-License-Identifier: MIT */
/* safetensors_write.h - write tensors as .safetensors files
 *
 * Tensors are announced first and assigned to files. Then the caller writes
 * each file: the header, padded with blanks so that numbers begin at a multiple
 * of 8 bytes, and the numbers of its tensors in the order announced.
 * safetensors.h describes the format.
 */
#ifndef GG_DATA_SAFETENSORS_WRITE_H
#define GG_DATA_SAFETENSORS_WRITE_H

#include "base/error.h"
#include "base/mem.h"
#include "data/safetensors.h"

struct gg_safetensors_writer_tensor {
    struct gguf_str name; /* kept; followed by a NUL */
    uint32_t dtype;       /* F32, F16 or BF16 */
    unsigned n_dims;
    int64_t ne[5];
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

/* Divide n tensors into files of at most max_size bytes of numbers (0: one
 * file). A tensor is never divided; a larger one gets its own file.
 * GGUF_E_OVERFLOW. */
enum gguf_status gg_safetensors_writer_divide(
    struct gg_safetensors_writer *w,
    struct gg_safetensors_writer_tensor *tensor, size_t n, uint64_t max_size,
    const struct gguf_allocator *allocator, struct gguf_error *err);

/* Format the name of a file: "model.safetensors", or
 * "model-00001-of-00002.safetensors". */
void gg_safetensors_writer_file_name(const struct gg_safetensors_writer *w,
                                     size_t file_no, char out[64]);

/* Make the header of a file, or the index model.safetensors.index.json, as a
 * text of *size bytes. The caller frees it with gg_mem_free. GGUF_E_NOMEM. */
enum gguf_status
gg_safetensors_writer_header(const struct gg_safetensors_writer *w,
                             size_t file_no, uint8_t **out, size_t *size,
                             struct gguf_error *err);
enum gguf_status
gg_safetensors_writer_index(const struct gg_safetensors_writer *w, char **out,
                            size_t *size, struct gguf_error *err);

#endif
