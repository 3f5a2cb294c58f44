/* SPDX-License-Identifier: MIT */
/* lanes.h - a block of each of some rows to vectors whose lanes are the rows
 *
 * Included after rows_256.h or rows_512.h. What few_impl.h multiplies: 256
 * steps of ROWS rows as bytes without a sign, with the type's bias
 * (GG_KERN_FEW_ALL), and their scales, whatever precision activations have. So
 * there is code for a type once for each width of vectors, and code that
 * multiplies once for each kind of type.
 */
#ifndef GG_KERN_X86_LANES_H
#define GG_KERN_X86_LANES_H

#include "kern/few_columns.h"

enum { QUADS = GG_GEMM_I8_QUADS };

/* Kinds of types, by their scales:
 *
 *     own   of each 32 steps d[i]
 *     sub   of each 32 steps d[0] times the integer sub[i]
 *     half  of each 16 steps likewise
 *     fold  the same, and sums of 16 steps fit into 16 bits (few_i8_impl.h)
 *     two   the same, of two bits
 *     one   of all d[0]
 */
struct lanes {
    VI q[QUADS]; /* steps 4 t to 4 t + 3 */
    VI sub[16];
    VF d[8];
    VF min[16]; /* with the sign that they are added with */
};

/* The next n steps, at most 256 and a multiple of the type's block. */
typedef void lanes_fn(struct lanes *w, const struct rows *r, size_t n);

/* gg_kern_lanes_q4_k_avx2 and so on. */
#define LANES_OF_(NAME, LEV) gg_kern_lanes_##NAME##_##LEV
#define LANES_OF(NAME, LEV)  LANES_OF_(NAME, LEV)
#define X(level, type, name, ...)                                             \
    lanes_fn gg_kern_lanes_##name##_avx2, gg_kern_lanes_##name##_avx512;
GG_KERN_FEW_ALL(X, )
#undef X

/* Of Q2_K two bits stay where they are in a byte: those of the second quarter
 * of each 128 steps are 4 times larger, of the third 16, of the fourth 64. So a
 * sum is shifted, instead of the four bytes that it is of. */
lanes_fn gg_kern_lanes_q2_k_apart_avx2, gg_kern_lanes_q2_k_apart_avx512;

#endif
