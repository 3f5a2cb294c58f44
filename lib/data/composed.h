/* SPDX-License-Identifier: MIT */
/* composed.h - tensors assembled from those of another list
 *
 * The elements of a tensor are those of its parts, one part after the other. A
 * part is a view of one tensor of the base list: up to six dimensions, each
 * with its size and its step in elements, fastest first. One view can permute
 * rows, transpose a matrix, or take a piece of a fused tensor. Several parts
 * stack matrices, or put the rows of one matrix below those of another.
 *
 * Each number that is read from the base is then, in this order: multiplied by
 * the factors of scale, passed to the function change, multiplied by after, and
 * negated if run says so. A part may also be zeros; none of these steps applies
 * to it.
 *
 * The list stores no numbers: each read computes them from the base.
 *
 *     transpose of a matrix with ne { columns, rows }
 *                                     ne { rows, columns }, step { columns, 1 }
 *     three matrices of n elements, stacked
 *                                     three parts, each ne { n }, step { 1 }
 *
 * Instead, the elements can be products of those of all parts (product).
 */
#ifndef GG_DATA_COMPOSED_H
#define GG_DATA_COMPOSED_H

#include "base/mem.h"
#include "data/data.h"

enum { GG_COMPOSED_DIMS = 6 };

/* Replace each of n numbers by a function of this number alone. n may be any
 * part of a tensor, so that the function cannot depend on other numbers. */
typedef void gg_composed_fn(float *x, size_t n);

struct gg_composed_part {
    /* index of a tensor in the base; must be valid even if zero is set */
    size_t from;
    uint64_t first; /* index of the view's first element in that tensor */
    unsigned n_dims;
    /* Size and step of each dimension, in elements. init replaces dimensions
     * that follow each other without a gap by one dimension. */
    uint64_t ne[GG_COMPOSED_DIMS], step[GG_COMPOSED_DIMS];
    /* Factors applied one after the other. 0: none. If scale[0] is 0, scale[1]
     * is ignored. */
    float scale[2];
    float after; /* factor applied after the change; 0: none */
    /* Elements of a run. The part's elements, in the order of the view, form
     * runs of this length. The 2nd, 4th, 6th run and so on are negated. 0:
     * nothing is negated. */
    uint64_t run;
    /* All elements of the part are zeros, and the base is not read. The view
     * must still lie within its tensor; steps may be 0. */
    bool zero;
};

struct gg_composed_tensor {
    /* Not copied: it must outlive the list. */
    struct gguf_str name;
    /* Type that the list reports. Numbers are read as floats and are not
     * rounded to it. If the parts are unchanged blocks of tensors of this type,
     * the blocks can be read, too. */
    uint32_t dtype;
    bool keeps_type; /* jobs write it as dtype, whatever the recipe says */
    unsigned n_dims;
    int64_t ne[4]; /* dimensions; the caller sets those from n_dims on to 1 */
    /* Function applied to the numbers of each part that is not zeros. NULL: no
     * function. */
    gg_composed_fn *change;
    /* Array of n_parts parts. Not copied: it must outlive the list, and belongs
     * to the caller. n_parts may be 0 if the tensor has no elements. */
    struct gg_composed_part *part;
    size_t n_parts;
    /* Each part is as long as the tensor, and none is zeros. An element is the
     * product of the parts' elements at its place. */
    bool product;
    /* Readers of the parts. Set by init and freed by fini. */
    struct gg_data_rows *rows;
    /* For each part, the number of this tensor's elements up to the end of the
     * part; of a product, all. Set by init and freed by fini. */
    uint64_t *end;
};

struct gg_data_composed {
    struct gg_data list;
    const struct gg_data *base; /* not owned: it must outlive the list */
    const struct gguf_allocator *allocator;
    /* Array of n_tensors tensors. Not copied: it must outlive the list, and
     * belongs to the caller. */
    struct gg_composed_tensor *tensor;
    size_t n_tensors;
};

/* Make m a list of n tensors.
 *
 * base     List that the parts view. It must outlive m.
 * tensor   The n tensors. The caller sets all members but rows and end, which
 *          init sets. The array must outlive m.
 *
 * Call fini() after the last use of the list. After a failure of init() fini()
 * need not be called.
 *
 * GGUF_E_SHAPE   A view has a size of 0, 0 or more than 6 dimensions, or
 *                reaches outside of its tensor; or the parts do not have the
 *                tensor's number of elements.
 * GGUF_E_NOMEM   Memory for rows or end cannot be allocated.
 *
 * Other statuses are those of gg_data_rows(). */
enum gguf_status gg_data_composed_init(struct gg_data_composed *m,
                                       const struct gg_data *base,
                                       struct gg_composed_tensor *tensor,
                                       size_t n,
                                       const struct gguf_allocator *allocator,
                                       struct gguf_error *err);
/* Free what init() allocated, but not the arrays of the caller. m becomes a
 * list of no tensors, so that a second call does nothing. m may be zeroed. */
void gg_data_composed_fini(struct gg_data_composed *m);

#endif
