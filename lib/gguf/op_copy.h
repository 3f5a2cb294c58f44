/* SPDX-License-Identifier: MIT */
/* op_copy.h - copies, views, rows by index, concatenation
 *
 * op.h explains the notation and the failures that all builders have.
 */
#ifndef GGUF_OP_COPY_H
#define GGUF_OP_COPY_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- copies --------------------------------------------------------------- */

/* Contiguous copy of a tensor.
 *
 *   a   any shape, type and strides
 *   ->  shape and type of a */
GGUF_BUILDER_1(gguf_op_dup);

/* Contiguous copy of a tensor, for an operation that needs a contiguous source.
 *
 *   a   any shape, type and strides
 *   ->  shape and type of a
 *
 * The result is a node even if a is contiguous already, so that the nodes of a
 * graph do not depend on shapes. If a is contiguous and nothing else reads it,
 * a graph allocator gives the result a's memory and no copy is made. */
GGUF_BUILDER_1(gguf_op_cont);

/* Copy of a tensor in another type.
 *
 *   a       any shape, type that decodes
 *   dtype   GGUF_DTYPE_... of the result
 *   ->      shape of a, type dtype, contiguous
 *
 * An element keeps its value if dtype can hold it. Others are rounded to the
 * nearest, ties to even (f16, bf16), or quantized without importance data.
 *
 * GGUF_E_SHAPE also if the length of a row of a is not a multiple of dtype's
 * block. */
GGUF_API struct gguf_tensor *
gguf_op_cast(struct gguf_ctx *ctx, struct gguf_tensor *a, uint32_t dtype);

/* Copy the elements of one tensor into another.
 *
 *   a   source: any shape, type that decodes
 *   b   destination: the same number of elements, any shape, type that
 *       encodes. It must not overlap a
 *   ->  view of all of b
 *
 * Elements are taken in order, i0 fastest, and converted as gguf_op_cast()
 * does. Read the result, not b, in the rest of the graph: so that the reader
 * comes after the copy. */
GGUF_BUILDER_2(gguf_op_cpy);

/* --- views ---------------------------------------------------------------- */

/* View of all elements in another shape.
 *
 *   a     contiguous, any type
 *   ne0, ne1, ne2, ne3
 *         dimensions of the result; their product is the number of elements of
 *         a. For a quantized type ne0 is a multiple of the block
 *   ->    view [ne0, ne1, ne2, ne3] of a, a's type */
GGUF_API struct gguf_tensor *
gguf_op_reshape_1d(struct gguf_ctx *ctx, struct gguf_tensor *a, int64_t ne0);
GGUF_API struct gguf_tensor *gguf_op_reshape_2d(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a,
                                                int64_t ne0, int64_t ne1);
GGUF_API struct gguf_tensor *gguf_op_reshape_3d(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a,
                                                int64_t ne0, int64_t ne1,
                                                int64_t ne2);
GGUF_API struct gguf_tensor *gguf_op_reshape_4d(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a,
                                                int64_t ne0, int64_t ne1,
                                                int64_t ne2, int64_t ne3);

/* View of a part of a tensor.
 *
 *   a     any type without row headers
 *   ne0, ne1, ne2, ne3
 *         dimensions of the view
 *   nb1, nb2, nb3
 *         byte strides of dimensions 1 to 3, multiples of the type's block
 *         size. Strides without a parameter follow from the dimension below
 *   off   bytes from the first element of a to the first element of the
 *         view, a multiple of the type's block size
 *   ->    view [ne0, ne1, ne2, ne3] of a, a's type
 *
 * The view must lie inside the bytes of a (gguf_tensor_size()); otherwise
 * GGUF_E_SHAPE. A view of a view refers to the root. */
GGUF_API struct gguf_tensor *gguf_op_view_1d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             int64_t ne0, uint64_t off);
GGUF_API struct gguf_tensor *gguf_op_view_2d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             int64_t ne0, int64_t ne1,
                                             int64_t nb1, uint64_t off);
GGUF_API struct gguf_tensor *gguf_op_view_3d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             int64_t ne0, int64_t ne1,
                                             int64_t ne2, int64_t nb1,
                                             int64_t nb2, uint64_t off);
GGUF_API struct gguf_tensor *
gguf_op_view_4d(struct gguf_ctx *ctx, struct gguf_tensor *a, int64_t ne0,
                int64_t ne1, int64_t ne2, int64_t ne3, int64_t nb1,
                int64_t nb2, int64_t nb3, uint64_t off);

