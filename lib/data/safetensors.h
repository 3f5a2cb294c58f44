/* SPDX-License-Identifier: MIT */
/* safetensors.h - tensors of a Hugging Face folder as a list
 *
 * A .safetensors file is the length of a header (8 bytes, little-endian), the
 * header, a JSON object, and the numbers, little-endian and in C order:
 *
 *     { "__metadata__": { text: text, ... },
 *       NAME: { "dtype": "F32", "shape": [rows, columns],
 *               "data_offsets": [begin, end] }, ... }
 *
 * Offsets count from the end of the header; tensors follow each other without
 * gaps and fill the file (huggingface/safetensors, README and tensor.rs). A
 * folder has one file, model.safetensors, or several with
 * model.safetensors.index.json: { "weight_map": { NAME: file, ... } }. If both
 * exist, only model.safetensors is read, as in transformers
 * (_get_resolved_checkpoint_files of modeling_utils.py). Everything is checked
 * on opening. An index cannot name files outside of the folder, but links in it
 * are followed: the folders of Hugging Face's cache consist of them.
 *
 * A tensor NAME of 8-bit floats may have a scale, NAME_scale_inv or
 * NAME_scale, or BASE.scale or BASE.scale_weight for BASE.weight, with which
 * its numbers are multiplied. There is one scale for all or, in each
 * dimension, one for all, one for each element, or one for each 128. Weights
 * with fewer bits: packed.h, nibbles.h, tiled.h.
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

/* Limit of a header's length, from the reference implementation. */
#define GG_SAFETENSORS_HEADER 100000000

/* Id for a type that GGUF does not have. */
#define GG_SAFETENSORS_NO_DTYPE UINT32_MAX

/* A type of numbers. */
struct gg_safetensors_type {
    const char *name;
    unsigned bits; /* bits of an element */
    uint32_t
        dtype; /* id of the same type in GGUF, or GG_SAFETENSORS_NO_DTYPE */
    /* Decodes 8 bits of a type that GGUF does not have; NULL: none. */
    float (*f8)(uint8_t x);
    uint32_t own; /* type of a matrix in GGUF by default;
                   * GG_SAFETENSORS_NO_DTYPE: not numbers */
};

/* Factors of a tensor's numbers. */
struct gg_safetensors_scale {
    uint64_t n[GGUF_MAX_DIMS];   /* scales in each dimension */
    uint64_t per[GGUF_MAX_DIMS]; /* elements that share a scale */
    float value[];               /* fastest dimension first */
};

/* Numbers that are computed from the rows of another tensor (projected.h). */
struct gg_safetensors_made {
    struct gg_data_rows rows;   /* reader of the numbers */
    uint32_t from;              /* number of the other tensor */
    uint64_t width_from, width; /* elements of a row there, and here */
};

/* A million of these take about 200 MB: members of few tensors lie
 * elsewhere. */
struct gg_safetensors_tensor {
    struct gguf_str name; /* followed by a NUL */
    const struct gg_safetensors_type *type;
    unsigned n_dims;
    int64_t ne[GGUF_MAX_DIMS]; /* elements per dimension, fastest first; 1 from
                                * n_dims on */
    uint64_t n_elements, size; /* elements; bytes */
    uint64_t off;              /* first byte in its file */
    uint32_t file_no;          /* number of its file; UINT32_MAX: in memory */
    bool is_part;              /* part of another tensor, such as its scale */
    bool is_index; /* presented as I32 (gg_safetensors_convert_to_i32) */
    const struct gg_packed *packed;   /* layout of several tensors with its
                                       * numbers (packed.h); NULL: none */
    const struct gg_nibbles *nibbles; /* layout of 4-bit indexes (nibbles.h);
                                       * NULL: none */
    const struct gg_tiled *tiled;     /* layout with scales in tiles (tiled.h);
                                       * NULL: none */
    const struct gg_safetensors_made *made; /* NULL: the numbers are stored */
    const struct gg_safetensors_scale *scale; /* NULL: no scales */
    const uint8_t *data;                      /* the numbers, for readers */
};

struct gg_safetensors_file {
    char *path;                   /* NULL: in memory */
    struct gguf_str name, prefix; /* its name; prefix of its tensors' names */
    struct gg_mapfile map;
    struct gg_resident held; /* loaded parts of a file with a reader */
    uint64_t data_off;       /* first byte after the header */
    size_t first_tensor, n_tensors;
};

struct gg_safetensors {
    struct gg_data list; /* tensors in the order of files and headers */
    const struct gguf_allocator *allocator;
    const struct gg_codec_kern *codec; /* [GG_N_DTYPES]; kept */
    struct gguf_limits limits;
    struct gg_mem_arena arena;
    struct gg_safetensors_file **file; /* addresses do not change */
    size_t n_files, room_files;
    struct gg_safetensors_tensor *tensor;
    size_t n_tensors, room_tensors;
    struct gg_index index;
    char single_name[80], index_name[80]; /* names of files */
    /* text of "config" in "__metadata__" of the last file that has it; data
     * NULL: none */
    struct gguf_str config;
    /* Text of "_quantization_metadata", which lists the forms of layers, and
     * its first byte in the file. data NULL: none. */
    struct gguf_str quantization;
    uint64_t quantization_off;
    /* Columns and rows that share a scale, where it is neither one for all nor
     * one for each element: 128. */
    uint64_t block[2];
};

