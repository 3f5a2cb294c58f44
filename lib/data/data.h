/* SPDX-License-Identifier: MIT */
/* data.h - lists of tensors with readable numbers
 *
 * A list has numbered tensors. Each has a name, a type and dimensions, and
 * gives its elements as floats, for any type, byte order, scale tensor or file
 * form. Code that reads numbers takes a list and does not know files. A source
 * makes a list: from GGUF files (gguf_list.h), from files of another form, or
 * from other lists, whose tensors it permutes, stacks or scales. To add a
 * source, write the functions of struct gg_data_ops, and make a struct gg_data
 * the first member of its own struct.
 *
 * A list never changes; any thread may use it.
 */
#ifndef GG_DATA_DATA_H
#define GG_DATA_DATA_H

#include "base/error.h"
#include "base/mapfile.h"
#include "data/stored.h"
#include "gguf/file.h"

struct gg_data_info {
    struct gguf_str name; /* belongs to the list */
    uint32_t dtype;       /* type id, which may be unknown */
    unsigned n_dims;
    int64_t ne[GGUF_MAX_DIMS]; /* elements per dimension, fastest first; 1 from
                                * n_dims on */
    uint64_t n_elements;
    uint64_t size;      /* bytes of the stored data */
    uint64_t info_off;  /* byte of the file that describes the tensor, for
                         * messages; GGUF_NO_OFFSET: unknown */
    uint64_t off;       /* first byte of the data in the file; GGUF_NO_OFFSET:
                         * computed, or from several files */
    uint32_t file_no;   /* number of that file (gg_data_file) */
    bool big_endian;    /* byte order of gg_data_bytes */
    bool keeps_type;    /* readers of the file require the type */
    bool size_inferred; /* size is a guess, because the type is unknown */
};

/* Reader of one tensor's elements. Valid as long as the list; any number of
 * threads may use it. */
struct gg_data_rows;
typedef void gg_data_read_fn(const struct gg_data_rows *r, uint64_t first,
                             uint64_t n, float *dst);
typedef void gg_data_blocks_fn(const struct gg_data_rows *r, uint64_t first,
                               uint64_t n, uint8_t *dst);
struct gg_data_rows {
    gg_data_read_fn *read;
    struct gg_stored stored; /* place of stored elements, for readers that
                              * need it */
    const void *source;      /* state of the list's source */
    /* Reads the same elements in the tensor's own type, for tensors that are
     * not stored in one piece but need no computing. NULL: not possible. */
    gg_data_blocks_fn *blocks;
};

/* Read n elements from element first on to dst[n]. first and n must be
 * multiples of the type's block_len, inside a row or for whole rows. Cannot
 * fail. */
static inline void gg_data_read(const struct gg_data_rows *r, uint64_t first,
                                uint64_t n, float *dst)
{
    r->read(r, first, n, dst);
}

/* Largest finite magnitude of n elements from first on and of largest. buf is a
 * buffer of size elements, a multiple of the type's block. */
float gg_data_find_largest(const struct gg_data_rows *r, uint64_t first,
                           uint64_t n, float largest, float *buf,
                           uint64_t size);

/* A file behind a list. */
struct gg_data_file {
    const struct gg_mapfile *map;
    const char *path; /* NULL: unknown */
    uint64_t header;  /* size of the header to include in a digest, or 0 */
};

struct gg_data;
struct gg_data_ops {
    size_t (*n_tensors)(const struct gg_data *d);
    void (*info)(const struct gg_data *d, size_t i, struct gg_data_info *out);
    enum gguf_status (*rows)(const struct gg_data *d, size_t i,
                             struct gg_data_rows *out, struct gguf_error *err);
    const uint8_t *(*bytes)(const struct gg_data *d, size_t i);
    /* Get file i that numbers are read from; false after the last. NULL: no
     * files. */
    bool (*file)(const struct gg_data *d, size_t i, struct gg_data_file *out);
    /* Tell the system that elements first to first + n of tensor i are needed
     * soon, or no longer. NULL: no hints. */
    void (*advise)(const struct gg_data *d, size_t i, uint64_t first,
                   uint64_t n, enum gg_mapfile_advice how);
    /* Load the sources of elements first to first + n of tensor i into memory
     * or, with begin false, release them (cannot fail). NULL: always in
     * memory. */
    enum gguf_status (*hold)(const struct gg_data *d, size_t i, uint64_t first,
                             uint64_t n, bool begin, struct gguf_error *err);
};
struct gg_data {
    const struct gg_data_ops *ops;
};

static inline size_t gg_data_n_tensors(const struct gg_data *d)
{
    return d->ops->n_tensors(d);
}

/* Describe tensor i, which must be in range here and below. */
static inline void gg_data_info(const struct gg_data *d, size_t i,
                                struct gg_data_info *out)
{
    d->ops->info(d, i, out);
}

/* Prepare to read tensor i. All its defects are found here. GGUF_E_UNSUPPORTED:
 * its type cannot be decoded. GGUF_E_TENSOR: its scale is wrong. */
static inline enum gguf_status gg_data_rows(const struct gg_data *d, size_t i,
                                            struct gg_data_rows *out,
                                            struct gguf_error *err)
{
    return d->ops->rows(d, i, out, err);
}

/* Hold elements first to first + n of tensor i in memory, before they or their
 * bytes are read. Lists over readers load them here. After a failure nothing is
 * held, or the list can only be closed. Statuses: those of the reader. */
static inline enum gguf_status gg_data_hold(const struct gg_data *d, size_t i,
                                            uint64_t first, uint64_t n,
                                            struct gguf_error *err)
{
    return d->ops->hold ? d->ops->hold(d, i, first, n, true, err) : GGUF_OK;
}

/* Release elements that gg_data_hold holds. */
static inline void gg_data_release(const struct gg_data *d, size_t i,
                                   uint64_t first, uint64_t n)
{
    if (d->ops->hold)
        (void)d->ops->hold(d, i, first, n, false, NULL);
}

/* Stored bytes of tensor i, with any alignment; NULL if its numbers are
 * computed. */
static inline const uint8_t *gg_data_bytes(const struct gg_data *d, size_t i)
{
    return d->ops->bytes(d, i);
}

/* Common part of lists that change numbers and keep everything else of another
 * list: the first member of such a list, and functions for the unchanged
 * part. */
struct gg_data_overlay {
    struct gg_data list;
    const struct gg_data *base; /* kept */
};
size_t gg_data_overlay_n_tensors(const struct gg_data *d);
void gg_data_overlay_info(const struct gg_data *d, size_t i,
                          struct gg_data_info *out);

/* Bytes of a block of the type; *elements receives its length. For types with
 * row headers: those of a whole row of ne0 elements; for interleaved types: a
 * group of rows. 0: the type is unknown. */
uint64_t gg_data_block_size(uint32_t dtype, uint64_t ne0, uint64_t *elements);

/* Get file i that numbers are read from; false after the last. */
static inline bool gg_data_file(const struct gg_data *d, size_t i,
                                struct gg_data_file *out)
{
    return d->ops->file && d->ops->file(d, i, out);
}

/* Tell the system that elements first to first + n of tensor i are needed soon,
 * or no longer. */
static inline void gg_data_advise(const struct gg_data *d, size_t i,
                                  uint64_t first, uint64_t n,
                                  enum gg_mapfile_advice how)
{
    if (d->ops->advise)
        d->ops->advise(d, i, first, n, how);
}

#endif
