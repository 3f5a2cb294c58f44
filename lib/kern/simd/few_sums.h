/* SPDX-License-Identifier: MIT */
/* few_sums.h - definitions before the sums of few_i8_impl.h and
 * few_i16_impl.h */
#include "dtype/iq_code.h"
#include "kern/few_columns.h"
#include "kern/simd/lanes.h"

#include <assert.h>
#include <stddef.h>

#ifndef SIGNED
#define SIGNED 0 /* see few_i8_impl.h */
#endif

/* Largest number of columns with code. */
enum { COLS = (int)NR < (int)GG_GEMM_FEW ? (int)NR : (int)GG_GEMM_FEW };

struct acts;

/* Sums of a lane's row by columns: of all steps so far and of this block. They
 * point to arrays outside the struct: an array in it that is written by index
 * would keep clang from treating the other members as constants. */
struct out {
    VF *sum, *part;
    VI *total;
    struct acts *x; /* the block of activations */
    /* constants once this is inlined: */
    int n_cols;
    /* bias of a type's integers; a constant in code for one type */
    int bias;
    unsigned bits; /* bits of the integers with the bias */
};
