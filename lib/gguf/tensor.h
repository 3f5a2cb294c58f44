/* SPDX-License-Identifier: MIT */
/* tensor.h - tensors, and the contexts in which they lie
 *
 * A context is an arena: one block of memory in which tensors, graphs and work
 * memory lie one after the other. A tensor says what an array looks like
 * (type, dimensions, strides) and what it is made from (operation, sources);
 * op.h makes such descriptions, graph.h orders them, backend.h gives them
 * memory and computes them.
 *
 * Errors are sticky: the first call that fails on a context is kept in it,
 * every later builder on that context returns NULL, and builders take NULL
 * where they take a tensor. So forty lines of transformer stay forty lines;
 * gguf_ctx_status() or gguf_graph_finish() is the one check.
 *
 * A context and what lies in it is for one thread at a time; the functions
 * that take const pointers may run concurrently.
 */
#ifndef GGUF_TENSOR_H
#define GGUF_TENSOR_H

#include <gguf/dtype.h>
#include <gguf/memory.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUF_TENSOR_DIMS   4
#define GGUF_TENSOR_SRC    10
#define GGUF_TENSOR_NAME   64 /* bytes of a tensor's name with the NUL */
#define GGUF_TENSOR_PARAMS 96 /* bytes */
#define GGUF_TENSOR_ALIGN  64 /* of data in a context and in host buffers */

struct gguf_ctx;
struct gguf_buffer;

enum gguf_tensor_add_flags {
    GGUF_TENSOR_INPUT = 1,  /* set from outside before the graph runs: keeps
                               memory of its own until the graph ends, so that
                               a graph that is computed again finds it as it
                               was set */
    GGUF_TENSOR_OUTPUT = 2, /* read from outside after the graph ran: its
                               memory is neither reused nor taken over in
                               place */
    GGUF_TENSOR_PARAM = 4   /* a node of the graph even without operation */
};

/* One array. Read the members freely; write only flags, data and buffer (and
 * those of leaves only). Lives as long as its context. Made by the library: it
 * may grow at its end.
 *
 * Element (i0, i1, i2, i3) lies at data + i0 / block_len * nb[0] + i1 * nb[1]
 * + i2 * nb[2] + i3 * nb[3] bytes. Unused dimensions are 1. Plain numbers
 * (families FLOAT and INT) are in the machine's byte order; blocks are as in a
 * little-endian file on every machine. */
struct gguf_tensor {
    uint32_t dtype; /* GGUF_DTYPE_... */
    uint32_t op;    /* GGUF_OP_..., 0 for none: op.h */
    uint32_t flags; /* GGUF_TENSOR_... */
    uint32_t reserved;
    int64_t ne[GGUF_TENSOR_DIMS]; /* elements, fastest dimension first */
    int64_t nb[GGUF_TENSOR_DIMS]; /* byte strides; nb[0]: bytes of a block */
    int32_t op_params[GGUF_TENSOR_PARAMS / sizeof(int32_t)];
    struct gguf_tensor *src[GGUF_TENSOR_SRC]; /* NULL where not used */
    struct gguf_tensor *view_src; /* whose memory this one shares: always the
                                     root, which is not a view; or NULL */
    uint64_t view_off;            /* bytes after the root's data */
    struct gguf_buffer *buffer;   /* where data lies; NULL: the context's own
                                     or other host memory, or none yet */
    void *data;                   /* NULL: no memory yet */
    void *extra;                  /* the backend's own */
    uint64_t pin;                 /* a scheduler's mark; 0: not pinned */
    char name[GGUF_TENSOR_NAME];  /* "" for none */
};

struct gguf_ctx_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    size_t mem_size; /* bytes of the arena, 64-byte aligned use */
    void *mem;       /* NULL: allocate it; else mem_size bytes that must
                        outlive the context (kept) */
    bool no_alloc;   /* descriptions only: tensors get no data */
};
#define GGUF_CTX_PARAMS_INIT GGUF_INIT(struct gguf_ctx_params)

/* params NULL: the defaults. mem_size for n tensors without data: n *
 * gguf_tensor_overhead(), and gguf_graph_overhead() for each graph; 0: the
 * context is full from the start. GGUF_E_NOMEM, GGUF_E_INVALID (params).
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_ctx_create(struct gguf_ctx **out, const struct gguf_ctx_params *params,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Frees tensors, graphs and work memory in it. NULL is fine. Since: 0.1 */
GGUF_API void gguf_ctx_destroy(struct gguf_ctx *ctx);

/* Forget everything in it, a kept failure too; the memory stays. For a context
 * that is filled again for each batch. Since: 0.1 */
