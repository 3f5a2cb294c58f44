/* SPDX-License-Identifier: MIT */
/* list.h - the table of data types, with a row for each id of GGUF files
 *
 * GG_DTYPE_LIST(X)       X(ID, NAME, LEN, BLOCK, ROW_HEADER, FAMILY)
 *   ID           number in the file
 *   NAME         identifier and printed name
 *   LEN          elements per block
 *   BLOCK        C type of a block: sizeof is the block's size
 *   ROW_HEADER   bytes before the blocks of each row
 *   FAMILY       suffix of enum gguf_dtype_family
 *
 * Rows ascend by id. Source of ids and layouts: the GGUF specification and
 * ggml (ggml.h, ggml-common.h, commit d99724f; 43: llama.cpp b12211); ids from
 * 133 on:
 * ik_llama.cpp (commit 8337e4c, ggml.c). Types from 202 on interleave four,
 * eight or sixteen rows; their sizes are those of one row (interleave.h).
 */
#ifndef GG_DTYPE_LIST_H
#define GG_DTYPE_LIST_H

#include "dtype/block.h"

#define GG_DTYPE_LIST(X)                                                      \
    X(0, F32, 1, float, 0, FLOAT)                                             \
    X(1, F16, 1, uint16_t, 0, FLOAT)                                          \
    X(2, Q4_0, 32, struct gg_block_q4_0, 0, QUANT)                            \
    X(3, Q4_1, 32, struct gg_block_q4_1, 0, QUANT)                            \
    X(6, Q5_0, 32, struct gg_block_q5_0, 0, QUANT)                            \
    X(7, Q5_1, 32, struct gg_block_q5_1, 0, QUANT)                            \
    X(8, Q8_0, 32, struct gg_block_q8_0, 0, QUANT)                            \
    X(9, Q8_1, 32, struct gg_block_q8_1, 0, QUANT)                            \
    X(10, Q2_K, 256, struct gg_block_q2_k, 0, QUANT)                          \
    X(11, Q3_K, 256, struct gg_block_q3_k, 0, QUANT)                          \
    X(12, Q4_K, 256, struct gg_block_q4_k, 0, QUANT)                          \
    X(13, Q5_K, 256, struct gg_block_q5_k, 0, QUANT)                          \
    X(14, Q6_K, 256, struct gg_block_q6_k, 0, QUANT)                          \
    X(15, Q8_K, 256, struct gg_block_q8_k, 0, QUANT)                          \
    X(16, IQ2_XXS, 256, struct gg_block_iq2_xxs, 0, QUANT)                    \
    X(17, IQ2_XS, 256, struct gg_block_iq2_xs, 0, QUANT)                      \
    X(18, IQ3_XXS, 256, struct gg_block_iq3_xxs, 0, QUANT)                    \
    X(19, IQ1_S, 256, struct gg_block_iq1_s, 0, QUANT)                        \
    X(20, IQ4_NL, 32, struct gg_block_iq4_nl, 0, QUANT)                       \
    X(21, IQ3_S, 256, struct gg_block_iq3_s, 0, QUANT)                        \
    X(22, IQ2_S, 256, struct gg_block_iq2_s, 0, QUANT)                        \
    X(23, IQ4_XS, 256, struct gg_block_iq4_xs, 0, QUANT)                      \
    X(24, I8, 1, int8_t, 0, INT)                                              \
    X(25, I16, 1, int16_t, 0, INT)                                            \
    X(26, I32, 1, int32_t, 0, INT)                                            \
    X(27, I64, 1, int64_t, 0, INT)                                            \
    X(28, F64, 1, double, 0, FLOAT)                                           \
    X(29, IQ1_M, 256, struct gg_block_iq1_m, 0, QUANT)                        \
    X(30, BF16, 1, uint16_t, 0, FLOAT)                                        \
    X(34, TQ1_0, 256, struct gg_block_tq1_0, 0, QUANT)                        \
    X(35, TQ2_0, 256, struct gg_block_tq2_0, 0, QUANT)                        \
    X(39, MXFP4, 32, struct gg_block_mxfp4, 0, QUANT)                         \
    X(40, NVFP4, 64, struct gg_block_nvfp4, 0, QUANT)                         \
    X(41, Q1_0, 128, struct gg_block_q1_0, 0, QUANT)                          \
    X(42, Q2_0, 64, struct gg_block_q2_0, 0, QUANT)                           \
    X(43, F8_E4M3, 1, uint8_t, 0, FLOAT)                                      \
    X(133, Q6_0, 32, struct gg_block_q6_0, 0, FORK)                           \
    X(134, IQ1_BN, 64, struct gg_block_iq1_bn, 2, FORK)                       \
    X(135, IQ2_BN, 64, struct gg_block_iq2_bn, 4, FORK)                       \
    X(137, IQ2_K, 256, struct gg_block_iq2_k, 0, FORK)                        \
    X(138, IQ3_K, 256, struct gg_block_iq3_k, 0, FORK)                        \
    X(139, IQ4_K, 256, struct gg_block_iq4_k, 0, FORK)                        \
    X(140, IQ5_K, 256, struct gg_block_iq5_k, 0, FORK)                        \
    X(141, IQ6_K, 256, struct gg_block_iq6_k, 0, FORK)                        \
    X(144, IQ4_KS, 256, struct gg_block_iq4_ks, 4, FORK)                      \
    X(145, IQ2_KS, 256, struct gg_block_iq2_ks, 2, FORK)                      \
    X(146, IQ4_KSS, 256, struct gg_block_iq4_kss, 4, FORK)                    \
    X(151, Q8_KV, 32, struct gg_block_q8_kv, 8, FORK)                         \
    X(152, IQ5_KS, 256, struct gg_block_iq5_ks, 4, FORK)                      \
    X(153, IQ2_KT, 256, struct gg_block_iq2_kt, 4, FORK)                      \
    X(154, IQ3_KT, 256, struct gg_block_iq3_kt, 4, FORK)                      \
    X(155, IQ4_KT, 256, struct gg_block_iq4_kt, 4, FORK)                      \
    X(156, IQ3_KS, 256, struct gg_block_iq3_ks, 2, FORK)                      \
    X(157, IQ2_KL, 256, struct gg_block_iq2_kl, 2, FORK)                      \
    X(158, IQ1_KT, 256, struct gg_block_iq1_kt, 4, FORK)                      \
    X(202, Q4_0_R8, 32, GG_BYTES(18), 0, FORK)                                \
    X(206, Q5_0_R4, 32, GG_BYTES(22), 0, FORK)                                \
    X(208, Q8_0_R8, 32, GG_BYTES(34), 0, FORK)                                \
    X(210, Q2_K_R4, 256, GG_BYTES(84), 0, FORK)                               \
    X(211, Q3_K_R4, 256, GG_BYTES(110), 0, FORK)                              \
    X(212, Q4_K_R4, 256, GG_BYTES(144), 0, FORK)                              \
    X(213, Q5_K_R4, 256, GG_BYTES(176), 0, FORK)                              \
    X(214, Q6_K_R4, 256, GG_BYTES(210), 0, FORK)                              \
    X(216, IQ2_XXS_R4, 256, GG_BYTES(66), 0, FORK)                            \
    X(217, IQ2_XS_R4, 256, GG_BYTES(74), 0, FORK)                             \
    X(218, IQ3_XXS_R4, 256, GG_BYTES(98), 0, FORK)                            \
    X(219, IQ1_S_R4, 32, GG_BYTES(6), 2, FORK)                                \
    X(220, IQ4_NL_R4, 32, GG_BYTES(18), 0, FORK)                              \
    X(221, IQ3_S_R4, 256, GG_BYTES(110), 0, FORK)                             \
    X(222, IQ2_S_R4, 256, GG_BYTES(82), 0, FORK)                              \
    X(223, IQ4_XS_R8, 256, GG_BYTES(136), 0, FORK)                            \
    X(229, IQ1_M_R4, 32, GG_BYTES(7), 2, FORK)                                \
    X(230, BF16_R16, 2, GG_BYTES(4), 0, FORK)                                 \
    X(233, Q6_0_R4, 32, GG_BYTES(26), 0, FORK)                                \
    X(335, IQ2_BN_R4, 64, GG_BYTES(16), 4, FORK)                              \
    X(337, IQ2_K_R4, 256, GG_BYTES(76), 0, FORK)                              \
    X(338, IQ3_K_R4, 256, GG_BYTES(110), 0, FORK)                             \
    X(339, IQ4_K_R4, 256, GG_BYTES(144), 0, FORK)                             \
    X(340, IQ5_K_R4, 256, GG_BYTES(176), 0, FORK)                             \
    X(344, IQ4_KS_R4, 256, GG_BYTES(136), 4, FORK)                            \
    X(352, IQ5_KS_R4, 256, GG_BYTES(168), 4, FORK)                            \
    X(353, MXFP4_R8, 32, GG_BYTES(17), 0, FORK)                               \
    X(397, Q8_K_R16, 256, GG_BYTES(258), 0, FORK)                             \
    X(398, Q8_KV_R8, 32, GG_BYTES(32), 4, FORK)                               \
    X(399, Q8_K_R8, 256, GG_BYTES(258), 0, FORK)

/* Ids of types that were removed from the format. A message names them. */
#define GG_DTYPE_REMOVED_LIST(X)                                              \
    X(4, Q4_2)                                                                \
    X(5, Q4_3)                                                                \
    X(31, Q4_0_4_4)                                                           \
    X(32, Q4_0_4_8)                                                           \
    X(33, Q4_0_8_8)                                                           \
    X(36, IQ4_NL_4_4)                                                         \
    X(37, IQ4_NL_4_8)                                                         \
    X(38, IQ4_NL_8_8)

/* Dense numbers of data types, for tables: GG_DT_Q4_K. */
enum gg_dtype_index {
#define X(ID, NAME, LEN, BLOCK, HEADER, FAMILY) GG_DT_##NAME,
    GG_DTYPE_LIST(X)
#undef X
        GG_N_DTYPES
};

#endif
