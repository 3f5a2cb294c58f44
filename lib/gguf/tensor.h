/* SPDX-License-Identifier: MIT */
/* tensor.h - tensors: descriptions of arrays
 *
 * A tensor describes an array (type, dimensions, strides) and where its
 * elements come from: memory that the program fills, or an operation on other
 * tensors. The usual sequence of calls is
 *
 *     1  gguf_ctx_create()           an arena for descriptions (context.h)
 *     2  gguf_tensor_create_2d()     leaves: inputs and weights
 *     3  gguf_op_add(), ...          results of operations (op.h)
 *     4  gguf_graph_finish()         nodes in the order of computation. It
 *                                    reports a failure of steps 2 and 3, so
 *                                    they need no checks (graph.h)
 *     5  gguf_galloc_alloc(), gguf_tensor_set(), gguf_backend_compute(),
 *        gguf_tensor_get()           memory and computation (backend.h)
 *
 * A function that makes a tensor and fails returns NULL, and records the
 * failure in the context (context.h). Later functions that make tensors in that
 * context then return NULL, too. Functions that take a tensor accept NULL where
 * their comments say so; the others must not be given NULL.
 *
 * A tensor lives until its context is reset or destroyed.
 *
 * Threads: one thread at a time may use a context and its tensors. Functions
 * whose tensors are all const may also run in several threads at once on the
 * same tensors, while no other function does.
 */
#ifndef GGUF_TENSOR_H
#define GGUF_TENSOR_H

#include <gguf/context.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUF_TENSOR_DIMS   4  /* dimensions of every tensor */
#define GGUF_TENSOR_SRC    10 /* sources that an operation can have */
#define GGUF_TENSOR_NAME   64 /* bytes of the longest name with its NUL */
#define GGUF_TENSOR_PARAMS 96 /* bytes of an operation's parameters */
#define GGUF_TENSOR_ALIGN  64 /* alignment of data, in bytes */

struct gguf_buffer; /* buffer.h */

enum gguf_tensor_add_flags {
    /* The program sets the data before the graph runs. No node reuses its
     * memory or works on it in place, so a graph that is computed again finds
     * the same values. */
    GGUF_TENSOR_INPUT = 1,
    /* The program reads the data after the graph has run. No later node reuses
     * its memory or works on it in place. */
    GGUF_TENSOR_OUTPUT = 2,
    /* A graph that uses the tensor lists it among its nodes, although it has
     * no operation. */
    GGUF_TENSOR_PARAM = 4
};

/* One array. Only the library makes it; later versions may add members at its
 * end.
 *
 * Element (i0, i1, i2, i3), or the block of block_len elements that holds it,
 * begins at byte
 *
 *     i0 / block_len * nb[0] + i1 * nb[1] + i2 * nb[2] + i3 * nb[3]
 *
 * after data, where block_len is that of the type (dtype.h). Numbers of the
 * families FLOAT and INT are in the machine's byte order; quantized blocks are
 * as in a little-endian file on every machine.
 *
 * A program may read all members. It may assign flags of any tensor, to set or
 * clear them, and the pointers data and buffer of leaves that are not views. */
struct gguf_tensor {
    uint32_t dtype; /* type of the elements, GGUF_DTYPE_... */
    uint32_t op;    /* operation, GGUF_OP_...; GGUF_OP_NONE: a leaf */
    uint32_t flags; /* GGUF_TENSOR_... flags */
    uint32_t n_src; /* number of pointers in src, those that are NULL too */

    int64_t ne[GGUF_TENSOR_DIMS]; /* elements of each dimension, the fastest
                                     first; unused dimensions are 1 */
    int64_t nb[GGUF_TENSOR_DIMS]; /* byte strides; nb[0] is the size of a block
                                     of the type */

    /* Sources of the operation: n_src pointers. NULL: an optional source that
     * is not used. */
    struct gguf_tensor *const *src;

    /* Parameters of the operation: GGUF_TENSOR_PARAMS bytes. Backends read them
     * with gguf_tensor_op_params(). */
    const int32_t *op_params;

    /* Name, at most GGUF_TENSOR_NAME bytes with the NUL. "" for a tensor
     * without a name. Set it with gguf_tensor_set_name(). */
    const char *name;

