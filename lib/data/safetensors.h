/* SPDX-License-Identifier: MIT */
/* safetensors.h - the tensors of a Hugging Face folder as a list
 *
 * A .safetensors file is the length of a header, 8 bytes little-endian, the
 * header, a JSON object, and then the numbers, little-endian and in C order:
 *
 *     { "__metadata__": { text: text, ... },
 *       NAME: { "dtype": "F32", "shape": [rows, columns],
 *               "data_offsets": [begin, end] }, ... }
 *
 * where offsets count from the end of the header; tensors follow each other
 * without gaps and fill the file. (huggingface/safetensors, README and
 * tensor.rs.) A folder has one, model.safetensors, or several, and then
 * model.safetensors.index.json: { "weight_map": { NAME: file, ... } }. Where
 * both are there, model.safetensors is read alone, as transformers reads it
 * (_get_resolved_checkpoint_files of modeling_utils.py). All of it is checked
 * when it is opened; no file outside of the folder is named by an index (links
 * in it are followed: the folders of Hugging Face's cache consist of them).
 *
 * A tensor NAME of 8-bit floats may have a scale, NAME_scale_inv or
 * NAME_scale, or BASE.scale if it is BASE.weight, by which its numbers are
 * multiplied: one, or in each dimension one, one for each, or one for each
 * 128. Weights of fewer bits: packed.h, nibbles.h.
 */
#ifndef GG_DATA_SAFETENSORS_H
#define GG_DATA_SAFETENSORS_H

#include "base/index.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "base/resident.h"
#include "data/data.h"
#include "data/dir.h"
#include "gguf/paths.h"

/* A header's length at most: what the reference reads. */
#define GG_SAFETENSORS_HEADER 100000000

/* Id instead of a dtype where GGUF has no such type. */
#define GG_SAFETENSORS_NO_DTYPE UINT32_MAX

/* A type of numbers. */
struct gg_safetensors_type {
    const char *name;
    unsigned bits; /* of an element */
    uint32_t
        dtype; /* the same in GGUF; GG_SAFETENSORS_NO_DTYPE: there is none */
    float (*f8)(uint8_t x); /* what 8 bits mean where there is none, or NULL */
    uint32_t own; /* what a matrix of it becomes unless another is asked for;
                   * GG_SAFETENSORS_NO_DTYPE: it is not of numbers */
};

/* Factors of a tensor's numbers. */
struct gg_safetensors_scale {
    uint64_t n[GGUF_MAX_DIMS];   /* scales in each dimension */
    uint64_t per[GGUF_MAX_DIMS]; /* elements that share one */
    float value[];               /* fastest dimension first */
};

/* A million of them take some 200 MB: what few tensors have lies elsewhere. */
struct gg_safetensors_tensor {
    struct gguf_str name; /* a NUL follows */
    const struct gg_safetensors_type *type;
    unsigned n_dims;
    int64_t ne[GGUF_MAX_DIMS]; /* elements, fastest dimension first; 1 from
                                * n_dims on */
    uint64_t n_elements, size; /* size: bytes */
    uint64_t off;              /* byte of its file where the numbers begin */
    uint32_t file_no;          /* UINT32_MAX: memory */
    bool is_part;              /* of another tensor, as its scale is */
    bool is_index; /* given as I32 (gg_safetensors_convert_to_i32) */
    const struct gg_packed *packed;   /* its numbers are in several (packed.h);
                                     * or NULL */
    const struct gg_nibbles *nibbles; /* the same (nibbles.h) */
    const struct gg_safetensors_scale *scale; /* NULL: no scales */
    const uint8_t *data;                      /* the numbers, for rows */
};

struct gg_safetensors_file {
    char *path;                   /* NULL: memory */
    struct gguf_str name, prefix; /* prefix: before the names of its tensors */
    struct gg_mapfile map;
    struct gg_resident held; /* of a map through a function */
    uint64_t data_off;       /* byte after the header */
    size_t first_tensor, n_tensors;
};

struct gg_safetensors {
    struct gg_data list; /* in the order of files, and in each of the header */
    const struct gguf_allocator *allocator;
    const struct gg_codec_kern *codec; /* [GG_N_DTYPES]; kept */
    struct gguf_limits limits;
    struct gg_mem_arena arena;
    struct gg_safetensors_file **file; /* each stays where it is */
    size_t n_files, room_files;
    struct gg_safetensors_tensor *tensor;
    size_t n_tensors, room_tensors;
    struct gg_index index;
    char single_name[64], index_name[64]; /* of files */
    uint64_t block[2]; /* columns and rows that share a scale, where it is
                        * neither all nor one: 128 */
};

/* Open NAME.safetensors of a folder, or, where there is none, what
 * NAME.safetensors.index.json lists; its opener and what that gives are kept.
 * Of an opener's file the header is read, and the numbers of what is held
 * (data.h). limits: NULL is the defaults; names and their number, dimensions.
 * GGUF_E_NOTFOUND (there is neither an index nor model.safetensors; a tensor of
 * the index is not in its file), GGUF_E_FORMAT, GGUF_E_TRUNCATED,
 * GGUF_E_OVERFLOW, GGUF_E_LIMIT, GGUF_E_DUPLICATE, GGUF_E_MISMATCH (a tensor
 * that the index does not have, or has in another file), GGUF_E_TENSOR
 * (scales), GGUF_E_UNSUPPORTED (types), GGUF_E_IO, GGUF_E_NOMEM; messages begin
 * with the name of the file. */
