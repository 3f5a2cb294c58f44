/* SPDX-License-Identifier: MIT */
/* composed.h - tensors assembled from those of another list
 *
 * A tensor is a sequence of parts in the order of its elements. A part is a
 * view of one tensor of the base: up to six dimensions, each with its size and
 * its step in elements, fastest first. One view can permute rows, transpose a
 * matrix, or take a piece of a fused tensor; several parts stack matrices or
 * join rows. Each number may then be multiplied, changed by a function, and
 * multiplied again. A part may also be zeros, which are not changed. Nothing is
 * kept in memory: numbers are read from the base.
 *
 *     [rows, columns] transposed      ne { rows, columns }, step { columns, 1 }
 *     three matrices of n, stacked    three parts of ne { n }, step { 1 }
 */
#ifndef GG_DATA_COMPOSED_H
#define GG_DATA_COMPOSED_H

#include "base/mem.h"
#include "data/data.h"

enum { GG_COMPOSED_DIMS = 6 };

/* Change n numbers in place. */
typedef void gg_composed_fn(float *x, size_t n);

struct gg_composed_part {
    size_t from;    /* number of the tensor in the base */
    uint64_t first; /* first element of that tensor */
    unsigned n_dims;
    uint64_t ne[GG_COMPOSED_DIMS], step[GG_COMPOSED_DIMS];
    /* Factors applied one after the other; 0: none. */
    float scale[2];
    float after;  /* factor applied after the change; 0: none */
    uint64_t run; /* negate every second run of this many elements; 0: none */
    bool zero;    /* ne zeros; the base is not read */
};

struct gg_composed_tensor {
    struct gguf_str name; /* kept */
    uint32_t dtype;       /* type that the tensor is presented as */
    unsigned n_dims;
    int64_t ne[4];                 /* 1 from n_dims on */
    gg_composed_fn *change;        /* function applied to all parts; NULL:
                                    * none */
    struct gg_composed_part *part; /* kept */
    size_t n_parts;
    struct gg_data_rows *rows; /* readers of the parts; owned by the list */
    uint64_t *end;             /* end of each part, in elements */
};

struct gg_data_composed {
    struct gg_data list;
    const struct gg_data *base; /* kept */
    const struct gguf_allocator *allocator;
    struct gg_composed_tensor *tensor; /* kept; members are filled in */
    size_t n_tensors;
};

/* Make m a list of n tensors. GGUF_E_SHAPE: a view reaches outside of its
 * tensor, or the parts do not have the tensor's number of elements.
 * GGUF_E_NOMEM. Other statuses: those of gg_data_rows. */
enum gguf_status gg_data_composed_init(struct gg_data_composed *m,
                                       const struct gg_data *base,
                                       struct gg_composed_tensor *tensor,
                                       size_t n,
                                       const struct gguf_allocator *allocator,
                                       struct gguf_error *err);
/* Does nothing for a zeroed struct. */
void gg_data_composed_fini(struct gg_data_composed *m);

#endif
