/* SPDX-License-Identifier: MIT */
/* data.h - lists of tensors whose numbers can be read
 *
 * A list has tensors by number. Each has a name, a type and dimensions, and
 * gives its elements as floats, whatever the type, the order of its bytes, the
 * scales outside of its blocks or the form of the file. Code that reads
 * numbers takes a list, and does not know files. A source makes a list: of
 * GGUF files (gguf_list.h), of another form of files, or of other lists, whose
 * tensors it permutes, stacks or scales. To add one, write the four functions
 * below, and embed a struct gg_data as the first member of its own.
 *
 * A list does not change, and is asked by any thread.
 */
#ifndef GG_DATA_DATA_H
#define GG_DATA_DATA_H

#include "base/error.h"
#include "base/mapfile.h"
#include "data/stored.h"
#include "gguf/file.h"

struct gg_data_info {
    struct gguf_str name; /* the list's */
    uint32_t dtype;       /* id of the type, also one that is not known */
    unsigned n_dims;
    int64_t ne[GGUF_MAX_DIMS]; /* elements, fastest dimension first; 1 from
                                * n_dims on */
    uint64_t n_elements;
    uint64_t size;      /* bytes that it is stored in */
    uint64_t info_off;  /* byte of the file that tells of it, for messages;
                           * GGUF_NO_OFFSET */
    uint64_t off;       /* first byte of its data in the file; GGUF_NO_OFFSET:
                         * computed, or of several files */
    uint32_t file_no;   /* number of that file (gg_data_file) */
    bool big_endian;    /* byte order of what gg_data_bytes gives */
    bool size_inferred; /* size is a guess: the type is unknown */
};

/* What one tensor's elements come from: read by any number of threads, as long
 * as the list is there. */
struct gg_data_rows;
typedef void gg_data_read_fn(const struct gg_data_rows *r, uint64_t first,
                             uint64_t n, float *dst);
typedef void gg_data_blocks_fn(const struct gg_data_rows *r, uint64_t first,
                               uint64_t n, uint8_t *dst);
struct gg_data_rows {
    gg_data_read_fn *read;
    struct gg_stored stored;   /* where they lie, if they lie anywhere */
    const void *source;        /* what the list's source keeps for them */
    gg_data_blocks_fn *blocks; /* the same elements as the type of the tensor
                                * stores them, where they do not lie so but
                                * need not be computed; or NULL */
};

/* n elements from element first on, in the order of the dimensions, into
 * dst[n]: multiples of the type's block_len, inside a row or of whole rows.
 * Cannot fail. */
static inline void gg_data_read(const struct gg_data_rows *r, uint64_t first,
                                uint64_t n, float *dst)
{
    r->read(r, first, n, dst);
}

/* The largest finite size of n elements from first on, or largest if that is
 * larger; buf has room for size elements, a multiple of the type's block. */
float gg_data_find_largest(const struct gg_data_rows *r, uint64_t first,
                           uint64_t n, float largest, float *buf,
                           uint64_t size);

/* A file that a list reads. */
struct gg_data_file {
    const struct gg_mapfile *map;
    const char *path; /* NULL: unknown */
    uint64_t header;  /* size of the header that a digest includes, or 0 */
};

struct gg_data;
struct gg_data_ops {
    size_t (*n_tensors)(const struct gg_data *d);
    void (*info)(const struct gg_data *d, size_t i, struct gg_data_info *out);
    enum gguf_status (*rows)(const struct gg_data *d, size_t i,
                             struct gg_data_rows *out, struct gguf_error *err);
    const uint8_t *(*bytes)(const struct gg_data *d, size_t i);
    /* The i-th file that numbers are read from; false after the last. No
     * function: the list reads no file. */
    bool (*file)(const struct gg_data *d, size_t i, struct gg_data_file *out);
    /* Elements first to first + n of tensor i are read soon, or were: a hint,
     * for the pages of files. No function: there is none to give. */
    void (*advise)(const struct gg_data *d, size_t i, uint64_t first,
                   uint64_t n, enum gg_mapfile_advice how);
    /* Have what elements first to first + n of tensor i are made of in memory;
     * or let go of it, which cannot fail. No function: it always is. */
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

/* Tensor i, which is in range here and in what follows. */
static inline void gg_data_info(const struct gg_data *d, size_t i,
                                struct gg_data_info *out)
{
    d->ops->info(d, i, out);
}

/* Prepare to read it. All of its faults are found here. GGUF_E_UNSUPPORTED
 * (not decoded), GGUF_E_TENSOR (its scale). */
static inline enum gguf_status gg_data_rows(const struct gg_data *d, size_t i,
                                            struct gg_data_rows *out,
                                            struct gguf_error *err)
{
    return d->ops->rows(d, i, out, err);
}

/* Before elements first to first + n of tensor i are read, or their bytes: a
 * list whose files are read through a function brings them. After a failure
 * nothing is held, or the list is only to be closed. What the function
 * returns. */
static inline enum gguf_status gg_data_hold(const struct gg_data *d, size_t i,
                                            uint64_t first, uint64_t n,
                                            struct gguf_error *err)
{
    return d->ops->hold ? d->ops->hold(d, i, first, n, true, err) : GGUF_OK;
}

/* They were read. */
static inline void gg_data_release(const struct gg_data *d, size_t i,
                                   uint64_t first, uint64_t n)
{
    if (d->ops->hold)
        (void)d->ops->hold(d, i, first, n, false, NULL);
}

/* Its bytes as they are stored, of any alignment; NULL if the source computes
 * the numbers. */
static inline const uint8_t *gg_data_bytes(const struct gg_data *d, size_t i)
{
    return d->ops->bytes(d, i);
}

/* What a list has that gives the tensors of another with other numbers, as its
 * first member, and its functions for what stays the same. */
struct gg_data_overlay {
    struct gg_data list;
    const struct gg_data *base; /* kept */
};
size_t gg_data_overlay_n_tensors(const struct gg_data *d);
void gg_data_overlay_info(const struct gg_data *d, size_t i,
                          struct gg_data_info *out);

/* Bytes of a block of the type, and in *elements its length; where rows have
 * headers, those of a whole row of ne0 elements. 0: the type is unknown. */
uint64_t gg_data_block_size(uint32_t dtype, uint64_t ne0, uint64_t *elements);

/* The i-th file that numbers are read from; false after the last. */
static inline bool gg_data_file(const struct gg_data *d, size_t i,
                                struct gg_data_file *out)
{
    return d->ops->file && d->ops->file(d, i, out);
}

/* Elements first to first + n of tensor i are read soon, or were. */
static inline void gg_data_advise(const struct gg_data *d, size_t i,
                                  uint64_t first, uint64_t n,
                                  enum gg_mapfile_advice how)
{
    if (d->ops->advise)
        d->ops->advise(d, i, first, n, how);
}

#endif
