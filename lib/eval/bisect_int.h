/* SPDX-License-Identifier: MIT */
/* bisect_int.h - weights of a model and a base, and groups of them */
#ifndef GG_EVAL_BISECT_INT_H
#define GG_EVAL_BISECT_INT_H

#include "gguf/bisect.h"
#include "gguf/imatrix.h"
#include "model/weight/weight_swap.h"

struct gg_bisect_weight {
    struct gguf_bisect_weight w;
    size_t i, k; /* numbers in model and base */
    char name[GGUF_TENSOR_NAME];
    char group[GGUF_TENSOR_NAME]; /* the name of that it is in */
};

/* Weights first to first + entry.n_weights of the list. */
struct gg_bisect_group {
    struct gguf_bisect_entry entry;
    size_t first;
    char name[GGUF_TENSOR_NAME];
};

struct gguf_bisect {
    const struct gguf_allocator *allocator;
    struct gg_bisect_weight *list; /* groups' weights are side by side */
    size_t n;
    struct gg_bisect_group *group; /* room for 2 n */
    size_t n_groups, n_measured, n_left_out;
    struct gguf_figure kld;
};

/* bisect_suspicion.c: find the weights that differ, with their suspicion; im:
 * what the base's inputs are. GGUF_E_NOMEM. */
enum gguf_status gg_bisect_find_weights(struct gguf_bisect *b,
                                        const struct gguf_model *model,
                                        const struct gguf_model *base,
                                        const struct gguf_imatrix *im,
                                        struct gguf_pool *pool,
                                        struct gguf_error *err);

/* bisect_group.c: put the weights into groups, the most suspicious first.
 * GGUF_E_NOMEM. */
enum gguf_status gg_bisect_make_groups(struct gguf_bisect *b,
                                       enum gguf_bisect_grouping by,
                                       struct gguf_error *err);
/* How many of them are measured at most. */
size_t gg_bisect_max_measurements(const struct gguf_bisect *b,
                                  enum gguf_bisect_grouping by);
/* The next one to measure, which may be a half made by that; or NULL. */
struct gg_bisect_group *gg_bisect_next_group(struct gguf_bisect *b,
                                             enum gguf_bisect_grouping by);
/* In the order that gguf_bisect_entry() has them in. */
void gg_bisect_sort(struct gguf_bisect *b);

#endif
