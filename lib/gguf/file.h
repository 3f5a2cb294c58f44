/* SPDX-License-Identifier: MIT */
/* file.h - a GGUF file, opened and checked
 *
 * Opening maps the file and checks every number of the header once: counts,
 * lengths, types, names, dimensions, offsets, sizes. After that metadata
 * (kv.h) and tensors are views into the mapping; payload pages are touched
 * only when they are read. GGUF v2 and v3 are read, little-endian, and v3
 * big-endian too (its metadata decodes as usual; its tensor bytes are handed
 * out unchanged, and stats.h decodes them). v1 is refused by name.
 *
 *     struct gguf_file *file;
 *     struct gguf_error err;
 *     if (gguf_file_open(&file, "model.gguf", NULL, &err) != GGUF_OK)
 *         return fail(err.message);
 *     for (size_t i = 0; i < gguf_file_n_tensors(file); i++)
 *         show(gguf_file_tensor(file, i), gguf_file_tensor_data(file, i));
 *     gguf_file_close(file);
 *
 * A large model may be cut into shards (split.h), PREFIX-00001-of-0000N.gguf to
 * PREFIX-0000N-of-0000N.gguf in one folder. gguf_file_open opens all of them as
 * one file, from the path of any shard, from the folder or from the prefix: the
 * metadata are those of the first shard, the tensors those of all, one shard
 * after another. gguf_file_shard gives each shard as a file by itself.
 *
 * An open file does not change: any number of threads may use it. A file that
 * was opened by its path keeps its metadata when an edit writes new ones in
 * place (edit.h). If another process shrinks the file on disk, access to the
 * lost pages raises SIGBUS, as with every mapping.
 */
#ifndef GGUF_FILE_H
#define GGUF_FILE_H

#include <gguf/dtype.h>
#include <gguf/kv.h>
#include <gguf/memory.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_file;
struct gguf_opener;

/* What a file may contain. The defaults are the specification's numbers where
 * it has some, else generous; a caller can raise them for legitimate larger
 * files. Whatever the limits, no count in the file makes the library allocate
 * more than the file's size can justify: an open file takes at most 512 bytes
 * for each tensor and for each key that were read, beside 64 KiB. */
struct gguf_limits {
    size_t struct_size;
    uint64_t max_kv; /* keys */
    uint64_t max_tensors;
    uint64_t max_key_size;    /* bytes of a key */
    uint64_t max_name_size;   /* bytes of a tensor's name */
    uint64_t max_str_size;    /* bytes of a string */
    uint64_t max_array_items; /* elements of one array */
    uint32_t max_depth;       /* arrays in arrays; at most GGUF_MAX_DEPTH */
    uint32_t max_dims;        /* at most GGUF_MAX_DIMS */
    uint64_t max_header;      /* bytes that are read through a reader
                               * (reader.h) to find where the header ends */
};
#define GGUF_MAX_DEPTH 32
#define GGUF_MAX_DIMS  8
#define GGUF_LIMITS_INIT                                                      \
    {                                                                         \
        sizeof(struct gguf_limits), 1u << 20, 1u << 20, 65535, 64, 1u << 30,  \
            1u << 30, 8, 4, 1u << 28                                          \
    }

/* Limits by name ("kv", "tensors", "key-size", "name-size", "str-size",
 * "array-items", "depth", "dims", "header"), for options as --limit NAME=N.
 * GGUF_E_INVALID: unknown name (the message lists all), or value out of range.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_limits_set(struct gguf_limits *limits, const char *name, uint64_t value,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* The n-th limit's name, or NULL after the last. Since: 0.1 */
GGUF_API const char *gguf_limits_name(size_t n);

struct gguf_file_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    const struct gguf_limits *limits;       /* NULL: the defaults */
    uint64_t
        offset;    /* byte where the GGUF data begins in the file or memory */
    uint64_t size; /* bytes of it; 0: up to the end */
    const struct gguf_opener *opener; /* opener of paths that name no file
                                       * (reader.h); kept; NULL: none */
    int alone; /* open the file at path by itself, even if it is a shard; so is
                * a part of a file (offset or size is not 0) */
};
#define GGUF_FILE_PARAMS_INIT GGUF_INIT(struct gguf_file_params)

