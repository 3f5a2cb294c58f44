/* SPDX-License-Identifier: MIT */
/* few_sums.h - what few_i8_impl.h and few_i16_impl.h share before their sums */
#include "dtype/iq_code.h"
#include "kern/few_columns.h"
#include "kern/x86/lanes.h"

#include <assert.h>
#include <stddef.h>

enum { COLS = NR }; /* most columns that there is code for */

struct acts;

/* Sums of a lane's row by columns, of all steps so far and of this block. They
 * are not in the struct: what an index may write is no constant to clang. */
struct out {
    VF *sum, *part;
    VI *total;
    struct acts *x; /* the block of activations */
    /* constants once this is inlined: */
    int n_cols;
    int bias; /* what is added to a type's integers; a constant in code for
                    * one type */
    unsigned bits; /* that they have then */
};
