/* SPDX-License-Identifier: MIT */
/* op_custom.h - operations that the program computes itself
 *
 * Only the CPU backend computes them. op.h explains the notation and the
 * failures that all builders have.
 *
 *     static enum gguf_status halve(struct gguf_tensor *t, unsigned ith,
 *                                   unsigned nth, void *user);
 *     ...
 *     struct gguf_custom c = GGUF_CUSTOM_INIT;
 *     c.compute.fn = halve;
 *     y = gguf_op_map_1(ctx, x, &c);
 */
#ifndef GGUF_OP_CUSTOM_H
#define GGUF_OP_CUSTOM_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Compute one part of a result.
 *
 * t      The result, whose data to write. Its sources are t->src[0] to
 *        t->src[n_src - 1], computed. All of them lie in host memory; their
 *        strides are those of the tensors.
 * ith    Number of the part, 0 to nth - 1.
 * nth    Number of parts.
 * user   Pointer of the callback.
 *
 * The backend calls the function once for each part, from several threads at
 * once. For a result that does not depend on nth, divide elements among the
 * parts, never one sum.
 *
 * Returns GGUF_OK, or a status with which the computation ends after this
 * node. */
typedef enum gguf_status gguf_custom_fn(struct gguf_tensor *t, unsigned ith,
                                        unsigned nth, void *user);

/* Function of a custom operation. Both members must stay valid as long as
 * graphs with the result are computed. Later versions add no members to this
 * struct. */
struct gguf_custom_callback {
    gguf_custom_fn *fn; /* required */
    void *user;         /* passed to fn */
};

/* Custom operation. The builders copy the struct to op_params. */
struct gguf_custom {
    size_t struct_size;
    struct gguf_custom_callback
        compute;       /* function that computes the result */
    uint32_t n_tasks;  /* most parts; 0: the number of threads */
    uint32_t reserved; /* must be 0 */
};
#define GGUF_CUSTOM_INIT GGUF_INIT(struct gguf_custom)

/* Custom operation with one, two or three sources.
 *
 *   a        any type and shape
 *   b, c     any type and shape
 *   custom   the operation, which is copied
 *   ->       shape and type of a */
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

/* Custom operation with a result of any type and shape.
 *
 *   dtype    GGUF_DTYPE_... of the result
 *   ne       four dimensions of the result
 *   n_src    number of sources, 0 to GGUF_TENSOR_SRC
 *   src      n_src sources of any type and shape
 *   custom   the operation, which is copied
 *   ->       dtype [ne[0], ne[1], ne[2], ne[3]] */
GGUF_API struct gguf_tensor *gguf_op_custom(struct gguf_ctx *ctx,
                                            uint32_t dtype, const int64_t *ne,
                                            unsigned n_src,
                                            struct gguf_tensor *const *src,
                                            const struct gguf_custom *custom);

#ifdef __cplusplus
}
#endif
#endif
