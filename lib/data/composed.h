/* SPDX-License-Identifier: MIT */
/* composed.h - tensors made of those of another list
 *
 * A tensor is parts, one after another in the order of its elements. A part is
 * a view of one tensor of the base: up to six dimensions, each with its size
 * and its step in elements, the fastest first. Such views are rows in another
 * order, transposed matrices, pieces of a fused tensor, dimensions of one left
 * out; several parts are matrices stacked and rows put together. Then each
 * number may be multiplied, changed by a function, and multiplied again. A part
 * may also be zeros, which stay such.
 * Nothing is held: what is read is read from the base.
 *
 *     [rows, columns] transposed      ne { rows, columns }, step { columns, 1 }
 *     three matrices of n, stacked    three parts of ne { n }, step { 1 }
 */
#ifndef GG_DATA_COMPOSED_H
#define GG_DATA_COMPOSED_H

#include "base/mem.h"
#include "data/data.h"

enum { GG_COMPOSED_DIMS = 6 };

/* What happens to n numbers. */
typedef void gg_composed_fn(float *x, size_t n);

struct gg_composed_part {
    size_t from;    /* tensor of the base */
    uint64_t first; /* its element that is the part's first */
    unsigned n_dims;
    uint64_t ne[GG_COMPOSED_DIMS], step[GG_COMPOSED_DIMS];
    float scale[2]; /* each number is multiplied by these, one after the
                     * other; 0: by none */
    float after;    /* and by this once it is changed; 0: by none */
    uint64_t run;   /* every second run of this many elements is negated, or
                     * 0 */
    bool zero;      /* nothing is read: it is as many zeros as ne says */
};

struct gg_composed_tensor {
    struct gguf_str name; /* kept */
    uint32_t dtype;       /* what it is taken for */
    unsigned n_dims;
    int64_t ne[4];                 /* 1 from n_dims on */
    gg_composed_fn *change;        /* or NULL */
    struct gg_composed_part *part; /* kept */
    size_t n_parts;
    struct gg_data_rows *rows; /* of the parts: the list's */
    uint64_t *end;             /* the element after each */
};

struct gg_data_composed {
    struct gg_data list;
    const struct gg_data *base; /* kept */
    const struct gguf_allocator *allocator;
    struct gg_composed_tensor *tensor; /* kept, and filled in further */
    size_t n_tensors;
};

/* Make m of n tensors. Views that leave their tensor, or parts that are not the
 * tensor's elements together, are found here: GGUF_E_SHAPE; and the statuses of
 * gg_data_rows, GGUF_E_NOMEM. */
enum gguf_status gg_data_composed_init(struct gg_data_composed *m,
                                       const struct gg_data *base,
                                       struct gg_composed_tensor *tensor,
                                       size_t n,
                                       const struct gguf_allocator *allocator,
                                       struct gguf_error *err);
/* Fine on a zeroed struct. */
void gg_data_composed_fini(struct gg_data_composed *m);

#endif