GGUF_API void gguf_ctx_reset(struct gguf_ctx *ctx);

/* GGUF_OK, or the first failure on this context, copied to *err.
 * ctx may be NULL: GGUF_E_INVALID. Since: 0.1 */
GGUF_API enum gguf_status
gguf_ctx_status(const struct gguf_ctx *ctx,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Bytes taken, with headers and padding, and bytes left. Since: 0.1 */
GGUF_API size_t gguf_ctx_used(const struct gguf_ctx *ctx);
GGUF_API size_t gguf_ctx_left(const struct gguf_ctx *ctx);

/* Bytes that one tensor without data takes in a context. Since: 0.1 */
GGUF_API size_t gguf_tensor_overhead(void);

/* Whether tensors made from now on get no data. Since: 0.1 */
GGUF_API bool gguf_ctx_no_alloc(const struct gguf_ctx *ctx);
GGUF_API void gguf_ctx_set_no_alloc(struct gguf_ctx *ctx, bool no_alloc);

/* The objects in a context, in the order in which they were made. */
enum gguf_object_kind {
    GGUF_OBJECT_TENSOR, /* struct gguf_tensor */
    GGUF_OBJECT_GRAPH,  /* struct gguf_graph */
    GGUF_OBJECT_WORK    /* plain bytes */
};
/* Made by the library: it may grow at its end. */
struct gguf_object {
    uint64_t off;  /* of the object, in bytes after the arena's begin */
    uint64_t size; /* bytes of the object, a tensor's data included */
    struct gguf_object *next; /* NULL: the last */
    enum gguf_object_kind kind;
};
/* First object, or NULL. Since: 0.1 */
GGUF_API const struct gguf_object *
gguf_ctx_first_object(const struct gguf_ctx *ctx);

/* Walk the tensors: the first, the one made after t, or NULL. Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_ctx_first_tensor(const struct gguf_ctx *ctx);
GGUF_API struct gguf_tensor *gguf_ctx_next_tensor(const struct gguf_ctx *ctx,
                                                  const struct gguf_tensor *t);
/* By name, a walk; NULL if there is none. Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_ctx_find_tensor(const struct gguf_ctx *ctx,
                                                  const char *name);

/* size bytes of plain memory in the context, aligned to 64, not zeroed; NULL
 * with a sticky GGUF_E_FULL. Since: 0.1 */
GGUF_API void *gguf_ctx_alloc_work(struct gguf_ctx *ctx, size_t size);

/* --- the tensors of a file ------------------------------------------------ */

struct gguf_file; /* file.h */

/* Data of the tensors in a context that is made from a file. */
enum gguf_ctx_data {
    GGUF_CTX_DATA_NONE, /* no data: names, types and shapes only */
    GGUF_CTX_DATA_MAP,  /* data in the file's mapping, which must not be
                         * written to; a copy in the context for a tensor that
                         * cannot be used there, because of its byte order or
                         * its alignment */
    GGUF_CTX_DATA_COPY  /* a copy of the data in the context */
};

struct gguf_ctx_file_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    enum gguf_ctx_data data;
    size_t extra_size; /* bytes of the context for objects made later */
};
#define GGUF_CTX_FILE_PARAMS_INIT GGUF_INIT(struct gguf_ctx_file_params)

/* A context with one leaf for each tensor of file, in the order of the file:
 * its name, cut at 63 bytes as by gguf_tensor_set_name, its type and its shape.
 * With GGUF_CTX_DATA_MAP, file is kept: it must outlive the context. Otherwise
 * it may be closed. Tensors made later get data in the context only with
 * GGUF_CTX_DATA_COPY (gguf_ctx_set_no_alloc changes that). params may be NULL.
 *
 *     struct gguf_ctx_file_params p = GGUF_CTX_FILE_PARAMS_INIT;
 *     p.data = GGUF_CTX_DATA_MAP;
 *     st = gguf_ctx_create_from_file(&ctx, file, &p, &err);
 *     struct gguf_tensor *w = gguf_ctx_find_tensor(ctx, "output.weight");
 *
 * GGUF_E_UNSUPPORTED (names the tensor: a type of unknown size, more than 4
 * dimensions; GGUF_CTX_DATA_MAP for a file that is read through a reader),
 * GGUF_E_INVALID (params, no file), GGUF_E_NOMEM; with a copy also GGUF_E_IO,
 * GGUF_E_TRUNCATED (the file became shorter) and what a reader returns.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_ctx_create_from_file(struct gguf_ctx **out, const struct gguf_file *file,
                          const struct gguf_ctx_file_params *params,
                          struct gguf_error *err) GGUF_MUST_CHECK;

/* --- making tensors ------------------------------------------------------ */

