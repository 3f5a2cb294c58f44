/* dp.h - the instructions that multiply integers or bf16 and add to sums
 *
 * By assembly, of one instruction each, or of two where there is none that does
 * both: gcc 12 copies sums between registers and spills them around the
 * intrinsics, which makes products of integers slower than those of floats.
 */
#ifndef GG_KERN_X86_DP_H
#define GG_KERN_X86_DP_H

#include <immintrin.h>

#define GG_X86_DP_512(name, c, a, b)                                          \
    __asm__(name " %2, %1, %0" : "+v"(c) : "v"(a), "v"(b))
#define GG_X86_DP_256(name, c, a, b)                                          \
    __asm__("%{vex%} " name " %2, %1, %0" : "+x"(c) : "x"(a), "x"(b))

/* c += sums of the four products of bytes of a, without a sign, and of b. */
#define GG_X86_DPBUSD_512(c, a, b) GG_X86_DP_512("vpdpbusd", c, a, b)
#define GG_X86_DPBUSD_256(c, a, b) GG_X86_DP_256("vpdpbusd", c, a, b)

/* c += sums of the two products of signed 16 bits in each lane of a and b; with
 * VNNI, and without. */
#define GG_X86_DPWSSD_512(c, a, b) GG_X86_DP_512("vpdpwssd", c, a, b)
#define GG_X86_DPWSSD_256(c, a, b) GG_X86_DP_256("vpdpwssd", c, a, b)
#define GG_X86_MADDWD_512(c, a, b)                                            \
    do {                                                                      \
        __m512i product_;                                                     \
        __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"                    \
                : "+v"(c), "=&v"(product_)                                    \
                : "v"(a), "v"(b));                                            \
    } while (0)
#define GG_X86_MADDWD_256(c, a, b)                                            \
    do {                                                                      \
        __m256i product_;                                                     \
        __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"                    \
                : "+x"(c), "=&x"(product_)                                    \
                : "x"(a), "x"(b));                                            \
    } while (0)

/* c += the products of the two bf16 in each lane of a and b. */
#define GG_X86_DPBF16_512(c, a, b) GG_X86_DP_512("vdpbf16ps", c, a, b)

#endif
