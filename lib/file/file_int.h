/* SPDX-License-Identifier: MIT */
/* file_int.h - what an open file is made of */
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
    const struct gguf_allocator *allocator;
    struct gg_mapfile map;
    char *path; /* or NULL */
    uint32_t version;
    bool big_endian;
    uint32_t align;
    uint64_t header_end, data_off;
    uint64_t data_end; /* of the last tensor, from the start of the file */

    struct gguf_kv *kv;
    size_t n_kv, kv_room;
    struct gg_index kv_index;

    struct gguf_tensor_info *tensor;
    struct gg_file_place *places; /* by offset */
    size_t n_tensors, tensor_room;
    struct gg_index tensor_index;

    /* A file that was never written (gg_file_create_planned): it has a header
     * and no data. NULL: it is a real one. */
    const struct gguf_file *like;
    struct gguf_writer *writer; /* has the header */

    struct gguf_reader reader; /* of map.read; zero: there is none */

    /* A set has its shards, each a file by itself. It has no map of its own:
     * its metadata and places are those of its first shard, its tensors copies
     * of those of all shards. */
    struct gguf_file **shard; /* NULL: not a set */
    unsigned n_shards;        /* 0: not a set */
    size_t first_in_set;      /* of a shard: place of its first tensor in the
                               * list of its set */
};

/* Open path by itself, even if it is a shard. */
enum gguf_status gg_file_open_one(struct gguf_file **out, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err);

/* Make the index of the names of n tensors, which is empty. GGUF_E_NOMEM. */
enum gguf_status gg_file_index_tensors(struct gguf_file *f, uint32_t n,
                                       struct gguf_error *err);

/* The file whose tensor *i is tensor *i of f: f itself, or one of its shards,
 * with *i among those of the shard. */
static inline const struct gguf_file *
gg_file_of_tensor(const struct gguf_file *f, size_t *i)
{
    if (!f->shard)
        return f;
    f = f->shard[f->tensor[*i].shard];
    *i -= f->first_in_set;
    return f;
}

/* A tensor of f, as the file has it that has its data. */
struct gg_file_shard_tensor {
    const struct gguf_tensor_info *info; /* info->index counts in file */
    const struct gguf_file *file;        /* f, or one of its shards */
    uint32_t file_no;                    /* number of the shard, from 0 */
};
static inline struct gg_file_shard_tensor
gg_file_in_shard(const struct gguf_file *f, size_t i)
{
    const uint32_t file_no = f->tensor[i].shard;
    const struct gguf_file *of = gg_file_of_tensor(f, &i);
    return (struct gg_file_shard_tensor){ &of->tensor[i], of, file_no };
}

/* gguf_file_open_reader, but for closing: reader stays the caller's. */
enum gguf_status gg_file_open_reader(struct gguf_file **out,
                                     const struct gguf_reader *reader,
                                     const char *name,
                                     const struct gguf_file_params *params,
                                     struct gguf_error *err);

/* GGUF_E_UNSUPPORTED: what is read through a reader is needed in memory. */
enum gguf_status gg_file_fail_unmapped(struct gguf_error *err);
/* Is its data in memory? That, if it is read through a reader. */
enum gguf_status gg_file_require_memory(const struct gguf_file *f,
                                        struct gguf_error *err);

/* Must the data of tensor i, of a type whose numbers' places are known, be
 * swapped to be in the byte order of tensors in memory (dtype/byte_order.h)? */
bool gg_file_tensor_is_swapped(const struct gguf_file *f, size_t i);
/* Can tensor i, of a file in memory, be computed with where it lies: not
 * swapped, and no float or integer of 32 bits off its alignment? */
bool gg_file_tensor_in_place(const struct gguf_file *f, size_t i);

/* Where the data of tensor i is, in a file with a reader once it is fetched. */
static inline const uint8_t *gg_file_tensor_at(const struct gguf_file *f,
                                               size_t i)
{
    f = gg_file_of_tensor(f, &i);
    return f->map.data + f->data_off + f->tensor[i].off;
}

/* If f has a reader: make c, of f's bytes, ask for those that it comes to, up
 * to most of them. f, which c keeps, is that of a pointer c->user. */
void gg_file_reader_cursor(struct gguf_file *f, uint64_t most,
                           struct gg_cursor *c);

/* Append size bytes from byte off on of f, which has them, to o. */
enum gguf_status gg_file_copy(struct gg_outfile *o, const struct gguf_file *f,
                              uint64_t off, uint64_t size,
                              struct gguf_error *err);

/* gg_params_take of given, and the same of its opener, whose functions must be
 * there. */
enum gguf_status gg_file_params_take(struct gguf_file_params *own,
                                     const struct gguf_file_params *given,
                                     struct gguf_error *err);

/* Open what params->opener takes. */
enum gguf_status gg_file_open_with(struct gguf_file **out, const char *path,
                                   const struct gguf_file_params *params,
                                   struct gguf_error *err);

/* Does opener, which may be NULL, take path? */
bool gg_file_opener_takes(const struct gguf_opener *opener, const char *path);

/* Note what f is, its path, and the journal of an edit beside it (journal.h):
 * as "input". */
enum gguf_status gg_file_add_paths(const struct gguf_file *f,
                                   struct gguf_paths *paths,
                                   struct gguf_error *err);

/* Give a file that was opened without a path one, which is copied.
 * GGUF_E_NOMEM. */
enum gguf_status gg_file_set_path(struct gguf_file *f, const char *path,
                                  struct gguf_error *err);

/* Is the file as it was when it was opened (mapfile.h)? NULL is fine.
 * GGUF_E_MISMATCH names it where it has a path. */
enum gguf_status gg_file_check_unchanged(const struct gguf_file *f,
                                         struct gguf_error *err);

/* Copy size bytes from byte off on of tensor i, which it has, as they are in
 * the file now. Fails as gg_mapfile_read. */
enum gguf_status gg_file_read_tensor(const struct gguf_file *f, size_t i,
                                     uint64_t off, uint64_t size, void *dst,
                                     struct gguf_error *err);

/* The file that like would be with the pairs of meta and no others. It has a
 * header only: nothing after it may be read. like is kept; the limits that it
 * was opened with hold. GGUF_E_NOMEM, and for faults of meta: GGUF_E_FORMAT,
 * GGUF_E_LIMIT (alignment). */
enum gguf_status gg_file_create_planned(struct gguf_file **out,
                                        const struct gguf_file *like,
                                        const struct gguf_meta *meta,
                                        const struct gguf_allocator *a,
                                        struct gguf_error *err);

/* What like says with the pairs of changes set: pairs of like, in its order and
 * at its bytes, where changes has no other; then those that like does not have.
 * It has pairs only, no tensors and no bytes. like and changes are kept, as the
 * values are theirs. GGUF_E_NOMEM. */
enum gguf_status gg_file_create_with_pairs(struct gguf_file **out,
                                           const struct gguf_file *like,
                                           const struct gguf_meta *changes,
                                           const struct gguf_allocator *a,
                                           struct gguf_error *err);

#endif
