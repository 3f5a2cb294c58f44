/* SPDX-License-Identifier: MIT */
/* op_base.h - what all operations have
 *
 * op.h says what all builders have in common.
 */
#ifndef GGUF_OP_BASE_H
#define GGUF_OP_BASE_H

#include <gguf/op_num.h>
#include <gguf/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "rms_norm" and so on; NULL for an unknown number. Static. Any thread. */
GGUF_API const char *gguf_op_name(uint32_t op);

/* Whether a tensor with that operation is no work: GGUF_OP_NONE, or a view,
 * whose memory is its source's. Since: 0.1 */
GGUF_API bool gguf_op_is_view(uint32_t op);

/* Declare a builder whose only arguments are one source, or two. */
#define GGUF_BUILDER_1(name)                                                  \
    GGUF_API struct gguf_tensor *name(struct gguf_ctx *ctx,                   \
                                      struct gguf_tensor *a)
#define GGUF_BUILDER_2(name)                                                  \
    GGUF_API struct gguf_tensor *name(                                        \
        struct gguf_ctx *ctx, struct gguf_tensor *a, struct gguf_tensor *b)

#ifdef __cplusplus
}
#endif
#endif
