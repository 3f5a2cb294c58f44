/* SPDX-License-Identifier: MIT */
/* op_base.h - names of operations, and macros that declare builders
 *
 * op.h describes the conventions of all builders.
 */
#ifndef GGUF_OP_BASE_H
#define GGUF_OP_BASE_H

#include <gguf/op_num.h>
#include <gguf/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name of an operation, such as "rms_norm". NULL for an unknown number. The
 * text is static. Any thread. Since: 0.1 */
GGUF_API const char *gguf_op_name(uint32_t op);

/* True for GGUF_OP_NONE and for views, whose memory is that of their source:
 * a backend has nothing to compute for such a tensor. Any thread.
 * Since: 0.1 */
GGUF_API bool gguf_op_is_view(uint32_t op);

/* Declaration of a builder with one source and no parameters. */
#define GGUF_BUILDER_1(name)                                                  \
    GGUF_API struct gguf_tensor *name(struct gguf_ctx *ctx,                   \
                                      struct gguf_tensor *a)

/* Declaration of a builder with two sources and no parameters. */
#define GGUF_BUILDER_2(name)                                                  \
    GGUF_API struct gguf_tensor *name(                                        \
        struct gguf_ctx *ctx, struct gguf_tensor *a, struct gguf_tensor *b)

#ifdef __cplusplus
}
#endif
#endif
