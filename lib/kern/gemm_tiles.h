/* SPDX-License-Identifier: MIT */
/* gemm_tiles.h - products of bytes and of bf16 by tile registers (AMX)
 *
 * One instruction multiplies two tiles, matrices of 16 rows of 64 bytes, and
 * adds the product to a third. Columns of activations are the rows of the first
 * operand, four bytes or a pair of bf16 of 16 rows of weights are a row of the
 * second. So a row of the sums is a column of y.
 *
 * Bytes. Results are those of vnni512, bit for bit. A run of 32 or 16 steps is
 * one product of tiles, its integer sums are stored, and vectors multiply them
 * by the scales of rows and columns: steps that share no scale cannot share a
 * sum. Blocks of panels are those of gemm_i8.h but for two things. The bytes of
 * weights are signed and without a bias where they fit, so that sums begin with
 * 0 (forms with a bias: unsigned). The 32 steps of a run of activations lie
 * side by side:
 *
 *     int8_t i[8][nr][32]
 *
 * Few columns are multiplied by the kernels of vnni512, from its panels.
 *
 * bf16. A block has 32 steps. Weights lie in pairs as in gemm_bf16.h, the steps
 * of a column of activations side by side:
 *
 *     uint16_t w[16][mr][2], x[nr][32]
 *
 * The sums have this order, by the definition of TDPBF16PS in Intel's Software
 * Developer's Manual: in a block the even steps are one chain of fused
 * multiply-adds from 0, in order of k, the odd steps another. The two are
 * added, and that sum is added to the sum of the blocks before. All round to
 * nearest, ties to even. Subnormal inputs and results count as 0.
 */
#ifndef GG_KERN_GEMM_TILES_H
#define GG_KERN_GEMM_TILES_H

#include "kern/gemm_bf16.h"
#include "kern/gemm_i8.h"

/* Shape of a tile of y: twice two tile registers. A panel of activations is too
 * large for L1, so a tile takes each step of all of its columns before the
 * next. */
enum {
    GG_GEMM_MR_TILES = 32,
    GG_GEMM_NR_TILES = 32,
    GG_GEMM_SIDE_TILES = 16, /* rows and columns of a register of sums */
    GG_GEMM_MC_TILES = 128,
    /* Steps that lie side by side in a column. */
    GG_GEMM_STEPS_TILES = 32,
    /* Steps of bytes per round as vnni512 has them, for the same sums. Steps of
     * bf16 whose panel of activations, 32 KB, stays in L1. */
    GG_GEMM_KC_I8_TILES = 4 * GG_GEMM_KC_INT512,
    GG_GEMM_KC_BF16_TILES = 512
};

