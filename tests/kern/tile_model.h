/* SPDX-License-Identifier: MIT */
/* tile_model.h - products by tile registers on any machine
 *
 * The source of the level amx, compiled with registers in C (tile_model.c) and
 * with vectors of 256 bits. It shows that the kernels move the right bytes.
 */
#ifndef TESTS_KERN_TILE_MODEL_H
#define TESTS_KERN_TILE_MODEL_H

#include "tests/kern/kern.h"

enum { TILE_ROWS = 16, TILE_ROW_BYTES = 64 };
struct tile {
    uint8_t row[TILE_ROWS][TILE_ROW_BYTES];
};

/* c += a b. The shape of c is rows by n numbers of 32 bits, a row of a has
 * depth bytes. Definitions: Intel's Software Developer's Manual, TDPBSSD,
 * TDPBSUD, TDPBF16PS. */
typedef void tile_multiply_fn(struct tile *c, const struct tile *a,
                              const struct tile *b, int rows, int n,
                              int depth);
tile_multiply_fn tile_multiply_ss, tile_multiply_su, tile_multiply_bf16;

/* Name of the level in tests. NULL: this build has no vectors of 256 bits. */
const char *tile_model_name(void);
/* Mask of the level on whose vectors the model stands. */
uint32_t tile_model_mask(void);
/* Put the model's products into k, which has been filled for that mask. */
void tile_model_init(struct gg_kern *k);

#endif
