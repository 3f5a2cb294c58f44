/* SPDX-License-Identifier: MIT */
/* dp.h - instructions that multiply integers or bf16 and add to sums
 *
 * Each is one instruction of inline assembly, or two where no single
 * instruction multiplies and adds. gcc 12 copies sums between registers and
 * spills them around the intrinsics, which makes integer products slower than
 * products of floats.
 */
#ifndef GG_KERN_X86_DP_H
#define GG_KERN_X86_DP_H

#include <immintrin.h>

#define GG_DP_512(name, c, a, b)                                              \
    __asm__(name " %2, %1, %0" : "+v"(c) : "v"(a), "v"(b))
#define GG_DP_256(name, c, a, b)                                              \
    __asm__("%{vex%} " name " %2, %1, %0" : "+x"(c) : "x"(a), "x"(b))

/* c += sums of the four products of unsigned bytes of a and signed bytes of
 * b. */
#define GG_DP_DPBUSD_512(c, a, b) GG_DP_512("vpdpbusd", c, a, b)
#define GG_DP_DPBUSD_256(c, a, b) GG_DP_256("vpdpbusd", c, a, b)

/* c += sums of the two products of signed 16 bits in each lane of a and b; with
 * VNNI, and without. */
#define GG_DP_DPWSSD_512(c, a, b) GG_DP_512("vpdpwssd", c, a, b)
#define GG_DP_DPWSSD_256(c, a, b) GG_DP_256("vpdpwssd", c, a, b)
#define GG_DP_TWO(TYPE, constraint, of_b, first, second, c, a, b)             \
    do {                                                                      \
        TYPE product_;                                                        \
        __asm__(first " %3, %2, %1\n\t" second " %1, %0, %0"                  \
                : "+" constraint(c), "=&" constraint(product_)                \
                : constraint(a), of_b(b));                                    \
    } while (0)
#define GG_DP_MADDWD_512(c, a, b)                                             \
    GG_DP_TWO(__m512i, "v", "v", "vpmaddwd", "vpaddd", c, a, b)
#define GG_DP_MADDWD_256(c, a, b)                                             \
    GG_DP_TWO(__m256i, "x", "x", "vpmaddwd", "vpaddd", c, a, b)

/* GG_DP_MADDWD_256 for a b whose 32-bit lanes are equal. */
#define GG_DP_MADDWD_ALL_256 GG_DP_MADDWD_256

/* Byte products in two steps: c = (or c +=) sums of the two products of
 * unsigned bytes of a and signed bytes of b in 16 bits, which must fit. */
#define GG_DP_MUL_BYTES_256(c, a, b)                                          \
    __asm__("vpmaddubsw %2, %1, %0" : "=x"(c) : "x"(a), "x"(b))
#define GG_DP_ADD_BYTES_256(c, a, b)                                          \
    GG_DP_TWO(__m256i, "x", "x", "vpmaddubsw", "vpaddw", c, a, b)
#define GG_DP_MUL_BYTES_512(c, a, b)                                          \
    __asm__("vpmaddubsw %2, %1, %0" : "=v"(c) : "v"(a), "v"(b))
#define GG_DP_ADD_BYTES_512(c, a, b)                                          \
    GG_DP_TWO(__m512i, "v", "v", "vpmaddubsw", "vpaddw", c, a, b)

/* c += sums of the two 16-bit integers in each lane of a. ones need not be in a
 * register. */
#define GG_DP_WIDEN_256(c, a, ones)                                           \
    GG_DP_TWO(__m256i, "x", "xm", "vpmaddwd", "vpaddd", c, a, ones)
#define GG_DP_PAIRS_256(c, a) GG_DP_WIDEN_256(c, a, _mm256_set1_epi16(1))
#define GG_DP_WIDEN_512(c, a, ones)                                           \
    GG_DP_TWO(__m512i, "v", "vm", "vpmaddwd", "vpaddd", c, a, ones)

/* c += the products of the two bf16 in each lane of a and b. */
#define GG_DP_DPBF16_512(c, a, b) GG_DP_512("vdpbf16ps", c, a, b)

/* to = 16 floats as bf16, to nearest, subnormal ones as 0. */
#define GG_DP_TO_BF16(to, x)                                                  \
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(to) : "v"(x))

#endif
