/* SPDX-License-Identifier: MIT */
/* op_copy.h - copies, views, rows by number, joins
 *
 * Conventions: op.h.
 */
#ifndef GGUF_OP_COPY_H
#define GGUF_OP_COPY_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- copies --------------------------------------------------------------- */

/* A contiguous copy of a, of a's type. */
GGUF_BUILDER_1(gguf_op_dup);
/* As dup, for operations that need a contiguous source. It is a node even if a
 * is contiguous already, so that the nodes of a graph do not depend on shapes.
 * If nothing else reads a, the result lies in a's memory and costs nothing. */
GGUF_BUILDER_1(gguf_op_cont);
/* As dup, converted to another type. Elements keep their value if the type can
 * hold it; else they are rounded to nearest even (f16, bf16) or encoded as by
 * quantization without importance data. */
GGUF_API struct gguf_tensor *
gguf_op_cast(struct gguf_ctx *ctx, struct gguf_tensor *a, uint32_t dtype);
/* Copy a into b: same number of elements, any shapes (in element order), any
 * strides, types as for cast; a and b must not overlap. The result is a view
 * of b: use it in the graph in place of b, so that readers of b come after the
 * copy. */
GGUF_BUILDER_2(gguf_op_cpy);

/* --- shapes --------------------------------------------------------------- */

/* a's elements in another shape of as many elements. a must be contiguous;
 * of a quantized type the new ne0 is a multiple of the block. */
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

/* A window into a: shape, byte strides nb1.. of the upper dimensions (those
 * above the last given follow from it), off bytes after a's first element.
 * The window must lie inside a's bytes. Views of views refer to the root. */
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

/* Dimension i of a becomes dimension axis_i of the result; the axes are 0 to
 * 3 in some order. permute(a, 0, 2, 1, 3): [d, head, tok] to [d, tok, head]. */
GGUF_API struct gguf_tensor *gguf_op_permute(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             unsigned axis0, unsigned axis1,
                                             unsigned axis2, unsigned axis3);
/* permute(a, 1, 0, 2, 3). */
GGUF_BUILDER_1(gguf_op_transpose);

/* --- rows ----------------------------------------------------------------- */

/* Rows of a by number. a [n, m, b2, b3] of any type that decodes, ids i32
 * [r, b2, b3] -> [n, r, b2, b3]; i32 if a is i32. A number that is not in
 * [0, m) fails the computation with GGUF_E_INVALID. */
GGUF_API struct gguf_tensor *gguf_op_get_rows(struct gguf_ctx *ctx,
                                              struct gguf_tensor *a,
                                              struct gguf_tensor *ids);
/* Store rows: src f32 [n, r, b2, b3] into rows ids (i32 or i64 [r, c2, c3],
 * broadcast over b2, b3) of dst [n, m, b2, b3], any type that encodes. The
 * result is dst again, as with cpy. If a row is named twice the last one is
 * kept. A number out of range fails the computation as with get_rows. */
GGUF_API struct gguf_tensor *gguf_op_set_rows(struct gguf_ctx *ctx,
                                              struct gguf_tensor *dst,
                                              struct gguf_tensor *src,
                                              struct gguf_tensor *ids);

/* --- put together -------------------------------------------------------- */

/* a, then b, along dimension dim (0 to 3); the other dimensions and the types
 * agree; blocks are not cut. The type is kept and may be any. */
GGUF_API struct gguf_tensor *gguf_op_concat(struct gguf_ctx *ctx,
                                            struct gguf_tensor *a,
                                            struct gguf_tensor *b,
                                            unsigned dim);
/* a repeated to the shape ne[4], multiples of a's dimensions. Types as
 * concat. */
GGUF_API struct gguf_tensor *gguf_op_repeat(struct gguf_ctx *ctx,
                                            struct gguf_tensor *a, int64_t ne0,
                                            int64_t ne1, int64_t ne2,
                                            int64_t ne3);
/* Zeros after a: p[i] more elements in dimension i. Single elements only. */
GGUF_API struct gguf_tensor *gguf_op_pad(struct gguf_ctx *ctx,
                                         struct gguf_tensor *a, int32_t p0,
                                         int32_t p1, int32_t p2, int32_t p3);
/* Element i of each dimension d goes to (i + s[d]) mod ne[d]; s may be
 * negative. Single elements only. */
GGUF_API struct gguf_tensor *gguf_op_roll(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a, int32_t s0,
                                          int32_t s1, int32_t s2, int32_t s3);

#ifdef __cplusplus
}
#endif
#endif
