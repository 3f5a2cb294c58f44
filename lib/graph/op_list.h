/* SPDX-License-Identifier: MIT */
/* op_list.h - the list of operations, one row for each
 *
 * GG_OP_LIST(X)  X(ID, NAME, SRC, OPT, INPLACE, KIND, BUILD, SHAPE, COST)
 *   ID       enumerator GGUF_OP_ID. Rows are in the order of the numbers, which
 *            never change once released: add a new row at the end
 *   NAME     name; gguf_op_NAME is the builder, gg_cpu_op_NAME the row of the
 *            CPU backend
 *   SRC      number of required sources
 *   OPT      number of optional sources after them, which may be NULL
 *   INPLACE  bit i: the result may overwrite source i if both have the same
 *            layout. Each element (each row, for operations along rows) is read
 *            before it is written, by the same thread
 *   KIND     LEAF no operation; VIEW a view of the source's memory, no work;
 *            DEST writes into a source, and the result is a view of it; WORK
 *            all others
 *   BUILD    one, two: this row makes the builder, with one or two sources and
 *            no parameters; own: the builder is written in op*.c; none
 *   SHAPE    shape rule gg_graph_shape_SHAPE, in shape.c or op_*.c
 *   COST     cost function gg_graph_cost_COST, in cost.c
 *
 * From a row follow the enumerator (gguf/op_num.h, made by op-gen.sh), the
 * builder of kinds one and two, the properties that allocators and schedulers
 * use, a required row of the CPU backend, and random graphs in tests.
 */
#ifndef GG_GRAPH_OP_LIST_H
#define GG_GRAPH_OP_LIST_H

