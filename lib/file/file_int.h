/* SPDX-License-Identifier: MIT */
/* file_int.h - members of struct gguf_file, and its operations inside the
 * library */
#ifndef GG_FILE_FILE_INT_H
#define GG_FILE_FILE_INT_H

#include "base/cursor.h"
#include "base/index.h"
#include "base/mapfile.h"
#include "base/outfile_int.h"
#include "file/layout.h"
#include "gguf/file.h"
#include "gguf/meta.h"
#include "gguf/paths.h"
#include "gguf/reader.h"

struct gguf_file {
    const struct gguf_allocator *allocator; /* allocator of the file */
    struct gg_mapfile map;                  /* its bytes */
    char *path;          /* path; NULL: opened from a descriptor or memory */
    uint32_t version;    /* version of GGUF */
    bool big_endian;     /* numbers are big-endian */
    bool may_be_empty;   /* tensors may have no elements */
    uint32_t align;      /* alignment of tensor data in bytes */
    uint64_t header_end; /* byte after the header */
    uint64_t data_off;   /* byte where tensor data begins */
    uint64_t data_end;   /* byte after the last tensor */

    struct gguf_kv *kv;       /* metadata pairs */
    size_t n_kv, kv_room;     /* number of pairs; room for pairs */
    struct gg_index kv_index; /* pairs by key */

    struct gguf_tensor_info *tensor; /* tensors */
    struct gg_file_place *places;    /* places of tensors by offset */
    size_t n_tensors, tensor_room;   /* number of tensors; room for tensors */
    struct gg_index tensor_index;    /* tensors by name */

    /* File that a planned one is like (gg_file_create_planned()), which has a
     * header and no data. NULL: a real file. */
    const struct gguf_file *like;
    struct gguf_writer *writer; /* writer of a planned file; has its header */

    struct gguf_reader reader; /* reader of the bytes; zero: none */

    /* Members of a set. Each shard is a file of its own, and the set has no
     * map. Its metadata and places are those of the first shard, its tensors
     * are copies of those of all shards. */
    struct gguf_file **shard; /* the shards; NULL: not a set */
    unsigned n_shards;        /* number of shards; 0: not a set */

    /* Index of a shard's first tensor in the list of its set. */
    size_t first_in_set;
};

/* Open the file at path, even if it is a shard of a set. Fails like
 * gguf_file_open(). */
enum gguf_status gg_file_open_one(struct gguf_file **out, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err);

/* Create an empty index of tensors by name, with room for n. GGUF_E_NOMEM. */
enum gguf_status gg_file_index_tensors(struct gguf_file *f, uint32_t n,
                                       struct gguf_error *err);

/* File that has the data of tensor *i of f: f or one of its shards. *i becomes
 * the index in the list of that file. */
static inline const struct gguf_file *
gg_file_of_tensor(const struct gguf_file *f, size_t *i)
{
    if (!f->shard)
        return f;
    f = f->shard[f->tensor[*i].shard];
    *i -= f->first_in_set;
    return f;
}

/* A tensor and the file that has its data. */
struct gg_file_shard_tensor {
    const struct gguf_tensor_info *info; /* entry in the list of file */
    const struct gguf_file *file;        /* the file or one of its shards */
    uint32_t file_no;                    /* index of the shard */
};
/* Find tensor i of f in the file that has its data. */
static inline struct gg_file_shard_tensor
gg_file_in_shard(const struct gguf_file *f, size_t i)
{
    const uint32_t file_no = f->tensor[i].shard;
    const struct gguf_file *of = gg_file_of_tensor(f, &i);
    return (struct gg_file_shard_tensor){ &of->tensor[i], of, file_no };
}

/* Open a file through a reader, like gguf_file_open_reader(), but do not close
 * the reader after a failure. */
enum gguf_status gg_file_open_reader(struct gguf_file **out,
                                     const struct gguf_reader *reader,
                                     const char *name,
                                     const struct gguf_file_params *params,
                                     struct gguf_error *err);

/* Fail with GGUF_E_UNSUPPORTED: the data is needed in memory, and the file is
 * read through a reader. */