enum gguf_status
gg_safetensors_open(struct gg_safetensors **out, const struct gg_dir *folder,
                    const char *name, const struct gguf_limits *limits,
                    const struct gg_codec_kern *codec, struct gguf_error *err);
/* The same of the bytes of one file, which are kept. */
enum gguf_status gg_safetensors_open_memory(
    struct gg_safetensors **out, const void *data, size_t size,
    const struct gguf_limits *limits, const struct gg_codec_kern *codec,
    const struct gguf_allocator *allocator, struct gguf_error *err);
/* A list without tensors. GGUF_E_NOMEM. */
enum gguf_status gg_safetensors_create(struct gg_safetensors **out,
                                       const struct gg_codec_kern *codec,
                                       const struct gguf_allocator *allocator,
                                       struct gguf_error *err);
/* Add the tensors of another file, path in a folder, each with prefix before
 * its name: *there is false where there is no such file. What opening one
 * returns; s is to be closed then. */
enum gguf_status gg_safetensors_add_file(struct gg_safetensors *s,
                                         const struct gg_dir *folder,
                                         const char *path, const char *prefix,
                                         bool *there, struct gguf_error *err);
/* NULL is fine. */
void gg_safetensors_close(struct gg_safetensors *s);

/* The place of a tensor; GG_INDEX_NONE: there is none. */
uint32_t gg_safetensors_find(const struct gg_safetensors *s,
                             struct gguf_str name);

/* Room for one tensor more, past those that there are, or NULL. */
struct gg_safetensors_tensor *
gg_safetensors_reserve_tensor(struct gg_safetensors *s,
                              struct gguf_error *err);

/* Add a tensor of n floats that no file has: bytes, little-endian, are kept.
 * GGUF_E_DUPLICATE, GGUF_E_NOMEM. */
enum gguf_status gg_safetensors_add(struct gg_safetensors *s,
                                    struct gguf_str name, const uint8_t *bytes,
                                    size_t n, struct gguf_error *err);

/* Add a tensor of floats that nobody has yet: it can be described and not read.
 * ne: n_dims sizes. GGUF_E_DUPLICATE, GGUF_E_NOMEM. */
enum gguf_status gg_safetensors_add_shape(struct gg_safetensors *s,
                                          struct gguf_str name,
                                          unsigned n_dims, const int64_t *ne,
                                          struct gguf_error *err);

/* safetensors_files.c: open what a folder has; another file, which is not open
 * as yet, or NULL; a status, with the name of the file before its message. */
enum gguf_status gg_safetensors_read_files(struct gg_safetensors *s,
                                           const struct gg_dir *folder,
                                           struct gguf_error *err);
struct gg_safetensors_file *
gg_safetensors_reserve_file(struct gg_safetensors *s, struct gguf_error *err);
enum gguf_status gg_safetensors_name_file(struct gguf_str name,
                                          enum gguf_status st,
                                          struct gguf_error *err);
/* safetensors_read.c: add what the header of file no says. */
enum gguf_status gg_safetensors_read_header(struct gg_safetensors *s,
                                            size_t no, struct gguf_error *err);
/* Have the list give tensor i, which is of I32 or I64, as one of I32: all of
 * its numbers are looked at. What has no numbers yet passes.
 * GGUF_E_TENSOR: another type, or a number that has more bits. */
enum gguf_status gg_safetensors_convert_to_i32(struct gg_safetensors *s,
                                               size_t i,
                                               struct gguf_error *err);
/* Bytes off to off + size of a file are read soon, or were. */
void gg_safetensors_advise(const struct gg_safetensors *s, uint32_t file_no,
                           uint64_t off, uint64_t size,
                           enum gg_mapfile_advice how);
/* Hold bytes off to off + size of a file, or release them: gg_data_hold. */
enum gguf_status gg_safetensors_hold(const struct gg_safetensors *s,
                                     uint32_t file_no, uint64_t off,
                                     uint64_t size, bool begin,
                                     struct gguf_error *err);
/* The same of all numbers that the header gives tensor i. */
enum gguf_status gg_safetensors_hold_all(const struct gg_safetensors *s,
                                         size_t i, bool begin,
                                         struct gguf_error *err);
/* safetensors_scale.c: give tensors their scales. Of a folder after it was
 * opened, when packed weights are put together and block is known. */
enum gguf_status gg_safetensors_scale(struct gg_safetensors *s,
                                      struct gguf_error *err);
/* A row of the types, or NULL. */
const struct gg_safetensors_type *gg_safetensors_type(struct gguf_str name);
/* Numbers of tensor i as floats, without its scale; false: not decoded. */
bool gg_safetensors_unscaled_rows(const struct gg_safetensors *s, size_t i,
                                  struct gg_data_rows *out);

#endif
