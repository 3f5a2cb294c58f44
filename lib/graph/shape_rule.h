/* SPDX-License-Identifier: MIT */
/* shape_rule.h - helpers of builders and shape rules */
#ifndef GG_GRAPH_SHAPE_RULE_H
#define GG_GRAPH_SHAPE_RULE_H

#include "graph/op_table.h"

/* Is the type f32, f16, bf16 or another float? */
static inline bool gg_graph_is_float(const struct gguf_tensor *t)
{
    const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
    return info && info->family == GGUF_FAMILY_FLOAT;
}

/* For a rule with parameters t and err: return a failure with a printf message,
 * followed by t's sources. */
#define FAIL_SHAPE(...) return gg_op_fail(t, err, GGUF_E_SHAPE, __VA_ARGS__)
#define FAIL_TYPE(...)  return gg_op_fail(t, err, GGUF_E_TYPE, __VA_ARGS__)

/* Two arguments of gg_op_make(): the number of sources, and the sources. */
#define SRC(...)                                                              \
    GG_LEN(((struct gguf_tensor *[]){ __VA_ARGS__ })),                        \
        (struct gguf_tensor *[])                                              \
    {                                                                         \
        __VA_ARGS__                                                           \
    }

#endif
