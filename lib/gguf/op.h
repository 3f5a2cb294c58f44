/* SPDX-License-Identifier: MIT */
/* op.h - operations: describing computation
 *
 * Each function makes the tensor that will hold a result, checks the shapes
 * and records sources and parameters. Nothing is computed before a backend
 * runs a graph (graph.h, backend.h). The result lies in ctx; its sources must
 * live as long as it does, in ctx or another context.
 *
 * Failure returns NULL and stays in ctx (tensor.h): GGUF_E_SHAPE and
 * GGUF_E_TYPE name the operation and the shapes, GGUF_E_FULL the context.
 * A NULL source gives NULL; sources that are documented as optional may be
 * NULL. Shapes are written [ne0, ne1, ...], fastest dimension first, missing
 * ones 1. Results are contiguous and f32 unless said otherwise.
 *
 * "b broadcasts to a": each dimension of b divides that of a; index i of a
 * meets index i mod ne of b.
 *
 * Copies and views of a tensor with a name are named after it: "x (view)",
 * "x (reshaped)", "x (permuted)", "x (transposed)", "x (cont)", "x (copy)",
 * "y (copy of x)"; what set_rows gives, "y (view)".
 *
 * gguf_backend_supports_op() tells which types a backend computes.
 *
 * Groups: op_copy.h copies, views, rows by number, joins; op_elem.h element by
 * element; op_row.h sums, orders, norms, soft-max; op_mat.h products, rotary
 * embedding, attention; op_conv.h convolution, pooling; op_recur.h state
 * spaces and linear attention; op_custom.h the program's own. gguf-ops(7)
 * lists all. The group norm, gated forms, masks, sinks, rope, out_prod,
 * op_conv.h and op_recur.h give what ggml's CPU backend gives (d99724f2,
 * 2026-08-21), within f32, or f16 where ggml rounds to that; except conv_1d of
 * several sequences, which ggml lays out in another order than its shape says.
 * Since: 0.1, all of them.
 */
#ifndef GGUF_OP_H
#define GGUF_OP_H

#include <gguf/op_conv.h>
#include <gguf/op_copy.h>
#include <gguf/op_custom.h>
#include <gguf/op_elem.h>
#include <gguf/op_mat.h>
#include <gguf/op_recur.h>
#include <gguf/op_row.h>

#endif
