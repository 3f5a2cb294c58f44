/* SPDX-License-Identifier: MIT */
/* ctx.h - inside of a context */
#ifndef GG_GRAPH_CTX_H
#define GG_GRAPH_CTX_H

#include "base/error.h"
#include "base/mem.h"
#include "gguf/tensor.h"

/* Internal flag beside GGUF_TENSOR_...: the node is written before the graph
 * runs, and needs memory from its start. */
#define GG_TENSOR_EARLY (UINT32_C(1) << 31)

/* Alignment of objects in bytes. Data of tensors has GGUF_TENSOR_ALIGN. */
enum { GG_OBJECT_ALIGN = 16 };
/* Bytes of an object's header, padded so that the object is aligned. */
enum {
    GG_OBJECT_HEAD = (sizeof(struct gguf_object) + GG_OBJECT_ALIGN - 1) /
                     GG_OBJECT_ALIGN * GG_OBJECT_ALIGN
};

struct gguf_ctx {
    const struct gguf_allocator *allocator;
    char *mem;   /* the arena, aligned to GGUF_TENSOR_ALIGN */
    size_t size; /* bytes of mem */
    size_t used; /* bytes of mem in use */
    void *own;   /* allocated memory to free; NULL: the program's memory */
    bool no_alloc;
    struct gguf_object *first, *last; /* list of objects */
    struct gguf_graph *graphs; /* newest graph; the others follow by `older` */
    uint64_t n_changes;        /* changes of graphs, also before resets */
    struct gguf_error err;     /* first failure */
};

/* A tensor and the storage of its pointers. Every tensor of a context is one;
 * one on the stack describes a tensor that is to be made. */
struct gg_tensor_storage {
    struct gguf_tensor t; /* first: a tensor's address is its storage's */
    struct gguf_tensor *src[GGUF_TENSOR_SRC];
    uint64_t pin; /* mark of the scheduler that pinned it; 0: not pinned */
    int32_t op_params[GGUF_TENSOR_PARAMS / sizeof(int32_t)];
    char name[GGUF_TENSOR_NAME];
};

/* Initialiser of s, a struct gg_tensor_storage. The other arguments, at least
 * one, initialise members of s.t. */
#define GG_TENSOR_STORAGE_INIT(s, ...)                                        \
    {                                                                         \
        .t = {                                                                \
            .src = (s).src,                                                   \
            .op_params = (s).op_params,                                       \
            .name = (s).name,                                                 \
            __VA_ARGS__                                                       \
        }                                                                     \
    }

static inline struct gg_tensor_storage *
gg_tensor_storage(const struct gguf_tensor *t)
{
    return (struct gg_tensor_storage *)(uintptr_t)t;
}

/* Error to fill in for a failure. NULL if the context has one already, or is
 * NULL: the failure is dropped then. */
struct gguf_error *gg_ctx_err(struct gguf_ctx *ctx);

/* Has a failure been stored in ctx? True for NULL. */
bool gg_ctx_failed(const struct gguf_ctx *ctx);

/* Take size bytes as a new object. Returns NULL with a sticky GGUF_E_FULL,
 * whose message says that `what` needs them. */
void *gg_ctx_push(struct gguf_ctx *ctx, enum gguf_object_kind kind,
                  uint64_t size, const char *what);

/* Add a tensor with the members of proto, which must be a gg_tensor_storage and
 * have been checked. A view gets its root's data, any other tensor data of its
 * own unless no_alloc is set. */
struct gguf_tensor *gg_ctx_add_tensor(struct gguf_ctx *ctx,
                                      const struct gguf_tensor *proto);

/* Set dtype, ne and the strides that make t contiguous.
 *
 * GGUF_E_SHAPE        A dimension is negative or no multiple of the block.
 * GGUF_E_UNSUPPORTED  The type has no known size.
 * GGUF_E_OVERFLOW     The size does not fit in 63 bits. */
enum gguf_status gg_tensor_set_shape(struct gguf_tensor *t, uint32_t dtype,
                                     const int64_t ne[GGUF_TENSOR_DIMS],
                                     struct gguf_error *err);

#endif
