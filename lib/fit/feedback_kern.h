/* SPDX-License-Identifier: MIT */
/* feedback_kern.h - kernels of the encoder with error feedback
 *
 * Rows are lanes: 16 rows are encoded at once, and an array of n columns is
 * [n][16] floats, column after column. Each lane does the same IEEE operations
 * in the same order on every level, so that all levels give the same bytes.
 *
 * Sums over earlier columns are chains: a column's sum begins with its first
 * term, and products are added in the order of the columns, each product
 * rounded. Where a chain is cut therefore does not change its result.
 */
#ifndef GG_FIT_FEEDBACK_KERN_H
#define GG_FIT_FEEDBACK_KERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gg_form;

enum {
    GG_FEEDBACK_LANES = 16,    /* rows of a vector */
    GG_FEEDBACK_TRIES = 3,     /* scales tried at once */
    GG_FEEDBACK_TILE = 8,      /* columns of a tile of packed coefficients */
    GG_FEEDBACK_MAX_SUB = 256, /* longest sub-block */
    /* floats of scratch: errors of all attempts; or those of one, and the
     * costs of two halves of a codeword */
    GG_FEEDBACK_WORK =
        GG_FEEDBACK_MAX_SUB * GG_FEEDBACK_TRIES * GG_FEEDBACK_LANES
};

/* Columns of a product: acc[j] += sum over i < n of err[i] * tile[i][j].
 *
 * acc         [n_vectors] vectors of columns, each vector acc_stride floats
 *             after the one before; 8 columns of 16 lanes
 * err         [n_vectors], each err_stride floats after the one before; n
 *             columns of 16 lanes
 * tile        [n][8] coefficients */
typedef void gg_feedback_product_fn(float *acc, size_t acc_stride,
                                    const float *err, size_t err_stride,
                                    unsigned n_vectors, const float *tile,
                                    size_t n);

/* How the elements of a form are rounded. */
enum gg_feedback_kind {
    GG_FEEDBACK_EVEN,  /* levels one apart */
    GG_FEEDBACK_TABLE, /* levels of a table */
    GG_FEEDBACK_WORDS  /* codewords */
};

/* A codebook, prepared for a search of all codewords.
 *
 * The cost of a codeword is the sum of two halves. A half has a number: the
 * indices of its elements' levels as digits, first element first, in base
 * n_levels. Words are sorted by the number of their first half; words with the
 * same first half are a run. */
struct gg_feedback_words {
    unsigned group;    /* elements of a word: 4 or 8 */
    unsigned n_levels; /* levels that words use */
    unsigned n_runs, n_words;
    bool has_signs;      /* levels are magnitudes */
    bool even_signs;     /* the number of signs of 8 elements is even */
    bool shift_in_group; /* a group chooses one of the two shifts */
    float shift[2];
    float level[8];
    uint16_t run_end[2048];  /* end of a run, as an index of half */
    uint16_t run_half[2048]; /* number of a run's first half */
    uint16_t half[2048];     /* number of a word's second half */
    float number[2048];      /* number of a word in the form */
    int8_t element[2048][8]; /* levels of the form's word of that number */
};

/* Constants of a form, prepared for the kernels. */
struct gg_feedback_rule {
    enum gg_feedback_kind kind;
    unsigned n_levels; /* EVEN, TABLE */
    float level[256];  /* ascending */
    float mid[256];    /* middle of levels i and i + 1 */
    struct gg_feedback_words words;
};

/* A sub-block of 16 rows. */
struct gg_feedback_sub {
    unsigned len;
    const float *base;   /* [len][16] targets with the feedback of columns
                          * before the sub-block */
    const float *target; /* [len][16] targets */
    const float *g;      /* [len][len], row j: coefficients of columns i < j */
    const float *diag;   /* [len] weights of squared errors */
    const float *weight; /* [len] codewords: weights for their choice */
};

/* Scales, minima and shifts of one attempt to round a sub-block. */
struct gg_feedback_try {
    float scale[GG_FEEDBACK_LANES];
    float min[GG_FEEDBACK_LANES];
    float shift[GG_FEEDBACK_LANES];
};

/* Round a sub-block with each of n attempts, at most three, and return the
 * costs: sums of diag[j] * error[j]^2, where an error is that of a target with
 * feedback. All of try and cost can be read and written.
 *
 * work   GG_FEEDBACK_WORK floats of scratch */
