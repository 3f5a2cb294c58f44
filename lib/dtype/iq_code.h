/* SPDX-License-Identifier: MIT */
/* iq_code.h - the codebooks of the IQ1, IQ2 and IQ3 types
 *
 * An entry of a codebook is 8 elements (IQ1, IQ2) or 4 (IQ3), each of a few
 * levels. It is stored as indices of levels, element 0 in the lowest bits: 2
 * bits an element for IQ1 and IQ2, 3 bits for IQ3. The entries and their order
 * are part of the format. The tables (iq_code_tab.c) were made by
 * tests/dtype/check-iq-code.c from the entries of ggml's decoders (commit
 * d99724f).
 */
#ifndef GG_DTYPE_IQ_CODE_H
#define GG_DTYPE_IQ_CODE_H

#include <stdint.h>

extern const uint16_t gg_dtype_iq1_code[2048]; /* IQ1_S, IQ1_M */
extern const uint16_t gg_dtype_iq2_xxs_code[256];
extern const uint16_t gg_dtype_iq2_xs_code[512];
extern const uint16_t gg_dtype_iq2_s_code[1024];
extern const uint16_t gg_dtype_iq3_xxs_code[256];
extern const uint16_t gg_dtype_iq3_s_code[512];

/* clang-format off */
/* Levels of elements, as the decoders multiply them. */
#define GG_IQ1_LEVELS     { -1, 0, 1 }
#define GG_IQ2_LEVELS     { 8, 25, 43 }
#define GG_IQ3_XXS_LEVELS { 4, 12, 20, 28, 36, 44, 52, 62 }
#define GG_IQ3_S_LEVELS   { 1, 3, 5, 7, 9, 11, 13, 15 }

/* Levels of the 16 codes of IQ4_NL and IQ4_XS. */
#define GG_IQ4_LEVELS                                                         \
    { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 }

/* Levels of MXFP4 and NVFP4: twice the values of E2M1. */
#define GG_FP4_LEVELS                                                         \
    { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 }

/* Levels of IQ2_K to IQ6_K and the types derived from them (ik_llama.cpp,
 * commit 8337e4c), and the number that is added to each level in a shifted
 * sub-block. Codes of four bits have GG_IQ4_LEVELS. Codes of six bits have a
 * cubic, in f32, evaluated from the innermost product on. */
#define GG_IQ2K_LEVELS { -31, -13, 1, 17 }
#define GG_IQ3K_LEVELS { -63, -40, -23, -10, 1, 13, 28, 47 }
#define GG_IQ5K_LEVELS                                                        \
    { -126, -114, -103, -92, -83, -74, -65, -57, -50, -43, -36, -30, -24, -18, \
      -12, -6, -1, 5, 11, 17, 23, 29, 36, 43, 51, 59, 68, 77, 87, 97, 109, 121 }
#define GG_IQ6K_CUBIC(q)                                                      \
    (-127.0f + (q) * (6.2568f + (q) * (-0.11218f + (q) * 0.0011972f)))

/* Pairs of levels of IQ2_KL's codes, from GG_IQ3K_LEVELS. */
#define GG_IQ2KL_PAIRS                                                        \
    { { -63, -23 }, { -63, 13 }, { -40, -63 }, { -40, -10 }, { -40, 13 },     \
      { -40, 47 }, { -23, -40 }, { -23, -23 }, { -23, 1 }, { -23, 13 },       \
      { -23, 28 }, { -10, -63 }, { -10, 1 }, { -10, 13 }, { -10, 47 },        \
      { 1, -23 }, { 1, -10 }, { 1, 1 }, { 1, 13 }, { 1, 28 }, { 13, -40 },    \
      { 13, -23 }, { 13, -10 }, { 13, 1 }, { 13, 13 }, { 28, -63 },           \
      { 28, -23 }, { 28, 1 }, { 28, 28 }, { 28, 47 }, { 47, -23 },            \
      { 47, 13 } }
/* clang-format on */
enum {
    GG_IQ2K_SHIFT = 5,
    GG_IQ3K_SHIFT = 4,
    GG_IQ4K_SHIFT = 4,
    GG_IQ5K_SHIFT = 2,
    GG_IQ6K_SHIFT = 1
};

/* Elements of a trellis (IQ1_KT to IQ4_KT) are sums of the bytes of successive
 * states, each masked to six bits, minus the middle of their range. A state is
 * the last one times the factor, modulo 2^32; the first is the code plus an
 * offset. Groups of IQ4_KT choose between two offsets. Source: the decoders of
 * ik_llama.cpp (commit 8337e4c); method: QTIP (Tseng and others 2024, arXiv
 * 2406.11235). */
#define GG_TRELLIS_FACTOR UINT32_C(0xcbac1fed)
enum {
    GG_TRELLIS_OFFSET = 4096,
    GG_TRELLIS_OTHER_OFFSET = 4096 + 32768, /* IQ4_KT only */
    GG_TRELLIS_MIDDLE = 126
};

/* Advance the state and return its element, -126 .. 126. */
static inline int gg_dtype_trellis_next(uint32_t *state)
{
    *state *= GG_TRELLIS_FACTOR;
    uint32_t v = *state & UINT32_C(0x3f3f3f3f);
    return (int)((v & 255) + (v >> 8 & 255) + (v >> 16 & 255) + (v >> 24)) -
           GG_TRELLIS_MIDDLE;
}

/* Offset of IQ1: an element is its level plus or minus this. */
#define GG_IQ1_DELTA 0.125f

/* Eight signs from seven bits. The eighth makes the number of signs even. */
static inline uint32_t gg_dtype_iq_signs(uint32_t s)
{
    uint32_t p = (s ^ (s >> 4 & 7)) & 15; /* bit i of 0x6996: parity of i */
    return (s & 127) | (UINT32_C(0x6996) >> p & 1) << 7;
}

#endif
