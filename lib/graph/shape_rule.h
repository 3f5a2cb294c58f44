/* SPDX-License-Identifier: MIT */
/* shape_rule.h - what builders and rules of shapes share */
#ifndef GG_GRAPH_SHAPE_RULE_H
#define GG_GRAPH_SHAPE_RULE_H

#include "graph/op_table.h"

/* Whether the type is f32, f16, bf16 or another float. */
static inline bool gg_graph_is_float(const struct gguf_tensor *t)
{
    const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
    return info && info->family == GGUF_FAMILY_FLOAT;
}

/* In a rule for t with err: return a failure that names t's sources. */
#define FAIL_SHAPE(...) return gg_op_fail(t, err, GGUF_E_SHAPE, __VA_ARGS__)
#define FAIL_TYPE(...)  return gg_op_fail(t, err, GGUF_E_TYPE, __VA_ARGS__)

/* Two arguments: how many sources, and these. */
#define SRC(...)                                                              \
    GG_LEN(((struct gguf_tensor *[]){ __VA_ARGS__ })),                        \
        (struct gguf_tensor *[])                                              \
    {                                                                         \
        __VA_ARGS__                                                           \
    }

#endif