/* Open NAME.safetensors of a folder or, if it does not exist, the files of
 * NAME.safetensors.index.json. Its opener and readers are kept. From remote
 * files only headers are read here; numbers are loaded when they are held
 * (data.h). limits (NULL: defaults) apply to names, number of tensors, and
 * dimensions. Messages begin with the name of the file.
 *
 * GGUF_E_NOTFOUND     Neither file exists; a file lacks a tensor of the index.
 * GGUF_E_MISMATCH     A tensor is not in the index, or is there in another
 * file. GGUF_E_TENSOR       A scale is wrong. GGUF_E_UNSUPPORTED  A type is
 * unknown. GGUF_E_FORMAT, GGUF_E_TRUNCATED, GGUF_E_OVERFLOW, GGUF_E_LIMIT,
 * GGUF_E_DUPLICATE    A file is malformed. GGUF_E_IO, GGUF_E_NOMEM */
enum gguf_status
gg_safetensors_open(struct gg_safetensors **out, const struct gg_dir *folder,
                    const char *name, const struct gguf_limits *limits,
                    const struct gg_codec_kern *codec, struct gguf_error *err);
/* Open one file in memory, whose bytes are kept. Statuses: those of
 * gg_safetensors_open. */
enum gguf_status gg_safetensors_open_memory(
    struct gg_safetensors **out, const void *data, size_t size,
    const struct gguf_limits *limits, const struct gg_codec_kern *codec,
    const struct gguf_allocator *allocator, struct gguf_error *err);
/* Create a list without tensors. GGUF_E_NOMEM. */
enum gguf_status gg_safetensors_create(struct gg_safetensors **out,
                                       const struct gg_codec_kern *codec,
                                       const struct gguf_allocator *allocator,
                                       struct gguf_error *err);
/* Add the tensors of another file, path in the folder, with prefix before their
 * names. *there is false if the file does not exist. After a failure s can only
 * be closed. Statuses: those of gg_safetensors_open. */
enum gguf_status gg_safetensors_add_file(struct gg_safetensors *s,
                                         const struct gg_dir *folder,
                                         const char *path, const char *prefix,
                                         bool *there, struct gguf_error *err);
/* NULL is ignored. */
void gg_safetensors_close(struct gg_safetensors *s);

/* Number of a tensor; GG_INDEX_NONE: it does not exist. */
uint32_t gg_safetensors_find(const struct gg_safetensors *s,
                             struct gguf_str name);

/* Make room for one more tensor after the present ones; NULL: no memory. */
struct gg_safetensors_tensor *
gg_safetensors_reserve_tensor(struct gg_safetensors *s,
                              struct gguf_error *err);

/* Add a tensor of n floats that is in no file. bytes, little-endian, are kept.
 * GGUF_E_DUPLICATE, GGUF_E_NOMEM. */
enum gguf_status gg_safetensors_add(struct gg_safetensors *s,
                                    struct gguf_str name, const uint8_t *bytes,
                                    size_t n, struct gguf_error *err);

/* Add a tensor of n 64-bit integers that is in no file. bytes, little-endian,
 * are kept. GGUF_E_DUPLICATE, GGUF_E_NOMEM. */
enum gguf_status gg_safetensors_add_integers(struct gg_safetensors *s,
                                             struct gguf_str name,
                                             const uint8_t *bytes, size_t n,
                                             struct gguf_error *err);

/* Add a tensor of floats without numbers: it can be described but not read. ne:
 * n_dims sizes. GGUF_E_DUPLICATE, GGUF_E_NOMEM. */
enum gguf_status gg_safetensors_add_shape(struct gg_safetensors *s,
                                          struct gguf_str name,
                                          unsigned n_dims, const int64_t *ne,
                                          struct gguf_error *err);

/* safetensors_files.c: read the files of a folder; make room for one more file
 * (NULL: no memory); put the name of a file before the message of status st. */
enum gguf_status gg_safetensors_read_files(struct gg_safetensors *s,
                                           const struct gg_dir *folder,
                                           struct gguf_error *err);
struct gg_safetensors_file *
gg_safetensors_reserve_file(struct gg_safetensors *s, struct gguf_error *err);
enum gguf_status gg_safetensors_name_file(struct gguf_str name,
                                          enum gguf_status st,
                                          struct gguf_error *err);
/* safetensors_read.c: add the tensors of file no from its header. */
enum gguf_status gg_safetensors_read_header(struct gg_safetensors *s,
                                            size_t no, struct gguf_error *err);
/* Present tensor i, of I32 or I64, as one of I32. All its numbers are checked,
 * if it has them already. GGUF_E_TENSOR: another type, or a number with more
 * than 32 bits. */
enum gguf_status gg_safetensors_convert_to_i32(struct gg_safetensors *s,
                                               size_t i,
                                               struct gguf_error *err);
/* Tell the system that bytes off to off + size of a file are needed soon, or no
 * longer. */
void gg_safetensors_advise(const struct gg_safetensors *s, uint32_t file_no,
                           uint64_t off, uint64_t size,
                           enum gg_mapfile_advice how);
/* Hold bytes off to off + size of a file, or release them (gg_data_hold). */
enum gguf_status gg_safetensors_hold(const struct gg_safetensors *s,
                                     uint32_t file_no, uint64_t off,
                                     uint64_t size, bool begin,
                                     struct gguf_error *err);
/* Hold all numbers of tensor i in its file, or release them. */
enum gguf_status gg_safetensors_hold_all(const struct gg_safetensors *s,
                                         size_t i, bool begin,
                                         struct gguf_error *err);
/* safetensors_scale.c: attach scales to the tensors of a folder, after packed
 * weights are joined and block is known. */
enum gguf_status gg_safetensors_scale(struct gg_safetensors *s,
                                      struct gguf_error *err);
/* Find a type; NULL: unknown. */
const struct gg_safetensors_type *gg_safetensors_type(struct gguf_str name);
/* Prepare to read tensor i as floats without its scale. Returns false if its
 * type cannot be decoded. */
bool gg_safetensors_unscaled_rows(const struct gg_safetensors *s, size_t i,
                                  struct gg_data_rows *out);

#endif