/* View with the dimensions in another order.
 *
 *   a     any type; a quantized type keeps dimension 0 in its place
 *   axis0, axis1, axis2, axis3
 *         dimension i of a becomes dimension axis_i of the result: 0 to 3,
 *         each once
 *   ->    view of a, a's type
 *
 * gguf_op_permute(ctx, a, 0, 2, 1, 3) turns [d, head, tok] into
 * [d, tok, head]. */
GGUF_API struct gguf_tensor *gguf_op_permute(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             unsigned axis0, unsigned axis1,
                                             unsigned axis2, unsigned axis3);

/* View with the first two dimensions exchanged: gguf_op_permute() with axes 1,
 * 0, 2, 3.
 *
 *   a   [m, n, ...], not quantized
 *   ->  view [n, m, ...] of a, a's type */
GGUF_BUILDER_1(gguf_op_transpose);

/* --- rows by index -------------------------------------------------------- */

/* Gather rows: y[:, r, i2, i3] = a[:, ids[r, i2, i3], i2, i3].
 *
 *   a     [n, m, b2, b3], any type that decodes
 *   ids   i32 [r, b2, b3], each in 0 to m - 1
 *   ->    [n, r, b2, b3], i32 if a is i32, otherwise f32
 *
 * An index out of range makes the computation fail with GGUF_E_INVALID. */
GGUF_API struct gguf_tensor *gguf_op_get_rows(struct gguf_ctx *ctx,
                                              struct gguf_tensor *a,
                                              struct gguf_tensor *ids);

/* Scatter rows: dst[:, ids[r, i2, i3], i2, i3] = src[:, r, i2, i3].
 *
 *   dst   [n, m, b2, b3], any type that encodes
 *   src   f32 [n, r, b2, b3]
 *   ids   i32 or i64 [r, c2, c3], each in 0 to m - 1; c2 divides b2, c3
 *         divides b3
 *   ->    view of all of dst
 *
 * If an index occurs twice the last row is kept. An index out of range makes
 * the computation fail with GGUF_E_INVALID. Read the result, not dst, in the
 * rest of the graph: so that the reader comes after the stores. */
GGUF_API struct gguf_tensor *gguf_op_set_rows(struct gguf_ctx *ctx,
                                              struct gguf_tensor *dst,
                                              struct gguf_tensor *src,
                                              struct gguf_tensor *ids);

/* --- concatenation, repetition, padding ----------------------------------- */

/* Concatenate two tensors along a dimension.
 *
 *   a, b  equal in type and in all dimensions but dim; any type
 *   dim   0 to 3
 *   ->    shape of a with dimension dim the sum of both, a's type. Blocks
 *         of a quantized type are copied whole */
GGUF_API struct gguf_tensor *gguf_op_concat(struct gguf_ctx *ctx,
                                            struct gguf_tensor *a,
                                            struct gguf_tensor *b,
                                            unsigned dim);

/* Repeat a tensor: y[i] = a[i mod ne of a].
 *
 *   a     any type
 *   ne0, ne1, ne2, ne3
 *         dimensions of the result, multiples of the dimensions of a
 *   ->    [ne0, ne1, ne2, ne3], a's type */
GGUF_API struct gguf_tensor *gguf_op_repeat(struct gguf_ctx *ctx,
                                            struct gguf_tensor *a, int64_t ne0,
                                            int64_t ne1, int64_t ne2,
                                            int64_t ne3);

/* Append zeros along each dimension.
 *
 *   a     not quantized
 *   p0, p1, p2, p3
 *         elements to append in dimensions 0 to 3, each >= 0
 *   ->    [ne0 + p0, ne1 + p1, ne2 + p2, ne3 + p3], a's type */
GGUF_API struct gguf_tensor *gguf_op_pad(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a, int32_t p0,
                                         int32_t p1, int32_t p2, int32_t p3);

/* Rotate the elements along each dimension: element i of dimension d moves to
 * (i + s_d) mod ne_d.
 *
 *   a     not quantized
 *   s0, s1, s2, s3
 *         shifts of dimensions 0 to 3; negative shifts move down
 *   ->    shape and type of a */
GGUF_API struct gguf_tensor *gguf_op_roll(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a, int32_t s0,
                                          int32_t s1, int32_t s2, int32_t s3);

#ifdef __cplusplus
}
#endif
#endif