#define GG_OP_LIST(X)                                                         \
    X(NONE, none, 0, 0, 0, LEAF, none, none, none)                            \
    /* copies */                                                              \
    X(DUP, dup, 1, 0, 1, WORK, own, dup, out)                                 \
    X(CPY, cpy, 2, 0, 0, DEST, own, cpy, in)                                  \
    /* shapes: no work, the memory is the source's */                         \
    X(RESHAPE, reshape, 1, 0, 0, VIEW, own, reshape, none)                    \
    X(VIEW, view, 1, 0, 0, VIEW, own, view, none)                             \
    X(PERMUTE, permute, 1, 0, 0, VIEW, own, permute, none)                    \
    X(TRANSPOSE, transpose, 1, 0, 0, VIEW, own, permute, none)                \
    /* rows */                                                                \
    X(GET_ROWS, get_rows, 2, 0, 0, WORK, two, get_rows, out)                  \
    X(SET_ROWS, set_rows, 3, 0, 0, DEST, own, set_rows, in1)                  \
    /* two sources, elementwise */                                            \
    X(ADD, add, 2, 0, 3, WORK, two, binary, out)                              \
    X(SUB, sub, 2, 0, 3, WORK, two, binary, out)                              \
    X(MUL, mul, 2, 0, 3, WORK, two, binary, out)                              \
    X(DIV, div, 2, 0, 3, WORK, two, binary, out)                              \
    /* one source, elementwise */                                             \
    X(SCALE, scale, 1, 0, 1, WORK, own, unary, out)                           \
    X(SILU, silu, 1, 0, 1, WORK, one, unary, out)                             \
    X(GELU, gelu, 1, 0, 1, WORK, one, unary, out)                             \
    X(GELU_ERF, gelu_erf, 1, 0, 1, WORK, one, unary, out)                     \
    X(GELU_QUICK, gelu_quick, 1, 0, 1, WORK, one, unary, out)                 \
    X(RELU, relu, 1, 0, 1, WORK, one, unary, out)                             \
    X(SIGMOID, sigmoid, 1, 0, 1, WORK, one, unary, out)                       \
    X(TANH, tanh, 1, 0, 1, WORK, one, unary, out)                             \
    X(RELU_SQR, relu_sqr, 1, 0, 1, WORK, one, unary, out)                     \
    X(LEAKY_RELU, leaky_relu, 1, 0, 1, WORK, own, unary, out)                 \
    X(ELU, elu, 1, 0, 1, WORK, one, unary, out)                               \
    X(SOFTPLUS, softplus, 1, 0, 1, WORK, one, unary, out)                     \
    X(NEG, neg, 1, 0, 1, WORK, one, unary, out)                               \
    X(ABS, abs, 1, 0, 1, WORK, one, unary, out)                               \
    X(SQR, sqr, 1, 0, 1, WORK, one, unary, out)                               \
    X(SQRT, sqrt, 1, 0, 1, WORK, one, unary, out)                             \
    X(EXP, exp, 1, 0, 1, WORK, one, unary, out)                               \
    X(LOG, log, 1, 0, 1, WORK, one, unary, out)                               \
    X(SIN, sin, 1, 0, 1, WORK, one, unary, out)                               \
    X(COS, cos, 1, 0, 1, WORK, one, unary, out)                               \
    X(CLAMP, clamp, 1, 0, 1, WORK, own, unary, out)                           \
    X(XIELU, xielu, 1, 0, 1, WORK, own, unary, out)                           \
    /* gated */                                                               \
    X(SWIGLU, swiglu, 2, 0, 3, WORK, two, gated, out)                         \
    X(GEGLU, geglu, 2, 0, 3, WORK, two, gated, out)                           \
    X(GEGLU_ERF, geglu_erf, 2, 0, 3, WORK, two, gated, out)                   \
    X(GEGLU_QUICK, geglu_quick, 2, 0, 3, WORK, two, gated, out)               \
    X(REGLU, reglu, 2, 0, 3, WORK, two, gated, out)                           \
    X(SWIGLU_OAI, swiglu_oai, 2, 0, 3, WORK, own, gated, out)                 \
    /* put together */                                                        \
    X(CONCAT, concat, 2, 0, 0, WORK, own, concat, out)                        \
    X(REPEAT, repeat, 1, 0, 0, WORK, own, repeat, out)                        \
    X(PAD, pad, 1, 0, 0, WORK, own, pad, out)                                 \
    X(ROLL, roll, 1, 0, 0, WORK, own, roll, out)                              \
    /* reductions */                                                          \
    X(SUM, sum, 1, 0, 0, WORK, one, sum, in)                                  \
    X(SUM_ROWS, sum_rows, 1, 0, 0, WORK, one, sum_rows, in)                   \
    X(MEAN, mean, 1, 0, 0, WORK, one, sum_rows, in)                           \
    X(ARGMAX, argmax, 1, 0, 0, WORK, one, argmax, in)                         \
    X(ARGSORT, argsort, 1, 0, 0, WORK, own, argsort, sort)                    \
    X(CUMSUM, cumsum, 1, 0, 1, WORK, one, unary, out)                         \
    /* rows */                                                                \
    X(NORM, norm, 1, 0, 1, WORK, own, unary, out)                             \
    X(RMS_NORM, rms_norm, 1, 0, 1, WORK, own, unary, out)                     \
    X(L2_NORM, l2_norm, 1, 0, 1, WORK, own, unary, out)                       \
    X(GROUP_NORM, group_norm, 1, 0, 1, WORK, own, group_norm, out)            \
    X(DIAG_MASK_INF, diag_mask_inf, 1, 0, 1, WORK, own, diag_mask, out)       \
    X(DIAG_MASK_ZERO, diag_mask_zero, 1, 0, 1, WORK, own, diag_mask, out)     \
    X(SOFT_MAX, soft_max, 1, 2, 1, WORK, own, soft_max, out)                  \
    X(ROPE, rope, 2, 1, 1, WORK, own, rope, out)                              \
    /* products */                                                            \
    X(MATMUL, matmul, 2, 0, 0, WORK, two, matmul, dot)                        \
    X(MATMUL_ID, matmul_id, 3, 0, 0, WORK, own, matmul_id, dot)               \
    X(OUT_PROD, out_prod, 2, 0, 0, WORK, two, out_prod, outer)                \
    X(ATTENTION, attention, 3, 2, 0, WORK, own, attention, attention)         \
    X(INDEX_TOP, index_top, 4, 0, 0, WORK, own, index_top, index)             \
    X(INDEX_BLOCKS, index_blocks, 4, 0, 0, WORK, own, index_blocks, index)    \
    /* streams */                                                             \
    X(HYPER, hyper, 3, 0, 1, WORK, own, hyper, out)                           \
    /* convolution and pooling */                                             \
    X(IM2COL, im2col, 1, 0, 0, WORK, own, im2col, out)                        \
    X(CONV, conv, 2, 0, 0, WORK, own, conv, conv)                             \
    X(CONV_TRANSPOSE, conv_transpose, 2, 0, 0, WORK, own, conv_transpose,     \
      spread)                                                                 \
    X(POOL, pool, 1, 0, 0, WORK, own, pool, pool)                             \
    X(TIMESTEP_EMBEDDING, timestep_embedding, 1, 0, 0, WORK, own, timestep,   \
      out)                                                                    \
    /* recurrences */                                                         \
    X(SSM_CONV, ssm_conv, 2, 0, 0, WORK, two, ssm_conv, columns)              \
    X(SSM_SCAN, ssm_scan, 7, 0, 0, WORK, own, ssm_scan, scan)                 \
    X(RWKV_WKV6, rwkv_wkv6, 6, 0, 0, WORK, own, wkv6, states)                 \
    X(RWKV_WKV7, rwkv_wkv7, 7, 0, 0, WORK, own, wkv7, states)                 \
    X(GATED_LINEAR_ATTN, gated_linear_attn, 5, 0, 0, WORK, own, gla, states)  \
    X(GATED_DELTA, gated_delta, 6, 0, 0, WORK, own, delta, states)            \
    /* a function of the program */                                           \
    X(CUSTOM, custom, 0, 10, 0, WORK, own, custom, unknown)                   \
    /* vector-Jacobian products */                                            \
    X(UNARY_BACK, unary_back, 2, 0, 3, WORK, own, unary_back, out)            \
    X(NORM_BACK, norm_back, 2, 0, 3, WORK, own, norm_back, out)               \
    X(ROPE_BACK, rope_back, 2, 1, 1, WORK, own, rope, out)                    \
    X(REPEAT_BACK, repeat_back, 1, 0, 0, WORK, own, repeat_back, in)          \
    X(GET_ROWS_BACK, get_rows_back, 2, 0, 0, WORK, own, get_rows_back, in)    \
    X(VIEW_BACK, view_back, 1, 0, 0, WORK, own, view_back, in)                \
    /* products */                                                            \
    X(INDEX_POOLED, index_pooled, 4, 0, 0, WORK, own, index_pooled, index)

#endif
