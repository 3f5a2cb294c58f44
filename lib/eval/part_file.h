/* SPDX-License-Identifier: MIT */
/* part_file.h - files of parts of an evaluation
 *
 * A part is a GGUF file with its own general.type, a key PREFIX.version, other
 * keys, tensors of whole numbers, and at the end a tensor "checksum": 32
 * letters, XXH3-128 in hexadecimal of all bytes of the file before it. It
 * appears complete or not at all, and a change of any byte is found.
 */
#ifndef GG_EVAL_PART_FILE_H
#define GG_EVAL_PART_FILE_H

#include "base/error.h"
#include "gguf/writer.h"

#include <stdbool.h>
#include <xxhash.h>

/* Which parts: of imatrices, of scores. */
struct gg_part_kind {
    const char *type;   /* of general.type */
    const char *prefix; /* of keys, with a dot at its end */
    uint32_t version;
};

/* ---- writing: begin, add each array, open, put each array, commit ---- */

struct gg_part_out {
    const struct gguf_allocator *allocator;
    struct gguf_writer *w;
    XXH3_state_t *hash;
    uint64_t at; /* bytes of the file that it has */
    size_t next; /* tensor that comes next */
};

/* kind's own keys are added to meta. GGUF_E_NOMEM. */
enum gguf_status gg_part_begin(struct gg_part_out *o,
                               const struct gg_part_kind *kind,
                               struct gguf_meta *meta,
                               const struct gguf_allocator *a,
                               struct gguf_error *err);
/* An array of rows * columns numbers of a type of 1 or 8 bytes. */
enum gguf_status gg_part_add(struct gg_part_out *o, struct gguf_str name,
                             uint32_t dtype, uint64_t columns, uint64_t rows,
                             struct gguf_error *err);
enum gguf_status gg_part_open(struct gg_part_out *o, const char *path,
                              bool force, struct gguf_error *err);
/* The next array begins; all of it, or piece after piece, as bytes or as
 * numbers. */
enum gguf_status gg_part_next(struct gg_part_out *o, struct gguf_error *err);
enum gguf_status gg_part_put(struct gg_part_out *o, const void *data,
                             uint64_t size, struct gguf_error *err);
enum gguf_status gg_part_put64(struct gg_part_out *o, const uint64_t *v,
                               uint64_t n, struct gguf_error *err);
enum gguf_status gg_part_commit(struct gg_part_out *o, struct gguf_error *err);
/* In any case; zeroed is fine. */
void gg_part_fini(struct gg_part_out *o);

/* ---- reading ---- */

/* Open a part of that kind, whose bytes are as they were written. The statuses
 * of gguf_file_open; GGUF_E_NOTFOUND (another type), GGUF_E_VERSION,
 * GGUF_E_MISMATCH (the checksum). */
enum gguf_status gg_part_read(struct gguf_file **out,
                              const struct gg_part_kind *kind,
                              const char *path,
                              const struct gguf_file_params *params,
                              struct gguf_error *err);

/* The text of a key into size bytes at out; a number of one, from min to max.
 * GGUF_E_FORMAT, GGUF_E_TYPE, GGUF_E_NOTFOUND. */
enum gguf_status gg_part_read_text(const struct gguf_file *f, const char *key,
                                   char *out, size_t size,
                                   struct gguf_error *err);
enum gguf_status gg_part_read_uint(const struct gguf_file *f, const char *key,
                                   uint64_t min, uint64_t max, uint64_t *out,
                                   struct gguf_error *err);

/* Number i of a tensor of 8 bytes each, in the machine's order. */
uint64_t gg_part_get64(const struct gguf_file *f,
                       const struct gguf_tensor_info *t, uint64_t i);
/* Byte in the file where number i of that size begins. */
uint64_t gg_part_off(const struct gguf_file *f,
                     const struct gguf_tensor_info *t, uint64_t i,
                     unsigned size);

#endif
