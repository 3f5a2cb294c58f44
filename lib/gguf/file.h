/* SPDX-License-Identifier: MIT */
/* file.h - open a GGUF file or a set of shards
 *
 * A struct gguf_file is an open GGUF file, or a set of shards that is opened
 * as one file (split.h). Opening maps the file and checks every number of the
 * header: counts, lengths, types, names, dimensions, offsets, sizes. After
 * that, metadata (kv.h) and tensors are views into the mapping; pages of
 * tensor data are read from disk when they are touched.
 *
 *   1. gguf_file_open() opens and checks.
 *   2. gguf_file_kv_find(), gguf_file_tensor() and others look into it.
 *   3. gguf_file_close() closes. Pointers that the file returned end here.
 *
 *     struct gguf_file *file;
 *     struct gguf_error err;
 *     if (gguf_file_open(&file, "model.gguf", NULL, &err) != GGUF_OK)
 *         return fail(err.message);
 *     for (size_t i = 0; i < gguf_file_n_tensors(file); i++)
 *         show(gguf_file_tensor(file, i), gguf_file_tensor_data(file, i));
 *     gguf_file_close(file);
 *
 * Files of version 2 must be little-endian; files of version 3 may have either
 * byte order. Metadata is returned in the machine's byte order. Tensor data is
 * returned in the file's byte order; gguf_rows_decode() (stats.h) converts it.
 * Version 1 is refused with a message that names it.
 *
 * An open file does not change: any number of threads may use it. If an edit
 * writes other metadata to the file in place (edit.h), an object that was
 * opened by path still has the metadata that the file had when it was opened
 * (up to 64 MiB of them). One that was opened with an offset or a size, from a
 * descriptor or from memory must not be edited while it is open. If another
 * process makes the file shorter, access to the lost pages raises SIGBUS, as
 * with every mapping.
 */
#ifndef GGUF_FILE_H
#define GGUF_FILE_H

#include <gguf/dtype.h>
#include <gguf/kv.h>
#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_file;
struct gguf_opener;

/* ------------------------------------------------------------ opening --- */

#define GGUF_MAX_DEPTH 32 /* largest value of limits.max_depth */
#define GGUF_MAX_DIMS  8  /* largest value of limits.max_dims */

/* Limits for the contents of a file.
 *
 * A file that exceeds a limit is refused with GGUF_E_LIMIT. Raise a limit for
 * a legitimate file that needs more. The defaults are the limits of the
 * specification; for things that the specification does not limit they are
 * generous.
 *
 * Whatever the limits, an open file takes at most 64 KiB of memory, and 512
 * bytes more for each tensor and each key of its header. */
struct gguf_limits {
    size_t struct_size;       /* size of this structure in bytes */
    uint64_t max_kv;          /* metadata pairs; 0: 1048576 */
    uint64_t max_tensors;     /* tensors of one file; 0: 1048576 */
    uint64_t max_key_size;    /* bytes of a key; 0: 65535 */
    uint64_t max_name_size;   /* bytes of a tensor's name; 0: 64, or 127 in
                               * files of image and video models */
    uint64_t max_str_size;    /* bytes of a string; 0: 1 GiB */
    uint64_t max_array_items; /* elements of an array; 0: 1073741824 */
    uint32_t max_depth;       /* depth of nested arrays, up to
                               * GGUF_MAX_DEPTH; 0: 8 */
    uint32_t max_dims;        /* dimensions of a tensor, up to GGUF_MAX_DIMS;
                               * 0: 4, or 5 in files of image and video
                               * models */
    uint64_t max_header;      /* bytes of the header of a file that a program
                               * reads with its own functions (reader.h);
                               * other files ignore it; 0: 256 MiB */
};
#define GGUF_LIMITS_INIT GGUF_INIT(struct gguf_limits)

/* Set a limit by its name, for options such as --limit NAME=VALUE.
 *
 * limits   Limits to change. struct_size must be set.
 * name     "kv", "tensors", "key-size", "name-size", "str-size",
 *          "array-items", "depth", "dims" or "header".
 * value    The limit, at least 1.
 *
 * GGUF_OK          The limit is set.
 * GGUF_E_INVALID   The name is unknown (the message lists all names), or value
 *                  is 0 or above the largest value of that limit.
 *
 * Threads: one at a time for limits. Since: 0.1 */
