/* SPDX-License-Identifier: MIT */
/* op_custom.h - operations of the program's own
 *
 * Conventions: op.h. Only the CPU backend computes them.
 */
#ifndef GGUF_OP_CUSTOM_H
#define GGUF_OP_CUSTOM_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Compute part ith of nth of t, from t->src[]: data, shapes and strides as in
 * the tensors. Called for each ith below nth, from threads of the backend's
 * pool at the same time; t and sources are in host memory, the sources
 * computed. For results that do not depend on nth, divide elements among the
 * parts, never a sum. A status other than GGUF_OK ends the computation after
 * this node with that status. */
typedef enum gguf_status gguf_custom_fn(struct gguf_tensor *t, unsigned ith,
                                        unsigned nth, void *user);

/* What computes an operation. fn and user are kept: both must live as long as
 * graphs with the result run. The struct is copied: op_params has it as this
 * library knows it, for backends. */
struct gguf_custom {
    size_t struct_size;
    gguf_custom_fn *fn; /* required */
    void *user;
    uint32_t n_tasks;  /* the largest nth; 0: the number of threads */
    uint32_t reserved; /* 0 */
};
#define GGUF_CUSTOM_INIT GGUF_INIT(struct gguf_custom)

/* A result of a's type and shape from one, two, three sources. */
GGUF_API struct gguf_tensor *gguf_op_map_1(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a,
                                           const struct gguf_custom *custom);
GGUF_API struct gguf_tensor *gguf_op_map_2(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a,
                                           struct gguf_tensor *b,
                                           const struct gguf_custom *custom);
GGUF_API struct gguf_tensor *gguf_op_map_3(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a,
                                           struct gguf_tensor *b,
                                           struct gguf_tensor *c,
                                           const struct gguf_custom *custom);
/* A result of any type and shape ne[4] from n_src sources, 0 to
 * GGUF_TENSOR_SRC. */
GGUF_API struct gguf_tensor *gguf_op_custom(struct gguf_ctx *ctx,
                                            uint32_t dtype, const int64_t *ne,
                                            unsigned n_src,
                                            struct gguf_tensor *const *src,
                                            const struct gguf_custom *custom);

#ifdef __cplusplus
}
#endif
#endif