    /* Tensor whose memory a view shares. Never a view itself. NULL: this tensor
     * is not a view. */
    struct gguf_tensor *view_src;

    /* Bytes from the data of view_src to the data of this view. */
    uint64_t view_off;

    /* Buffer that holds the data. NULL: the data lies in the context or in
     * other host memory, or has no memory yet. */
    struct gguf_buffer *buffer;

    /* Address of the first element. NULL: no memory yet. */
    void *data;

    /* Pointer for the use of the buffer's backend. */
    void *extra;
};

/* --- creating tensors ----------------------------------------------------- */

/* Create a contiguous leaf.
 *
 * ctx      Context of the new tensor.
 * dtype    GGUF_DTYPE_... of the elements.
 * n_dims   Number of dimensions in ne, 1 to 4.
 * ne       Elements of each dimension, each >= 0, the fastest first.
 *
 * If the context gives data to tensors (gguf_ctx_params.no_alloc is false), the
 * data is not zeroed.
 *
 * Returns the tensor, or NULL after a failure of this call or an earlier one.
 * The context keeps the status of the first failure (gguf_ctx_status()):
 *
 * GGUF_E_SHAPE        ne[0] is not a multiple of the type's block, a dimension
 *                     is negative, or n_dims is out of range.
 * GGUF_E_UNSUPPORTED  The type is unknown or has no known size.
 * GGUF_E_OVERFLOW     The number of elements or of bytes does not fit in 63
 *                     bits.
 * GGUF_E_FULL         The context has too little room.
 *
 * Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_tensor_create(struct gguf_ctx *ctx,
                                                uint32_t dtype,
                                                unsigned n_dims,
                                                const int64_t *ne);

/* Create a leaf of 1, 2, 3 or 4 dimensions. They return and fail as
 * gguf_tensor_create() does. Since: 0.1 */
GGUF_API struct gguf_tensor *
gguf_tensor_create_1d(struct gguf_ctx *ctx, uint32_t dtype, int64_t ne0);
GGUF_API struct gguf_tensor *gguf_tensor_create_2d(struct gguf_ctx *ctx,
                                                   uint32_t dtype, int64_t ne0,
                                                   int64_t ne1);
GGUF_API struct gguf_tensor *gguf_tensor_create_3d(struct gguf_ctx *ctx,
                                                   uint32_t dtype, int64_t ne0,
                                                   int64_t ne1, int64_t ne2);
GGUF_API struct gguf_tensor *gguf_tensor_create_4d(struct gguf_ctx *ctx,
                                                   uint32_t dtype, int64_t ne0,
                                                   int64_t ne1, int64_t ne2,
                                                   int64_t ne3);

/* Create a leaf with the type and dimensions of t, contiguous whatever the
 * strides of t are. Data, name and flags are not copied. If t is NULL, returns
 * NULL and records no failure. Fails otherwise as gguf_tensor_create() does.
 * Since: 0.1 */
GGUF_API struct gguf_tensor *
gguf_tensor_create_like(struct gguf_ctx *ctx, const struct gguf_tensor *t);

/* Set the name of a tensor.
 *
 * t        The tensor. NULL is ignored.
 * name     UTF-8; copied. A name longer than 63 bytes is cut after the last
 *          whole code point that fits.
 *
 * Returns t. It cannot fail. Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_tensor_set_name(struct gguf_tensor *t,
                                                  const char *name);

/* Set the name of a tensor from a printf format. If t is NULL, nothing happens.
 * A name longer than 63 bytes is cut after the last whole code point that fits.
 * Returns t. Since: 0.1 */
GGUF_PRINTF(2, 3)
GGUF_API struct gguf_tensor *gguf_tensor_set_namef(struct gguf_tensor *t,
                                                   const char *fmt, ...);

/* Set GGUF_TENSOR_... flags in addition to those that t has. To clear flags,
 * assign the member flags. If t is NULL, nothing happens. Returns t.
 * Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_tensor_add_flags(struct gguf_tensor *t,
                                                   uint32_t flags);

/* --- size ----------------------------------------------------------------- */

/* Number of elements. Since: 0.1 */
GGUF_API int64_t gguf_tensor_n_elements(const struct gguf_tensor *t);

