/* SPDX-License-Identifier: MIT */
/* weight_noise.h - add the effect of a random error of a weight to a result
 *
 * The error resembles that of rounding: element (r, j) of the weight, in row r
 * of all its rows, gets
 *
 *     e(r, j) = sigma * z(r, j) * s(r, j)
 *
 * z is 1 or -1 by a hash of the seed, r and j. s is the RMS of the weights in
 * the run of 32 columns to which j belongs, since the blocks of all types have
 * an error in proportion to their weights. Weights are not changed: e times the
 * inputs of the product is added to its result.
 *
 * The power of an error is
 *
 *     mean over inputs x of  sum over r and j of  e(r, j)^2 x(j)^2
 *
 * where r are the rows of the matrix that x is multiplied with. For a table,
 * whose rows are looked up, it is the mean over its rows of the sum of e^2. */
#ifndef GG_EVAL_WEIGHT_NOISE_H
#define GG_EVAL_WEIGHT_NOISE_H

#include "base/error.h"
#include "data/data.h"
#include "gguf/pool.h"
#include "gguf/tensor.h"
#include "kern/kern.h"

enum { GG_WEIGHT_NOISE_RUN = 32 }; /* columns with a common RMS */

struct gg_weight_noise {
    const struct gguf_allocator *allocator;
    struct gguf_pool *pool;
    gg_vec_dot_fn *dot;
    struct gg_data_rows rows; /* numbers of the weight */
    uint64_t n_cols, n_rows;  /* columns; rows of all matrices */
    uint64_t n_rows_mat;      /* rows of a matrix */
    uint64_t seed;
    double sigma;
};

/* Is a node a product of a weight, or a look-up in one, to which noise can be
 * added? Returns the weight, or NULL. */
const struct gguf_tensor *gg_weight_noise_find(const struct gguf_tensor *node);

/* Sums over the inputs of products with a weight. */
struct gg_weight_noise_sums {
    double power;   /* shares of the error's power, with sigma 1 */
    double squares; /* squares of the inputs' elements */
    double n; /* number of inputs; a product with a part of a matrix's rows
               * counts for that part */
};

/* Add noise to the result of a node, which was just computed in host memory,
 * and the inputs of a product to *sums. GGUF_E_NOMEM. */
enum gguf_status gg_weight_noise_add(const struct gg_weight_noise *w,
                                     const struct gguf_tensor *node,
                                     struct gg_weight_noise_sums *sums,
                                     struct gguf_error *err);

/* Power of the error of a table, with sigma 1. GGUF_E_NOMEM. */
enum gguf_status gg_weight_noise_table_power(const struct gg_weight_noise *w,
                                             double *power,
                                             struct gguf_error *err);

/* Seed for a weight. table: its rows are looked up. */
uint64_t gg_weight_noise_seed(const char *name, bool table);

/* Write row r of the error with sigma 1 to e[n_cols]. */
void gg_weight_noise_row(const struct gg_weight_noise *w, uint64_t r,
                         float *e);

#endif