/* A leaf of n_dims (1 to 4) dimensions ne[], each >= 0, rows contiguous. Data
 * is not zeroed. NULL with a sticky GGUF_E_SHAPE (ne[0] is not a multiple of
 * the type's block, a negative dimension), GGUF_E_UNSUPPORTED (type),
 * GGUF_E_OVERFLOW, GGUF_E_FULL (arena). Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_tensor_create(struct gguf_ctx *ctx,
                                                uint32_t dtype,
                                                unsigned n_dims,
                                                const int64_t *ne);
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
/* A leaf of t's type and dimensions, contiguous; no data copied. Since: 0.1 */
GGUF_API struct gguf_tensor *
gguf_tensor_create_like(struct gguf_ctx *ctx, const struct gguf_tensor *t);

/* Name t; longer names are cut at 63 bytes, at a code point. Returns t; t may
 * be NULL. Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_tensor_set_name(struct gguf_tensor *t,
                                                  const char *name);
/* The same by a printf format. Since: 0.1 */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
GGUF_API struct gguf_tensor *
gguf_tensor_set_namef(struct gguf_tensor *t, const char *fmt, ...);

/* Add GGUF_TENSOR_... flags. Returns t; t may be NULL. Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_tensor_add_flags(struct gguf_tensor *t,
                                                   uint32_t flags);

/* --- asking tensors ------------------------------------------------------ */

/* Elements, and rows (ne[1] * ne[2] * ne[3]). Since: 0.1 */
GGUF_API int64_t gguf_tensor_n_elements(const struct gguf_tensor *t);
GGUF_API int64_t gguf_tensor_n_rows(const struct gguf_tensor *t);

/* Bytes from the first to after the last element: right for quantized types
 * and strided views; 0 if there is no element. Since: 0.1 */
GGUF_API uint64_t gguf_tensor_size(const struct gguf_tensor *t);

/* Used dimensions: the highest with ne > 1, counted from 1. Since: 0.1 */
GGUF_API unsigned gguf_tensor_n_dims(const struct gguf_tensor *t);

/* Whether a dimension is 0. Since: 0.1 */
GGUF_API bool gguf_tensor_is_empty(const struct gguf_tensor *t);

/* No gaps, and in order: above dimension dim, each stride is the stride of the
 * dimension below times its elements; is_contiguous requires this from
 * dimension 0 on, elements included. A dimension of one element may have any
 * stride. Since: 0.1 */
GGUF_API bool gguf_tensor_is_contiguous(const struct gguf_tensor *t);
GGUF_API bool gguf_tensor_is_contiguous_from(const struct gguf_tensor *t,
                                             unsigned dim);
/* Elements of a row lie after each other (nb[0] is the block). Since: 0.1 */
GGUF_API bool gguf_tensor_has_contiguous_rows(const struct gguf_tensor *t);
/* nb[0] > nb[1]. Since: 0.1 */
GGUF_API bool gguf_tensor_is_transposed(const struct gguf_tensor *t);
/* Strides do not ascend. Since: 0.1 */
GGUF_API bool gguf_tensor_is_permuted(const struct gguf_tensor *t);

/* Same ne[]. Since: 0.1 */
GGUF_API bool gguf_tensor_same_shape(const struct gguf_tensor *a,
                                     const struct gguf_tensor *b);
/* Same type, ne[] and nb[]. Since: 0.1 */
GGUF_API bool gguf_tensor_same_layout(const struct gguf_tensor *a,
                                      const struct gguf_tensor *b);
/* a, repeated whole times in each dimension, gives b's shape. Since: 0.1 */
GGUF_API bool gguf_tensor_can_repeat(const struct gguf_tensor *a,
                                     const struct gguf_tensor *b);

/* The parameters of t's operation, for backends: size bytes of op_params, at
 * most GGUF_TENSOR_PARAMS, to out. False if there is more than 0 after them: it
 * was built with a newer library and asks for what out's type does not have, so
 * a backend that was built with this one must not compute it. Since: 0.1 */
GGUF_API bool gguf_tensor_op_params(const struct gguf_tensor *t, void *out,
                                    size_t size);

/* Writes its description, such as "name f32 [64, 10, 2]", into buf
 * (NUL-terminated, cut at size), with the name escaped, as in error messages
 * and dumps. Returns buf. Since: 0.1 */
GGUF_API const char *gguf_tensor_format(const struct gguf_tensor *t, char *buf,
                                        size_t size);

#ifdef __cplusplus
}
#endif
#endif
