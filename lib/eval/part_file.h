/* SPDX-License-Identifier: MIT */
/* part_file.h - files of parts of an evaluation
 *
 * A part is a GGUF file with its own general.type, a key PREFIX.version, other
 * keys, tensors of numbers, and at the end a tensor "checksum": 32 characters,
 * XXH3-128 in hexadecimal of all bytes before it. The file appears complete or
 * not at all, and a change of any byte is detected. */
#ifndef GG_EVAL_PART_FILE_H
#define GG_EVAL_PART_FILE_H

#include "base/error.h"
#include "gguf/writer.h"

#include <stdbool.h>
#include <xxhash.h>

/* Kind of a part: of importance data, of scores. */
struct gg_part_kind {
    const char *type;   /* value of general.type */
    const char *prefix; /* prefix of its keys, with the dot */
    uint32_t version;
};

/* ---- writing: begin, add each array, open, put each array, commit ---- */

struct gg_part_out {
    const struct gguf_allocator *allocator;
    struct gguf_writer *w;
    XXH3_state_t *hash;
    uint64_t at; /* bytes in the hash */
    size_t next; /* index of the next tensor */
};

/* Begin a file; the keys of its kind are added to meta. GGUF_E_NOMEM. */
enum gguf_status gg_part_begin(struct gg_part_out *o,
                               const struct gg_part_kind *kind,
                               struct gguf_meta *meta,
                               const struct gguf_allocator *a,
                               struct gguf_error *err);
/* Add an array of rows * columns numbers. The type has 1 or 8 bytes. */
enum gguf_status gg_part_add(struct gg_part_out *o, struct gguf_str name,
                             uint32_t dtype, uint64_t columns, uint64_t rows,
                             struct gguf_error *err);
enum gguf_status gg_part_open(struct gg_part_out *o, const char *path,
                              bool force, struct gguf_error *err);
/* Begin the next array. Then: write some of it, as bytes or as numbers. */
enum gguf_status gg_part_next(struct gg_part_out *o, struct gguf_error *err);
enum gguf_status gg_part_put(struct gg_part_out *o, const void *data,
                             uint64_t size, struct gguf_error *err);
enum gguf_status gg_part_put64(struct gg_part_out *o, const uint64_t *v,
                               uint64_t n, struct gguf_error *err);
enum gguf_status gg_part_commit(struct gg_part_out *o, struct gguf_error *err);
/* Free everything, committed or not. A zeroed struct is allowed. */
void gg_part_fini(struct gg_part_out *o);

/* ---- reading ---- */

/* Open a part of a kind, and check that its bytes are as they were written.
 * GGUF_E_NOTFOUND: another type. GGUF_E_VERSION. GGUF_E_MISMATCH: the checksum
 * is wrong. Also fails as gguf_file_open() does. */
enum gguf_status gg_part_read(struct gguf_file **out,
                              const struct gg_part_kind *kind,
                              const char *path,
                              const struct gguf_file_params *params,
                              struct gguf_error *err);

/* Read the text of a key into out, size bytes. Then: read an integer from min
 * to max. GGUF_E_FORMAT, GGUF_E_TYPE, GGUF_E_NOTFOUND. */
enum gguf_status gg_part_read_text(const struct gguf_file *f, const char *key,
                                   char *out, size_t size,
                                   struct gguf_error *err);
enum gguf_status gg_part_read_uint(const struct gguf_file *f, const char *key,
                                   uint64_t min, uint64_t max, uint64_t *out,
                                   struct gguf_error *err);

/* Number i of a tensor of 8-byte numbers, in the machine's order. */
uint64_t gg_part_get64(const struct gguf_file *f,
                       const struct gguf_tensor_info *t, uint64_t i);
/* Byte of the file at which number i of size bytes begins. */
uint64_t gg_part_off(const struct gguf_file *f,
                     const struct gguf_tensor_info *t, uint64_t i,
                     unsigned size);

#endif
