/* SPDX-License-Identifier: MIT */
/* op.h - operations: how results are computed from tensors
 *
 * A builder, such as gguf_op_add(ctx, a, b), creates the tensor for a result in
 * ctx, checks the sources' types and shapes, and records sources and
 * parameters. It computes nothing: a backend does that when it runs a graph
 * (graph.h, backend.h). Sources must live as long as the result, in ctx or in
 * another context.
 *
 * Notation in the comments of all builders:
 *
 *   shapes     [ne0, ne1, ne2, ne3], the fastest dimension first.
 *              Dimensions that are not written are 1.
 *   types      "float" is f32, f16, bf16 or f64; "any that decodes"
 *              includes quantized types. gguf_backend_supports_op() tells
 *              which types a backend computes.
 *   strides    any, unless the comment asks for contiguous rows.
 *   broadcast  "b broadcasts to a": each dimension of a is a multiple of
 *              the dimension of b. Index i of a meets index i mod ne of b.
 *   results    f32 and contiguous, unless the comment gives another type.
 *
 * Builders return the result, or NULL after a sticky failure (context.h):
 *
 *   GGUF_E_SHAPE      The shapes do not go together.
 *   GGUF_E_TYPE       A source has a type that the operation does not take.
 *   GGUF_E_INVALID    A required source is NULL, or a parameter is out of
 *                     range.
 *   GGUF_E_OVERFLOW   The size of the result does not fit in 63 bits.
 *   GGUF_E_FULL       The context has too little room.
 *
 * The message names the operation and the sources' shapes. Sources are required
 * unless their comment says "NULL".
 *
 * Names. Copies and views of a tensor with a name get a name from it: "x
 * (view)", "x (reshaped)", "x (permuted)", "x (transposed)", "x (cont)", "x
 * (copy)". gguf_op_cpy() of x into y gives "y (copy of x)", gguf_op_set_rows()
 * into y gives "y (view)".
 *
 * Headers:
 *
 *   op_copy.h     copies, views, rows by index, concatenation
 *   op_elem.h     elementwise functions and gates
 *   op_row.h      sums, sorting, norms, masks, softmax
 *   op_mat.h      matrix products, rotary embedding, attention
 *   op_conv.h     convolution, pooling, time-step embedding
 *   op_recur.h    state-space models and linear attention
 *   op_custom.h   operations that the program computes itself
 *   op_back.h     vector-Jacobian products, for gradients (gradient.h)
 *
 * gguf-ops(7) lists them all. The group norm, gates, masks, sinks, rotary
 * embedding, outer products, op_conv.h and op_recur.h agree with ggml's CPU
 * backend (commit d99724f2, 2026-08-21) within f32 rounding, or f16 rounding
 * where ggml rounds to f16. One differs: gguf_op_conv_1d() of several
 * sequences, for which ggml's memory order does not match its own shape.
 *
 * Threads: as the context. Since: 0.1, all of them.
 */
#ifndef GGUF_OP_H
#define GGUF_OP_H

#include <gguf/op_back.h>
#include <gguf/op_conv.h>
#include <gguf/op_copy.h>
#include <gguf/op_custom.h>
#include <gguf/op_elem.h>
#include <gguf/op_mat.h>
#include <gguf/op_recur.h>
#include <gguf/op_row.h>

#endif