/* Open and check. path: a file, any shard of a set, a folder that holds one
 * set, or the prefix of a set. params may be NULL. Offsets in errors count from
 * where the GGUF data begins. All shards of a set are opened and checked, each
 * by itself and then against the others; a message about one shard begins with
 * its name.
 *
 * GGUF_E_IO         it cannot be opened or mapped; with alone: is a directory
 * GGUF_E_INVALID    params; not a regular file; offset after the end
 * GGUF_E_FORMAT     no GGUF; a bad type id, bool, name, alignment, dimension
 *                   or offset; tensors that overlap
 * GGUF_E_VERSION    another version of GGUF
 * GGUF_E_TRUNCATED  something reaches past the end of the file
 * GGUF_E_OVERFLOW   a size does not fit in 63 bits
 * GGUF_E_SHAPE a row that is not a multiple of its type's block
 * GGUF_E_LIMIT      more of something than limits allows
 * GGUF_E_DUPLICATE  two keys or two tensors of one name; a tensor that is in
 *                   two shards; a folder with two sets
 * GGUF_E_MISMATCH   the header changes each time it is read; a name, number,
 *                   count, total, alignment, byte order or metadata that does
 *                   not match the set
 * GGUF_E_TYPE       a key of the set (split.h) of another type
 * GGUF_E_NOTFOUND   shards are missing (the message says which); there is no
 *                   such file and no set of this prefix; the folder has no set
 * GGUF_E_NOMEM      Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_open(struct gguf_file **out, const char *path,
               const struct gguf_file_params *params,
               struct gguf_error *err) GGUF_MUST_CHECK;

/* fd stays the caller's; the file keeps a duplicate. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_open_fd(struct gguf_file **out, int fd,
                  const struct gguf_file_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* data is kept: it must outlive the file. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_open_memory(struct gguf_file **out, const void *data, size_t size,
                      const struct gguf_file_params *params,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Ends everything borrowed from the file. Since: 0.1 */
GGUF_API void gguf_file_close(struct gguf_file *file);

/* -------------------------------------------------------------- shards --- */

/* Number of files that were opened: 1, or the shards of a set. Since: 0.1 */
GGUF_API size_t gguf_file_n_shards(const struct gguf_file *file);
/* Shard i as a file by itself, which the set owns: its path, size, metadata,
 * and its tensors, which are counted from 0. Of a file that is not a set, shard
 * 0 is the file. NULL if i is out of range. Since: 0.1 */
GGUF_API const struct gguf_file *gguf_file_shard(const struct gguf_file *file,
                                                 size_t i);
/* Is it a set, or a file with the keys of a shard (split.count is not 0)?
 * Since: 0.1 */
GGUF_API bool gguf_file_is_split(const struct gguf_file *file);

/* ------------------------------------------------------ the whole file --- */

/* For a set, header_end, data_off, data_end and bytes describe its first
 * shard. */

/* As given to gguf_file_open; of a shard, its own; NULL after the other two.
 * Since: 0.1 */
GGUF_API const char *gguf_file_path(const struct gguf_file *file);
/* 2 or 3 */
GGUF_API uint32_t gguf_file_version(const struct gguf_file *file);
/* 1 if the numbers in the file are big-endian, else 0. */
GGUF_API int gguf_file_is_big_endian(const struct gguf_file *file);
/* general.alignment, or 32: a power of two, 8 or more. */
GGUF_API uint32_t gguf_file_alignment(const struct gguf_file *file);
/* Bytes, from the magic to the end (or to params.offset + params.size); of a
 * set, the sum over its shards. */
GGUF_API uint64_t gguf_file_size(const struct gguf_file *file);
/* Byte where the header's last field ends; padding follows. */
GGUF_API uint64_t gguf_file_header_end(const struct gguf_file *file);
/* Byte where tensor data begins: header_end, aligned. It may lie after the
 * end of a file that has no tensors. */
GGUF_API uint64_t gguf_file_data_off(const struct gguf_file *file);
/* Byte after the last tensor's last byte; data_off without tensors. Bytes
 * after it, except padding, do not belong to the model. */
