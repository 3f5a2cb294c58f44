/* SPDX-License-Identifier: MIT */
/* lanes.h - a block of each of some rows to vectors whose lanes are the rows
 *
 * Included after rows_256.h or rows_512.h. few_impl.h multiplies these vectors:
 * 256 steps of ROWS rows as unsigned bytes with the type's bias
 * (GG_KERN_FEW_ALL), and their scales. They do not depend on the precision of
 * activations. So each type has code once per width of vectors, and the code
 * that multiplies exists once per kind of type.
 */
#ifndef GG_KERN_SIMD_LANES_H
#define GG_KERN_SIMD_LANES_H

#include "kern/few_columns.h"

enum { QUADS = GG_GEMM_I8_QUADS };

/* Kinds of types, by their scales:
 *
 *     own   each 32 steps have a scale d[i]
 *     sub   each 32 steps have the scale d[0] times the integer sub[i]
 *     half  each 16 steps have the scale d[0] times the integer sub[i]
 *     fold  as half, and sums of 16 steps fit into 16 bits (few_i8_impl.h)
 *     two   as fold, with codes of two bits
 *     one   all steps have the scale d[0]
 */
struct lanes {
    VI q[QUADS]; /* steps 4 t to 4 t + 3 */
    VI sub[16];
    VF d[8];
    VF min[16]; /* minima with the sign with which they are added */
};

/* Read the next n steps, at most 256 and a multiple of the type's block. */
typedef void lanes_fn(struct lanes *w, const struct rows *r, size_t n);

/* gg_kern_lanes_q4_k_256 and so on. Types whose bytes use 3, 7 or 8 bits also
 * have lanes of signed bytes without a bias, ..._dotprod. */
#define LANES_OF_(NAME, LEV) gg_kern_lanes_##NAME##_##LEV
#define LANES_OF(NAME, LEV)  LANES_OF_(NAME, LEV)
#define X(level, type, name, ...)                                             \
    lanes_fn gg_kern_lanes_##name##_256, gg_kern_lanes_##name##_avx512,       \
        gg_kern_lanes_##name##_dotprod;
GG_KERN_FEW_ALL(X, )
#undef X

/* Variant of Q2_K that leaves pairs of bits where they are in a byte: those of
 * the second quarter of each 128 steps are 4 times larger, of the third 16
 * times, of the fourth 64 times. One shift of a sum then replaces shifts of its
 * four bytes. */
lanes_fn gg_kern_lanes_q2_k_apart_256, gg_kern_lanes_q2_k_apart_avx512;

#endif
