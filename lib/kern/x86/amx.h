/* SPDX-License-Identifier: MIT */
/* amx.h - instructions on tile registers
 *
 * The eight registers have up to 16 rows of 64 bytes. They get their sizes from
 * TILES_CONFIGURE(), which zeroes them, and lose them by TILES_RELEASE(). A
 * register is a number that is a literal. Each macro is one instruction of
 * inline assembly: the assembler must know them, the compiler need not.
 */
#ifndef GG_KERN_X86_AMX_H
#define GG_KERN_X86_AMX_H

#include <stddef.h>
#include <stdint.h>

/* Operand of LDTILECFG: palette 1, rows and bytes of a row of each register. */
struct gg_amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};
_Static_assert(sizeof(struct gg_amx_config) == 64, "as LDTILECFG reads it");

#define TILES_CONFIGURE(config)                                               \
    __asm__ volatile("ldtilecfg %0" : : "m"(*(config)))
#define TILES_RELEASE() __asm__ volatile("tilerelease")
#define TILE_ZERO(t)    __asm__ volatile("tilezero %%tmm" #t : :)

/* Load rows that are stride bytes apart, a constant; store them. */
#define TILE_BYTES(at, stride) (*(char(*)[15 * (stride) + 64])(uintptr_t)(at))
#define TILE_LOAD(t, at, stride)                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t                          \
                     :                                                        \
                     : "r"(at), "r"((size_t)(stride)),                        \
                       "m"(TILE_BYTES(at, stride)))
#define TILE_STORE(t, at, stride)                                             \
    __asm__ volatile("tilestored %%tmm" #t ", (%1,%2,1)"                      \
                     : "+m"(TILE_BYTES(at, stride))                           \
                     : "r"(at), "r"((size_t)(stride)))

/* c += a b: products of signed bytes by signed bytes, of signed bytes by
 * unsigned bytes, of bf16. */
#define TILE_MULTIPLY(name, c, a, b)                                          \
    __asm__ volatile(name " %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#define TILE_MULTIPLY_SS(c, a, b)   TILE_MULTIPLY("tdpbssd", c, a, b)
#define TILE_MULTIPLY_SU(c, a, b)   TILE_MULTIPLY("tdpbsud", c, a, b)
#define TILE_MULTIPLY_BF16(c, a, b) TILE_MULTIPLY("tdpbf16ps", c, a, b)

#endif