/* X(scales, minima, bias?, suffix) */
#define GG_GEMM_I8_TILES_AMX(X, suffix)                                       \
    X(8, 0, 0, 8_0_##suffix)                                                  \
    X(8, 8, 0, 8_8_##suffix)                                                  \
    X(16, 0, 0, 16_0_##suffix)                                                \
    X(1, 0, 0, 1_0_##suffix)                                                  \
    X(1, 0, 1, 1_0_bias_##suffix)                                             \
    X(1, 16, 0, 1_16_##suffix)

/* Rows of the table of forms, for kernels with a suffix: those of bytes in the
 * order of the forms, and that of bf16. */
#define GG_GEMM_I8_ROWS_AMX(NAME)                                             \
    GG_GEMM_I8_ROW_AMX(8, 0, 0, NAME, 8_0_##NAME),                            \
        GG_GEMM_I8_ROW_AMX(8, 0, 0, NAME, 8_0_##NAME),                        \
        GG_GEMM_I8_ROW_AMX(8, 0, 0, NAME, 8_0_##NAME),                        \
        GG_GEMM_I8_ROW_AMX(8, 0, 0, NAME, 8_0_##NAME),                        \
        GG_GEMM_I8_ROW_AMX(8, 8, 0, NAME, 8_8_##NAME),                        \
        GG_GEMM_I8_ROW_AMX(8, 8, 0, NAME, 8_8_##NAME),                        \
        GG_GEMM_I8_ROW_AMX(16, 0, 0, NAME, 16_0_##NAME),                      \
        GG_GEMM_I8_ROW_AMX(16, 0, 0, NAME, 16_0_##NAME),                      \
        GG_GEMM_I8_ROW_AMX(1, 0, 0, NAME, 1_0_##NAME),                        \
        GG_GEMM_I8_ROW_AMX(1, 0, 0, NAME, 1_0_##NAME),                        \
        GG_GEMM_I8_ROW_AMX(1, 0, 127, NAME, 1_0_bias_##NAME),                 \
        GG_GEMM_I8_ROW_AMX(1, 16, 0, NAME, 1_16_##NAME)
#define GG_GEMM_I8_ROW_AMX(SCALES, MINS, BIAS, NAME, TILE)                    \
    {                                                                         \
        .mr = GG_GEMM_MR_TILES, .nr = GG_GEMM_NR_TILES,                       \
        .k_block = GG_GEMM_INT_STEPS,                                         \
        .w_block = GG_GEMM_I8_W_BLOCK(GG_GEMM_MR_TILES, SCALES, MINS),        \
        .x_block = GG_GEMM_I8_X_BLOCK(GG_GEMM_NR_TILES, SCALES, MINS),        \
        .kc = GG_GEMM_KC_I8_TILES, .mc = GG_GEMM_MC_TILES,                    \
        .round = GG_GEMM_NR_TILES, .buf_size = GG_GEMM_BUF_SIZE,              \
        .pack_rows = gg_kern_gemm_pack_ints, .pack_w = gg_kern_i8_pack_w_c,   \
        .pack_groups = gg_kern_int_pack_groups_256,                           \
        .pack_x = gg_kern_i8_pack_x_##NAME, .tile = gg_kern_i8_tile_##TILE,   \
        .enter = gg_kern_tiles_enter_##NAME,                                  \
        .leave = gg_kern_tiles_leave_##NAME,                                  \
        .ints = { .width = 1,                                                 \
                  .n_scales = SCALES,                                         \
                  .n_mins = MINS,                                             \
                  .bias = BIAS,                                               \
                  .top = BIAS ? 255 : 127,                                    \
                  .tiles = true },                                            \
    }
#define GG_GEMM_BF16_ROW_AMX(NAME)                                            \
    {                                                                         \
        .mr = GG_GEMM_MR_TILES, .nr = GG_GEMM_NR_TILES,                       \
        .k_block = GG_GEMM_STEPS_TILES,                                       \
        .w_block = GG_GEMM_MR_TILES * GG_GEMM_STEPS_TILES * 2,                \
        .x_block = GG_GEMM_NR_TILES * GG_GEMM_STEPS_TILES * 2,                \
        .kc = GG_GEMM_KC_BF16_TILES, .mc = GG_GEMM_MC_TILES,                  \
        .round = GG_GEMM_NR_TILES, .narrow = GG_GEMM_NARROW,                  \
        .buf_size = GG_GEMM_BUF_SIZE, .pack_rows = gg_kern_gemm_pack_decoded, \
        .pack_w = gg_kern_bf16_pack_w_##NAME,                                 \
        .pack_x = gg_kern_bf16_pack_x_##NAME,                                 \
        .tile = gg_kern_bf16_tile_##NAME, .dot = gg_kern_gemm_dot_decoded,    \
        .enter = gg_kern_tiles_enter_##NAME,                                  \
        .leave = gg_kern_tiles_leave_##NAME,                                  \
    }

/* Kernels of the level, and of a program that has tile registers in C
 * (tests/kern/tile_model.c). */
#define GG_GEMM_TILES_DECLARE(NAME)                                           \
    gg_kern_gemm_pack_fn gg_kern_i8_pack_x_##NAME,                            \
        gg_kern_bf16_pack_w_##NAME, gg_kern_bf16_pack_x_##NAME;               \
    gg_kern_gemm_tile_fn gg_kern_bf16_tile_##NAME,                            \
        gg_kern_i8_tile_8_0_##NAME, gg_kern_i8_tile_8_8_##NAME,               \
        gg_kern_i8_tile_16_0_##NAME, gg_kern_i8_tile_1_0_##NAME,              \
        gg_kern_i8_tile_1_0_bias_##NAME, gg_kern_i8_tile_1_16_##NAME;         \
    gg_kern_gemm_enter_fn gg_kern_tiles_enter_##NAME;                         \
    gg_kern_gemm_leave_fn gg_kern_tiles_leave_##NAME;
GG_GEMM_TILES_DECLARE(amx)

/* Bytes of a column, or of 16 rows' weights divided by 16, that one product of
 * tiles takes. */
static inline unsigned gg_gemm_tiles_depth(const struct gg_kern_gemm *g)
{
    return g->ints.tiles
               ? GG_GEMM_INT_STEPS / GG_GEMM_I8_RUNS(g->ints.n_scales)
               : 64;
}

#endif