GGUF_API uint64_t gguf_file_data_end(const struct gguf_file *file);
/* Every byte of the file, from the magic on; of one that is read through a
 * reader (reader.h) those before gguf_file_header_end() are there. */
GGUF_API const void *gguf_file_bytes(const struct gguf_file *file);

/* ------------------------------------------------------------ metadata --- */

/* Pairs of key and value. */
GGUF_API size_t gguf_file_n_kv(const struct gguf_file *file);
/* In file order; NULL if i is out of range. */
GGUF_API const struct gguf_kv *gguf_file_kv(const struct gguf_file *file,
                                            size_t i);
/* NULL if there is no such key. key is NUL-terminated. */
GGUF_API const struct gguf_kv *gguf_file_kv_find(const struct gguf_file *file,
                                                 const char *key);
/* GGUF_E_NOTFOUND (names the key) instead of NULL. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_kv_get(const struct gguf_file *file, const char *key,
                 const struct gguf_kv **out,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* ------------------------------------------------------------- tensors --- */

/* Made by the library: it may grow at its end. */
struct gguf_tensor_info {
    struct gguf_str name;
    uint32_t dtype;  /* id in the file; may be one that this library does not
                      * know: gguf_dtype_find() is NULL then */
    uint32_t n_dims; /* 0 to max_dims, as in the file */
    int64_t ne[GGUF_MAX_DIMS]; /* elements, fastest dimension first; 1 from
                                * n_dims on */
    uint64_t n_elements;       /* product of ne */
    uint64_t off;              /* bytes from the start of the tensor data, in
                                * its shard */
    uint64_t size;             /* bytes, without padding */
    uint64_t info_off;         /* byte of this entry in the file, or
                                * GGUF_NO_OFFSET */
    uint32_t index;            /* place in the file's list */
    int size_inferred; /* the type is unknown or removed: size reaches up to
                        * the next tensor or the end of the file, and may
                        * include padding */
    uint32_t shard;    /* number of the shard that has the data, from 0 */
};

/* Entries of the list of tensors; of a set, of all its shards. */
GGUF_API size_t gguf_file_n_tensors(const struct gguf_file *file);
/* In file order; NULL if i is out of range. */
GGUF_API const struct gguf_tensor_info *
gguf_file_tensor(const struct gguf_file *file, size_t i);
/* NULL if there is none. name is NUL-terminated. */
GGUF_API const struct gguf_tensor_info *
gguf_file_tensor_find(const struct gguf_file *file, const char *name);
/* The i-th tensor in order of shards and offsets, which in most files is file
 * order. */
GGUF_API const struct gguf_tensor_info *
gguf_file_tensor_by_offset(const struct gguf_file *file, size_t i);

/* The layer that a tensor's name gives: N of "blk.N.REST", or -1 for any other
 * name. N is decimal, without a zero before other digits, and at most
 * UINT32_MAX. rest, if not NULL, becomes REST, or name as it is for -1.
 * Since: 0.1 */
GGUF_API int64_t gguf_layer_from_name(struct gguf_str name,
                                      struct gguf_str *rest);

/* size bytes of tensor i, in the mapping: read-only. If the GGUF data begins
 * at byte 0 of a mapped file, aligned to the less of gguf_file_alignment() and
 * a page of memory; else not aligned. NULL if i is out of range, or if the data
 * is read through a reader (reader.h). Since: 0.1 */
GGUF_API const void *gguf_file_tensor_data(const struct gguf_file *file,
                                           size_t i);

/* Tells the system how size bytes from byte off of tensor i will be used: a
 * hint, never an error. DONTNEED releases pages that were read, which bounds
 * the memory of a job over a large file; they are read again when touched. */
enum gguf_advice {
    GGUF_ADVICE_SEQUENTIAL,
    GGUF_ADVICE_WILLNEED,
    GGUF_ADVICE_DONTNEED
};
GGUF_API void gguf_file_advise_tensor(const struct gguf_file *file, size_t i,
                                      uint64_t off, uint64_t size,
                                      enum gguf_advice advice);

#ifdef __cplusplus
}
#endif
#endif