GGUF_API enum gguf_status
gguf_limits_set(struct gguf_limits *limits, const char *name, uint64_t value,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Name of limit n, counted from 0; NULL after the last. For help texts that
 * list the names. Threads: any. Since: 0.1 */
GGUF_API const char *gguf_limits_name(size_t n);

/* How to open a file. */
struct gguf_file_params {
    size_t struct_size; /* size of this structure in bytes */

    /* Allocator of the file. It must outlive the file. NULL: malloc. */
    const struct gguf_allocator *allocator;

    /* Limits for the contents. Borrowed during the call. NULL: the defaults. */
    const struct gguf_limits *limits;

    uint64_t offset; /* byte of the file or memory where GGUF data begins */
    uint64_t size;   /* bytes of GGUF data; 0: up to the end */

    /* Opener of paths that are not those of local files, such as URLs
     * (reader.h). Its function accepts() decides which paths it opens. It must
     * outlive the file. NULL: all paths are those of local files. */
    const struct gguf_opener *opener;

    /* Open only the file at path, even if it is a shard of a set. A part of a
     * file (offset or size is not 0) is always opened this way. */
    bool single_file;
};
#define GGUF_FILE_PARAMS_INIT GGUF_INIT(struct gguf_file_params)

/* Open a file or a set of shards, and check the header.
 *
 * out      Receives the file. NULL after a failure.
 * path     Path of a file, of any shard of a set, of a folder that holds one
 *          set, or the prefix of a set: the path of its shards without
 *          "-00001-of-00003.gguf".
 * params   How to open. NULL: the defaults.
 *
 * All shards of a set are opened. Each is checked by itself and then against
 * the others. A message about one shard begins with its name. The metadata of
 * a set is that of its first shard; its list of tensors holds the tensors of
 * all shards, one shard after another.
 *
 * Offsets in errors count from the byte where the GGUF data begins. Close *out
 * with gguf_file_close().
 *
 * GGUF_OK            *out is open.
 * GGUF_E_INVALID     path is neither a regular file nor a folder (but a pipe,
 *                    say), or params.offset lies after the end of the file.
 * GGUF_E_IO          The file cannot be opened or mapped, or it is a folder
 *                    and params.single_file is set.
 * GGUF_E_FORMAT      Not a GGUF file, or a rule of the format is broken: a
 *                    type id, bool, name, alignment, dimension or offset is
 *                    wrong, or tensors overlap.
 * GGUF_E_VERSION     The version of GGUF is not supported.
 * GGUF_E_TRUNCATED   Something reaches past the end of the file.
 * GGUF_E_OVERFLOW    A size does not fit in 63 bits.
 * GGUF_E_SHAPE       The length of a tensor's rows, ne[0], is not a multiple of
 *                    its type's block.
 * GGUF_E_LIMIT       The file exceeds one of params.limits.
 * GGUF_E_DUPLICATE   Two keys or two tensors have the same name, two shards
 *                    hold the same tensor, or the folder holds two sets.
 * GGUF_E_NOTFOUND    No file and no set of this path exists, the folder holds
 *                    no set, or shards are missing (the message lists them).
 * GGUF_E_MISMATCH    A shard does not belong to the set: its file name,
 *                    split.no, split.count, split.tensors.count, alignment or
 *                    byte order differs, or it has another key that the first
 *                    shard lacks or has with another value. Or another process
 *                    kept changing the file: the header was read 100 times.
 * GGUF_E_TYPE        A key of the set (split.h) has a wrong type.
 * GGUF_E_NOMEM       Out of memory.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_open(struct gguf_file **out, const char *path,
               const struct gguf_file_params *params,
               struct gguf_error *err) GGUF_MUST_CHECK;

/* Open the file behind a descriptor as a single file, and check the header.
 *
 * out      Receives the file. NULL after a failure.
 * fd       Descriptor, open for reading. The file keeps a duplicate, so the
 *          caller may close fd at once.
 * params   How to open. NULL: the defaults. single_file and opener are ignored.
 *
 * For programs that are handed descriptors, such as sandboxed ones. Close *out
 * with gguf_file_close().
 *
 * Statuses, for the reasons of gguf_file_open(): GGUF_OK, GGUF_E_INVALID,
 * GGUF_E_IO, GGUF_E_FORMAT, GGUF_E_VERSION, GGUF_E_TRUNCATED, GGUF_E_OVERFLOW,
 * GGUF_E_SHAPE, GGUF_E_LIMIT, GGUF_E_DUPLICATE, GGUF_E_TYPE, GGUF_E_NOMEM.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_open_fd(struct gguf_file **out, int fd,
                  const struct gguf_file_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Open GGUF data in memory and check the header.
 *
 * out      Receives the file. NULL after a failure.
 * data     The data. It must stay in place and unchanged until the file is
 *          closed.
 * size     Bytes at data.
 * params   How to open. NULL: the defaults. single_file and opener are ignored.
 *
 * Close *out with gguf_file_close().
 *
 * Statuses, for the reasons of gguf_file_open(): GGUF_OK, GGUF_E_INVALID,
 * GGUF_E_FORMAT, GGUF_E_VERSION, GGUF_E_TRUNCATED, GGUF_E_OVERFLOW,
 * GGUF_E_SHAPE, GGUF_E_LIMIT, GGUF_E_DUPLICATE, GGUF_E_TYPE, GGUF_E_NOMEM.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_open_memory(struct gguf_file **out, const void *data, size_t size,
                      const struct gguf_file_params *params,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Close a file and free its memory. Pointers that were returned for the file
 * become invalid. NULL is allowed. No other thread may use the file.
 * Since: 0.1 */
GGUF_API void gguf_file_close(struct gguf_file *file);

/* -------------------------------------------------------------- shards --- */

/* Number of files that were opened: 1, or the number of shards of a set.
 * Threads: any. Since: 0.1 */
GGUF_API size_t gguf_file_n_shards(const struct gguf_file *file);

/* Shard i as a file of its own, with its path, size, metadata and tensors.
 *
 * The shard belongs to the set: do not close it. Shard 0 of a file that is not
 * a set is the file itself. NULL if i is out of range.
 *
 * Threads: any. Since: 0.1 */
GGUF_API const struct gguf_file *gguf_file_shard(const struct gguf_file *file,
                                                 size_t i);

/* Is it a set, or one shard of a set? True if the key split.count exists and
 * is not 0. Threads: any. Since: 0.1 */
GGUF_API bool gguf_file_is_split(const struct gguf_file *file);

/* ------------------------------------------------------ the whole file --- */

/* Path that was passed to gguf_file_open(); for a shard its own path; for a
 * file from gguf_file_open_reader() the name that was passed. NULL if the file
 * was opened from a descriptor or memory.
 * Threads: any. Since: 0.1 */
GGUF_API const char *gguf_file_path(const struct gguf_file *file);

/* Version of GGUF: 2 or 3; for a set, of its first shard. Threads: any.
 * Since: 0.1 */
GGUF_API uint32_t gguf_file_version(const struct gguf_file *file);

/* Are the numbers in the file big-endian? Threads: any. Since: 0.1 */
GGUF_API bool gguf_file_is_big_endian(const struct gguf_file *file);

/* Alignment of tensor data in bytes: general.alignment, or 32. A power of two,
 * at least 8. Threads: any. Since: 0.1 */
GGUF_API uint32_t gguf_file_alignment(const struct gguf_file *file);

/* Size of the GGUF data in bytes; for a set, the sum over its shards.
 * Threads: any. Since: 0.1 */
GGUF_API uint64_t gguf_file_size(const struct gguf_file *file);

/* End of the header: number of the byte after its last field, counted from the
 * start of the GGUF data. Padding follows. For a set, of its first shard.
 * Threads: any. Since: 0.1 */
GGUF_API uint64_t gguf_file_header_end(const struct gguf_file *file);

/* Begin of the tensor data: the end of the header, aligned, in bytes from the
 * start of the GGUF data. It may lie after the end of a file without tensors.
 * For a set, of its first shard. Threads: any. Since: 0.1 */
GGUF_API uint64_t gguf_file_data_off(const struct gguf_file *file);

/* End of the tensor data: number of the byte after its last one, counted from
 * the start of the GGUF data; gguf_file_data_off() if the file has no tensors.
 * Bytes after it that are not padding do not belong to the model. For a set, of
 * its first shard. Threads: any. Since: 0.1 */
GGUF_API uint64_t gguf_file_data_end(const struct gguf_file *file);

/* Address of the GGUF data, from the magic on, for programs that look at the
 * encoded header themselves.
 *
 * There are gguf_file_size(file) bytes. For a set they are those of its first
 * shard, and there are gguf_file_size(gguf_file_shard(file, 0)). If the file is
 * read through a reader (reader.h), only bytes before gguf_file_header_end()
 * may be read. They belong to the file.
 *
 * Threads: any. Since: 0.1 */
GGUF_API const void *gguf_file_bytes(const struct gguf_file *file);

/* ------------------------------------------------------------ metadata --- */

/* Number of metadata pairs. Threads: any. Since: 0.1 */
GGUF_API size_t gguf_file_n_kv(const struct gguf_file *file);

/* Metadata pair i in file order; NULL if i is out of range. It is valid until
 * the file is closed. Threads: any. Since: 0.1 */
GGUF_API const struct gguf_kv *gguf_file_kv(const struct gguf_file *file,
                                            size_t i);

/* Metadata pair with this key, NUL-terminated; NULL if the file does not have
 * it. It is valid until the file is closed. Threads: any. Since: 0.1 */
GGUF_API const struct gguf_kv *gguf_file_kv_find(const struct gguf_file *file,
                                                 const char *key);

/* Get a metadata pair that must exist.
 *
 * file   An open file.
 * key    Key, NUL-terminated.
 * out    Receives the pair, valid until the file is closed. NULL after a
 *        failure.
 *
 * GGUF_OK           *out is the pair.
 * GGUF_E_NOTFOUND   The file does not have the key; the message names it.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_kv_get(const struct gguf_file *file, const char *key,
                 const struct gguf_kv **out,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* ------------------------------------------------------------- tensors --- */

/* Entry of a file's list of tensors. Only the library makes it; later versions
 * may add members at its end. */
struct gguf_tensor_info {
    struct gguf_str name;
    uint32_t dtype;            /* id of the data type as in the file; unknown
                                * to this library if gguf_dtype_find() returns
                                * NULL */
    uint32_t n_dims;           /* number of dimensions as in the file; may be
                                * 0 */
    int64_t ne[GGUF_MAX_DIMS]; /* elements of each dimension, fastest first;
                                * 1 from n_dims on */
    uint64_t n_elements;       /* product of ne */
    uint64_t off;              /* byte where the data begins, counted from the
                                * start of its shard's tensor data */
    uint64_t size;             /* bytes of data, without padding */
    uint64_t info_off;         /* byte where this entry begins in the header,
                                * counted from the start of its shard's GGUF
                                * data; GGUF_NO_OFFSET: the entry does not come
                                * from a file */
    uint32_t index;            /* index of this entry in the list of the file
                                * that returned it, a set or one shard */

    /* The data type is unknown or was removed from the format. size then
     * reaches to the next tensor or the end of the file, and may include
     * padding. */
    bool size_inferred;

    /* Index of the shard that holds the data. 0 if the file that returned the
     * entry is not a set. */
    uint32_t shard;
};

/* Number of tensors; for a set, of all shards. Threads: any. Since: 0.1 */
GGUF_API size_t gguf_file_n_tensors(const struct gguf_file *file);

/* Tensor i in file order; NULL if i is out of range. It is valid until the
 * file is closed. Threads: any. Since: 0.1 */
GGUF_API const struct gguf_tensor_info *
gguf_file_tensor(const struct gguf_file *file, size_t i);

/* Tensor with this name, NUL-terminated; NULL if the file does not have it. It
 * is valid until the file is closed. Threads: any. Since: 0.1 */
GGUF_API const struct gguf_tensor_info *
gguf_file_tensor_find(const struct gguf_file *file, const char *name);

/* Tensor i in the order of the data on disk, by shard and offset; NULL if i is
 * out of range. In most files this is file order. For programs that read a
 * whole file from front to back. Threads: any. Since: 0.1 */
GGUF_API const struct gguf_tensor_info *
gguf_file_tensor_by_offset(const struct gguf_file *file, size_t i);

/* Layer number in the name of a tensor: N of "blk.N.REST".
 *
 * name   Name of the tensor.
 * rest   Receives REST, a part of name, or all of name if it has no layer
 *        number. May be NULL.
 *
 * Returns the layer number, or -1 for any other name, such as one whose number
 * is above UINT32_MAX. N is decimal and does not begin with 0 unless it is 0.
 *
 * Threads: any. Since: 0.1 */
GGUF_API int64_t gguf_layer_from_name(struct gguf_str name,
                                      struct gguf_str *rest);

/* Data of tensor i in the mapping, read-only.
 *
 * The data has the size of the tensor's entry and the byte order of the file.
 * If the file was opened by path or descriptor, with an offset of 0, the data
 * is aligned to gguf_file_alignment() or a page, whichever is less. Otherwise
 * it may lie at any address.
 *
 * Returns NULL if i is out of range, or if the file is read through a reader:
 * then use gguf_file_read_tensor() (reader.h).
 *
 * Threads: any. Since: 0.1 */
GGUF_API const void *gguf_file_tensor_data(const struct gguf_file *file,
                                           size_t i);

/* How tensor data will be used. */
enum gguf_advice {
    GGUF_ADVICE_SEQUENTIAL, /* read from front to back */
    GGUF_ADVICE_WILLNEED,   /* needed soon: read ahead */
    GGUF_ADVICE_DONTNEED    /* not needed: release the pages; they are read
                             * from disk again when they are touched */
};

/* Tell the system how a part of a tensor's data will be used.
 *
 * file     An open file.
 * i        Index of the tensor.
 * off      First byte of the part, counted from the start of the data.
 * size     Bytes of the part; cut at the end of the data.
 * advice   How the part will be used.
 *
 * It is a hint, and never fails. It has no effect on memory and on files that
 * are read through a reader. A job that reads a file larger than memory bounds
 * its memory with GGUF_ADVICE_DONTNEED. Threads: any. Since: 0.1 */
GGUF_API void gguf_file_advise_tensor(const struct gguf_file *file, size_t i,
                                      uint64_t off, uint64_t size,
                                      enum gguf_advice advice);

#ifdef __cplusplus
}
#endif
#endif