typedef void gg_feedback_try_fn(const struct gg_feedback_rule *rule,
                                const struct gg_feedback_sub *sub,
                                const struct gg_feedback_try *try, unsigned n,
                                float cost[][GG_FEEDBACK_LANES], float *work);

/* A rounded sub-block. */
struct gg_feedback_codes {
    /* code of each element, word of the group that begins there */
    float code[GG_FEEDBACK_MAX_SUB][GG_FEEDBACK_LANES];
    /* codewords: -1 or 1; index of the shift of a group */
    float sign[GG_FEEDBACK_MAX_SUB][GG_FEEDBACK_LANES];
    float shift[GG_FEEDBACK_MAX_SUB][GG_FEEDBACK_LANES];
    float cost[GG_FEEDBACK_LANES];
};

/* Round a sub-block with one attempt.
 *
 * err   receives targets minus decoded elements, [len][16] */
typedef void gg_feedback_round_fn(const struct gg_feedback_rule *rule,
                                  const struct gg_feedback_sub *sub,
                                  const struct gg_feedback_try *try,
                                  float *err, struct gg_feedback_codes *out,
                                  float *work);

/* Costs of given errors: sub->base has errors with the feedback of columns
 * before the sub-block, sub->target the errors. */
typedef void gg_feedback_cost_fn(const struct gg_feedback_sub *sub,
                                 float cost[GG_FEEDBACK_LANES]);

/* Solve for the errors that a sub-block has too much: with the sub-block's
 * moments M = R R', sub->g[j][i] = R[i][j] / R[j][j] and sub->diag[j] =
 * R[j][j]^2, step = M^-1 grad.
 *
 * grad   [len][16]
 * step   receives [len][16]
 * cost   receives grad' step: the part of e' S e that other elements of the
 *        sub-block could save at most */
typedef void gg_feedback_solve_fn(const struct gg_feedback_sub *sub,
                                  const float *grad, float *step,
                                  float cost[GG_FEEDBACK_LANES]);

/* A sub-block in coordinate descent. */
struct gg_feedback_descent {
    unsigned len;
    const float *s;   /* [len][len] moments */
    const float *aim; /* [len][16] elements with the least error */
};

/* Move each element to its best level, twice.
 *
 * value   [len][16] decoded elements; receives those of the new codes
 * out     receives the codes, of all elements
 * work    len * 16 floats of scratch */
typedef void gg_feedback_descend_fn(const struct gg_feedback_rule *rule,
                                    const struct gg_feedback_descent *d,
                                    const struct gg_feedback_try *try,
                                    float *value,
                                    struct gg_feedback_codes *out,
                                    float *work);

struct gg_feedback_kern {
    gg_feedback_product_fn *product;
    gg_feedback_try_fn *try[3]; /* index enum gg_feedback_kind */
    gg_feedback_round_fn *round[3];
    gg_feedback_descend_fn *descend[3]; /* WORDS: NULL */
    gg_feedback_cost_fn *cost;
    gg_feedback_solve_fn *solve;
};

/* Fill k for the levels in cpu (GG_CPU_..., 0: C only). */
void gg_feedback_kern_init(struct gg_feedback_kern *k, uint32_t cpu);

#define GG_FEEDBACK_KERNELS(LEVEL)                                            \
    gg_feedback_product_fn gg_feedback_product_##LEVEL;                       \
    gg_feedback_try_fn gg_feedback_try_even_##LEVEL,                          \
        gg_feedback_try_table_##LEVEL, gg_feedback_try_words_##LEVEL;         \
    gg_feedback_round_fn gg_feedback_round_even_##LEVEL,                      \
        gg_feedback_round_table_##LEVEL, gg_feedback_round_words_##LEVEL;     \
    gg_feedback_descend_fn gg_feedback_descend_even_##LEVEL,                  \
        gg_feedback_descend_table_##LEVEL;                                    \
    gg_feedback_cost_fn gg_feedback_cost_##LEVEL;                             \
    gg_feedback_solve_fn gg_feedback_solve_##LEVEL
GG_FEEDBACK_KERNELS(c);
GG_FEEDBACK_KERNELS(256);
GG_FEEDBACK_KERNELS(avx512);

#endif
