/* SPDX-License-Identifier: MIT */
/* op_num.h - the operations and their numbers
 *
 * Made by lib/graph/op-gen.sh from lib/graph/op_list.h: do not edit.
 */
#ifndef GGUF_OP_NUM_H
#define GGUF_OP_NUM_H

/* tensor->op. Values never change once released. */
enum gguf_op {
    GGUF_OP_NONE = 0,
    /* copies */
    GGUF_OP_DUP,
    GGUF_OP_CPY,
    /* shapes: no work, the memory is the source's */
    GGUF_OP_RESHAPE,
    GGUF_OP_VIEW,
    GGUF_OP_PERMUTE,
    GGUF_OP_TRANSPOSE,
    /* rows */
    GGUF_OP_GET_ROWS,
    GGUF_OP_SET_ROWS,
    /* two sources, elementwise */
    GGUF_OP_ADD,
    GGUF_OP_SUB,
    GGUF_OP_MUL,
    GGUF_OP_DIV,
    /* one source, elementwise */
    GGUF_OP_SCALE,
    GGUF_OP_SILU,
    GGUF_OP_GELU,
    GGUF_OP_GELU_ERF,
    GGUF_OP_GELU_QUICK,
    GGUF_OP_RELU,
    GGUF_OP_SIGMOID,
    GGUF_OP_TANH,
    GGUF_OP_RELU_SQR,
    GGUF_OP_LEAKY_RELU,
    GGUF_OP_ELU,
    GGUF_OP_SOFTPLUS,
    GGUF_OP_NEG,
    GGUF_OP_ABS,
    GGUF_OP_SQR,
    GGUF_OP_SQRT,
    GGUF_OP_EXP,
    GGUF_OP_LOG,
    GGUF_OP_SIN,
    GGUF_OP_COS,
    GGUF_OP_CLAMP,
    GGUF_OP_XIELU,
    /* gated */
    GGUF_OP_SWIGLU,
    GGUF_OP_GEGLU,
    GGUF_OP_GEGLU_ERF,
    GGUF_OP_GEGLU_QUICK,
    GGUF_OP_REGLU,
    GGUF_OP_SWIGLU_OAI,
    /* put together */
    GGUF_OP_CONCAT,
    GGUF_OP_REPEAT,
    GGUF_OP_PAD,
    GGUF_OP_ROLL,
    /* reductions */
    GGUF_OP_SUM,
    GGUF_OP_SUM_ROWS,
    GGUF_OP_MEAN,
    GGUF_OP_ARGMAX,
    GGUF_OP_ARGSORT,
    GGUF_OP_CUMSUM,
    /* rows */
    GGUF_OP_NORM,
    GGUF_OP_RMS_NORM,
    GGUF_OP_L2_NORM,
    GGUF_OP_GROUP_NORM,
    GGUF_OP_DIAG_MASK_INF,
    GGUF_OP_DIAG_MASK_ZERO,
    GGUF_OP_SOFT_MAX,
    GGUF_OP_ROPE,
    /* products */
    GGUF_OP_MATMUL,
    GGUF_OP_MATMUL_ID,
    GGUF_OP_OUT_PROD,
    GGUF_OP_ATTENTION,
    GGUF_OP_INDEX_TOP,
    GGUF_OP_INDEX_BLOCKS,
    /* streams */
    GGUF_OP_HYPER,
    /* convolution and pooling */
    GGUF_OP_IM2COL,
    GGUF_OP_CONV,
    GGUF_OP_CONV_TRANSPOSE,
    GGUF_OP_POOL,
    GGUF_OP_TIMESTEP_EMBEDDING,
    /* recurrences */
    GGUF_OP_SSM_CONV,
    GGUF_OP_SSM_SCAN,
    GGUF_OP_RWKV_WKV6,
    GGUF_OP_RWKV_WKV7,
    GGUF_OP_GATED_LINEAR_ATTN,
    GGUF_OP_GATED_DELTA,
    /* a function of the program */
    GGUF_OP_CUSTOM,
    /* vector-Jacobian products */
    GGUF_OP_UNARY_BACK,
    GGUF_OP_NORM_BACK,
    GGUF_OP_ROPE_BACK,
    GGUF_OP_REPEAT_BACK,
    GGUF_OP_GET_ROWS_BACK,
    GGUF_OP_VIEW_BACK,
    /* products */
    GGUF_OP_INDEX_POOLED,

    GGUF_N_OPS
};

#endif
