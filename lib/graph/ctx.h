/* SPDX-License-Identifier: MIT */
/* ctx.h - inside of a context */
#ifndef GG_GRAPH_CTX_H
#define GG_GRAPH_CTX_H

#include "base/error.h"
#include "base/mem.h"
#include "gguf/tensor.h"

/* A flag of the library's own beside GGUF_TENSOR_...: a node that is written
 * before its turn, so that it has memory from the start of the graph. */
#define GG_TENSOR_EARLY (UINT32_C(1) << 31)

/* Objects lie at multiples of this; data of tensors at GGUF_TENSOR_ALIGN. */
enum { GG_OBJECT_ALIGN = 16 };
/* Bytes from an object's header to the thing, which is aligned: more than
 * the header's size where pointers have four bytes. */
enum {
    GG_OBJECT_HEAD = (sizeof(struct gguf_object) + GG_OBJECT_ALIGN - 1) /
                     GG_OBJECT_ALIGN * GG_OBJECT_ALIGN
};

struct gguf_ctx {
    const struct gguf_allocator *allocator;
    char *mem;         /* aligned to GGUF_TENSOR_ALIGN */
    size_t size, used; /* of mem, bytes */
    void *own;         /* to be freed, or NULL */
    bool no_alloc;
    struct gguf_object *first, *last;
    struct gguf_graph *graphs; /* the last one made, from there by older */
    uint64_t n_changes;        /* of graphs, also of those before a reset */
    struct gguf_error err;     /* the first failure */
};

/* Where a failure goes: the context's error, or NULL (drop it) if it has one
 * already or ctx is NULL. */
struct gguf_error *gg_ctx_err(struct gguf_ctx *ctx);

/* Whether something failed on ctx before; true for NULL. */
bool gg_ctx_failed(const struct gguf_ctx *ctx);

/* size bytes as an object of its own, or NULL and a sticky GGUF_E_FULL that
 * names what. */
void *gg_ctx_push(struct gguf_ctx *ctx, enum gguf_object_kind kind,
                  uint64_t size, const char *what);

/* A tensor as proto describes it: ne, nb, dtype, view root and offset, all
 * checked. It gets the root's data, or data of its own, or none (no_alloc). */
struct gguf_tensor *gg_ctx_add_tensor(struct gguf_ctx *ctx,
                                      const struct gguf_tensor *proto);

/* Set dtype, ne and the strides of a contiguous tensor. GGUF_E_SHAPE,
 * GGUF_E_UNSUPPORTED, GGUF_E_OVERFLOW. */
enum gguf_status gg_tensor_set_shape(struct gguf_tensor *t, uint32_t dtype,
                                     const int64_t ne[GGUF_TENSOR_DIMS],
                                     struct gguf_error *err);

#endif