enum gguf_status gg_file_fail_unmapped(struct gguf_error *err);
/* Check that the data of f is in memory. GGUF_E_UNSUPPORTED: it is read through
 * a reader. */
enum gguf_status gg_file_require_memory(const struct gguf_file *f,
                                        struct gguf_error *err);

/* Must the bytes of tensor i be swapped to get the byte order of tensors in
 * memory (dtype/byte_order.h)? False for types of unknown layout. */
bool gg_file_tensor_is_swapped(const struct gguf_file *f, size_t i);
/* Can tensor i of a file in memory be used in place? It must not be swapped,
 * and F32 and I32 must be aligned. */
bool gg_file_tensor_in_place(const struct gguf_file *f, size_t i);

/* Data of tensor i. In a file with a reader it must be fetched first. */
static inline const uint8_t *gg_file_tensor_at(const struct gguf_file *f,
                                               size_t i)
{
    f = gg_file_of_tensor(f, &i);
    return f->map.data + f->data_off + f->tensor[i].off;
}

/* If f has a reader, let the cursor c, which is on the bytes of f, fetch bytes
 * as it needs them, at most `most'. f must outlive c. */
void gg_file_reader_cursor(struct gguf_file *f, uint64_t most,
                           struct gg_cursor *c);

/* Append size bytes from byte off of f, which has them, to o. */
enum gguf_status gg_file_copy(struct gg_outfile *o, const struct gguf_file *f,
                              uint64_t off, uint64_t size,
                              struct gguf_error *err);

/* Copy public parameters over the defaults: gg_params_take(). Checks the
 * opener, too: GGUF_E_INVALID, if it lacks a function. */
enum gguf_status gg_file_params_take(struct gguf_file_params *own,
                                     const struct gguf_file_params *given,
                                     struct gguf_error *err);

/* Open path with params->opener, which accepts it. */
enum gguf_status gg_file_open_with(struct gguf_file **out, const char *path,
                                   const struct gguf_file_params *params,
                                   struct gguf_error *err);

/* Does opener accept path? opener may be NULL. */
bool gg_file_opener_takes(const struct gguf_opener *opener, const char *path);

/* Add f, its path, and the journal of an edit beside it (edit_journal.h) to
 * paths, as "input". Fails like gguf_paths_add_input(). */
enum gguf_status gg_file_add_paths(const struct gguf_file *f,
                                   struct gguf_paths *paths,
                                   struct gguf_error *err);

/* Set the path of a file that was opened without one. path is copied.
 * GGUF_E_NOMEM. */
enum gguf_status gg_file_set_path(struct gguf_file *f, const char *path,
                                  struct gguf_error *err);

/* Check that a file is unchanged since it was opened (mapfile.h). NULL is
 * allowed. GGUF_E_MISMATCH: it has changed; the message names it. */
enum gguf_status gg_file_check_unchanged(const struct gguf_file *f,
                                         struct gguf_error *err);

/* Read size bytes from byte off of tensor i, which has them, from the file, not
 * from the mapping. Fails like gg_mapfile_read(). */
enum gguf_status gg_file_read_tensor(const struct gguf_file *f, size_t i,
                                     uint64_t off, uint64_t size, void *dst,
                                     struct gguf_error *err);

/* Create the file that like would be with the pairs of meta and no others. It
 * has a header, and no data may be read from it. like must outlive it.
 * GGUF_E_FORMAT, GGUF_E_LIMIT: general.alignment of meta is not allowed.
 * GGUF_E_NOMEM. */
enum gguf_status gg_file_create_planned(struct gguf_file **out,
                                        const struct gguf_file *like,
                                        const struct gguf_meta *meta,
                                        const struct gguf_allocator *a,
                                        struct gguf_error *err);

/* Create a file with the pairs of like after setting those of changes: values
 * replaced in their place, new keys at the end. It has no tensors and no bytes.
 * like and changes must outlive it. GGUF_E_NOMEM. */
enum gguf_status gg_file_create_with_pairs(struct gguf_file **out,
                                           const struct gguf_file *like,
                                           const struct gguf_meta *changes,
                                           const struct gguf_allocator *a,
                                           struct gguf_error *err);

#endif