/* Number of rows: ne[1] * ne[2] * ne[3]. Since: 0.1 */
GGUF_API int64_t gguf_tensor_n_rows(const struct gguf_tensor *t);

/* Bytes from the start of the first element to the end of the last, the gaps of
 * a strided view included. 0 if the tensor is empty. Since: 0.1 */
GGUF_API uint64_t gguf_tensor_size(const struct gguf_tensor *t);

/* Number of dimensions, without those of length 1 at the end; at least 1.
 * Since: 0.1 */
GGUF_API unsigned gguf_tensor_n_dims(const struct gguf_tensor *t);

/* True if a dimension is 0. Since: 0.1 */
GGUF_API bool gguf_tensor_is_empty(const struct gguf_tensor *t);

/* --- layout --------------------------------------------------------------- */

/* True if the elements follow each other in order and without gaps. The stride
 * of a dimension of one element does not count. Since: 0.1 */
GGUF_API bool gguf_tensor_is_contiguous(const struct gguf_tensor *t);

/* True if nb[d] = nb[d - 1] * ne[d - 1] for every dimension d above dim; for d
 * = 1, nb[0] * ne[0] is the size of a row without gaps. If dim is 0, the
 * elements of a row must follow each other, too: the result is that of
 * gguf_tensor_is_contiguous() for a tensor that is not empty. If dim is 1, gaps
 * between rows are allowed, and further gaps between matrices are not. The
 * stride of a dimension of one element does not count. Since: 0.1 */
GGUF_API bool gguf_tensor_is_contiguous_from(const struct gguf_tensor *t,
                                             unsigned dim);

/* True if the elements of each row follow each other without gaps.
 * Since: 0.1 */
GGUF_API bool gguf_tensor_has_contiguous_rows(const struct gguf_tensor *t);

/* True if nb[0] > nb[1], whatever the number of elements of these dimensions.
 * Since: 0.1 */
GGUF_API bool gguf_tensor_is_transposed(const struct gguf_tensor *t);

/* True if a stride is larger than the stride of the next dimension, whatever
 * the number of elements of these dimensions. Since: 0.1 */
GGUF_API bool gguf_tensor_is_permuted(const struct gguf_tensor *t);

/* True if a and b have the same dimensions. Since: 0.1 */
GGUF_API bool gguf_tensor_same_shape(const struct gguf_tensor *a,
                                     const struct gguf_tensor *b);

/* True if a and b have the same type, dimensions and strides. Since: 0.1 */
GGUF_API bool gguf_tensor_same_layout(const struct gguf_tensor *a,
                                      const struct gguf_tensor *b);

/* True if each dimension of b is a multiple of the dimension of a: a repeats to
 * the shape of b. A dimension 0 of a repeats to 0 only. Since: 0.1 */
GGUF_API bool gguf_tensor_can_repeat(const struct gguf_tensor *a,
                                     const struct gguf_tensor *b);

/* --- for backends and messages -------------------------------------------- */

/* Copy the parameters of an operation, as the gguf_op_...() function that made
 * the tensor stored them.
 *
 * t        A result of an operation. The parameters of a leaf are all 0.
 * out      Receives size bytes: a struct gguf_rope, float or other type that
 *          the operation's comment names.
 * size     Bytes of out. At most GGUF_TENSOR_PARAMS are copied; bytes of out
 *          beyond these are not changed.
 *
 * out is filled in any case. Returns true if all stored bytes from byte size on
 * are 0. Returns false if the operation has parameters that out has no member
 * for: the program was built with a newer library than the backend, and the
 * backend must refuse to compute t.
 *
 * Since: 0.1 */
GGUF_API bool gguf_tensor_op_params(const struct gguf_tensor *t, void *out,
                                    size_t size);

/* Write a short description of a tensor, such as "'blk.0.attn_q' f32 [64, 10]".
 *
 * buf      Receives the text with a NUL. Bytes of the name that are not
 *          printable are escaped.
 * size     Bytes of buf, 1 or more. Longer text is cut, and still ends in a
 *          NUL.
 *
 * Returns buf. Since: 0.1 */
GGUF_API const char *gguf_tensor_format(const struct gguf_tensor *t, char *buf,
                                        size_t size);

#ifdef __cplusplus
}
#endif
#endif
